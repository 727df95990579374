"""Blocks of episodes, compiled: one loop a learner, made of the same steps that its Python methods call one by one.

A round: a policy, a trajectory, weights at once, and the feedback that arrives at its end, of this round or of earlier
ones. What waits for its feedback stands in slots. Glue between the steps rounds every operation as it is written, like
numpy.
"""

import numpy as np
from numba.extending import overload

from amdp.kernels.blocks import ARENA, DRAW, LEARN, WEIGH, BoxSearch, PlainSearch, ScaledSearch
from amdp.kernels.boxes import STARTED_AGAIN, UNCHANGED, observe
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.layout import LANES
from amdp.kernels.noise import add_exponential
from amdp.kernels.paths import move, walk
from amdp.kernels.philox import fill_words
from amdp.kernels.policies import greatest_visits
from amdp.kernels.reach import refresh_bounds
from amdp.kernels.rows import IntervalRows
from amdp.kernels.soft import estimated_loss, occupancy, paid, sweep, value, visit_chances
from amdp.kernels.sweeps import _sound, cheapest, expect
from amdp.kernels.trials import gap, leader, per_step, scaled_per_step, scaled_shared, shared

_entry = entry()
_inner = inner()


@_inner
def _lap(clock, since, spent, part):
    """Count the time since then for a part; the time now."""
    now = nanoseconds(clock)
    spent[part] += now - since
    return now


@_entry
def assign_slots(arrives, rounds, starts, slots):
    """Give each round whose feedback arrives a slot from its play to its arrival; how many slots that takes.

    `rounds[starts[k]:starts[k+1]]` are those that arrive at the end of round `k`.
    """
    free = np.empty(slots.size, np.int64)
    n_free, count = 0, 0
    for k in range(slots.size):
        slots[k] = -1
        if arrives[k]:
            if n_free > 0:
                n_free -= 1
                slots[k] = free[n_free]
            else:
                slots[k] = count
                count += 1
        for i in range(starts[k], starts[k + 1]):
            free[n_free] = slots[rounds[i]]
            n_free += 1
    return count


@_inner
def _keep(block, waiting, k, played, weights):
    """Put the segment of round `k` where its feedback will find it."""
    slot = block.slots[k]
    if slot < 0:
        return
    for h in range(weights.size):
        s, a = played.states[k, h], played.actions[k, h]
        waiting.states[slot, h] = s
        waiting.actions[slot, h] = a
        waiting.weights[slot, h] = weights[h]
        waiting.losses[slot, h] = block.tables[k, h, s, a]


@_inner
def _add_estimate(waiting, slot, total):
    """Weight times loss at the pairs of a segment, added to the sum of the estimates."""
    for h in range(total.shape[0]):
        total[h, waiting.states[slot, h], waiting.actions[slot, h]] += (
            waiting.weights[slot, h] * waiting.losses[slot, h]
        )


@_inner
def _add_table(table, total):
    for h in range(total.shape[0]):
        for s in range(total.shape[1]):
            for a in range(total.shape[2]):
                total[h, s, a] += table[h, s, a]


# --- the soft leader --------------------------------------------------------------------------------------------------
#
# A rate is `[range, first, gaps, sum of the gaps]`, or `[rate]` if it is fixed: see `amdp.algorithms.rates`.


@_inner
def _rate(rate):
    return rate[0] if rate.size == 1 else rate[0] / max(rate[2], rate[1])


@_inner
def _add_gap(rate, gap):
    rate[3] += gap
    rate[2] = max(rate[2], rate[3])


def _chances(rows, policies, k, initial, steps, states, actions, out):
    """The chance of each pair under policy `k` of `[b, h, s, a]`; over a box, the greatest that a kernel allows."""
    raise NotImplementedError("compiled code only")


@overload(_chances)
def _overload_chances(rows, policies, k, initial, steps, states, actions, out):
    return _chances_in_box if rows.instance_class is IntervalRows else _chances_over_kernel


def _chances_in_box(rows, policies, k, initial, steps, states, actions, out):
    greatest_visits(rows, policies, k, initial, states, actions, out)


def _chances_over_kernel(rows, policies, k, initial, steps, states, actions, out):
    visit_chances(rows, policies[k], initial, steps, states, actions, out)


@_entry
def soft_bandit(rows, told, block, waiting, rate, gamma, total, policies, played):
    """The soft leader with bandit feedback; -1, or the round that visited a pair without a chance."""
    b, steps, states, _ = policies.shape
    values, chances, every = np.empty((steps, states)), np.empty(steps), np.arange(steps)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(b):
        sweep(rows, total, _rate(rate), policies[k], values)
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        _chances(rows, policies, k, block.initial, every, played.states[k], played.actions[k], chances)
        for h in range(steps):
            chance = chances[h] + gamma
            if not chance > 0.0:
                return k
            chances[h] = 1.0 / chance
        _keep(block, waiting, k, played, chances)
        now = _lap(clock, now, played.spent, WEIGH)
        before = values[0, block.initial]
        if observe(told, played.states[k], played.actions[k]) != UNCHANGED and rate.size > 1:
            before = value(rows, total, _rate(rate), block.initial)
        for i in range(block.starts[k], block.starts[k + 1]):
            slot = block.arrived[i]
            _add_estimate(waiting, slot, total)
            if rate.size > 1:
                rate_then = _rate(rate)
                after = value(rows, total, rate_then, block.initial)
                _add_gap(rate, estimated_loss(waiting.losses[slot], waiting.weights[slot], gamma) - (after - before))
                if i + 1 < block.starts[k + 1]:
                    before = value(rows, total, _rate(rate), block.initial)
        now = _lap(clock, now, played.spent, LEARN)
    return -1


@_entry
def soft_full(rows, told, block, rate, total, measures, policies, played):
    """The soft leader with full information; `measures[slot, h, s, a]` are the occupancies of what waits."""
    b, steps, states, _ = policies.shape
    values = np.empty((steps, states))
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(b):
        sweep(rows, total, _rate(rate), policies[k], values)
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        if rate.size > 1 and block.slots[k] >= 0:
            occupancy(rows, policies[k], block.initial, measures[block.slots[k]])
        now = _lap(clock, now, played.spent, WEIGH)
        before = values[0, block.initial]
        observe(told, played.states[k], played.actions[k])
        for i in range(block.starts[k], block.starts[k + 1]):
            table = block.tables[block.arrived_tables[i]]
            _add_table(table, total)
            if rate.size > 1:
                after = value(rows, total, _rate(rate), block.initial)
                _add_gap(rate, paid(measures[block.arrived[i]], table) - (after - before))
                if i + 1 < block.starts[k + 1]:
                    before = value(rows, total, _rate(rate), block.initial)
        now = _lap(clock, now, played.spent, LEARN)


# --- follow the perturbed leader --------------------------------------------------------------------------------------


@_inner
def _walk_actions(paths, actions, n_actions, initial, luck, states, chosen):
    """`paths.walk` of a deterministic policy `[h, s]`: the numbers for actions are not needed."""
    s = initial
    for h in range(states.size):
        states[h] = s
        chosen[h] = actions[h, s]
        if h + 1 < states.size:
            s = move(paths, h, s * n_actions + actions[h, s], luck[h, 1])


def weigh(trials, leader_rows, reached, seeds, scale, total, initial, states, actions, weights):
    """The weights of an episode by resampling trials; their number, or -1 if a cost was not finite."""
    raise NotImplementedError("compiled code only")


@overload(weigh)
def _weigh(trials, leader_rows, reached, seeds, scale, total, initial, states, actions, weights):
    return _WEIGH[trials.instance_class]


def _weigh_counted(trials, leader_rows, reached, seeds, scale, total, initial, states, actions, weights):
    rows, noise, luck = trials.rows, seeds[0], seeds[1]
    limit, batch = trials.limit, trials.batch
    if trials.is_shared:
        return shared(
            leader_rows, reached, rows, noise, luck, scale, total, initial, 0, states, actions, limit, batch, weights
        )
    return per_step(
        leader_rows, reached, rows, noise, luck, scale, total, initial, 0, states, actions, limit, batch, weights
    )


def _weigh_scaled(trials, leader_rows, reached, seeds, scale, total, initial, states, actions, weights):
    rows, noise, luck, batches, steps = trials.reach, seeds[0], seeds[1], trials.batches, states.size
    bounds, limits = np.empty(steps), np.empty(steps, np.int64)
    for h in range(steps):
        bounds[h], limits[h] = trials.bounds[h, states[h]], trials.limits[h, states[h]]
    if trials.is_shared:
        return scaled_shared(
            leader_rows, reached, rows, noise, luck, scale, total, initial, 0, states, actions, bounds, limits, batches,
            steps, weights,
        )  # fmt: skip
    return scaled_per_step(
        leader_rows, reached, rows, noise, luck, scale, total, initial, 0, states, actions, bounds, limits, batches,
        steps, weights,
    )  # fmt: skip


def _weigh_in_box(trials, leader_rows, reached, seeds, scale, total, initial, states, actions, weights):
    rows, noise, luck, steps = trials.rows, seeds[0], seeds[1], states.size
    refresh_bounds(rows, trials.visits, initial, 0, states, trials.known, trials.seen)
    bounds, limits, batches = np.empty(steps), np.empty(steps, np.int64), np.full(steps, trials.batch)
    for h in range(steps):
        limits[h] = max(1, int(np.ceil(trials.known[h, states[h]] * trials.limit)))
        bounds[h] = limits[h] / trials.limit
    if trials.is_shared:
        return scaled_shared(
            leader_rows, reached, rows, noise, luck, scale, total, initial, 0, states, actions, bounds, limits, batches,
            0, weights,
        )  # fmt: skip
    return scaled_per_step(
        leader_rows, reached, rows, noise, luck, scale, total, initial, 0, states, actions, bounds, limits, batches,
        0, weights,
    )  # fmt: skip


_WEIGH = {PlainSearch: _weigh_counted, ScaledSearch: _weigh_scaled, BoxSearch: _weigh_in_box}


def forget(trials):
    """Drop what trials know of the dynamics: some rows became wider."""
    raise NotImplementedError("compiled code only")


@overload(forget)
def _forget(trials):
    return _forget_bounds if trials.instance_class is BoxSearch else lambda trials: None


def _forget_bounds(trials):
    trials.known[:] = np.nan
    trials.seen[:] = 0.0


@_inner
def _draw_and_weigh(
    rows, leader_rows, reached, trials, block, k, seeds, scale, total, policy, played, weights, now, clock
):
    """Draw the leader of round `k`, play it, weigh its segment; the time, or -1 if a cost was not finite."""
    if not leader(rows, seeds[0], scale, total, policy):
        return -1
    now = _lap(clock, now, played.spent, DRAW)
    states, actions = played.states[k], played.actions[k]
    _walk_actions(block.paths, policy[:, 0], total.shape[2], block.initial, block.luck[k], states, actions)
    now = _lap(clock, now, played.spent, ARENA)
    count = weigh(trials, leader_rows, reached, seeds[1:], scale, total, block.initial, states, actions, weights)
    played.trials[k] = count
    return now if count >= 0 else -1


@_entry
def ftpl(rows, leader_rows, reached, told, trials, block, waiting, seeds, scale, total, policies, played):
    """FTPL with resampling trials; -1, or the round with a cost that is not finite.

    `seeds[k]` are those of the leader's noise, of the trials' noise and of their paths. Policies are `[b, h, 1, s]`.
    Over a box that narrows, `told`, all rows are its own.
    """
    weights, clock = np.empty(total.shape[0]), np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        now = _draw_and_weigh(
            rows, leader_rows, reached, trials, block, k, seeds[k], scale, total, policies[k], played, weights, now,
            clock,
        )  # fmt: skip
        if now < 0:
            return k
        _keep(block, waiting, k, played, weights)
        now = _lap(clock, now, played.spent, WEIGH)
        if observe(told, played.states[k], played.actions[k]) == STARTED_AGAIN:
            forget(trials)
        for i in range(block.starts[k], block.starts[k + 1]):
            _add_estimate(waiting, block.arrived[i], total)
        now = _lap(clock, now, played.spent, LEARN)
    return -1


@_entry
def ftpl_adaptive(
    rows, leader_rows, reached, told, trials, block, waiting, played_at, seeds, key, arrived, n, rate, total, policies,
    played,
):  # fmt: skip
    """The same with a rate that falls as gaps add up, each measured by `n` leaders with noise of its own.

    `key` and the number of feedbacks that have arrived seed that noise; `played_at[slot]` is how many had when a
    segment was played. Returns -1, or the round with a cost that is not finite.
    """
    steps = total.shape[0]
    weights, estimate, clock = np.empty(steps), np.empty(steps), np.zeros(2, np.int64)
    words = np.empty((4, LANES), np.uint64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        scale = 1.0 / _rate(rate)
        now = _draw_and_weigh(
            rows, leader_rows, reached, trials, block, k, seeds[k], scale, total, policies[k], played, weights, now,
            clock,
        )  # fmt: skip
        if now < 0:
            return k
        _keep(block, waiting, k, played, weights)
        if block.slots[k] >= 0:
            played_at[block.slots[k]] = arrived
        now = _lap(clock, now, played.spent, WEIGH)
        if observe(told, played.states[k], played.actions[k]) == STARTED_AGAIN:
            forget(trials)
        for i in range(block.starts[k], block.starts[k + 1]):
            slot = block.arrived[i]
            for h in range(steps):
                estimate[h] = waiting.weights[slot, h] * waiting.losses[slot, h]
            fill_words(key, arrived, words.reshape(-1))
            above, paid_now = gap(
                rows, words, 1.0 / _rate(rate), total, block.initial, 0, waiting.states[slot], waiting.actions[slot],
                estimate, n,
            )  # fmt: skip
            if np.isnan(above):
                return k
            if played_at[slot] != arrived:
                above += estimated_loss(waiting.losses[slot], waiting.weights[slot], 0.0) - paid_now
            _add_gap(rate, above)
            _add_estimate(waiting, slot, total)
            arrived += 1
        now = _lap(clock, now, played.spent, LEARN)
    return -1


@_entry
def fpl(rows, told, block, seeds, scale, is_laplace, total, policies, played):
    """A perturbed leader with full information, with Laplace or exponential noise."""
    steps, states, n_actions = total.shape
    costs, values = np.empty((steps, 1, states, n_actions)), np.empty((steps, 1, states))
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        if is_laplace:
            finite = leader(rows, seeds[k], scale, total, policies[k])
        else:
            add_exponential(seeds[k], -scale, total.reshape(steps, -1), costs.reshape(steps, 1, -1))
            cheapest(rows, costs, True, policies[k], values)
            finite = _sound(rows, values)
        if not finite:
            return k
        now = _lap(clock, now, played.spent, DRAW)
        _walk_actions(
            block.paths, policies[k, :, 0], n_actions, block.initial, block.luck[k], played.states[k], played.actions[k]
        )
        now = _lap(clock, now, played.spent, ARENA)
        observe(told, played.states[k], played.actions[k])
        for i in range(block.starts[k], block.starts[k + 1]):
            _add_table(block.tables[block.arrived_tables[i]], total)
        now = _lap(clock, now, played.spent, LEARN)
    return -1


# --- the regret's first term ------------------------------------------------------------------------------------------


@_entry
def expected_losses(rows, policies, tables, initial, out):
    """The exact expected loss `[b]` of each policy `[h, s, a]` under its own table."""
    steps, states, n_actions = policies.shape[1:]
    order, later, values = np.arange(states), np.zeros(states * n_actions), np.empty(states)
    for k in range(out.size):
        later[:] = 0.0
        for h in range(steps - 1, -1, -1):
            if h < steps - 1:
                expect(rows, h, values, order, later)
            for s in range(states):
                total = 0.0
                for a in range(n_actions):
                    total += policies[k, h, s, a] * (tables[k, h, s, a] + later[s * n_actions + a])
                values[s] = total
        out[k] = values[initial]
