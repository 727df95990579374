"""What a solver claims, examined: its word is not a proof.

On kernels with small chances, HiGHS and CBC call wrong answers optimal at every setting that was tried: where rows are
combined, coefficients cancel down to the size of what is taken for zero. A bound of theirs counts only if a search of
another kind, with bounds of its own, has looked for a policy that undercuts it and proved that there is none.
"""

from functools import cached_property

from amdp.kernels.search.state import Problem
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, TreeSearch
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.clock import SearchClock
from amdp.oracles.stationary.cycles import Cycles, PathSearch, moves_are_certain
from amdp.oracles.stationary.search import Search, SearchResult

REJECTION_TOLERANCE = (
    1e-9  # of steps times the largest cost: a bound that exceeds the cost of a policy by less is cut, not rejected
)
CONFIRMATION_TOLERANCE = 1e-11  # of the same: as close as the bounds of two searches come
EXAMINED_NODES = 50_000  # of branch and bound
EXAMINED_PATHS = 10_000_000  # where moves are certain


class Examination:
    """The searches that examine a solver's claims over one kernel."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains

    def judged(self, claim: SearchResult, problem: Problem, clock: SearchClock, solver: str) -> SearchResult:
        """The cheapest policy known, and the claimed bound if it is confirmed; otherwise one that is proved here."""
        steps = self._chains.shape[0]
        markov = self._chains.markov_bound(problem.costs)
        if claim.bound <= markov:
            return claim._replace(bound=markov)
        other = self._search.solve([problem], clock.without_listener())[0]
        policy = self._chains.cheaper(problem, claim.policy, other.policy)
        cost = self._chains.value(problem, policy)
        if claim.bound > cost + REJECTION_TOLERANCE * steps:
            low, high = f"{cost * problem.scale:.10g}", f"{claim.bound * problem.scale:.10g}"
            wrong = f"rejected the bound of {solver}: no policy costs less than {high}, it claims, but one costs {low}"
            return claim._replace(policy=policy, bound=markov, note=wrong)
        bound = min(claim.bound, cost)
        if other.bound >= bound - CONFIRMATION_TOLERANCE * steps:
            apart = cost > bound + REJECTION_TOLERANCE * steps / 2
            rounded = f"{solver} solved a rounded model, to within its tolerances" if apart else ""
            return claim._replace(policy=policy, bound=bound, note=claim.note or rounded)
        doubt = f"the bound of {solver} was not confirmed in {other.nodes} nodes"
        return claim._replace(policy=policy, bound=max(markov, other.bound), note=claim.note or doubt)

    @cached_property
    def _search(self) -> Search:
        """A search that shares nothing with the solver: over cycles, or branch and bound."""
        if moves_are_certain(self._chains):
            return PathSearch(self._chains, Cycles(nodes=EXAMINED_PATHS))
        return TreeSearch(self._chains, BranchAndBound(nodes=EXAMINED_NODES))
