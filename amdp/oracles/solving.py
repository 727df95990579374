"""From a solver's answer to a plan: one place that scales costs, settles ties, evaluates, and checks.

The solver says which pairs its optimum visits. Its action stands at every state that it visits, unless the
first cheapest action costs the same to within rounding; elsewhere the sweep chooses as backward induction would.
So all oracles agree on ties, also at unreachable states, and a wrong answer shows as a gap.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import frexp
from time import perf_counter
from typing import Protocol

import numpy as np

from amdp.arrays import Actions, Costs, Floats, require_whole
from amdp.dynamics import Sweep
from amdp.errors import InvalidInput
from amdp.mdp import Domain, MarkovPolicies
from amdp.oracles.base import Planner, PlanningOracle, Plans, Report, Status

VISITED = 1e-6  # below this chance a solver's mass is noise
LOST = 1e-4  # of the mass of a step
SAME = 1e-10  # relative to the largest cost: below the accuracy of the solvers


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver leaves: the mass `[h, s, a]` of its policy (None: no policy), and how it stopped."""

    mass: Floats | None
    status: Status  # FEASIBLE: at a limit, with or without a policy; FAILED: it gave up
    iterations: int = 0
    note: str = ""


class Solver(Protocol):
    """A compiled model; only the costs change between solves."""

    name: str  # with its version

    def solve(self, cost: Floats) -> Answer:
        """Minimize over the occupancy polytope; `cost` `[h, s, a]` is at most 1 in size."""

    def restart(self) -> None:
        """Forget everything that was learned from earlier solves."""


class SolverPlanner(Planner):
    """A planner that puts the costs to a solver one by one and trusts none of its answers."""

    def __init__(
        self, oracle: PlanningOracle, domain: Domain, build: Callable[[MarkovPolicies], Solver], gap: float
    ) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, MarkovPolicies)
        self.solver = build(domain)
        self.gap = gap

    def minimize(self, costs: Costs) -> Plans:
        """The cheapest policy for each of `costs` `[n, h, s, a]`, each evaluated and checked."""
        began = perf_counter()
        checked = self.checked(costs)
        results = [self._one(checked[i : i + 1]) for i in range(len(checked))]
        sweeps = [sweep for sweep, _, _ in results]
        answers = [answer for _, answer, _ in results]
        report = Report(
            type(self.oracle).__name__,
            perf_counter() - began,
            iterations=sum(answer.iterations for answer in answers),
            rebuilds=sum(rebuilds for _, _, rebuilds in results),
            solver=self.solver.name,
            note="; ".join(sorted({answer.note for answer in answers if answer.note})),
        )
        statuses = [answer.status for answer in answers]
        failed = np.array([answer.mass is None for answer in answers])
        objective = np.concatenate([sweep.values[:, 0, self.domain.initial] for sweep in sweeps])
        shortfall = np.concatenate([sweep.shortfall for sweep in sweeps])
        return Plans(
            np.concatenate([sweep.actions for sweep in sweeps]),
            np.where(failed, np.inf, objective),
            np.where(failed, -np.inf, objective + shortfall),
            worst(statuses),
            np.concatenate([sweep.values for sweep in sweeps]),
            report,
            checked.shape[3],
            tuple(statuses),
        )

    def _one(self, cost: Costs) -> tuple[Sweep, Answer, int]:
        """One solve; a solver that gives up, or that the sweep disproves, is asked again from a cold start."""
        # A power of two: costs that did not change stay what they were to the solver, to the last digit.
        largest = float(max(cost.max(), -cost.min()))
        scale = 2.0 ** min(1023, frexp(largest or 0.5)[1])
        rebuilds = 0
        while True:
            answer = _plausible(self.solver.solve(cost[0] / scale))
            sweep = settle(self.domain, cost, visited_actions(answer.mass, cost.shape), SAME * largest)
            proved = answer.mass is not None and -sweep.shortfall[0] <= self.gap * largest * cost.shape[1]
            if answer.status is Status.FEASIBLE or (answer.status is Status.OPTIMAL and proved) or rebuilds:
                return sweep, _honest(answer, proved), rebuilds
            self.solver.restart()
            rebuilds = 1


def _plausible(answer: Answer) -> Answer:
    """The answer, without its mass if that is no occupancy: stopped solvers may leave zeros."""
    if answer.mass is None or np.abs(answer.mass.sum(axis=(1, 2)) - 1.0).max() <= LOST:
        return answer
    return replace(answer, mass=None)


def _honest(answer: Answer, proved: bool) -> Answer:
    """The answer with the status that it deserves."""
    if answer.mass is None:
        return replace(answer, status=Status.FAILED)
    if answer.status is Status.OPTIMAL and not proved:
        return replace(answer, status=Status.FEASIBLE, note="optimal by the solver, not by the check")
    return answer


def require_limits(seconds: float, gap: float, threads: int = 1) -> None:
    """Refuse limits that mean nothing."""
    limits: tuple[tuple[str, object], ...] = (("seconds", seconds), ("gap", gap))
    for name, value in limits:
        if not isinstance(value, int | float) or not value >= 0:
            raise InvalidInput(f"{name} = {value!r}; it must be at least 0")
    require_whole("threads", threads)
    if threads < 1:
        raise InvalidInput(f"threads = {threads}; it must be at least 1")


def visited_actions(mass: Floats | None, shape: tuple[int, ...]) -> Actions:
    """The heaviest action `[1, h, s]` where a state is visited, -1 elsewhere."""
    if mass is None:
        return np.full(shape[:3], -1, dtype=np.int32)
    return np.where(mass.max(axis=-1) > VISITED, mass.argmax(axis=-1), -1).astype(np.int32)[None]


def settle(domain: Domain, costs: Costs, wanted: Actions, tie: float | Floats) -> Sweep:
    """The backward sweep that keeps the wanted actions, settles ties and completes the policy."""
    return domain.dynamics.follow(costs, wanted, np.full(len(costs), tie))


def worst(statuses: list[Status]) -> Status:
    """The least of several statuses."""
    order = [Status.FAILED, Status.FEASIBLE, Status.OPTIMAL]
    return min(statuses, key=order.index)
