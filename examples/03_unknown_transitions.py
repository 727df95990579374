"""What it costs not to know the transitions of a combination lock, with the paper's radius and with a narrower one."""

import numpy as np

from amdp import BernsteinBox, MarkovPolicies, Radius, instances, losses
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.domains import Domain

K, SEEDS = 400, 3
world = instances.lock((1, 0), n_steps=4)
game = ArenaGame(Episodic(world.kernel, world.initial), losses.named("bernoulli", world.shape, K, 1, world.costs))


def regret_of(domain: Domain) -> float:
    """What the learner is told is the only difference."""
    learner = Ftpl.tuned(domain, rounds=K, shared=True, multiplier=8.0)
    played = (play(game, learner, domain, Streams.from_seed(seed)) for seed in range(SEEDS))
    return float(np.mean([measure(game, rounds, checkpoints=[K]).low[-1] for rounds in played]))


print("the learner is told           regret")
print(f"the kernel                  {regret_of(world.domain):8.1f}")
for scale in (1.0, 0.03):
    box = BernsteinBox.vacuous(world.shape, Radius.paper(world.shape, K, scale=scale))
    print(f"nothing, radius x {scale:<9} {regret_of(MarkovPolicies(box, world.initial)):8.1f}")
