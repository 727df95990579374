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
from amdp.kernels.searches import Problem
from amdp.model.domains import Domain, StationaryPolicies
from amdp.oracles.apart import Ended, Tell
from amdp.oracles.base import Planner
from amdp.oracles.highs import run
from amdp.oracles.interrupts import LOOK
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.examination import Examination
from amdp.oracles.stationary.formulations import FORMULATIONS, Formulation, require_suffix
from amdp.oracles.stationary.local_search import FEW_STARTS, descents
from amdp.oracles.stationary.planning import Chains, Found, Policy, Search, StationaryPlanner, Watch, is_stationary
from amdp.oracles.stationary.rounding import Rounded

# Tighter tolerances, presolve, and smaller coefficients make HiGHS call wrong answers optimal: measured, see
# docs/stationary-oracles.md. At the accuracy of HiGHS by itself, 1e-6, its bounds are rarely close enough to be of use.
ACCURACY = 1e-8
SHARE = 0.9  # of the time for HiGHS; the rest is to examine what it claims


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
        require_suffix(path)
        planner = self.bind(domain)
        assert isinstance(planner, StationaryPlanner)
        checked = planner.checked(floats("cost", cost, "hsa")[None])[0]
        model = Rounded.of(planner.chains, np.ascontiguousarray(checked))
        anywhere = np.zeros(domain.shape[1], dtype=np.int64)
        _loaded(FORMULATIONS[self.formulation](model, anywhere), self.threads, ACCURACY).writeModel(str(path))


class Answer(NamedTuple):
    """What HiGHS leaves."""

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

    def _one(self, problem: Problem, watch: Watch) -> Found:
        incumbent, value = descents(self._chains, problem, FEW_STARTS, watch)
        if watch.expired:
            return Found(incumbent, self._chains.markov_bound(problem.costs), note=self._stopped)
        program = FORMULATIONS[self._settings.formulation](Rounded.of(self._chains, problem.costs), incumbent)

        def tell(primal: float, dual: float, nodes: int) -> None:
            watch.tell(problem, min(value, primal), dual, nodes)

        try:
            given = program, self._settings.threads, SHARE * watch.left, watch.is_heard
            answer: Answer = watch.apart(solve_mixed, *given, tell=tell)
        except Ended:
            return Found(incumbent, self._chains.markov_bound(problem.costs), note=self._stopped)
        claim = Found(incumbent, -inf if answer.failed else answer.bound, answer.nodes, self._note(answer))
        if answer.choices is not None:  # whole within the tolerances: the policy itself may be dearer
            claim = claim._replace(policy=self._chains.cheaper(problem, self._policy(answer.choices), incumbent))
        return self._examination.judged(claim, problem, watch, "HiGHS")

    @property
    def _stopped(self) -> str:
        limit = self._settings.seconds
        return f"stopped at {limit:g} seconds" if limit < inf else "HiGHS ended without an answer"

    def _note(self, answer: Answer) -> str:
        if answer.optimal:
            return ""
        return answer.status if answer.failed else self._stopped

    def _policy(self, choices: Floats) -> Policy:
        _, states, actions = self._chains.shape
        return np.asarray(choices.reshape(states, actions).argmax(axis=1), dtype=np.int64)


_FEASIBLE = highspy.SolutionStatus.kSolutionStatusFeasible
_FAILURES = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
    highspy.HighsModelStatus.kUnknown,
    highspy.HighsModelStatus.kSolveError,
    highspy.HighsModelStatus.kNotset,
)


def solve_mixed(program: Formulation, threads: int, seconds: float, is_heard: bool, tell: Tell) -> Answer:
    """Solve one program; this runs in a process of its own."""
    for accuracy in (ACCURACY, None):
        highs = _loaded(program, threads, accuracy)
        highs.setSolution(_solution(program.start))
        highs.setOptionValue("time_limit", min(seconds, 1e20))
        if is_heard:
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
        if perf_counter() >= self._told + LOOK:
            self._told = perf_counter()
            found = event.data_out
            self._tell(float(found.mip_primal_bound), float(found.mip_dual_bound), int(found.mip_node_count))


def _loaded(program: Formulation, threads: int, accuracy: float | None) -> Any:
    highs = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": threads,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-10,
        "presolve": "off",
        "small_matrix_value": 1e-12,
    }
    if accuracy is not None:
        names = ("mip_feasibility", "primal_feasibility", "dual_feasibility")
        options |= {f"{name}_tolerance": accuracy for name in names}
    for option, value in options.items():
        highs.setOptionValue(option, value)
    highs.passModel(_model(program))
    return highs


def _model(program: Formulation) -> Any:
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.matrix.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = program.cost, program.lower, program.upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = program.matrix.indptr
    model.a_matrix_.index_ = program.matrix.indices
    model.a_matrix_.value_ = program.matrix.data
    others = len(program.cost) - program.n_choices
    model.integrality_ = [highspy.HighsVarType.kContinuous] * others + [
        highspy.HighsVarType.kInteger
    ] * program.n_choices
    return model


def _solution(point: np.ndarray) -> Any:
    solution = highspy.HighsSolution()
    solution.col_value = point.tolist()
    return solution
