"""Online shortest paths: a grid of streets, a crowd that moves around it, and a driver who only sees her own way.

No route is good all day, but some route is best on average; the adversary's crowd blocks one side, then the other.
"""

import numpy as np

import amdp
from amdp import instances, losses
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
game = amdp.Game(city, losses=crowd)


def way(actions: amdp.arrays.Actions) -> str:
    """The turns of a policy `[h, s]` from the first corner to the last."""
    cell, turns = 0, ""
    for rule in actions:
        following = int(p[cell, rule[cell]].argmax())
        turns += "R" if following == cell + 1 else "D"
        cell = following
    return turns


for k in range(0, K, K // 5):
    cheapest = amdp.plan("dp", city, crowd[k])
    print(f"round {k:4}: the cheapest way is {way(cheapest.actions)}, it costs {cheapest.objective:.2f}")
hindsight = amdp.plan("dp", city, crowd.batch(0, K).sum(axis=0))
print(f"all {K} rounds: {way(hindsight.actions)}, {hindsight.objective / K:.2f} a round; proved, not only found\n")

print("driver        loss a round  regret a round")
for name, multiplier in (("uniform", 1), ("ftpl-shared", 1), ("ftpl-shared", 10), ("o-reps", 1)):
    run = amdp.play(game, name, multiplier=multiplier)
    label = name if multiplier == 1 else f"{name} x{multiplier}"
    print(f"{label:16} {run.loss[-1] / K:9.2f} {run.regret[-1] / K:15.3f}")
print("a regret below zero: who follows the crowd's move can beat every single way")
