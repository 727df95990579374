"""Copies between arrays.

`target[:] = source` would compile the message about shapes that do not fit, text and all, into each caller.
"""

from amdp.kernels.compiling import inner


@inner()
def copy(source, target):
    """`target[:] = source`; both in C order and of one size, which is not checked."""
    given, taken = source.reshape(-1), target.reshape(-1)
    for i in range(taken.size):
        taken[i] = given[i]


@inner()
def copy_first(source, target, count):
    """The first `count` entries along the first axis."""
    for i in range(count):
        target[i] = source[i]
