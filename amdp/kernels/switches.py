"""One epoch of a stream of steps, compiled: the way into a policy, then the policy; and laws from step to step."""

import numpy as np

from amdp.kernels.compiling import entry
from amdp.kernels.paths import _pick, move

_entry = entry()


@_entry
def forward(chains, laws):
    """Fill laws `[n, m, s]` from their first entries on, each along its chain `[s, y]`."""
    n, m, states = laws.shape
    for i in range(n):
        for t in range(1, m):
            for y in range(states):
                laws[i, t, y] = 0.0
            for s in range(states):
                mass = laws[i, t - 1, s]
                if mass > 0.0:
                    for y in range(states):
                        laws[i, t, y] += mass * chains[i, s, y]


@_entry
def epoch(rows, policy, targets, home, parked, wait, routes, odds, state, entered, uniforms, states, actions):
    """Walk one epoch from `state`; where it ends, and how many steps went into entering the policy `[s, a]`.

    `targets[i]` is the law of the target of an attempt that starts in step `i`. `routes[g, r, s]` leads to `g` with
    `r + 1` steps left; who arrives is accepted with chance `odds[g]`. `home[s]` leads to the state `parked`, where
    the action `wait` stays. `uniforms[i]` decide action or target, move, and acceptance.
    """
    m = states.size
    n_actions = policy.shape[1]
    length = routes.shape[1]
    s = state
    goal = 0
    left = -1  # steps of an attempt still to go; -1: not in an attempt
    spent = 0 if entered else m
    for i in range(m):
        if i < spent and left == 0:
            left = -1
            if s == goal and uniforms[i, 2] < odds[goal]:
                spent = i
        # An attempt that would end after the epoch is not made: it is better to wait where the next one starts.
        if i < spent and left < 0 and s == parked and i + length < m:
            goal = _pick(np.cumsum(targets[i]), uniforms[i, 0])
            left = length
        if i >= spent:
            a = _pick(np.cumsum(policy[s]), uniforms[i, 0])
        elif left > 0:
            left -= 1
            a = np.int64(routes[goal, left, s])
        elif s == parked:
            a = wait
        else:
            a = np.int64(home[s])
        states[i] = s
        actions[i] = a
        s = move(rows, 0, s * n_actions + a, uniforms[i, 1])
    return s, spent
