"""Every deterministic policy, evaluated: the last word on small cases, over Markov and over stationary policies.

Of stationary policies only the closed ones are listed: those that differ at a state to which they come. Over the same
kernel, the laws of all of them make a table, and the value of each is then one short product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Floats
from amdp.errors import UnsupportedDomain
from amdp.kernels.search.state import NODES, OPEN, TRIED, VALUE, Floors, Problem
from amdp.model.chains import rows_of
from amdp.model.domains import MarkovPolicies
from amdp.model.several_models import MultiModel
from amdp.model.transitions import Kernel
from amdp.oracles.base import Planner, PlanningDomain
from amdp.oracles.interrupts import interruptible
from amdp.oracles.markov.enumeration import MarkovEnumerator, deciding_states
from amdp.oracles.multi_model.enumeration import count, enumerate_all
from amdp.oracles.multi_model.planning import MultiModelPlanner
from amdp.oracles.polytope import has_polytope
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.branch_and_bound import new_tree, proved
from amdp.oracles.stationary.chains import STATIONARY_TOLERANCE, Chains, evaluation_error, is_stationary
from amdp.oracles.stationary.local_search import descents
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Search, SearchClock, SearchResult, next_portion

ENUMERATION_GAP = 1e-9  # relative to steps times the largest cost: above it an answer is not called optimal
NO_BOUNDS = np.empty(0)
TABLE_TOLERANCE = 1e-6  # a law that moves by less counts as stationary in the table
SETTLING_FACTOR = 2  # times the steps after which all laws are stationary: then they are so to the last digit
FLOAT32_ROUNDING = 2.0**-23  # relative, of chances in the table
MOST_LISTED = 2_000  # policies that are handed to whoever follows what each of them pays
MOST_CONTENDERS = 1_000  # policies that the table cannot tell apart and that are evaluated one by one


@dataclass(frozen=True)
class Enumeration:
    """The cheapest of all policies that are distinct on the states they reach; refused above `limit` of them."""

    limit: int = 200_000
    table: int = 2**28  # bytes that the laws of all stationary policies may fill, from the second solve on
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_limits(self)

    def supports(self, domain: PlanningDomain) -> bool:
        return _can_be_listed(domain) and not self._too_many(domain)

    def bind(self, domain: PlanningDomain) -> Planner:
        if _can_be_listed(domain) and (many := self._too_many(domain)):
            reason = f"enumeration would try {many} policies, more than its limit of {self.limit}"
            raise UnsupportedDomain(f"{reason}; use another oracle, or raise the limit", "oracle")
        if is_stationary(domain):
            return StationaryPlanner(self, domain, partial(ListSearch, settings=self), ENUMERATION_GAP)
        if isinstance(domain, MultiModel):
            return MultiModelPlanner(self, domain, enumerate_all, ENUMERATION_GAP)
        return MarkovEnumerator(self, domain)

    def _too_many(self, domain: PlanningDomain) -> str:
        """How many policies there are, in words, if that is more than the limit."""
        if is_stationary(domain):
            return f"more than {self.limit}" if Chains.of(domain).count_closed(self.limit) > self.limit else ""
        if isinstance(domain, MultiModel):
            return f"{domain.shape[2]}^{len(domain.open_decisions)}" if count(domain) > self.limit else ""
        assert isinstance(domain, MarkovPolicies)
        n_actions, deciding = domain.shape[2], int(deciding_states(domain).sum())
        return f"{n_actions}^{deciding}" if n_actions**deciding > self.limit else ""


def _can_be_listed(domain: PlanningDomain) -> bool:
    """Within budgets no list of deterministic policies has the best one, which may be randomized."""
    if isinstance(domain, MultiModel) or is_stationary(domain):
        return True
    return isinstance(domain, MarkovPolicies) and has_polytope(domain)


class ListSearch(Search):
    """All stationary policies of one kernel, by a table of their laws from the second cost array on."""

    batch_size = 64  # cost arrays of one matrix product

    def __init__(self, chains: Chains, settings: Enumeration, seconds: float = inf) -> None:
        super().__init__(chains)
        self._limit, self._room, self._seconds = settings.limit, settings.table, seconds
        self._asked = 0
        self._table: Table | None = None

    def policies(self) -> NDArray[np.int64] | None:
        few = self._chains.count_closed(MOST_LISTED) <= MOST_LISTED
        return _closed_policies(self._chains, MOST_LISTED, np.zeros(1, dtype=np.int64)) if few else None

    def horizon(self, n: int, clock: SearchClock) -> int:
        self._asked += n
        if self._table is None and self._asked > 1 and self._room > 0:
            table = partial(Table.of, self._chains, self._limit, self._room, clock.halt)
            self._table = interruptible(table, clock.interrupt, inf)
            self._room = self._room if clock.expired else 0  # what does not fit will never fit
        return self._table.horizon if self._table else self._chains.shape[0]

    def solve(self, problems: Sequence[Problem], clock: SearchClock) -> list[SearchResult]:
        """By the table, once there is more than one to solve; one by one where it cannot tell."""
        from_table = self._table.solve(problems) if self._table else [None] * len(problems)
        return [known or self._solve_one(problem, clock) for known, problem in zip(from_table, problems, strict=True)]

    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        """Try all; a descent gives the value that a policy must fall below to be followed to its end."""
        tree = new_tree(self._chains, problem, descents(self._chains, problem, 1, clock))
        states = self._chains.shape[1]
        floors = Floors(np.zeros((1, states)), np.zeros(states))  # no floors: without scales there are no bounds
        portion = 4
        while tree.counts[OPEN] > 0 and not clock.expired:
            began = perf_counter()
            kernels.search.trees.grow(self._chains.rows, problem, floors, tree, NO_BOUNDS, False, portion)
            portion = next_portion(portion, perf_counter() - began)
            clock.report(problem, float(tree.best[VALUE]), proved(tree, problem), int(tree.counts[NODES]))
        if tree.counts[OPEN] > 0:
            note = f"stopped at {self._seconds:g} seconds"
            return SearchResult(tree.policy, self.markov_bound(problem), int(tree.counts[TRIED]), note)
        return SearchResult(tree.policy, proved(tree, problem), int(tree.counts[TRIED]))

    def markov_bound(self, problem: Problem) -> float:
        """That of policies that choose by step, as long as laws move: what is left then counts as one more step."""
        shown = problem.costs.shape[0]
        if shown == self._chains.shape[0]:
            return self._chains.markov_bound(problem.costs)
        rest = problem.tails[-1].reshape(1, *problem.costs.shape[1:])
        short = Chains(Kernel.homogeneous(rows_of(self._chains.kernel), shown + 1), self._chains.initial)
        return short.markov_bound(np.concatenate([problem.costs, rest])) - evaluation_error(problem)


def _closed_policies(chains: Chains, limit: int, halt: NDArray[np.int64]) -> NDArray[np.int64]:
    """All closed policies `[n, s]`, -1 where a policy never comes."""
    steps, states, actions = chains.shape
    policies = np.empty((chains.count_closed(limit), states), dtype=np.int64)
    kernels.search.trees.list_closed(chains.rows, actions, chains.initial, steps, limit, policies, halt)
    return policies


@dataclass(frozen=True, eq=False)
class Table:
    """The laws of all closed policies until they are roughly stationary: they tell which may be the cheapest."""

    chains: Chains
    policies: NDArray[np.int64]  # [n, s], -1 where a policy never comes
    ends: NDArray[np.int64]  # [n], the step from which the law of each roughly stays as it is
    places: NDArray[np.int64]  # [n], where the laws of each begin
    laws: NDArray[np.float32]  # of each policy [s, t], up to its end
    horizon: int  # steps after which no law moves

    @classmethod
    def of(cls, chains: Chains, limit: int, room: int, halt: NDArray[np.int64] | None = None) -> "Table | None":
        """The table, or None if it does not fit into so many bytes, or time is over."""
        steps, states, actions = chains.shape
        stop = np.zeros(1, dtype=np.int64) if halt is None else halt
        policies = _closed_policies(chains, limit, stop)
        if stop[0] != 0:
            return None
        followed, ends = np.maximum(policies, 0), np.empty(len(policies), dtype=np.int64)
        common = chains.rows, actions, followed, chains.initial
        settled = int(
            kernels.search.tables.rest(*common, steps, TABLE_TOLERANCE, STATIONARY_TOLERANCE, room // 4, ends, stop)
        )
        if settled < 0:
            return None
        places = np.concatenate([[0], np.cumsum((ends + 1) * states)])
        laws = np.empty(places[-1], dtype=np.float32)
        if not kernels.search.tables.record(*common, ends, places, laws, stop):
            return None
        horizon = min(steps, max(states, int(ends.max()), SETTLING_FACTOR * settled))
        return cls(chains, policies, ends, places[:-1].copy(), laws, horizon)

    def solve(self, problems: Sequence[Problem]) -> list[SearchResult | None]:
        """The cheapest policy for each problem; None where too many are too close to the cheapest."""
        last = int(self.ends.max())
        costs = np.array([problem.costs[:last].reshape(last, -1).T for problem in problems])
        tails = np.array([problem.tails[: last + 1] for problem in problems])
        paid = np.empty((len(problems), len(self.policies)))
        stored = self.laws, self.places, self.ends, self.policies
        fours = len(problems) - len(problems) % 4
        for i in range(0, fours, 4):
            four = slice(i, i + 4)
            kernels.search.tables.appraise_four(*stored, costs[four], tails[four], paid[four])
        for i in range(fours, len(problems)):
            kernels.search.tables.appraise(*stored, costs[i], tails[i], paid[i])
        return [self._cheapest(problem, values) for problem, values in zip(problems, paid, strict=True)]

    def _cheapest(self, problem: Problem, paid: Floats) -> SearchResult | None:
        errors = self._errors(problem)
        close = np.flatnonzero(paid - errors <= (paid + errors).min())
        if len(close) > MOST_CONTENDERS:
            return None
        policies = np.maximum(self.policies[close], 0)
        exact = np.array([self.chains.value(problem, policy) for policy in policies])
        winner = int(exact.argmin())
        bound = float(exact[winner]) - evaluation_error(problem)
        return SearchResult(policies[winner].copy(), bound, len(self.policies))

    def _errors(self, problem: Problem) -> Floats:
        """How far each value may be off: by rounding, and because the law was taken as stationary early."""
        last = int(self.ends.max())
        # Costs are at most 1 in size, and the chances of a step sum to 1.
        rounding = FLOAT32_ROUNDING * (np.arange(last + 1) + np.abs(problem.tails[: last + 1]).max(axis=1))
        errors: Floats = 0.5 * TABLE_TOLERANCE * problem.spans[1 : last + 2] + rounding + 1e-13 * self.chains.shape[0]
        return errors[self.ends]
