"""Regret against total delay D: theory lets it grow like sqrt(K + D)."""

import numpy as np

import amdp

K, SEEDS, MULTIPLIER = 500, 3, 8  # theory's learning rate is cautious: see docs/ftpl.md

print("delay        total D  sqrt(K + D)  regret  regret / sqrt(K + D)")
for delay in ("none", "fixed:1", "fixed:3", "uniform:0:20", "all-at-end"):
    game = amdp.Game("tiny", losses="bernoulli", rounds=K, delay=delay)
    runs = [amdp.play(game, "ftpl-shared", seed, multiplier=MULTIPLIER) for seed in range(SEEDS)]
    regret, root = np.mean([run.regret[-1] for run in runs]), (K + game.total_delay) ** 0.5
    print(f"{delay:13} {game.total_delay:6} {root:12.1f} {regret:7.1f} {regret / root:21.2f}")
