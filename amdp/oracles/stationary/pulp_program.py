"""The best stationary policy as a mixed-integer program written out in PuLP: to read, to export, to check others."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np
import pulp
import scipy
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats
from amdp.errors import InvalidInput
from amdp.kernels.searches import Problem
from amdp.mdp import Domain, StationaryPolicies
from amdp.oracles.base import Planner
from amdp.oracles.markov.pulp_program import SOLVERS
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.formulations import greatest_reach, require_suffix
from amdp.oracles.stationary.local_search import FEW_STARTS, descents
from amdp.oracles.stationary.planning import Chains, Found, Policy, Search, StationaryPlanner, Watch, is_stationary

CBC_ACCURACY = ["primalTolerance 1e-9", "dualTolerance 1e-9", "integerTolerance 1e-9", "allowableGap 1e-10"]


@dataclass(frozen=True)
class PulpMixedProgram:
    """Minimize `<c, x>` over occupancy measures `x_t_s_a` of one action `choice_s_a` for each state.

    PuLP passes on no bound: an answer that the solver calls optimal proves itself, to the accuracy of the solver;
    any other has the bound of Markov policies.
    """

    solver: str = "HiGHS"
    seconds: float = inf  # for each solve
    gap: float = 1e-9
    threads: int = 1
    requires: ClassVar[tuple[str, ...]] = ("pulp",)

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.gap, self.threads)
        if self.solver not in SOLVERS:
            raise InvalidInput(f"solver = {self.solver!r}; PuLP is asked for one of {', '.join(SOLVERS)}")

    def supports(self, domain: Domain) -> bool:
        """Stationary policies over a kernel."""
        return is_stationary(domain)

    def bind(self, domain: Domain) -> Planner:
        """A planner that writes the model anew for each cost array."""
        return StationaryPlanner(self, domain, lambda chains: _Pulp(chains, self), self.gap, self.seconds)

    def export(self, domain: StationaryPolicies, cost: ArrayLike, path: str | Path) -> None:
        """Write the model for one `cost` `[t, s, a]` to a `.lp` or `.mps` file."""
        require_suffix(path)
        planner = self.bind(domain)
        assert isinstance(planner, StationaryPlanner)
        model, _, _ = written(planner.chains, planner.checked(floats("cost", cost, "hsa")[None])[0])
        (model.writeLP if Path(path).suffix == ".lp" else model.writeMPS)(str(path))


class _Pulp(Search):
    def __init__(self, chains: Chains, settings: PulpMixedProgram) -> None:
        super().__init__(chains)
        self._settings = settings
        self.name = f"PuLP {pulp.__version__} with {settings.solver}"

    def _one(self, problem: Problem, watch: Watch) -> Found:
        incumbent, _ = descents(self._chains, problem, FEW_STARTS, watch)
        markov = self._chains.markov_bound(problem.costs)
        if watch.expired:
            return Found(incumbent, markov, note="no time was left for the solver")
        model, _, choices = written(self._chains, problem.costs)
        model.solve(_command(self._settings, watch.left))
        if model.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
            return Found(incumbent, markov, note=pulp.LpStatus[model.status])
        # Solvers may take choices that are whole only within their tolerances.
        policy = self._chains.cheaper(problem, _policy(self._chains, choices), incumbent)
        # PuLP says Optimal of runs that a limit stopped; `sol_status` tells them apart.
        if model.sol_status != pulp.LpSolutionOptimal:
            return Found(policy, markov, note="stopped at a limit")
        return Found(policy, max(markov, float(pulp.value(model.objective))))


def written(chains: Chains, cost: Floats) -> tuple[Any, dict[tuple[int, int, int], Any], dict[tuple[int, int], Any]]:
    """The model, its variables `x[t, s, a]`, and its variables `choice[s, a]`."""
    steps, states, actions = chains.shape
    model = pulp.LpProblem("cheapest_stationary_policy", pulp.LpMinimize)
    x = {
        place: model.add_variable("x_{}_{}_{}".format(*place), lowBound=0)
        for place in np.ndindex(steps, states, actions)
    }
    choice = {
        pair: model.add_variable("choice_{}_{}".format(*pair), cat=pulp.LpBinary)
        for pair in np.ndindex(states, actions)
    }
    model += pulp.lpSum(float(cost[place]) * chance for place, chance in x.items())

    for s in range(states):
        model += pulp.lpSum(choice[s, a] for a in range(actions)) == 1, f"one_action_{s}"

    moves = scipy.sparse.coo_array(chains.kernel.matrix(0))
    entries = list(zip(*(axis.tolist() for axis in moves.coords), moves.data.tolist(), strict=True))
    for t in range(steps):
        inflow: dict[int, list[Any]] = {s: [] for s in range(states)}
        if t > 0:
            for row, y, chance in entries:
                inflow[y].append(chance * x[t - 1, row // actions, row % actions])
        for s in range(states):
            entering = float(t == 0 and s == chains.initial) + pulp.lpSum(inflow[s])
            model += pulp.lpSum(x[t, s, a] for a in range(actions)) == entering, f"balance_{t}_{s}"

    reach = greatest_reach(chains)
    for (t, s, a), chance in x.items():
        model += chance <= float(reach[t, s]) * choice[s, a], f"only_chosen_{t}_{s}_{a}"
    return model, x, choice


def _policy(chains: Chains, choices: dict[tuple[int, int], Any]) -> Policy:
    _, states, actions = chains.shape
    chosen = np.array([variable.value() or 0.0 for variable in choices.values()])
    return np.asarray(chosen.reshape(states, actions).argmax(axis=1), dtype=np.int64)


def _command(settings: PulpMixedProgram, seconds: float) -> Any:
    limit = None if seconds == inf else seconds
    if settings.solver == "CBC":
        with catch_warnings():
            simplefilter("ignore", DeprecationWarning)  # the bundled CBC is there until PuLP 4, which is excluded
            return pulp.PULP_CBC_CMD(
                msg=False, timeLimit=limit, threads=settings.threads, gapRel=0.0, options=CBC_ACCURACY
            )
    return pulp.HiGHS(
        msg=False,
        timeLimit=limit,
        threads=settings.threads,
        gapRel=0.0,
        mip_feasibility_tolerance=1e-9,
        primal_feasibility_tolerance=1e-9,
        dual_feasibility_tolerance=1e-9,
        small_matrix_value=1e-12,  # chances below the default of 1e-9 would be dropped
    )
