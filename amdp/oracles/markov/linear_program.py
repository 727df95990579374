"""The occupancy linear program in HiGHS: compiled once, hot-started from solve to solve."""

from dataclasses import dataclass
from math import inf
from threading import Event, Thread, current_thread, main_thread
from typing import Any, ClassVar

import highspy
import numpy as np

from amdp.arrays import Actions, Floats
from amdp.evaluation import evaluate
from amdp.mdp import Domain, MarkovPolicies, SingleKernel
from amdp.oracles.base import Planner, Status
from amdp.oracles.polytope import Polytope, is_linear, polytope
from amdp.oracles.solving import Answer, SolverPlanner, require_limits

FEW = 0.1  # with a smaller share of the costs changed, the last basis is the place to start
# With more non-zeros than these a solve may outlast a person's patience: listen for Ctrl-C.
LONG_SOLVE = 100_000  # over a kernel
LONG_BOX_SOLVE = 2_000

_STATUSES = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kTimeLimit: Status.FEASIBLE,
    highspy.HighsModelStatus.kIterationLimit: Status.FEASIBLE,
    highspy.HighsModelStatus.kInterrupt: Status.FEASIBLE,
}


@dataclass(frozen=True)
class OccupancyProgram:
    """Minimize `<c, x>` over occupancy measures `x`; a vertex is a deterministic policy.

    The basis of the last solve stays optimal until costs change much, so a small change costs a few pivots.
    """

    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to steps times the largest cost: above it an answer is not called optimal
    threads: int = 1
    requires: ClassVar[tuple[str, ...]] = ("highspy",)

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.gap, self.threads)

    def supports(self, domain: Domain) -> bool:
        """Markov policies over a kernel or a box."""
        return is_linear(domain)

    def bind(self, domain: Domain) -> Planner:
        """Pass the model to HiGHS once."""
        return SolverPlanner(self, domain, lambda accepted: _Highs(accepted, self), self.gap)


class _Highs:
    """One HiGHS object that holds the rows; between solves only its costs change."""

    def __init__(self, domain: MarkovPolicies, settings: OccupancyProgram) -> None:
        self._domain = domain
        self._settings = settings
        self._rows = polytope(domain)
        self._last: Floats | None = None  # the mass of the basis that HiGHS holds
        self._prices: Floats  # the costs that HiGHS holds
        self._interrupted = False
        self._build()
        self.name = f"HiGHS {self._highs.version()}"

    def solve(self, cost: Floats) -> Answer:
        """Primal simplex from the last basis, or from that of the shortsighted policy if many costs changed."""
        prices = cost.reshape(-1)
        changed = np.flatnonzero(prices != self._prices).astype(np.int32)
        self._highs.changeColsCost(len(changed), changed, prices[changed])
        self._prices = prices
        if self._last is None or len(changed) > FEW * len(prices):
            self._choose_start(cost)
        if self._settings.seconds < inf:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + self._settings.seconds)
        self._run()
        return self._answer()

    def restart(self) -> None:
        """Pass the model anew, without a basis."""
        self._build()

    def _build(self) -> None:
        self._highs = highspy.Highs()
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": self._settings.threads,
            "simplex_strategy": 4,  # primal: after a change of costs the last basis stays feasible
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "simplex_scale_strategy": 0,  # chances and costs are at most 1: scaling is work for nothing
            "small_matrix_value": 1e-12,  # chances below the default of 1e-9 would be dropped
        }
        if isinstance(self._domain.dynamics, SingleKernel):
            # Every basis is a policy and every pivot improves its values: none comes back, so none need be perturbed.
            options["primal_simplex_bound_perturbation_multiplier"] = 0.0
        for option, value in options.items():
            self._highs.setOptionValue(option, value)
        self._highs.passModel(_highs_model(self._rows))
        self._last = None
        self._prices = np.zeros(self._rows.n_pairs)
        if self._is_long():
            self._highs.cbSimplexInterrupt += self._on_simplex

    def _is_long(self) -> bool:
        is_kernel = isinstance(self._domain.dynamics, SingleKernel)
        return bool(self._rows.matrix.nnz > (LONG_SOLVE if is_kernel else LONG_BOX_SOLVE))

    def _choose_start(self, cost: Floats) -> None:
        if not isinstance(self._domain.dynamics, SingleKernel):
            return  # over a box a policy alone is not a basis
        shortsighted = cost.argmin(axis=-1).astype(np.int32)
        value = evaluate(self._domain, shortsighted[None], cost[None])[0]
        if self._last is None or value < np.vdot(self._last, cost):
            self._highs.setBasis(_policy_basis(self._rows, shortsighted))

    def _run(self) -> None:
        """Solve; a long solve runs in a thread, so that Ctrl-C is heard and stops it."""
        self._interrupted = False
        use_threads(self._settings.threads)
        if not self._is_long() or current_thread() is not main_thread():
            self._highs.run()
            return
        done = Event()
        Thread(target=self._run_and_tell, args=(done,), daemon=True).start()
        try:
            done.wait()
        except KeyboardInterrupt:
            self._interrupted = True
            done.wait()  # not Thread.join: once interrupted, it takes a running thread for a finished one
            self.restart()
            raise

    def _run_and_tell(self, done: Event) -> None:
        try:
            self._highs.run()
        finally:
            done.set()

    def _on_simplex(self, event: Any) -> None:
        if self._interrupted:
            event.interrupt()

    def _answer(self) -> Answer:
        model_status = self._highs.getModelStatus()
        info = self._highs.getInfo()
        status = _STATUSES.get(model_status, Status.FAILED)
        iterations = max(0, info.simplex_iteration_count)
        note = "" if status is Status.OPTIMAL else self._highs.modelStatusToString(model_status)
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if status is Status.FAILED or not feasible:
            self._last = None
            return Answer(None, status, iterations, note or "no feasible point")
        solution = self._highs.getSolution().col_value
        self._last = np.fromiter(solution, np.float64, self._rows.n_pairs).reshape(self._rows.shape)
        return Answer(self._last, status, iterations, note)


_threads = 1  # what the scheduler of HiGHS was made for: there is one for the whole process


def use_threads(wanted: int) -> None:
    """Make the scheduler anew if it has another number of threads: HiGHS would refuse to run."""
    global _threads
    if wanted != _threads:
        highspy.Highs.resetGlobalScheduler(True)
        _threads = wanted


def _highs_model(rows: Polytope) -> Any:
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.matrix.shape
    model.col_cost_ = np.zeros(model.num_col_)
    model.col_lower_ = np.zeros(model.num_col_)
    model.col_upper_ = np.full(model.num_col_, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = rows.row_lower, rows.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = rows.matrix.indptr
    model.a_matrix_.index_ = rows.matrix.indices
    model.a_matrix_.value_ = rows.matrix.data
    return model


def _policy_basis(rows: Polytope, actions: Actions) -> Any:
    """One basic column for each state and step: triangular by steps, feasible for every deterministic policy."""
    steps, states, n_actions = rows.shape
    chosen = np.arange(steps * states) * n_actions + actions.reshape(-1)
    columns = np.full(rows.n_pairs, highspy.HighsBasisStatus.kLower, dtype=object)
    columns[chosen] = highspy.HighsBasisStatus.kBasic
    basis = highspy.HighsBasis()
    basis.col_status = columns.tolist()
    basis.row_status = [highspy.HighsBasisStatus.kLower] * (steps * states)
    basis.valid = True
    return basis
