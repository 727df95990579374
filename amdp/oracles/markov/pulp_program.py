"""The occupancy linear program written out in PuLP: to read, to export, and to check the others against."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pulp
import scipy
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats
from amdp.model.budgets import Budgets
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain
from amdp.model.dynamics import Dynamics
from amdp.model.transitions import SingleKernel
from amdp.oracles import pulp_solvers
from amdp.oracles.base import Planner, Status
from amdp.oracles.highs import ACCURACY
from amdp.oracles.model_files import require_model_suffix
from amdp.oracles.polytope import has_polytope, solvable_moves
from amdp.oracles.solver_options import NO_OPTIONS, SolverOptions
from amdp.oracles.solving import Answer, BudgetedPlanner, SolverPlanner, require_limits, solver_planner

CBC_ACCURACY = ["primalTolerance 1e-10", "dualTolerance 1e-10"]  # its own are 1e-7


@dataclass(frozen=True)
class PulpProgram:
    """Minimize `<c, x>` over occupancy measures, with named variables `x_h_s_a`, rows `balance_h_s` and `budget_i`.

    In an exported file they are called `x[h,s,a]`, `balance[h,s]` and `budget[i]`, as by the other oracles.
    """

    solver: str = "HiGHS"
    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to what the best policy pays: a solver that is further off is asked again
    threads: int = 1
    options: SolverOptions = NO_OPTIONS  # of the solver: see docs/solvers.md
    log: bool = False  # whether the solver writes its log to standard error
    requires: ClassVar[tuple[str, ...]] = ("pulp",)
    supports = staticmethod(has_polytope)

    def __post_init__(self) -> None:
        require_limits(self)
        pulp_solvers.require_solver(self)

    def bind(self, domain: Domain) -> Planner:
        return solver_planner(self, domain, lambda accepted: _Pulp(accepted, self), self.gap, self.log)

    def export(self, domain: Domain, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[h, s, a]` to a `.lp` or `.mps` file."""
        require_model_suffix(path)
        planner = self.bind(domain)
        assert isinstance(planner, SolverPlanner | BudgetedPlanner)
        assert isinstance(planner.solver, _Pulp)
        planner.solver.set_cost(planner.checked(floats("cost", cost, "hsa")[None])[0])
        pulp_solvers.write(planner.solver.problem, path)


class _Pulp:
    def __init__(self, domain: EpisodeDomain, settings: PulpProgram) -> None:
        self._domain = domain
        self._shape = domain.shape
        self._settings = settings
        self.name = f"PuLP {pulp.__version__} with {settings.solver}"
        self.restart()

    def restart(self) -> None:
        self.problem = pulp.LpProblem("cheapest_policy", pulp.LpMinimize)
        self.pairs = pulp_solvers.add_pairs(self.problem, self._shape)
        dynamics = self._domain.dynamics
        inflow = self._box_flow(dynamics) if isinstance(dynamics, BernsteinBox) else self._flow(dynamics)
        pulp_solvers.add_balance(self.problem, self.pairs, self._shape, inflow, self._domain.initial)
        if isinstance(self._domain, BudgetedPolicies):
            self._add_budgets(self._domain.budgets)

    def set_cost(self, cost: Floats) -> None:
        """Replace the objective by `<cost, x>`."""
        terms = [(variable, float(cost[place])) for place, variable in self.pairs.items()]
        self.problem.setObjective(pulp.LpAffineExpression(terms))

    def solve(self, cost: Floats) -> Answer:
        """Write the objective and call the solver anew: PuLP keeps no basis."""
        self.set_cost(cost)
        try:
            self.problem.solve(self._command())
        except Exception as problem:  # whatever PuLP and its solvers raise
            return Answer(None, Status.FAILED, note=f"{type(problem).__name__}: {problem}")
        status = pulp_solvers.status_of(self.problem)
        if status is Status.FAILED:
            stopped = Status.FEASIBLE if self._settings.seconds < inf else Status.FAILED
            return Answer(None, stopped, note=pulp.LpStatus[self.problem.status])
        note = "" if status is Status.OPTIMAL else "stopped at a limit"
        mass = pulp_solvers.values(self.pairs).reshape(self._shape)
        return Answer(mass, status, note=note, prices=self._budget_prices())

    def _add_budgets(self, budgets: Budgets) -> None:
        """`<usage, x> <= limit`, divided by the size of the budget."""
        for i, (usage, limit, size) in enumerate(zip(budgets.usage, budgets.limits, budgets.sizes, strict=True)):
            terms = [(variable, float(usage[place] / size)) for place, variable in self.pairs.items() if usage[place]]
            self.problem += pulp.LpAffineExpression(terms) <= float(limit / size), f"budget_{i}"

    def _budget_prices(self) -> Floats | None:
        if not isinstance(self._domain, BudgetedPolicies):
            return None
        budgets = self._domain.budgets
        rows = (self.problem.get_constraint_by_name(f"budget_{i}") for i in range(len(budgets)))
        multipliers = [getattr(row, "pi", None) for row in rows]
        if any(each is None for each in multipliers):
            return None
        return -np.array(multipliers) / budgets.sizes

    def _command(self) -> Any:
        settings, seconds = self._settings, self._settings.seconds
        if settings.solver == "HiGHS":
            return pulp_solvers.command(pulp_solvers.Highs, seconds, pulp_solvers.highs_options(settings, ACCURACY))
        if settings.solver == "CBC":
            return pulp_solvers.command(pulp_solvers.Cbc, seconds, pulp_solvers.cbc_options(settings, CBC_ACCURACY))
        kind = pulp_solvers.solver_class(settings.solver)
        return pulp_solvers.command(kind, seconds, pulp_solvers.other_options(settings, kind, {}))

    def _flow(self, kernel: Dynamics) -> pulp_solvers.Inflow:
        """`P[h,s,a,y] x[h,s,a]` enters `(h+1, y)`."""
        assert isinstance(kernel, SingleKernel)
        steps, _, actions = self._shape
        inflow: pulp_solvers.Inflow = {}
        for h in range(steps - 1):
            rows = scipy.sparse.coo_array(kernel.matrix(h))
            for row, y, chance in zip(*(axis.tolist() for axis in rows.coords), rows.data.tolist(), strict=True):
                inflow.setdefault((h + 1, y), []).append(chance * self.pairs[h, row // actions, row % actions])
        return inflow

    def _box_flow(self, box: BernsteinBox) -> pulp_solvers.Inflow:
        """`q[h,s,a,y]` enters `(h+1, y)`, with `sum_y q = x` and `lower x <= q <= upper x`, or `q = share x`."""
        moves = solvable_moves(box)
        inflow: pulp_solvers.Inflow = {}
        for h, s, a in np.ndindex(*moves.free.shape[:3]):
            pair, free = self.pairs[h, s, a], moves.free[h, s, a]
            for y in np.flatnonzero(~free).tolist():
                inflow.setdefault((h + 1, y), []).append(float(moves.share[h, s, a, y]) * pair)
            places = np.flatnonzero(free).tolist()
            flows = {y: self.problem.add_variable(f"q_{h}_{s}_{a}_{y}", lowBound=0) for y in places}
            if flows:
                left = 1.0 - float(moves.share[h, s, a][~free].sum())
                self.problem += pulp.lpSum(flows.values()) == left * pair, f"split_{h}_{s}_{a}"
            for y, flow in flows.items():
                self.problem += flow <= float(moves.high[h, s, a, y]) * pair, f"cap_{h}_{s}_{a}_{y}"
                self.problem += flow >= float(moves.low[h, s, a, y]) * pair, f"floor_{h}_{s}_{a}_{y}"
                inflow.setdefault((h + 1, y), []).append(flow)
        return inflow
