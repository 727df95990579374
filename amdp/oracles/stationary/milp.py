"""The best stationary policy by HiGHS, as a mixed-integer program that begins at the result of a local search."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import Any, ClassVar

import highspy
import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import floats
from amdp.errors import InvalidInput
from amdp.kernels.searches import Problem
from amdp.mdp import Domain, StationaryPolicies
from amdp.oracles.base import Planner
from amdp.oracles.highs import use_threads
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.formulations import FORMULATIONS, Formulation, require_suffix
from amdp.oracles.stationary.local_search import FEW_STARTS, descents
from amdp.oracles.stationary.planning import Chains, Found, Policy, Search, StationaryPlanner, Watch, is_stationary

ACCURACY = 1e-9  # of rows and whole numbers; HiGHS takes 1e-6 by itself


@dataclass(frozen=True)
class MixedProgram:
    """One mixed-integer program for each cost array; for small cases, and to check the others against.

    The bound is that of HiGHS, as accurate as its tolerances, or that of Markov policies if it is higher.
    """

    formulation: str = "occupancy"
    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to steps times the largest cost: above it an answer is not called optimal
    threads: int = 1
    requires: ClassVar[tuple[str, ...]] = ("highspy",)

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.gap, self.threads)
        if self.formulation not in FORMULATIONS:
            raise InvalidInput(f"formulation = {self.formulation!r}; it must be one of {', '.join(FORMULATIONS)}")

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
        highs = _loaded(FORMULATIONS[self.formulation](planner.chains, np.ascontiguousarray(checked)), self.threads)
        highs.writeModel(str(path))


class _Highs(Search):
    def __init__(self, chains: Chains, settings: MixedProgram) -> None:
        super().__init__(chains)
        self._settings = settings
        self.name = f"HiGHS {highspy.Highs().version()}"

    def _one(self, problem: Problem, watch: Watch) -> Found:
        incumbent, value = descents(self._chains, problem, FEW_STARTS, watch)
        program = FORMULATIONS[self._settings.formulation](self._chains, problem.costs)
        markov = self._chains.markov_bound(problem.costs)
        for accuracy in (ACCURACY, None):
            highs = _loaded(program, self._settings.threads, accuracy)
            highs.setSolution(_solution(program.start(incumbent)))
            highs.setOptionValue("time_limit", min(watch.left, 1e20))
            _run(highs, watch, partial(watch.tell, problem), value, self._settings.threads)
            status = highs.getModelStatus()
            if status not in _FAILURES:  # tight tolerances can make a feasible model look infeasible
                break
        info = highs.getInfo()
        bound = max(markov, float(info.mip_dual_bound)) if status not in _FAILURES else markov
        policy = incumbent
        if info.primal_solution_status == _FEASIBLE:  # within the tolerances: the policy itself may be dearer
            policy = self._chains.cheaper(problem, self._policy(highs), incumbent)
        return Found(policy, bound, max(0, int(info.mip_node_count)), self._note(highs, status))

    def _note(self, highs: Any, status: Any) -> str:
        if status == highspy.HighsModelStatus.kOptimal:
            return ""
        # Ctrl-C raises, so that an interrupt that comes here is that of the clock.
        if status in _STOPPED:
            return f"stopped at {self._settings.seconds:g} seconds"
        return str(highs.modelStatusToString(status))

    def _policy(self, highs: Any) -> Policy:
        _, states, actions = self._chains.shape
        solution = np.array(highs.getSolution().col_value)
        chosen = solution[-states * actions :].reshape(states, actions)
        return np.asarray(chosen.argmax(axis=1), dtype=np.int64)


_FEASIBLE = highspy.SolutionStatus.kSolutionStatusFeasible
_STOPPED = (highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kInterrupt)
_FAILURES = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
    highspy.HighsModelStatus.kUnknown,
    highspy.HighsModelStatus.kSolveError,
    highspy.HighsModelStatus.kNotset,
)


def _loaded(program: Formulation, threads: int, accuracy: float | None = None) -> Any:
    highs = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": threads,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-10,
        "small_matrix_value": 1e-12,  # chances below the default of 1e-9 would be dropped
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


def _run(highs: Any, watch: Watch, tell: Callable[[float, float, int], None], incumbent: float, threads: int) -> None:
    """Solve in a thread, so that Ctrl-C is heard and stops it; tell the listener on the way."""
    use_threads(threads)
    interrupted = Event()

    def on_interval(event: Any) -> None:
        found = event.data_out
        tell(min(incumbent, found.mip_primal_bound), found.mip_dual_bound, int(found.mip_node_count))
        if interrupted.is_set() or watch.left <= 0.0:
            event.interrupt()

    highs.cbMipInterrupt += on_interval
    if current_thread() is not main_thread():
        highs.run()
        return
    done = Event()
    Thread(target=_run_and_tell, args=(highs, done), daemon=True).start()
    try:
        done.wait()
    except KeyboardInterrupt:
        interrupted.set()
        done.wait()
        raise


def _run_and_tell(highs: Any, done: Event) -> None:
    try:
        highs.run()
    finally:
        done.set()
