"""What the compiled searches over stationary policies read and write, as named arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Bools, Floats


class Problem(NamedTuple):
    """Costs of size at most 1, and sums of them; of all steps, or of the first ones until all laws are stationary."""

    costs: Floats  # [t, s, a]
    tails: Floats  # [t + 1, s * a], the costs from a step on, summed over all later steps
    spans: Floats  # [t + 2], the spans of the tails from a step on, summed
    initial: int
    stop: float  # a law that moves by less is taken as stationary
    slack: float  # a node that could gain less is closed
    lanes: int  # a node of no more policies is tried out
    scale: float  # of the costs that were asked about
    halt: NDArray[np.int64]  # [1], not 0 once there is no time left


class Floors(NamedTuple):
    """The least chance of each state under any policy."""

    reach: Floats  # [j, s], after j moves from the start
    late: Floats  # [s], after at least `len(reach) - 1` moves


class Tree(NamedTuple):
    """The open nodes of a search, and what it has found."""

    allowed: Bools  # [node, s, a]
    bounds: Floats  # [node]
    marks: NDArray[np.int64]  # [node, 3]: depth, the depth whose mixing it uses, its scale of averaging
    mixing: Floats  # [depth, t]
    policy: NDArray[np.int64]  # [s], the incumbent
    best: Floats  # [0] its value; [1] the least bound of what was closed by a bound
    counts: NDArray[np.int64]  # open nodes, nodes, bounds, policies tried
    tries: Floats  # [size class, 2]: bounds computed, policies that they excluded
    work: Floats  # [0] in bounds, [1] in lanes


class Strides(NamedTuple):
    """Costs summed over the rounds of cycles: of each length, as far as there is room, once it is needed."""

    tables: Floats  # [length - 1, t, s, a], the costs of steps t, t + length, t + 2 length, ...
    filled: Bools  # [length - 1]


class Walk(NamedTuple):
    """A search over paths that end in a cycle, and what it has found."""

    path: NDArray[np.int64]  # [depth], states
    chosen: NDArray[np.int64]  # [depth], the action tried at each
    place: NDArray[np.int64]  # [s], where on the path a state is, or -1
    paid: Floats  # [depth + 1], the costs before each step of the path
    policy: NDArray[np.int64]  # [s], the incumbent
    best: Floats  # [1], its value
    counts: NDArray[np.int64]  # depth (-1: the search is over), nodes
