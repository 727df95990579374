"""Matrix products, compiled: on one thread of the linear algebra library.

The number of threads is set and put back within machine code that keeps the interpreter's lock: no other thread of
Python ever meets it, and nothing can be raised between the two. A kernel with `nogil` must not multiply.
"""

import llvmlite.binding
import numpy as np
from numba import cfunc, types

from amdp.kernels import blas
from amdp.kernels.blas import LARGE
from amdp.kernels.compiling import merged

_COUNT = types.int32(types.int32)


def _set_threads_address() -> int:
    """Of the call for the library of scipy, which numba multiplies with; without one, of a call that does nothing."""
    found = blas.setter(blas.SCIPY)
    if found is None or isinstance(found, blas.GetAndSet):  # compiled code needs one call that does both
        return int(cfunc(_COUNT)(lambda count: count).address)
    return blas.address(found)


# A symbol, not a pointer: machine code that is kept on disk finds it anew in each process.
llvmlite.binding.add_symbol("amdp_set_blas_threads", _set_threads_address())
_set_threads = types.ExternalFunction("amdp_set_blas_threads", _COUNT)


@merged()
def multiply(left, right, out):
    """`out = left @ right`, for a matrix on the right."""
    if left.size * right.shape[1] < LARGE:
        np.dot(left, right, out)
    else:
        before = _set_threads(1)
        np.dot(left, right, out)
        _set_threads(before)
