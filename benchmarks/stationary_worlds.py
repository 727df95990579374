"""Seeded instances of the stationary problem: families of kernels and of costs, by name."""

from math import isqrt

import numpy as np

from amdp import Kernel, SparseKernel, StationaryPolicies
from amdp.arrays import Floats
from amdp.model.segments import Shape

SUCCESSORS = 3  # a row of a sparse kernel
SLIP = 0.2  # the chance that a move on the grid goes another way
PHASES = 5  # of the adversary, each with losses of its own


def world(family: str, losses: str, shape: Shape, rng: np.random.Generator) -> tuple[StationaryPolicies, Floats]:
    """A domain and one cost array `[t, s, a]`; the shape is steps, states, actions."""
    steps, states, actions = shape
    rows = _ROWS[family](states, actions, rng)
    kernel = (
        Kernel.homogeneous(rows, steps)
        if family == "dense"
        else SparseKernel.homogeneous(rows.reshape(states * actions, states), steps)
    )
    return StationaryPolicies(kernel), _COSTS[losses](shape, rng)


def dense_rows(states: int, actions: int, rng: np.random.Generator) -> Floats:
    """Rows `[s, a, y]` that are uniform on the simplex: they mix in a few steps."""
    return rng.dirichlet(np.ones(states), size=(states, actions))


def sparse_rows(states: int, actions: int, rng: np.random.Generator) -> Floats:
    """Rows with three successors anywhere."""
    rows = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        successors = rng.choice(states, size=min(SUCCESSORS, states), replace=False)
        rows[s, a, successors] = rng.dirichlet(np.ones(len(successors)))
    return rows


def grid_rows(states: int, actions: int, rng: np.random.Generator) -> Floats:
    """A grid as square as it can be; action `a` goes to neighbour `a`, or slips to another; walls keep the place."""
    height = next(side for side in range(isqrt(states), 0, -1) if states % side == 0)
    width = states // height
    moves = ((1, 0), (0, 1), (-1, 0), (0, -1))
    rows = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        for direction, (dx, dy) in enumerate(moves):
            x, y = np.clip(s // width + dx, 0, height - 1), np.clip(s % width + dy, 0, width - 1)
            rows[s, a, x * width + y] += 1.0 - SLIP if direction == a else SLIP / 3
    return rows


def river_rows(states: int, actions: int, rng: np.random.Generator) -> Floats:
    """Action 0 drifts down for sure; the others swim up, more or less surely."""
    rows = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        if a == 0:
            rows[s, a, max(0, s - 1)] = 1.0
            continue
        up, down = 0.3 + 0.1 * a, 0.1
        rows[s, a, min(states - 1, s + 1)] += up
        rows[s, a, max(0, s - 1)] += down
        rows[s, a, s] += 1.0 - up - down
    return rows


def deterministic_rows(states: int, actions: int, rng: np.random.Generator) -> Floats:
    """Each pair leads to one random state."""
    rows: Floats = np.eye(states)[rng.integers(states, size=(states, actions))]
    return rows


def rare_rows(states: int, actions: int, rng: np.random.Generator) -> Floats:
    """Action 0 moves for sure; the others stay, and move once in a hundred or in a hundred million steps."""
    rows = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        moves = 1.0 if a == 0 else 10.0 ** rng.uniform(-8, -2)
        rows[s, a, s] += 1.0 - moves
        rows[s, a, rng.integers(states)] += moves
    return rows


def noise(shape: Shape, rng: np.random.Generator) -> Floats:
    """Laplace noise."""
    return rng.laplace(size=shape)


def ftpl_like(shape: Shape, rng: np.random.Generator) -> Floats:
    """Laplace noise, and in each step the weighted loss of one pair."""
    steps, states, actions = shape
    costs = rng.laplace(size=shape)
    pair = rng.integers(states, size=steps), rng.integers(actions, size=steps)
    costs[np.arange(steps), *pair] += states * actions * rng.random(steps)
    return costs


def adversarial(shape: Shape, rng: np.random.Generator) -> Floats:
    """Losses in [0, 1] that stay for a while and then change."""
    steps, states, actions = shape
    phases = rng.random((PHASES, states, actions))
    return np.asarray(phases[np.arange(steps) * PHASES // steps])


def coins(shape: Shape, rng: np.random.Generator) -> Floats:
    """Zeros and ones that never change: many policies cost the same."""
    steps, states, actions = shape
    return np.repeat((rng.random((1, states, actions)) < 0.5).astype(float), steps, axis=0)


_ROWS = {
    "dense": dense_rows,
    "sparse": sparse_rows,
    "grid": grid_rows,
    "river": river_rows,
    "deterministic": deterministic_rows,
    "rare": rare_rows,
}
_COSTS = {"noise": noise, "ftpl": ftpl_like, "adversarial": adversarial, "coins": coins}
FAMILIES = tuple(_ROWS)
LOSSES = tuple(_COSTS)
