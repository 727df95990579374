"""The best stationary policy as a mixed-integer program written out in PuLP: to read, to export, to check others."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import highspy
import numpy as np
import pulp
import scipy
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats
from amdp.kernels.search.state import Problem
from amdp.model.domains import Domain, StationaryPolicies
from amdp.oracles.base import Planner
from amdp.oracles.pulp_solvers import bundled_cbc, require_solver
from amdp.oracles.solving import require_limits, require_model_suffix
from amdp.oracles.stationary.chains import Chains, is_stationary
from amdp.oracles.stationary.clock import SearchClock
from amdp.oracles.stationary.examination import Examination
from amdp.oracles.stationary.local_search import FEW_STARTS, descents
from amdp.oracles.stationary.mixed_solvers import (
    ABSOLUTE_GAP,
    ACCURACY,
    HIGHS_ACCURACY,
    HIGHS_OPTIONS,
    SOLVER_TIME,
    chosen_policy,
)
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.rounding import Rounded
from amdp.oracles.stationary.search import Search, SearchResult
from amdp.oracles.subprocesses import SubprocessEnded, Tell

CBC_OPTIONS = [
    *(f"{kind}Tolerance {ACCURACY:g}" for kind in ("primal", "dual", "integer")),
    f"allowableGap {ABSOLUTE_GAP:g}",
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
    requires: ClassVar[tuple[str, ...]] = ("pulp",)

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.gap, self.threads)
        require_solver(self.solver)

    def supports(self, domain: Domain) -> bool:
        """Stationary policies over a kernel."""
        return is_stationary(domain)

    def bind(self, domain: Domain) -> Planner:
        """A planner that writes the model anew for each cost array."""
        return StationaryPlanner(self, domain, lambda chains: _Pulp(chains, self), self.gap, self.seconds)

    def export(self, domain: StationaryPolicies, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[t, s, a]` to a `.lp` or `.mps` file."""
        require_model_suffix(path)
        planner = self.bind(domain)
        assert isinstance(planner, StationaryPlanner)
        checked = np.ascontiguousarray(planner.checked(floats("cost", cost, "hsa")[None])[0])
        model, _, _ = written(Rounded.of(planner.chains, checked))
        (model.writeLP if Path(path).suffix == ".lp" else model.writeMPS)(str(path))


class Answer(NamedTuple):
    """What the solver returns for one program, to be sent between processes."""

    status: str  # in the words of PuLP
    optimal: bool
    bound: float
    choices: Floats | None  # [s * a]


class _Pulp(Search):
    def __init__(self, chains: Chains, settings: PulpMixedProgram) -> None:
        super().__init__(chains)
        self._settings = settings
        self._examination = Examination(chains)
        self.name = f"PuLP {pulp.__version__} with {settings.solver}"

    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        incumbent, _ = descents(self._chains, problem, FEW_STARTS, clock)
        markov = self._chains.markov_bound(problem.costs)
        if clock.expired:
            return SearchResult(incumbent, markov, note="no time was left for the solver")
        try:
            given = Rounded.of(self._chains, problem.costs), self._settings, SOLVER_TIME * clock.left
            answer: Answer = clock.run_in_subprocess(solve_written, *given, tell=lambda: None)
        except SubprocessEnded:
            return SearchResult(incumbent, markov, note="stopped at a limit")
        if answer.choices is None:
            return SearchResult(incumbent, markov, note=answer.status)
        # Solvers may take choices that are whole only within their tolerances.
        policy = self._chains.cheaper(problem, chosen_policy(self._chains, answer.choices), incumbent)
        if not answer.optimal:
            return SearchResult(policy, markov, note="stopped at a limit")
        return self._examination.judged(SearchResult(policy, answer.bound), problem, clock, self._settings.solver)


def solve_written(model: Rounded, settings: PulpMixedProgram, seconds: float, tell: Tell) -> Answer:
    """Write and solve one program; this runs in a process of its own."""
    began = perf_counter()
    program, _, choice = written(model)
    program.solve(_command(settings, max(0.0, seconds - (perf_counter() - began))))
    # PuLP says Optimal of runs that a limit stopped; `sol_status` tells them apart.
    found = program.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
    return Answer(
        pulp.LpStatus[program.status],
        program.sol_status == pulp.LpSolutionOptimal,
        _bound(program) if found else -inf,
        np.array([variable.value() or 0.0 for variable in choice.values()]) if found else None,
    )


def _bound(program: Any) -> float:
    """What the solver claims that no answer falls below, if it claims to be done."""
    reached = float(pulp.value(program.objective))
    if isinstance(program.solverModel, highspy.Highs):
        return min(reached, float(program.solverModel.getInfo().mip_dual_bound))
    return reached


def written(model: Rounded) -> tuple[Any, dict[tuple[int, int, int], Any], dict[tuple[int, int], Any]]:
    """The program, its variables `x[t, s, a]`, and its variables `choice[s, a]`."""
    steps, states, actions = model.shape
    program = pulp.LpProblem("cheapest_stationary_policy", pulp.LpMinimize)
    x = {
        place: program.add_variable("x_{}_{}_{}".format(*place), lowBound=0, upBound=1)
        for place in np.ndindex(steps, states, actions)
    }
    choice = {
        pair: program.add_variable("choice_{}_{}".format(*pair), cat=pulp.LpBinary)
        for pair in np.ndindex(states, actions)
    }
    program += pulp.lpSum(float(model.cost[place]) * chance for place, chance in x.items())

    for s in range(states):
        program += pulp.lpSum(choice[s, a] for a in range(actions)) == 1, f"one_action_{s}"

    moves = scipy.sparse.coo_array(model.moves)
    entries = list(zip(*(axis.tolist() for axis in moves.coords), moves.data.tolist(), strict=True))
    for t in range(steps):
        inflow: dict[int, list[Any]] = {s: [] for s in range(states)}
        if t > 0:
            for row, y, chance in entries:
                inflow[y].append(chance * x[t - 1, row // actions, row % actions])
        for s in range(states):
            entering = float(t == 0 and s == model.initial) + pulp.lpSum(inflow[s])
            program += pulp.lpSum(x[t, s, a] for a in range(actions)) == entering, f"balance_{t}_{s}"

    for (t, s, a), chance in x.items():
        program += chance <= float(model.caps[t, s]) * choice[s, a], f"only_chosen_{t}_{s}_{a}"
    return program, x, choice


def _command(settings: PulpMixedProgram, seconds: float) -> Any:
    limit = None if seconds == inf else seconds
    if settings.solver == "CBC":
        options = {"gapRel": 0.0, "presolve": False, "options": CBC_OPTIONS}
        return bundled_cbc(pulp.PULP_CBC_CMD, timeLimit=limit, threads=settings.threads, **options)
    options = {"gapRel": 0.0, "gapAbs": ABSOLUTE_GAP, **HIGHS_OPTIONS, **HIGHS_ACCURACY}
    return pulp.HiGHS(msg=False, timeLimit=limit, threads=settings.threads, **options)
