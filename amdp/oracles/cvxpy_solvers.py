"""Programs in cvxpy over a polytope, and solvers that Ctrl-C stops: cvxpy's own return before only when they are done.

Any solver that cvxpy finds can be named; only HiGHS and Clarabel are stopped by Ctrl-C.
Import this only where cvxpy is asked for: it takes half a second.
"""

import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
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
from amdp.errors import InvalidInput
from amdp.model.budgets import Budgets
from amdp.oracles.highs import configured, linear_model, require_options, run, stoppable
from amdp.oracles.interrupts import interruptible
from amdp.oracles.polytope import Polytope
from amdp.oracles.solver_options import NO_OPTIONS, SolverOptions
from amdp.text import suggestion


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
        highs = configured(solver_opts | {"threads": 1, "output_flag": verbose})
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


def require_solver(solver: str, options: SolverOptions) -> None:
    """Refuse a solver that cvxpy does not find, and options that it does not know."""
    here = cvxpy.installed_solvers()
    if solver not in here:
        is_known = solver in cvxpy.settings.SOLVERS
        reason = "cvxpy knows it but does not find it on this machine" if is_known else "cvxpy does not know it"
        near = "" if is_known else suggestion(solver, cvxpy.settings.SOLVERS)
        raise InvalidInput(f"{solver!r}; {reason}; {near}here are: {', '.join(here)}", "solver")
    if solver == "OSQP" and "pulp" in sys.modules:  # osqp 1.1.3 after PuLP 3.3.2: a segmentation fault at its first use
        raise InvalidInput("'OSQP'; it crashes Python after PuLP, which is loaded; use a process without", "solver")
    if solver == "HIGHS":
        require_options(options)
    else:
        options.require_free({"verbose": "log", "solver": "solver"})
        _try_out(solver, options)


@cache
def _try_out(solver: str, options: SolverOptions) -> None:
    """Solve a program of one variable: whether a solver knows an option is found out in no other way."""
    x = cvxpy.Variable(nonneg=True)
    try:
        with catch_warnings():
            simplefilter("error", scipy.optimize.OptimizeWarning)  # SciPy only warns of options that it does not know
            cvxpy.Problem(cvxpy.Minimize(x), [x >= 1]).solve(solver=solver, **deepcopy(dict(options)))
    except (Exception, scipy.optimize.OptimizeWarning) as problem:  # whatever cvxpy and its solvers raise
        raise InvalidInput(f"{options!r}; {solver} refuses it: {problem}", "options") from problem


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

    `spelling` is how the solver spells a time limit, and the options of its accuracy; `options` are more of them.
    """

    def __init__(
        self,
        objective: Any,
        constraints: list[Any],
        solver: str,
        seconds: float,
        spelling: Spelling,
        options: Mapping[str, Any] = NO_OPTIONS,
        log: bool = False,
    ) -> None:
        self.name = f"cvxpy {cvxpy.__version__} with {solver}"
        time_limit, accuracy = spelling
        self.problem = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
        self._solver = _STOPPABLE[solver]() if solver in _STOPPABLE else solver
        self._options = {**accuracy, **options, "verbose": log}
        if seconds < inf:
            self._options[time_limit] = seconds

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
                self.problem.solve(solver=self._solver, **deepcopy(self._options))  # cvxpy may write into them
        except Exception as problem:  # whatever cvxpy and its solvers raise
            return f"{type(problem).__name__}: {problem}"
        return ""
