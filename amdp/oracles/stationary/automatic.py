"""The method that suits the domain, and why it was chosen."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import ClassVar

from amdp.model.domains import MarkovPolicies
from amdp.model.endless import EndlessPolicies
from amdp.model.several_models import MultiModel
from amdp.oracles.base import Planner, PlanningDomain
from amdp.oracles.markov.dynamic_programming import Sweeper
from amdp.oracles.multi_model import branch_and_bound as multi_model
from amdp.oracles.multi_model.enumeration import count, enumerate_all
from amdp.oracles.multi_model.planning import MultiModelPlanner
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, TreeSearch
from amdp.oracles.stationary.chains import Chains, is_stationary
from amdp.oracles.stationary.counting import estimated_policies, in_words
from amdp.oracles.stationary.cycles import Cycles, PathSearch, moves_are_certain
from amdp.oracles.stationary.enumeration import ENUMERATION_GAP, Enumeration, ListSearch
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.policy_iteration import PolicyIteration, PolicyIterator
from amdp.oracles.stationary.search import Search


@dataclass(frozen=True)
class Automatic:
    """Backward induction over Markov policies; over stationary ones, by the structure of the kernel.

    Without an end: `policy-iteration`. Otherwise, over stationary policies:
    certain moves: `cycles`. At most `few` closed policies: `enumeration`. Otherwise: `branch-and-bound`.
    """

    seconds: float = inf  # for each solve, where the method takes long
    nodes: float = inf
    gap: float = 1e-9
    few: int = 2_000
    threads: int = 1  # where the method uses them; the answer does not depend on it
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        BranchAndBound(self.seconds, self.nodes, self.gap, threads=self.threads)
        Enumeration(self.few)

    def supports(self, domain: PlanningDomain) -> bool:
        return isinstance(domain, MarkovPolicies | MultiModel | EndlessPolicies) or is_stationary(domain)

    def bind(self, domain: PlanningDomain) -> Planner:
        if isinstance(domain, EndlessPolicies):
            settings = PolicyIteration(self.seconds, self.gap)
            return PolicyIterator(self, domain, settings, "chose policy-iteration: no end")
        if isinstance(domain, MultiModel):
            return self._over_several_models(domain)
        if not is_stationary(domain):
            return Sweeper(self, domain, "chose dp: Markov policies")
        build, gap, reason = self._choice(Chains.of(domain))
        return StationaryPlanner(self, domain, build, gap, self.seconds, reason)

    def _over_several_models(self, domain: MultiModel) -> Planner:
        if count(domain) <= self.few:
            reason = f"chose enumeration: {count(domain)} policies are distinct on reachable states"
            return MultiModelPlanner(self, domain, enumerate_all, ENUMERATION_GAP, reason=reason)
        reason = f"chose branch-and-bound: more than {self.few} policies are distinct on reachable states"
        search = multi_model.TreeSearch(self.nodes, BranchAndBound().starts)
        return MultiModelPlanner(self, domain, search, self.gap, self.seconds, reason)

    def _choice(self, chains: Chains) -> tuple[Callable[[Chains], Search], float, str]:
        """The search that suits the chains, the gap of its proofs, and why it was chosen."""
        limits = self.seconds, self.nodes, self.gap
        if moves_are_certain(chains):
            return partial(PathSearch, settings=Cycles(*limits)), self.gap, "chose cycles: every move is certain"
        closed = chains.count_closed(self.few)
        if closed <= self.few:
            build = partial(ListSearch, settings=Enumeration(self.few), seconds=self.seconds)
            return build, ENUMERATION_GAP, f"chose enumeration: {closed} policies are distinct on reachable states"
        many = in_words(estimated_policies(chains))
        reason = f"chose branch-and-bound: {many} policies are distinct on reachable states, more than {self.few}"
        settings = BranchAndBound(*limits, threads=self.threads)
        return partial(TreeSearch, settings=settings), self.gap, reason
