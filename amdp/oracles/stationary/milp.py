"""The best stationary policy by HiGHS, as a mixed-integer program that begins at the result of a local search."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import highspy
import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats
from amdp.errors import InvalidInput
from amdp.kernels.search.state import Problem
from amdp.model.domains import Domain, StationaryPolicies
from amdp.oracles.base import Planner
from amdp.oracles.highs import linear_model, run
from amdp.oracles.interrupts import POLL_SECONDS
from amdp.oracles.solving import require_limits, require_model_suffix
from amdp.oracles.stationary.chains import Chains, is_stationary
from amdp.oracles.stationary.clock import SearchClock
from amdp.oracles.stationary.examination import Examination
from amdp.oracles.stationary.formulations import FORMULATIONS, Formulation
from amdp.oracles.stationary.local_search import FEW_STARTS, descents
from amdp.oracles.stationary.mixed_solvers import (
    ABSOLUTE_GAP,
    HIGHS_ACCURACY,
    HIGHS_OPTIONS,
    SOLVER_TIME,
    chosen_policy,
)
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.rounding import Rounded
from amdp.oracles.stationary.search import Search, SearchResult
from amdp.oracles.subprocesses import SubprocessEnded, Tell


@dataclass(frozen=True)
class MixedProgram:
    """One mixed-integer program for each cost array; for small cases, and to check the others against.

    The model is rounded (`amdp.oracles.stationary.rounding`), and what HiGHS claims about it is examined
    (`amdp.oracles.stationary.examination`): the bound is that of HiGHS if it is confirmed.
    """

    formulation: str = "occupancy"
    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to steps times the largest cost: above it an answer is not called optimal
    threads: int = 1
    requires: ClassVar[tuple[str, ...]] = ("highspy",)

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.gap, self.threads)
        if self.formulation not in FORMULATIONS:
            raise InvalidInput(f"{self.formulation!r}; it must be one of {', '.join(FORMULATIONS)}", "formulation")

    def supports(self, domain: Domain) -> bool:
        """Stationary policies over a kernel."""
        return is_stationary(domain)

    def bind(self, domain: Domain) -> Planner:
        """A planner that passes a new model to HiGHS for each cost array."""
        return StationaryPlanner(self, domain, lambda chains: _Highs(chains, self), self.gap, self.seconds)

    def export(self, domain: StationaryPolicies, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[t, s, a]` to a `.lp` or `.mps` file."""
        require_model_suffix(path)
        planner = self.bind(domain)
        assert isinstance(planner, StationaryPlanner)
        checked = planner.checked(floats("cost", cost, "hsa")[None])[0]
        model = Rounded.of(planner.chains, np.ascontiguousarray(checked))
        anywhere = np.zeros(domain.shape[1], dtype=np.int64)
        _loaded(FORMULATIONS[self.formulation](model, anywhere), self.threads, is_accurate=True).writeModel(str(path))


class Answer(NamedTuple):
    """What HiGHS returns for one program, to be sent between processes."""

    status: str  # in its words
    optimal: bool
    failed: bool
    bound: float
    nodes: int
    choices: Floats | None  # [s * a]


class _Highs(Search):
    def __init__(self, chains: Chains, settings: MixedProgram) -> None:
        super().__init__(chains)
        self._settings = settings
        self._examination = Examination(chains)
        self.name = f"HiGHS {highspy.Highs().version()}"

    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        incumbent, value = descents(self._chains, problem, FEW_STARTS, clock)
        if clock.expired:
            return SearchResult(incumbent, self._chains.markov_bound(problem.costs), note=self._stopped)
        program = FORMULATIONS[self._settings.formulation](Rounded.of(self._chains, problem.costs), incumbent)

        def tell(primal: float, dual: float, nodes: int) -> None:
            clock.report(problem, min(value, primal), dual, nodes)

        try:
            given = program, self._settings.threads, SOLVER_TIME * clock.left, clock.has_listener
            answer: Answer = clock.run_in_subprocess(solve_mixed, *given, tell=tell)
        except SubprocessEnded:
            return SearchResult(incumbent, self._chains.markov_bound(problem.costs), note=self._stopped)
        claim = SearchResult(incumbent, -inf if answer.failed else answer.bound, answer.nodes, self._note(answer))
        if answer.choices is not None:  # whole within the tolerances: the policy itself may be dearer
            claim = claim._replace(
                policy=self._chains.cheaper(problem, chosen_policy(self._chains, answer.choices), incumbent)
            )
        return self._examination.judged(claim, problem, clock, "HiGHS")

    @property
    def _stopped(self) -> str:
        limit = self._settings.seconds
        return f"stopped at {limit:g} seconds" if limit < inf else "HiGHS ended without an answer"

    def _note(self, answer: Answer) -> str:
        if answer.optimal:
            return ""
        return answer.status if answer.failed else self._stopped


_FEASIBLE = highspy.SolutionStatus.kSolutionStatusFeasible
_FAILURES = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
    highspy.HighsModelStatus.kUnknown,
    highspy.HighsModelStatus.kSolveError,
    highspy.HighsModelStatus.kNotset,
)


def solve_mixed(program: Formulation, threads: int, seconds: float, has_listener: bool, tell: Tell) -> Answer:
    """Solve one program; this runs in a process of its own."""
    for is_accurate in (True, False):
        highs = _loaded(program, threads, is_accurate)
        highs.setSolution(_solution(program.start))
        highs.setOptionValue("time_limit", min(seconds, 1e20))
        if has_listener:
            highs.cbMipInterrupt += _Listener(tell).hear
        run(highs, threads)
        status = highs.getModelStatus()
        if status not in _FAILURES:  # tight tolerances can make a feasible model look infeasible
            break
    info = highs.getInfo()
    feasible = info.primal_solution_status == _FEASIBLE
    return Answer(
        str(highs.modelStatusToString(status)),
        status == highspy.HighsModelStatus.kOptimal,
        status in _FAILURES,
        float(info.mip_dual_bound),
        max(0, int(info.mip_node_count)),
        np.array(highs.getSolution().col_value)[-program.n_choices :] if feasible else None,
    )


class _Listener:
    """Tells how far HiGHS has come, not too often."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told = -inf

    def hear(self, event: Any) -> None:
        if perf_counter() >= self._told + POLL_SECONDS:
            self._told = perf_counter()
            found = event.data_out
            self._tell(float(found.mip_primal_bound), float(found.mip_dual_bound), int(found.mip_node_count))


def _loaded(program: Formulation, threads: int, is_accurate: bool) -> Any:
    """HiGHS with a program; at its own accuracy or at ours."""
    highs = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": threads,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": ABSOLUTE_GAP,
    }
    options |= HIGHS_OPTIONS | (HIGHS_ACCURACY if is_accurate else {})
    for option, value in options.items():
        highs.setOptionValue(option, value)
    rows = program.row_lower, program.row_upper
    model = linear_model(program.matrix, program.cost, *rows, program.lower, program.upper)
    continuous, whole = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    model.integrality_ = [continuous] * (len(program.cost) - program.n_choices) + [whole] * program.n_choices
    highs.passModel(model)
    return highs


def _solution(point: np.ndarray) -> Any:
    solution = highspy.HighsSolution()
    solution.col_value = point.tolist()
    return solution
