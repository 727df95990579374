"""Policy iteration (Howard): the best policy for ever, under costs `[s, a]` that never change, with a proof.

A policy is evaluated by linear equations; then every state takes the action that is cheapest now and after it, by these
values. The two objectives differ in the equations (`criteria`); what proves a bound is one inequality for any numbers
`V[s]`, whatever they come from. With `r[s, a] = c + discount P V - V`, along the walk of any policy

    sum_t discount^t c(s_t, a_t) = V(s_0) + sum_t discount^t r(s_t, a_t)    in expectation,

so that no policy pays less than `<start, V> + min r / (1 - discount)`; and without a discount, since `V(s_T) / T`
vanishes, no policy pays less than `min r` a step. For the values of an optimal policy both meet what it pays.
"""

from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import ClassVar

import numpy as np

from amdp.arrays import Costs, Floats
from amdp.errors import InvalidInput
from amdp.model.end_components import end_components
from amdp.model.endless import DiscountedPolicies, EndlessPolicies
from amdp.oracles.base import Planner, PlanningDomain, PlanningOracle, Plans, Report, Status
from amdp.oracles.sizes import power_of_two_above
from amdp.oracles.solving import require_limits, worst
from amdp.oracles.stationary.criteria import Average, Discounted, endless_moves
from amdp.oracles.stationary.howard import Iteration, Solved
from amdp.oracles.stationary.multichain import Multichain


@dataclass(frozen=True)
class PolicyIteration:
    """Policy iteration over an endless horizon, discounted or by average cost, with a bound that is proved.

    Where the least average depends on where a walk ends, it is sought in each place that need not be left, and then
    the way to these: `amdp.oracles.stationary.multichain`.
    """

    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to the largest cost, over 1 - discount: above it an answer is not called optimal
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_limits(self)

    def supports(self, domain: PlanningDomain) -> bool:
        return isinstance(domain, EndlessPolicies)

    def bind(self, domain: PlanningDomain) -> Planner:
        return PolicyIterator(self, domain, self)


class PolicyIterator(Planner):
    """Policy iteration for one cost array after the other; `reason` says why an oracle chose it."""

    domain: EndlessPolicies  # type: ignore[assignment]

    def __init__(
        self, oracle: PlanningOracle, domain: PlanningDomain, settings: PolicyIteration, reason: str = ""
    ) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, EndlessPolicies)
        self._search, self._settings, self.reason = _search(domain), settings, reason

    def minimize(self, costs: Costs) -> Plans:
        """The cheapest policy for each of `costs` `[n, s, a]`."""
        began = perf_counter()
        checked = self.checked(costs)
        scales = np.array([power_of_two_above(float(np.abs(cost).max())) for cost in checked])
        solved = [self._solved(cost / scale) for cost, scale in zip(checked, scales, strict=True)]
        with np.errstate(over="ignore"):
            objective, bound = scales * np.array([(each.objective, each.bound) for each in solved]).T
        if not np.isfinite(objective).all():
            raise InvalidInput(f"costs reach {np.abs(checked).max():g}; what they come to in all overflows")
        allowed = self._settings.gap * self._search.horizon * np.abs(checked).max(axis=(1, 2)) / scales
        gaps = zip([each.most - each.bound for each in solved], allowed, strict=True)
        statuses = [Status.OPTIMAL if gap <= most else Status.FEASIBLE for gap, most in gaps]
        notes = [self.reason, *sorted({each.note for each in solved})]
        report = Report(
            self.name,
            perf_counter() - began,
            iterations=sum(each.iterations for each in solved),
            note="; ".join(note for note in notes if note),
        )
        return Plans(
            np.array([each.policy for each in solved], dtype=np.int32),
            objective,
            bound,
            worst(statuses),
            scales[:, None] * np.array([each.values for each in solved]),
            report,
            checked.shape[2],
            tuple(statuses),
        )

    def _solved(self, cost: Floats) -> Solved:
        """One search, for costs of size at most 1."""
        solved = self._search.solve(cost, perf_counter() + self._settings.seconds)
        return solved if solved.is_complete else solved._replace(note=f"stopped at {self._settings.seconds:g} seconds")


def _search(domain: EndlessPolicies) -> Iteration | Multichain:
    moves, shape, start = endless_moves(domain), domain.shape, domain.start
    if isinstance(domain, DiscountedPolicies):
        return Iteration(Discounted(moves, shape, start, domain.discount))
    components = end_components(moves)
    average = Average(moves, shape, start)
    return Iteration(average) if len(components) == 1 else Multichain(average, components)
