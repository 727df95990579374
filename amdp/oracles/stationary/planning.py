"""From a search to plans: one place that scales costs, settles ties, evaluates, and keeps the clock.

A search proposes a policy and proves a bound. The policy is then made definite (action 0 where it never comes, the
first of actions that cost the same), and evaluated: that is the objective. The values `[t, s]`, the cost still to come
under the returned policy, are worked out when someone reads them. They do not prove the bound; the search does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from amdp import kernels
from amdp.arrays import Costs, Values
from amdp.errors import InvalidInput
from amdp.model.domains import StationaryPolicies
from amdp.model.transitions import Kernel, SingleKernel, SparseKernel
from amdp.oracles.base import Listed, Planner, PlanningDomain, PlanningOracle, Plans, Report, Status
from amdp.oracles.interrupts import interruptible
from amdp.oracles.solving import worst
from amdp.oracles.stationary.chains import Chains, scaled_problems
from amdp.oracles.stationary.search import Progress, Search, SearchClock, SearchResult

TIE_TOLERANCE = 1e-13  # relative to steps times the largest cost: policies that differ by less differ by rounding
EXACTLY_STATIONARY = 1e-16  # a law of the state that moves by less in a step is stationary to the last digit
VALUE_TOLERANCE = 1e-9  # relative to steps times the largest cost: two evaluations of a policy do not differ by more
Answer = tuple[SearchResult, float, float, float]  # with its value, its bound, and the gap that still counts as optimal
UNREAD: Values = np.empty((0, 0, 0))  # stands for values that no one has read


@dataclass(frozen=True, eq=False, repr=False)
class StationaryPlans(Plans):
    """Plans whose values are worked out when they are first read: learners ask for policies only."""

    chains: Chains = field(kw_only=True)
    costs: Costs = field(kw_only=True)

    def __post_init__(self) -> None:
        if self.values is UNREAD:
            object.__delattr__(self, "values")

    def __getattr__(self, name: str) -> Any:
        if name != "values":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        values = np.empty(self.costs.shape[:3])
        for cost, actions, to_go in zip(self.costs, self.actions, values, strict=True):
            laid = np.require(cost, requirements=["C", "W"])
            kernels.search.chains.costs_to_go(self.chains.rows, laid, actions.astype(np.int64), to_go)
        largest = np.abs(self.costs).max(axis=(1, 2, 3))
        difference = np.abs(values[:, 0, self.chains.initial] - self.objective)
        if (difference > VALUE_TOLERANCE * self.costs.shape[1] * largest).any():
            raise InvalidInput("costs has changed since the plans were made; read their values before")
        object.__setattr__(self, "values", values)
        return values

    def __reduce__(self) -> tuple[Any, ...]:
        return Plans, tuple(getattr(self, entry.name) for entry in fields(Plans))


class StationaryPlanner(Planner):
    """A planner that puts scaled costs to a search, and evaluates what comes back.

    `on_progress`, if set, is called with a `Progress` now and then while a search runs; on large kernels not in the
    main thread, which listens for Ctrl-C.
    """

    def __init__(
        self,
        oracle: PlanningOracle,
        domain: PlanningDomain,
        build: Callable[[Chains], Search],
        gap: float,
        seconds: float = inf,  # for each of the costs
        reason: str = "",  # why this search was chosen
    ) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, StationaryPolicies)
        self.chains = Chains.of(domain)
        self.search = build(self.chains)
        self.on_progress: Callable[[Progress], None] | None = None
        self.reason = reason
        self._gap, self._seconds = gap, seconds
        if seconds < inf:
            _compile_first(oracle, type(self.search), domain.dynamics, build)

    @cached_property
    def listed(self) -> Listed | None:
        policies = self.search.policies()
        return None if policies is None else Listed(np.maximum(policies, 0).astype(np.int32), self._gap)

    def minimize(self, costs: Costs) -> Plans:
        began = perf_counter()
        shaped, size = self.shaped(costs), self.search.batch_size
        answers = [answer for i in range(0, len(shaped), size) for answer in self._solved(shaped[i : i + size])]
        results = [answer[0] for answer in answers]
        objective, bound, allowed = np.array([answer[1:] for answer in answers]).T.copy()
        np.minimum(bound, objective, out=bound)
        statuses = [Status.OPTIMAL if met else Status.FEASIBLE for met in objective - bound <= allowed]
        return StationaryPlans(
            np.array([result.policy for result in results], dtype=np.int32),
            objective,
            bound,
            worst(statuses),
            UNREAD,
            self._report(results, perf_counter() - began),
            shaped.shape[3],
            tuple(statuses),
            chains=self.chains,
            costs=shaped,
        )

    def _solved(self, costs: Costs) -> list[Answer]:
        """Search, settle and evaluate, within the time limit."""
        charge = self._charge()
        with SearchClock(self._seconds * len(costs), self.on_progress, self.search.markov_bound, charge) as clock:
            work = partial(self._searched, costs, clock)
            return interruptible(work, clock.interrupt, inf) if self.chains.is_long else work()

    def _searched(self, costs: Costs, clock: SearchClock) -> list[Answer]:
        steps, rows = self.chains.shape[0], self.chains.rows
        horizon = self.search.horizon(len(costs), clock)
        problems, scales, sizes = scaled_problems(self.chains.initial, costs, horizon, clock.halt)
        results, answers = self.search.solve(problems, clock), list[Answer]()
        for problem, result, scale, size in zip(problems, results, scales, sizes, strict=True):
            kernels.search.chains.settle(rows, problem, result.policy, TIE_TOLERANCE * steps)
            objective = scale * self.chains.value(problem._replace(stop=EXACTLY_STATIONARY), result.policy)
            bound = scale * (max(result.bound, clock.proved(problem)) - self._charge())
            answers.append((result, objective, bound, self._gap * steps * size))
        return answers

    def _charge(self) -> float:
        """Rows that miss the sum 1 shift every term of a bound's proof by no more than this."""
        return float(4.0 * self.chains.defect * self.chains.shape[0] ** 2)

    def _report(self, results: list[SearchResult], seconds: float) -> Report:
        notes = [self.reason, *sorted({result.note for result in results})]
        nodes = sum(result.nodes for result in results)
        note = "; ".join(note for note in notes if note)
        return Report(self.name, seconds, nodes=nodes, solver=self.search.name, note=note)


_COMPILED: set[tuple[type, type]] = set()


def _compile_first(
    oracle: PlanningOracle, search: type[Search], kernel: SingleKernel, build: Callable[[Chains], Search]
) -> None:
    """Solve a world of one state without a limit: compiling, once on a machine, is not what limits are for."""
    key = search, type(kernel)
    if key in _COMPILED:
        return
    stay = np.ones((2, 1))
    sparse = isinstance(kernel, SparseKernel)
    tiny = SparseKernel.homogeneous(stay, 2) if sparse else Kernel.homogeneous(stay.reshape(1, 2, 1), 2)
    domain = StationaryPolicies(tiny)
    planner = StationaryPlanner(oracle, domain, build, gap=1e-9)
    if getattr(oracle, "log", False):  # that of a world which nobody asked about would be in the way
        quiet = replace(oracle, seconds=inf, log=False).bind(domain)  # type: ignore[type-var]
        assert isinstance(quiet, StationaryPlanner)
        planner = quiet
    costs = np.zeros((5, 2, 1, 2))
    planner.minimize(costs[:1])
    planner.minimize(costs)  # by the table, where there is one
    planner.search.rehearse(planner.chains.pose(costs[0]))
    _COMPILED.add(key)
