"""Boxes of kernels that narrow in place as segments are seen, compiled."""

import numpy as np
from numba import types
from numba.extending import overload

from amdp.kernels.compiling import entry, inner
from amdp.kernels.copies import copy
from amdp.kernels.layout import EMPTY_TOLERANCE
from amdp.kernels.rows import Epochs

UNCHANGED, NARROWED, STARTED_AGAIN = 0, 1, 2  # what an episode changed: STARTED_AGAIN if some rows became wider

# Every operation as it is written: bounds are the same wherever a box is narrowed.
_entry = entry()


@_entry
def fill_rows(lower, upper, rows):
    """Write bounds `[h, s, a, y]` to the rows that sweeps read."""
    steps, states, n_actions, _ = lower.shape
    for h in range(steps):
        for s in range(states):
            for a in range(n_actions):
                _fill_row(lower, upper, rows, h, s, a)


@_entry
def _fill_row(lower, upper, rows, h, s, a):
    row = s * lower.shape[2] + a
    total = 0.0
    for y in range(lower.shape[3]):
        total += lower[h, s, a, y]
        rows.lower[h, y, row] = lower[h, s, a, y]
        rows.width[h, y, row] = upper[h, s, a, y] - lower[h, s, a, y]
    rows.budget[h, row] = max(0.0, 1.0 - total)


@_entry
def narrow(box, start, states, actions):
    """Count the moves of a segment, and intersect the rows that it visited with their newest intervals."""
    for j in range(states.size - 1):
        h, s, a = start + j, states[j], actions[j]
        box.visits[h, s, a, states[j + 1]] += 1
        if not _intersect(box, h, s, a, True):
            _intersect(box, h, s, a, False)
            box.fallbacks[0] += 1
        _fill_row(box.lower, box.upper, box.rows, h, s, a)


@_entry
def gather(epochs, start, states, actions):
    """Narrow the box of all visits; renew that in use if some pair has twice its visits. Whether it was renewed.

    Only pairs of the segment can have got there: all others are as they were when that was last asked.
    """
    narrow(epochs.gathered, start, states, actions)
    doubled = False
    for j in range(states.size - 1):
        h, s, a = start + j, states[j], actions[j]
        before, now = epochs.used.visits[h, s, a].sum(), epochs.gathered.visits[h, s, a].sum()
        doubled = doubled or now >= max(1, 2 * before)
    if doubled:
        copy(epochs.gathered.visits, epochs.used.visits)
        _renew(epochs.used)
    return doubled


@_entry
def _renew(box):
    """Set all bounds to the newest intervals alone; a row that was never visited is the whole simplex."""
    steps, states, n_actions, _ = box.lower.shape
    box.fallbacks[0] = 0
    for h in range(steps):
        for s in range(states):
            for a in range(n_actions):
                box.lower[h, s, a] = 0.0
                box.upper[h, s, a] = 1.0
                if box.visits[h, s, a].sum() > 0:
                    _intersect(box, h, s, a, False)
                _fill_row(box.lower, box.upper, box.rows, h, s, a)


@_entry
def _intersect(box, h, s, a, with_old):
    """Set the bounds of a row to its newest interval, intersected with the old one or not; False if that is empty.

    An empty intersection leaves the row as it was.
    """
    log_term, spread, offset, discount, scale = box.radius
    visits, lower, upper = box.visits[h, s, a], box.lower[h, s, a], box.upper[h, s, a]
    total = visits.sum()
    effective = max(1.0, total - discount)
    new_lower, new_upper = np.empty(visits.size), np.empty(visits.size)
    least, most = 0.0, 0.0
    for y in range(visits.size):
        mean = visits[y] / total
        half_width = scale * (spread * np.sqrt(mean * log_term / effective) + offset * log_term / effective)
        low, high = max(0.0, mean - half_width), min(1.0, mean + half_width)
        new_lower[y], new_upper[y] = (max(lower[y], low), min(upper[y], high)) if with_old else (low, high)
        least += new_lower[y]
        most += new_upper[y]
        if with_old and new_lower[y] > new_upper[y]:
            return False
    if with_old and (least > 1.0 + EMPTY_TOLERANCE or most < 1.0 - EMPTY_TOLERANCE):
        return False
    copy(new_lower, lower)
    copy(new_upper, upper)
    return True


@_entry
def support(lower, upper, initial, usable, reached):
    """Where an occupancy measure of some kernel of a box can have mass: `usable[h, s, a, y]`, and in the states
    `reached[h, s]`; whether there is any.

    The moves of the last step have their mass in `y = 0`. A state that mass could not leave again is dead.
    """
    steps, states, n_actions, _ = lower.shape
    dead = np.zeros(states, np.bool_)
    usable[:] = False
    usable[steps - 1, :, :, 0] = True
    for h in range(steps - 2, -1, -1):
        for s in range(states):
            for a in range(n_actions):
                _open_moves(lower[h, s, a], upper[h, s, a], dead, usable[h, s, a])
        for s in range(states):
            dead[s] = not usable[h, s].any()
    reached[:] = False
    reached[0, initial] = True
    for h in range(steps):
        for s in range(states):
            for a in range(n_actions):
                for y in range(states):
                    usable[h, s, a, y] = usable[h, s, a, y] and reached[h, s]
                    if h < steps - 1 and usable[h, s, a, y]:
                        reached[h + 1, y] = True
    return not dead[initial]


@_entry
def _open_moves(lower, upper, dead, usable):
    """The moves of a row that may have mass, if it must not enter dead states."""
    least, room, forced = 0.0, 0.0, False
    for y in range(lower.size):
        least += lower[y]
        if upper[y] > 0.0 and not dead[y]:
            room += upper[y]
        elif lower[y] > 0.0:
            forced = True
    is_spent = least >= 1.0 - EMPTY_TOLERANCE
    for y in range(lower.size):
        is_open = upper[y] > 0.0 and not dead[y] and not forced and room >= 1.0 - EMPTY_TOLERANCE
        usable[y] = is_open and not (is_spent and lower[y] == 0.0)


def observe(told, states, actions):
    """What a learner learns of the dynamics from an episode: UNCHANGED, NARROWED or STARTED_AGAIN.

    `told` is a `Narrowing` box, or `Epochs`, of which the box in use counts; None if the dynamics stay as they are.
    """
    raise NotImplementedError("compiled code only")


@overload(observe)
def _observe(told, states, actions):
    if isinstance(told, types.NoneType):
        return _observe_nothing
    return _observe_in_epochs if told.instance_class is Epochs else _observe_box


def _observe_nothing(told, states, actions):
    return UNCHANGED


def _observe_box(told, states, actions):
    return _narrowed(told, states, actions)


def _observe_in_epochs(told, states, actions):
    if told.at_once:
        return _narrowed(told.used, states, actions)
    return STARTED_AGAIN if gather(told, 0, states, actions) else UNCHANGED


@inner()
def _narrowed(box, states, actions):
    before = box.fallbacks[0]
    narrow(box, 0, states, actions)
    return NARROWED if box.fallbacks[0] == before else STARTED_AGAIN
