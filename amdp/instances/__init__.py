"""Ready worlds, and readers of worlds; each gives an `Instance`."""

from amdp.instances.base import Instance, Scale, repeated
from amdp.instances.catalog import build, continuing, standard
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
from amdp.instances.files import load, save
from amdp.instances.gymnasium_tables import from_gymnasium
from amdp.instances.hard import HardCase, easy_companion, switching_bandit, switching_ring
from amdp.instances.operations import admission_queue, inventory
from amdp.instances.prism import read_prism
from amdp.instances.random_worlds import random_dense, random_layered, random_sparse

__all__ = [
    "HardCase",
    "Instance",
    "Scale",
    "admission_queue",
    "build",
    "combination_lock",
    "continuing",
    "easy_companion",
    "forest",
    "from_gymnasium",
    "grid_world",
    "inventory",
    "load",
    "random_dense",
    "random_entered",
    "random_ergodic",
    "random_layered",
    "random_parked",
    "random_sparse",
    "read_prism",
    "repeated",
    "river_swim",
    "save",
    "server_farm",
    "standard",
    "swinging_ring",
    "swinging_star",
    "switching_bandit",
    "switching_ring",
    "waiting_ring",
    "waiting_star",
]
