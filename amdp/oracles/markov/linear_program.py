"""The occupancy linear program in HiGHS: compiled once, hot-started from solve to solve."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import highspy
import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import Actions, Floats, floats
from amdp.kernels.threads import multiply
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain
from amdp.model.evaluation import evaluate
from amdp.oracles.base import Planner, PlanningOracle, Status
from amdp.oracles.highs import ACCURACY, configured, linear_model, require_options, run, stoppable
from amdp.oracles.markov.dynamic_programming import Sweeper
from amdp.oracles.model_files import names_of, require_model_suffix, write_model
from amdp.oracles.polytope import Polytope, has_polytope, program
from amdp.oracles.solver_options import NO_OPTIONS, SolverOptions, adopt
from amdp.oracles.solving import Answer, require_limits, solver_planner

FEW_CHANGES = 0.1  # with a smaller share of the costs changed, the last basis is the place to start
# With more non-zeros than these a solve may outlast a person's patience: listen for Ctrl-C.
LONG_SOLVE_ENTRIES = 20_000  # over a kernel
LONG_HOT_SOLVE_ENTRIES = 100_000  # over a kernel, from the last basis: the listening thread would take longer
LONG_BOX_SOLVE_ENTRIES = 2_000

_STATUSES = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kTimeLimit: Status.FEASIBLE,
    highspy.HighsModelStatus.kIterationLimit: Status.FEASIBLE,
    highspy.HighsModelStatus.kInterrupt: Status.FEASIBLE,
}


@dataclass(frozen=True)
class OccupancyProgram:
    """Minimize `<c, x>` over occupancy measures `x`; a vertex is a deterministic policy, if there are no budgets.

    The basis of the last solve stays optimal until costs change much, so a small change costs a few pivots.
    """

    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to what the best policy pays: a solver that is further off is asked again
    threads: int = 1
    options: SolverOptions = NO_OPTIONS  # of HiGHS, by their names there
    log: bool = False  # whether HiGHS writes its log to standard error
    requires: ClassVar[tuple[str, ...]] = ("highspy",)
    supports = staticmethod(has_polytope)

    def __post_init__(self) -> None:
        require_limits(self)
        require_options(adopt(self))

    def bind(self, domain: Domain) -> Planner:
        return solver_planner(self, domain, lambda accepted: _Highs(accepted, self), self.gap, self.log)

    def export(self, domain: Domain, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[h, s, a]` to a `.lp` or `.mps` file."""
        export_program(self, domain, cost, path)


def export_program(oracle: PlanningOracle, domain: Domain, cost: ArrayLike, path: str | Path) -> None:
    """Write the occupancy program of a domain, with columns `x[h,s,a]` and rows `balance[h,s]`."""
    require_model_suffix(path)
    checked = Sweeper(oracle, domain).checked(floats("cost", cost, "hsa")[None])[0]
    assert isinstance(domain, EpisodeDomain)
    rows = program(domain)
    prices = np.zeros(rows.matrix.shape[1])
    prices[: rows.n_pairs] = checked.reshape(-1)
    model = linear_model(rows.matrix, prices, rows.row_lower, rows.row_upper)
    write_model(model, names_of(rows.column_blocks), names_of(rows.row_blocks), path)


class _Highs:
    """One HiGHS object that holds the rows; between solves only its costs change."""

    def __init__(self, domain: EpisodeDomain, settings: OccupancyProgram) -> None:
        self._domain = domain
        self._settings = settings
        self._rows = program(domain)
        self._is_short_when_hot = not self._rows.has_flows and self._rows.matrix.nnz <= LONG_HOT_SOLVE_ENTRIES
        self.restart()
        self.name = f"HiGHS {self._highs.version()}"

    def restart(self) -> None:
        options: dict[str, Any] = ACCURACY | {
            "threads": self._settings.threads,
            "simplex_strategy": 4,  # primal: after a change of costs the last basis stays feasible
            "simplex_scale_strategy": 0,  # chances and costs are at most 1: scaling is work for nothing
        }
        if self._rows.bases_are_policies:
            # Every basis is a policy and every pivot improves its values: none comes back, so none need be perturbed.
            options["primal_simplex_bound_perturbation_multiplier"] = 0.0
        self._highs = configured({**options, **self._settings.options, "output_flag": self._settings.log})
        rows = self._rows
        self._highs.passModel(linear_model(rows.matrix, np.zeros(rows.matrix.shape[1]), rows.row_lower, rows.row_upper))
        self._last: Floats | None = None  # the mass of the basis that HiGHS holds
        self._prices = np.zeros(rows.n_pairs)  # the costs that HiGHS holds
        is_long = rows.matrix.nnz > (LONG_BOX_SOLVE_ENTRIES if rows.has_flows else LONG_SOLVE_ENTRIES)
        self._stop = stoppable(self._highs) if is_long else None  # set, it ends a long solve

    def solve(self, cost: Floats) -> Answer:
        """Primal simplex from the last basis, or from that of the shortsighted policy if many costs changed."""
        prices = cost.reshape(-1)
        changed = np.flatnonzero(prices != self._prices).astype(np.int32)
        self._highs.changeColsCost(len(changed), changed, prices[changed])
        self._prices = prices
        is_hot = self._last is not None and len(changed) <= FEW_CHANGES * len(prices)
        if not is_hot:
            self._choose_start(cost)
        if self._settings.seconds < inf:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + self._settings.seconds)
        run(self._highs, self._settings.threads, None if is_hot and self._is_short_when_hot else self._stop)
        return self._answer()

    def _choose_start(self, cost: Floats) -> None:
        if not self._rows.bases_are_policies:
            return
        shortsighted = cost.argmin(axis=-1).astype(np.int32)
        value = evaluate(self._domain, shortsighted[None], cost[None])[0]
        if self._last is None or value < multiply(self._last.reshape(-1), cost.reshape(-1)):
            self._highs.setBasis(_policy_basis(self._rows, shortsighted))

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
        solution = self._highs.getSolution()
        self._last = np.fromiter(solution.col_value, np.float64, self._rows.n_pairs).reshape(self._rows.shape)
        return Answer(self._last, status, iterations, note, self._budget_prices(solution))

    def _budget_prices(self, solution: Any) -> Floats | None:
        if not isinstance(self._domain, BudgetedPolicies):
            return None
        budgets = self._domain.budgets
        multipliers: Floats = -np.array(solution.row_dual[-len(budgets) :]) / budgets.sizes
        return multipliers


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
