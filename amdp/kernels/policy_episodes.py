"""Blocks of episodes of policy optimization, compiled: see `amdp.kernels.episodes`."""

import numpy as np
from numba.extending import overload

from amdp.kernels.blocks import ARENA, DRAW, LEARN, WEIGH
from amdp.kernels.boxes import observe
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.copies import copy
from amdp.kernels.episodes import _add_estimate, _add_table, _keep, _lap
from amdp.kernels.paths import walk
from amdp.kernels.policies import (
    add_costs_to_come,
    dilated_bonus,
    every_pair,
    extreme_visits,
    greatest_visits,
    local_bonus,
    local_weights,
)
from amdp.kernels.rows import IntervalRows
from amdp.kernels.soft import occupancy

_entry = entry()
_inner = inner()


def visited(rows, policies, k, initial, states, actions, measure, out):
    """The chance of each pair of an episode under policy `k` of `[b, h, s, a]`.

    Over a kernel by its occupancy measure, which is left in `measure`; over a box, the greatest that a kernel allows.
    """
    raise NotImplementedError("compiled code only")


@overload(visited)
def _visited(rows, policies, k, initial, states, actions, measure, out):
    return _visited_in_box if rows.instance_class is IntervalRows else _visited_over_kernel


def _visited_in_box(rows, policies, k, initial, states, actions, measure, out):
    greatest_visits(rows, policies, k, initial, states, actions, out)


def _visited_over_kernel(rows, policies, k, initial, states, actions, measure, out):
    occupancy(rows, policies[k], initial, measure)
    for h in range(states.size):
        out[h] = measure[h, states[h], actions[h]]


def visit_bounds(rows, policies, k, initial, pairs, greatest, least):
    """The greatest and the least chance of every pair under policy `k` of `[b, h, s, a]`.

    Over a kernel they are the same, and `visited` has left them in `greatest`.
    """
    raise NotImplementedError("compiled code only")


@overload(visit_bounds)
def _visit_bounds(rows, policies, k, initial, pairs, greatest, least):
    return _visit_bounds_in_box if rows.instance_class is IntervalRows else _visit_bounds_over_kernel


def _visit_bounds_in_box(rows, policies, k, initial, pairs, greatest, least):
    steps, states, actions = pairs
    played = policies[k : k + 1]
    extreme_visits(rows, played, initial, steps, states, actions, -1.0, greatest.reshape(1, -1))
    extreme_visits(rows, played, initial, steps, states, actions, 1.0, least.reshape(1, -1))


def _visit_bounds_over_kernel(rows, policies, k, initial, pairs, greatest, least):
    copy(greatest, least)


@_inner
def _weigh(rows, block, waiting, k, policies, played, gamma, measure, weights):
    """Weigh the segment of round `k` by the chances of its pairs, and let it wait; False if a chance is none."""
    visited(rows, policies, k, block.initial, played.states[k], played.actions[k], measure, weights)
    for h in range(weights.size):
        chance = weights[h] + gamma
        if not chance > 0.0:
            return False
        weights[h] = 1.0 / chance
    _keep(block, waiting, k, played, weights)
    return True


@_inner
def _add_loss_to_go(waiting, slot, scores):
    """Weight times the losses from each step on, added at the pairs of a segment."""
    to_go = 0.0
    for h in range(scores.shape[0] - 1, -1, -1):
        to_go += waiting.losses[slot, h]
        scores[h, waiting.states[slot, h], waiting.actions[slot, h]] += waiting.weights[slot, h] * to_go


@_inner
def _subtract(factor, bonus, scores):
    for h in range(scores.shape[0]):
        for s in range(scores.shape[1]):
            for a in range(scores.shape[2]):
                scores[h, s, a] -= factor * bonus[h, s, a]


@_entry
def evaluated(rows, told, block, waiting, kept, rate, exploration, gamma, total, policies, played):
    """Bandit feedback, and costs to go by evaluation; -1, or the round that visited a pair without a chance.

    `kept[slot, h, s, a]` are the policies of what waits.
    """
    scores, measure, weights = np.empty(total.shape), np.empty(total.shape), np.empty(total.shape[0])
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        local_weights(total, rate, exploration, policies[k])
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        if not _weigh(rows, block, waiting, k, policies, played, gamma, measure, weights):
            return k
        if block.slots[k] >= 0:
            copy(policies[k], kept[block.slots[k]])
        now = _lap(clock, now, played.spent, WEIGH)
        observe(told, played.states[k], played.actions[k])
        for i in range(block.starts[k], block.starts[k + 1]):
            scores[:] = 0.0
            _add_estimate(waiting, block.arrived[i], scores)
            add_costs_to_come(rows, kept[block.arrived[i]], 1.0, scores)
            _add_table(scores, total)
        now = _lap(clock, now, played.spent, LEARN)
    return -1


@_entry
def evaluated_full(rows, told, block, kept, rate, exploration, total, policies, played):
    """Full information, and costs to go by evaluation."""
    scores = np.empty(total.shape)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        local_weights(total, rate, exploration, policies[k])
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        if block.slots[k] >= 0:
            copy(policies[k], kept[block.slots[k]])
        now = _lap(clock, now, played.spent, WEIGH)
        observe(told, played.states[k], played.actions[k])
        for i in range(block.starts[k], block.starts[k + 1]):
            copy(block.tables[block.arrived_tables[i]], scores)
            add_costs_to_come(rows, kept[block.arrived[i]], 1.0, scores)
            _add_table(scores, total)
        now = _lap(clock, now, played.spent, LEARN)


@_entry
def with_bonus(rows, told, block, waiting, kept, rate, exploration, gamma, factor, total, policies, played):
    """Bandit feedback, and the loss to go less a factor times dilated bonuses.

    Returns -1, or the round that visited a pair without a chance. `kept[slot, h, s, a]` are the bonuses of what waits.
    """
    steps, states, _ = total.shape
    scores, bonus = np.empty(total.shape), np.empty(total.shape)
    greatest, least, pairs = np.empty(total.shape), np.empty(total.shape), every_pair(total.shape)
    weights, local = np.empty(steps), np.empty((steps, states))
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(policies.shape[0]):
        local_weights(total, rate, exploration, policies[k])
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        if not _weigh(rows, block, waiting, k, policies, played, gamma, greatest, weights):
            return k
        if block.slots[k] >= 0:
            visit_bounds(rows, policies, k, block.initial, pairs, greatest, least)
            local_bonus(policies[k], least, greatest, gamma, local)
            dilated_bonus(rows, policies[k], local, bonus)
            kept[block.slots[k]] = bonus
        now = _lap(clock, now, played.spent, WEIGH)
        observe(told, played.states[k], played.actions[k])
        for i in range(block.starts[k], block.starts[k + 1]):
            scores[:] = 0.0
            _add_loss_to_go(waiting, block.arrived[i], scores)
            _subtract(factor, kept[block.arrived[i]], scores)
            _add_table(scores, total)
        now = _lap(clock, now, played.spent, LEARN)
    return -1
