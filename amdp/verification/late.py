"""The analysis of delays: what is outstanding, and what a learner without delays would have gained."""

from typing import Any

import numpy as np

from amdp.algorithms.ftpl import laplace_rate, resampling_limit
from amdp.feedback import Bandit
from amdp.losses import FixedLosses
from amdp.seeding import Streams
from amdp.simulation import Episodic, Game, play
from amdp.verification.base import NO_CHANCE, WIDE, Check, Effort, Finding, Parts, finding
from amdp.verification.worlds import (
    ACTIONS,
    PAIRS,
    STATES,
    STEPS,
    SmallWorld,
    mean_occupancy,
)

ROUNDS = 120
DRAWS = 4_000


def checks() -> list[Check]:
    """Section 4 and appendix C."""
    return [
        Check(
            "outstanding-feedback",
            "Lemma 26: the sum of outstanding sets in its proof",
            "the sum over k of |{j < k: j + d_j >= k}| is the sum of min(d_j, K - j)",
            "both sides, from the arrivals of games",
            "",
            ("delay-off-by-one",),
            _outstanding,
            NO_CHANCE,
            "the paper prints the sum of all d_j, which counts what arrives after the last round",
        ),
        Check(
            "cheating-regret",
            "Lemma 26: the cheating regret, its new part",
            "the learner pays at most rate H^2 SA D + 2 rate HSAK more than one without delays",
            "the bound of the lemma, and that of the stability of single steps on each path",
            "games of FTPL with delays; both laws by plain backward induction on common noise",
            ("scale-for-rate",),
            _cheating_regret,
            WIDE,
            "played over a kernel, without the term 4 delta KHL; D counts the waiting within the game",
        ),
    ]


def _outstanding(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    games, worst = effort.samples(5), 0
    for _ in range(games):
        late = parts.delays(rng.integers(0, 30, size=60))
        losses = FixedLosses(rng.random((60, STEPS, STATES, ACTIONS)))
        game = Game(Episodic(world.kernel), losses, late)
        learner = parts.ftpl(1.0, 2)
        arrived = np.array([one.arrived for one in play(game, learner, world.domain, Streams.from_seed(1))])
        waiting = np.arange(60) - np.concatenate([[0], np.cumsum(arrived)[:-1]])  # at the start of each round
        within = int(np.minimum(late.values, np.arange(60)[::-1]).sum())
        worst = max(worst, abs(int(waiting.sum()) - within))
    text = f"the two sums differ by at most {worst}, in {games} games of 60 rounds"
    return finding(worst == 0, text, 0, -worst, difference=worst)


def _cheating_regret(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """The delayed learner meets exactly the estimates that it is told; the cheating one knows all earlier ones."""
    games = [_gap(parts, rng) for _ in range(effort.samples(3))]
    gap, stable, within = (float(np.mean(column)) for column in zip(*games, strict=True))
    rate = laplace_rate(SmallWorld.fixed().domain, ROUNDS, int(within))
    allowed = rate * STEPS**2 * PAIRS * within + 2.0 * rate * STEPS * PAIRS * ROUNDS
    text = f"{gap:.1f} more than without delays; stability allows {stable:.1f} on these paths, the lemma {allowed:.1f}"
    return finding(gap <= min(stable, allowed), text, len(games), min(stable, allowed) - gap, gap=gap, allowed=allowed)


def _gap(parts: Parts, rng: np.random.Generator) -> tuple[float, float, float]:
    """What delays cost, what the stability of single steps allows for these estimates, and the rounds of waiting."""
    world = SmallWorld.fixed()
    late = parts.delays(rng.integers(0, 20, size=ROUNDS))
    rate = laplace_rate(world.domain, ROUNDS, late.total_within)
    learner = parts.ftpl(rate, resampling_limit(world.domain, ROUNDS))
    means = rng.uniform(size=(STEPS, STATES, ACTIONS))
    nothing = np.zeros((STEPS, STATES, ACTIONS))
    noise = parts.laplace(rate).perturbed(nothing, DRAWS, rng)
    source: Any = learner.start(world.domain, rng)
    everything = nothing
    waiting: dict[int, Bandit] = {}
    gap = stable = 0.0
    for k in range(ROUNDS):
        table = (rng.random(means.shape) < means).astype(np.float64)
        delayed, cheating = (mean_occupancy(world.p, total, noise)[0] for total in (source.total, everything))
        segment = world.kernel.walk(source.draw(rng), 0, rng.random((STEPS, 2)))
        waiting[k] = Bandit.told(table, segment, learner.weigh(source, segment, rng))
        estimate = learner.learn(source, waiting[k]).total - source.total
        gap += float(((delayed - cheating) * estimate).sum())
        stable += rate * float((everything - source.total).sum()) * float((delayed * estimate).sum())
        everything = everything + estimate
        for j in late.arrivals(k):
            source = learner.learn(source, waiting.pop(int(j)))
    return gap, stable, float(late.total_within)
