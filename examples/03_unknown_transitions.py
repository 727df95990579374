"""What it costs not to know the transitions, with the paper's radius and with narrower ones."""

from amdp import BernsteinBox, MarkovPolicies, Radius, instances, losses
from amdp.algorithms.ftpl import Ftpl
from amdp.mdp import Domain
from amdp.regret import measure
from amdp.seeding import Streams
from amdp.simulation import Episodic, Game, play

K = 500
world = instances.build("tiny")
game = Game(Episodic(world.kernel, world.initial), losses.named("bernoulli", world.shape, K, 1, world.costs))


def regret_of(domain: Domain) -> float:
    """What the learner is told is the only difference."""
    played = play(game, Ftpl.tuned(domain, rounds=K, shared=True), domain, Streams.from_seed(1))
    return float(measure(game, played, checkpoints=[K]).low[-1])


print("the learner is told           regret")
print(f"the kernel                  {regret_of(world.domain):8.1f}")
for scale in (1.0, 0.03):
    box = BernsteinBox.vacuous(world.shape, Radius.paper(world.shape, K, scale=scale))
    print(f"nothing, radius x {scale:<9} {regret_of(MarkovPolicies(box, world.initial)):8.1f}")
