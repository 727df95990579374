"""The occupancy linear program through cvxpy: written once with the costs as a parameter."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, MarkovPolicies
from amdp.oracles.base import Planner, Status
from amdp.oracles.highs import ACCURACY
from amdp.oracles.polytope import has_polytope, program
from amdp.oracles.solving import Answer, SolverPlanner, require_limits

# How each solver spells a time limit and the accuracy that a certificate of 1e-9 asks for.
_SPELLING: dict[str, tuple[str, dict[str, Any]]] = {
    "HIGHS": ("time_limit", ACCURACY),
    "CLARABEL": ("time_limit", {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}),
}


@dataclass(frozen=True)
class CvxpyProgram:
    """Minimize `<c, x>` over occupancy measures, `c` a cvxpy Parameter, by a solver of cvxpy's."""

    solver: str = "HIGHS"
    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to what the best policy pays: a solver that is further off is asked again
    requires: ClassVar[tuple[str, ...]] = ("cvxpy",)

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.gap)
        if self.solver not in _SPELLING:
            raise InvalidInput(f"{self.solver!r}; cvxpy is asked for one of {', '.join(_SPELLING)}", "solver")

    def supports(self, domain: Domain) -> bool:
        """Markov policies over a kernel or a box."""
        return has_polytope(domain)

    def bind(self, domain: Domain) -> Planner:
        """Write the problem; cvxpy compiles it at the first solve and keeps the compiled form."""
        return SolverPlanner(self, domain, lambda accepted: _Cvxpy(accepted, self), self.gap)


class _Cvxpy:
    def __init__(self, domain: MarkovPolicies, settings: CvxpyProgram) -> None:
        from amdp.oracles import cvxpy_solvers  # half a second: only who asks for cvxpy pays

        self._settings = settings
        self._shape = domain.shape
        self._solver = cvxpy_solvers.solver(settings.solver)
        self._rows = program(domain)
        self.restart()

    def restart(self) -> None:
        """State the problem anew."""
        import cvxpy

        rows = self._rows
        self.name = f"cvxpy {cvxpy.__version__} with {self._settings.solver}"
        self._x = cvxpy.Variable(rows.matrix.shape[1], nonneg=True)
        self._cost = cvxpy.Parameter(rows.n_pairs)
        equal = rows.row_lower == rows.row_upper
        capped, floored = ~equal & np.isfinite(rows.row_upper), ~equal & np.isfinite(rows.row_lower)
        matrix = rows.matrix.tocsr()
        constraints = [matrix[equal] @ self._x == rows.row_lower[equal]]
        if capped.any():
            constraints.append(matrix[capped] @ self._x <= rows.row_upper[capped])
        if floored.any():
            constraints.append(matrix[floored] @ self._x >= rows.row_lower[floored])
        self._problem = cvxpy.Problem(cvxpy.Minimize(self._cost @ self._x[: rows.n_pairs]), constraints)

    def solve(self, cost: Floats) -> Answer:
        """Set the parameter and solve."""
        self._cost.value = cost.reshape(-1)
        time_limit, options = _SPELLING[self._settings.solver]
        if self._settings.seconds < inf:
            options = {**options, time_limit: self._settings.seconds}
        try:
            with catch_warnings():
                simplefilter("ignore", UserWarning)  # "may be inaccurate": the sweep that follows finds out
                self._problem.solve(solver=self._solver, **options)
        except Exception as problem:  # whatever cvxpy and its solvers raise
            return Answer(None, Status.FAILED, note=f"{type(problem).__name__}: {problem}")
        return self._answer()

    def _answer(self) -> Answer:
        status = _STATUSES.get(self._problem.status, Status.FAILED)
        if status is Status.FAILED or self._x.value is None:
            return Answer(None, status, note=str(self._problem.status))
        iterations = int(self._problem.solver_stats.num_iters or 0)
        mass = self._x.value[: int(np.prod(self._shape))].reshape(self._shape)
        return Answer(mass, status, iterations, "" if status is Status.OPTIMAL else self._problem.status)


# Inaccurate answers may be good ones: the sweep that follows decides.
_STATUSES = {
    "optimal": Status.OPTIMAL,
    "optimal_inaccurate": Status.OPTIMAL,
    "user_limit": Status.FEASIBLE,
}
