"""Costs to go of every action under a policy, compiled."""

import numpy as np

from amdp.kernels.compiling import FUSED, entry
from amdp.kernels.sweeps import expect

_entry = entry(FUSED)


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
