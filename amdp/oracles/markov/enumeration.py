"""Every deterministic policy, evaluated: the last word on small cases."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

from amdp.arrays import Actions, Bools, Costs, Occupancy, one_hot
from amdp.confidence import BernsteinBox
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.evaluation import evaluate
from amdp.mdp import Domain, MarkovPolicies, SingleKernel
from amdp.oracles.base import Planner, Plans, Report, Status
from amdp.oracles.solving import SAME, settle, visited_actions

CHUNK = 4096


@dataclass(frozen=True)
class Enumeration:
    """The cheapest of all policies that differ at a reachable state; refused above `limit` of them."""

    limit: int = 200_000
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise InvalidInput(f"limit = {self.limit}; it must be at least 1")

    def supports(self, domain: Domain) -> bool:
        """Markov policies over a kernel or a box, if they are few."""
        return _can_be_listed(domain) and _count(domain) <= self.limit

    def bind(self, domain: Domain) -> Planner:
        """Count the policies, and refuse too many."""
        if _can_be_listed(domain) and not self.supports(domain):
            raise UnsupportedDomain(
                f"Enumeration would try {domain.shape[2]}^{_deciding(domain).sum()} policies, more than its limit of "
                f"{self.limit}; use another oracle, or raise the limit"
            )
        return _Enumerator(self, domain)


class _Enumerator(Planner):
    def __init__(self, oracle: Enumeration, domain: Domain) -> None:
        super().__init__(oracle, domain)
        self._free = _deciding(domain)
        self._count = _count(domain)

    def minimize(self, costs: Costs) -> Plans:
        began = perf_counter()
        checked = self.checked(costs)
        best = np.concatenate([self._best(cost) for cost in checked])
        sweep = settle(self.domain, checked, best, SAME * np.abs(checked).max(axis=(1, 2, 3)))
        objective = sweep.values[:, 0, self.domain.initial].copy()
        report = Report("Enumeration", perf_counter() - began, nodes=self._count * len(checked))
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
        for low in range(0, self._count, CHUNK):
            numbers = np.arange(low, min(low + CHUNK, self._count))
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


def _can_be_listed(domain: Domain) -> bool:
    return isinstance(domain, MarkovPolicies) and isinstance(domain.dynamics, SingleKernel | BernsteinBox)


def _count(domain: Domain) -> int:
    """How many policies differ at a state where the choice can matter."""
    return int(domain.shape[2] ** int(_deciding(domain).sum()))


def _deciding(domain: Domain) -> Bools:
    """States `[h, s]` at which the choice can matter: those that some policy reaches."""
    if isinstance(domain.dynamics, SingleKernel):
        return domain.dynamics.reachable(domain.initial)
    everywhere = np.ones(domain.shape[:2], dtype=bool)
    everywhere[0] = np.arange(domain.shape[1]) == domain.initial
    return everywhere
