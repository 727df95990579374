"""Extreme visit chances over interval rows, compiled (Comp-UOB of Jin et al. 2020, and its minimum)."""

import numpy as np

from amdp.kernels.compiling import FUSED, entry, inner
from amdp.kernels.sweeps import sort, spend

_entry = entry(FUSED)
_inner = inner(FUSED)


@_inner
def extreme_reach(rows, policy, initial, step, state, sign, order, now):
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
    """Extreme visit chance `[n, m]` of each pair; neighbours at the same step and state share the work."""
    n_states = policies.shape[2]
    order = np.arange(n_states)
    now = np.empty(n_states)
    for i in range(policies.shape[0]):
        reach = 0.0
        for m in range(steps.size):
            if m == 0 or steps[m] != steps[m - 1] or states[m] != states[m - 1]:
                reach = extreme_reach(rows, policies[i], initial, steps[m], states[m], sign, order, now)
            out[i, m] = policies[i, steps[m], states[m], actions[m]] * reach
