"""A small world, and what policies do in it by plain array operations: no oracle, no compiled code.

Three steps, three states, two actions, not from state 0 on: small enough that every policy can be listed.
"""

from collections.abc import Callable
from itertools import product
from math import e, log
from typing import Any

import numpy as np

from amdp.algorithms.estimators.feedback import Bandit
from amdp.arrays import Actions, Bools, Floats, Policies
from amdp.model.domains import MarkovPolicies
from amdp.model.transitions import Kernel

STEPS, STATES, ACTIONS, INITIAL = 3, 3, 2, 1
SHAPE = STEPS, STATES, ACTIONS
PAIRS = STATES * ACTIONS
TRANSITIONS = np.random.default_rng(7).dirichlet(np.ones(STATES), size=SHAPE)  # [h, s, a, y]
KERNEL = Kernel(TRANSITIONS)
DOMAIN = MarkovPolicies(KERNEL, INITIAL)


def feedback_of_round(
    learner: Any, distribution: Any, policy: Policies, table: Floats, rng: np.random.Generator
) -> Bandit:
    """Play a policy in the small world: the path, its weights, and the losses `table` `[h, s, a]` on it."""
    segment = KERNEL.walk(policy, INITIAL, rng.random((STEPS, 2)))
    return Bandit.reveal(table, segment, learner.weigh(distribution, segment, rng))


def proved_terms(rate: float, limit: int, rounds: int) -> dict[str, float]:
    """The bounds of Theorem 4 on the resampling, error and stability terms of the regret in the small world."""
    return {
        "resampling": STEPS * PAIRS * rounds / (e * limit),
        "error": 2.0 * STEPS * (1.0 + log(PAIRS)) / rate,
        "stability": 3.0 * rate * STEPS**2 * PAIRS * rounds,
    }


def leaders(p: Floats, costs: Floats) -> Actions:
    """The cheapest policies `[n, h, s]` for `costs` `[n, h, s, a]`, by backward induction."""
    return _backward_induction(costs, lambda h, values: np.einsum("say,ny->nsa", p[h], values))[0]


def _backward_induction(costs: Floats, expectation: Callable[[int, Floats], Floats]) -> tuple[Actions, Floats]:
    """Policies `[n, h, s]` and their values `[n, s]`, by the expectation `[n, s, a]` of values `[n, y]` in a step."""
    n, steps, states, _ = costs.shape
    actions = np.empty((n, steps, states), dtype=np.int32)
    ahead = np.zeros((n, states))
    for h in reversed(range(steps)):
        worth = costs[:, h] + (expectation(h, ahead) if h < steps - 1 else 0.0)
        actions[:, h] = worth.argmin(axis=2)
        ahead = worth.min(axis=2)
    return actions, ahead


def occupancies(p: Floats, actions: Actions, initial: int = INITIAL) -> Floats:
    """Where policies `[n, h, s]` are, `[n, h, s, a]`."""
    n, steps, states = actions.shape
    result = np.zeros((n, steps, states, p.shape[2]))
    at = np.zeros((n, states))
    at[:, initial] = 1.0
    for h in range(steps):
        result[:, h] = at[:, :, None] * (actions[:, h, :, None] == np.arange(p.shape[2]))
        at = np.einsum("nsa,say->ny", result[:, h], p[h])
    return result


def value(p: Floats, policy: Actions, costs: Floats) -> float:
    """What a policy `[h, s]` pays."""
    return float((occupancies(p, policy[None])[0] * costs).sum())


def paths(p: Floats, actions: Actions, rng: np.random.Generator) -> Bools:
    """The pairs `[n, h, s, a]` that one path of each policy `[n, h, s]` meets."""
    n, steps, states = actions.shape
    met = np.zeros((n, steps, states, p.shape[2]), dtype=bool)
    each, at = np.arange(n), np.full(n, INITIAL)
    for h in range(steps):
        chosen = actions[each, h, at]
        met[each, h, at, chosen] = True
        below = p[h, at, chosen].cumsum(axis=1)
        at = (below < rng.random((n, 1)) * below[:, -1:]).sum(axis=1)
    return met


def laplace(n: int, rate: float, rng: np.random.Generator) -> Floats:
    """Noise `[n, h, s, a]` of density `rate/2 exp(-rate |z|)`."""
    return rng.laplace(scale=1.0 / rate, size=(n, *SHAPE))


# --- over boxes -------------------------------------------------------------------------------------------------------


def least_expectations(lower: Floats, upper: Floats, values: Floats) -> Floats:
    """The least expectations `[n, s, a]` of values `[n, y]` between the ends `[s, a, y]`: cheapest first."""
    order, each = np.argsort(values, axis=1), np.arange(len(values))
    total = np.einsum("say,ny->nsa", lower, values)
    left = np.repeat(1.0 - lower.sum(axis=2)[None], len(values), axis=0)
    for y in order.T:
        more = np.minimum((upper - lower)[:, :, y].transpose(2, 0, 1), left)
        total += more * values[each, y][:, None, None]
        left -= more
    return np.asarray(total)


def extended_value_iteration(lower: Floats, upper: Floats, costs: Floats) -> tuple[Actions, Floats]:
    """The policies `[n, h, s]` of the cheapest pairs of policy and kernel for `costs` `[n, h, s, a]`, what they pay."""
    actions, values = _backward_induction(costs, lambda h, ahead: least_expectations(lower[h], upper[h], ahead))
    return actions, values[:, INITIAL]


def greatest_chances(lower: Floats, upper: Floats, actions: Actions) -> Floats:
    """The greatest chance `[n, h, s, a]` of each pair over the kernels of the box: Comp-UOB."""
    n, steps, states = actions.shape
    result = np.zeros((n, steps, states, lower.shape[2]))
    each = np.arange(n)
    for h, target in product(range(steps), range(states)):
        reach = np.zeros((n, states))
        reach[:, target] = 1.0
        for step in reversed(range(h)):
            most = -least_expectations(lower[step], upper[step], -reach)
            reach = np.take_along_axis(most, actions[:, step, :, None], axis=2)[:, :, 0]
        result[each, h, target, actions[:, h, target]] = reach[:, INITIAL]
    return result


def optimistic_occupancies(lower: Floats, upper: Floats, actions: Actions, values: Floats) -> Floats:
    """Where policies `[n, h, s]` are, `[n, h, s, a]`, under the kernels that make `values` `[n, h, s]` least."""
    n, steps, states = actions.shape
    result, each, all_states = np.zeros((n, steps, states, lower.shape[2])), np.arange(n)[:, None], np.arange(states)
    at = np.zeros((n, states))
    at[:, INITIAL] = 1.0
    for h in range(steps):
        result[each, h, all_states, actions[:, h]] = at
        if h < steps - 1:
            p, room = (ends[h, all_states, actions[:, h]].copy() for ends in (lower, upper - lower))  # [n, s, y]
            left = 1.0 - p.sum(axis=2)
            for y in np.argsort(values[:, h + 1], axis=1).T:  # the cheapest next state of each policy first
                more = np.minimum(room[each[:, 0], :, y], left)
                p[each[:, 0], :, y] += more
                left -= more
            at = np.einsum("ns,nsy->ny", at, p)
    return result


def sums_of_products(p: Floats, actions: Actions, first: Floats, second: Floats) -> Floats:
    """`E[sum over h != g of first(s_h, a_h) second(s_g, a_g)]` along a path of each policy `[n, h, s]`."""
    n, steps, states = actions.shape
    at, each = occupancies(p, actions).sum(axis=3), np.arange(states)
    ahead = np.zeros((2, n, states))  # what is still to come of either sum
    total = np.zeros(n)
    for h in reversed(range(steps)):
        moves = p[h, each, actions[:, h]]
        later = np.einsum("nsy,xny->xns", moves, ahead) if h < steps - 1 else ahead
        now = np.stack([table[h, each, actions[:, h]] for table in (first, second)])
        total += (at[:, h] * (now[0] * later[1] + now[1] * later[0])).sum(axis=1)
        ahead = now + later
    return total
