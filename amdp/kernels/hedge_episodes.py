"""Blocks of episodes of Hedge, compiled: see `amdp.kernels.episodes`."""

import numpy as np

from amdp.kernels.blocks import ARENA, DRAW, LEARN, WEIGH
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.episodes import _keep, _lap, _walk_actions
from amdp.kernels.hedge import accumulate, add_column, expected_losses, exponential_weights, mixed
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
def _add_estimate(columns, waiting, slot, expected, incurred):
    """Add to what each policy incurred its expected loss for the estimate of a segment."""
    expected[:] = 0.0
    for h in range(columns.shape[0]):
        column = columns[h, waiting.states[slot, h], waiting.actions[slot, h]]
        add_column(column, waiting.weights[slot, h] * waiting.losses[slot, h], expected)
    _add(expected, incurred)


@_inner
def _add(expected, incurred):
    for i in range(incurred.size):
        incurred[i] += expected[i]


@_entry
def bandit(columns, actions, block, waiting, rate, gamma, luck, incurred, drawn, played):
    """Hedge with bandit feedback over policies `[n, h, s]`; -1, or the round that visited a pair without a chance.

    `luck[k]` draws the number `drawn[k]` of the policy of round `k`.
    """
    steps, _, n_actions, n = columns.shape
    chances, below, expected, weights = np.empty(n), np.empty(n), np.empty(n), np.empty(steps)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(drawn.size):
        drawn[k] = _drawn(incurred, rate, luck[k], chances, below)
        now = _lap(clock, now, played.spent, DRAW)
        states, chosen = played.states[k], played.actions[k]
        _walk_actions(block.paths, actions[drawn[k]], n_actions, block.initial, block.luck[k], states, chosen)
        now = _lap(clock, now, played.spent, ARENA)
        for h in range(steps):
            chance = mixed(chances, columns[h, states[h], chosen[h]]) + gamma
            if not chance > 0.0:
                return k
            weights[h] = 1.0 / chance
        _keep(block, waiting, k, played, weights)
        now = _lap(clock, now, played.spent, WEIGH)
        for i in range(block.starts[k], block.starts[k + 1]):
            _add_estimate(columns, waiting, block.arrived[i], expected, incurred)
        now = _lap(clock, now, played.spent, LEARN)
    return -1


@_entry
def full(columns, actions, block, rate, luck, incurred, drawn, played):
    """Hedge with full information."""
    n_actions, n = columns.shape[2:]
    chances, below, expected = np.empty(n), np.empty(n), np.empty(n)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(drawn.size):
        drawn[k] = _drawn(incurred, rate, luck[k], chances, below)
        now = _lap(clock, now, played.spent, DRAW)
        states, chosen = played.states[k], played.actions[k]
        _walk_actions(block.paths, actions[drawn[k]], n_actions, block.initial, block.luck[k], states, chosen)
        now = _lap(clock, now, played.spent, ARENA)
        for i in range(block.starts[k], block.starts[k + 1]):
            expected_losses(columns, block.tables[block.arrived_tables[i]], expected)
            _add(expected, incurred)
        now = _lap(clock, now, played.spent, LEARN)
