"""Online shortest paths: a grid of streets, a crowd that moves around it, and a driver who only sees her own way.

No route is good all day, but some route is best on average; the adversary's crowd blocks one side, then the other.
"""

import numpy as np

import amdp
from amdp import instances, losses
from amdp.algorithms.named import learner
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.instances import repeated

SIZE, K = 4, 1_500
RIGHT, DOWN = 0, 1
GOAL = SIZE * SIZE - 1
cells = np.arange(SIZE * SIZE)
x, y = cells % SIZE, cells // SIZE

p = np.zeros((len(cells), 2, len(cells)))  # [s, a, y]; against the border one goes along it
p[cells, RIGHT, np.where(x < SIZE - 1, cells + 1, np.minimum(cells + SIZE, GOAL))] = 1.0
p[cells, DOWN, np.where(y < SIZE - 1, cells + SIZE, np.minimum(cells + 1, GOAL))] = 1.0
n_steps = 2 * (SIZE - 1)  # every way from corner to corner is equally long
tolls = repeated(np.full((len(cells), 2), 0.1), n_steps)
city = instances.Instance("city", amdp.Kernel.homogeneous(p, n_steps), tolls)

# once around the city, and a quarter
crowd = losses.congestion(city.costs, K, SIZE, SIZE, period=K / 1.25, radius=0.8, weight=0.9)
game = ArenaGame(Episodic(city.kernel), crowd)


def way(actions: amdp.arrays.Actions) -> str:
    """The turns of a policy `[h, s]` from the first corner to the last."""
    cell, turns = 0, ""
    for rule in actions:
        following = int(p[cell, rule[cell]].argmax())
        turns += "R" if following == cell + 1 else "D"
        cell = following
    return turns


for k in range(0, K, K // 5):
    cheapest = amdp.plan("dp", city.domain, crowd[k])
    print(f"round {k:4}: the cheapest way is {way(cheapest.actions)}, it costs {cheapest.objective:.2f}")
hindsight = amdp.plan("dp", city.domain, crowd.batch(0, K).sum(axis=0))
print(f"all {K} rounds: {way(hindsight.actions)}, {hindsight.objective / K:.2f} a round; proved, not only found\n")

at_random = np.full((1, *city.shape), 0.5)
paid = sum(float(amdp.values(city.kernel, at_random, crowd[k][None])[0, 0, 0]) for k in range(K)) / K
print("driver        paid a round  regret a round")
print(f"at random {paid:16.2f} {paid - hindsight.objective / K:15.3f}")
for name, multiplier in (("ftpl-shared", 1.0), ("ftpl-shared", 10.0), ("o-reps", 1.0)):
    driver = learner(name, city.domain, K, multiplier=multiplier)
    regret = measure(game, play(game, driver, city.domain, Streams.from_seed(1)), checkpoints=[K])
    label = name if multiplier == 1.0 else f"{name} x{multiplier:g}"
    print(f"{label:16} {regret.paid[-1] / K:9.2f} {regret.low[-1] / K:15.3f}")
print("a regret below zero: who follows the crowd's move can beat every single way")
