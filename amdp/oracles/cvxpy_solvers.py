"""Programs in cvxpy over a polytope, and solvers that Ctrl-C stops: cvxpy's own return before only when they are done.

Import this only where cvxpy is asked for: it takes half a second.
"""

from collections.abc import Callable
from math import inf
from threading import Event
from typing import Any
from warnings import catch_warnings, simplefilter

import cvxpy
import cvxpy.settings as names
import highspy
import numpy as np
import scipy
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL, dims_to_solver_cones
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver, dims_to_solver_dict
from cvxpy.reductions.solvers.conic_solvers.highs_conif import HIGHS

from amdp.arrays import Bools, Floats
from amdp.model.budgets import Budgets
from amdp.oracles.highs import linear_model, run, stoppable
from amdp.oracles.interrupts import interruptible
from amdp.oracles.polytope import Polytope


class _Highs(HIGHS):  # type: ignore[misc]
    """Linear programs only, without a start from the last solution."""

    def name(self) -> str:
        return "STOPPABLE_HIGHS"  # cvxpy asks for names of their own

    def solve_via_data(
        self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None
    ) -> Any:
        # For `lower <= x <= upper`, equations first, then `A x <= b`.
        rows, equations = data[names.B], dims_to_solver_dict(data[names.DIMS])[names.EQ_DIM]
        row_lower = np.where(np.arange(len(rows)) < equations, rows, -highspy.kHighsInf)
        free = np.full(len(data[names.C]), highspy.kHighsInf)
        lower, upper = data.get(names.LOWER_BOUNDS), data.get(names.UPPER_BOUNDS)
        bounds = -free if lower is None else lower, free if upper is None else upper
        highs = highspy.Highs()
        for option, value in (solver_opts | {"output_flag": verbose, "threads": 1}).items():
            highs.setOptionValue(option, value)
        highs.passModel(linear_model(data[names.A].tocsc(), data[names.C], row_lower, rows, *bounds))
        run(highs, 1, stoppable(highs))
        result = {
            "solution": highs.getSolution(),
            "info": highs.getInfo(),
            "model_status": highs.getModelStatus().name,
            "run_time": highs.getRunTime(),
        }
        return result | ({"dual_ray": highs.getDualRay()} if result["model_status"] == "kInfeasible" else {})


class _Clarabel(CLARABEL):  # type: ignore[misc]
    """Without a start from the last solution; it looks for Ctrl-C between two of its iterations."""

    def name(self) -> str:
        return "STOPPABLE_CLARABEL"

    def solve_via_data(
        self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None
    ) -> Any:
        import clarabel

        cost = data[names.C]
        quadratic = data.get(names.P, scipy.sparse.csc_array((cost.size, cost.size)))
        cones = dims_to_solver_cones(data[ConicSolver.DIMS])
        settings, stop = self.parse_solver_opts(verbose, solver_opts), Event()

        def solve() -> Any:
            upper = scipy.sparse.triu(quadratic).tocsc()
            solver = clarabel.DefaultSolver(upper, cost, data[names.A], data[names.B], cones, settings)
            if hasattr(solver, "set_termination_callback"):  # since 0.11; older ones are left to end by themselves
                solver.set_termination_callback(lambda _: stop.is_set())
            return solver.solve()

        return interruptible(solve, stop.set)


Spelling = tuple[str, dict[str, Any]]
_STOPPABLE: dict[str, Callable[[], Any]] = {"HIGHS": _Highs, "CLARABEL": _Clarabel}


def constraints(x: Any, rows: Polytope, matrix: Any, used: Bools) -> list[Any]:
    """The used rows of a polytope for a variable `x`, with the columns of `matrix` (CSR); first the equations."""
    equal = used & (rows.row_lower == rows.row_upper)
    capped, floored = used & ~equal & np.isfinite(rows.row_upper), used & ~equal & np.isfinite(rows.row_lower)
    result = [matrix[equal] @ x == rows.row_lower[equal]]
    if capped.any():
        result.append(matrix[capped] @ x <= rows.row_upper[capped])
    if floored.any():
        result.append(matrix[floored] @ x >= rows.row_lower[floored])
    return result


class Program:
    """A cvxpy problem that is solved again and again with other parameters.

    `spelling` is how each solver spells a time limit, and the options of its accuracy.
    """

    def __init__(
        self, objective: Any, constraints: list[Any], solver: str, seconds: float, spelling: dict[str, Spelling]
    ) -> None:
        self.name = f"cvxpy {cvxpy.__version__} with {solver}"
        time_limit, options = spelling[solver]
        self.problem = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
        self._solver = _STOPPABLE[solver]() if solver in _STOPPABLE else solver
        self._options = options | ({time_limit: seconds} if seconds < inf else {})

    @property
    def iterations(self) -> int:
        """Of the last solve."""
        return int(self.problem.solver_stats.num_iters or 0)

    def budget_prices(self, budgets: Budgets) -> Floats | None:
        """The multipliers of the budgets in the last solve, if it gave some: over a kernel they alone are capped."""
        multipliers = self.problem.constraints[1].dual_value
        if multipliers is None or not np.isfinite(multipliers).all():
            return None
        prices: Floats = np.atleast_1d(multipliers) / budgets.sizes
        return prices

    def failure(self) -> str:
        """Solve; what went wrong, if anything did."""
        try:
            with catch_warnings():
                simplefilter("ignore", UserWarning)  # "may be inaccurate": what is done with the answer finds out
                self.problem.solve(solver=self._solver, **self._options)
        except Exception as problem:  # whatever cvxpy and its solvers raise
            return f"{type(problem).__name__}: {problem}"
        return ""
