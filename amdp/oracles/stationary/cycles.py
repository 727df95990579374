"""Deterministic transitions: every stationary policy is a path that ends in a cycle, and paths can be listed.

The cost of a cycle of length `L` that begins at step `t` is a sum of `c[t] + c[t+L] + c[t+2L] + ...` over its pairs.
With these sums in a table, a path costs no more than its own length to evaluate, whatever the number of steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from amdp import kernels
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.kernels.searches import Problem, Walk
from amdp.mdp import Domain
from amdp.oracles.base import Planner
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.planning import Chains, Found, StationaryPlanner, Watch, is_stationary

PORTION = 100_000  # nodes between two looks at the clock


@dataclass(frozen=True)
class Cycles:
    """The cheapest of all paths that end in a cycle.

    At a limit: the cheapest path so far, and the bound of policies that may choose by step as well.
    """

    seconds: float = inf  # for each solve
    nodes: float = inf  # for each solve
    gap: float = 1e-9
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.gap)
        if not self.nodes >= 0:
            raise InvalidInput(f"nodes = {self.nodes}; it must be at least 0")

    def supports(self, domain: Domain) -> bool:
        """Stationary policies over a kernel whose moves are certain."""
        return is_stationary(domain) and moves_are_certain(Chains(domain.dynamics, domain.initial))  # type: ignore[arg-type]

    def bind(self, domain: Domain) -> Planner:
        """A planner that knows where each pair leads."""
        if is_stationary(domain) and not self.supports(domain):
            raise UnsupportedDomain("Cycles needs certain moves: some row of the kernel has two successors")
        return StationaryPlanner(self, domain, lambda chains: _Paths(chains, self), self.gap, self.seconds)


class _Paths:
    name = ""

    def __init__(self, chains: Chains, settings: Cycles) -> None:
        self._chains = chains
        self._settings = settings
        _, states, actions = chains.shape
        starts = chains.rows.starts[0]
        following = np.full(states * actions, -1, dtype=np.int64)
        leads = np.diff(starts) == 1
        following[leads] = chains.rows.successors[starts[:-1][leads]]
        self._following = following.reshape(states, actions)

    def solve(self, problems: Sequence[Problem], watch: Watch) -> list[Found]:
        """One after the other."""
        return [self._one(problem, watch) for problem in problems]

    def _one(self, problem: Problem, watch: Watch) -> Found:
        steps, states, actions = self._chains.shape
        tables = np.empty((states, min(states, steps), states, actions))
        kernels.cycles.strides(problem.costs, tables)
        walk = _new_walk(states, self._chains.initial)
        portion = int(min(PORTION, max(1, self._settings.nodes)))
        bound = -inf
        while True:
            kernels.cycles.explore(self._following, problem.costs, tables, walk, portion)
            nodes = int(walk.counts[1])
            if walk.counts[0] < 0:
                return Found(walk.policy, float(walk.best[0]), nodes)
            bound = self._chains.markov_bound(problem.costs) if bound == -inf else bound
            watch.tell(float(walk.best[0]), bound, nodes)
            if (watch.expired or nodes >= self._settings.nodes) and walk.best[0] < inf:
                return Found(walk.policy, bound, nodes, "stopped at a limit of seconds or nodes")


def moves_are_certain(chains: Chains) -> bool:
    """Whether every pair leads to one state only."""
    return bool((np.diff(chains.rows.starts[0]) <= 1).all())


def _new_walk(states: int, initial: int) -> Walk:
    walk = Walk(
        np.zeros(states + 1, dtype=np.int64),
        np.full(states + 1, -1, dtype=np.int64),
        np.full(states, -1, dtype=np.int64),
        np.zeros(states + 2),
        np.zeros(states, dtype=np.int64),
        np.full(1, inf),
        np.zeros(2, dtype=np.int64),
    )
    walk.path[0], walk.place[initial] = initial, 0
    return walk
