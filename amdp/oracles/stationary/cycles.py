"""Deterministic transitions: every stationary policy is a path that ends in a cycle, and paths can be listed.

The cost of a cycle of length `L` that begins at step `t` is a sum of `c[t] + c[t+L] + c[t+2L] + ...` over its pairs.
With these sums in a table, a path costs no more than its own length to evaluate, whatever the number of steps.
"""

from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter
from typing import ClassVar

import numpy as np

from amdp import kernels
from amdp.errors import UnsupportedDomain
from amdp.kernels.search.state import WALK_DEPTH, WALK_NODES, Problem, Strides, Walk
from amdp.model.domains import Domain, StationaryPolicies
from amdp.oracles.base import Planner
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.chains import Chains, is_stationary
from amdp.oracles.stationary.local_search import FEW_STARTS, descents
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Search, SearchClock, SearchResult, next_portion

FIRST_PORTION = 10_000  # nodes before anything but the paths themselves is looked at


@dataclass(frozen=True)
class Cycles:
    """The cheapest of all paths that end in a cycle.

    At a limit: the cheapest path so far or what a local search found, and the bound of policies that may choose by
    step as well.
    """

    seconds: float = inf  # for each solve
    nodes: float = inf  # for each solve
    gap: float = 1e-9
    table: int = 2**28  # bytes for sums over rounds; cycles too long for it are summed step by step
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_limits(self)

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, StationaryPolicies) and is_stationary(domain) and moves_are_certain(Chains.of(domain))

    def bind(self, domain: Domain) -> Planner:
        if is_stationary(domain) and not self.supports(domain):
            raise UnsupportedDomain("cycles needs certain moves: some row of the kernel has two successors", "oracle")
        return StationaryPlanner(self, domain, partial(PathSearch, settings=self), self.gap, self.seconds)


class PathSearch(Search):
    """The paths of one kernel whose moves are certain."""

    def __init__(self, chains: Chains, settings: Cycles) -> None:
        super().__init__(chains)
        self._settings = settings
        steps, states, actions = chains.shape
        following = np.full(states * actions, -1, dtype=np.int64)
        following[chains.successors == 1] = chains.rows.successors
        self._following = following.reshape(states, actions)
        first_steps = min(states, steps)
        self._lengths = min(states, settings.table // (8 * first_steps * states * actions))

    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        """Paths alone at first; if there are many, from a local search on and with the bound of Markov policies."""
        steps, states, actions = self._chains.shape
        lengths, nodes = self._lengths, self._settings.nodes
        strides = Strides(np.empty((lengths, min(states, steps), states, actions)), np.zeros(lengths, dtype=bool))
        walk = _new_walk(states, self._chains.initial)
        floors = np.full((min(states, steps) + 1, states), -inf)
        portion = FIRST_PORTION
        began = perf_counter()
        kernels.search.cycles.explore(self._following, problem, strides, floors, walk, int(min(portion, nodes)))
        if walk.counts[WALK_DEPTH] < 0:
            return SearchResult(walk.policy, float(walk.best[0]), int(walk.counts[WALK_NODES]))
        markov = self._chains.markov_values(problem.costs)
        bound = float(markov[0, self._chains.initial])
        floors[: len(markov)] = markov[: len(floors)]
        self._begin_below(walk, problem, clock)
        while walk.counts[WALK_DEPTH] >= 0 and walk.counts[WALK_NODES] < nodes and not clock.expired:
            portion = int(min(next_portion(portion, perf_counter() - began), nodes - walk.counts[WALK_NODES]))
            began = perf_counter()
            kernels.search.cycles.explore(self._following, problem, strides, floors, walk, portion)
            clock.report(problem, float(walk.best[0]), bound, int(walk.counts[WALK_NODES]))
        visited = int(walk.counts[WALK_NODES])
        if walk.counts[WALK_DEPTH] < 0:
            return SearchResult(walk.policy, max(bound, float(walk.best[0]) - problem.slack), visited)
        return SearchResult(walk.policy, bound, visited, self._why(walk))

    def _begin_below(self, walk: Walk, problem: Problem, clock: SearchClock) -> None:
        """Take what a local search finds for the incumbent, if it is cheaper."""
        policy, value = descents(self._chains, problem, FEW_STARTS, clock)
        if value < walk.best[0]:
            walk.best[0] = value
            walk.policy[:] = policy

    def _why(self, walk: Walk) -> str:
        by_nodes = walk.counts[WALK_NODES] >= self._settings.nodes
        limit = f"{self._settings.nodes:g} nodes" if by_nodes else f"{self._settings.seconds:g} seconds"
        short = self._lengths < self._chains.shape[1]
        return f"stopped at {limit}" + short * f"; cycles above {self._lengths} steps did not fit the table"


def moves_are_certain(chains: Chains) -> bool:
    """Whether every pair leads to one state only."""
    return bool(chains.successors.max() <= 1)


def _new_walk(states: int, initial: int) -> Walk:
    path, place, policy, counts = (np.zeros(size, dtype=np.int64) for size in (states + 1, states, states, 2))
    walk = Walk(path, np.full_like(path, -1), place - 1, np.zeros(states + 2), policy, np.full(1, inf), counts)
    walk.path[0], walk.place[initial] = initial, 0
    return walk
