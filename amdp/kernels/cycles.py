"""Deterministic transitions, compiled: a stationary policy is a simple path that ends in a cycle."""

import numpy as np
from numba import njit

_fast = njit(cache=True, error_model="numpy")


@_fast
def strides(costs, tables):
    """Fill `tables[L - 1, t, s, a] = c[t] + c[t + L] + c[t + 2L] + ...`."""
    steps, states, n_actions = costs.shape
    lengths, starts = tables.shape[:2]
    sums = np.zeros((lengths, states, n_actions))
    for length in range(1, lengths + 1):
        for k in range(length):
            for s in range(states):
                for a in range(n_actions):
                    sums[k, s, a] = 0.0
        for t in range(steps - 1, -1, -1):
            total = sums[t % length]
            for s in range(states):
                for a in range(n_actions):
                    total[s, a] += costs[t, s, a]
                    if t < starts:
                        tables[length - 1, t, s, a] = total[s, a]


@_fast
def explore(following, costs, tables, walk, max_nodes):
    """Depth first over all paths without repetition; `following[s, a]` is the next state."""
    steps, _, n_actions = costs.shape
    for _ in range(max_nodes):
        depth = walk.counts[0]
        if depth < 0:
            return
        s = walk.path[depth]
        walk.chosen[depth] += 1
        a = walk.chosen[depth]
        if a == n_actions:
            walk.place[s] = -1
            walk.counts[0] = depth - 1
            continue
        walk.counts[1] += 1
        walk.paid[depth + 1] = walk.paid[depth] + costs[depth, s, a]
        y = following[s, a]
        if depth < steps - 1 and walk.place[y] < 0:
            walk.counts[0] = depth + 1
            walk.path[depth + 1] = y
            walk.chosen[depth + 1] = -1
            walk.place[y] = depth + 1
            continue
        total = walk.paid[depth + 1]
        if depth < steps - 1:
            first = walk.place[y]
            total = walk.paid[first]
            for k in range(first, depth + 1):
                total += tables[depth - first, k, walk.path[k], walk.chosen[k]]
        if total < walk.best[0]:
            walk.best[0] = total
            for k in range(walk.policy.size):
                walk.policy[k] = 0
            for k in range(depth + 1):
                walk.policy[walk.path[k]] = walk.chosen[k]
