"""Learners over occupancy measures, compiled: what is read off a projected measure, and blocks of their episodes.

Measures are kept as logarithms, -inf for zero. The Python methods of the learners call the same steps one by one:
`entropy.prepare` and `entropy.project`, `log_sums`, `shares`, `chances`, `entropy`, and those of `amdp.kernels.soft`
and `amdp.kernels.boxes`. Glue between them rounds every operation as it is written, like numpy.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from amdp.arrays import Floats
from amdp.kernels.blocks import ARENA, DRAW, FAINTEST, LEARN, WEIGH
from amdp.kernels.boxes import gather, narrow, support
from amdp.kernels.clock import nanoseconds
from amdp.kernels.compiling import entry, inner
from amdp.kernels.copies import copy
from amdp.kernels.entropy.box import has_faint_mass, lay_out, lay_out_all, prepare
from amdp.kernels.entropy.newton import project
from amdp.kernels.episodes import _add_estimate, _add_gap, _add_table, _chances, _keep, _lap, _rate
from amdp.kernels.paths import walk
from amdp.kernels.rows import BOX
from amdp.kernels.soft import estimated_loss, paid

_entry = entry()
_inner = inner()

DONE = (-1, -1, -1)  # every round was played


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
def log_sums(logs, out):
    """The logarithm of the sum of each row, `[n]`; logarithms `[n, m]`."""
    for i in range(logs.shape[0]):
        top = -np.inf
        for j in range(logs.shape[1]):
            top = max(top, logs[i, j])
        out[i] = top
        if logs.shape[1] > 1 and top > -np.inf:
            total = 0.0
            for j in range(logs.shape[1]):
                total += np.exp(logs[i, j] - top)
            out[i] = top + np.log(total)


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
    point: Floats  # [h, s*a, m]
    pairs: Floats  # [h, s*a]
    prices: Floats  # [h, s]
    gap: Floats  # [1]
    log_measure: Floats  # [h, s*a, m]
    mass: Floats  # [h, s, a]
    total: Floats  # [h, s, a]


@_inner
def _scratch(measure):
    by_move, by_pair = measure.prior.shape, measure.total.shape
    pairs, prices = np.zeros(by_move[:2]), np.empty(by_pair[:2])
    return _Scratch(
        np.empty(by_move), pairs, prices, np.empty(1), np.empty(by_move), np.empty(by_pair), np.empty(by_pair)
    )


@_inner
def _project(projecting, rate, measure, scratch):
    """Project from the last prices, into scratch; whether the answer is proved to be the nearest.

    What the Python method does beyond that is left to it: weights of zero, and over a box masses that are too faint.
    """
    steps, width, moves = measure.prior.shape
    total = measure.total.reshape(steps, width)
    for h in range(steps):
        for row in range(width):
            tilt = rate * total[h, row]
            for y in range(moves):
                log_weight = measure.prior[h, row, y] - tilt
                if not log_weight < projecting.highest:
                    return False
                scratch.point[h, row, y] = log_weight
    over_box = projecting.rows[0] == BOX
    pairs = scratch.pairs
    if not over_box:
        pairs = scratch.point.reshape(steps, width)
    elif not prepare(projecting.rows[3], scratch.point, projecting.usable, pairs):
        return False
    gap, iterations, _ = project(
        projecting.rows, pairs, projecting.initial, projecting.reached, over_box,
        measure.prices[: 1 if measure.warm[0] else 0], projecting.tolerance, projecting.enough, projecting.limit,
        projecting.exact, scratch.prices, scratch.log_measure,
    )  # fmt: skip
    scratch.gap[0] = gap
    proved = iterations >= 0 and -np.inf < gap <= projecting.enough
    return proved and not (over_box and has_faint_mass(scratch.log_measure))


@_inner
def _take(measure, scratch):
    """Keep the projection that was found; the next one starts from its prices."""
    measure.gap[0] = scratch.gap[0]
    measure.warm[0] = True
    copy(scratch.log_measure, measure.log_measure)
    for h in range(scratch.prices.shape[0]):
        for s in range(scratch.prices.shape[1]):
            measure.prices[0, h, s] = scratch.prices[h, s]
            if not np.isfinite(scratch.prices[h, s]):
                measure.warm[0] = False


@_inner
def _find(projecting, rate, measure, scratch):
    """The measure of a round, unless the last one stands; whether it is proved."""
    if not measure.stands[0]:
        if not _project(projecting, rate, measure, scratch):
            return False
        _take(measure, scratch)
        measure.stands[0] = True
    return True


@_inner
def _read_policy(measure, scratch, policy):
    """The chance of each action under the measure."""
    n_actions, moves = policy.shape[2], measure.prior.shape[2]
    log_sums(measure.log_measure.reshape(-1, moves), scratch.mass.reshape(-1))
    shares(scratch.mass.reshape(-1, n_actions), policy.reshape(-1, n_actions))


@_inner
def _descend(measure):
    """Make the measure the next prior, to which it is nearest itself at prices of zero."""
    for h in range(measure.prior.shape[0]):
        for row in range(measure.prior.shape[1]):
            for y in range(measure.prior.shape[2]):
                log_mass = measure.log_measure[h, row, y]
                measure.prior[h, row, y] = log_mass if log_mass == -np.inf else max(log_mass, FAINTEST)
    measure.prices[:] = 0.0
    measure.total[:] = 0.0
    measure.gap[0] = 0.0
    measure.warm[0] = True


@_inner
def _potential(log_measure, total, rate, mass):
    """`<q, total> + (1/rate) sum q ln q`; at rate 0 without the second."""
    chances(log_measure.reshape(-1, log_measure.shape[2]), mass.reshape(-1))
    spread = entropy(log_measure.reshape(-1)) / rate if rate > 0.0 else 0.0
    return paid(mass, total) - spread


@_inner
def _potential_before(projecting, rate, measure, scratch):
    """The potential before an estimate is added, NaN if it is not proved; the rate or the box may be new."""
    if measure.stands[0]:
        return _potential(measure.log_measure, measure.total, rate, scratch.mass)
    return _potential_after(projecting, rate, measure, scratch)


@_inner
def _potential_after(projecting, rate, measure, scratch):
    """The potential after an estimate was added, NaN if it is not proved."""
    if not _project(projecting, rate, measure, scratch):
        return np.nan
    return _potential(scratch.log_measure, measure.total, rate, scratch.mass)


@_inner
def _adapt(rows, block, waiting, k, policies, gamma, every, visits):
    """Lower the weights of what arrives in round `k` to those of its policy, if these are lower."""
    for i in range(block.starts[k], block.starts[k + 1]):
        slot = block.arrived[i]
        _chances(rows, policies, k, block.initial, every, waiting.states[slot], waiting.actions[slot], visits)
        for h in range(visits.size):
            chance = visits[h] + gamma
            if chance > 0.0:
                waiting.weights[slot, h] = min(waiting.weights[slot, h], 1.0 / chance)


# --- boxes that change ------------------------------------------------------------------------------------------------


def take_up(told, projecting, states, actions):
    """Tell the dynamics of an episode; whether those in use changed, and with them where projections go.

    `told` is `Epochs`, or None if the dynamics stay as they are.
    """
    raise NotImplementedError("compiled code only")


@overload(take_up)
def _take_up(told, projecting, states, actions):
    return _take_up_nothing if isinstance(told, types.NoneType) else _take_up_epochs


def _take_up_nothing(told, projecting, states, actions):
    return False


def _take_up_epochs(told, projecting, states, actions):
    box = told.used
    lower, upper, log_lower, log_upper = projecting.rows[3][:4]
    if told.at_once:
        narrow(box, 0, states, actions)
        for h in range(states.size - 1):
            lay_out(box.lower, box.upper, h, states[h], actions[h], lower, upper, log_lower, log_upper)
    elif gather(told, 0, states, actions):
        lay_out_all(box.lower, box.upper, lower, upper, log_lower, log_upper)
    else:
        return False
    support(box.lower, box.upper, projecting.initial, projecting.usable.reshape(box.lower.shape), projecting.reached)
    return True


# --- the games --------------------------------------------------------------------------------------------------------
#
# Both begin in round `first`. They return `DONE`, or the round, the part of it that could not be, and the arrival: a
# projection that is left to Python, or the weight of a visit without a chance. What stands then in `measure` is the
# state before that part. A rate is that of `amdp.kernels.episodes`.


@_entry
def bandit(
    projecting, rows, told, block, waiting, rate, gamma, is_adapted, is_descent, first, measure, policies, played
):  # fmt: skip
    """Mirror descent, or the regularized leader, with bandit feedback; weights may be adapted to delays."""
    b, steps, _, _ = policies.shape
    scratch, visits, every = _scratch(measure), np.empty(steps), np.arange(steps)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(first, b):
        if not _find(projecting, _rate(rate), measure, scratch):
            return k, DRAW, -1
        _read_policy(measure, scratch, policies[k])
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        _chances(rows, policies, k, block.initial, every, played.states[k], played.actions[k], visits)
        for h in range(steps):
            chance = visits[h] + gamma
            if not chance > 0.0:
                return k, WEIGH, -1
            visits[h] = 1.0 / chance
        _keep(block, waiting, k, played, visits)
        now = _lap(clock, now, played.spent, WEIGH)
        if is_adapted:  # before the box changes: chances are those of the round
            _adapt(rows, block, waiting, k, policies, gamma, every, visits)
        if is_descent:
            _descend(measure)
        if take_up(told, projecting, played.states[k], played.actions[k]):
            measure.stands[0] = False
        for i in range(block.starts[k], block.starts[k + 1]):
            slot = block.arrived[i]
            before = 0.0 if rate.size == 1 else _potential_before(projecting, _rate(rate), measure, scratch)
            copy(measure.total, scratch.total)
            _add_estimate(waiting, slot, measure.total)
            if rate.size > 1:
                after = _potential_after(projecting, _rate(rate), measure, scratch)
                if np.isnan(after - before):
                    copy(scratch.total, measure.total)
                    return k, LEARN, i
                _take(measure, scratch)
                _add_gap(rate, estimated_loss(waiting.losses[slot], waiting.weights[slot], gamma) - (after - before))
            measure.stands[0] = False
        now = _lap(clock, now, played.spent, LEARN)
    return DONE


@_entry
def full(projecting, told, block, waiting, rate, is_descent, first, measure, policies, played):
    """The same with full information; `waiting[slot, h, s, a]` are the occupancies of what waits."""
    scratch = _scratch(measure)
    clock = np.zeros(2, np.int64)
    now = nanoseconds(clock)
    for k in range(first, policies.shape[0]):
        if not _find(projecting, _rate(rate), measure, scratch):
            return k, DRAW, -1
        _read_policy(measure, scratch, policies[k])
        now = _lap(clock, now, played.spent, DRAW)
        walk(block.paths, policies[k], block.initial, block.luck[k], played.states[k], played.actions[k])
        now = _lap(clock, now, played.spent, ARENA)
        if rate.size > 1 and block.slots[k] >= 0:
            chances(measure.log_measure.reshape(-1, measure.prior.shape[2]), waiting[block.slots[k]].reshape(-1))
        now = _lap(clock, now, played.spent, WEIGH)
        if is_descent:
            _descend(measure)
        if take_up(told, projecting, played.states[k], played.actions[k]):
            measure.stands[0] = False
        for i in range(block.starts[k], block.starts[k + 1]):
            table = block.tables[block.arrived_tables[i]]
            before = 0.0 if rate.size == 1 else _potential_before(projecting, _rate(rate), measure, scratch)
            copy(measure.total, scratch.total)
            _add_table(table, measure.total)
            if rate.size > 1:
                after = _potential_after(projecting, _rate(rate), measure, scratch)
                if np.isnan(after - before):
                    copy(scratch.total, measure.total)
                    return k, LEARN, i
                _take(measure, scratch)
                _add_gap(rate, paid(waiting[block.arrived[i]], table) - (after - before))
            measure.stands[0] = False
        now = _lap(clock, now, played.spent, LEARN)
    return DONE
