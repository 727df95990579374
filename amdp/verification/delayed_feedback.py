"""Delayed feedback: how much of it is outstanding, and the regret of a cheating learner without delays."""

from typing import Any

import numpy as np

from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Floats
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.oracles.base import bind
from amdp.verification import p_values
from amdp.verification.base import FALSE_ALARM, Effort, Finding, Parts, check, equality_margin, judged
from amdp.verification.worlds import (
    DOMAIN,
    INITIAL,
    KERNEL,
    PAIRS,
    SHAPE,
    STEPS,
    TRANSITIONS,
    feedback_of_round,
    occupancies,
)

ROUNDS = 100
DRAWS = 2_000


@check(
    statement="Lemma 26: the sum of outstanding sets in its proof",
    claim="the sum over k of |{j < k: j + d_j >= k}| is the sum of min(d_j, K - j)",
    exact="both sides, from the arrivals of games",
    rejects={"delay-off-by-one": ("sums",)},
    correction="the paper prints the sum of all d_j, which counts what arrives after the last round",
)
def _outstanding_feedback(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games, worst = effort.samples(5), 0
    for _ in range(games):
        delays = parts.delays(rng.integers(0, 30, size=60))
        game = ArenaGame(Episodic(KERNEL, INITIAL), FixedLosses(rng.random((60, *SHAPE))), delays)
        played = parts.play(game, parts.ftpl(1.0, 2), DOMAIN, Streams.from_seed(1))
        arrived = np.array([record.arrived for record in played])
        waiting = np.arange(60) - np.concatenate([[0], np.cumsum(arrived)[:-1]])  # at the start of each round
        within = int(np.minimum(delays.values, np.arange(60)[::-1]).sum())
        worst = max(worst, abs(int(waiting.sum()) - within))
    text = f"the two sums differ by at most {worst}, in {games} games of 60 rounds"
    return judged(text, 0, {"sums": equality_margin(worst)}, difference=worst)


@check(
    statement="Lemma 26: the cheating regret, its new part",
    claim=(
        "the learner pays at most rate sum of ||missing||_1 <q_k, l_k> more than one without delays, missing what "
        "has not arrived; this has the mean rate H^2 SA D + 2 rate HSAK or less"
    ),
    exact="the bound of the lemma, for comparison",
    simulated="games of FTPL with delays: on their estimates, means over independent draws of the noise",
    inequality="limits of a bounded mean (Maurer and Pontil 2009)",
    rejects={"scale-for-rate": ("stability",)},
    correction="played over a kernel, without the term 4 delta KHL; D counts the waiting within the game",
)
def _cheating_regret(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """The delayed learner knows the estimates that have arrived; the cheating one knows all earlier ones."""
    games = effort.samples(3)
    gaps, allowed, waited, limits = zip(
        *(_cost_of_delays(parts, FALSE_ALARM / games, rng) for _ in range(games)), strict=True
    )
    gap, stable, within = (float(np.mean(of_games)) for of_games in (gaps, allowed, waited))
    rate, least = laplace_rate(DOMAIN, ROUNDS, int(within)), max(limits)
    lemma = rate * STEPS**2 * PAIRS * within + 2.0 * rate * STEPS * PAIRS * ROUNDS
    text = (
        f"{gap:.1f} more than without delays; stability allows {stable:.1f} on these paths, and that is kept by "
        f"{-least:.1f} at least up to limits that hold; the lemma allows {lemma:.1f}"
    )
    return judged(text, games * DRAWS, {"stability": -least}, gap=gap, allowed=stable)


def _cost_of_delays(parts: Parts, level: float, rng: np.random.Generator) -> tuple[Floats, Floats, int, float]:
    """Play, and follow both leaders of common noise along the estimates.

    What delays cost and what single-step stability allows, `[n]`; the rounds of waiting; and a lower limit of how far
    the first is beyond the second, on average.
    """
    delays = parts.delays(rng.integers(0, 20, size=ROUNDS))
    rate = laplace_rate(DOMAIN, ROUNDS, delays.total_within)
    learner, planner = parts.ftpl(rate, resampling_limit(DOMAIN, ROUNDS)), bind(parts.oracle, DOMAIN)
    means = rng.uniform(size=SHAPE)
    everything = np.zeros(SHAPE)
    noise = parts.laplace(rate).perturbed(everything, DRAWS, rng)
    distribution: Any = learner.start(DOMAIN, rng)
    waiting: dict[int, Bandit] = {}
    gap, allowed, width = np.zeros(DRAWS), np.zeros(DRAWS), 0.0
    for k in range(ROUNDS):
        table = (rng.random(SHAPE) < means).astype(np.float64)
        waiting[k] = feedback_of_round(learner, distribution, distribution.draw(rng), table, rng)
        estimate = learner.learn(distribution, waiting[k]).total - distribution.total
        delayed, cheating = (
            (occupancies(TRANSITIONS, planner.minimize(total + noise).actions) * estimate).sum(axis=(1, 2, 3))
            for total in (distribution.total, everything)
        )
        missing = float((everything - distribution.total).sum())
        gap += delayed - cheating
        allowed += rate * missing * delayed
        width += (2.0 + rate * missing) * float(estimate.sum())  # no two of the differences are further apart
        everything = everything + estimate
        for j in delays.arrivals(k):
            distribution = learner.learn(distribution, waiting.pop(int(j)))
    return gap, allowed, delays.total_within, p_values.lower_mean(gap - allowed, width, level)
