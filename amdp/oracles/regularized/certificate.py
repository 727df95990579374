"""From prices to a proved measure, in plain numpy: the mathematics of `base`, without the compiled method.

Masses are plain numbers here. Those of entropy alone may be smaller than any; where a state loses all of them, the gap
is nan, which proves nothing.
"""

import numpy as np

from amdp.arrays import Bools, Floats
from amdp.kernels.threads import multiply
from amdp.model.domains import MarkovPolicies
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Report, Status
from amdp.oracles.projection.certificate import flow_residual
from amdp.oracles.regularized.base import Minimizer
from amdp.oracles.regularized.regularizers import Regularizer

MOST_STEPS = 200  # of Newton's method for one price
LAST_STEP = 1e-8  # of that method, relative: it converges quadratically, so that no error is left after it
LEAST_TARGET = 1e-140  # of a state's chance: its square is still a number


def reached_pairs(domain: MarkovPolicies) -> Bools:
    """The pairs `[h, s, a]` that some policy can be at."""
    return np.broadcast_to(_kernel(domain).reachable(domain.initial)[:, :, None], domain.shape)


def reduced_costs(domain: MarkovPolicies, cost: Floats, prices: Floats) -> Floats:
    """`c + P v[h+1] - v[h]`; nothing follows the last step."""
    result = cost - prices[:, :, None]
    for h in range(len(cost) - 1):
        result[h] += np.asarray(multiply(_kernel(domain).matrix(h), prices[h + 1])).reshape(cost.shape[1:])
    return result


def certified(
    domain: MarkovPolicies, cost: Floats, regularizer: Regularizer, prices: Floats, report: Report
) -> Minimizer:
    """The feasible measure that prices stand for, with its objective and the gap that they prove."""
    reached = reached_pairs(domain)
    alone = np.where(reached, regularizer.masses(reduced_costs(domain, cost, prices)), 0.0)
    policy = _shares(alone, reached)
    measure = np.asarray(_kernel(domain).occupancy(policy[None], domain.initial)[0])
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        gap = float(regularizer.distances(measure[reached], alone[reached]).sum())
        log_measure = np.log(measure)
    kept = np.where(reached[:, :, 0], prices, 0.0)
    value, residual = objective(cost, regularizer, measure, reached), flow_residual(domain, log_measure)
    return Minimizer(log_measure, kept, value, gap, residual, 0.0, Status.FEASIBLE, report)


def objective(cost: Floats, regularizer: Regularizer, measure: Floats, reached: Bools) -> float:
    """`<q, c> + sum psi(q)` over the pairs that can be reached."""
    mass = measure[reached]
    return float((mass * cost[reached]).sum() + regularizer.values(mass).sum())


def prices_for(domain: MarkovPolicies, cost: Floats, regularizer: Regularizer, chances: Floats) -> Floats:
    """Prices at which the pairs of each state would take its chance `[h, s]` together, step by step from the last."""
    reached, kernel = reached_pairs(domain)[:, :, 0], _kernel(domain)
    prices = np.zeros(chances.shape)
    for h in reversed(range(len(cost))):
        to_go = cost[h]
        if h < len(cost) - 1:
            to_go = to_go + np.asarray(multiply(kernel.matrix(h), prices[h + 1])).reshape(to_go.shape)
        met = reached[h]
        prices[h, met] = _prices(regularizer, to_go[met], np.maximum(chances[h, met], LEAST_TARGET))
    return prices


def _prices(regularizer: Regularizer, to_go: Floats, targets: Floats) -> Floats:
    """For each state the price at which its actions of costs `[s, a]` take the mass `targets` `[s]` together.

    The sum of the masses falls, and is convex, in the distance of the price from the least cost: Newton's method meets
    the root from where the cheapest action alone would take it all.
    """
    least = to_go.min(axis=1)
    below = -regularizer.slopes(targets)
    for _ in range(MOST_STEPS):
        masses = regularizer.masses(to_go - least[:, None] + below[:, None])
        step = (masses.sum(axis=1) - targets) / regularizer.softness(masses).sum(axis=1)
        below = below + step
        if not (step > LAST_STEP * np.abs(below)).any():
            break
    result: Floats = least - below
    return result


def _shares(alone: Floats, reached: Bools) -> Floats:
    """Masses as the chances of actions; equal ones where no mass can be."""
    with np.errstate(invalid="ignore", divide="ignore"):
        policy: Floats = np.where(reached, alone / alone.sum(axis=2, keepdims=True), 1.0 / alone.shape[2])
    return policy


def _kernel(domain: MarkovPolicies) -> SingleKernel:
    assert isinstance(domain.dynamics, SingleKernel)
    return domain.dynamics
