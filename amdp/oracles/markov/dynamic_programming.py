"""Backward induction: exact, batched, over one kernel or (extended value iteration) over a box of them."""

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

from amdp.arrays import Costs
from amdp.model.domains import Domain, MarkovPolicies
from amdp.oracles.base import Planner, PlanningDomain, PlanningOracle, Plans, Report, Status


@dataclass(frozen=True)
class BackwardInduction:
    """Backward induction, `V[h,s] = min_a c[h,s,a] + E[V[h+1]]`; over a box the expectation is the least one.

    Of actions that differ by rounding only, the first is chosen. A box is rectangular over `(h, s, a)`, so that
    choosing its best row at each place separately gives the joint minimum over policies and kernels.
    """

    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, MarkovPolicies)

    def bind(self, domain: Domain) -> Planner:
        return Sweeper(self, domain)


class Sweeper(Planner):
    """Backward induction for a whole batch at once; `reason` says why an oracle chose it."""

    def __init__(self, oracle: PlanningOracle, domain: PlanningDomain, reason: str = "") -> None:
        super().__init__(oracle, domain)
        self.reason = reason

    def minimize(self, costs: Costs) -> Plans:
        began = perf_counter()
        shaped = self.shaped(costs)
        sweep = self.domain.dynamics.cheapest(shaped)
        objective = sweep.values[:, 0, self.domain.initial].copy()
        report = Report(self.name, perf_counter() - began, note=self.reason)
        return Plans(sweep.actions, objective, objective, Status.OPTIMAL, sweep.values, report, shaped.shape[3])
