"""Unbroken streams that the tests share, and an exact stationary oracle that tries every policy."""

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from amdp import Kernel, Planner, Plans, StationaryPolicies, Status
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Actions, Costs, Floats, one_hot
from amdp.kernels.threads import multiply
from amdp.losses import FixedLosses
from amdp.model.domains import Domain
from amdp.oracles.base import Report


def parked_rows(states: int, actions: int, rng: np.random.Generator, concentration: float = 0.5) -> Floats:
    """Random rows `[s, a, y]`; action 0 of the last state stays there."""
    rows = rng.dirichlet(np.full(states, concentration), size=(states, actions))
    rows = 0.95 * rows + 0.05 / states
    rows[-1, 0] = np.eye(states)[-1]
    return rows


def parked_entry(steps: int, states: int = 3, actions: int = 2, seed: int = 1) -> PolicySwitching:
    """Switching over random rows."""
    return PolicySwitching(Kernel.homogeneous(parked_rows(states, actions, np.random.default_rng(seed)), steps))


def every_policy(states: int, actions: int) -> Actions:
    """All stationary policies `[n, s]`, the first state counting slowest."""
    return np.array(list(product(range(actions), repeat=states)), dtype=np.int32)


def plain_law(rows: Floats, policy: Floats, initial: int, steps: int) -> Floats:
    """The law `[t, s]` of the state, one step after the other."""
    law = np.zeros((steps, len(rows)))
    law[0, initial] = 1.0
    for t in range(1, steps):
        for s, a in product(range(rows.shape[0]), range(rows.shape[1])):
            law[t] += law[t - 1, s] * policy[s, a] * rows[s, a]
    return law


def iid_losses(steps: int, states: int, actions: int, seed: int = 1) -> FixedLosses:
    """Zeros and ones with a fixed mean for each pair."""
    rng = np.random.default_rng(seed)
    means = rng.random((1, states, actions))
    return FixedLosses((rng.random((steps, 1, states, actions)) < means).astype(float))


def random_losses(steps: int, states: int, actions: int, seed: int = 1) -> FixedLosses:
    """Uniform losses."""
    return FixedLosses(np.random.default_rng(seed).random((steps, 1, states, actions)))


@dataclass(frozen=True)
class TryAll:
    """Every stationary policy, by the table of all occupancies."""

    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, StationaryPolicies)

    def bind(self, domain: Domain) -> Planner:
        return _TryAllPlanner(self, domain)


class _TryAllPlanner(Planner):
    def __init__(self, oracle: Any, domain: Domain) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, StationaryPolicies)
        steps, states, actions = domain.shape
        self.actions = every_policy(states, actions)
        rows = domain.dynamics.dense().p[0]
        one = one_hot(self.actions, actions)
        law = np.zeros((len(one), steps, states))
        law[:, 0, domain.initial] = 1.0
        moves = np.einsum("nsa,say->nsy", one, rows)
        for t in range(1, steps):
            law[:, t] = np.einsum("ns,nsy->ny", law[:, t - 1], moves)
        self.table = (law[..., None] * one[:, None]).reshape(len(one), -1)

    def minimize(self, costs: Costs) -> Plans:
        checked = self.checked(costs)
        paid = multiply(np.ascontiguousarray(checked).reshape(len(checked), -1), self.table.T)
        best = paid.argmin(axis=1)
        least = paid[np.arange(len(best)), best]
        report = Report("TryAll")
        return Plans(self.actions[best], least, least, Status.OPTIMAL, np.empty(0), report, self.domain.shape[2])
