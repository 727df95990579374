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


class FullRows(NamedTuple):
    """One kernel, row by row; zeros make the length of a row a multiple of four."""

    chances: Floats  # [D, s*a, y]


class ReachedStates(NamedTuple):
    """The states that can be reached in each step."""

    first: NDArray[np.int64]  # [h + 1], where those of a step begin
    states: NDArray[np.int64]


class TwoStepRows(NamedTuple):
    """One kernel, laid out for paths whose last two steps are summed over instead of drawn."""

    cumulative: Floats  # [D, s*a, y]
    by_row: Floats  # [D, s*a, y], the chances themselves; perhaps with zeros at the end
    by_next: Floats  # [D, y, s*a]


class IntervalRows(NamedTuple):
    """All kernels between two bounds: `lower + t` with `0 <= t <= width` and `sum t = budget`."""

    lower: Floats  # [D, y, s*a]
    width: Floats  # [D, y, s*a]
    budget: Floats  # [D, s*a]


class Narrowing(NamedTuple):
    """A box whose rows are intersected with their newest interval after each visit."""

    visits: NDArray[np.int64]  # [h, s, a, y], transitions seen so far
    lower: Floats  # [h, s, a, y]
    upper: Floats
    rows: IntervalRows  # the same bounds, as sweeps read them
    fallbacks: NDArray[np.int64]  # [1], how often an intersection was empty
    radius: Floats  # `log_term, spread, offset, discount, scale` of `amdp.model.confidence.Radius`


class Epochs(NamedTuple):
    """The box of all visits, which narrows, and the box in use: the same one, or one that is renewed at times."""

    gathered: Narrowing
    used: Narrowing  # renewed at times: with the visits of the last time, and bounds of the counts alone
    at_once: bool  # whether what was gathered is in use at once: then both are the same box


class BoxPolicies(NamedTuple):
    """All deterministic policies over a box, numbered so that those of one remainder agree in the first steps."""

    rows: IntervalRows
    policies: Floats  # [n, h, s, a]
    actions: NDArray[np.int32]  # [n, h, s]
    before: NDArray[np.int64]  # [h + 1]: i and j agree before step h if i = j modulo `before[h]`


Rows = DenseRows | SparseRows | IntervalRows
LeaderRows = FullRows | SparseRows | IntervalRows


class BoxRows(NamedTuple):
    """The rows between two bounds as a projection reads them, and those that it chose for its prices.

    The last step has none.
    """

    lower: Floats  # [h, s*a, y]
    upper: Floats
    log_lower: Floats
    log_upper: Floats
    log_weights: Floats  # [h, s*a, y], -inf where no mass may go
    weights: Floats  # exp(log_weights - top)
    top: Floats  # [h, s*a], the largest logarithm of a row; -inf for a row without weights
    span: Floats  # [h, s*a], from the largest to the least that is not -inf
    chances: Floats  # [h, s*a, y], the rows that were chosen for the prices
    free: Floats  # the same where no bound is met, 0 elsewhere
    loose: Floats  # [h, s*a], the sum of `free`
    tilt: Floats  # [h, s*a], log chance - log weight + price of the free entries


DENSE, SPARSE, BOX = 0, 1, 2  # kinds of dynamics


class FlowRows(NamedTuple):
    """The rows that a projection moves mass along: of one kind; those of the other kinds are empty.

    One type for all kinds: the solver is large, and is compiled once.
    """

    kind: int  # DENSE, SPARSE or BOX
    dense: DenseRows
    sparse: SparseRows
    box: BoxRows


class Iterate(NamedTuple):
    """What prices stand for in a projection: their policy, and its occupancy walked forward."""

    policy: Floats  # [h, s*a]
    log_policy: Floats  # [h, s*a]
    mass: Floats  # [h, s*a]
    total: Floats  # [h, s], log sum_a exp(-phi)
    chance: Floats  # [h, s]
    log_chance: Floats  # [h, s]
    excess: Floats  # [h, s], price + total - log_chance


class DensePaths(NamedTuple):
    """Cumulative chances of each row over all next states."""

    cumulative: Floats  # [D, s*a, y]


class SparsePaths(NamedTuple):
    """Cumulative chances of each row over its successors."""

    starts: NDArray[np.int64]  # [D, s*a + 1], into the two below
    successors: NDArray[np.int32]
    cumulative: Floats


Paths = DensePaths | SparsePaths
