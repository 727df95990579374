"""From a solver's answer to a plan: one place that scales costs, judges, improves, settles ties and evaluates.

The solver says which pairs its optimum visits. Its action stands at every state that it visits, elsewhere the sweep
chooses as backward induction would: that is the solver's policy, and it is evaluated. If it costs more than backward
induction's by more than `gap`, relative to what the latter pays (`size_of`), the solver is asked again from a cold
start, and then counted as wrong (`Report.improved`). The plan of a solver that says optimal is the policy of backward
induction either way: at no state does it leave a better action, and all oracles agree on ties, also at unreachable
states. A solver that stops at a limit keeps its own policy, with a bound that holds.

Within budgets backward induction does not know the answer. There the plan is the solver's policy, randomized where its
mass is, and the multipliers of the solver prove it: see `amdp.oracles.budgets`. Where the optimum is not unique,
solvers may return different policies of the same cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Actions, Costs, Floats, require_whole
from amdp.errors import InvalidInput
from amdp.model.budgets import KEPT
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain, MarkovPolicies
from amdp.model.dynamics import Sweep
from amdp.model.evaluation import values
from amdp.oracles.base import Planner, PlanningOracle, Plans, Report, Status
from amdp.oracles.budgets import BudgetedPlans, Judged, easiest, judged
from amdp.oracles.sizes import COST_RANGE, power_of_two_above, size_of, tamed
from amdp.oracles.solver_options import log_on_stderr

VISITED_CHANCE = 1e-6  # below this chance a solver's mass is noise
LOST_MASS = 1e-4  # of a step, that an occupancy measure of a solver may miss
IMPROVED_NOTE = "optimal by the solver, made cheaper by backward induction"
TIE_TOLERANCE = 1e-10  # relative to what the policy pays: below the accuracy of the solvers


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver returns: the mass `[h, s, a]` of its policy (None: no policy), and how it stopped."""

    mass: Floats | None
    status: Status  # FEASIBLE: at a limit, with or without a policy; FAILED: it gave up
    iterations: int = 0
    note: str = ""
    prices: Floats | None = None  # [i], the multipliers of the budgets, where there are some and the solver gives them


class Solver(Protocol):
    """A compiled model; only the costs change between solves."""

    name: str  # with its version

    def solve(self, cost: Floats) -> Answer:
        """Minimize over the occupancy polytope; `cost` `[h, s, a]` is at most 1 in size."""

    def restart(self) -> None:
        """Forget everything that was learned from earlier solves."""


class _Solved(NamedTuple):
    sweep: Sweep  # evaluates the plan of one cost array
    answer: Answer
    rebuilds: int
    improved: int = 0


def solver_planner(
    oracle: PlanningOracle, domain: Domain, build: Callable[[EpisodeDomain], Solver], gap: float, log: bool = False
) -> Planner:
    """The planner that judges the answers of a solver as the domain asks for."""
    kind = BudgetedPlanner if isinstance(domain, BudgetedPolicies) else SolverPlanner
    return kind(oracle, domain, build, gap, log)


class SolverPlanner(Planner):
    """A planner that puts the costs to a solver one by one and trusts none of its answers."""

    def __init__(
        self,
        oracle: PlanningOracle,
        domain: Domain,
        build: Callable[[EpisodeDomain], Solver],
        gap: float,
        log: bool = False,  # whether the solver writes a log, which belongs on standard error
    ) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, MarkovPolicies)
        self.gap, self.log = gap, log
        with log_on_stderr(log):
            self.solver = build(domain)

    def minimize(self, costs: Costs) -> Plans:
        began = perf_counter()
        checked = self.checked(costs)
        with log_on_stderr(self.log):
            solved = [self._solved(checked[i : i + 1]) for i in range(len(checked))]
        answers = [each.answer for each in solved]
        rebuilds, improved = sum(each.rebuilds for each in solved), sum(each.improved for each in solved)
        report = _report(self.name, self.solver, answers, rebuilds, began, improved)
        statuses = [Status.FAILED if answer.mass is None else answer.status for answer in answers]
        actions, to_go, shortfall = (_joined(parts) for parts in zip(*(each.sweep for each in solved), strict=True))
        objective = to_go[:, 0, self.domain.initial].copy()
        bound = objective + shortfall
        if Status.FAILED in statuses:
            failed = np.array([status is Status.FAILED for status in statuses])
            objective[failed], bound[failed] = np.inf, -np.inf
        return Plans(
            actions,
            objective,
            bound,
            worst(statuses),
            to_go,
            report,
            checked.shape[3],
            tuple(statuses),
        )

    def forget(self) -> None:
        with log_on_stderr(self.log):
            self.solver.restart()

    def _solved(self, cost: Costs) -> "_Solved":
        """One solve; a solver that gives up, or that backward induction disproves, is asked again from a cold start."""
        best = self.domain.dynamics.cheapest(cost)
        least = best.values[:, 0, self.domain.initial]
        asked, largest = cost[0], float(np.abs(cost).max())
        # Otherwise no cost is far above what the policy pays, which is at least `least`.
        if largest > COST_RANGE * abs(float(least[0])):
            size = float(size_of(self.domain, best.actions, least, cost)[0])
            asked = tamed(self.domain, cost, best.values, size)[0]
            largest = float(np.abs(asked).max())
        # A power of two: costs that did not change stay what they were to the solver, to the last digit.
        scaled = asked / power_of_two_above(largest)
        for rebuilds in (0, 1):
            if rebuilds:
                self.solver.restart()
            answer = _plausible(self.solver.solve(scaled))
            if answer.status is Status.OPTIMAL and _is_policy(best.actions[0], answer.mass):
                return _Solved(best, answer, rebuilds)  # the policy of backward induction: no sweep is needed to judge
            size = float(size_of(self.domain, best.actions, least, cost)[0])
            own = settle(self.domain, cost, visited_actions(answer.mass, cost.shape), TIE_TOLERANCE * size)
            if answer.status is Status.FEASIBLE:
                return _Solved(own, answer, rebuilds)
            if answer.mass is not None and own.values[0, 0, self.domain.initial] - least[0] <= self.gap * size:
                return _Solved(best, answer, rebuilds)
        if answer.mass is None:
            return _Solved(best, answer, rebuilds)
        return _Solved(best, replace(answer, note=IMPROVED_NOTE), rebuilds, improved=1)


class BudgetedPlanner(Planner):
    """A planner within budgets that puts the costs to a solver one by one and trusts none of its answers."""

    domain: BudgetedPolicies

    def __init__(
        self,
        oracle: PlanningOracle,
        domain: Domain,
        build: Callable[[EpisodeDomain], Solver],
        gap: float,
        log: bool = False,
    ) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, BudgetedPolicies)
        self._spare = easiest(domain)  # first: it says what is wrong with budgets that cannot be kept
        self.gap, self.log = gap, log
        with log_on_stderr(log):
            self.solver = build(domain)

    def minimize(self, costs: Costs) -> Plans:
        began = perf_counter()
        checked = self.checked(costs)
        with log_on_stderr(self.log):
            solved = [self._solved(checked[i : i + 1]) for i in range(len(checked))]
        answers = [each.answer for each in solved]
        report = _report(self.name, self.solver, answers, sum(each.rebuilds for each in solved), began)
        return planned(self.domain, checked, [each.judged for each in solved], [a.status for a in answers], report)

    def forget(self) -> None:
        with log_on_stderr(self.log):
            self.solver.restart()

    def _solved(self, cost: Costs) -> "_Proved":
        """One solve; without a proof the solver is asked again from a cold start, and the plan then has a gap."""
        unit = power_of_two_above(float(np.abs(cost).max()))
        for rebuilds in (0, 1):
            if rebuilds:
                self.solver.restart()
            answer = _plausible(self.solver.solve(cost[0] / unit))
            prices = np.zeros(len(self.domain.budgets)) if answer.prices is None else np.maximum(0.0, answer.prices)
            mass = self._spare if answer.mass is None else answer.mass
            found = judged(self.domain, cost, mass[None], unit * prices[None], self._spare)
            if answer.status is Status.FEASIBLE or (answer.mass is not None and found.proved(self.gap)[0]):
                break
        status = answer.status if found.proved(self.gap)[0] else Status.FEASIBLE
        return _Proved(found, replace(answer, status=Status.FAILED if answer.mass is None else status), rebuilds)


class _Proved(NamedTuple):
    judged: Judged
    answer: Answer
    rebuilds: int


def planned(
    domain: BudgetedPolicies, costs: Costs, found: list[Judged], statuses: list[Status], report: Report
) -> BudgetedPlans:
    """The plans of judged policies, each with its status; what exceeds a budget has failed."""
    columns = {
        name: np.concatenate([getattr(each, name) for each in found])
        for name in ("policies", "objective", "bound", "use", "prices", "excess")
    }
    kept = columns["excess"] <= KEPT
    statuses = [each if keeps else Status.FAILED for each, keeps in zip(statuses, kept, strict=True)]
    failed = np.array([status is Status.FAILED for status in statuses])
    return BudgetedPlans(
        np.where(failed, np.inf, columns["objective"]),
        np.where(failed, -np.inf, np.minimum(columns["bound"], columns["objective"])),  # below it by rounding at most
        worst(statuses),
        values(domain.dynamics, columns["policies"], costs),
        report,
        costs.shape[3],
        tuple(statuses),
        chances=columns["policies"],
        use=columns["use"],
        prices=columns["prices"],
        budgets=domain.budgets,
    )


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays along their first axis; a single one, which is what games ask for, as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _report(name: str, solver: Solver, answers: list[Answer], rebuilds: int, began: float, improved: int = 0) -> Report:
    return Report(
        name,
        perf_counter() - began,
        iterations=sum(answer.iterations for answer in answers),
        rebuilds=rebuilds,
        solver=solver.name,
        note="; ".join(sorted({answer.note for answer in answers if answer.note})),
        improved=improved,
    )


def _plausible(answer: Answer) -> Answer:
    """The answer, without its mass if that is no occupancy: stopped solvers may leave zeros."""
    if answer.mass is None:
        return answer
    is_occupancy = np.abs(answer.mass.reshape(len(answer.mass), -1).sum(axis=1) - 1.0).max() <= LOST_MASS
    return answer if is_occupancy and answer.status is not Status.FAILED else replace(answer, mass=None)


# The least that the limits of oracles may be, by their names.
_LEAST = dict.fromkeys(("seconds", "gap", "nodes", "table", "last_steps"), 0)
_LEAST |= dict.fromkeys(("limit", "starts", "threads", "iterations"), 1)


def require_limits(settings: object) -> None:
    """Refuse limits of an oracle that mean nothing."""
    for name, value in vars(settings).items():
        if name not in _LEAST:
            continue
        if name in ("threads", "iterations", "last_steps"):
            require_whole(name, value)
        if not isinstance(value, int | float) or not value >= _LEAST[name]:
            raise InvalidInput(f"{value!r}; it must be at least {_LEAST[name]}{' bytes' * (name == 'table')}", name)
        if name == "nodes" and value % 1 > 0:  # a search would wait for the rest of a node; infinity leaves NaN
            raise InvalidInput(f"{value!r}; it must be a whole number", name)


def _is_policy(actions: NDArray[np.int32], mass: Floats | None) -> bool:
    """Whether the actions `[h, s]` are those that a mass visits."""
    return mass is not None and bool(kernels.sweeps.holds(actions, np.ascontiguousarray(mass), VISITED_CHANCE))


def visited_actions(mass: Floats | None, shape: tuple[int, ...]) -> Actions:
    """The heaviest action `[1, h, s]` where a state is visited, -1 elsewhere."""
    if mass is None:
        return np.full(shape[:3], -1, dtype=np.int32)
    return np.where(mass.max(axis=-1) > VISITED_CHANCE, mass.argmax(axis=-1), -1).astype(np.int32)[None]


def settle(domain: Domain, costs: Costs, wanted: Actions, tie: float | Floats) -> Sweep:
    """The backward sweep that keeps the wanted actions, settles ties and completes the policy."""
    return domain.dynamics.follow(costs, wanted, np.full(len(costs), tie))


def worst(statuses: list[Status]) -> Status:
    """The worst of several statuses: failed, then feasible, then optimal."""
    order = [Status.FAILED, Status.FEASIBLE, Status.OPTIMAL]
    return min(statuses, key=order.index)
