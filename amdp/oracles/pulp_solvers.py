"""The solvers of PuLP, so that Ctrl-C stops them and an exception leaves nothing behind."""

from pathlib import Path
from subprocess import DEVNULL, run
from tempfile import TemporaryDirectory
from typing import Any
from warnings import catch_warnings, simplefilter

import pulp

from amdp.errors import InvalidInput
from amdp.oracles.highs import run as run_highs
from amdp.oracles.highs import stoppable

SOLVERS = ("HiGHS", "CBC")


def require_solver(name: str) -> None:
    """Refuse a solver that the oracles do not ask PuLP for."""
    if name not in SOLVERS:
        raise InvalidInput(f"{name!r}; PuLP is asked for one of {', '.join(SOLVERS)}", "solver")


def bundled_cbc(command: type[pulp.PULP_CBC_CMD], **options: Any) -> Any:
    """CBC without messages; it is bundled until PuLP 4, which is excluded, and PuLP warns of that."""
    with catch_warnings():
        simplefilter("ignore", DeprecationWarning)
        return command(msg=False, **options)


class Highs(pulp.HiGHS):  # type: ignore[misc]
    """HiGHS in this process, in a thread of its own."""

    def callSolver(self, lp: Any) -> None:  # noqa: N802
        """Solve the model that PuLP has passed."""
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
            status, values, *_, kind = self.readsol_MPS(str(solution), lp, variables, names, rows)
        lp.assignVarsVals(values)
        lp.assignStatus(status, kind)
        return int(status)
