"""Every deterministic Markov policy, evaluated: the last word on small cases."""

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from amdp.arrays import Actions, Bools, Costs, Occupancy, one_hot
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain
from amdp.model.evaluation import evaluate
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Planner, PlanningDomain, PlanningOracle, Plans, Report, Status
from amdp.oracles.sizes import size_of
from amdp.oracles.solving import TIE_TOLERANCE, settle, visited_actions

POLICIES_AT_ONCE = 4096


class MarkovEnumerator(Planner):
    """Tries every policy that differs at a reachable state."""

    def __init__(self, oracle: PlanningOracle, domain: PlanningDomain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, Domain)
        self._free = deciding_states(domain)
        self._count = domain.shape[2] ** int(self._free.sum())

    def minimize(self, costs: Costs) -> Plans:
        began = perf_counter()
        checked = self.checked(costs)
        best = np.concatenate([self._best(cost) for cost in checked])
        paid = size_of(self.domain, best, evaluate(self.domain, best, checked), checked)
        sweep = settle(self.domain, checked, best, TIE_TOLERANCE * paid)
        objective = sweep.values[:, 0, self.domain.initial].copy()
        report = Report(self.name, perf_counter() - began, nodes=self._count * len(checked))
        return Plans(sweep.actions, objective, objective.copy(), Status.OPTIMAL, sweep.values, report, checked.shape[3])

    def _best(self, cost: Costs) -> Actions:
        """The first cheapest policy `[1, h, s]`, -1 at states that it does not visit."""
        cheapest, winner = np.inf, None
        for policies in self._policies():
            paid = evaluate(self.domain, policies, np.broadcast_to(cost, (len(policies), *cost.shape)))
            i = int(paid.argmin())
            if paid[i] < cheapest:
                cheapest, winner = paid[i], policies[i]
        assert winner is not None
        return visited_actions(_mass(self.domain, winner, cost), (1, *cost.shape))

    def _policies(self) -> Iterator[Actions]:
        """All policies in chunks, counted in base A over the deciding states."""
        free = np.flatnonzero(self._free.reshape(-1))
        steps, states, n_actions = self.domain.shape
        for low in range(0, self._count, POLICIES_AT_ONCE):
            numbers = np.arange(low, min(low + POLICIES_AT_ONCE, self._count))
            policies = np.full((len(numbers), steps * states), -1, dtype=np.int32)
            for place in free:
                numbers, policies[:, place] = np.divmod(numbers, n_actions)
            yield policies.reshape(-1, steps, states)


def _mass(domain: Domain, actions: Actions, cost: Costs) -> Occupancy:
    """Where a policy goes, `[h, s, a]`; over a box, under the kernel that makes it cheapest."""
    dynamics = domain.dynamics
    if isinstance(dynamics, BernsteinBox):
        sweep = dynamics.follow(cost[None], actions[None], np.full(1, -np.inf))
        dynamics = dynamics.optimistic_kernel(sweep.values[0])
    assert isinstance(dynamics, SingleKernel)
    mass: Occupancy = dynamics.occupancy(one_hot(actions, domain.shape[2])[None], domain.initial)[0]
    return mass


def deciding_states(domain: Domain) -> Bools:
    """States `[h, s]` at which the choice can matter: those that some policy reaches."""
    if isinstance(domain.dynamics, SingleKernel):
        return domain.dynamics.reachable(domain.initial)
    everywhere = np.ones(domain.shape[:2], dtype=bool)
    everywhere[0] = np.arange(domain.shape[1]) == domain.initial
    return everywhere
