"""Many starts, one state changed at a time: a good policy, and how good it is at worst."""

from dataclasses import dataclass
from functools import partial
from math import inf
from typing import ClassVar

import numpy as np

from amdp import kernels
from amdp.kernels.search.state import Problem
from amdp.model.domains import Domain
from amdp.oracles.base import Planner
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.chains import CLOSING_TOLERANCE, Chains, Policy, is_stationary
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Search, SearchClock, SearchResult

FEW_STARTS = 5  # for methods that only want somewhere to begin
ENOUGH_REPEATS = 4  # times that the best value must be found again


@dataclass(frozen=True)
class LocalSearch:
    """The best of `starts` descents; the bound is that of policies that may choose by step as well.

    A descent tries all other actions of one state after the other and keeps what is cheaper. The starts are the same
    in every run. The answer is `FEASIBLE` unless it meets the bound.
    """

    starts: int = 20
    seconds: float = inf  # for each solve
    gap: float = 1e-9
    requires: ClassVar[tuple[str, ...]] = ()
    supports = staticmethod(is_stationary)

    def __post_init__(self) -> None:
        require_limits(self)

    def bind(self, domain: Domain) -> Planner:
        return StationaryPlanner(self, domain, partial(_Descents, starts=self.starts), self.gap, self.seconds)


class _Descents(Search):
    def __init__(self, chains: Chains, starts: int) -> None:
        super().__init__(chains)
        self._starts = starts

    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        bound = self._chains.markov_bound(problem.costs)
        policy, value = descents(self._chains, problem, self._starts, clock)
        clock.report(problem, value, bound, self._starts)
        return SearchResult(policy, bound, self._starts, "a local search proves no optimum" if value > bound else "")


def descents(chains: Chains, problem: Problem, starts: int, clock: SearchClock) -> tuple[Policy, float]:
    """The best policy of several descents, and its value; fewer if the best one keeps coming back, or time is over."""
    steps, states, actions = chains.shape
    everything = np.ones((states, actions), dtype=bool)
    best, winner, again = inf, np.zeros(states, dtype=np.int64), 0
    for number in range(starts):
        policy = np.zeros(states, dtype=np.int64)
        kernels.search.chains.scatter(number, everything, policy)
        value = float(kernels.search.chains.descend(chains.rows, problem, everything, policy))
        again = again + 1 if abs(value - best) <= CLOSING_TOLERANCE * steps else again
        if value < best - CLOSING_TOLERANCE * steps:
            best, winner, again = value, policy, 0
        if again == ENOUGH_REPEATS or clock.expired:
            break
    return winner, best
