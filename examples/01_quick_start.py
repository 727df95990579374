"""Play FTPL against Bernoulli losses in river swim, and print its regret."""

from amdp import instances, losses
from amdp.algorithms.ftpl import Ftpl
from amdp.regret import measure
from amdp.seeding import Streams
from amdp.simulation import Episodic, Game, play

K = 1_000
world = instances.river_swim()
game = Game(Episodic(world.kernel, world.initial), losses.named("bernoulli", world.shape, K, 1, world.costs))
learner = Ftpl.tuned(world.domain, rounds=K, shared=True)
regret = measure(game, play(game, learner, world.domain, Streams.from_seed(1)), checkpoints=[10, 100, K])
for k, paid, best in zip(regret.rounds, regret.paid, regret.best, strict=True):
    print(f"{k:5} rounds: paid {paid:8.1f}, best policy {best:8.1f}, regret a round {(paid - best) / k:.3f}")
