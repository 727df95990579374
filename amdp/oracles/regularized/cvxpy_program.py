"""Regularized minimization through cvxpy: one conic program for each kind of regularizer, its numbers parameters.

Costs may be replaced by reduced costs at any prices, which changes the objective by a constant only. The solver is
given those at prices that suit a first guess, so that costs of 1e6 reach it in a scale that it can bear. Its
multipliers are added to these prices.
"""

from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import ClassVar

import numpy as np

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.kernels.layout import Weights
from amdp.model.domains import Domain, MarkovPolicies
from amdp.oracles.base import Report, Status
from amdp.oracles.polytope import polytope
from amdp.oracles.projection.base import status_of
from amdp.oracles.projection.cvxpy_program import SPELLING
from amdp.oracles.regularized import certificate
from amdp.oracles.regularized.base import Minimizer, RegularizedSolver, is_one_kernel
from amdp.oracles.regularized.regularizers import Regularizer
from amdp.oracles.solving import require_limits


@dataclass(frozen=True)
class CvxpyMinimizer:
    """Minimize `<q, c> + sum psi(q)` over occupancy measures by a conic solver of cvxpy's."""

    solver: str = "CLARABEL"
    seconds: float = inf  # for each solve
    gap: float = 1e-8  # that must be proved, for each step
    requires: ClassVar[tuple[str, ...]] = ("cvxpy",)
    supports = staticmethod(is_one_kernel)

    def __post_init__(self) -> None:
        require_limits(self)
        if self.solver not in SPELLING:
            raise InvalidInput(f"{self.solver!r}; cvxpy is asked for one of {', '.join(SPELLING)}", "solver")

    def bind(self, domain: Domain) -> RegularizedSolver:
        return _CvxpySolver(self, domain)


class _CvxpySolver(RegularizedSolver):
    oracle: CvxpyMinimizer

    def __init__(self, oracle: CvxpyMinimizer, domain: Domain) -> None:
        super().__init__(oracle, domain)
        self._programs: dict[tuple[bool, ...], _Program] = {}

    def minimize(self, cost: Floats, regularizer: Regularizer, near: Minimizer | None = None) -> Minimizer:
        """Solve, then rebuild the measure from the solver's multipliers or from its measure, whichever proves more."""
        began = perf_counter()
        checked, start = self.checked(cost, regularizer), self.start(near)
        at = self._guess(checked, regularizer) if start is None else start
        program = self._written(regularizer.weights)
        reduced = certificate.reduced_costs(self.domain, checked, at)
        status, prices, chances = program.solve(reduced, regularizer.weights)
        candidates = [at] if prices is None else [at + prices]
        if chances is not None:
            candidates.append(certificate.prices_for(self.domain, checked, regularizer, chances))
        report = Report(
            self.name, 0.0, program.iterations, solver=program.name, note="" if status == "optimal" else status
        )
        answers = [certificate.certified(self.domain, checked, regularizer, each, report) for each in candidates]
        best = min(answers, key=lambda answer: answer.gap if answer.gap == answer.gap else inf)
        proved = status_of(best.gap, len(checked), self.oracle.gap)
        took = report._replace(seconds=perf_counter() - began)
        return replace(best, status=proved, report=took).require(Status.OPTIMAL)

    def forget(self) -> None:
        self._programs = {}

    def _guess(self, cost: Floats, regularizer: Regularizer) -> Floats:
        """Prices that suit the chances of the policy whose states are met alike."""
        reached = certificate.reached_pairs(self.domain)[:, :, 0]
        alike = np.where(reached, 1.0 / reached.sum(axis=1, keepdims=True), 0.0)
        prices = certificate.prices_for(self.domain, cost, regularizer, alike)
        found = certificate.certified(self.domain, cost, regularizer, prices, Report(self.name))
        return certificate.prices_for(self.domain, cost, regularizer, found.measure.sum(axis=2))

    def _written(self, weights: Weights) -> "_Program":
        """The program of the regularizers that have a weight, which is written once."""
        used = tuple(weight > 0.0 for weight in weights)
        if used not in self._programs:
            self._programs[used] = _Program(self.domain, weights, self.oracle)
        return self._programs[used]


class _Program:
    """One cvxpy problem on the pairs that can be reached; costs and weights are parameters."""

    def __init__(self, domain: MarkovPolicies, weights: Weights, settings: CvxpyMinimizer) -> None:
        import cvxpy  # half a second: only who asks for it pays

        from amdp.oracles import cvxpy_solvers

        self._reached = certificate.reached_pairs(domain)
        rows, columns = polytope(domain), np.flatnonzero(self._reached)
        matrix = rows.matrix[:, columns].tocsr()
        self._full = np.diff(matrix.indptr) > 0
        self._x, self._cost = cvxpy.Variable(len(columns)), cvxpy.Parameter(len(columns))
        forms = -cvxpy.entr(self._x), -cvxpy.sqrt(self._x), -cvxpy.log(self._x)
        self._weights = [cvxpy.Parameter(nonneg=True) if weight > 0.0 else None for weight in weights]
        objective = self._cost @ self._x
        for given, form in zip(self._weights, forms, strict=True):
            objective = objective if given is None else objective + given * cvxpy.sum(form)
        constraints = cvxpy_solvers.constraints(self._x, rows, matrix, self._full)
        limits = settings.solver, settings.seconds, SPELLING[settings.solver]
        self._program = cvxpy_solvers.Program(objective, constraints, *limits)
        self.name, self.iterations = self._program.name, 0

    def solve(self, cost: Floats, weights: Weights) -> tuple[str, Floats | None, Floats | None]:
        """The solver's status, its prices `[h, s]` and its chances of the states `[h, s]`, where it has them."""
        scale = max(weights)  # the solver's tolerances are meant for numbers of size 1
        self._cost.value = cost[self._reached] / scale
        for given, weight in zip(self._weights, weights, strict=True):
            if given is not None:
                given.value = weight / scale
        failure = self._program.failure()
        if failure:
            return f"{Status.FAILED}: {failure}", None, None
        self.iterations = self._program.iterations
        shape = self._reached.shape
        return str(self._program.problem.status), self._prices(shape, scale), self._chances(shape)

    def _prices(self, shape: tuple[int, ...], scale: float) -> Floats | None:
        multipliers = self._program.problem.constraints[0].dual_value
        if multipliers is None or not np.isfinite(multipliers).all():
            return None
        prices = np.zeros(shape[0] * shape[1])
        prices[self._full] = -scale * multipliers
        return prices.reshape(shape[:2])

    def _chances(self, shape: tuple[int, ...]) -> Floats | None:
        if self._x.value is None or not np.isfinite(self._x.value).all():
            return None
        measure = np.zeros(shape)
        measure[self._reached] = np.maximum(0.0, self._x.value)
        chances: Floats = measure.sum(axis=2)
        return chances
