"""Given policies over any rows, compiled: costs to go of every action, and extreme visit chances over intervals."""

import numpy as np

from amdp.kernels.compiling import FUSED, entry, inner
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
