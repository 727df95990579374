"""Relative-entropy projection onto the occupancy measures of an L1 ball: quasi-Newton steps on the reduced dual.

With prices `v[h, s]`, zero at the start, and `phi[h, s, a]` the least of `sum_y p (log p - log w + v[h+1, y])` over the
rows of the ball, every occupancy measure has

    sum q (log q - log w)  >=  -F(v),    F = sum_h log sum_{s,a} exp(v[h, s] - phi[h, s, a]),

with equality at the minimum of `F`. Its slope is the flow that leaves a state minus the flow that enters it. The row of
a ball nearest to `u` is `max(c u, min(d u, center))`: half the radius lies above the center, half below [derived].
"""

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from amdp.arrays import Bools, Floats
from amdp.errors import InvalidInput
from amdp.kernels import blas
from amdp.kernels.threads import one_thread
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.l1_ball import L1Ball
from amdp.oracles.base import Report, Status
from amdp.oracles.projection.base import Projection, Projector, shares, status_of
from amdp.oracles.solving import require_limits

# Priced weights below exp(-600) of the largest of their row are raised to that, which lowers the bound.
FAINT_LOG_RANGE = 600.0


@dataclass(frozen=True)
class L1Descent:
    """Minimize `KL(q || w)` over the occupancy measures of an L1 ball."""

    gap: float = 1e-8  # that must be proved, for each step
    iterations: int = 2000
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_limits(self)

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, MarkovPolicies) and isinstance(domain.dynamics, L1Ball)

    def bind(self, domain: Domain) -> Projector:
        return _L1Projector(self, domain)


class _Dual(NamedTuple):
    """The dual value of prices, its gradient, and the primal point that attains it."""

    value: float  # F
    slope: Floats  # [h, s]
    policy: Floats  # [h, s, a]
    rows: Floats  # [h, s, a, y]


class _L1Projector(Projector):
    oracle: L1Descent

    def __init__(self, oracle: L1Descent, domain: Domain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain.dynamics, L1Ball)
        self._ball = domain.dynamics
        self.point_shape = (*domain.shape, domain.shape[1])

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        began = perf_counter()
        point = self.checked(log_point).copy()
        point[-1, :, :, 1:] = -np.inf
        self._close(point)
        at = self.start(near)
        with one_thread(blas.LARGE):  # its matrices are small, and their factors would wait for a second thread
            optimum = scipy.optimize.minimize(
                self._sloped,
                np.zeros(point.shape[:2]).reshape(-1) if at is None else at.reshape(-1),
                args=(point,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.oracle.iterations, "maxcor": 30, "ftol": 0.0, "gtol": 1e-10},
            )
        prices = optimum.x.reshape(point.shape[:2])
        report = Report(self.name, perf_counter() - began, int(optimum.nit))
        return self._proved(point, prices, report).require(Status.OPTIMAL)

    def _proved(self, point: Floats, prices: Floats, report: Report) -> Projection:
        """The feasible measure that prices stand for, with its objective and the gap that they prove."""
        dual = self._dual(prices, point)
        measure = self._walked(dual)
        met = measure > 0.0
        distance = float((measure[met] * (np.log(measure[met]) - point[met])).sum())
        objective = distance + float(np.exp(point).sum() - measure.sum())
        gap = abs(distance + dual.value)  # below zero by rounding only: more would be no proof
        with np.errstate(divide="ignore"):
            log_measure = np.log(measure)
        entering, leaving = measure[:-1].sum(axis=(1, 2)), measure[1:].sum(axis=(2, 3))
        away = np.abs(dual.rows - self._ball.center).sum(axis=-1)[:-1]
        flow_residual = float(np.abs(entering - leaving).max(initial=0.0))
        ball_residual = float((away - self._ball.radius[:-1]).max(initial=0.0))
        status = status_of(gap, len(point), self.oracle.gap)
        return Projection(log_measure, prices, objective, gap, flow_residual, ball_residual, status, report)

    def _close(self, point: Floats) -> None:
        """Take the weight of moves into states without any, backward; refuse what leaves no row or no start."""
        dead = np.asarray(np.isneginf(point[-1, :, :, 0]).all(axis=-1))
        for h in reversed(range(len(point) - 1)):
            if (self._barred(h, point[h]) & ~np.isneginf(point[h]).all(axis=-1)).any():
                reason = "the point has no mass on moves that a row of the ball needs"
                raise InvalidInput(f"{reason}; give weight to all moves")
            point[h][..., dead] = -np.inf
            point[h][self._barred(h, point[h])] = -np.inf
            dead = np.asarray(np.isneginf(point[h]).all(axis=(1, 2)))
        if dead[self.domain.initial]:
            raise InvalidInput(
                f"the point has no mass on any occupancy measure from state {self.domain.initial}; give weight to the "
                "actions that should stay possible"
            )

    def _barred(self, h: int, weights: Floats) -> Bools:
        """The pairs `[s, a]` without weight on enough moves for any row of their ball."""
        needed = np.where(np.isneginf(weights), self._ball.center[h], 0.0).sum(axis=-1)
        return np.asarray(needed > self._ball.radius[h] / 2.0 + 1e-12)

    def _sloped(self, flat: Floats, point: Floats) -> tuple[float, Floats]:
        dual = self._dual(flat.reshape(point.shape[:2]), point)
        return dual.value, dual.slope.reshape(-1)

    def _dual(self, prices: Floats, point: Floats) -> _Dual:
        steps, states, _ = self.domain.shape
        rows = np.zeros(point.shape)
        policy = np.empty(self.domain.shape)
        slope = np.zeros((steps, states))
        value = 0.0
        for h in range(steps):
            if h < steps - 1:
                priced = _raised(point[h] - prices[h + 1])
                rows[h] = nearest_rows(priced, self._ball.center[h], self._ball.radius[h])
                phi = np.where(np.isneginf(priced).all(axis=-1), np.inf, _cost(rows[h], priced))
            else:
                phi = -point[h, :, :, 0]
            here = prices[h][:, None] - phi
            policy[h] = shares(-phi)
            if h == 0:  # all mass is in the initial state, whose price cancels
                here = np.where(np.arange(states)[:, None] == self.domain.initial, -phi, -np.inf)
            value += float(scipy.special.logsumexp(here))
            mass = shares(here.reshape(-1)).reshape(here.shape)
            if h > 0:
                slope[h] += mass.sum(axis=-1)
            if h < steps - 1:
                slope[h + 1] -= np.einsum("sa,say->y", mass, rows[h])
        return _Dual(value, slope, policy, rows)

    def _walked(self, dual: _Dual) -> Floats:
        """The measure `[h, s, a, y]` of a policy and rows: feasible whatever the prices are."""
        measure = np.zeros(self.point_shape)
        at = np.zeros(self.domain.shape[1])
        at[self.domain.initial] = 1.0
        for h in range(len(measure) - 1):
            measure[h] = (at[:, None] * dual.policy[h])[..., None] * dual.rows[h]
            at = measure[h].sum(axis=(0, 1))
        measure[-1, :, :, 0] = at[:, None] * dual.policy[-1]
        return measure


def nearest_rows(log_weights: Floats, center: Floats, radius: Floats) -> Floats:
    """The rows of a ball that are nearest, in relative entropy, to weights given as logarithms `[..., y]`."""
    free = shares(_raised(log_weights))
    inside = np.abs(free - center).sum(axis=-1) <= radius
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(free > 0.0, center / free, np.inf)
    order = np.argsort(ratio, axis=-1)
    weight, middle = (np.take_along_axis(each, order, axis=-1) for each in (free, center))
    half = radius[..., None] / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        above = (half + np.cumsum(middle, axis=-1)) / np.cumsum(weight, axis=-1)
        tails = np.cumsum(weight[..., ::-1], axis=-1)
        below = (np.cumsum(middle[..., ::-1], axis=-1) - half) / tails
    factor_above = np.nanmin(np.where(np.isnan(above), np.inf, above), axis=-1, keepdims=True)
    factor_below = np.max(np.where(tails > 0.0, below, -np.inf), axis=-1, keepdims=True)
    moved = np.maximum(factor_above * free, np.minimum(factor_below * free, center))
    moved /= moved.sum(axis=-1, keepdims=True)
    result: Floats = np.where(inside[..., None], free, moved)
    return result


def _raised(log_weights: Floats) -> Floats:
    """Weights that are not lost beside the largest of their row; no row costs more by them, so bounds stay bounds."""
    faintest = log_weights.max(axis=-1, keepdims=True) - FAINT_LOG_RANGE
    result: Floats = np.where(np.isneginf(log_weights), -np.inf, np.maximum(log_weights, faintest))
    return result


def _cost(rows: Floats, priced: Floats) -> Floats:
    """`sum_y p (log p - log w)`, `[s, a]`, for weights that hold the prices."""
    met = rows > 0.0
    terms = np.log(np.where(met, rows, 1.0)) - np.where(met, priced, 0.0)
    result: Floats = (np.where(met, rows, 0.0) * terms).sum(axis=-1)
    return result
