"""The method that suits the domain, and why it was chosen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from amdp.arrays import Costs
from amdp.model.domains import Domain, MarkovPolicies
from amdp.oracles.base import Planner, Plans
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.oracles.stationary.branch_and_bound import BranchAndBound
from amdp.oracles.stationary.chains import Chains, is_stationary
from amdp.oracles.stationary.cycles import Cycles, moves_are_certain
from amdp.oracles.stationary.enumeration import Enumeration, listed
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Progress


@dataclass(frozen=True)
class Automatic:
    """Backward induction over Markov policies; over stationary ones, by the structure of the kernel.

    Certain moves: `cycles`. At most `few` closed policies: `enumeration`. Otherwise: `branch-and-bound`.
    """

    seconds: float = inf  # for each solve, where the method takes long
    nodes: float = inf
    gap: float = 1e-9
    few: int = 2_000
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        BranchAndBound(self.seconds, self.nodes, self.gap)
        Enumeration(self.few)

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, MarkovPolicies) or is_stationary(domain)

    def bind(self, domain: Domain) -> Planner:
        return _Chooser(self, domain)


class _Chooser(Planner):
    """Forwards to the planner of the chosen oracle, `on_progress` included."""

    def __init__(self, oracle: Automatic, domain: Domain) -> None:
        super().__init__(oracle, domain)
        self.inside, self.reason = _choice(oracle, domain)
        if isinstance(self.inside, StationaryPlanner):
            self.inside.reason = self.reason

    @property
    def on_progress(self) -> Callable[[Progress], None] | None:
        """Who is told how far a long solve has come."""
        return self.inside.on_progress if isinstance(self.inside, StationaryPlanner) else None

    @on_progress.setter
    def on_progress(self, listener: Callable[[Progress], None] | None) -> None:
        if isinstance(self.inside, StationaryPlanner):
            self.inside.on_progress = listener

    def minimize(self, costs: Costs) -> Plans:
        plans = self.inside.minimize(costs)
        if isinstance(self.inside, StationaryPlanner):
            return plans
        return replace(plans, report=plans.report._replace(note=self.reason))


def _choice(settings: Automatic, domain: Domain) -> tuple[Planner, str]:
    """The planner of the chosen oracle, and why it was chosen."""
    if isinstance(domain, MarkovPolicies):
        return BackwardInduction().bind(domain), "chose dp: Markov policies"
    limits = settings.seconds, settings.nodes, settings.gap
    chains = Chains.of(domain)
    if moves_are_certain(chains):
        return Cycles(*limits).bind(domain), "chose cycles: every move is certain"
    closed = chains.count_closed(settings.few)
    if closed <= settings.few:
        few = Enumeration(settings.few)
        planner = listed(few, domain, few.limit, few.table, settings.seconds)
        return planner, f"chose enumeration: {closed} policies are distinct on reachable states"
    more = f"chose branch-and-bound: more than {settings.few} policies are distinct on reachable states"
    return BranchAndBound(*limits).bind(domain), more
