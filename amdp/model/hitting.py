"""Least expected hitting times of a homogeneous kernel: which states surely reach a target, and how fast."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Actions, Bools, Floats
from amdp.kernels.threads import multiply, one_thread

GAIN_TOLERANCE = 1e-12  # relative: what an action must save, or take longer, to count as faster or slower
FASTER, SLOWER = 1.0 - GAIN_TOLERANCE, 1.0 + GAIN_TOLERANCE
HEAD_START = 50  # sweeps of value iteration before the first improved policies are evaluated
BATCH_BYTES = 4_000_000  # what one batch of eliminations may fill: larger ones leave the cache
SPARSE_STATES = 150  # from so many states on, near-empty rows are solved by sparse factors
SPARSE_SHARE = 0.05  # near-empty: no more than this share of the entries is positive
SPARSE_ERROR = 1e-6  # relative: factors that cannot prove this are replaced by an elimination


def sure_ways(rows: Any) -> tuple[Bools, Bools, Actions]:
    """From where some policy surely reaches each target `[y, s]`, by which actions `[y, s, a]`, and one such policy.

    The greatest fixed point: drop the states that cannot reach the target, then the actions that risk a dropped
    state, until nothing more falls away.
    """
    states = rows.shape[1]
    leads_on = (np.diff(rows.indptr) > 0).reshape(states, -1)
    sure = np.ones((states, states), dtype=bool)
    while True:
        allowed = leads_on & (_expected(rows, ~sure) == 0) & sure[:, :, None]
        reaching, policy = _attracted(rows, allowed)
        if np.array_equal(reaching, sure):
            return sure, allowed, policy
        sure = reaching


def _attracted(rows: Any, allowed: Bools) -> tuple[Bools, Actions]:
    """The states that can reach each target through allowed pairs, and actions that lead nearer, breadth first."""
    reached = np.eye(len(allowed), dtype=bool)
    actions = np.full(reached.shape, -1, dtype=np.int32)
    while True:
        nearer = np.where(allowed, _expected(rows, reached), 0.0)
        fresh = nearer.any(axis=2) & ~reached
        if not fresh.any():
            return reached, actions
        actions[fresh] = nearer.argmax(axis=2)[fresh]
        reached |= fresh


def fastest(rows: Any, allowed: Bools, start: Actions) -> tuple[Floats, Actions]:
    """Least times `[y, s]` and their policies: policy iteration for all targets, from policies that surely arrive.

    Times of a policy that surely arrives only fall in a sweep of value iteration, so policies that are greedy for them
    surely arrive as well.
    """
    pairs, states = rows.shape
    near_empty = states >= SPARSE_STATES and rows.nnz <= SPARSE_SHARE * pairs * states
    chances = rows if near_empty else rows.toarray()
    improved, actions = np.arange(states), start.copy()
    times = hitting_times(chances, improved, actions)
    lowered = times
    for _ in range(HEAD_START):
        lowered = np.minimum(lowered, _ahead(chances, allowed, lowered).min(axis=2))

    def measure(targets: NDArray[np.intp], policies: Actions) -> Floats:
        return hitting_times(chances, targets, policies)

    adopt(times, actions, improved, greedy(_ahead(chances, allowed, lowered), actions, FASTER), measure, 1.0)
    while len(improved):
        ahead = _ahead(chances, allowed[improved], times[improved])
        improved = adopt(times, actions, improved, greedy(ahead, actions[improved], FASTER), measure, 1.0)
    return times, actions


def greedy(values: Floats, actions: Actions, factor: float) -> Actions:
    """The actions `[n, s]` of least value `[n, s, a]`; old ones that are -1, or that gain too little by it, stay."""
    current = np.take_along_axis(values, np.maximum(actions, 0)[:, :, None], axis=2)[:, :, 0]
    gains = (actions >= 0) & (values.min(axis=2) < current * factor)
    return np.where(gains, values.argmin(axis=2), actions).astype(np.int32)


def adopt(
    times: Floats,
    actions: Actions,
    targets: NDArray[np.intp],
    proposed: Actions,
    measure: Callable[[NDArray[np.intp], Actions], Floats],
    sign: float,
) -> NDArray[np.intp]:
    """Put `proposed` policies `[n, s]` for some targets in place where they are faster, or slower if `sign` is -1.

    The targets that got one. The product of the times must fall, or grow, so rounding cannot lead in circles.
    """
    changed = (proposed != actions[targets]).any(axis=1)
    targets, proposed = targets[changed], proposed[changed]
    measured = measure(targets, proposed)
    logs, former_logs = (np.log(np.maximum(steps, 1.0)).sum(axis=1) for steps in (measured, times[targets]))
    better = sign * logs < sign * former_logs
    targets = targets[better]
    times[targets], actions[targets] = measured[better], proposed[better]
    return targets


def _ahead(chances: Any, allowed: Bools, times: Floats) -> Floats:
    return np.where(allowed, 1.0 + _expected(chances, times), np.inf)


def _expected(rows: Any, values: NDArray[Any]) -> Floats:
    """`[n, y] -> [n, s, a]`: the expected value of the next state."""
    pairs, states = rows.shape
    expected: Floats = multiply(rows, values.T.astype(np.float64))
    return expected.reshape(states, pairs // states, -1).transpose(2, 0, 1)


def hitting_times(chances: Any, targets: NDArray[np.intp], actions: Actions) -> Floats:
    """Expected steps `[n, s]` of the policies `[n, s]` until their targets; 0 where the action is -1."""
    times = np.empty(actions.shape)
    if scipy.sparse.issparse(chances):
        for n, target in enumerate(targets):
            times[n] = _factored(chances, target, actions[n])
        return times
    size = max(1, BATCH_BYTES // (8 * chances.shape[1] ** 2))
    for first in range(0, len(targets), size):
        batch = slice(first, first + size)
        times[batch] = _eliminated(chances, targets[batch], actions[batch])
    return times


def _factored(rows: Any, target: np.intp, policy: Actions) -> Floats:
    states = len(policy)
    moving = np.flatnonzero(policy >= 0)
    times = np.zeros(states)
    if len(moving) == 0:
        return times
    chosen = rows[moving * (rows.shape[0] // states) + policy[moving]]
    system = scipy.sparse.eye_array(len(moving), format="csc") - chosen[:, moving].tocsc()
    try:
        with one_thread(len(moving) ** 2):
            times[moving] = scipy.sparse.linalg.splu(system).solve(np.ones(len(moving)))
        error = _error(chosen, times[moving], times)
    except RuntimeError:  # singular to rounding
        error = np.inf
    if error <= SPARSE_ERROR:
        return times
    written = np.zeros((states, states))
    written[moving] = chosen.toarray()
    times[:] = _eliminated(written, np.array([target]), np.minimum(policy, 0)[None])[0]
    return times


def _error(chosen: Any, times: Floats, onward: Floats) -> float:
    """The share by which solved times may be wrong: their residual, and the rounding in it."""
    rounding = np.finfo(np.float64).eps * (2 + np.diff(chosen.indptr).max())
    return float(np.abs(times - 1.0 - chosen @ onward).max() + rounding * np.abs(times).max())


def _eliminated(chances: Floats, targets: NDArray[np.intp], actions: Actions) -> Floats:
    pairs, states = chances.shape
    batch = np.arange(len(targets))
    order = np.tile(np.arange(states), (len(targets), 1))
    order[batch, 0], order[batch, targets] = targets, 0  # each target changes places with state 0
    policy = np.take_along_axis(actions, order, axis=1)
    moves = chances[(order * (pairs // states) + policy)[:, :, None], order[:, None, :]]
    moves[policy < 0] = np.arange(states) == 0
    times = _bypassed(moves)
    times[policy < 0] = 0.0
    return np.take_along_axis(times, order, axis=1)


def _bypassed(moves: Floats) -> Floats:
    """Expected steps `[n, s]` until state 0; overwrites `moves` `[n, s, y]`. Not finite if it may never come.

    One state after the other is bypassed until only state 0 is left (Grassmann, Taksar, Heyman 1985). The chance
    of leaving a state is the sum of its ways out, not 1 less the chance of staying: nothing cancels.
    """
    times, leaving = np.ones(moves.shape[:2]), np.ones(moves.shape[:2])
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in reversed(range(1, moves.shape[1])):
            leaving[:, k] = moves[:, k, :k].sum(axis=1)
            share = moves[:, :k, k] / leaving[:, k, None]
            times[:, :k] += share * times[:, k, None]
            moves[:, :k, :k] += share[:, :, None] * moves[:, k, None, :k]
        times[:, 0] = 0.0
        for k in range(1, moves.shape[1]):
            onward = np.einsum("ny,ny->n", moves[:, k, :k], times[:, :k])
            times[:, k] = (times[:, k] + onward) / leaving[:, k]
    return times
