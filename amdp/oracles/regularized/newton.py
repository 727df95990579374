"""Regularized minimization by Newton's method on prices; see `amdp.kernels.regularized` for the steps.

Entropy alone is a projection, `<q, c> + e sum q ln q = e KL(q || exp(-c/e))` up to constants, and is handed to the
method for projections, which keeps masses as logarithms: those of entropy alone may be smaller than any number.
"""

from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import ClassVar

import numpy as np

from amdp import kernels
from amdp.arrays import Floats
from amdp.model.domains import Domain
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Report, Status
from amdp.oracles.projection.base import Projection, status_of
from amdp.oracles.projection.newton import NewtonProjection, kernel_rows, require_newton_settings
from amdp.oracles.regularized import certificate
from amdp.oracles.regularized.base import Minimizer, RegularizedSolver, is_one_kernel
from amdp.oracles.regularized.regularizers import Regularizer

FAR = 1e12  # times the weights: costs of this size may have lost the digits that an answer needs
_NO_START = np.empty((0, 0, 0))


@dataclass(frozen=True)
class NewtonMinimizer:
    """Minimize `<q, c> + sum psi(q)` over occupancy measures by Newton steps on the prices."""

    accuracy: float = 1e-10  # relative, of the masses: the gap aimed at is half its square for each unit of weight
    gap: float = 1e-9  # that must be proved, for each step
    iterations: int = 500
    factored_states: int = 48  # up to here steps are solved by block factors, above by conjugate gradients
    requires: ClassVar[tuple[str, ...]] = ()
    supports = staticmethod(is_one_kernel)

    def __post_init__(self) -> None:
        require_newton_settings(self)

    def bind(self, domain: Domain) -> RegularizedSolver:
        return _NewtonSolver(self, domain)


class _NewtonSolver(RegularizedSolver):
    oracle: NewtonMinimizer

    def __init__(self, oracle: NewtonMinimizer, domain: Domain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain.dynamics, SingleKernel)
        self._rows = kernel_rows(domain.dynamics)
        self._reached = domain.dynamics.reachable(domain.initial)
        self._pairs = certificate.reached_pairs(self.domain)
        self._projector = NewtonProjection(**vars(oracle)).bind(domain)

    def minimize(self, cost: Floats, regularizer: Regularizer, near: Minimizer | None = None) -> Minimizer:
        began = perf_counter()
        checked = np.array(self.checked(cost, regularizer), order="C")
        weights = regularizer.weights
        is_entropy = weights.tsallis == 0.0 and weights.barrier == 0.0
        found = (self._projected if is_entropy else self._solved)(checked, regularizer, self.start(near))
        took = found.report._replace(oracle=self.name, seconds=perf_counter() - began)
        return replace(found, report=took).require(Status.OPTIMAL)

    def _solved(self, cost: Floats, regularizer: Regularizer, start: Floats | None) -> Minimizer:
        settings, (steps, states, actions) = self.oracle, self.domain.shape
        weights, proved = regularizer.weights, settings.gap * steps
        aim = min(0.5 * settings.accuracy**2 * sum(weights), proved)
        limits = aim, proved, settings.iterations, states <= settings.factored_states
        starts = _NO_START if start is None or not np.isfinite(start).all() else np.array(start[None], order="C")
        prices, logs = np.zeros((steps, states)), np.empty((steps, states * actions))
        problem = self._rows, cost.reshape(steps, -1), self.domain.initial, self._reached, tuple(weights), starts
        gap, count, value, residual = kernels.regularized.minimize(*problem, *limits, prices, logs)
        status = status_of(gap, steps, settings.gap)
        note = "" if status is Status.OPTIMAL else _note(cost[self._pairs], sum(weights))
        report = Report(self.name, iterations=count, note=note)
        return Minimizer(logs.reshape(cost.shape), prices, value, gap, residual, 0.0, status, report)

    def _projected(self, cost: Floats, regularizer: Regularizer, start: Floats | None) -> Minimizer:
        """By the projection of `exp(-c/e)`, each step's costs counted from their least one."""
        weight, least = regularizer.weights.entropy, cost.min(axis=(1, 2), keepdims=True)
        # By how much the prices of both problems differ: the slope of `e q ln q` at 1 and the least cost, step by step.
        to_come = np.cumsum((least[:, 0] + weight)[::-1], axis=0)[::-1]
        found = self._projector.project((least - cost) / weight, _at(start, to_come, weight))
        prices = np.where(self._reached, weight * found.prices + to_come, 0.0)
        value = certificate.objective(cost, regularizer, found.measure, self._pairs)
        gap = weight * found.gap
        status = status_of(gap, len(cost), self.oracle.gap)
        residual, report = found.flow_residual, found.report
        return Minimizer(found.log_measure, prices, value, gap, residual, 0.0, status, report)


def _note(cost: Floats, weight: float) -> str:
    """Why no proof was found, as far as the numbers tell."""
    largest = float(np.abs(cost).max())
    if largest <= FAR * weight:
        return ""
    return f"costs reach {largest:g} and the weights {weight:g}: rounding alone may leave such a gap"


def _at(prices: Floats | None, to_come: Floats, weight: float) -> Projection | None:
    """A projection to start from: only its prices are read."""
    if prices is None:
        return None
    return Projection(prices, (prices - to_come) / weight, inf, inf, inf, inf, Status.FAILED, Report(""))
