"""Geometric resampling, compiled as a whole: noise, backward induction and simulation of trials, batch by batch.

Nothing here returns to Python before every count is found, which is what makes small batches cheap.
"""

import numpy as np

from amdp.kernels.compiling import entry, inner
from amdp.kernels.noise import add_laplace, fill_uniform
from amdp.kernels.paths import meets, meets_all
from amdp.kernels.sweeps import _sound, cheapest

_entry = entry()
_inner = inner()


@_entry
def leaders(rows, noise, scale, center, actions):
    """Cheapest policies `[h, n, s]` for `center` `[h, s, a]` plus Laplace noise; whether all costs were finite."""
    steps, n, states = actions.shape
    costs = np.empty(n * center.size)
    values = np.empty(n * steps * states)
    return _leaders(rows, noise, scale, center, actions, costs, values)


@_inner
def _leaders(rows, noise, scale, center, actions, cost_space, value_space):
    steps, n, states = actions.shape
    n_actions = center.shape[2]
    costs = cost_space[: n * center.size].reshape(steps, n, states, n_actions)
    values = value_space[: n * steps * states].reshape(steps, n, states)
    add_laplace(noise, scale, center.reshape(steps, -1), costs.reshape(steps, n, -1))
    cheapest(rows, costs, True, actions, values)
    return _sound(rows, values)


@_entry
def shared(rows, paths, noise, luck, scale, center, initial, start, states, chosen, limit, batch, counts):
    """Trials that serve all pairs at once, until each was met; their number, or -1 if a cost was not finite."""
    steps, n_states, n_actions = center.shape
    m = states.size
    # Space for all batches, taken once: memory that is given back and taken anew comes with page faults.
    costs, values = np.empty(batch * center.size), np.empty(batch * steps * n_states)
    policies = np.empty(batch * steps * n_states, np.int32)
    counts[:] = 0.0
    missing = m
    done = 0
    while missing > 0 and done < limit:
        n = min(batch, limit - done)
        actions = policies[: n * steps * n_states].reshape(steps, n, n_states)
        if not _leaders(rows, noise, scale, center, actions, costs, values):
            return -1
        uniforms = np.empty((n, start + m))
        fill_uniform(luck, uniforms)
        met = np.empty((n, m), np.bool_)
        meets_all(paths, actions, n_actions, initial, start, states, chosen, uniforms, met)
        for i in range(n):
            for j in range(m):
                if met[i, j] and counts[j] == 0.0:
                    counts[j] = done + i + 1
                    missing -= 1
        done += n
    for j in range(m):
        if counts[j] == 0.0:
            counts[j] = limit
    return done


@_entry
def per_step(rows, paths, noise, luck, scale, center, initial, start, states, chosen, limit, batch, counts):
    """Trials for each pair on its own; their number, or -1 if a cost was not finite."""
    steps, n_states, n_actions = center.shape
    m = states.size
    most = max(batch, m)
    costs, values = np.empty(most * center.size), np.empty(most * steps * n_states)
    policies = np.empty(most * steps * n_states, np.int32)
    waiting = np.arange(m)
    done = 0
    trials = 0
    while waiting.size > 0 and done < limit:
        each = min(max(1, batch // waiting.size), limit - done)
        n = each * waiting.size
        actions = policies[: n * steps * n_states].reshape(steps, n, n_states)
        if not _leaders(rows, noise, scale, center, actions, costs, values):
            return -1
        uniforms = np.empty((n, start + m))
        fill_uniform(luck, uniforms)
        met = np.empty(n, np.bool_)
        meets(paths, actions, n_actions, initial, start, states, chosen, np.repeat(waiting, each), uniforms, met)
        left = 0
        for w in range(waiting.size):
            first = 0
            while first < each and not met[w * each + first]:
                first += 1
            counts[waiting[w]] = done + min(first + 1, each)
            if first == each:
                waiting[left] = waiting[w]
                left += 1
        waiting = waiting[:left]
        done += each
        trials += n
    return trials
