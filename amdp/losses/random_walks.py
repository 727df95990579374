"""Losses that wander: a random walk on many scales, under which a small gap hides (Dekel et al. 2014)."""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp.arrays import Floats, floats, require_finite, require_room, require_whole
from amdp.errors import InvalidInput
from amdp.losses.base import CalledLosses, CheckedLosses


def wandering(table: ArrayLike, walk: ArrayLike, where: ArrayLike | None = None) -> CheckedLosses:
    """Losses that move together: `l_k = clip(table + walk_k where, 0, 1)` for a walk `[k]`; `where` is 1 if None.

    Who stays at one place of `where` learns what the walk does, and nothing about the table.
    """
    fixed, moved = floats("table", table, "hsa"), floats("walk", walk, "k")
    moves = np.ones(fixed.shape) if where is None else floats("where", where, "hsa")
    if moves.shape != fixed.shape:
        raise InvalidInput(f"where has shape {moves.shape}; the table has {fixed.shape}")
    for name, array, axes in (("table", fixed, "hsa"), ("walk", moved, "k"), ("where", moves, "hsa")):
        require_finite(name, array, axes)
    steps, states, actions = fixed.shape
    return CalledLosses(len(moved), (steps, states, actions), partial(_wandered, fixed, moved, moves), name="walk")


def multi_scale_walk(n_steps: int, deviation: float, rng: np.random.Generator) -> Floats:
    """`w_t = w_{parent(t)} + xi_t` for `t = 1 .. T` with normal `xi_t`; the parent clears the lowest bit of `t`.

    Each value is a sum of at most `log2 T + 1` numbers, and each step ends the reach of at most as many.
    """
    require_whole("n_steps", n_steps, 1)
    require_room("a walk", (n_steps,), 4)
    noise = deviation * rng.standard_normal(n_steps + 1)
    walk = np.zeros(n_steps + 1)
    for t, parent in enumerate(parents(n_steps), start=1):
        walk[t] = walk[parent] + noise[t]
    return walk[1:]


def parents(n_steps: int) -> NDArray[np.int64]:
    """The parent of each `t = 1 .. T`."""
    times = np.arange(1, n_steps + 1)
    return times & (times - 1)


def _wandered(table: Floats, walk: Floats, where: Floats, k: int) -> Floats:
    moved: Floats = np.clip(table + walk[k] * where, 0.0, 1.0)
    return moved
