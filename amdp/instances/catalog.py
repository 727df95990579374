"""The built-in worlds by short name, in the sizes of the demonstrations."""

from collections.abc import Callable

import numpy as np

from amdp.errors import InvalidInput
from amdp.instances.base import Instance
from amdp.instances.classic import combination_lock, forest, grid_world, river_swim
from amdp.instances.operations import admission_queue, inventory
from amdp.instances.random_worlds import random_dense, random_layered, random_sparse

SEED = 20240  # the random worlds below are always the same ones


def standard() -> dict[str, Callable[[], Instance]]:
    """A function that makes each world, by name."""
    return {
        "tiny": lambda: random_dense(3, 3, 2, np.random.default_rng(SEED)),
        "river-swim": river_swim,
        "grid": grid_world,
        "lock": combination_lock,
        "forest": forest,
        "random-dense": lambda: random_dense(10, 8, 3, np.random.default_rng(SEED)),
        "random-sparse": lambda: random_sparse(10, 200, 4, np.random.default_rng(SEED)),
        "random-layered": lambda: random_layered(6, 4, 3, np.random.default_rng(SEED)),
        "inventory": inventory,
        "queue": admission_queue,
    }


def build(name: str) -> Instance:
    """The world of that name."""
    known = standard()
    if name not in known:
        raise InvalidInput(f"no instance {name!r}; known names: {', '.join(known)}")
    return known[name]()
