"""Graphs of certain moves, all their closed walks by listing them, and a loop that shows every state of a learner."""

from collections.abc import Iterator
from itertools import product
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp import Kernel, StationaryPolicies
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.arrays import Floats
from amdp.model.connectivity import communication
from amdp.model.segments import Step
from amdp.model.walk_graphs import WalkGraph


def graph_kernel(following: NDArray[np.int64], steps: int = 10) -> Kernel:
    """The kernel of moves `[s, a]`."""
    return Kernel.homogeneous(np.eye(len(following))[following], steps)


def random_moves(states: int, actions: int, period: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Moves `[s, a]` whose cycles have lengths that `period` divides, with all states reaching each other."""
    while True:
        classes = rng.permutation(np.arange(states) % period)
        following = np.array(
            [[rng.choice(np.flatnonzero(classes == (c + 1) % period)) for _ in range(actions)] for c in classes]
        )
        if communication(graph_kernel(following)).communicates:
            return following


def listed_walks(following: NDArray[np.int64], start: int, longest: int) -> list[list[tuple[int, int]]]:
    """All closed walks of at most `longest` pairs that can be in step with a walk from `start` at step 0.

    A state can be at place 0 of a walk of length k if it is reached from `start` in some multiple of k steps, and the
    walk then repeats.
    """
    found, actions = [], following.shape[1]
    for length in range(1, longest + 1):
        starts = reached_in_multiples(following, start, length)
        for s, choices in product(starts, product(range(actions), repeat=length)):
            walk, here = [], s
            for a in choices:
                walk.append((here, a))
                here = int(following[here, a])
            if here == s:
                found.append(walk)
    return found


def reached_in_multiples(following: NDArray[np.int64], start: int, length: int) -> list[int]:
    """The states that are reached in a multiple of `length` steps."""
    reached, border = set[int](), {start}
    for t in range(length * 2 * len(following) ** 2):
        if t % length == 0:
            reached |= border
        border = {int(y) for s in border for y in following[s]}
    return sorted(reached)


def cycle_gcd(following: NDArray[np.int64]) -> int:
    """The greatest common divisor of the lengths of closed walks, by powers of the matrix of moves."""
    states = len(following)
    moves = (np.eye(states)[following].sum(axis=1) > 0).astype(np.int64)
    power, found = np.eye(states, dtype=np.int64), 0
    for length in range(1, 2 * states + 1):
        power = (power @ moves > 0).astype(np.int64)
        if np.trace(power) > 0:
            found = gcd(found, length)
    return found


def walk_cost(costs: Floats, walk: list[tuple[int, int]]) -> float:
    """What a walk costs, for `costs` `[r, s, a]`."""
    row = len(walk) * (len(walk) - 1) // 2
    return float(sum(costs[row + j, s, a] for j, (s, a) in enumerate(walk)))


def pairs_of(walk: Any) -> list[tuple[int, int]]:
    """The pairs of a `ClosedWalk`."""
    return [(int(s), int(a)) for s, a in zip(walk.states, walk.actions, strict=True)]


class Seen(NamedTuple):
    """One step: the learner's state before and after it, and what was met."""

    before: Any
    step: Step
    paid: float
    after: Any


def drive(learner: Any, domain: StationaryPolicies, tables: Floats, seed: int) -> Iterator[Seen]:
    """Play losses `[t, s, a]`; moves and actions have luck of their own."""
    rows = domain.dynamics.dense().p[0]
    arena, rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    distribution, state = learner.start(domain, rng), domain.initial
    for time, table in enumerate(tables):
        policy = distribution.draw(rng)
        assert policy.shape == table.shape
        action = int(arena.choice(len(policy[state]), p=policy[state]))
        reached = int(arena.choice(len(rows), p=rows[state, action]))
        step = Step(np.array([state]), np.array([action]), time=time, reached=reached)
        weights: Weights = learner.weigh(distribution, step, rng)
        told: Any = Bandit if learner.feedback is Bandit else FullInformation
        after = learner.learn(learner.observe(distribution, step), told.reveal(table[None], step, weights))
        yield Seen(distribution, step, float(table[state, action]), after)
        distribution, state = after, reached


def graph_domain(following: NDArray[np.int64], steps: int) -> StationaryPolicies:
    """All stationary policies, from state 0."""
    return StationaryPolicies(graph_kernel(following, steps))


def graph_of(following: NDArray[np.int64]) -> WalkGraph:
    """The same as a graph."""
    return WalkGraph.of(graph_kernel(following))
