"""The best stationary policy by HiGHS, as a mixed-integer program that begins at the result of a local search."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import highspy
import numpy as np
from numpy.typing import ArrayLike

from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.model.several_models import MultiModel
from amdp.oracles.base import Planner, PlanningDomain
from amdp.oracles.highs import configured, linear_model, require_options, run
from amdp.oracles.interrupts import POLL_SECONDS
from amdp.oracles.model_files import names_of, write_model
from amdp.oracles.multi_model.mixed_program import ProgramSearch
from amdp.oracles.multi_model.planning import MultiModelPlanner
from amdp.oracles.solver_options import NO_OPTIONS, SolverOptions, adopt
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary import mixed_search
from amdp.oracles.stationary.chains import Chains, Policy, is_stationary
from amdp.oracles.stationary.formulations import Formulation, Rounded, aggregated, occupancy, value
from amdp.oracles.stationary.mixed_search import ROUNDED, Answer, MixedSearch, model_to_export
from amdp.oracles.stationary.phases import RELAXED, phases
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import SearchClock
from amdp.oracles.subprocesses import Tell

Formulate = Callable[[Rounded, Policy], Formulation]
FORMULATIONS: dict[str, Formulate] = {
    "occupancy": occupancy,
    "aggregated": aggregated,
    "value": value,
}  # "phases" has a setting


@dataclass(frozen=True)
class MixedProgram:
    """One mixed-integer program for each cost array; for small cases, and to check the others against.

    The model is rounded (`amdp.oracles.stationary.formulations`), and what HiGHS claims about it is examined
    (`amdp.oracles.stationary.mixed_search`): the bound is that of HiGHS if it is confirmed.
    """

    formulation: str = "occupancy"
    last_steps: int = 0  # of each run of equal costs, that the formulation "phases" keeps one by one
    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to steps times the largest cost: above it an answer is not called optimal
    threads: int = 1
    options: SolverOptions = NO_OPTIONS  # of HiGHS, by their names there
    log: bool = False  # whether HiGHS writes its log to standard error
    requires: ClassVar[tuple[str, ...]] = ("highspy",)

    def __post_init__(self) -> None:
        require_limits(self)
        require_options(adopt(self))
        names = *FORMULATIONS, "phases"
        if self.formulation not in names:
            raise InvalidInput(f"{self.formulation!r}; it must be one of {', '.join(names)}", "formulation")
        if self.last_steps and self.formulation in FORMULATIONS:
            reason = f"the formulation {self.formulation!r} keeps every step; only 'phases' takes steps together"
            raise InvalidInput(f"{self.last_steps}; {reason}", "last_steps")

    def supports(self, domain: PlanningDomain) -> bool:
        return is_stationary(domain) or (isinstance(domain, MultiModel) and self.formulation == "occupancy")

    def bind(self, domain: PlanningDomain) -> Planner:
        name = f"HiGHS {highspy.Highs().version()}"
        if isinstance(domain, MultiModel):
            search_all = ProgramSearch(solve_mixed, self)
            return MultiModelPlanner(self, domain, search_all, self.gap, self.seconds, solver=name)
        is_limited = self.seconds < inf
        stopped = f"stopped at {self.seconds:g} seconds" if is_limited else "HiGHS ended without an answer"

        def pose(model: Rounded, incumbent: Policy, clock: SearchClock) -> tuple[Any, ...]:
            return solve_mixed, self.formulate(model, incumbent), self, clock.has_listener

        solved = ROUNDED if self.formulation in FORMULATIONS else RELAXED

        def search(chains: Chains) -> MixedSearch:
            return MixedSearch(chains, name, "HiGHS", pose, stopped, stopped, solved)

        return StationaryPlanner(self, domain, search, self.gap, self.seconds)

    def export(self, domain: PlanningDomain, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[t, s, a]` to a `.lp` or `.mps` file."""
        if isinstance(domain, MultiModel):
            raise UnsupportedDomain("milp does not write the model of several models", "oracle")
        model = model_to_export(self.bind(domain), cost, path)
        program = self.formulate(model, np.zeros(domain.shape[1], dtype=np.int64))
        write_model(_highs_model(program), names_of(program.column_blocks), names_of(program.row_blocks), path)

    def formulate(self, model: Rounded, start: Policy) -> Formulation:
        """The program of a model, to begin at a policy."""
        build: Formulate = FORMULATIONS.get(self.formulation, partial(phases, last_steps=self.last_steps))
        return build(model, start)


_FAILURES = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
    highspy.HighsModelStatus.kUnknown,
    highspy.HighsModelStatus.kSolveError,
    highspy.HighsModelStatus.kNotset,
)


def solve_mixed(program: Formulation, settings: MixedProgram, has_listener: bool, seconds: float, tell: Tell) -> Answer:
    """Solve one program; this runs in a process of its own."""
    for is_accurate in (True, False):
        highs = loaded(program, settings, is_accurate)
        highs.setOptionValue("time_limit", min(seconds, 1e20))
        if has_listener:
            highs.cbMipInterrupt += _listener(tell)
        run(highs, settings.threads)
        status = highs.getModelStatus()
        if status not in _FAILURES:  # tight tolerances can make a feasible model look infeasible
            break
    info = highs.getInfo()
    is_feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    choices = np.array(highs.getSolution().col_value)[-program.n_choices :] if is_feasible else None
    nodes = max(0, int(info.mip_node_count))
    if status in _FAILURES:
        return Answer(choices, -inf, nodes, str(highs.modelStatusToString(status)))
    return Answer(choices, float(info.mip_dual_bound), nodes, _why_it_ended(highs, status))


def _why_it_ended(highs: Any, status: Any) -> str | None:
    """The note of an answer: nothing if it is optimal, None for the limit of time, else what HiGHS says."""
    ours = {highspy.HighsModelStatus.kOptimal: "", highspy.HighsModelStatus.kTimeLimit: None}
    return ours[status] if status in ours else f"HiGHS ended: {highs.modelStatusToString(status)}"


def _listener(tell: Tell) -> Callable[[Any], None]:
    """Tells how far HiGHS has come, not too often."""
    last = -inf

    def hear(event: Any) -> None:
        nonlocal last
        if perf_counter() >= last + POLL_SECONDS:
            last = perf_counter()
            progress = event.data_out
            tell(float(progress.mip_primal_bound), float(progress.mip_dual_bound), int(progress.mip_node_count))

    return hear


def loaded(program: Formulation, settings: MixedProgram, is_accurate: bool = True) -> Any:
    """HiGHS with a program and its start, at our accuracy or at its own."""
    ours = {**mixed_search.HIGHS_GAPS, **mixed_search.HIGHS_OPTIONS, "threads": settings.threads}
    accuracy = mixed_search.HIGHS_ACCURACY if is_accurate else {}
    highs = configured({**ours, **accuracy, **settings.options, "output_flag": settings.log})
    highs.passModel(_highs_model(program))
    start = highspy.HighsSolution()
    start.col_value = program.start.tolist()
    highs.setSolution(start)
    return highs


def _highs_model(program: Formulation) -> Any:
    rows = program.row_lower, program.row_upper
    model = linear_model(program.matrix, program.cost, *rows, program.lower, program.upper)
    continuous, whole = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    model.integrality_ = [continuous] * (len(program.cost) - program.n_choices) + [whole] * program.n_choices
    return model
