"""Policy iteration as a planning oracle for amdp: evaluate, improve, repeat (Howard 1960)."""

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

import amdp
from amdp.arrays import Actions, Costs, Values
from amdp.model.domains import Domain


@dataclass(frozen=True)
class PolicyIteration:
    """Start from the cheapest immediate action; stop when no action improves."""

    rounds: int = 1000  # a limit for the impatient: an answer stopped by it is FEASIBLE
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        """Markov policies over any dynamics."""
        return isinstance(domain, amdp.MarkovPolicies)

    def bind(self, domain: Domain) -> amdp.Planner:
        """Nothing to compile."""
        return _Iterator(self, domain)


class _Iterator(amdp.Planner):
    oracle: PolicyIteration

    def minimize(self, costs: Costs) -> amdp.Plans:
        began = perf_counter()
        costs = self.checked(costs)
        actions: Actions = costs.argmin(axis=-1).astype(np.int32)
        rounds, stable = 0, False
        while not stable and rounds < self.oracle.rounds:
            values = amdp.values(self.domain.dynamics, amdp.one_hot(actions, costs.shape[3]), costs)
            improved, advantage = self._improve(actions, values, costs)
            stable = bool((improved == actions).all())
            rounds += 1
            if rounds < self.oracle.rounds:
                actions = improved
        objective = values[:, 0, self.domain.initial]
        bound = objective + advantage  # one Bellman step proves how much cheaper any policy could be
        status = amdp.Status.OPTIMAL if stable else amdp.Status.FEASIBLE
        report = amdp.Report("PolicyIteration", perf_counter() - began, iterations=rounds)
        return amdp.Plans(actions, objective, bound, status, values, report, costs.shape[3])

    def _improve(self, actions: Actions, values: Values, costs: Costs) -> tuple[Actions, Values]:
        """The greedy policy for `values`, and the sum over steps of its greatest advantage (at most 0)."""
        ahead = costs.copy()
        for h in range(costs.shape[1] - 1):
            ahead[:, h] += self.domain.dynamics.least_expectation(h, values[:, h + 1])
        advantage = ahead.min(axis=-1) - values
        rounding = 1e-12 * np.abs(ahead).max(axis=(1, 2, 3))[:, None, None]
        improved = np.where(advantage < -rounding, ahead.argmin(axis=-1), actions).astype(np.int32)
        return improved, advantage.min(axis=-1).sum(axis=-1)
