"""Geometric resampling, compiled as a whole: noise, backward induction and simulation of trials, batch by batch.

Nothing here returns to Python before every count is found, which is what makes small batches cheap.
"""

import numpy as np

from amdp.kernels.compiling import entry, inner
from amdp.kernels.layout import WIDTH
from amdp.kernels.leaders import find_leaders
from amdp.kernels.meetings import meets, meets_all
from amdp.kernels.noise import add_laplace, fill_uniform
from amdp.kernels.reach import visit_chances
from amdp.kernels.sweeps import _sound, cheapest

FORBIDDEN = 1e300  # a cost that no plan pays; sums over actions stay finite

_entry = entry()
_inner = inner()


@_entry
def leader(rows, noise, scale, center, actions):
    """The cheapest policy `[h, 1, s]` for `center` `[h, s, a]` plus Laplace noise; whether all costs were finite."""
    steps, _, states = actions.shape
    costs, values = np.empty((steps, 1, states, center.shape[2])), np.empty((steps, 1, states))
    add_laplace(noise, scale, center.reshape(steps, -1), costs.reshape(steps, 1, -1))
    cheapest(rows, costs, True, actions, values)
    return _sound(rows, values)


@_entry
def leaders(rows, reached, noise, scale, center, n, actions):
    """`n` such policies, `[h, s, n]`, with noise in the states that can be reached: see `amdp.kernels.leaders`."""
    return find_leaders(rows, reached, noise, scale, center, n, actions)


@_inner
def space_for(n, center):
    """Room for the actions `[h, s, n]` of `n` leaders, for all batches: new memory would come with page faults.

    Zeros, for the sake of the states that cannot be reached: no index is then out of bounds.
    """
    steps, states, _ = center.shape
    return np.zeros((steps, states, (n + WIDTH - 1) // WIDTH * WIDTH), np.int32)


@_entry
def gap(rows, noise, scale, center, initial, start, states, chosen, estimate, n):
    """What leaders for `center` pay above the cheapest once an `estimate[m]` at the pairs of a segment is added, and
    how much of the estimate they pay; both are means over `n` leaders. The first is NaN if a cost was not finite.
    """
    steps, n_states, n_actions = center.shape
    costs, values = np.empty((steps, n, n_states, n_actions)), np.empty((steps, n, n_states))
    actions, ignored = np.empty((steps, n, n_states), np.int32), np.empty((steps, n, n_states), np.int32)
    add_laplace(noise, scale, center.reshape(steps, -1), costs.reshape(steps, n, -1))
    cheapest(rows, costs, True, actions, values)
    before = values[0, :, initial].copy()
    sound = _sound(rows, values)
    for j in range(states.size):
        for i in range(n):
            costs[start + j, i, states[j], chosen[j]] += estimate[j]
    cheapest(rows, costs, True, ignored, values)
    cheapest_now = values[0, :, initial].copy()
    sound = sound and _sound(rows, values)
    force(costs, actions)
    cheapest(rows, costs, True, ignored, values)
    followed = values[0, :, initial]
    if not (sound and _sound(rows, values)):
        return np.nan, np.nan
    return (followed - cheapest_now).mean(), (followed - before).mean()


@_entry
def force(costs, actions):
    """Make all but the chosen actions `[h, n, s]` so dear in `costs` `[h, n, s, a]` that a sweep follows them."""
    steps, n, n_states, n_actions = costs.shape
    for h in range(steps):
        for i in range(n):
            for s in range(n_states):
                for a in range(n_actions):
                    if a != actions[h, i, s]:
                        costs[h, i, s, a] = FORBIDDEN


@_entry
def shared(rows, reached, paths, noise, luck, scale, center, initial, start, states, chosen, limit, batch, counts):
    """Trials that serve all pairs at once, until each was met; their number, or -1 if a cost was not finite."""
    n_actions = center.shape[2]
    m = states.size
    actions = space_for(batch, center)
    counts[:] = 0.0
    missing = m
    done = 0
    while missing > 0 and done < limit:
        n = min(batch, limit - done)
        if not find_leaders(rows, reached, noise, scale, center, n, actions):
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
def per_step(rows, reached, paths, noise, luck, scale, center, initial, start, states, chosen, limit, batch, counts):
    """Trials for each pair on its own; their number, or -1 if a cost was not finite."""
    n_actions = center.shape[2]
    m = states.size
    actions = space_for(max(batch, m), center)
    waiting = np.arange(m)
    done = 0
    trials = 0
    while waiting.size > 0 and done < limit:
        each = min(max(1, batch // waiting.size), limit - done)
        n = each * waiting.size
        if not find_leaders(rows, reached, noise, scale, center, n, actions):
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


# --- reach-scaled resampling ------------------------------------------------------------------------------------------
#
# A trial gives a pair the chance `x <= c` of its visit instead of a coin; with `y = x / c` and `N = c L` the weight is
# `(1/c) sum_{n < N} prod_{i <= n} (1 - y_i)`. Within a batch the products are taken as they are; between two batches a
# coin of the last product decides whether the pair goes on, and the products begin anew.


@_entry
def weigh_batch(chances, scale, count, weight):
    """`weight` plus what the first `count` trials of a batch add to it, and the chance to go on after them."""
    total = 0.0
    going_on = 1.0
    for i in range(count):
        total += going_on
        going_on *= max(0.0, 1.0 - chances[i] / scale)
    return weight + total / scale, going_on


@_entry
def scaled_shared(
    rows,
    reached,
    reach,
    noise,
    luck,
    scale,
    center,
    initial,
    start,
    states,
    chosen,
    bounds,
    limits,
    batches,
    path,
    weights,
):
    """Scaled trials that serve all pairs at once; their number, or -1 if a cost was not finite.

    `bounds[m]` are the suprema `c` of the chances, `limits[m]` the numbers `N`, `batches[m]` the most that a pair asks
    for in a batch; a path takes `path` random numbers.
    """
    n_actions = center.shape[2]
    m = states.size
    most = batches.max()
    actions = space_for(most, center)
    all_uniforms, all_wanted, all_chances = np.empty((most, path)), np.empty((most, m), np.bool_), np.empty((most, m))
    weights[:] = 0.0
    is_open = np.ones(m, np.bool_)
    coins = np.empty(m)
    done = 0
    while True:
        n = shared_batch(is_open, limits, done, batches)
        if n == 0:
            return done
        if not find_leaders(rows, reached, noise, scale, center, n, actions):
            return -1
        uniforms, wanted, chances = all_uniforms[:n], all_wanted[:n], all_chances[:n]
        fill_uniform(luck, uniforms)
        fill_uniform(luck, coins)
        for i in range(n):
            for j in range(m):
                wanted[i, j] = is_open[j] and done + i < limits[j]
        visit_chances(reach, actions, n_actions, initial, start, states, chosen, wanted, uniforms, chances)
        weigh_shared(chances, bounds, limits, done, coins, is_open, weights)
        done += n


@_entry
def shared_batch(is_open, limits, done, batches):
    """How many trials the next batch has: as many as the most demanding open pair asks for.

    Later batches are half as long: few pairs are still open then.
    """
    most = 0
    for j in range(is_open.size):
        if is_open[j]:
            most = max(most, min(limits[j] - done, batches[j] if done == 0 else (batches[j] + 1) // 2))
    return most


@_entry
def weigh_shared(chances, bounds, limits, done, coins, is_open, weights):
    """Add a batch `[n, m]` to the weights of the open pairs, and close those that do not go on."""
    for j in range(is_open.size):
        if is_open[j]:
            count = min(chances.shape[0], limits[j] - done)
            weights[j], going_on = weigh_batch(chances[:, j], bounds[j], count, weights[j])
            is_open[j] = done + count < limits[j] and coins[j] < going_on


@_entry
def scaled_per_step(
    rows,
    reached,
    reach,
    noise,
    luck,
    scale,
    center,
    initial,
    start,
    states,
    chosen,
    bounds,
    limits,
    batches,
    path,
    weights,
):
    """Scaled trials for each pair on its own; their number, or -1 if a cost was not finite."""
    n_actions = center.shape[2]
    m = states.size
    batch = batches.max()
    most = max(batch, m)
    actions = space_for(most, center)
    weights[:] = 0.0
    is_open = np.ones(m, np.bool_)
    owner = np.empty(most, np.int64)
    coins = np.empty(m)
    done = 0
    trials = 0
    while True:
        each, n = per_step_batch(is_open, limits, done, batch, owner)
        if n == 0:
            return trials
        if not find_leaders(rows, reached, noise, scale, center, n, actions):
            return -1
        uniforms = np.empty((n, path))
        fill_uniform(luck, uniforms)
        fill_uniform(luck, coins)
        wanted = np.zeros((n, m), np.bool_)
        chances = np.empty((n, m))
        for i in range(n):
            wanted[i, owner[i]] = True
        visit_chances(reach, actions, n_actions, initial, start, states, chosen, wanted, uniforms, chances)
        weigh_per_step(chances, bounds, limits, done, each, coins, is_open, weights)
        done += each
        trials += n


@_entry
def per_step_batch(is_open, limits, done, batch, owner):
    """Trials for each open pair and in all; `owner[i]` is the pair of trial `i`."""
    waiting = 0
    most = 0
    for j in range(is_open.size):
        if is_open[j]:
            waiting += 1
            most = max(most, limits[j] - done)
    each = min(most, max(1, batch // max(1, waiting)))
    n = 0
    for j in range(is_open.size):
        if is_open[j]:
            count = min(each, limits[j] - done)
            owner[n : n + count] = j
            n += count
    return each, n


@_entry
def weigh_per_step(chances, bounds, limits, done, each, coins, is_open, weights):
    """Add a batch `[n, m]`, whose rows belong to the open pairs in turn, and close those that do not go on."""
    first = 0
    for j in range(is_open.size):
        if is_open[j]:
            count = min(each, limits[j] - done)
            weights[j], going_on = weigh_batch(chances[first : first + count, j], bounds[j], count, weights[j])
            is_open[j] = done + count < limits[j] and coins[j] < going_on
            first += count
