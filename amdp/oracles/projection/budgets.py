"""Projections within budgets: a search over their prices, around a projection that knows nothing of them.

For prices `y >= 0` of the budgets, `KL(q || w) + y (<usage, q> - limits)` is, up to a constant, the distance of `q` to
the weights `w exp(-y usage)`. So the projection `q_y` of these weights onto all occupancy measures proves

    KL(q || w)  >=  KL(q_y || w) - y (limits - <usage, q_y>)      for every measure `q` that keeps the budgets,

and what is left to find are prices at which `q_y` keeps the budgets, and uses up those that have a price. The right
side is concave and smooth in `y`, its gradient is `<usage, q_y> - limits`: Newton's method finds its top, with the
curvature by differences, since there are few budgets.
"""

from dataclasses import dataclass, field, replace
from math import ceil, log2
from time import perf_counter
from typing import Self

import numpy as np
import scipy

from amdp.arrays import Bools, Floats
from amdp.errors import Unsolved
from amdp.kernels.threads import multiply
from amdp.model.budgets import KEPT, Budgets
from amdp.model.domains import BudgetedPolicies
from amdp.oracles.base import Report, Status
from amdp.oracles.budgets import easiest
from amdp.oracles.projection import certificate
from amdp.oracles.projection.base import LARGEST_EXPONENT, Projection, ProjectionOracle, Projector, status_of

SEARCH_STEPS = 200  # steps of Newton's method on the prices
EVEN_WEIGHTS = 4.0  # logarithms of weights up to here are no trouble to Newton's method
SHORTEST_STEP = 2.0**-30
DIFFERENCE = 1e-4  # of prices, in units in which usage is at most 1, by which the curvature is measured
LONGEST_STEP = 4.0  # of prices, in the same units, beyond as much as they are already


@dataclass(frozen=True, eq=False, repr=False)
class BudgetedProjection(Projection):
    """The nearest occupancy measure within budgets, with the prices of states and budgets that prove it."""

    budget_prices: Floats = field(kw_only=True)  # [i], of a unit of each budget
    use: Floats = field(kw_only=True)  # [i], the expected use of each budget
    budgets: Budgets = field(kw_only=True, repr=False)

    @property
    def budget_residual(self) -> float:
        """By how much the worst budget is exceeded, relative to its size; at most `KEPT` in an optimal answer."""
        return float(self.budgets.excess(self.use[None])[0])

    def as_prior(self) -> Self:
        return replace(super().as_prior(), budget_prices=np.zeros_like(self.budget_prices))


def within_budgets(
    domain: BudgetedPolicies, point: Floats, answer: Projection, prices: Floats, gap: float
) -> BudgetedProjection:
    """What the projection of `point - prices usage` says of that of `point` within the budgets."""
    use = domain.budgets.use(answer.measure[None])[0]
    total = answer.gap + float(prices @ (domain.budgets.limits - use))
    kept = domain.budgets.excess(use[None])[0] <= KEPT
    return BudgetedProjection(
        answer.log_measure,
        answer.prices,
        certificate.objective(answer.log_measure, point),
        total,
        answer.flow_residual,
        answer.box_residual,
        status_of(total, len(point), gap) if kept else Status.FEASIBLE,
        answer.report,
        budget_prices=prices,
        use=use,
        budgets=domain.budgets,
    )


def with_measure(answer: BudgetedProjection, point: Floats, measure: Floats, gap: float) -> BudgetedProjection:
    """The same proof for another occupancy measure `[h, s, a]`, one that keeps the budgets better."""
    with np.errstate(divide="ignore"):
        log_measure = np.log(measure)
    distance, use = certificate.objective(log_measure, point), answer.budgets.use(measure[None])[0]
    found = replace(answer, log_measure=log_measure, objective=distance, gap=distance - answer.bound, use=use)
    kept = found.budget_residual <= KEPT
    return replace(found, status=status_of(found.gap, len(point), gap) if kept else Status.FEASIBLE)


def explained(answer: BudgetedProjection) -> BudgetedProjection:
    """The answer; without a proof, its note says by how much it exceeds a budget."""
    if answer.status is Status.OPTIMAL:
        return answer
    note = f"budgets are exceeded by {answer.budget_residual:.3g} of their sizes; where the weights leave no measure "
    note += "that keeps them, there is none to find"
    return replace(answer, report=answer.report._replace(note=note))


@dataclass(frozen=True, eq=False)
class _At:
    """What is known at some prices, in units in which usage is at most 1."""

    prices: Floats  # [i]
    answer: Projection  # for weights that are divided by `exp(shift)`
    shift: Floats  # [h]
    slope: Floats  # [i], by how much the budgets are exceeded
    height: float  # of the dual, up to a constant

    @property
    def residual(self) -> float:
        """0 at the top: no budget is exceeded, and what has a price is used up."""
        return float(np.abs(np.minimum(self.prices, -self.slope)).max())

    @property
    def unused(self) -> float:
        """What is paid for budgets that are not used up: the part of the gap that is due to the prices."""
        return float(-self.prices @ self.slope)

    @property
    def projection(self) -> Projection:
        """The answer for the weights as they are: the price of a state pays for the factors of all steps to come."""
        met = (self.answer.log_measure > -np.inf).any(axis=-1)
        to_come = np.cumsum(self.shift[::-1])[::-1][:, None]
        return replace(self.answer, prices=np.where(met, self.answer.prices - to_come, 0.0))


class BudgetedProjector(Projector):
    """The projections of an oracle, within budgets."""

    domain: BudgetedPolicies

    def __init__(self, oracle: ProjectionOracle, domain: BudgetedPolicies, inside: Projector, gap: float) -> None:
        super().__init__(oracle, domain)
        easiest(domain)  # says what is wrong with budgets that cannot be kept
        self._inside, self._gap = inside, gap
        self._usage = domain.budgets.usage.reshape(len(domain.budgets), -1) / domain.budgets.sizes[:, None]
        self._limits = domain.budgets.limits / domain.budgets.sizes

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        began = perf_counter()
        point = self.checked(log_point)
        sizes = self.domain.budgets.sizes
        start = sizes * near.budget_prices if isinstance(near, BudgetedProjection) else np.zeros(len(sizes))
        top, steps = self._searched(point, self._at(point, start, near))
        if top.residual > KEPT or top.unused > self._gap * len(point):
            top, more = self._followed(point)
            steps += more
        found = within_budgets(self.domain, point, top.projection, top.prices / sizes, self._gap)
        report = Report(self.name, perf_counter() - began, steps, note=found.report.note)
        return explained(replace(found, report=report)).require(Status.OPTIMAL)

    def _searched(self, point: Floats, at: _At) -> tuple[_At, int]:
        """The top of the dual, and how many projections it took."""
        count = 1
        for _ in range(SEARCH_STEPS):
            if at.residual <= 0.1 * KEPT and abs(at.unused) <= 0.1 * self._gap * len(point):
                break
            step, asked = self._newton_step(point, at)
            ahead, tried = self._climbed(point, at, step)
            count += asked + tried
            if ahead is None:
                break
            at = ahead
        return at, count

    def _followed(self, point: Floats) -> tuple[_At, int]:
        """The top for a point, from those of points nearer to equal weights, and the projections that it took.

        Where logarithms of weights are large, the dual is nearly flat between sharp edges, and Newton's method sees no
        curvature. As they double, the prices nearly do.
        """
        largest = float(np.abs(point[np.isfinite(point)]).max(initial=0.0))
        stages, count = max(0, ceil(log2(max(largest, 1.0) / EVEN_WEIGHTS))), 0
        prices = np.zeros(len(self._limits))
        for stage in reversed(range(stages + 1)):
            scaled = point / 2.0**stage
            at, steps = self._searched(scaled, self._at(scaled, 2.0 * prices, None))
            prices, count = at.prices, count + steps
        return at, count

    def _newton_step(self, point: Floats, at: _At) -> tuple[Floats, int]:
        """The step to the top of a quadratic model over prices of at least 0, and the projections that it took."""
        count = len(at.prices)
        curvature = np.empty((count, count))
        for i in range(count):
            moved = at.prices.copy()
            moved[i] += DIFFERENCE
            curvature[:, i] = (at.slope - self._at(point, moved, at.answer).slope) / DIFFERENCE
        curvature = (curvature + curvature.T) / 2.0
        # Budgets may depend on each other, and differences are rounded: the model has to curve in every direction.
        values, vectors = np.linalg.eigh(curvature)
        roots = np.sqrt(np.maximum(values, max(1e-14, 1e-10 * float(values.max()))))
        target = roots * (vectors.T @ at.prices) + (vectors.T @ at.slope) / roots
        step = scipy.optimize.nnls(roots[:, None] * vectors.T, target)[0] - at.prices
        longest = LONGEST_STEP + float(at.prices.max())
        return step * min(1.0, longest / max(longest, float(np.abs(step).max()))), count

    def _climbed(self, point: Floats, at: _At, step: Floats) -> tuple[_At | None, int]:
        """The first of shorter and shorter steps that climbs, or that halves the residual where heights are rounded."""
        share, tried = 1.0, 0
        while share > SHORTEST_STEP:
            prices = np.maximum(0.0, at.prices + share * step)
            tried += 1
            try:
                ahead = self._at(point, prices, at.answer)
            except Unsolved:  # the weights are too far apart there
                ahead = None
            if ahead is not None:
                wanted = 1e-4 * float(at.slope @ (prices - at.prices))
                if ahead.residual <= 0.5 * at.residual or (wanted > 0.0 and ahead.height >= at.height + wanted):
                    return ahead, tried
            share /= 2.0
        return None, tried

    def _at(self, point: Floats, prices: Floats, near: Projection | None) -> _At:
        tilted = point - multiply(prices, self._usage).reshape(point.shape)
        # Usage of any sign may raise weights beyond all numbers. A factor of all weights of a step moves no measure.
        highest = tilted.max(axis=(1, 2))
        shift = np.where(highest > 0.5 * LARGEST_EXPONENT, highest, 0.0)
        answer = self._inside.project(tilted - shift[:, None, None], near)
        slope = multiply(self._usage, answer.measure.reshape(-1)) - self._limits
        used: Bools = answer.log_measure > -np.inf
        distance = float((answer.measure[used] * (answer.log_measure[used] - point[used])).sum())
        return _At(prices, answer, shift, slope, distance + float(prices @ slope))
