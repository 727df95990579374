"""What the files of this package share: how they are compiled, limits of floating-point numbers, small sums."""

import numpy as np

from amdp.kernels import compiling

TINY = 1e-280  # chances below are carried as logarithms only
SMALLEST_LOG = -745.0  # the logarithm of the smallest number
LOG_BAND = 600.0  # numbers whose logarithms differ by less can be summed without underflow
ROUNDING = 1e-14  # relative error of a sum

# Sums may be taken in any one order: nothing is compared for equality here.
entry = compiling.entry(compiling.ANY_ORDER)
inner = compiling.inner(compiling.ANY_ORDER)
inlined = compiling.inlined(compiling.ANY_ORDER)  # handing all rows to a function costs as much as a small row takes


@inner
def dot(left, i, right, j, size):
    """Of the first entries of the rows `left[i]` and `right[j]`; views of rows would cost as much as the sum."""
    total = 0.0
    for k in range(size):
        total += left[i, k] * right[j, k]
    return total


@inner
def add_logs(first, second):
    """`log(exp(first) + exp(second))`."""
    high, low = max(first, second), min(first, second)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))
