"""An inventory whose purchase prices nobody foretells: each week has a price path of its own, seen when it is over.

The week is planned before it begins, from past weeks alone. Three planners: one who trusts the usual prices, one who
sees the whole price list afterwards (full information), one who only sees her own bills (bandit feedback).
"""

from math import pi

import numpy as np

import amdp
from amdp import instances
from amdp.arrays import Floats
from amdp.losses import CalledLosses
from amdp.losses.base import round_rng

K, DAYS = 800, 7
usual = 2.0 + np.sin(2.0 * pi * np.arange(DAYS) / DAYS)  # cheapest late in the week


def store(prices: Floats) -> instances.Instance:
    """A small shop; `prices[h]` for a unit."""
    return instances.inventory(DAYS, capacity=6, max_order=4, mean_demand=2.0, prices=prices)


dearest = store(np.full(DAYS, 4.0)).scale.unit  # one unit for all weeks


def prices(week: int) -> Floats:
    """After a quarter of the weeks the cheap days move to the begin of the week; and there is noise."""
    moved = np.roll(usual, DAYS // 2 if week >= K // 4 else 0)
    return np.clip(moved + 0.5 * round_rng(1, "prices", week).normal(size=DAYS), 0.2, 4.0)


def losses_of(week: int) -> Floats:
    """What each order costs that week, `[h, s, a]` in [0, 1]."""
    this_week = store(prices(week))
    return this_week.costs * (this_week.scale.unit / dearest)


def say(who: str, loss: float, more: str) -> None:
    print(f"{who:25} {loss * dearest / K:6.2f} a week; {more}")


world = store(usual)
adversary = CalledLosses(K, world.shape, losses_of)
total = adversary.batch(0, K).sum(axis=0)

trusting = amdp.plan("dp", world, world.costs)
as_planned = amdp.evaluate(world.domain, trusting.actions[None], total[None])[0]
best = amdp.plan("dp", world, total)
say("best plan in hindsight", best.objective, f"orders of an empty store, day by day: {best.actions[:, 0]}")
say("plan for the usual prices", as_planned, f"orders of an empty store, day by day: {trusting.actions[:, 0]}")

game = amdp.Game(world, losses=adversary)
for name, feedback in (("fpl", "full information"), ("ftpl-shared", "bandit")):
    # theory's learning rate is cautious: see docs/ftpl.md
    run = amdp.play(game, name, multiplier=20, checkpoints=[K // 4, K // 2, K])
    by_period = np.diff(run.loss, prepend=0.0) * dearest / np.diff(run.rounds, prepend=0)
    say(f"{name}, {feedback}", run.loss[-1], f"first quarter, second, the rest: {np.round(by_period, 1)}")
