"""A learner that tunes its own learning rate, beside fixed rates: theory's, and multiples of it."""

import numpy as np

import amdp

SEEDS, MULTIPLIERS = 3, (1.0, 4.0, 16.0, 64.0)


def regret(game: amdp.Game, rate: str, multiplier: float = 1.0) -> float:
    runs = [amdp.play(game, "soft-leader", seed, multiplier=multiplier, rate=rate) for seed in range(SEEDS)]
    return float(np.mean([run.regret[-1] for run in runs]))


print("rounds", *(f"theory x {multiplier:g}" for multiplier in MULTIPLIERS), "adaptive", sep="\t")
for rounds in (100, 400, 1600):
    game = amdp.Game("tiny", losses="bernoulli", rounds=rounds)
    fixed = [regret(game, "theory", multiplier) for multiplier in MULTIPLIERS]
    print(rounds, *(f"{mean:10.1f}" for mean in fixed), f"{regret(game, 'adaptive'):8.1f}", sep="\t")
