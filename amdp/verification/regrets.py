"""Theorems as statements on regret: games that are long enough for the explicit bounds to say something.

In small worlds with losses that are fixed beforehand. What a learner pays lies between 0 and all steps, so that the
mean of independent games has exact limits, without a word on variances.
"""

from math import e, log
from typing import NamedTuple

import numpy as np

from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.algorithms.streams.switching import RenewedSwitching
from amdp.arrays import Floats
from amdp.game.arenas import Continuing, Episodic
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_blocks
from amdp.losses import FixedLosses
from amdp.model.domains import MarkovPolicies, StationaryPolicies
from amdp.model.transitions import Kernel
from amdp.verification import p_values
from amdp.verification.base import Effort, Finding, Parts, check, judged, p_value_margin
from amdp.verification.comparison import random_streams

ARMS = np.ones((1, 1, 3, 1))  # one state, three actions
# Streams: rows [s, a, y], losses [s, a], steps, games of the quick and of the full form. The first action waits.
STREAMS = (
    ("arms", np.ones((1, 2, 1)), np.array([[1.0, 0.0]]), 1_000, 35, 35),
    ("two states", np.array([np.eye(2), np.eye(2)[::-1]]), np.array([[1.0, 1.0], [0.0, 1.0]]), 12_000, 1, 25),
)
ENOUGH = 75  # games in each setting of the full form: if nothing were learned, each alone would show it
# Two steps: one action stays where nothing is lost, the other falls to where everything is.
LEDGE = np.array([[[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]] * 2)
BOUNDED = "the mean of bounded variables (Hoeffding 1963)"


class _Setting(NamedTuple):
    """A world with losses and delays, and how many games of it the quick form plays."""

    name: str
    rows: Floats  # [h, s, a, y]
    losses: Floats  # [k, h, s, a]
    delay: int
    games: int


def _settings(rng: np.random.Generator) -> list[_Setting]:
    """Losses that stay, that are random, that mislead at first, that come two rounds late, that need two steps."""
    arms, ledge = np.ones((4_000, 1, 1, 3)), np.ones((6_000, 2, 2, 2))
    arms[..., 0], ledge[:, :, 0, 0] = 0.0, 0.0
    misleading = np.where(np.arange(4_000)[:, None, None, None] < 400, arms[..., ::-1], arms)
    random = rng.random(arms.shape) < np.where(arms > 0.0, 0.95, 0.05)
    return [
        _Setting("arms", ARMS, arms[:2_000], 0, 57),
        _Setting("random arms", ARMS, random.astype(np.float64), 0, 2),
        _Setting("misleading arms", ARMS, misleading, 0, 2),
        _Setting("arms two rounds late", ARMS, arms, 2, 2),
        _Setting("ledge", LEDGE, ledge, 0, 2),
    ]


@check(
    statement="Theorem 4, Theorem 6: regret of FTPL over a kernel, at once and with delays",
    claim="the expected regret is at most HSAK/(eL) + 2H(1+ln SA)/rate + rate H^2 SA (3K + D), which is below HK",
    exact="what the policies pay, the best policy, the bound",
    simulated="games that are long enough for the bound to say something: fixed, random, misleading, late losses",
    inequality=BOUNDED,
    rejects={"drowning-noise": ("regret",)},
)
def _regret_episodes(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    chances, shares, played = [], [], 0
    for setting in _settings(rng):
        (rounds, steps, states, actions), kernel = setting.losses.shape, Kernel(setting.rows)
        domain, delays = MarkovPolicies(kernel), Delays(np.full(rounds, setting.delay))
        rate, limit = laplace_rate(domain, rounds, delays.total_within), resampling_limit(domain, rounds)
        pairs, most = states * actions, steps * rounds
        bound = steps * pairs * rounds / (e * limit) + 2.0 * steps * (1.0 + log(pairs)) / rate
        bound += rate * steps**2 * pairs * (3.0 * rounds + delays.total_within)
        game = ArenaGame(Episodic(kernel, 0), FixedLosses(setting.losses), delays)
        games = ENOUGH if effort is Effort.FULL else setting.games
        paid, best = np.empty(games), 0.0
        for i in range(games):
            blocks = play_blocks(game, parts.ftpl(rate, limit), domain, random_streams(rng))
            regret = parts.measure(game, blocks, None, [rounds])
            paid[i], best = regret.paid[-1], float(regret.best[-1])
        chances.append(p_values.mean_at_most(paid / most, (best + bound) / most))
        shares.append(f"{setting.name} {(paid.mean() - best) / most:.3f} of {bound / most:.2f}")
        played += games
    text = f"regret over HK: {'; '.join(shares)}; p = {min(chances):.2g} at least"
    return judged(text, played, {"regret": p_value_margin(min(chances), len(chances))}, p_value=min(chances))


@check(
    statement="Theorem 8: regret of Hedge in epochs of a stream",
    claim="the expected regret is at most S ln A / rate + rate HSAT + 2 (J - 1) C, which is below T",
    exact="the best stationary policy, the bound",
    simulated="streams entered anew in every epoch, long enough for the bound to say something: arms, and two states",
    inequality=BOUNDED,
    rejects={"contrary-hedge": ("regret",)},
)
def _regret_stream(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    chances, shares, played = [], [], 0
    for name, rows, losses, steps, quick, full in STREAMS:
        kernel, games = Kernel.homogeneous(rows, steps), full if effort is Effort.FULL else quick
        tuned = parts.hedge_stream.tuned(RenewedSwitching(kernel))
        game = ArenaGame(Continuing(tuned.entry, tuned.length), FixedLosses(np.tile(losses, (steps, 1, 1, 1))))
        states, actions = losses.shape
        lost = 2.0 * (tuned.epochs - 1) * tuned.entry.expected_length
        bound = states * log(actions) / tuned.rate + tuned.rate * tuned.length * states * actions * steps + lost
        paid, best = np.empty(games), 0.0
        for i in range(games):
            learner = parts.hedge(tuned.rate, ImportanceWeighting())
            rounds = parts.play(game, learner, StationaryPolicies(kernel), random_streams(rng))
            regret = parts.measure(game, rounds, None, [tuned.epochs])
            paid[i], best = regret.paid[-1], float(regret.best[-1])
        chances.append(p_values.mean_at_most(paid / steps, (best + bound) / steps))
        shares.append(f"{name} {(paid.mean() - best) / steps:.3f} of {bound / steps:.2f}")
        played += games
    text = f"regret over T: {'; '.join(shares)}; p = {min(chances):.2g} at least"
    return judged(text, played, {"regret": p_value_margin(min(chances), len(chances))}, p_value=min(chances))
