"""Policy optimization in plain loops: slow, and written from the formulas alone."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from worlds import row_vertices

from amdp import BernsteinBox, Kernel, Segment
from amdp.arrays import Floats
from amdp.model.dynamics import Dynamics
from amdp.model.transitions import SingleKernel


def plain_row(dynamics: Dynamics, place: tuple[int, int, int], later: Floats, sense: float) -> float:
    """The least (`sense` 1) or the greatest (-1) expectation of `later` after a pair, by listing vertices."""
    if isinstance(dynamics, BernsteinBox):
        rows = row_vertices(dynamics.lower[place], dynamics.upper[place])
        return sense * min(sense * float(row @ later) for row in rows)
    assert isinstance(dynamics, SingleKernel)
    return float(dynamics.dense().p[place] @ later)


def plain_costs_to_go(
    dynamics: Dynamics, policy: Floats, costs: Floats, dilation: float = 1.0, sense: float = 1.0
) -> Floats:
    """The textbook recursion in plain loops."""
    steps, states, actions = costs.shape
    scores = costs.copy()
    for h, s, a in product(reversed(range(steps - 1)), range(states), range(actions)):
        later = np.array([policy[h + 1, y] @ scores[h + 1, y] for y in range(states)])
        scores[h, s, a] += dilation * plain_row(dynamics, (h, s, a), later, sense)
    return scores


def trajectories(kernel: Kernel, policy: Floats) -> Iterator[tuple[Segment, float]]:
    """Every trajectory from state 0 with its chance."""
    steps, states, actions = kernel.shape
    for visited in product(range(states), repeat=steps - 1):
        path = (0, *visited)
        moves = product(range(actions), repeat=steps)
        for chosen in moves:
            chance = float(np.prod([policy[h, path[h], chosen[h]] for h in range(steps)]))
            chance *= float(np.prod([kernel.p[h, path[h], chosen[h], path[h + 1]] for h in range(steps - 1)]))
            yield Segment(np.array(path), np.array(chosen)), chance


def plain_reach(dynamics: Dynamics, policy: Floats, step: int, state: int, sense: float) -> float:
    """The least (`sense` 1) or the greatest (-1) chance of being in `state` at `step`, from state 0."""
    reach = np.eye(policy.shape[1])[state]
    for h in reversed(range(step)):
        reach = np.array(
            [
                sum(policy[h, x, a] * plain_row(dynamics, (h, x, a), reach, sense) for a in range(policy.shape[2]))
                for x in range(policy.shape[1])
            ]
        )
    return float(reach[0])


def plain_visits(dynamics: Dynamics, policy: Floats, sense: float) -> Floats:
    """The least or the greatest chance of every pair."""
    steps, states, _ = policy.shape
    reach = [[plain_reach(dynamics, policy, h, s, sense) for s in range(states)] for h in range(steps)]
    visits: Floats = np.array(reach)[:, :, None] * policy
    return visits


def plain_softmax(exponents: Floats) -> Floats:
    """`exp`, divided by the sum of the actions."""
    weights = np.exp(exponents)
    chances: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return chances
