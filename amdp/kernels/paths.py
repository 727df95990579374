"""Trajectories, compiled: one uniform number decides each move, so that all learners can meet the same luck."""

import numpy as np
from numba.extending import overload

from amdp.kernels.compiling import entry
from amdp.kernels.rows import DensePaths, SparsePaths

_entry = entry()


@_entry
def _pick(cumulative, uniform):
    """First index whose cumulative chance exceeds its share `uniform` of the whole; by halving."""
    low, high = 0, cumulative.size - 1
    target = uniform * cumulative[high]
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@_entry
def cumulate(starts, chances, cumulative):
    """Running sums of each row, in the order of a dense row: both kinds then round alike, and share their luck."""
    for d in range(starts.shape[0]):
        for row in range(starts.shape[1] - 1):
            total = 0.0
            for k in range(starts[d, row], starts[d, row + 1]):
                total += chances[k]
                cumulative[k] = total


def move(rows, h, row, uniform):
    """The next state after a row of step `h`."""
    raise NotImplementedError("compiled code only")


@overload(move)
def _move(rows, h, row, uniform):
    return _MOVE[rows.instance_class]


def _move_dense(rows, h, row, uniform):
    return _pick(rows.cumulative[h if rows.cumulative.shape[0] > 1 else 0, row], uniform)


def _move_sparse(rows, h, row, uniform):
    starts = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    low, high = starts[row], starts[row + 1]
    return np.int64(rows.successors[low + _pick(rows.cumulative[low:high], uniform)])


_MOVE = {DensePaths: _move_dense, SparsePaths: _move_sparse}


@_entry
def walk(rows, policy, initial, uniforms, states, actions):
    """One trajectory of a policy `[h, s, a]`; `uniforms[h]` holds one number for the action and one for the move."""
    n_actions = policy.shape[2]
    s = initial
    for h in range(states.size):
        a = _pick(np.cumsum(policy[h, s]), uniforms[h, 0])
        states[h] = s
        actions[h] = a
        if h + 1 < states.size:
            s = move(rows, h, s * n_actions + a, uniforms[h, 1])
