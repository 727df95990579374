"""What a search over stationary policies is, and what it returns."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from amdp.kernels.search.state import Problem
from amdp.oracles.stationary.chains import Chains, Policy
from amdp.oracles.stationary.clock import SearchClock


class SearchResult(NamedTuple):
    """A policy, and a bound that no policy undercuts; the bound is for scaled costs."""

    policy: Policy
    bound: float
    nodes: int = 0
    note: str = ""  # why it stopped early


class Search(ABC):
    """A method that looks for the cheapest stationary policy over one kernel."""

    name = ""  # of the solver inside, if there is one

    def __init__(self, chains: Chains) -> None:
        self._chains = chains

    def horizon(self, n: int, clock: SearchClock) -> int:
        """How many first steps of the next `n` costs it must see one by one; of the others it needs the sums."""
        return self._chains.shape[0]

    def solve(self, problems: Sequence[Problem], clock: SearchClock) -> list[SearchResult]:
        """A policy and a bound for each problem."""
        return [self._solve_one(problem, clock) for problem in problems]

    @abstractmethod
    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        """A policy and a bound for one problem."""
