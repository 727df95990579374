"""Relative-entropy projection by Newton's method on prices; see `amdp.kernels.entropy` for the steps.

Over a kernel the dual has one free variable for each state of each step. Over a box each pair's row is eliminated
exactly: at given prices it is a clipped multiple of the weights, found by a search in one dimension; what is left is
again a smooth problem in the prices, with kinks in its curvature where a bound is met. Within budgets the prices of
these are searched around it: see `amdp.oracles.projection.budgets`.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from amdp import kernels
from amdp.arrays import Bools, Floats, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.blocks import Projecting
from amdp.kernels.rows import BOX, DENSE, SPARSE, BoxRows, DenseRows, SparseRows
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import BudgetedPolicies, Domain, MarkovPolicies
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Report, Status
from amdp.oracles.polytope import has_polytope
from amdp.oracles.projection.base import LARGEST_EXPONENT, Projection, Projector, status_of
from amdp.oracles.projection.budgets import BudgetedProjector
from amdp.oracles.projection.certificate import certified, supported

FAR_LOG_WEIGHT = 1e10  # logarithms of weights whose rounding may be seen in the gap
Arrays = tuple[Any, ...]  # what the compiled code takes for `FlowRows`


class Solution(NamedTuple):
    """Where Newton's method stopped."""

    prices: Floats  # [h, s]
    gap: float
    steps: int  # -1: nothing was done, for a pair has no weight
    dual_steps: int


@dataclass(frozen=True)
class NewtonProjection:
    """Minimize `KL(q || w)` over occupancy measures by feasible Newton steps on the prices."""

    accuracy: float = 1e-10  # in L1, of each step of the measure: the gap aimed at is half its square
    gap: float = 1e-9  # that must be proved, for each step
    iterations: int = 500
    factored_states: int = 48  # up to here steps are solved by block factors, above by conjugate gradients
    requires: ClassVar[tuple[str, ...]] = ()
    supports = staticmethod(has_polytope)

    def __post_init__(self) -> None:
        require_newton_settings(self)

    def bind(self, domain: Domain) -> Projector:
        if isinstance(domain, BudgetedPolicies):
            return BudgetedProjector(self, domain, self.bind(domain.unlimited), self.gap)
        over_box = has_polytope(domain) and isinstance(domain.dynamics, BernsteinBox)
        return _BoxProjector(self, domain) if over_box else _KernelProjector(self, domain)


def require_newton_settings(settings: object) -> None:
    """Refuse an accuracy, a gap or numbers of steps and states that mean nothing."""
    for name in ("accuracy", "gap"):
        value = getattr(settings, name)
        if not isinstance(value, int | float) or not 0 <= value < inf:
            raise InvalidInput(f"{value!r}; it must be a number that is at least 0", name)
    for name in ("iterations", "factored_states"):
        require_whole(name, getattr(settings, name))


class _NewtonProjector(Projector):
    oracle: NewtonProjection
    domain: MarkovPolicies

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        began = perf_counter()
        point = np.array(self.checked(log_point), order="C")
        return _explained(self._projected(point, self.start(near), began), point).require(Status.OPTIMAL)

    @abstractmethod
    def _projected(self, point: Floats, start: Floats | None, began: float) -> Projection:
        """The answer for a point, proved or not, from given prices or none; `began` is when."""

    def _solved(
        self, rows: Arrays, pairs: Floats, reached: Bools, closed: bool, start: Floats | None, log_measure: Floats
    ) -> Solution:
        """Prices, gap, steps and dual steps, from given prices, from zero or softly; fills in the measure."""
        steps, states = reached.shape
        starts = _NO_ENTRIES if start is None else np.array(start[None], dtype=np.float64, order="C")
        prices = np.empty((steps, states))
        problem = rows, pairs, self.domain.initial, reached, closed, starts
        return Solution(prices, *kernels.entropy.project(*problem, *self._limits(), prices, log_measure))

    def _limits(self) -> tuple[float, float, int, bool]:
        """The gap aimed at, the gap that must be proved, the most Newton steps, and whether these are by factors."""
        settings, (steps, states, _) = self.oracle, self.domain.shape
        proved = settings.gap * steps
        aim = min(0.5 * settings.accuracy**2, proved)
        return aim, proved, settings.iterations, states <= settings.factored_states

    def _answer(self, rows: Arrays, point: Floats, log_measure: Floats, solution: Solution, began: float) -> Projection:
        initial, states = self.domain.initial, self.domain.shape[1]
        judged = kernels.entropy.judge(rows, np.exp(point), point, initial, states, np.exp(log_measure), log_measure)
        note = f"{solution.dual_steps} dual steps" if solution.dual_steps else ""
        report = Report(self.name, perf_counter() - began, solution.steps, note=note)
        status = status_of(solution.gap, len(log_measure), self.oracle.gap)
        measure = log_measure.reshape(self.point_shape)
        return Projection(measure, solution.prices, judged[0], solution.gap, judged[1], judged[2], status, report)


class _KernelProjector(_NewtonProjector):
    def __init__(self, oracle: NewtonProjection, domain: Domain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain.dynamics, SingleKernel)
        self._reached = domain.dynamics.reachable(domain.initial)
        self._rows = kernel_rows(domain.dynamics)

    def compiled(self) -> Projecting:
        return Projecting(self._rows, _NOWHERE, self._reached, self.domain.initial, LARGEST_EXPONENT, *self._limits())

    def _projected(self, point: Floats, start: Floats | None, began: float) -> Projection:
        steps = len(point)
        log_measure = np.empty(point.shape)
        weights, by_pair = point.reshape(steps, -1), log_measure.reshape(steps, -1)
        solution = self._solved(self._rows, weights, self._reached, False, start, by_pair[..., None])
        if solution.steps < 0:
            usable = supported(self.domain, point)
            reached = np.asarray((usable > -inf).any(axis=-1))
            solution = self._solved(self._rows, usable.reshape(steps, -1), reached, True, start, by_pair[..., None])
        return self._answer(self._rows, weights[..., None], by_pair[..., None], solution, began)


class _BoxProjector(_NewtonProjector):
    def __init__(self, oracle: NewtonProjection, domain: Domain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain.dynamics, BernsteinBox)
        assert isinstance(domain, MarkovPolicies)
        steps, states, actions = domain.shape
        self._flat = steps, states * actions, states
        self._usable, self._reached = np.empty(self.point_shape, bool), np.empty((steps, states), bool)
        lower, upper = (np.array(bound, order="C") for bound in (domain.dynamics.lower, domain.dynamics.upper))
        if not kernels.boxes.support(lower, upper, domain.initial, self._usable, self._reached):
            supported(domain, np.zeros(self.point_shape))  # says what is wrong
        self._bounds = [np.empty((steps - 1, states * actions, states)) for _ in range(4)]
        kernels.entropy.lay_out_all(lower, upper, *self._bounds)

    def compiled(self) -> Projecting:
        """With copies of the bounds, and of where mass may go: a game writes to them as the box changes."""
        bounds = [bound.copy() for bound in self._bounds]
        flow = BOX, _NOT_DENSE, _NOT_SPARSE, tuple(self._laid_out(bounds))
        usable, reached = self._usable.reshape(self._flat).copy(), self._reached.copy()
        return Projecting(flow, usable, reached, self.domain.initial, LARGEST_EXPONENT, *self._limits())

    def _projected(self, point: Floats, start: Floats | None, began: float) -> Projection:
        """Where masses are too small for the compiled sums, the plain certificate has to agree."""
        projection = self._compiled(point.reshape(self._flat), start, began)
        log_measure = projection.log_measure.reshape(self._flat)
        if projection.status is not Status.OPTIMAL or not kernels.entropy.has_faint_mass(log_measure):
            return projection
        plain = certified(self.domain, point, projection.prices, projection.report)
        if status_of(plain.gap, len(point), self.oracle.gap) is Status.OPTIMAL:
            return projection
        return replace(projection, gap=max(projection.gap, plain.gap), status=Status.FEASIBLE)

    def _compiled(self, point: Floats, start: Floats | None, began: float) -> Projection:
        arrays, pairs, reached = tuple(self._laid_out(self._bounds)), np.zeros(self._flat[:2]), self._reached
        if not kernels.entropy.prepare(arrays, point, self._usable.reshape(self._flat), pairs):
            usable = supported(self.domain, point.reshape(self.point_shape)) > -inf
            kernels.entropy.prepare(arrays, point, usable.reshape(self._flat), pairs)
            reached = np.asarray(usable.any(axis=(2, 3)))
        log_measure = np.empty(self._flat)
        flow = BOX, _NOT_DENSE, _NOT_SPARSE, arrays
        solution = self._solved(flow, pairs, reached, True, start, log_measure)
        return self._answer(flow, point, log_measure, solution, began)

    def _laid_out(self, bounds: list[Floats]) -> BoxRows:
        """Rows with room for the weights and for what is chosen: new ones, so that no answer depends on the last."""
        steps, width, states = self._flat
        entries = [np.empty((steps - 1, width, states)) for _ in range(4)]
        masses = [np.empty((steps - 1, width)) for _ in range(4)]
        return BoxRows(*bounds, *entries[:2], *masses[:2], *entries[2:], *masses[2:])


def _explained(answer: Projection, point: Floats) -> Projection:
    """The answer; without a proof, it names logarithms of weights that are too large to leave digits for one."""
    if answer.status is Status.OPTIMAL:
        return answer
    largest = float(np.abs(point[np.isfinite(point)]).max(initial=0.0))
    if largest <= FAR_LOG_WEIGHT:
        return answer
    note = f"logarithms of weights reach {largest:g}, and their rounding alone may leave such a gap: take smaller steps"
    return replace(answer, report=answer.report._replace(note=note))


_NO_ENTRIES, _NO_ROWS = np.empty((0, 0, 0)), np.empty((0, 0))
_NOWHERE = np.empty((0, 0, 0), bool)
_NOT_DENSE: Arrays = (_NO_ENTRIES,)
_NOT_SPARSE: Arrays = np.empty((0, 0), np.int64), np.empty(0, np.int32), np.empty(0)
_NOT_A_BOX: Arrays = *(_NO_ENTRIES,) * 6, *(_NO_ROWS,) * 2, *(_NO_ENTRIES,) * 2, *(_NO_ROWS,) * 2


def kernel_rows(kernel: SingleKernel) -> Arrays:
    """The rows of a kernel for the solver; they are not copied."""
    rows = kernel.rows
    if isinstance(rows, DenseRows):
        return DENSE, tuple(rows), _NOT_SPARSE, _NOT_A_BOX
    assert isinstance(rows, SparseRows)
    return SPARSE, _NOT_DENSE, tuple(rows), _NOT_A_BOX
