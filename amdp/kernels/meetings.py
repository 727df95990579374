"""Whether resampling trials meet pairs, compiled.

Over one kernel a trial walks a path of its own. Over a box it meets a pair with the greatest chance that a kernel of
the box allows.
"""

import numpy as np
from numba.extending import overload

from amdp.kernels.compiling import entry
from amdp.kernels.paths import move
from amdp.kernels.reach import visit_chances
from amdp.kernels.rows import IntervalRows

_entry = entry()


@_entry
def meets(rows, actions, n_actions, initial, start, states, chosen, steps, uniforms, met):
    """Whether policy `i` of `[h, s, n]` meets the pair `steps[i]` steps after `start`."""
    _meets(rows, actions, n_actions, initial, start, states, chosen, steps, uniforms, met)


@_entry
def meets_all(rows, actions, n_actions, initial, start, states, chosen, uniforms, met):
    """Whether each of the policies `[h, s, n]` meets each of the pairs from `start` on, `met[n, m]`."""
    _meets_all(rows, actions, n_actions, initial, start, states, chosen, uniforms, met)


def _meets(rows, actions, n_actions, initial, start, states, chosen, steps, uniforms, met):
    raise NotImplementedError("compiled code only")


@overload(_meets)
def _overload_meets(rows, actions, n_actions, initial, start, states, chosen, steps, uniforms, met):
    return _meets_by_chance if rows.instance_class is IntervalRows else _meets_on_path


def _meets_all(rows, actions, n_actions, initial, start, states, chosen, uniforms, met):
    raise NotImplementedError("compiled code only")


@overload(_meets_all)
def _overload_meets_all(rows, actions, n_actions, initial, start, states, chosen, uniforms, met):
    return _meets_all_by_chance if rows.instance_class is IntervalRows else _meets_all_on_path


def _meets_on_path(rows, actions, n_actions, initial, start, states, chosen, steps, uniforms, met):
    for i in range(met.size):
        s = initial
        last = start + steps[i]
        for h in range(last):
            s = move(rows, h, s * n_actions + actions[h, s, i], uniforms[i, h])
        met[i] = s == states[steps[i]] and actions[last, s, i] == chosen[steps[i]]


def _meets_all_on_path(rows, actions, n_actions, initial, start, states, chosen, uniforms, met):
    n, m = met.shape
    for i in range(n):
        s = initial
        for h in range(start + m):
            a = actions[h, s, i]
            if h >= start:
                met[i, h - start] = s == states[h - start] and a == chosen[h - start]
            if h + 1 < start + m:
                s = move(rows, h, s * n_actions + a, uniforms[i, h])


def _meets_by_chance(rows, actions, n_actions, initial, start, states, chosen, steps, uniforms, met):
    wanted, chances = np.zeros((met.size, states.size), np.bool_), np.empty((met.size, states.size))
    for i in range(met.size):
        wanted[i, steps[i]] = True
    visit_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, chances)
    for i in range(met.size):
        met[i] = uniforms[i, start + steps[i]] < chances[i, steps[i]]


def _meets_all_by_chance(rows, actions, n_actions, initial, start, states, chosen, uniforms, met):
    wanted, chances = np.ones(met.shape, np.bool_), np.empty(met.shape)
    visit_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, chances)
    for i in range(met.shape[0]):
        for j in range(met.shape[1]):
            met[i, j] = uniforms[i, start + j] < chances[i, j]
