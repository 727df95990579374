"""Who walks where, compiled: closed walks of a graph of certain moves, and many stationary policies at once.

`following[s, a]` is the next state.

What is added up along walks of length `k` lies in arrays `[r, s, a]` whose row `r = k (k - 1) / 2 + j` belongs to the
steps `t` with `t mod k = j`. A walk of length `k` takes its `j`-th pair in those steps.
"""

import numpy as np

from amdp.kernels.blocks import ARENA, LEARN
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.episodes import _lap
from amdp.kernels.paths import _pick, move

_entry = entry()
_inner = inner()


@_entry
def catch(following, state, time, tails, limit):
    """The actions of the shortest way from `state` at `time` onto a closed walk, which is at `tails[t mod k]`."""
    states, n_actions = following.shape
    came = np.full((limit + 1, states), -1, np.int64)  # the pair that led there
    came[0, state] = 0
    for length in range(limit + 1):
        there = tails[(time + length) % tails.size]
        if came[length, there] >= 0:
            way = np.empty(length, np.int64)
            for i in range(length - 1, -1, -1):
                there, way[i] = divmod(came[i + 1, there], n_actions)
            return way
        if length < limit:
            for s in range(states):
                if came[length, s] >= 0:
                    for a in range(n_actions):
                        came[length + 1, following[s, a]] = s * n_actions + a
    return np.full(1, -1, np.int64)  # nowhere within the limit


@_inner
def _cheapest_from(following, costs, length, start, ahead, choices):
    """The least cost of a closed walk of that length from `start`, and its choices `[j, s]`."""
    states, n_actions = following.shape
    row = length * (length - 1) // 2
    ahead[length] = np.inf
    ahead[length, start] = 0.0
    for j in range(length - 1, -1, -1):
        for s in range(states):
            least = np.inf
            for a in range(n_actions):
                cost = costs[row + j, s, a] + ahead[j + 1, following[s, a]]
                if cost < least:
                    least = cost
                    choices[j, s] = a
            ahead[j, s] = least
    return ahead[0, start]


@_entry
def cheapest(following, costs, lengths, starts, bounds):
    """The states, actions and cost of the cheapest closed walk.

    No walk of length `lengths[i]` from `starts[c]` costs less than `bounds[i, c]`. They are looked at in the order of
    their bounds, which become exact, until none can be cheaper than the best that was found.
    """
    states = following.shape[0]
    longest = lengths.max()
    ahead = np.empty((longest + 1, states))
    choices = np.zeros((longest, states), np.int64)
    known = np.zeros(bounds.shape, np.bool_)
    walk = np.empty((2, 0), np.int64)
    best = np.inf
    while True:
        low, at, begin = best, -1, -1
        for i in range(lengths.size):
            for c in range(starts.size):
                if not known[i, c] and bounds[i, c] < low:
                    low, at, begin = bounds[i, c], i, c
        if at < 0:
            return walk, best
        length = lengths[at]
        bounds[at, begin] = _cheapest_from(following, costs, length, starts[begin], ahead, choices)
        known[at, begin] = True
        if bounds[at, begin] < best:
            best = bounds[at, begin]
            walk = np.empty((2, length), np.int64)
            s = starts[begin]
            for j in range(length):
                a = choices[j, s]
                walk[0, j], walk[1, j] = s, a
                s = following[s, a]


@_inner
def _pursue(block, k, state, walk, since, route, time, n_actions, played):
    """Step `k` of a block on the way to a closed walk, or on it; the state that it leads to."""
    a = route[time - since] if time < since + route.size else walk[1, time % walk.shape[1]]
    played.states[k, 0] = state
    played.actions[k, 0] = a
    return move(block.paths, 0, state * n_actions + a, block.luck[k, 0, 1])


@_inner
def _same(walk, other):
    """Whether two closed walks take the same pairs at the same places."""
    if walk.shape[1] != other.shape[1]:
        return False
    for j in range(walk.shape[1]):
        if walk[0, j] != other[0, j] or walk[1, j] != other[1, j]:
            return False
    return True


@_entry
def add_step(costs, lengths, time, table):
    """Add the losses `[s, a]` of a step to the costs `[r, s, a]` of walks, to one row for each length."""
    for i in range(lengths.size):
        row = costs[lengths[i] * (lengths[i] - 1) // 2 + time % lengths[i]]
        for s in range(table.shape[0]):
            for a in range(table.shape[1]):
                row[s, a] += table[s, a]


@_entry
def follow_leader(block, following, lengths, starts, limit, costs, bounds, walk, since, route, time, played):
    """Steps behind the cheapest closed walk from `time` on: where they end, and the pursuit by then.

    A walk that pays nothing stays the cheapest. If another one leads, the way to it begins at once.
    """
    state, n_actions = block.initial, following.shape[1]
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(played.states.shape[0]):
        t = time + k
        state = _pursue(block, k, state, walk, since, route, t, n_actions, played)
        now = _lap(clock, now, played.spent, ARENA)
        table, place = block.tables[k, 0], t % walk.shape[1]
        add_step(costs, lengths, t, table)
        if table[walk[0, place], walk[1, place]] > 0.0:
            found, _ = cheapest(following, costs, lengths, starts, bounds)
            if not _same(walk, found):
                walk, since = found, t + 1
                route = catch(following, state, since, walk[0], limit)
        now = _lap(clock, now, played.spent, LEARN)
    return state, walk, since, route


@_entry
def meet(block, low, high, state, walk, since, route, time, n_actions, window, met, played):
    """Steps `low .. high - 1` of a block, the first at `time`; losses from the step `window` on join `met[place]`."""
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(low, high):
        t, s = time + k - low, state
        state = _pursue(block, k, s, walk, since, route, t, n_actions, played)
        if t >= window:
            met[t % met.size] += block.tables[k, 0, s, played.actions[k, 0]]
    _lap(clock, now, played.spent, ARENA)
    return state


@_inner
def _toward(following, costs, rate, length, first, count, end, out):
    """`out[i, s]`: the logarithm of the sum of `exp(-rate cost)` over the ways from `s` to `end`.

    They take the `j`-th costs of walks of that length, from `j = first + i` to `first + count - 1`, around the cycle.
    """
    states, n_actions = following.shape
    row = length * (length - 1) // 2
    out[count] = -np.inf
    out[count, end] = 0.0
    for i in range(count - 1, -1, -1):
        r = row + (first + i) % length
        for s in range(states):
            top = -np.inf
            for a in range(n_actions):
                top = max(top, out[i + 1, following[s, a]] - rate * costs[r, s, a])
            total = 0.0
            if top > -np.inf:
                for a in range(n_actions):
                    total += np.exp(out[i + 1, following[s, a]] - rate * costs[r, s, a] - top)
            out[i, s] = top + np.log(total) if total > 0.0 else -np.inf


@_entry
def weigh(following, costs, rate, length, starts, out):
    """Fill `out[c]` with the logarithm of the weight of all closed walks of that length from `starts[c]`."""
    ahead = np.empty((length + 1, following.shape[0]))
    for c in range(starts.size):
        _toward(following, costs, rate, length, np.int64(0), length, starts[c], ahead)
        out[c] = ahead[0, starts[c]]


@_entry
def draw(following, costs, rate, length, start, uniforms):
    """The states and actions of a closed walk of that length from `start`, by its weight; a number for each step."""
    n_actions = following.shape[1]
    ahead = np.empty((length + 1, following.shape[0]))
    _toward(following, costs, rate, length, np.int64(0), length, start, ahead)
    row = length * (length - 1) // 2
    walk = np.empty((2, length), np.int64)
    chances = np.empty(n_actions)
    s = start
    for j in range(length):
        for a in range(n_actions):
            chances[a] = np.exp(ahead[j + 1, following[s, a]] - rate * costs[row + j, s, a] - ahead[j, s])
        walk[0, j] = s
        walk[1, j] = _pick(np.cumsum(chances), uniforms[j])
        s = following[s, walk[1, j]]
    return walk


@_entry
def passing(following, costs, rate, length, j, s, a):
    """The logarithm of the weight of all closed walks of that length whose `j`-th pair is `(s, a)`, from any start."""
    ahead = np.empty((length, following.shape[0]))
    _toward(following, costs, rate, length, j + 1, length - 1, s, ahead)
    row = length * (length - 1) // 2
    return ahead[0, following[s, a]] - rate * costs[row + j, s, a]


@_entry
def walk_on(policies, rows, table, at, paid, next_at, next_paid):
    """One step of each of the policies `[n, s]` from its law `at[n, s]`: the next law, and what it has paid by then."""
    n, states = policies.shape
    for i in range(n):
        for y in range(states):
            next_at[i, y] = 0.0
        total = paid[i]
        for s in range(states):
            mass = at[i, s]
            if mass > 0.0:
                a = policies[i, s]
                total += mass * table[s, a]
                for y in range(states):
                    next_at[i, y] += mass * rows[s, a, y]
        next_paid[i] = total
