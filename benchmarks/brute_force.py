"""Slow, plain formulas for stationary policies: the truth that others are held against."""

from itertools import product

import numpy as np

from amdp import StationaryPolicies
from amdp.arrays import Floats


def every_policy(domain: StationaryPolicies) -> np.ndarray:
    """All deterministic stationary policies `[n, s]`."""
    _, states, actions = domain.shape
    return np.array(list(product(range(actions), repeat=states)))


def plain_costs(domain: StationaryPolicies, cost: Floats, policies: np.ndarray) -> Floats:
    """The cost `[n]` of each policy `[n, s]`: its law, step by step, without any shortcut."""
    steps, states, _ = domain.shape
    chosen = domain.dynamics.dense().p[0][np.arange(states), policies]  # [n, s, y]
    law = np.zeros((len(policies), states))
    law[:, domain.initial] = 1.0
    total = np.zeros(len(policies))
    for t in range(steps):
        total += np.einsum("ns,ns->n", law, cost[t][np.arange(states), policies])
        law = np.einsum("ns,nsy->ny", law, chosen)
    return total


def plain_optimum(domain: StationaryPolicies, cost: Floats) -> float:
    """The least cost, by trying everything."""
    return float(plain_costs(domain, cost, every_policy(domain)).min())
