"""Policies over any rows, compiled: exponential weights in each state, costs to go, bonuses, and extreme visit chances.

Costs to go are those of every action; extreme visit chances are over intervals.
"""

import numpy as np

from amdp.kernels.compiling import FUSED, entry, inner
from amdp.kernels.soft import exponentiate
from amdp.kernels.sweeps import expect, sort, spend

_entry = entry(FUSED)
_inner = inner(FUSED)


@_entry
def add_costs_to_come(rows, policy, dilation, scores):
    """`Q[h] += dilation * least expectation of <pi[h+1], Q[h+1]>`, backward; `scores` `[h, s, a]` begin as costs."""
    steps, states, n_actions = scores.shape
    order = np.arange(states)
    values = np.empty(states)
    later = np.empty(states * n_actions)
    for h in range(steps - 2, -1, -1):
        for s in range(states):
            total = 0.0
            for a in range(n_actions):
                total += policy[h + 1, s, a] * scores[h + 1, s, a]
            values[s] = total
        expect(rows, h, values, order, later)
        for s in range(states):
            for a in range(n_actions):
                scores[h, s, a] += dilation * later[s * n_actions + a]


@_entry
def local_weights(total, rate, exploration, policy):
    """`(1 - exploration) softmax(-rate * total) + exploration / A` in each step and state; NaN where a sum is."""
    steps, states, n_actions = total.shape
    for h in range(steps):
        for s in range(states):
            least = total[h, s].min()  # NaN if one is
            for a in range(n_actions):
                policy[h, s, a] = -rate * (total[h, s, a] - least)
    exponentiate(policy.reshape(-1), 0, policy.size, np.empty(policy.size))
    for h in range(steps):
        for s in range(states):
            weight = 0.0
            for a in range(n_actions):
                weight += policy[h, s, a]
            share = (1.0 - exploration) / weight
            for a in range(n_actions):
                policy[h, s, a] = policy[h, s, a] * share + exploration / n_actions


@_entry
def local_bonus(policy, least, greatest, gamma, bonus):
    """`b[h,s] = sum_a pi (3 gamma H + H (u - w)) / (u + gamma)`, for the least and the greatest visit chances.

    A pair without any chance, and without gamma, is never chosen.
    """
    steps, states, n_actions = policy.shape
    for h in range(steps):
        for s in range(states):
            total = 0.0
            for a in range(n_actions):
                chance = greatest[h, s, a] + gamma
                if chance > 0.0:
                    unsure = 3.0 * gamma * steps + steps * (greatest[h, s, a] - least[h, s, a])
                    total += policy[h, s, a] * (unsure / chance)
            bonus[h, s] = total


@_entry
def dilated_bonus(rows, policy, local, bonus):
    """`B[h] = b[h] + (1 + 1/H) greatest expectation of <pi[h+1], B[h+1]>`, backward, `[h, s, a]`."""
    steps, states, n_actions = policy.shape
    # The greatest expectation is the least one of the opposite, turned back.
    for h in range(steps):
        for s in range(states):
            for a in range(n_actions):
                bonus[h, s, a] = -local[h, s]
    add_costs_to_come(rows, policy, 1.0 + 1.0 / steps, bonus)
    for h in range(steps):
        for s in range(states):
            for a in range(n_actions):
                bonus[h, s, a] = -bonus[h, s, a]


@_inner
def _extreme_reach(rows, policy, initial, step, state, sign, order, now):
    """Extreme chance, over all kernels in the rows, that `policy` `[h, s, a]` is at `state` in `step`.

    `sign` is -1 for the greatest and 1 for the least; `order` and `now` are scratch, one entry a state.
    """
    states, n_actions = policy.shape[1:]
    keys = np.empty(states)
    expected = np.empty(states * n_actions)
    now[:] = 0.0
    now[state] = 1.0
    for h in range(step - 1, -1, -1):
        at = h if rows.lower.shape[0] > 1 else 0
        for s in range(states):
            keys[s] = sign * now[s]
        sort(order, keys)
        # In descending order the zeros at the end would take budget and give nothing.
        useful = order[: np.count_nonzero(now)] if sign < 0 else order
        spend(rows.lower[at], rows.width[at], rows.budget[at], useful, now, expected)
        for s in range(states):
            total = 0.0
            for a in range(n_actions):
                total += policy[h, s, a] * expected[s * n_actions + a]
            now[s] = total
    return now[initial]


@_entry
def extreme_visits(rows, policies, initial, steps, states, actions, sign, out):
    """Extreme visit chance `[n, m]` of each pair: Comp-UOB of Jin et al. 2020, and its minimum.

    Neighbours at the same step and state share the work.
    """
    n_states = policies.shape[2]
    order = np.arange(n_states)
    now = np.empty(n_states)
    for i in range(policies.shape[0]):
        reach = 0.0
        for m in range(steps.size):
            if m == 0 or steps[m] != steps[m - 1] or states[m] != states[m - 1]:
                reach = _extreme_reach(rows, policies[i], initial, steps[m], states[m], sign, order, now)
            out[i, m] = policies[i, steps[m], states[m], actions[m]] * reach


@_inner
def every_pair(shape):
    """Steps, states and actions of all pairs, in the order of a table `[h, s, a]`."""
    steps, states, n_actions = shape
    number = np.arange(steps * states * n_actions)
    return number // (states * n_actions), number // n_actions % states, number % n_actions


@_entry
def greatest_visits(rows, policies, k, initial, states, actions, out):
    """The greatest visit chance `[h]` of each pair of an episode under policy `k` of `[b, h, s, a]`, over a box."""
    extreme_visits(
        rows, policies[k : k + 1], initial, np.arange(states.size), states, actions, -1.0, out.reshape(1, -1)
    )
