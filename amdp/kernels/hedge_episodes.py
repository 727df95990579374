"""Blocks of episodes of Hedge, compiled: see `amdp.kernels.episodes`."""

import numpy as np
from numba import types
from numba.extending import overload

from amdp.kernels.blocks import ARENA, DRAW, LEARN, WEIGH
from amdp.kernels.boxes import observe
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.episodes import _add_estimate, _keep, _lap, _walk_actions
from amdp.kernels.hedge import (
    accumulate,
    add_column,
    box_losses,
    box_visits,
    expected_losses,
    exponential_weights,
    mixed,
    mixed_visits,
)
from amdp.kernels.paths import _pick

_entry = entry()
_inner = inner()


@_inner
def _drawn(incurred, rate, luck, chances, below):
    """The number of the policy that a uniform number draws; fills the chances of all."""
    exponential_weights(incurred, rate, chances)
    accumulate(chances, below)
    return _pick(below, luck)


@_inner
def _add(expected, incurred):
    for i in range(incurred.size):
        incurred[i] += expected[i]


# --- over a kernel by a table of chances, over a box by sweeps --------------------------------------------------------


def visited(listed, initial, chances, states, actions, out):
    """The chance `[h]` that a policy drawn with these chances is at each pair of an episode; over a box, the greatest.

    `listed` are `BoxPolicies`, or over a kernel the table `columns`.
    """
    raise NotImplementedError("compiled code only")


@overload(visited)
def _visited(listed, initial, chances, states, actions, out):
    return _visited_over_kernel if isinstance(listed, types.Array) else _visited_in_box


def _visited_over_kernel(listed, initial, chances, states, actions, out):
    for h in range(out.size):
        out[h] = mixed(chances, listed[h, states[h], actions[h]])


def _visited_in_box(listed, initial, chances, states, actions, out):
    columns = np.empty((out.size, chances.size))
    box_visits(listed, initial, np.arange(out.size), states, actions, columns)
    mixed_visits(columns, chances, out)


def estimate_losses(listed, initial, waiting, slot, expected):
    """The expected loss of each policy for the estimate of a segment; over a box, the least."""
    raise NotImplementedError("compiled code only")


@overload(estimate_losses)
def _estimate_losses(listed, initial, waiting, slot, expected):
    return _estimate_over_kernel if isinstance(listed, types.Array) else _estimate_in_box


def _estimate_over_kernel(listed, initial, waiting, slot, expected):
    expected[:] = 0.0
    for h in range(listed.shape[0]):
        column = listed[h, waiting.states[slot, h], waiting.actions[slot, h]]
        add_column(column, waiting.weights[slot, h] * waiting.losses[slot, h], expected)


def _estimate_in_box(listed, initial, waiting, slot, expected):
    estimate = np.zeros(listed.policies.shape[1:])
    _add_estimate(waiting, slot, estimate)
    box_losses(listed, initial, estimate, expected)


def table_losses(listed, initial, table, expected):
    """The same for a whole table."""
    raise NotImplementedError("compiled code only")


@overload(table_losses)
def _table_losses(listed, initial, table, expected):
    return _table_over_kernel if isinstance(listed, types.Array) else _table_in_box


def _table_over_kernel(listed, initial, table, expected):
    expected_losses(listed, table, expected)


def _table_in_box(listed, initial, table, expected):
    box_losses(listed, initial, table, expected)


# --- the games --------------------------------------------------------------------------------------------------------


@_entry
def bandit(listed, actions, told, block, waiting, rate, gamma, luck, incurred, drawn, played):
    """Hedge with bandit feedback over policies `[n, h, s]`; -1, or the round that visited a pair without a chance.

    `luck[k]` draws the number `drawn[k]` of the policy of round `k`.
    """
    n, n_actions = incurred.size, block.tables.shape[3]
    chances, below, expected, weights = np.empty(n), np.empty(n), np.empty(n), np.empty(played.states.shape[1])
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(drawn.size):
        drawn[k] = _drawn(incurred, rate, luck[k], chances, below)
        now = _lap(clock, now, played.spent, DRAW)
        states, chosen = played.states[k], played.actions[k]
        _walk_actions(block.paths, actions[drawn[k]], n_actions, block.initial, block.luck[k], states, chosen)
        now = _lap(clock, now, played.spent, ARENA)
        visited(listed, block.initial, chances, states, chosen, weights)
        for h in range(weights.size):
            chance = weights[h] + gamma
            if not chance > 0.0:
                return k
            weights[h] = 1.0 / chance
        _keep(block, waiting, k, played, weights)
        now = _lap(clock, now, played.spent, WEIGH)
        observe(told, states, chosen)
        for i in range(block.starts[k], block.starts[k + 1]):
            estimate_losses(listed, block.initial, waiting, block.arrived[i], expected)
            _add(expected, incurred)
        now = _lap(clock, now, played.spent, LEARN)
    return -1


@_entry
def full(listed, actions, told, block, rate, luck, incurred, drawn, played):
    """Hedge with full information."""
    n, n_actions = incurred.size, block.tables.shape[3]
    chances, below, expected = np.empty(n), np.empty(n), np.empty(n)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(drawn.size):
        drawn[k] = _drawn(incurred, rate, luck[k], chances, below)
        now = _lap(clock, now, played.spent, DRAW)
        states, chosen = played.states[k], played.actions[k]
        _walk_actions(block.paths, actions[drawn[k]], n_actions, block.initial, block.luck[k], states, chosen)
        now = _lap(clock, now, played.spent, ARENA)
        observe(told, states, chosen)
        for i in range(block.starts[k], block.starts[k + 1]):
            table_losses(listed, block.initial, block.tables[block.arrived_tables[i]], expected)
            _add(expected, incurred)
        now = _lap(clock, now, played.spent, LEARN)
