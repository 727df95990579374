"""A stream without resets: switch servers on and off against a demand that nobody foretells, by FTPL and by Hedge."""

import amdp
from amdp.algorithms.streams.epochs import FtplTuning
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.algorithms.task import EpochSetup

T = 1_200
world = amdp.instances.server_farm(
    n_steps=T, n_servers=2, day=T
)  # one long day: the best number of servers changes once
game = amdp.Game(world, losses=world.costs[:, None], steps=T)  # one table [1, s, a] a step
entry = PolicySwitching(world.kernel, world.initial)
practical = FtplTuning.practical(entry)
print(f"theorem:   {FtplTuning.tuned(entry)}")
print(f"practical: {practical}")

informed = EpochSetup(practical.full_information_learner(), entry, practical.length)
runs = {
    "FTPL": amdp.play(game, "ftpl-infinite"),
    "FTPL, exact": amdp.play(game, "ftpl-infinite", exact=True),
    "FTPL, full information": amdp.play(game, informed),
    "Hedge": amdp.play(game, "hedge-infinite"),
    "Hedge, exact": amdp.play(game, "hedge-infinite", exact=True),
}
print("learner                    loss  in switches    best  regret a step")
for name, run in runs.items():  # the best stationary policy is found by an exact oracle
    loss, switching, best = run.loss[-1], run.paid_entering[-1], run.best[-1]
    print(f"{name:23} {loss:7.1f} {switching:12.1f} {best:7.1f} {run.regret[-1] / T:14.3f}")
