"""How large the costs are that matter: what a policy pays, and not what it avoids.

A cost of 1e10 on an action that no good policy takes says "never"; it is no measure of what an answer may be off by.
So gaps are judged by what the policy pays in expectation, signs aside, and a solver, whose tolerances are relative to
the largest cost that it is given, is given costs without such giants (`tamed`).
"""

from math import frexp

import numpy as np

from amdp.arrays import Actions, Costs, Floats, Values
from amdp.model.domains import Domain

COST_RANGE = 4.0  # costs up to so many times what the best policy pays in all are left as they are
ROUNDING = 1e-12  # relative to the numbers that were added up: smaller differences say nothing


def size_of(domain: Domain, actions: Actions, objective: Floats, costs: Costs) -> Floats:
    """What policies `[n, h, s]` pay in expectation, signs aside: `E sum_h |c|`, `[n]`.

    No cost that a policy avoids enters, and a cost that it meets by chance enters with that chance. Costs that cancel
    do not: the objective may be zero up to rounding, and rounding is relative to what was added up. Zero means that
    the policy pays nothing anywhere. Over a set of kernels it is the least such sum, or the objective if that is more.
    """
    if costs.min() >= 0.0:
        return np.abs(objective)
    as_they_are = np.full(len(costs), -np.inf)
    paid = domain.dynamics.follow(np.abs(costs), actions, as_they_are).values[:, 0, domain.initial]
    result: Floats = np.maximum(paid, np.abs(objective))
    return result


def tamed(domain: Domain, cost: Costs, values: Values, size: float) -> Costs:
    """Costs `[1, h, s, a]` with the same best actions everywhere, and none far above `size`; itself if it has none.

    Let `V` be the values `[1, h, s]` of backward induction and `r = c + P V - V >= 0` the regret of each action. For
    any `V'` and `r'` the costs `c' = V' + r' - P V'` have the values `V'` and the regrets `r'`, by induction from the
    last step, also if `P V'` is the least expectation over a set of kernels. Here `V'` and `r'` are `V` and `r`, cut
    off at a multiple of `size`: an action is best under `c'` exactly where it is best under `c`. Costs that the cuts
    do not concern are returned as they are, to the last digit.
    """
    limit = COST_RANGE * (size or _usual(cost))
    if np.abs(cost).max() <= limit:
        return cost
    cut = np.clip(values, -limit, limit)
    result = cost.copy()
    later = cut_later = np.zeros_like(cost[:, 0])
    for h in reversed(range(cost.shape[1])):
        now, value = cost[:, h], values[:, h, :, None]
        regret = now + later - value
        regret[np.abs(regret) <= ROUNDING * (np.abs(now) + np.abs(value))] = 0.0
        touched = (regret > limit) | (cut[:, h, :, None] != value) | (cut_later != later)
        result[:, h] = np.where(touched, cut[:, h, :, None] + np.clip(regret, 0.0, limit) - cut_later, now)
        if h > 0:
            later = domain.dynamics.least_expectation(h - 1, values[:, h])
            cut_later = domain.dynamics.least_expectation(h - 1, cut[:, h])
    return result


def _usual(cost: Costs) -> float:
    """The median of the costs that are not zero: a scale where the best policy pays nothing at all."""
    some = np.abs(cost[cost != 0.0])
    return float(np.median(some)) if some.size else 1.0


def power_of_two_above(largest: float) -> float:
    """A power of two above `largest`, with an inverse: dividing by it loses no digit."""
    return float(2.0 ** max(-1022, min(1023, frexp(largest or 0.5)[1])))
