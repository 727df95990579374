"""Backward induction at prices of the budgets: exact, and the answer mixes a few deterministic policies.

At prices `y >= 0` backward induction finds the cheapest policy for `c + y usage`; its cost, less `<y, limits>`, bounds
that of every policy within the budgets. The policies found so far are columns of a small linear program: the cheapest
mixture that keeps the budgets. Its multipliers are the next prices, and when no policy is cheaper at these than those
of the mixture, the mixture is optimal (Dantzig and Wolfe 1960). There are finitely many policies, so it ends.

With one budget the small program has two columns, a policy above the limit and one that keeps it, and is solved by
hand: the price is that at which both cost the same. Then a whole batch of costs is swept at once.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import highspy
import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Bools, Costs, Floats, Occupancy, one_hot
from amdp.model.budgets import Budgets
from amdp.model.domains import BudgetedPolicies, Domain
from amdp.oracles.base import Planner, PlanningOracle, Plans, Report, Status
from amdp.oracles.budgets import easiest, judged
from amdp.oracles.highs import ACCURACY, linear_model, run
from amdp.oracles.sizes import ROUNDING, power_of_two_above
from amdp.oracles.solving import planned, require_limits

# A new column leaves the last basis feasible, so primal simplex goes on from it; there is nothing to presolve or scale.
_SMALL = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",
    "solver": "simplex",
    "simplex_strategy": 4,
    "simplex_scale_strategy": 0,
}
FIRST_COLUMNS = 2  # the policy that keeps the budgets most easily, and the cheapest one


@dataclass(frozen=True)
class Lagrangian:
    """Minimize over policies within budgets by backward induction at prices of the budgets."""

    gap: float = 1e-9  # that counts as optimal, relative to what the policy pays, signs aside, and the priced limits
    iterations: int = 1000  # the most sweeps for one cost array; with a gap that is left the plan is feasible
    requires: ClassVar[tuple[str, ...]] = ("highspy",)

    def __post_init__(self) -> None:
        require_limits(self)

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, BudgetedPolicies)

    def bind(self, domain: Domain) -> Planner:
        return _Pricing(self, domain)


class _Pricing(Planner):
    oracle: Lagrangian
    domain: BudgetedPolicies

    def __init__(self, oracle: PlanningOracle, domain: Domain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, BudgetedPolicies)
        self._spare = easiest(domain)

    def minimize(self, costs: Costs) -> Plans:
        began = perf_counter()
        checked = self.checked(costs)
        find = self._with_one_budget if len(self.domain.budgets) == 1 else self._with_several
        measures, prices, sweeps = find(checked)
        answer = judged(self.domain, checked, measures, prices, self._spare)
        statuses = [Status.OPTIMAL if proved else Status.FEASIBLE for proved in answer.proved(self.oracle.gap)]
        report = Report(self.name, perf_counter() - began, iterations=sweeps)
        return planned(self.domain, checked, [answer], statuses, report)

    def _cheapest(self, costs: Costs, prices: Floats) -> tuple[Floats, Occupancy]:
        """The least costs `[n]` at prices `[n, i]`, with what is used paid, and the measures of the policies."""
        swept = self.domain.dynamics.cheapest(self.domain.budgets.priced(costs, prices))
        policies = one_hot(swept.actions, self.domain.shape[2])
        return swept.values[:, 0, self.domain.initial], self.domain.dynamics.occupancy(policies, self.domain.initial)

    def _with_one_budget(self, costs: Costs) -> tuple[Occupancy, Floats, int]:
        """Measures `[n, h, s, a]`, prices `[n, 1]`, and the number of sweeps, in which all that is open takes part."""
        budgets, prices = self.domain.budgets, np.zeros((len(costs), 1))
        kept = budgets.limits[0] + ROUNDING * budgets.sizes[0]
        over = _Columns.of(self.domain, costs, self._cheapest(costs, prices)[1])
        under = _Columns.of(self.domain, costs, np.broadcast_to(self._spare, costs.shape).copy())
        mixed, sweeps = over.use > kept, 1
        place = np.flatnonzero(mixed)  # what is open
        while len(place) and sweeps < self.oracle.iterations:
            saved, more = (under.cost - over.cost)[place], (over.use - under.use)[place]
            price = np.maximum(0.0, saved / more)
            prices[place, 0] = price
            least, measures = self._cheapest(costs[place], prices[place])
            new = _Columns.of(self.domain, costs[place], measures)
            # Less than the rounding of the numbers is no gain over the two policies, which cost the same at the price.
            gains = over.cost[place] + price * over.use[place] - least
            gains = gains > ROUNDING * (over.size[place] + price * np.abs(over.use[place]))
            over.put(place, new, gains & (new.use > kept))
            under.put(place, new, gains & (new.use <= kept))
            place = place[gains]
            sweeps += 1
        share = np.where(mixed, (budgets.limits[0] - under.use) / np.where(mixed, over.use - under.use, 1.0), 1.0)
        share = np.clip(share, 0.0, 1.0)[:, None, None, None]
        return share * over.measures + (1.0 - share) * under.measures, prices, sweeps

    def _with_several(self, costs: Costs) -> tuple[Occupancy, Floats, int]:
        """The same with any number of budgets, prices `[n, i]`: each cost array has a small program of its own."""
        units = np.array([power_of_two_above(float(np.abs(cost).max())) for cost in costs])
        scaled = costs / units[:, None, None, None]
        first = (self._spare * scaled).sum(axis=(1, 2, 3)).tolist()
        masters = [_Master(self.domain.budgets, self._spare, paid) for paid in first]
        prices, common = np.zeros((len(costs), len(self.domain.budgets))), np.full(len(costs), np.inf)
        place, sweeps = np.arange(len(costs)), 0  # what is open
        while len(place) and sweeps < self.oracle.iterations:
            least, measures = self._cheapest(scaled[place], prices[place])
            paid, use = (measures * scaled[place]).sum(axis=(1, 2, 3)), self.domain.budgets.use(measures)
            size = (measures * np.abs(scaled[place])).sum(axis=(1, 2, 3))
            size += prices[place] @ np.abs(self.domain.budgets.limits)
            is_open = common[place] - least > max(ROUNDING, 0.1 * self.oracle.gap) * size
            for j in np.flatnonzero(is_open):
                i = place[j]
                before = prices[i].copy()
                prices[i], common[i] = masters[i].extended(measures[j], float(paid[j]), use[j])
                # At the same prices the same column would come again: the small program sees no gain in it.
                is_open[j] = len(masters[i].columns) == FIRST_COLUMNS or bool((prices[i] != before).any())
            place = place[is_open]
            sweeps += 1
        return np.stack([master.mixture for master in masters]), units[:, None] * prices, sweeps


@dataclass(eq=False)
class _Columns:
    """A policy for each cost array of a batch: its measure, its cost, that without signs, and its use of the budget."""

    measures: Occupancy  # [n, h, s, a]
    cost: Floats  # [n]
    size: Floats  # [n]
    use: Floats  # [n]

    @classmethod
    def of(cls, domain: BudgetedPolicies, costs: Costs, measures: Occupancy) -> "_Columns":
        paid = (measures * costs).sum(axis=(1, 2, 3))
        return cls(
            measures, paid, (measures * np.abs(costs)).sum(axis=(1, 2, 3)), domain.budgets.use(measures)[:, 0].copy()
        )

    def put(self, place: NDArray[np.intp], other: "_Columns", chosen: Bools) -> None:
        """Take over the chosen rows of another batch, whose rows belong to the given places."""
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[place[chosen]] = theirs[chosen]


class _Master:
    """The cheapest mixture of columns that keeps the budgets; the last row says that their weights sum to 1."""

    def __init__(self, budgets: Budgets, first: Occupancy, paid: float) -> None:
        self._budgets = budgets
        self.columns, self._weights = [first], np.ones(1)
        self._highs = highspy.Highs()
        for option, value in (ACCURACY | _SMALL).items():
            self._highs.setOptionValue(option, value)
        limits = self._budgets.limits / self._budgets.sizes
        lower, upper = np.append(np.full(len(limits), -highspy.kHighsInf), 1.0), np.append(limits, 1.0)
        matrix = scipy.sparse.csc_array(self._column(budgets.use(first[None])[0])[:, None])
        self._highs.passModel(linear_model(matrix, np.array([paid]), lower, upper))

    def extended(self, measure: Occupancy, paid: float, use: Floats) -> tuple[Floats, float]:
        """Add a measure; the prices of the budgets then, and what each column of the mixture costs at these."""
        self.columns.append(measure)
        column = self._column(use)
        rows = np.arange(len(column), dtype=np.int32)
        self._highs.addCol(paid, 0.0, highspy.kHighsInf, len(rows), rows, column)
        run(self._highs, 1)
        solution = self._highs.getSolution()
        self._weights = np.maximum(0.0, np.array(solution.col_value))
        multipliers = np.array(solution.row_dual)
        return np.maximum(0.0, -multipliers[:-1]) / self._budgets.sizes, float(multipliers[-1])

    @property
    def mixture(self) -> Occupancy:
        """The measure of the mixture."""
        mixed: Occupancy = np.tensordot(self._weights, np.stack(self.columns), axes=1)
        return mixed

    def _column(self, use: Floats) -> Floats:
        return np.append(use / self._budgets.sizes, 1.0)
