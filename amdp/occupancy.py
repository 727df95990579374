"""Exact evaluation of policies: occupancy forward, values backward, batched over policies."""

import numpy as np

from amdp.arrays import Actions, Costs, Floats, Occupancy, Policies, Values
from amdp.mdp import Domain, Dynamics, SingleKernel


def occupancy(kernel: SingleKernel, policies: Policies, initial: int = 0) -> Occupancy:
    """Chance `[n, h, s, a]` that each of the policies `[n, h, s, a]` is at a pair in a step."""
    return kernel.occupancy(policies, initial)


def values(dynamics: Dynamics, policies: Policies, costs: Costs) -> Values:
    """Cost still to come `[n, h, s]`: `V[h] = sum_a pi[h] (c[h] + least expectation of V[h+1])`."""
    n, steps, states, _ = costs.shape
    result = np.empty((n, steps, states))
    later = np.zeros_like(costs[:, 0])
    for h in reversed(range(steps)):
        np.einsum("nsa,nsa->ns", policies[:, h], costs[:, h] + later, out=result[:, h])
        if h > 0:
            later = dynamics.least_expectation(h - 1, result[:, h])
    return result


def evaluate(domain: Domain, actions: Actions, costs: Costs) -> Floats:
    """Expected cost `[n]` of deterministic policies `[n, h, s]`; over a box, under its cheapest kernel."""
    always = np.full(len(costs), -1.0)
    return domain.dynamics.follow(costs, actions, always).values[:, 0, domain.initial]
