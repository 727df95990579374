"""Transition rows as the compiled loops read them, one type a kind of dynamics.

`D` is the number of distinct steps: 1 where all steps share their rows, otherwise all of them.
Rows are numbered `s * A + a`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats


class DenseRows(NamedTuple):
    """One kernel, next state first: a batch of expectations is one matrix product."""

    chances: Floats  # [D, y, s*a]


class SparseRows(NamedTuple):
    """One kernel by its non-zero entries."""

    starts: NDArray[np.int64]  # [D, s*a + 1], into the two below
    successors: NDArray[np.int32]
    chances: Floats


class IntervalRows(NamedTuple):
    """All kernels between two bounds: `lower + t` with `0 <= t <= width` and `sum t = budget`."""

    lower: Floats  # [D, y, s*a]
    width: Floats  # [D, y, s*a]
    budget: Floats  # [D, s*a]


Rows = DenseRows | SparseRows | IntervalRows


class DensePaths(NamedTuple):
    """Cumulative chances of each row over all next states."""

    cumulative: Floats  # [D, s*a, y]


class SparsePaths(NamedTuple):
    """Cumulative chances of each row over its successors."""

    starts: NDArray[np.int64]  # [D, s*a + 1], into the two below
    successors: NDArray[np.int32]
    cumulative: Floats


Paths = DensePaths | SparsePaths
