"""What the programs in PuLP share: rows, solvers by name, how they are called, statuses, and files.

HiGHS and CBC are stopped by Ctrl-C and leave nothing behind. Any other solver that PuLP finds on this machine can be
named too, by PuLP's name (`GUROBI`, `CPLEX_CMD`) or without its ending (`CPLEX`, `SCIP`); it runs as PuLP calls it.
"""

import re
from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from math import inf
from pathlib import Path
from subprocess import DEVNULL, run
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from warnings import catch_warnings, simplefilter

import numpy as np
import pulp

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.segments import Shape
from amdp.oracles.base import Status
from amdp.oracles.highs import require_options as require_highs_options
from amdp.oracles.highs import run as run_highs
from amdp.oracles.highs import stoppable
from amdp.oracles.model_files import LEAST_COEFFICIENT, named, write_model
from amdp.oracles.solver_options import SolverOptions, adopt, refused
from amdp.text import suggestion

BUNDLED = ("HiGHS", "CBC")
# Arguments of PuLP's solvers for which the oracles have settings.
SETTINGS = {"msg": "log", "timeLimit": "seconds", "threads": "threads"}
CBC_SETTINGS = {"seconds": "seconds", "sec": "seconds", "threads": "threads"}
CBC_REFUSALS = ("No match for", "Multiple matches for", "is illegal for", "Possible options for", "was provided for")

Pairs = dict[tuple[int, ...], Any]  # the variable of each `(h, s, a)`
Inflow = dict[tuple[int, int], list[Any]]  # what enters each `(h, s)`


class Settings(Protocol):
    """What the oracles in PuLP have in common."""

    @property
    def solver(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def options(self) -> SolverOptions: ...
    @property
    def log(self) -> bool: ...


def require_solver(settings: Settings) -> None:
    """Refuse a solver that is not there, and options that it does not know; `highs` and `cbc` are spelled as here."""
    options = adopt(settings)
    for name in BUNDLED:
        if str(settings.solver).casefold() == name.casefold():
            object.__setattr__(settings, "solver", name)  # the oracle is frozen
    if settings.solver == "HiGHS":
        require_highs_options(options)
    elif settings.solver == "CBC":
        options.require_free(CBC_SETTINGS)
        for name, value in options.items():
            _require_cbc_option(name, value)
    else:
        options.require_free(SETTINGS)
        asked = {"threads": settings.threads} if settings.threads > 1 else {}
        kind = solver_class(settings.solver)
        _require_arguments(kind, {**asked, **options})
        if options:
            _try_out(kind, options)


def solver_class(name: str) -> Any:
    """The class of PuLP for a solver that is installed here, or `InvalidInput` with those that are."""
    known = pulp.listSolvers()
    wanted = str(name).casefold()
    meant = [each for each in known if wanted in (each.casefold(), _without_ending(each).casefold())]
    for each in sorted(meant, key=lambda one: one.endswith("_CMD")):  # rather in Python than by a command
        if _is_available(each):
            return type(_bare(each))
    others = (each for each in known if each not in (*BUNDLED, "PULP_CBC_CMD") and _is_available(each))
    here = ", ".join([*BUNDLED, *others])
    if meant:
        raise InvalidInput(f"{name!r}; PuLP knows it but does not find it on this machine; here are: {here}", "solver")
    near = suggestion(str(name), [*BUNDLED, *known])
    raise InvalidInput(f"{name!r}; PuLP does not know it; {near}here are: {here}", "solver")


def _without_ending(name: str) -> str:
    return re.sub("_(PY|CMD|DLL)$", "", name)


def _bare(name: str) -> Any:
    with catch_warnings():
        simplefilter("ignore")  # of what is not installed, or will not be in the next version
        return pulp.getSolver(name, msg=False)


@cache
def _is_available(name: str) -> bool:
    try:
        return bool(_bare(name).available())
    except Exception:  # whatever a solver without a license raises
        return False


def _require_arguments(kind: Any, given: dict[str, Any]) -> None:
    """Refuse options that a solver of PuLP does not take; one that takes all of them refuses what it does not know."""
    parameters = signature(kind).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name, value in given.items():
        if name not in parameters:
            near = suggestion(name, parameters)
            raise refused(name, value, f"{kind.name} of PuLP does not take it; {near}it takes: {', '.join(parameters)}")


def _try_out(kind: Any, options: SolverOptions) -> None:
    """Solve a program of one variable: what a solver makes of options is found out in no other way."""
    program = pulp.LpProblem("trial")
    program += program.add_variable("x", lowBound=0)
    try:
        program.solve(command(kind, inf, dict(options)))
    except Exception as problem:  # whatever PuLP and its solvers raise
        raise InvalidInput(f"{options!r}; {kind.name} refuses it: {problem}", "options") from problem


def _require_cbc_option(name: str, value: Any) -> None:
    """Ask CBC whether it knows an option: in a solve it goes on without those that it does not know."""
    words = f"-{name} {value}".split()
    path = command(Cbc, inf, {}).path
    answer = run([path, *words, "-quit"], stdin=DEVNULL, capture_output=True, text=True)
    for line in answer.stdout.splitlines():
        if any(sign in line for sign in CBC_REFUSALS):
            raise refused(name, value, f"CBC says: {line.strip(' <>;')}")


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


def command(kind: Callable[..., Any], seconds: float, options: dict[str, Any]) -> Any:
    """A solver of PuLP; CBC is bundled until PuLP 4, which is excluded, and PuLP warns of that."""
    with catch_warnings():
        simplefilter("ignore", DeprecationWarning)
        return kind(**{"msg": False, "timeLimit": None if seconds == inf else seconds} | options)


def highs_options(settings: Settings, ours: dict[str, Any]) -> dict[str, Any]:
    """The arguments for PuLP's HiGHS: ours, then those that were asked for."""
    return {"msg": settings.log, "threads": settings.threads, **ours, **settings.options}


def cbc_options(settings: Settings, ours: list[str]) -> dict[str, Any]:
    """The arguments for PuLP's CBC: options are words of its command line, of which the last ones count."""
    words = [*ours, *(f"{name} {value}" for name, value in settings.options.items())]
    return {"msg": settings.log, "threads": settings.threads, "options": words}


def other_options(settings: Settings, kind: Any, ours: dict[str, Any]) -> dict[str, Any]:
    """The arguments for another solver of PuLP: of ours, those that it takes."""
    taken = signature(kind).parameters
    is_open = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in taken.values())
    wanted = {"threads": settings.threads, **ours}
    usable = {name: value for name, value in wanted.items() if is_open or name in taken}
    return {"msg": settings.log, **usable, **settings.options}


def write(problem: Any, path: str | Path) -> None:
    """Write a model to a `.lp` or `.mps` file, with `x[0,1,2]` for PuLP's `x_0_1_2`, as all oracles name it."""
    builder = pulp.HiGHS(msg=False, small_matrix_value=LEAST_COEFFICIENT)
    builder.createAndConfigureSolver(problem)
    builder.buildSolverModel(problem)
    columns, rows = ([_placed(each.name) for each in kind()] for kind in (problem.variables, problem.constraints))
    write_model(problem.solverModel.getLp(), columns, rows, path)


def _placed(name: str) -> str:
    """`balance[3,2]` for `balance_3_2`."""
    label = re.sub(r"(_\d+)+$", "", name)
    return named(label, tuple(name[len(label) + 1 :].split("_")))


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
            where = None if self.msg else DEVNULL  # its log goes where ours would go
            ended = run(command, stdin=DEVNULL, stdout=where, stderr=where)  # kills the child if it raises
            if ended.returncode != 0 or not solution.exists():
                raise pulp.PulpSolverError(f"CBC ended with code {ended.returncode} and no solution")
            status, values, _, multipliers, _, kind = self.readsol_MPS(str(solution), lp, variables, names, rows)
        lp.assignVarsVals(values)
        lp.assignConsPi(multipliers)
        lp.assignStatus(status, kind)
        return int(status)
