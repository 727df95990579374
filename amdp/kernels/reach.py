"""Chances of being at given pairs, compiled: the most that any policy can have, and what given policies have.

The *reach* of a state at a step is the greatest chance, over all policies, of being there: backward induction on the
indicator of the state, with the greatest action (and over a box the greatest kernel) in every step.
"""

import numpy as np
from numba.extending import overload

from amdp.kernels.compiling import entry, inner
from amdp.kernels.paths import _pick
from amdp.kernels.rows import IntervalRows, SparseRows, TwoStepRows
from amdp.kernels.sweeps import expect, sort

# Every operation as it is written: the loops are also part of `trials`, and both must round alike.
_entry = entry()
_inner = inner()


@_inner
def _step_back(rows, h, n_actions, order, now, negated, expected):
    """From the greatest chances `now[y]` after step `h` to those before it, in place."""
    for y in range(now.size):
        negated[y] = -now[y]
    expect(rows, h, negated, order, expected)  # the least expectation of -now is the greatest of now
    for s in range(now.size):
        best = 0.0
        for a in range(n_actions):
            best = max(best, -expected[s * n_actions + a])
        now[s] = min(best, 1.0)


@_entry
def reach(rows, n_actions, n_states, initial, steps, states, out):
    """The reach `[m]` of each of the states at its step."""
    order = np.arange(n_states)
    now, negated, expected = np.empty(n_states), np.empty(n_states), np.empty(n_states * n_actions)
    for m in range(steps.size):
        out[m] = _reach(rows, n_actions, initial, steps[m], states[m], order, now, negated, expected)


@_inner
def _reach(rows, n_actions, initial, step, state, order, now, negated, expected):
    now[:] = 0.0
    now[state] = 1.0
    for h in range(step - 1, -1, -1):
        _step_back(rows, h, n_actions, order, now, negated, expected)
    return now[initial]


@_entry
def refresh_bounds(rows, visits, initial, start, states, known, seen):
    """Find the reach `known[h, s]` of the states of a segment, where none stands or the visits have doubled since.

    `visits[h, s, a, y]` are those of all moves, `seen[h, s]` those of the state when its reach was found.
    """
    n_states, n_actions = visits.shape[1:3]
    order = np.arange(n_states)
    now, negated, expected = np.empty(n_states), np.empty(n_states), np.empty(n_states * n_actions)
    for j in range(states.size):
        h, s = start + j, states[j]
        arrived = 0
        for z in range(n_states if h > 0 else 0):
            for a in range(n_actions):
                arrived += visits[h - 1, z, a, s]
        if np.isnan(known[h, s]) or arrived > 2 * seen[h, s]:
            known[h, s] = _reach(rows, n_actions, initial, h, s, order, now, negated, expected)
            seen[h, s] = arrived


@_entry
def reach_by_lag(rows, n_actions, n_states, initial, state, out):
    """The reach `out[h]` of one state at every step `h`, where all steps share their rows; and the greatest of any
    starting state, `out[h, 1]`.
    """
    order = np.arange(n_states)
    now, negated, expected = np.zeros(n_states), np.empty(n_states), np.empty(n_states * n_actions)
    now[state] = 1.0
    for lag in range(out.shape[0]):
        if lag > 0:
            _step_back(rows, 0, n_actions, order, now, negated, expected)
        out[lag, 0] = now[initial]
        out[lag, 1] = now.max()


def visit_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, out):
    """The chance `out[i, j]` that policy `i` of `[h, s, n]` is at the pair `j` steps after `start`; 0 if not `wanted`.

    Over a box it is the greatest that a kernel allows. Over a dense kernel it is the chance given where the policy is
    two steps earlier, on a path that `uniforms[i]` decide: its mean over paths is the chance of the pair.
    """
    raise NotImplementedError("compiled code only")


@overload(visit_chances)
def _visit_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, out):
    return _VISIT_CHANCES[rows.instance_class]


@_inner
def _last_match(actions, i, start, states, chosen, wanted, matches):
    """Which pairs policy `i` would choose if it were in their states, and the last of them; -1 if there is none."""
    last = -1
    for j in range(states.size):
        matches[j] = wanted[i, j] and actions[start + j, states[j], i] == chosen[j]
        if matches[j]:
            last = j
    return last


def _two_step_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, out):
    matches = np.empty(states.size, np.bool_)
    homogeneous = rows.by_row.shape[0] == 1
    for i in range(out.shape[0]):
        last = _last_match(actions, i, start, states, chosen, wanted, matches)
        out[i] = 0.0
        s = initial  # where the path is two steps before `h`
        for h in range(start + last + 1):
            j = h - start
            if j >= 0 and matches[j]:
                if h == 0:
                    out[i, j] = 1.0 if states[j] == initial else 0.0
                elif h == 1:
                    out[i, j] = rows.by_row[0, initial * n_actions + actions[0, initial, i], states[j]]
                else:
                    first = rows.by_row[0 if homogeneous else h - 2, s * n_actions + actions[h - 2, s, i]]
                    second = rows.by_next[0 if homogeneous else h - 1, states[j]]
                    total = 0.0
                    for z in range(actions.shape[1]):
                        total += first[z] * second[z * n_actions + actions[h - 1, z, i]]
                    out[i, j] = total
            if h >= 2 and h < start + last:
                row = s * n_actions + actions[h - 2, s, i]
                s = _pick(rows.cumulative[0 if homogeneous else h - 2, row], uniforms[i, h - 2])


def _forward_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, out):
    matches = np.empty(states.size, np.bool_)
    n_states = actions.shape[1]
    now, later = np.zeros(n_states), np.zeros(n_states)
    busy, next_busy = np.empty(n_states, np.int64), np.empty(n_states, np.int64)  # states with a chance above 0
    for i in range(out.shape[0]):
        last = _last_match(actions, i, start, states, chosen, wanted, matches)
        out[i] = 0.0
        now[initial] = 1.0
        busy[0] = initial
        count = 1
        for h in range(start + last + 1):
            if h >= start and matches[h - start]:
                out[i, h - start] = now[states[h - start]]
            starts = rows.starts[h if rows.starts.shape[0] > 1 else 0]
            next_count = 0
            for b in range(count):
                s = busy[b]
                chance = now[s]
                now[s] = 0.0
                if h == start + last:
                    continue
                row = s * n_actions + actions[h, s, i]
                for k in range(starts[row], starts[row + 1]):
                    y = rows.successors[k]
                    added = chance * rows.chances[k]
                    if later[y] == 0.0 and added > 0.0:
                        next_busy[next_count] = y
                        next_count += 1
                    later[y] += added
            now, later = later, now
            busy, next_busy = next_busy, busy
            count = next_count
        now[initial] = 0.0


def _greatest_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, out):
    matches = np.empty(states.size, np.bool_)
    n_states = actions.shape[1]
    now, total, left = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    keys, order, row = np.empty(n_states), np.arange(n_states), np.empty(n_states, np.int64)
    for i in range(out.shape[0]):
        _last_match(actions, i, start, states, chosen, wanted, matches)
        for j in range(states.size):
            out[i, j] = 0.0
            if not matches[j]:
                continue
            now[:] = 0.0
            now[states[j]] = 1.0
            for h in range(start + j - 1, -1, -1):
                _greatest_of_chosen(rows, h, actions[h, :, i], n_actions, now, keys, order, row, left, total)
                now, total = total, now
            out[i, j] = min(now[initial], 1.0)


@_inner
def _greatest_of_chosen(rows, h, actions, n_actions, now, keys, order, row, left, total):
    """The greatest expectation `total[s]` of `now` after the chosen action in each state, over the rows of a box."""
    step = h if rows.lower.shape[0] > 1 else 0
    useful = 0
    for s in range(now.size):
        keys[s] = -now[s]
        useful += now[s] > 0.0
        row[s] = s * n_actions + actions[s]
        left[s] = rows.budget[step, row[s]]
        total[s] = 0.0
    sort(order, keys)
    for rank in range(useful):
        y = order[rank]
        lower, width = rows.lower[step, y], rows.width[step, y]
        for s in range(now.size):
            spent = min(width[row[s]], left[s])
            total[s] += (lower[row[s]] + spent) * now[y]
            left[s] -= spent


_VISIT_CHANCES = {
    TwoStepRows: _two_step_chances,
    SparseRows: _forward_chances,
    IntervalRows: _greatest_chances,
}


@_entry
def chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, out):
    """The entry by which Python calls `visit_chances`."""
    visit_chances(rows, actions, n_actions, initial, start, states, chosen, wanted, uniforms, out)
