"""The built-in worlds by short name, in the sizes of the demonstrations; all of their settings are keywords."""

from collections.abc import Callable
from typing import Any

from amdp import options, registry
from amdp.errors import InvalidInput
from amdp.instances.base import Instance
from amdp.instances.classic import combination_lock, forest, grid_world, river_swim
from amdp.instances.communicating import (
    random_entered,
    random_ergodic,
    random_parked,
    server_farm,
    swinging_ring,
    swinging_star,
    waiting_ring,
    waiting_star,
)
from amdp.instances.hard import switching_bandit, switching_ring
from amdp.instances.operations import admission_queue, inventory
from amdp.instances.random_worlds import random_dense, random_layered, random_sparse
from amdp.options import by_keyword

SEED = 20240  # the random worlds below are always the same ones, unless another seed is given
STREAM = 1000  # steps of an unbroken stream, unless a game says how many

World = Callable[..., Instance]  # settings by keyword


def standard() -> dict[str, World]:
    """A function that makes each world of episodes, by name."""
    return {
        "tiny": by_keyword(random_dense, n_steps=3, n_states=3, n_actions=2, seed=SEED),
        "river-swim": by_keyword(river_swim),
        "grid": by_keyword(grid_world),
        "lock": by_keyword(combination_lock),
        "forest": by_keyword(forest),
        "random-dense": by_keyword(random_dense, n_steps=10, n_states=8, n_actions=3, seed=SEED),
        "random-sparse": by_keyword(random_sparse, n_steps=10, n_states=200, n_actions=4, seed=SEED),
        "random-layered": by_keyword(random_layered, n_steps=6, width=4, n_actions=3, seed=SEED),
        "inventory": by_keyword(inventory),
        "queue": by_keyword(admission_queue),
    }


def continuing() -> dict[str, World]:
    """A function that makes each world without end, by name: homogeneous, from every state to every other."""
    return {
        "random-parked": by_keyword(random_parked, n_steps=STREAM, n_states=5, n_actions=3, seed=SEED),
        "random-entered": by_keyword(random_entered, n_steps=STREAM, n_states=5, n_actions=3, seed=SEED),
        "server-farm": by_keyword(server_farm, n_steps=STREAM),
        "waiting-ring": by_keyword(waiting_ring, n_steps=STREAM, n_states=5),
        "swinging-ring": by_keyword(swinging_ring, n_steps=STREAM, n_states=5),
        "waiting-star": by_keyword(waiting_star, n_steps=STREAM, n_leaves=3),
        "swinging-star": by_keyword(swinging_star, n_steps=STREAM, n_leaves=3),
        "random-ergodic": by_keyword(random_ergodic, n_steps=STREAM, n_states=5, n_actions=3, seed=SEED),
        "switching-bandit": _switching_bandit,
        "switching-ring": _switching_ring,
    }


def build(name: str, **settings: Any) -> Instance:
    """The world of that name, with settings by keyword."""
    made = world(name)
    registry.require_options(name, made, settings)
    options.require_kinds(name, made, settings)
    return made(**settings)


def world(name: str) -> World:
    """The function that makes the world of that name."""
    known = standard() | continuing()
    if name not in known:
        raise InvalidInput(f"no instance {name!r}; known names: {', '.join(known)}")
    return known[name]


def _switching_bandit(*, n_steps: int = STREAM, n_arms: int = 2, corridor: int = 1, seed: int = SEED) -> Instance:
    """The arms of the hard case of switching, and the ways between them; its losses are `hidden-walk`."""
    return switching_bandit(n_steps, n_arms, options.generator(seed), corridor).instance


def _switching_ring(*, n_steps: int = STREAM, n_arms: int = 3, seed: int = SEED) -> Instance:
    """The same with two actions: stay, or go on around."""
    return switching_ring(n_steps, n_arms, options.generator(seed)).instance
