"""Solvers of cvxpy, so that Ctrl-C stops them: cvxpy makes the solver itself inside a call that does not return before.

Import this only where cvxpy is asked for: it takes half a second.
"""

from collections.abc import Callable
from threading import Event
from typing import Any

import cvxpy.settings as names
import highspy
import numpy as np
import scipy
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL, dims_to_solver_cones
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver, dims_to_solver_dict
from cvxpy.reductions.solvers.conic_solvers.highs_conif import HIGHS

from amdp.oracles.highs import linear_model, run, stoppable
from amdp.oracles.interrupts import interruptible


class _Highs(HIGHS):  # type: ignore[misc]
    """Linear programs only, without a start from the last solution."""

    def name(self) -> str:
        return "STOPPABLE_HIGHS"  # cvxpy asks for names of their own

    def solve_via_data(
        self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None
    ) -> Any:
        """What cvxpy's own method returns, for `lower <= x <= upper`, equations first, then `A x <= b`."""
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
        found = {
            "solution": highs.getSolution(),
            "info": highs.getInfo(),
            "model_status": highs.getModelStatus().name,
            "run_time": highs.getRunTime(),
        }
        return found | ({"dual_ray": highs.getDualRay()} if found["model_status"] == "kInfeasible" else {})


class _Clarabel(CLARABEL):  # type: ignore[misc]
    """Without a start from the last solution; it looks for Ctrl-C between two of its iterations."""

    def name(self) -> str:
        return "STOPPABLE_CLARABEL"

    def solve_via_data(
        self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None
    ) -> Any:
        """What cvxpy's own method returns."""
        import clarabel

        cost = data[names.C]
        quadratic = data.get(names.P, scipy.sparse.csc_array((cost.size, cost.size)))
        cones = dims_to_solver_cones(data[ConicSolver.DIMS])
        settings, stop, found = self.parse_solver_opts(verbose, solver_opts), Event(), list[Any]()

        def solve() -> None:
            upper = scipy.sparse.triu(quadratic).tocsc()
            solver = clarabel.DefaultSolver(upper, cost, data[names.A], data[names.B], cones, settings)
            if hasattr(solver, "set_termination_callback"):  # since 0.11; older ones are left to end by themselves
                solver.set_termination_callback(lambda _: stop.is_set())
            found.append(solver.solve())

        interruptible(solve, stop.set)
        return found[0]


_STOPPABLE: dict[str, Callable[[], Any]] = {"HIGHS": _Highs, "CLARABEL": _Clarabel}


def solver(name: str) -> Any:
    """What to pass to cvxpy as `solver`: a solver that Ctrl-C stops, or the name, where cvxpy's own hears it."""
    return _STOPPABLE[name]() if name in _STOPPABLE else name
