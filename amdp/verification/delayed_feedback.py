"""Delayed feedback: how much of it is outstanding, and the regret of a cheating learner without delays."""

from dataclasses import dataclass
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
from amdp.verification.base import (
    FALSE_ALARM,
    NO_FALSE_ALARM,
    Check,
    Effort,
    Finding,
    Parts,
    at_most,
    equality_margin,
    judged,
)
from amdp.verification.worlds import INITIAL, PAIRS, SHAPE, STEPS, SmallWorld, occupancies

ROUNDS = 100
DRAWS = 2_000


def checks() -> list[Check]:
    """Section 4 and appendix C."""
    return [
        Check(
            "outstanding-feedback",
            "Lemma 26: the sum of outstanding sets in its proof",
            "the sum over k of |{j < k: j + d_j >= k}| is the sum of min(d_j, K - j)",
            "both sides, from the arrivals of games",
            "",
            {"delay-off-by-one": ("sums",)},
            _outstanding,
            NO_FALSE_ALARM,
            "the paper prints the sum of all d_j, which counts what arrives after the last round",
        ),
        Check(
            "cheating-regret",
            "Lemma 26: the cheating regret, its new part",
            "the learner pays at most rate sum of ||missing||_1 <q_k, l_k> more than one without delays, missing what "
            "has not arrived; this has the mean rate H^2 SA D + 2 rate HSAK or less",
            "the bound of the lemma, for comparison",
            "games of FTPL with delays: on their estimates, means over independent draws of the noise",
            {"scale-for-rate": ("stability",)},
            _cheating_regret,
            at_most("limits of a bounded mean (Maurer and Pontil 2009)"),
            "played over a kernel, without the term 4 delta KHL; D counts the waiting within the game",
        ),
    ]


def _outstanding(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    games, worst = effort.samples(5), 0
    for _ in range(games):
        late = parts.delays(rng.integers(0, 30, size=60))
        losses = FixedLosses(rng.random((60, *SHAPE)))
        game = ArenaGame(Episodic(world.kernel, INITIAL), losses, late)
        learner = parts.ftpl(1.0, 2)
        arrived = np.array([record.arrived for record in parts.play(game, learner, world.domain, Streams.from_seed(1))])
        waiting = np.arange(60) - np.concatenate([[0], np.cumsum(arrived)[:-1]])  # at the start of each round
        within = int(np.minimum(late.values, np.arange(60)[::-1]).sum())
        worst = max(worst, abs(int(waiting.sum()) - within))
    text = f"the two sums differ by at most {worst}, in {games} games of 60 rounds"
    return judged(text, 0, {"sums": equality_margin(worst)}, difference=worst)


def _cheating_regret(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """The delayed learner knows the estimates that have arrived; the cheating one knows all earlier ones."""
    games = [DelayCost.of(parts, rng) for _ in range(effort.samples(3))]
    least = max(p_values.lower_mean(game.gap - game.allowed, game.width, FALSE_ALARM / len(games)) for game in games)
    gap, stable, within = (
        float(np.mean([getattr(game, name) for game in games])) for name in ("gap", "allowed", "waited")
    )
    rate = laplace_rate(SmallWorld.fixed().domain, ROUNDS, int(within))
    lemma = rate * STEPS**2 * PAIRS * within + 2.0 * rate * STEPS * PAIRS * ROUNDS
    text = (
        f"{gap:.1f} more than without delays; stability allows {stable:.1f} on these paths, and that is kept by "
        f"{-least:.1f} at least up to limits that hold; the lemma allows {lemma:.1f}"
    )
    return judged(text, len(games) * DRAWS, {"stability": -least}, gap=gap, allowed=stable)


@dataclass(frozen=True, eq=False)
class DelayCost:
    """A game with delays: for each draw of noise what the delays cost, and what single-step stability allows."""

    gap: Floats  # [n]
    allowed: Floats  # [n]
    width: float  # no two of their differences are further apart
    waited: float  # rounds of waiting

    @classmethod
    def of(cls, parts: Parts, rng: np.random.Generator) -> "DelayCost":
        """Play, and follow both leaders of common noise along the estimates."""
        world = SmallWorld.fixed()
        late = parts.delays(rng.integers(0, 20, size=ROUNDS))
        rate = laplace_rate(world.domain, ROUNDS, late.total_within)
        learner, planner = parts.ftpl(rate, resampling_limit(world.domain, ROUNDS)), bind(parts.oracle, world.domain)
        means = rng.uniform(size=SHAPE)
        everything = np.zeros(SHAPE)
        noise = parts.laplace(rate).perturbed(everything, DRAWS, rng)
        distribution: Any = learner.start(world.domain, rng)
        waiting: dict[int, Bandit] = {}
        gap, allowed, width = np.zeros(DRAWS), np.zeros(DRAWS), 0.0
        for k in range(ROUNDS):
            table = (rng.random(SHAPE) < means).astype(np.float64)
            segment = world.kernel.walk(distribution.draw(rng), INITIAL, rng.random((STEPS, 2)))
            waiting[k] = Bandit.reveal(table, segment, learner.weigh(distribution, segment, rng))
            estimate = learner.learn(distribution, waiting[k]).total - distribution.total
            delayed, cheating = (
                (occupancies(world.p, planner.minimize(total + noise).actions) * estimate).sum(axis=(1, 2, 3))
                for total in (distribution.total, everything)
            )
            missing = float((everything - distribution.total).sum())
            gap += delayed - cheating
            allowed += rate * missing * delayed
            width += (2.0 + rate * missing) * float(estimate.sum())
            everything = everything + estimate
            for j in late.arrivals(k):
                distribution = learner.learn(distribution, waiting.pop(int(j)))
        return cls(gap, allowed, width, float(late.total_within))
