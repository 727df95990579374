"""Play FTPL against Bernoulli losses, and print its regret; theory's rate is cautious, so try a larger one too."""

from amdp import instances, losses
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play
from amdp.game.regret import measure
from amdp.game.seeding import Streams

K = 2_000
world = instances.build("tiny")
game = ArenaGame(Episodic(world.kernel, world.initial), losses.named("bernoulli", world.shape, K, 1, world.costs))
for multiplier in (1.0, 8.0):
    learner = Ftpl.tuned(world.domain, rounds=K, multiplier=multiplier)
    regret = measure(game, play(game, learner, world.domain, Streams.from_seed(1)), checkpoints=[20, 200, K])
    print(f"rate x {multiplier:g}")
    for k, paid, best in zip(regret.rounds, regret.paid, regret.best, strict=True):
        print(f"{k:5} rounds: paid {paid:7.1f}, best policy {best:7.1f}, regret a round {(paid - best) / k:.3f}")
