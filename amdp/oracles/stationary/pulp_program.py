"""The best stationary policy as a mixed-integer program written out in PuLP: to read, to export, to check others."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import highspy
import numpy as np
import pulp
import scipy
from numpy.typing import ArrayLike

from amdp.model.domains import Domain
from amdp.oracles import pulp_solvers
from amdp.oracles.base import Planner, Status
from amdp.oracles.pulp_solvers import Inflow, add_balance, add_pairs, command, require_solver, status_of, values, write
from amdp.oracles.solver_options import NO_OPTIONS, SolverOptions
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary import mixed_search
from amdp.oracles.stationary.chains import Chains, is_stationary
from amdp.oracles.stationary.formulations import Rounded
from amdp.oracles.stationary.mixed_search import Answer, MixedSearch, model_to_export
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.subprocesses import Tell

CBC_OPTIONS = [
    *(f"{kind}Tolerance {mixed_search.ACCURACY:g}" for kind in ("primal", "dual", "integer")),
    f"allowableGap {mixed_search.ABSOLUTE_GAP:g}",
    "increment 1e-10",  # by itself CBC leaves policies that are cheaper by less than 1e-5
    "preprocess off",
]


@dataclass(frozen=True)
class PulpMixedProgram:
    """Minimize `<c, x>` over occupancy measures `x_t_s_a` of one action `choice_s_a` for each state.

    Where the solver calls its answer optimal, it claims its bound (HiGHS) or the cost of the answer (CBC, of which PuLP
    passes on no bound). The model is rounded and the claim is examined as in `MixedProgram`; without a claim the bound
    is that of Markov policies.
    """

    solver: str = "HiGHS"
    seconds: float = inf  # for each solve
    gap: float = 1e-9
    threads: int = 1
    options: SolverOptions = NO_OPTIONS  # of the solver: see docs/solvers.md
    log: bool = False  # whether the solver writes its log to standard error
    requires: ClassVar[tuple[str, ...]] = ("pulp",)
    supports = staticmethod(is_stationary)

    def __post_init__(self) -> None:
        require_limits(self)
        require_solver(self)

    def bind(self, domain: Domain) -> Planner:
        name = f"PuLP {pulp.__version__} with {self.solver}"
        notes = "stopped at a limit", "no time was left for the solver"

        def search(chains: Chains) -> MixedSearch:
            return MixedSearch(chains, name, self.solver, lambda model, *_: (solve_written, model, self), *notes)

        return StationaryPlanner(self, domain, search, self.gap, self.seconds)

    def export(self, domain: Domain, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[t, s, a]` to a `.lp` or `.mps` file."""
        program, _ = written(model_to_export(self.bind(domain), cost, path))
        write(program, path)


def solve_written(model: Rounded, settings: PulpMixedProgram, seconds: float, tell: Tell) -> Answer:
    """Write and solve one program; this runs in a process of its own."""
    began = perf_counter()
    program, choice = written(model)
    try:
        program.solve(_command(settings, max(0.0, seconds - (perf_counter() - began))))
    except Exception as problem:  # whatever PuLP and its solvers raise, as one without a license
        return Answer(None, -inf, note=f"{type(problem).__name__}: {problem}")
    status = status_of(program)
    if status is Status.FAILED:
        ended = None if program.status == pulp.LpStatusNotSolved else pulp.LpStatus[program.status]
        return Answer(None, -inf, note=ended)
    if status is Status.FEASIBLE:
        return Answer(values(choice), -inf, note=None)
    return Answer(values(choice), _bound(program))


def _bound(program: Any) -> float:
    """What the solver claims that no answer falls below, if it claims to be done."""
    reached = float(pulp.value(program.objective))
    if isinstance(program.solverModel, highspy.Highs):
        return min(reached, float(program.solverModel.getInfo().mip_dual_bound))
    return reached


def written(model: Rounded) -> tuple[Any, dict[tuple[int, ...], Any]]:
    """The program, and its variables `choice[s, a]`."""
    steps, states, actions = model.shape
    program = pulp.LpProblem("cheapest_stationary_policy", pulp.LpMinimize)
    x = add_pairs(program, model.shape, most=1)
    choice = {
        pair: program.add_variable("choice_{}_{}".format(*pair), cat=pulp.LpBinary)
        for pair in np.ndindex(states, actions)
    }
    program += pulp.lpSum(float(model.cost[place]) * chance for place, chance in x.items())

    for s in range(states):
        program += pulp.lpSum(choice[s, a] for a in range(actions)) == 1, f"one_action_{s}"

    moves = scipy.sparse.coo_array(model.moves)
    entries = list(zip(*(axis.tolist() for axis in moves.coords), moves.data.tolist(), strict=True))
    inflow: Inflow = {}
    for t in range(steps - 1):
        for row, y, chance in entries:
            inflow.setdefault((t + 1, y), []).append(chance * x[t, row // actions, row % actions])
    add_balance(program, x, model.shape, inflow, model.initial)

    for (t, s, a), chance in x.items():
        program += chance <= float(model.caps[t, s]) * choice[s, a], f"only_chosen_{t}_{s}_{a}"
    return program, choice


def _command(settings: PulpMixedProgram, seconds: float) -> Any:
    if settings.solver == "HiGHS":
        ours = {**mixed_search.HIGHS_GAPS, **mixed_search.HIGHS_OPTIONS, **mixed_search.HIGHS_ACCURACY}
        return command(pulp.HiGHS, seconds, pulp_solvers.highs_options(settings, ours))
    if settings.solver == "CBC":
        ours = {"gapRel": 0.0, "presolve": False}
        return command(pulp.PULP_CBC_CMD, seconds, ours | pulp_solvers.cbc_options(settings, CBC_OPTIONS))
    kind = pulp_solvers.solver_class(settings.solver)
    return command(kind, seconds, pulp_solvers.other_options(settings, kind, {"gapRel": 0.0}))
