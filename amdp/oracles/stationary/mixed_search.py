"""Mixed-integer programs over stationary policies, whoever solves them: a model, a claim, and its examination.

On kernels with small chances, HiGHS and CBC call wrong answers optimal at every setting that was tried: where rows are
combined, coefficients cancel down to the size of what is taken for zero. A bound of theirs counts only if a search of
another kind, with bounds of its own, has looked for a policy that undercuts it and proved that there is none.
"""

from collections.abc import Callable
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats
from amdp.kernels.search.state import Problem
from amdp.oracles.base import Planner
from amdp.oracles.model_files import require_model_suffix
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, TreeSearch
from amdp.oracles.stationary.chains import Chains, Policy
from amdp.oracles.stationary.cycles import Cycles, PathSearch, moves_are_certain
from amdp.oracles.stationary.formulations import Rounded
from amdp.oracles.stationary.local_search import FEW_STARTS, descents
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Search, SearchClock, SearchResult
from amdp.oracles.subprocesses import SubprocessEnded

# Tighter tolerances, presolve, and smaller coefficients make HiGHS call wrong answers optimal: measured, see
# docs/stationary-oracles.md. At the accuracy of HiGHS by itself, 1e-6, its bounds are rarely close enough to be of use.
ACCURACY = 1e-8
ABSOLUTE_GAP = 1e-10
SOLVER_TIME = 0.9  # share of the time for the solver; the rest is to examine what it claims
HIGHS_GAPS: dict[str, Any] = {"mip_rel_gap": 0.0, "mip_abs_gap": ABSOLUTE_GAP}
HIGHS_OPTIONS: dict[str, Any] = {"presolve": "off", "small_matrix_value": 1e-12}
HIGHS_ACCURACY = {f"{kind}_feasibility_tolerance": ACCURACY for kind in ("mip", "primal", "dual")}

# Of steps times the largest cost: a bound that exceeds the cost of a policy by less is cut, not rejected.
REJECTION_TOLERANCE = 1e-9
CONFIRMATION_TOLERANCE = 1e-11  # of the same: as close as the bounds of two searches come
EXAMINED_NODES = 50_000  # of branch and bound
ROUNDED = "a rounded model, to within its tolerances"
EXAMINED_PATHS = 10_000_000  # where moves are certain


class Answer(NamedTuple):
    """What a solver returns for one program, to be sent between processes."""

    choices: Floats | None  # [s * a]
    bound: float  # that it claims; -inf if it claims none
    nodes: int = 0
    note: str | None = ""  # why it did not end optimal; None: it was stopped


# From a model, a policy to start at and the clock: the function to call in another process, and its first arguments.
Pose = Callable[[Rounded, Policy, SearchClock], tuple[Any, ...]]


class MixedSearch(Search):
    """A solver in another process, asked for one program after the other, whose claims are examined.

    `stopped` is the note of a solver that ended at a limit, `too_late` that of one that could not begin, and `model`
    says why what it solved may cost less than any policy.
    """

    def __init__(
        self, chains: Chains, name: str, solver: str, pose: Pose, stopped: str, too_late: str, model: str = ROUNDED
    ) -> None:
        super().__init__(chains)
        self.name = name
        self._solver, self._pose, self._stopped, self._too_late = solver, pose, stopped, too_late
        self._examination = Examination(chains, model)

    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        incumbent, value = descents(self._chains, problem, FEW_STARTS, clock)
        if clock.expired:
            return SearchResult(incumbent, self._chains.markov_bound(problem.costs), note=self._too_late)
        work = self._pose(Rounded.of(self._chains, problem.costs), incumbent, clock)

        def tell(primal: float, dual: float, nodes: int) -> None:
            clock.report(problem, min(value, primal), -inf, nodes, claim=dual)

        tell(value, -inf, 0)

        try:
            answer: Answer = clock.run_in_subprocess(*work, SOLVER_TIME * clock.left, tell=tell)
        except SubprocessEnded:
            return SearchResult(incumbent, self._chains.markov_bound(problem.costs), note=self._stopped)
        note = self._stopped if answer.note is None else answer.note
        claim = SearchResult(incumbent, answer.bound, answer.nodes, note)
        if answer.choices is not None:  # whole within the tolerances: the policy itself may be dearer
            chosen = chosen_policy(self._chains, answer.choices)
            claim = claim._replace(policy=self._chains.cheaper(problem, chosen, incumbent))
        return self._examination.judged(claim, problem, clock, self._solver)


def chosen_policy(chains: Chains, choices: Floats) -> Policy:
    """The policy of the variables `choice` `[s * a]`, which are whole only within a solver's tolerances."""
    _, states, actions = chains.shape
    return np.asarray(choices.reshape(states, actions).argmax(axis=1), dtype=np.int64)


def model_to_export(planner: Planner, cost: ArrayLike, path: str | Path) -> Rounded:
    """The model for one `cost` `[t, s, a]`, to be written to a `.lp` or `.mps` file."""
    require_model_suffix(path)
    assert isinstance(planner, StationaryPlanner)
    checked = planner.checked(floats("cost", cost, "hsa")[None])[0]
    return Rounded.of(planner.chains, np.ascontiguousarray(checked))


class Examination:
    """The searches that examine a solver's claims over one kernel."""

    def __init__(self, chains: Chains, model: str = ROUNDED) -> None:
        self._chains, self._model = chains, model

    def judged(self, claim: SearchResult, problem: Problem, clock: SearchClock, solver: str) -> SearchResult:
        """The cheapest policy known, and the claimed bound if it is confirmed; otherwise one that is proved here."""
        steps = self._chains.shape[0]
        markov = self._chains.markov_bound(problem.costs)
        if claim.bound <= markov:
            return claim._replace(bound=markov)
        other = self._search.undercut(problem, claim.bound, clock.without_listener())
        policy = self._chains.cheaper(problem, claim.policy, other.policy)
        cost = self._chains.value(problem, policy)
        if claim.bound > cost + REJECTION_TOLERANCE * steps:
            low, high = f"{cost * problem.scale:.10g}", f"{claim.bound * problem.scale:.10g}"
            wrong = f"rejected the bound of {solver}: no policy costs less than {high}, it claims, but one costs {low}"
            return claim._replace(policy=policy, bound=markov, note=wrong)
        bound = min(claim.bound, cost)
        if other.bound >= bound - CONFIRMATION_TOLERANCE * steps:
            apart = cost > bound + REJECTION_TOLERANCE * steps / 2
            why = f"{solver} solved {self._model}" if apart else ""
            return claim._replace(policy=policy, bound=bound, note=claim.note or why)
        doubt = f"the bound of {solver} was not confirmed in {other.nodes} nodes"
        return claim._replace(policy=policy, bound=max(markov, other.bound), note=claim.note or doubt)

    @cached_property
    def _search(self) -> Search:
        """A search that shares nothing with the solver: over cycles, or branch and bound."""
        if moves_are_certain(self._chains):
            return PathSearch(self._chains, Cycles(nodes=EXAMINED_PATHS))
        return TreeSearch(self._chains, BranchAndBound(nodes=EXAMINED_NODES))
