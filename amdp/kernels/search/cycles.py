"""Deterministic transitions, compiled: a stationary policy is a simple path that ends in a cycle."""

import numpy as np

from amdp.kernels.compiling import entry, inner
from amdp.kernels.search.state import WALK_DEPTH, WALK_NODES

_entry = entry(nogil=True)
_inner = inner()


@_inner
def _stride(costs, length, table):
    """Fill `table[t, s, a] = c[t] + c[t + length] + c[t + 2 length] + ...`."""
    steps, states, n_actions = costs.shape
    sums = np.zeros((length, states, n_actions))
    for t in range(steps - 1, -1, -1):
        total = sums[t % length]
        for s in range(states):
            for a in range(n_actions):
                total[s, a] += costs[t, s, a]
                if t < table.shape[0]:
                    table[t, s, a] = total[s, a]


@_inner
def _cycle(costs, strides, walk, first, depth):
    """The cost of all rounds of the cycle that begins at place `first` of the path and ends at `depth`."""
    length = depth - first + 1
    total = 0.0
    if length > strides.tables.shape[0]:
        for t in range(first, costs.shape[0]):
            k = first + (t - first) % length
            total += costs[t, walk.path[k], walk.chosen[k]]
        return total
    table = strides.tables[length - 1]
    if not strides.filled[length - 1]:
        _stride(costs, length, table)
        strides.filled[length - 1] = True
    for k in range(first, depth + 1):
        total += table[k, walk.path[k], walk.chosen[k]]
    return total


@_entry
def explore(following, problem, strides, floors, walk, max_nodes):
    """Depth first over all paths without repetition; `following[s, a]` is the next state.

    A path is left where `floors[t, s]`, the least cost from a step on, shows that nothing cheaper follows.
    """
    costs = problem.costs
    steps, _, n_actions = costs.shape
    for _ in range(max_nodes):
        depth = walk.counts[WALK_DEPTH]
        if depth < 0 or problem.halt[0] != 0:
            return
        s = walk.path[depth]
        walk.chosen[depth] += 1
        a = walk.chosen[depth]
        if a == n_actions:
            walk.place[s] = -1
            walk.counts[WALK_DEPTH] = depth - 1
            continue
        walk.counts[WALK_NODES] += 1
        walk.paid[depth + 1] = walk.paid[depth] + costs[depth, s, a]
        y = following[s, a]
        if depth < steps - 1 and walk.place[y] < 0:
            if walk.paid[depth + 1] + floors[depth + 1, y] >= walk.best[0]:
                continue
            walk.counts[WALK_DEPTH] = depth + 1
            walk.path[depth + 1] = y
            walk.chosen[depth + 1] = -1
            walk.place[y] = depth + 1
            continue
        total = walk.paid[depth + 1]
        if depth < steps - 1:
            first = walk.place[y]
            total = walk.paid[first] + _cycle(costs, strides, walk, first, depth)
        if total < walk.best[0]:
            walk.best[0] = total
            for k in range(walk.policy.size):
                walk.policy[k] = 0
            for k in range(depth + 1):
                walk.policy[walk.path[k]] = walk.chosen[k]
