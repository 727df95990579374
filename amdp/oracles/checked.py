"""An oracle that rejects wrong answers of the oracle inside it."""

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from amdp.arrays import Bools, Costs, Floats
from amdp.errors import CertificateRejected, InvalidInput
from amdp.model.budgets import KEPT
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain
from amdp.model.evaluation import evaluate, occupancy
from amdp.oracles.base import Planner, PlanningOracle, Plans, Status
from amdp.oracles.budgets import BudgetedPlans, proved_bound, size_within
from amdp.oracles.sizes import ROUNDING, size_of


@dataclass(frozen=True)
class Checked:
    """Evaluates every returned policy and proves every returned bound, or raises `CertificateRejected`.

    The objective must be the value of the policy. The bound must not exceed what the returned values prove by
    one Bellman sweep: `V[0, initial] + sum_h min_{s,a} (c + P V[h+1] - V[h])`. An answer that is called optimal
    must have both within `tolerance`, relative to what its policy pays in expectation, signs aside (`size_of`).

    Within budgets the policy must keep them, and the bound must not exceed what the returned prices of the budgets
    prove: the least cost at these prices, less the priced limits. The latter count in the size of what is paid.
    """

    oracle: PlanningOracle
    tolerance: float = 1e-9
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, PlanningOracle):
            raise InvalidInput(f"{self.oracle!r} is not an oracle; make one by name: amdp.oracle('dp')")

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, EpisodeDomain) and self.oracle.supports(domain)

    def bind(self, domain: Domain) -> Planner:
        return _Watcher(self, domain)


class _Watcher(Planner):
    oracle: Checked

    def __init__(self, oracle: Checked, domain: Domain) -> None:
        self._inside = oracle.oracle.bind(domain)  # first: its own reason to refuse says more
        super().__init__(oracle, domain)

    def minimize(self, costs: Costs) -> Plans:
        checked = self.checked(costs)
        plans = self._inside.minimize(checked)
        if plans.status is not Status.FAILED:
            if isinstance(self.domain, BudgetedPolicies):
                self._verify_within(self.domain, plans, checked)
            else:
                self._verify(plans, checked)
        return plans

    def _verify(self, plans: Plans, costs: Costs) -> None:
        steps, states, n_actions = self.domain.shape
        self._demand_shapes(plans, len(costs), actions=(steps, states), values=(steps, states), objective=(), bound=())
        if not np.issubdtype(plans.actions.dtype, np.integer):
            self._reject(f"actions are {plans.actions.dtype}, not whole numbers")
        if plans.actions.min() < 0 or plans.actions.max() >= n_actions:
            self._reject(f"actions lie outside 0 .. {n_actions - 1}")
        paid = evaluate(self.domain, plans.actions, costs)
        slack = self.oracle.tolerance * size_of(self.domain, plans.actions.astype(np.int32, copy=False), paid, costs)
        proved = provable_bound(self.domain, plans.values, costs)
        self._demand_proof(plans, paid, proved, slack, "its values prove")

    def _verify_within(self, domain: BudgetedPolicies, plans: Plans, costs: Costs) -> None:
        if not isinstance(plans, BudgetedPlans):
            self._reject(f"plans within budgets are BudgetedPlans, not {type(plans).__name__}")
        shape, each = domain.shape, (len(domain.budgets),)
        self._demand_shapes(
            plans, len(costs), chances=shape, values=shape[:2], objective=(), bound=(), use=each, prices=each
        )
        try:
            measures = occupancy(domain.dynamics, plans.chances, domain.initial)
        except InvalidInput as problem:
            self._reject(str(problem))
        use, paid = domain.budgets.use(measures), (measures * costs).sum(axis=(1, 2, 3))
        size = size_within(domain.budgets, measures, costs, plans.prices)
        excess, slack = domain.budgets.excess(use), self.oracle.tolerance * size
        self._demand(excess <= KEPT, "excess", 0.0 * paid, "its policy exceeds a budget by", excess)
        for i, tolerated in enumerate(self.oracle.tolerance * domain.budgets.sizes):
            close = np.abs(use[:, i] - plans.use[:, i]) <= tolerated
            self._demand(close, "use", plans.use[:, i], "its policy uses", use[:, i])
            self._demand(plans.prices[:, i] >= 0.0, "price", plans.prices[:, i], "no price is below", 0.0 * paid)
        proved, _ = proved_bound(domain, costs, plans.prices)
        self._demand_proof(plans, paid, proved, slack, "its prices prove")

    def _demand_shapes(self, plans: Plans, count: int, **shapes: tuple[int, ...]) -> None:
        for what, shape in shapes.items():
            actual, expected = np.shape(getattr(plans, what)), (count, *shape)
            if actual != expected:
                self._reject(f"{what} has shape {actual}, expected {expected}")

    def _demand_proof(self, plans: Plans, paid: Floats, proved: Floats, slack: Floats, by: str) -> None:
        self._demand(np.abs(paid - plans.objective) <= slack, "objective", plans.objective, "its policy costs", paid)
        self._demand(plans.bound <= proved + slack, "bound", plans.bound, by, proved)
        self._demand(plans.bound <= plans.objective + slack, "bound", plans.bound, "its objective is", plans.objective)
        if plans.status is Status.OPTIMAL:
            close = plans.objective - plans.bound <= slack
            self._demand(close, "optimal objective", plans.objective, "its bound is", plans.bound)

    def _demand(self, holds: Bools, what: str, claimed: Floats, but: str, actual: Floats) -> None:
        if not holds.all():
            i = int(np.argmin(holds))
            self._reject(f"{what}[{i}] = {claimed[i]:.12g}, but {but} {actual[i]:.12g}")

    def _reject(self, reason: str) -> NoReturn:
        raise CertificateRejected(f"{self._inside.name}: {reason}")


def provable_bound(domain: Domain, values: Floats, costs: Costs) -> Floats:
    """The lower bound `[n]` on all policies that `values` `[n, h, s]` prove, whatever they are, up to rounding.

    What `c + P V` falls short of `V` by less than the rounding of these numbers is not counted, however large they
    are: a policy that goes where values are 1e15 and gains 0.1 there by rounding has paid far more to get there.
    """
    bound = values[:, 0, domain.initial].copy()
    later = np.zeros_like(costs[:, 0])
    for h in reversed(range(domain.shape[0])):
        now, value = costs[:, h], values[:, h, :, None]
        excess = now + later - value
        forgiven = np.minimum(0.0, excess + ROUNDING * (np.abs(now) + np.abs(value)))
        bound += np.where(excess < 0.0, forgiven, excess).min(axis=(1, 2))
        if h > 0:
            later = domain.dynamics.least_expectation(h - 1, values[:, h])
    return bound
