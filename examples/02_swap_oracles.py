"""The same seed, three oracles: the same policies, the same losses. Only the seconds differ."""

import numpy as np

from amdp import instances, losses
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play
from amdp.game.seeding import Streams

K = 40
world = instances.build("tiny")
game = ArenaGame(Episodic(world.kernel, world.initial), losses.named("swap", world.shape, K, 1, world.costs))

policies = {}
print("oracle        paid  trials  seconds")
for oracle in ("dp", "lp", "enumeration"):
    learner = Ftpl.tuned(world.domain, rounds=K, oracle=oracle, shared=True)
    next(play(game, learner, world.domain, Streams.from_seed(1)))  # loads compiled code before the clock runs
    rounds = list(play(game, learner, world.domain, Streams.from_seed(1)))
    policies[oracle] = np.array([one.policy for one in rounds])
    paid, trials, seconds = (sum(getattr(one, key) for one in rounds) for key in ("paid", "trials", "seconds"))
    print(f"{oracle:11} {paid:6.2f} {trials:7} {seconds:8.3f}")

assert all(np.array_equal(policies["dp"], others) for others in policies.values())
print("all three played the same policies")
