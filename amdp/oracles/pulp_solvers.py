"""What the programs in PuLP share: rows, solvers that Ctrl-C stops and that leave nothing behind, and statuses."""

from collections.abc import Callable
from math import inf
from pathlib import Path
from subprocess import DEVNULL, run
from tempfile import TemporaryDirectory
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pulp

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.segments import Shape
from amdp.oracles.base import Status
from amdp.oracles.highs import run as run_highs
from amdp.oracles.highs import stoppable

SOLVERS = ("HiGHS", "CBC")

Pairs = dict[tuple[int, ...], Any]  # the variable of each `(h, s, a)`
Inflow = dict[tuple[int, int], list[Any]]  # what enters each `(h, s)`


def require_solver(name: str) -> None:
    """Refuse a solver that the oracles do not ask PuLP for."""
    if name not in SOLVERS:
        raise InvalidInput(f"{name!r}; PuLP is asked for one of {', '.join(SOLVERS)}", "solver")


def add_pairs(problem: Any, shape: Shape, most: float | None = None) -> Pairs:
    """Add a variable `x_h_s_a` for each pair of each step, at most `most`."""
    names = {place: "x_{}_{}_{}".format(*place) for place in np.ndindex(*shape)}
    return {place: problem.add_variable(name, lowBound=0, upBound=most) for place, name in names.items()}


def add_balance(problem: Any, pairs: Pairs, shape: Shape, inflow: Inflow, initial: int) -> None:
    """Add a row `balance_h_s` for each state: what leaves it is what entered it; one unit enters at the initial one."""
    for h, s in np.ndindex(*shape[:2]):
        outflow = pulp.lpSum(pairs[h, s, a] for a in range(shape[2]))
        entering = float(h == 0 and s == initial) + pulp.lpSum(inflow.get((h, s), []))
        problem += outflow == entering, f"balance_{h}_{s}"


def values(variables: dict[Any, Any]) -> Floats:
    """The values of variables, in order; 0 for those that the solver left out."""
    return np.array([variable.value() or 0.0 for variable in variables.values()])


def status_of(problem: Any) -> Status:
    """PuLP says Optimal of runs that a limit stopped; `sol_status` tells them apart."""
    known = {pulp.LpSolutionOptimal: Status.OPTIMAL, pulp.LpSolutionIntegerFeasible: Status.FEASIBLE}
    return known.get(problem.sol_status, Status.FAILED)


def command(kind: Callable[..., Any], seconds: float, threads: int, options: dict[str, Any]) -> Any:
    """A solver of PuLP without messages; CBC is bundled until PuLP 4, which is excluded, and PuLP warns of that."""
    with catch_warnings():
        simplefilter("ignore", DeprecationWarning)
        return kind(msg=False, timeLimit=None if seconds == inf else seconds, threads=threads, **options)


def write(problem: Any, path: str | Path) -> None:
    """Write a model to a `.lp` or `.mps` file."""
    (problem.writeLP if Path(path).suffix == ".lp" else problem.writeMPS)(str(path))


class Highs(pulp.HiGHS):  # type: ignore[misc]
    """HiGHS in this process, in a thread of its own."""

    def callSolver(self, lp: Any) -> None:  # noqa: N802
        run_highs(lp.solverModel, self.threads or 1, stoppable(lp.solverModel))


class Cbc(pulp.PULP_CBC_CMD):  # type: ignore[misc]
    """The CBC that comes with PuLP, as a child process that does not outlive the call, and files that do not either."""

    def solve_CBC(self, lp: Any, use_mps: bool = True) -> int:  # noqa: N802
        """Write the model, call CBC, read its solution; PuLP itself waits for the child and forgets it on Ctrl-C."""
        with TemporaryDirectory(prefix="amdp-cbc-") as folder:
            model, solution = Path(folder, "model.mps"), Path(folder, "model.sol")
            variables, names, rows, _ = lp.writeMPS(str(model), rename=1)
            options = [*self.options, *self.getOptions()]
            limit = [] if self.timeLimit is None else ["-sec", str(self.timeLimit)]
            words = [word for option in options for word in f"-{option}".split()]
            command = [self.path, str(model), *limit, *words]
            command += ["-solve", "-printingOptions", "all", "-solution", str(solution)]
            ended = run(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)  # kills the child if it raises
            if ended.returncode != 0 or not solution.exists():
                raise pulp.PulpSolverError(f"CBC ended with code {ended.returncode} and no solution")
            status, values, _, multipliers, _, kind = self.readsol_MPS(str(solution), lp, variables, names, rows)
        lp.assignVarsVals(values)
        lp.assignConsPi(multipliers)
        lp.assignStatus(status, kind)
        return int(status)
