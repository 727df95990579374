"""Learners over occupancy measures, compiled: what is read off a projected measure, and blocks of their episodes.

Measures are kept as logarithms, -inf for zero. The Python methods of the learners call the same steps one by one:
`entropy.project`, `shares`, `chances`, `entropy` and those of `amdp.kernels.soft`. Glue between them rounds every
operation as it is written, like numpy.
"""

from typing import NamedTuple

import numpy as np

from amdp.arrays import Floats
from amdp.kernels.blocks import ARENA, DRAW, FAINTEST, LEARN, WEIGH
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.entropy.newton import project
from amdp.kernels.episodes import _add_estimate, _add_gap, _add_table, _keep, _lap, _rate
from amdp.kernels.paths import walk
from amdp.kernels.soft import estimated_loss, paid, visit_chances

_entry = entry()
_inner = inner()

DONE = (-1, -1)  # every round was played


# --- what is read off a measure ---------------------------------------------------------------------------------------


@_entry
def shares(logs, out):
    """Weights as shares of the sum of their row; equal ones in a row without weight. Logarithms `[n, m]`."""
    rows, width = logs.shape
    for i in range(rows):
        top = -np.inf
        for j in range(width):
            top = max(top, logs[i, j])
        total = 0.0
        for j in range(width):
            out[i, j] = 1.0 if top == -np.inf else np.exp(logs[i, j] - top)
            total += out[i, j]
        for j in range(width):
            out[i, j] /= total


@_entry
def chances(logs, out):
    """The sum of the masses of each row, `[n]`; logarithms `[n, m]`."""
    for i in range(logs.shape[0]):
        out[i] = 0.0
        for j in range(logs.shape[1]):
            out[i] += np.exp(logs[i, j])


@_entry
def entropy(logs):
    """`-sum q ln q` of a measure, from the logarithms `[n]`."""
    total = 0.0
    for i in range(logs.size):
        if logs[i] > -np.inf:
            total -= np.exp(logs[i]) * logs[i]
    return total


# --- steps of a round -------------------------------------------------------------------------------------------------


class _Scratch(NamedTuple):
    point: Floats  # [h, s, a]
    prices: Floats  # [h, s]
    gap: Floats  # [1]
    log_measure: Floats  # [h, s, a]
    mass: Floats  # [h, s, a]


@_inner
def _scratch(shape):
    steps, states, _ = shape
    return _Scratch(np.empty(shape), np.empty((steps, states)), np.empty(1), np.empty(shape), np.empty(shape))


@_inner
def _project(projecting, rate, measure, log_measure, scratch):
    """Project from the last prices, into a measure and into scratch; whether the answer is proved to be the nearest."""
    steps, states, n_actions = measure.prior.shape
    for h in range(steps):
        for s in range(states):
            for a in range(n_actions):
                log_weight = measure.prior[h, s, a] - rate * measure.total[h, s, a]
                if not log_weight < projecting.highest:
                    return False
                scratch.point[h, s, a] = log_weight
    gap, iterations, _ = project(
        projecting.rows, scratch.point.reshape(steps, -1), projecting.initial, projecting.reached, False,
        measure.prices[: 1 if measure.warm[0] else 0], projecting.tolerance, projecting.enough, projecting.limit,
        projecting.exact, scratch.prices, log_measure.reshape(steps, states * n_actions, 1),
    )  # fmt: skip
    scratch.gap[0] = gap
    return iterations >= 0 and -np.inf < gap <= projecting.enough


@_inner
def _take(measure, scratch):
    """Keep the prices that were found, for the next projection to start from."""
    measure.gap[0] = scratch.gap[0]
    measure.warm[0] = True
    for h in range(scratch.prices.shape[0]):
        for s in range(scratch.prices.shape[1]):
            measure.prices[0, h, s] = scratch.prices[h, s]
            if not np.isfinite(scratch.prices[h, s]):
                measure.warm[0] = False


@_inner
def _find(projecting, rate, measure, scratch):
    """The measure of a round, unless the last one stands; whether it is proved."""
    if not measure.stands[0]:
        if not _project(projecting, rate, measure, measure.log_measure, scratch):
            return False
        _take(measure, scratch)
        measure.stands[0] = True
    return True


@_inner
def _descend(measure):
    """Make the measure the next prior, to which it is nearest itself at prices of zero."""
    for h in range(measure.prior.shape[0]):
        for s in range(measure.prior.shape[1]):
            measure.prices[0, h, s] = 0.0
            for a in range(measure.prior.shape[2]):
                log_mass = measure.log_measure[h, s, a]
                measure.prior[h, s, a] = log_mass if log_mass == -np.inf else max(log_mass, FAINTEST)
                measure.total[h, s, a] = 0.0
    measure.gap[0] = 0.0
    measure.warm[0] = True


@_inner
def _potential(log_measure, total, rate, mass):
    """`<q, total> + (1/rate) sum q ln q`; at rate 0 without the second."""
    chances(log_measure.reshape(-1, 1), mass.reshape(-1))
    spread = entropy(log_measure.reshape(-1)) / rate if rate > 0.0 else 0.0
    return paid(mass, total) - spread


@_inner
def _potential_before(projecting, rate, measure, scratch):
    """The potential before an estimate is added, NaN if it is not proved; only the rate may be new."""
    if measure.stands[0]:
        return _potential(measure.log_measure, measure.total, rate, scratch.mass)
    if not _project(projecting, rate, measure, scratch.log_measure, scratch):
        return np.nan
    return _potential(scratch.log_measure, measure.total, rate, scratch.mass)


@_inner
def _potential_after(projecting, rate, measure, scratch):
    """The potential after an estimate was added, NaN if it is not proved; the next projection starts from this one."""
    if not _project(projecting, rate, measure, measure.log_measure, scratch):
        return np.nan
    _take(measure, scratch)
    return _potential(measure.log_measure, measure.total, rate, scratch.mass)


@_inner
def _adapt(rows, block, waiting, slot, policy, gamma, every, visits):
    """Lower the weights of a segment to those of the policy in whose round its feedback arrives."""
    visit_chances(rows, policy, block.initial, every, waiting.states[slot], waiting.actions[slot], visits)
    for h in range(visits.size):
        chance = visits[h] + gamma
        if chance > 0.0:
            waiting.weights[slot, h] = min(waiting.weights[slot, h], 1.0 / chance)


# --- the games --------------------------------------------------------------------------------------------------------
#
# Both begin in round `first`. They return `DONE`, or the round and the part of it that could not be: a projection
# without a proof, or the weight of a visit without a chance. A rate is that of `amdp.kernels.episodes`.


@_entry
def bandit(
    projecting, rows, block, waiting, rate, gamma, is_adapted, is_descent, first, measure, policies, played
):  # fmt: skip
    """Mirror descent, or the regularized leader, with bandit feedback; weights may be adapted to delays."""
    b, steps, _, n_actions = policies.shape
    scratch, visits, every = _scratch(measure.total.shape), np.empty(steps), np.arange(steps)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(first, b):
        if not _find(projecting, _rate(rate), measure, scratch):
            return k, DRAW
        shares(measure.log_measure.reshape(-1, n_actions), policies[k].reshape(-1, n_actions))
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        visit_chances(rows, policies[k], block.initial, every, played.states[k], played.actions[k], visits)
        for h in range(steps):
            chance = visits[h] + gamma
            if not chance > 0.0:
                return k, WEIGH
            visits[h] = 1.0 / chance
        _keep(block, waiting, k, played, visits)
        now = _lap(clock, now, played.spent, WEIGH)
        if is_descent:
            _descend(measure)
        for i in range(block.starts[k], block.starts[k + 1]):
            slot = block.arrived[i]
            before = 0.0 if rate.size == 1 else _potential_before(projecting, _rate(rate), measure, scratch)
            if is_adapted:
                _adapt(rows, block, waiting, slot, policies[k], gamma, every, visits)
            _add_estimate(waiting, slot, measure.total)
            measure.stands[0] = False
            if rate.size > 1:
                after = _potential_after(projecting, _rate(rate), measure, scratch)
                if np.isnan(after - before):
                    return k, LEARN
                _add_gap(rate, estimated_loss(waiting.losses[slot], waiting.weights[slot], gamma) - (after - before))
        now = _lap(clock, now, played.spent, LEARN)
    return DONE


@_entry
def full(projecting, block, waiting, rate, is_descent, first, measure, policies, played):
    """The same with full information; `waiting[slot, h, s, a]` are the occupancies of what waits."""
    b, _, _, n_actions = policies.shape
    scratch = _scratch(measure.total.shape)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(first, b):
        if not _find(projecting, _rate(rate), measure, scratch):
            return k, DRAW
        shares(measure.log_measure.reshape(-1, n_actions), policies[k].reshape(-1, n_actions))
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        if rate.size > 1 and block.slots[k] >= 0:
            chances(measure.log_measure.reshape(-1, 1), waiting[block.slots[k]].reshape(-1))
        now = _lap(clock, now, played.spent, WEIGH)
        if is_descent:
            _descend(measure)
        for i in range(block.starts[k], block.starts[k + 1]):
            table = block.tables[block.arrived_tables[i]]
            before = 0.0 if rate.size == 1 else _potential_before(projecting, _rate(rate), measure, scratch)
            _add_table(table, measure.total)
            measure.stands[0] = False
            if rate.size > 1:
                after = _potential_after(projecting, _rate(rate), measure, scratch)
                if np.isnan(after - before):
                    return k, LEARN
                _add_gap(rate, paid(waiting[block.arrived[i]], table) - (after - before))
        now = _lap(clock, now, played.spent, LEARN)
    return DONE
