"""Seeded inputs of the benchmarks: random kernels, boxes around them, and costs that drift."""

from collections.abc import Iterator
from itertools import chain, cycle
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp import BernsteinBox, Kernel, step_major
from amdp.arrays import Costs, Floats
from amdp.model.segments import Shape

CONCENTRATION = 0.3


def rows(states: int, actions: int, rng: np.random.Generator) -> Floats:
    """Dirichlet rows `[s, a, y]`."""
    return rng.dirichlet(np.full(states, CONCENTRATION), size=(states, actions))


def kernel(shape: Shape, rng: np.random.Generator) -> Kernel:
    """A new Dirichlet kernel for each step."""
    steps, states, actions = shape
    return Kernel(np.stack([rows(states, actions, rng) for _ in range(steps)]))


def box(center: Kernel) -> BernsteinBox:
    """All kernels within `sqrt(p / 100) + 1 / 100` of one: about a hundred visits a row."""
    radius = np.sqrt(center.p / 100.0) + 0.01
    return BernsteinBox(np.maximum(0.0, center.p - radius), np.minimum(1.0, center.p + radius))


def sparse_rows(states: int, actions: int, successors: int, rng: np.random.Generator) -> Any:
    """A CSR matrix `[s*a, y]` whose rows have so many successors, at most."""
    pairs = states * actions
    chances = rng.dirichlet(np.ones(successors), size=pairs).reshape(-1)
    place = np.repeat(np.arange(pairs), successors), rng.integers(states, size=pairs * successors)
    return scipy.sparse.csr_array((chances, place), shape=(pairs, states))


def grid_rows(side: int, rng: np.random.Generator) -> Any:
    """A CSR matrix `[s*a, y]` of a square grid: four actions, each with chances of its own for the four neighbours."""
    states = side * side
    x, y = np.divmod(np.arange(states), side)
    moves = ((1, 0), (-1, 0), (0, 1), (0, -1))
    neighbors = np.stack([_inside(x + dx, side) * side + _inside(y + dy, side) for dx, dy in moves], axis=1)
    chances = rng.dirichlet(np.ones(4), size=4 * states).reshape(-1)
    place = np.repeat(np.arange(4 * states), 4), np.repeat(neighbors, 4, axis=0).reshape(-1)
    return scipy.sparse.csr_array((chances, place), shape=(4 * states, states))


def by_step(n: int, shape: Shape, rng: np.random.Generator) -> Costs:
    """Uniform costs `[n, h, s, a]` in step-major memory."""
    costs = step_major(n, shape)
    costs[...] = rng.random(costs.shape)
    return costs


def drifting(shape: Shape, count: int, rng: np.random.Generator) -> list[Costs]:
    """Costs `[1, h, s, a]`, each of which differs from the one before by up to 0.3 at one pair of each step."""
    steps, states, actions = shape
    costs = [rng.random((1, *shape))]
    for _ in range(count - 1):
        changed = costs[-1].copy()
        pair = rng.integers(states, size=steps), rng.integers(actions, size=steps)
        changed[0, np.arange(steps), *pair] += rng.uniform(-0.3, 0.3, size=steps)
        costs.append(changed)
    return costs


def fresh(shape: Shape, count: int, rng: np.random.Generator) -> list[Costs]:
    """Independent costs `[1, h, s, a]`."""
    return [rng.random((1, *shape)) for _ in range(count)]


def there_and_back(costs: list[Costs]) -> Iterator[Costs]:
    """The costs for ever, up and down the list, so that neighbours stay neighbours."""
    return cycle(chain(costs, costs[-2:0:-1]))


def _inside(coordinate: NDArray[np.integer], side: int) -> NDArray[np.integer]:
    clipped: NDArray[np.integer] = np.clip(coordinate, 0, side - 1)
    return clipped
