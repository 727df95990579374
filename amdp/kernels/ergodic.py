"""Exponential weights in every state of an ergodic world, compiled: MDP-E and MDP-Exp3, step by step and in blocks.

With `u` the uniform law and `Z = I - P^pi + 1 u^T`, `Z V = l_pi` gives the mean loss `<u, V>` of a policy and, up to a
constant, its bias; `Z^T d = u` gives its stationary law. Both take the same factors of `Z`.
"""

import numpy as np
from numba import uintp

from amdp.kernels.blocks import ARENA, DRAW, LEARN, WEIGH
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.copies import copy
from amdp.kernels.episodes import _lap
from amdp.kernels.paths import _pick, move

_entry = entry()
_inner = inner()


@_entry
def soften(scores, exploration, policy):
    """`policy[s] = (1 - exploration) softmax(scores[s]) + exploration / A`."""
    states, n_actions = scores.shape
    for s in range(states):
        top = scores[s, 0]
        for a in range(1, n_actions):
            top = max(top, scores[s, a])
        total = 0.0
        for a in range(n_actions):
            policy[s, a] = np.exp(scores[s, a] - top)
            total += policy[s, a]
        share = (1.0 - exploration) / total
        for a in range(n_actions):
            policy[s, a] = share * policy[s, a] + exploration / n_actions


@_entry
def mix(rows, policy, moves):
    """The chances `moves[s, y]` of a policy `[s, a]` over rows `[s, a, y]`."""
    states, n_actions = policy.shape
    for s in range(states):
        for y in range(states):
            moves[s, y] = 0.0
        for a in range(n_actions):
            for y in range(states):
                moves[s, y] += policy[s, a] * rows[s, a, y]


@_inner
def _factorize(matrix, order):
    """LU factors in place, rows exchanged so that pivots are large; `order[i]` is the row that is now at `i`."""
    n = order.size
    for i in range(n):
        order[i] = i
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if pivot != k:
            order[k], order[pivot] = order[pivot], order[k]
            for j in range(n):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            matrix[i, k] = factor
            above, below = matrix[k], matrix[i]
            for j in range(k + 1, n):
                below[uintp(j)] -= factor * above[uintp(j)]


@_inner
def _solve(factors, order, right, out):
    """`out` with `Z out = right`."""
    n = order.size
    for i in range(n):
        out[i] = right[order[i]]
        for j in range(i):
            out[i] -= factors[i, j] * out[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            out[i] -= factors[i, j] * out[j]
        out[i] /= factors[i, i]


@_inner
def _stationary(factors, order, law):
    """The law with `Z^T law = u`, row by row of the factors."""
    n = order.size
    inner = np.full(n, 1.0 / n)
    for i in range(n):
        inner[i] /= factors[i, i]
        for j in range(i + 1, n):
            inner[j] -= factors[i, j] * inner[i]
    for i in range(n - 1, -1, -1):
        for j in range(i):
            inner[j] -= factors[i, j] * inner[i]
        law[order[i]] = inner[i]


@_entry
def long_run(rows, policy, moves, losses, bias, ahead):
    """The mean loss of a policy `[s, a]` whose chain is `moves`; fills its bias `[s]` and what is ahead, `[s, a]`."""
    states, n_actions = policy.shape
    factors, order = np.empty((states, states)), np.empty(states, np.int64)
    paid, law = np.empty(states), np.empty(states)
    for s in range(states):
        for y in range(states):
            factors[s, y] = 1.0 / states - moves[s, y]
        factors[s, s] += 1.0
        paid[s] = 0.0
        for a in range(n_actions):
            paid[s] += policy[s, a] * losses[s, a]
    _factorize(factors, order)
    _solve(factors, order, paid, bias)
    _stationary(factors, order, law)
    mean, shift = 0.0, 0.0
    for s in range(states):
        mean += bias[s] / states
        shift += law[s] * bias[s]
    for s in range(states):
        bias[s] -= shift
    for s in range(states):
        for a in range(n_actions):
            later = 0.0
            for y in range(states):
                later += rows[s, a, y] * bias[y]
            ahead[s, a] = later + losses[s, a] - mean
    return mean


@_entry
def pass_on(laws, moves, latest, out):
    """The last of `laws` one step later, then the law `latest`: as many as `out` has room for."""
    states = latest.size
    skipped = laws.shape[0] + 1 - out.shape[0]
    for i in range(out.shape[0] - 1):
        for y in range(states):
            out[i, y] = 0.0
        for s in range(states):
            for y in range(states):
                out[i, y] += laws[i + skipped, s] * moves[s, y]
    out[out.shape[0] - 1] = latest


@_inner
def _take_step(block, k, state, policy, played):
    """Step `k` of a block under a policy `[s, a]`; the state that it leads to."""
    a = _pick(np.cumsum(policy[state]), block.luck[k, 0, 0])
    played.states[k, 0] = state
    played.actions[k, 0] = a
    return move(block.paths, 0, state * policy.shape[1] + a, block.luck[k, 0, 1])


@_inner
def _add(scores, rate, ahead):
    for s in range(scores.shape[0]):
        for a in range(scores.shape[1]):
            scores[s, a] -= rate * ahead[s, a]


@_entry
def mdp_e(block, rows, rate, scores, policies, played):
    """Steps of MDP-E with the policies `[b, s, a]`; where they end."""
    states, n_actions = scores.shape
    moves, bias, ahead = np.empty((states, states)), np.empty(states), np.empty((states, n_actions))
    state = block.initial
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        policy = policies[k]
        soften(scores, 0.0, policy)
        now = _lap(clock, now, played.spent, DRAW)
        state = _take_step(block, k, state, policy, played)
        now = _lap(clock, now, played.spent, ARENA)
        mix(rows, policy, moves)
        long_run(rows, policy, moves, block.tables[k, 0], bias, ahead)
        _add(scores, rate, ahead)
        now = _lap(clock, now, played.spent, LEARN)
    return state


@_entry
def mdp_exp3(block, rows, rate, exploration, likely, scores, laws, known, waiting, queued, policies, played):
    """Steps of MDP-Exp3: where they end, how many laws are known and estimates queued, the oldest one, the unlikely.

    `laws[:known]` are those of the present state given the last pairs, `waiting[:queued]` the values of estimates that
    are not yet used, the oldest first; both have room for as many as the learner looks back. `waiting` is a ring.
    """
    states, n_actions = scores.shape
    lookback, oldest, unlikely = laws.shape[0], 0, 0
    moves, bias = np.empty((states, states)), np.empty(states)
    estimate, ahead, moved = np.zeros((states, n_actions)), np.empty((states, n_actions)), np.empty_like(laws)
    state = block.initial
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        policy, s = policies[k], state
        soften(scores, exploration, policy)
        now = _lap(clock, now, played.spent, DRAW)
        state = _take_step(block, k, s, policy, played)
        a = played.actions[k, 0]
        now = _lap(clock, now, played.spent, ARENA)
        full = known == lookback
        weight = 1.0 / (laws[0, s] * policy[s, a]) if full else 0.0
        now = _lap(clock, now, played.spent, WEIGH)
        unlikely += full and laws[0, s] < likely
        mix(rows, policy, moves)
        later = known if full else known + 1
        pass_on(laws[:known], moves, rows[s, a], moved[:later])
        copy(moved[:later], laws[:later])
        known = later
        estimate[s, a] = block.tables[k, 0, s, a] * weight
        long_run(rows, policy, moves, estimate, bias, ahead)
        estimate[s, a] = 0.0
        waiting[(oldest + queued) % lookback] = ahead
        if queued + 1 < lookback:
            queued += 1
        else:
            _add(scores, rate, waiting[oldest])
            oldest = (oldest + 1) % lookback
        now = _lap(clock, now, played.spent, LEARN)
    return state, known, queued, oldest, unlikely
