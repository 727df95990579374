"""What it costs not to know the transitions of a combination lock, with the paper's radius and with a narrower one."""

from typing import Any

import numpy as np

import amdp

K, SEEDS = 400, 3
world = amdp.instances.lock((1, 0), n_steps=4)


def mean_regret(**knowledge: Any) -> float:
    """The mean over seeds; games differ only in what the learner knows of the transitions."""
    game = amdp.Game(world, losses="bernoulli", rounds=K, **knowledge)
    return float(np.mean([amdp.play(game, "ftpl-shared", seed, multiplier=8).regret[-1] for seed in range(SEEDS)]))


print("transitions                   regret")
print(f"known                       {mean_regret():8.1f}")
for scale in (1.0, 0.03):
    print(f"unknown, radius x {scale:<9} {mean_regret(unknown=True, radius_scale=scale):8.1f}")
