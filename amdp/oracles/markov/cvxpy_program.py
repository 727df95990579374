"""The occupancy linear program through cvxpy: written once with the costs as a parameter."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain
from amdp.oracles.base import Planner, Status
from amdp.oracles.highs import ACCURACY
from amdp.oracles.markov.linear_program import export_program
from amdp.oracles.polytope import has_polytope, program
from amdp.oracles.solver_options import NO_OPTIONS, SolverOptions, adopt
from amdp.oracles.solving import Answer, require_limits, solver_planner

# How solvers spell a time limit and the accuracy that a certificate of 1e-9 asks for. Of others neither is known.
_SPELLING: dict[str, tuple[str, dict[str, Any]]] = {
    "HIGHS": ("time_limit", ACCURACY),
    "CLARABEL": ("time_limit", {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}),
    "SCS": ("time_limit_secs", {"eps_abs": 1e-9, "eps_rel": 1e-9}),
    "OSQP": ("time_limit", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 1_000_000}),
    "GUROBI": ("TimeLimit", {"FeasibilityTol": 1e-9, "OptimalityTol": 1e-9}),
}
_UNKNOWN: tuple[str, dict[str, Any]] = ("", {})


@dataclass(frozen=True)
class CvxpyProgram:
    """Minimize `<c, x>` over occupancy measures, `c` a cvxpy Parameter, by a solver of cvxpy's."""

    solver: str = "HIGHS"
    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to what the best policy pays: a solver that is further off is asked again
    options: SolverOptions = NO_OPTIONS  # of the solver, as cvxpy passes them on
    log: bool = False  # whether cvxpy and the solver write their log to standard error
    requires: ClassVar[tuple[str, ...]] = ("cvxpy",)
    supports = staticmethod(has_polytope)

    def __post_init__(self) -> None:
        require_limits(self)
        options = adopt(self)
        if self.seconds < inf and self.solver not in _SPELLING:
            remedy = f"give {self.solver} an option of its own for it; the setting is for {', '.join(_SPELLING)}"
            raise InvalidInput(f"{self.seconds:g}; {remedy}", "seconds")
        if options or self.solver not in ("HIGHS", "CLARABEL"):
            from amdp.oracles.cvxpy_solvers import require_solver  # half a second, which usual settings are spared

            require_solver(self.solver, options)

    def bind(self, domain: Domain) -> Planner:
        return solver_planner(self, domain, lambda accepted: _Cvxpy(accepted, self), self.gap, self.log)

    def export(self, domain: Domain, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[h, s, a]` to a `.lp` or `.mps` file: the program as cvxpy is given it."""
        export_program(self, domain, cost, path)


class _Cvxpy:
    def __init__(self, domain: EpisodeDomain, settings: CvxpyProgram) -> None:
        self._domain = domain
        self._settings = settings
        self._rows = program(domain)
        self.restart()

    def restart(self) -> None:
        import cvxpy  # half a second: only who asks for cvxpy pays

        from amdp.oracles import cvxpy_solvers

        rows, settings = self._rows, self._settings
        self._x = cvxpy.Variable(rows.matrix.shape[1], nonneg=True)
        self._cost = cvxpy.Parameter(rows.n_pairs)
        every_row = np.ones(len(rows.row_lower), dtype=bool)
        constraints = cvxpy_solvers.constraints(self._x, rows, rows.matrix.tocsr(), every_row)
        objective = self._cost @ self._x[: rows.n_pairs]
        limits = settings.solver, settings.seconds, _SPELLING.get(settings.solver, _UNKNOWN)
        self._program = cvxpy_solvers.Program(objective, constraints, *limits, settings.options, settings.log)
        self.name = self._program.name

    def solve(self, cost: Floats) -> Answer:
        self._cost.value = cost.reshape(-1)
        failure = self._program.failure()
        if failure:
            return Answer(None, Status.FAILED, note=failure)
        stopped = str(self._program.problem.status)
        status = _STATUSES.get(stopped, Status.FAILED)
        if status is Status.FAILED or self._x.value is None:
            return Answer(None, status, note=stopped)
        mass = self._x.value[: self._rows.n_pairs].reshape(self._rows.shape)
        note = "" if status is Status.OPTIMAL else stopped
        return Answer(mass, status, self._program.iterations, note, self._budget_prices())

    def _budget_prices(self) -> Floats | None:
        if not isinstance(self._domain, BudgetedPolicies):
            return None
        return self._program.budget_prices(self._domain.budgets)


# Inaccurate answers may be good ones: the sweep that follows decides.
_STATUSES = {"optimal": Status.OPTIMAL, "optimal_inaccurate": Status.OPTIMAL, "user_limit": Status.FEASIBLE}
