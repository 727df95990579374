"""Relative-entropy projection through cvxpy: an exponential-cone program, written once with the weights as a parameter.

For feasible `q` and any prices `v`, weights `w[h,s,a,y] exp(v[h,s] - v[h+1,y])` change the objective by a constant
only. The solver is given the weights at prices under which they are close to an occupancy measure, so weights of
1e-300 and losses of 1e4 reach it in a scale that it can bear. Its multipliers are added to these prices.
"""

from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Bools, Floats
from amdp.errors import InvalidInput
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain
from amdp.oracles.base import Report, Status
from amdp.oracles.budgets import easiest, policies_of
from amdp.oracles.polytope import has_polytope, polytope
from amdp.oracles.projection import certificate
from amdp.oracles.projection.base import Projection, Projector, status_of
from amdp.oracles.projection.budgets import explained, with_measure, within_budgets
from amdp.oracles.solving import require_limits

Positions = NDArray[np.integer]

_TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "accept_unknown": True}
SPELLING: dict[str, tuple[str, dict[str, Any]]] = {
    "CLARABEL": ("time_limit", _TIGHT),
    "SCS": ("time_limit_secs", {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iters": 100_000}),
}


@dataclass(frozen=True)
class CvxpyProjection:
    """Minimize `KL(q || w)` over occupancy measures by a conic solver of cvxpy's."""

    solver: str = "CLARABEL"
    seconds: float = inf  # for each solve
    gap: float = 1e-8  # that must be proved, for each step
    requires: ClassVar[tuple[str, ...]] = ("cvxpy",)
    supports = staticmethod(has_polytope)

    def __post_init__(self) -> None:
        require_limits(self)
        if self.solver not in SPELLING:
            raise InvalidInput(f"{self.solver!r}; cvxpy is asked for one of {', '.join(SPELLING)}", "solver")

    def bind(self, domain: Domain) -> Projector:
        return _CvxpyProjector(self, domain)


class _CvxpyProjector(Projector):
    oracle: CvxpyProjection

    def __init__(self, oracle: CvxpyProjection, domain: Domain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, EpisodeDomain)
        if isinstance(domain, BudgetedPolicies):
            easiest(domain)  # says what is wrong with budgets that cannot be kept
        self._unlimited = domain.unlimited if isinstance(domain, BudgetedPolicies) else domain
        self._program: _Program | None = None

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        """Solve, then rebuild the measure from the solver's multipliers or from its measure, whichever proves more."""
        began = perf_counter()
        point = self.checked(log_point)
        weights = certificate.supported(self._unlimited, point)
        start = self.start(near)
        at = certificate.soft_prices(self._unlimited, weights) if start is None else start
        program = self._written(weights > -inf)
        status, prices, measure = program.solve(certificate.reweighted(self._unlimited, weights, at))
        tilt = program.tilt()
        candidates = [at] if prices is None else [at + prices]
        if measure is not None:
            chances = measure.reshape(*at.shape, -1).sum(axis=-1)
            with np.errstate(divide="ignore"):
                candidates.append(certificate.prices_for(self._unlimited, weights - tilt, np.log(chances)))
        note = "" if status == "optimal" else status
        report = Report(self.name, 0.0, program.iterations, solver=program.name, note=note)
        answers = [self._certified(point - tilt, weights - tilt, each, report) for each in candidates]
        best = min(answers, key=lambda answer: answer.gap if answer.gap == answer.gap else inf)
        took = report._replace(seconds=perf_counter() - began)
        return self._judged(point, replace(best, report=took), program, measure).require(Status.OPTIMAL)

    def forget(self) -> None:
        self._program = None

    def _judged(self, point: Floats, answer: Projection, program: "_Program", measure: Floats | None) -> Projection:
        """The answer with its status; within budgets it is that for the weights at the prices of the budgets.

        The measure that small errors of these prices lead to may exceed a budget more than the solver's own.
        """
        if not isinstance(self.domain, BudgetedPolicies):
            return replace(answer, status=status_of(answer.gap, len(point), self.oracle.gap))
        found = within_budgets(self.domain, point, answer, program.budget_prices, self.oracle.gap)
        if measure is not None and found.budget_residual > 0.0:
            policy = policies_of(measure[None], found.policy[None])
            own = self.domain.dynamics.occupancy(policy, self.domain.initial)[0]
            other = with_measure(found, point, own, self.oracle.gap)
            found = other if other.budget_residual < found.budget_residual else found
        return explained(found)

    def _certified(self, point: Floats, weights: Floats, prices: Floats, report: Report) -> Projection:
        """The answer of these prices, or of the prices of its own chances: no solver resolves chances of 1e-300."""
        first = certificate.certified(self._unlimited, point, prices, report)
        renewed = certificate.prices_for(self._unlimited, weights, certificate.state_chances(first.log_measure))
        second = certificate.certified(self._unlimited, point, renewed, report)
        return first if first.gap <= second.gap else second

    def _written(self, used: Bools) -> "_Program":
        """The problem on these entries: the last one, unless other entries had weight then."""
        if self._program is None or not np.array_equal(self._program.used, used):
            assert isinstance(self.domain, EpisodeDomain)
            self._program = _Program(self.domain, used, self.oracle)
        return self._program


class _Program:
    """One cvxpy problem: entropy of the entries that have weight, with their costs `-log w` as a parameter."""

    def __init__(self, domain: EpisodeDomain, used: Bools, settings: CvxpyProjection) -> None:
        import cvxpy  # half a second: only who asks for it pays

        from amdp.oracles import cvxpy_solvers

        self.used = used
        self.iterations = 0
        self._domain = domain
        rows = polytope(domain)
        columns, self._weighted = _columns(domain, used)
        matrix = rows.matrix[:, columns].tocsr()
        full = np.diff(matrix.indptr) > 0
        self._balance = np.flatnonzero(full & (rows.row_lower == rows.row_upper))
        self._x = cvxpy.Variable(len(columns))
        self._cost = cvxpy.Parameter(len(self._weighted))
        mass = self._x[self._weighted]
        objective = cvxpy.sum(-cvxpy.entr(mass)) + self._cost @ mass
        constraints = cvxpy_solvers.constraints(self._x, rows, matrix, full)
        limits = settings.solver, settings.seconds, SPELLING[settings.solver]
        self._program = cvxpy_solvers.Program(objective, constraints, *limits)
        self.name = self._program.name

    def solve(self, weights: Floats) -> tuple[str, Floats | None, Floats | None]:
        """The solver's status, its prices `[h, s]` and its measure in the shape of the point, where it has them."""
        self._cost.value = -weights[self.used] - 1.0
        failure = self._program.failure()
        if failure:
            return f"{Status.FAILED}: {failure}", None, None
        self.iterations = self._program.iterations
        return str(self._program.problem.status), self._prices(weights.shape), self._measure(weights.shape)

    @property
    def budget_prices(self) -> Floats:
        """The multipliers of the budgets in the last solve, at least 0; 0 where there are none."""
        assert isinstance(self._domain, BudgetedPolicies)
        found = self._program.budget_prices(self._domain.budgets)
        return np.zeros(len(self._domain.budgets)) if found is None else np.maximum(0.0, found)

    def tilt(self) -> Floats | float:
        """What the weights lose at the prices of the budgets, `[h, s, a]`, as logarithms."""
        if not isinstance(self._domain, BudgetedPolicies):
            return 0.0
        lost: Floats = np.tensordot(self.budget_prices, self._domain.budgets.usage, axes=1)
        return lost

    def _prices(self, shape: tuple[int, ...]) -> Floats | None:
        multipliers = self._program.problem.constraints[0].dual_value
        if multipliers is None or not np.isfinite(multipliers).all():
            return None
        prices = np.zeros(shape[0] * shape[1])
        balance = self._balance < len(prices)  # the rows behind these split the pairs of a box into moves
        prices[self._balance[balance]] = -multipliers[balance]
        return prices.reshape(shape[:2])

    def _measure(self, shape: tuple[int, ...]) -> Floats | None:
        if self._x.value is None or not np.isfinite(self._x.value).all():
            return None
        measure = np.zeros(shape)
        measure[self.used] = np.maximum(0.0, self._x.value[self._weighted])
        return measure


def _columns(domain: EpisodeDomain, used: Bools) -> tuple[Positions, Positions]:
    """The columns of the polytope that can be positive, and the place among them of each used entry of the point."""
    if used.ndim == 3:
        columns = np.flatnonzero(used)
        return columns, np.arange(len(columns))
    assert isinstance(domain.dynamics, BernsteinBox)
    pairs = used.any(axis=-1).reshape(-1)
    flows = used[:-1][domain.dynamics.upper[:-1] > 0.0]
    columns = np.flatnonzero(np.concatenate([pairs, flows]))
    place = np.arange(len(columns))
    ending = (columns >= used[:-1, ..., 0].size) & (columns < pairs.size)
    return columns, np.concatenate([place[columns >= pairs.size], place[ending]])
