"""Ready worlds with a budget each, for specs: `budgeted_worlds:river_swim`. The third such world is `maintenance`."""

import numpy as np

from amdp import Budgets, instances
from amdp.instances import Instance

RIGHT = 1  # the action that swims against the current


def river_swim(n_states: int = 4, n_steps: int = 8, strokes: float = 4.0) -> Instance:
    """The river swim, in which a swim against the current takes a stroke, and an episode has so many of them."""
    world = instances.river_swim(n_states, n_steps)
    used = np.zeros(world.shape[1:])
    used[:, RIGHT] = 1.0
    return world.with_budgets(Budgets.of(strokes=(used, strokes)))


def random_dense(seed: int = 20240, limit: float = 1.5) -> Instance:
    """A world without shape; each action takes one unit more than the one before, of some units in the mean."""
    world = instances.build("random-dense", n_steps=5, n_states=4, n_actions=3, seed=seed)
    used = np.broadcast_to(np.arange(3.0), world.shape[1:])
    return world.with_budgets(Budgets.of(units=(used, limit)))
