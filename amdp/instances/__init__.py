"""Ready worlds, and readers of worlds; each gives an `Instance`.

Every built-in world is a function here, such as `river_swim(n_states=4)`, and has a short name, under which
`build("river-swim", n_states=4)` finds it. `load` and `save` keep worlds in files, `from_gymnasium` and `read_prism`
read those of other packages. A new world is a function that returns an `Instance`, in the module of its kind
(`classic`, `operations`, `random_worlds`, `communicating`, `hard`), and is listed in `named`, so that specs and the
command line know it.
"""

from amdp.instances.base import Instance, Scale, repeated
from amdp.instances.classic import forest, grid, lock, river_swim
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
from amdp.instances.hard import (
    HardCase,
    easy_companion,
    hidden_bandit,
    hidden_ring,
    switching_bandit,
    switching_ring,
)
from amdp.instances.named import build, continuing, standard
from amdp.instances.operations import inventory, queue
from amdp.instances.prism import read_prism
from amdp.instances.random_worlds import random_dense, random_layered, random_sparse, tiny

__all__ = [
    "HardCase",
    "Instance",
    "Scale",
    "build",
    "continuing",
    "easy_companion",
    "forest",
    "from_gymnasium",
    "grid",
    "hidden_bandit",
    "hidden_ring",
    "inventory",
    "load",
    "lock",
    "queue",
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
    "tiny",
    "waiting_ring",
    "waiting_star",
]
