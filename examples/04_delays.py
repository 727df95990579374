"""Regret against total delay D: theory lets it grow like sqrt(K + D)."""

import numpy as np

from amdp import instances, losses
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play
from amdp.game.regret import measure
from amdp.game.seeding import Streams

K, SEEDS, MULTIPLIER = 500, 3, 8.0  # the published rate is cautious: see docs/ftpl.md
world = instances.build("tiny")
adversary = losses.named("bernoulli", world.shape, K, 1, world.costs)


def regret_of(late: delays.Delays, seed: int) -> float:
    """One run, tuned for its total delay."""
    game = ArenaGame(Episodic(world.kernel, world.initial), adversary, late)
    learner = Ftpl.tuned(world.domain, rounds=K, total_delay=late.total_within, shared=True, multiplier=MULTIPLIER)
    return float(measure(game, play(game, learner, world.domain, Streams.from_seed(seed)), checkpoints=[K]).low[-1])


print("delay        total D  sqrt(K + D)  regret  regret / sqrt(K + D)")
for text in ("none", "fixed:1", "fixed:3", "uniform:0:20", "all-at-end"):
    late = delays.parse(text, K, np.random.default_rng(0))
    root = (K + late.total_within) ** 0.5
    regret = float(np.mean([regret_of(late, seed) for seed in range(SEEDS)]))
    print(f"{text:13} {late.total_within:6} {root:12.1f} {regret:7.1f} {regret / root:21.2f}")
