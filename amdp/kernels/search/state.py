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


# The numbers of a tree, by their places in `Tree.counts`, `.best`, `.marks`, `.tries` and `.work`.
OPEN, NODES, BOUNDS, TRIED = 0, 1, 2, 3  # open nodes; nodes worked on; bounds computed; policies tried
VALUE, CLOSED_BOUND = 0, 1  # of the incumbent; the least bound of what was closed by a bound
DEPTH, SCALE = 0, 1  # of a node; that of its last bound, or -1
COMPUTED, EXCLUDED = 0, 1  # bounds, and policies that they excluded
IN_BOUNDS, IN_LANES = 0, 1  # products
# What is known of the laws of all policies of a node, by its place in `Tree.mixing`: how far a law is, in total
# variation, from the next one; from any later one at most; and the sums of the latter from a step on.
MOVES, DISTANCES, RESTS = 0, 1, 2


class Tree(NamedTuple):
    """The open nodes of a search, and what it has found."""

    allowed: Bools  # [node, s, a]
    bounds: Floats  # [node]
    marks: NDArray[np.int64]  # [node, 2]: DEPTH, SCALE
    mixing: Floats  # [2, 3, t + 1]: MOVES, DISTANCES, RESTS of the root and of the node that is worked on
    loosened: Floats  # [2, s * a], of both, a guess of which part of the distances choosing a pair takes away
    runs: NDArray[np.int64]  # [t], the first later step with other costs
    policy: NDArray[np.int64]  # [s], the incumbent
    best: Floats  # [2]: VALUE, CLOSED_BOUND
    counts: NDArray[np.int64]  # [4]: OPEN, NODES, BOUNDS, TRIED
    tries: Floats  # [logarithm of the number of policies, 2]: COMPUTED, EXCLUDED
    work: Floats  # [2]: IN_BOUNDS, IN_LANES


class Known(NamedTuple):
    """What a tree knew when parts of it were handed out, as its arrays of the same names say it."""

    counts: NDArray[np.int64]  # [4]
    tries: Floats  # [logarithm of the number of policies, 2]
    work: Floats  # [2]


class Node(NamedTuple):
    """The node of a tree that is worked on."""

    allowed: Bools  # [s, a]
    marks: NDArray[np.int64]  # [2]: DEPTH, SCALE
    order: NDArray[np.int64]  # [s], the states that it reaches
    pairs: NDArray[np.int64]  # [s * a], their allowed pairs, state by state
    first: NDArray[np.int64]  # [s + 1], where the pairs of each reached state begin
    terms: Floats  # [s * a], what choosing a pair adds to the bound at least
    guesses: Floats  # [s * a], what choosing a pair would add along the relaxed optimum
    policy: NDArray[np.int64]  # [s], the cheapest of its policies


class Coupling(NamedTuple):
    """How two rows that are not the same move together, for any two pairs of a node."""

    sizes: NDArray[np.int64]  # [two pairs], entries; -1 if they move independently
    places: NDArray[np.int64]  # [two pairs, entry], the two successors, as one number
    masses: Floats  # [two pairs, entry], chances


class Stretches(NamedTuple):
    """Backward induction as it went, stretch by stretch from the last step: what pairs cost above the best of a state.

    From the first to the last step of a stretch this changes by the same in every step.
    """

    lengths: NDArray[np.int64]  # [k], steps
    early: Floats  # [k, pair], in the first step of a stretch
    late: Floats  # [k, pair], in its last, if it has more than one


class Room(NamedTuple):
    """Room for backward induction to work in."""

    values: Floats  # [5, s]
    pairs: Floats  # [2, pair]


def new_node(allowed: Bools) -> Node:
    """A node with these allowed pairs `[s, a]`, and room for what is worked out about them; compiled as well."""
    states, pairs = allowed.shape[0], allowed.size
    reached = np.empty(states, np.int64), np.empty(pairs, np.int64), np.empty(states + 1, np.int64)
    return Node(allowed, np.empty(2, np.int64), *reached, np.empty(pairs), np.empty(pairs), np.empty(states, np.int64))


class Strides(NamedTuple):
    """Costs summed over the rounds of cycles: of each length, as far as there is room, once it is needed."""

    tables: Floats  # [length - 1, t, s, a], the costs of steps t, t + length, t + 2 length, ...
    filled: Bools  # [length - 1]


# The numbers of a walk, by their places in `Walk.counts`.
WALK_DEPTH, WALK_NODES = 0, 1  # length of the path, -1 once the search is over; nodes worked on


class Walk(NamedTuple):
    """A search over paths that end in a cycle, and what it has found."""

    path: NDArray[np.int64]  # [depth], states
    chosen: NDArray[np.int64]  # [depth], the action tried at each
    place: NDArray[np.int64]  # [s], where on the path a state is, or -1
    paid: Floats  # [depth + 1], the costs before each step of the path
    policy: NDArray[np.int64]  # [s], the incumbent
    best: Floats  # [1], its value
    counts: NDArray[np.int64]  # [2]: WALK_DEPTH, WALK_NODES
