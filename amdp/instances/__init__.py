"""Ready worlds, and readers of worlds; each gives an `Instance`.

Every built-in world is a function here, such as `river_swim(n_states=4)`, and has a short name, under which
`build("river-swim", n_states=4)` finds it; it also builds `"gym:FrozenLake-v1"` and `"my_module:my_world"`. `load` and
`save` keep worlds in files, `from_gymnasium` and `read_prism` read those of other packages, and `with_start` lets a
world begin in a state drawn from a distribution. A new world is a function that returns an `Instance`, in the module
of its kind (`classic`, `random_worlds`, `communicating`, `hard`) and in the list `EPISODIC`, `BUDGETED` or
`COMMUNICATING` below it, so that specs and the command line know it.
"""

from amdp.instances.base import Instance as Instance
from amdp.instances.base import Scale as Scale
from amdp.instances.base import repeated as repeated
from amdp.instances.classic import forest as forest
from amdp.instances.classic import grid as grid
from amdp.instances.classic import inventory as inventory
from amdp.instances.classic import lock as lock
from amdp.instances.classic import maintenance as maintenance
from amdp.instances.classic import queue as queue
from amdp.instances.classic import river_swim as river_swim
from amdp.instances.communicating import server_farm as server_farm
from amdp.instances.communicating import swinging_ring as swinging_ring
from amdp.instances.communicating import swinging_star as swinging_star
from amdp.instances.communicating import waiting_ring as waiting_ring
from amdp.instances.communicating import waiting_star as waiting_star
from amdp.instances.entrance import EnteredInstance as EnteredInstance
from amdp.instances.entrance import with_start as with_start
from amdp.instances.files import load as load
from amdp.instances.files import save as save
from amdp.instances.gymnasium_tables import from_gymnasium as from_gymnasium
from amdp.instances.hard import HardCase as HardCase
from amdp.instances.hard import easy_companion as easy_companion
from amdp.instances.hard import hidden_bandit as hidden_bandit
from amdp.instances.hard import hidden_ring as hidden_ring
from amdp.instances.hard import switching_bandit as switching_bandit
from amdp.instances.hard import switching_ring as switching_ring
from amdp.instances.named import budgeted as budgeted
from amdp.instances.named import build as build
from amdp.instances.named import continuing as continuing
from amdp.instances.named import every as every
from amdp.instances.named import standard as standard
from amdp.instances.prism import read_prism as read_prism
from amdp.instances.random_worlds import random_dense as random_dense
from amdp.instances.random_worlds import random_entered as random_entered
from amdp.instances.random_worlds import random_ergodic as random_ergodic
from amdp.instances.random_worlds import random_layered as random_layered
from amdp.instances.random_worlds import random_parked as random_parked
from amdp.instances.random_worlds import random_sparse as random_sparse
from amdp.instances.random_worlds import tiny as tiny
