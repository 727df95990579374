"""Graphs of deterministic transitions, and the closed walks on them.

Where every pair `(s, a)` leads to one state, a stationary policy soon repeats a simple cycle. Up to the way to it, it
is a closed walk of at most `S` pairs, of which the one at place `t mod k` is taken at step `t`. If all states reach
each other, the period `g` divides the length of every cycle; the states fall into classes `0 .. g - 1`, the initial
one in class 0, and every pair leads from one class to the next. So the state at step `t` is in class `t mod g`, and
the lengths of closed walks are multiples of `g`. The critical length is the least `d` such that, for any `l >= d`,
every state reaches in exactly `l` steps all states of the class that is `l` further: at most `(S - 1)^2 + 1` if `g` is
1 (Wielandt), and `S^2` always. From anywhere, any closed walk is caught within `d` steps.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Floats, require_index, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.threads import multiply
from amdp.model.chains import rows_of
from amdp.model.connectivity import communication, period
from amdp.model.transitions import SingleKernel

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClosedWalk:
    """A cycle of `k` state-action pairs: the one at place `t mod k` is taken at step `t`."""

    states: Whole  # [k]
    actions: Whole  # [k]

    def __len__(self) -> int:
        return len(self.states)

    def same_as(self, other: Self) -> bool:
        """Whether it takes the same pairs at the same places; going around twice is another walk."""
        return np.array_equal(self.states, other.states) and np.array_equal(self.actions, other.actions)

    def pair(self, time: int) -> tuple[int, int]:
        """The state and action at a step."""
        place = time % len(self)
        return int(self.states[place]), int(self.actions[place])


@dataclass(frozen=True, eq=False)
class Pursuit:
    """The shortest path to a closed walk, begun at some step, and then the walk itself."""

    walk: ClosedWalk
    since: int
    route: Whole  # [m], the actions that lead to it

    @property
    def caught(self) -> int:
        """The first step on the walk."""
        return self.since + len(self.route)

    def action(self, time: int) -> int:
        """The action at a step."""
        return int(self.route[time - self.since]) if time < self.caught else self.walk.pair(time)[1]


class Closing(NamedTuple):
    """A set of closed walks: their lengths, and the states that they may be in at step 0."""

    lengths: Whole  # [i], increasing
    starts: Whole  # [c]

    @property
    def rows(self) -> int:
        """The number of rows of the costs `[r, s, a]` of walks: see `amdp.kernels.walks`."""
        longest = int(self.lengths[-1])
        return longest * (longest + 1) // 2

    def places(self, time: int) -> Whole:
        """The rows that belong to a step, one for each length."""
        rows: Whole = self.lengths * (self.lengths - 1) // 2 + time % self.lengths
        return rows


@dataclass(frozen=True, eq=False)
class WalkGraph:
    """The next state of each pair under deterministic transitions, with all states reaching each other."""

    following: Whole = field(repr=False)  # [s, a]
    initial: int
    period: int

    @classmethod
    def of(cls, kernel: SingleKernel, initial: int = 0) -> Self:
        """The graph of a homogeneous kernel; refused if its moves are uncertain or some state is out of reach."""
        connected = communication(kernel)
        rows = rows_of(kernel) > 0
        require_index("initial", initial, len(rows))
        successors = rows.sum(axis=2)
        if (successors != 1).any():
            s, a = (int(i) for i in np.argwhere(successors != 1)[0])
            raise InvalidInput(
                f"closed walks need certain moves: pair (s={s}, a={a}) leads to {successors[s, a]} states"
            )
        if connected.unreachable_pair:
            s, y = connected.unreachable_pair
            raise InvalidInput(f"closed walks cannot be caught: state {s} never leads to state {y}; see communication")
        return cls(rows.argmax(axis=2), initial, period(kernel))

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.following)

    @cached_property
    def _moves(self) -> NDArray[np.float32]:
        """Whether some action leads from one state to another, `[s, y]`."""
        moves = np.zeros((self.states, self.states), dtype=np.float32)
        moves[np.arange(self.states)[:, None], self.following] = 1.0
        return moves

    @cached_property
    def classes(self) -> Whole:
        """The cyclic class `[s]` of each state: the step, modulo the period, in which it can be visited."""
        depth = scipy.sparse.csgraph.shortest_path(self._moves, unweighted=True, indices=self.initial)
        classes: Whole = depth.astype(np.int64) % self.period
        return classes

    @cached_property
    def critical(self) -> int:
        """The critical length `d`: from every state, every closed walk can be reached within `d` steps."""
        sizes = np.bincount(self.classes)
        reached, length = np.eye(self.states, dtype=np.float32), 0
        # A class that is reached in full stays so: each of its states has a predecessor in the class before.
        while (reached.sum(axis=1) != sizes[(self.classes + length) % self.period]).any():
            reached, length = np.minimum(multiply(reached, self._moves), 1.0), length + 1
        return length

    def closing(self, longest: int | None = None) -> Closing:
        """All closed walks in step with the initial state, of at most `longest` pairs, or as many as states."""
        most = self.states if longest is None else longest
        require_whole("longest", most, 1, self.states)
        if most < self.period:
            raise InvalidInput(f"longest = {most}; all closed walks are multiples of the period, {self.period}")
        lengths = np.arange(self.period, most + 1, self.period)
        return Closing(lengths, np.flatnonzero(self.classes == 0))

    def cheapest(self, costs: Floats, closing: Closing, bounds: Floats) -> tuple[ClosedWalk, Floats]:
        """The cheapest closed walk for `costs` `[r, s, a]`, and better lower bounds `[i, c]` than those given."""
        better = bounds.copy()
        (states, actions), cost = kernels.walks.cheapest(self.following, costs, *closing, better)
        if cost == np.inf:
            raise InvalidInput(f"there is no closed walk of at most {closing.lengths[-1]} pairs; allow longer ones")
        return ClosedWalk(states, actions), better

    def pursue(self, walk: ClosedWalk, time: int, state: int) -> Pursuit:
        """The shortest way onto a closed walk."""
        route = kernels.walks.catch(self.following, state, time, walk.states, self.critical)
        return Pursuit(walk, time, route)
