"""A stream without resets: switch servers on and off against a demand that nobody foretells, by FTPL and by Hedge."""

from typing import Any

from amdp import instances
from amdp.algorithms.base import Learner
from amdp.algorithms.streams.epochs import FtplTuning, HedgeTuning
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.game.arenas import Continuing
from amdp.game.loop import ArenaGame, play
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses

T = 1_200
world = instances.server_farm(n_steps=T, n_servers=2, day=T)  # one long day: the best number of servers changes once
losses = FixedLosses(world.costs[:, None])  # one table [1, s, a] a step
entry = PolicySwitching(world.kernel, world.initial)
print(f"theorem:   {FtplTuning.tuned(entry)}")
print(f"practical: {FtplTuning.practical(entry)}")


def played(name: str, learner: Learner[Any], length: int) -> None:
    """One run, and its regret against the best stationary policy, found by an exact oracle."""
    game = ArenaGame(Continuing(entry, length), losses, feedback=learner.feedback)
    rounds = list(play(game, learner, game.arena.domain, Streams.from_seed(1)))
    regret = measure(game, rounds, "auto", checkpoints=[game.rounds])
    switching = sum(len(one.entering.states) for one in rounds) / T
    print(f"{name:17} {regret.paid[-1]:7.1f} {regret.best[-1]:7.1f} {regret.low[-1] / T:14.3f} {switching:15.1%}")


print("learner              paid    best  regret a step  steps switching")
ftpl, hedge = FtplTuning.practical(entry), HedgeTuning.practical(entry)
played("FTPL", ftpl.learner(), ftpl.length)
played("FTPL, exact", ftpl.exact_learner(), ftpl.length)
played("FTPL, told all", ftpl.full_information_learner(), ftpl.length)
played("Hedge", hedge.learner(), hedge.length)
played("Hedge, exact", hedge.exact_learner(), hedge.length)
