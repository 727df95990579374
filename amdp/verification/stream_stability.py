"""Stability of FTPL in a stream: leaders before and after the estimates of an epoch (appendix D.1)."""

from itertools import product
from math import exp

import numpy as np

from amdp.algorithms.streams.switching import RenewedSwitching
from amdp.arrays import Actions, Floats
from amdp.game.arenas import Continuing
from amdp.game.loop import ArenaGame
from amdp.kernels.threads import multiply
from amdp.losses import FixedLosses
from amdp.model.transitions import Kernel
from amdp.verification import p_values
from amdp.verification.base import FALSE_ALARM, Effort, Finding, Parts, check, judged
from amdp.verification.comparison import RecordingLearner, random_streams
from amdp.verification.infinite_horizon import RHYTHM
from amdp.verification.worlds import occupancies

STEPS, EPOCH = 120, 12
RATE, LIMIT = 0.01, 20
DRAWS = 4_000  # of the noise
POLICIES = np.array(list(product(range(2), repeat=3)), dtype=np.int32)  # [n, s]


@check(
    statement="Lemma 35, Lemma 36: single-step stability and the stability term of a stream",
    claim=(
        "p_{j+1}(pi) >= p_j(pi) exp(-rate ||l_j||_1) for every policy, l_j the estimates of epoch j; the term is at "
        "most rate sum of ||l_j||_1 <q_j, l_j>, which has the mean 2 rate H^2 SAJ or less"
    ),
    exact="occupancies of all policies, the bounds; that means of estimates are at most 1: `stream-estimates`",
    simulated="leaders of noise on all steps, before and after the estimates of each epoch of games",
    inequality="limits of chances (Clopper and Pearson 1934) and of a bounded mean (Maurer and Pontil 2009)",
    rejects={"scale-for-rate": ("policies", "stability")},
    correction="printed with p_{j+1} - p_j; 2 holds if the steps t' != t of an epoch are counted as H - 1, not H",
)
def _stream_stability(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games = effort.samples(1)
    steps, states, actions = STEPS, *RHYTHM.shape[:2]
    where = occupancies(np.stack([RHYTHM] * steps), np.stack([POLICIES] * steps, axis=1), 0).reshape(len(POLICIES), -1)
    level = FALSE_ALARM / (2 * games * (2 * len(POLICIES) * steps // EPOCH + 1))
    worst, limits, shares = np.inf, [], []
    for _ in range(games):
        noise = parts.laplace(RATE).perturbed(np.zeros((steps, states, actions)), DRAWS, rng)
        noises, totals = multiply(noise.reshape(DRAWS, -1), where.T), np.zeros(len(POLICIES))
        moved, allowed, width = np.zeros(DRAWS), np.zeros(DRAWS), 0.0
        now = noises.argmin(axis=1)
        for estimate in _estimates(parts, rng):
            costs, size = where @ estimate.reshape(-1), float(estimate.sum())
            totals += costs
            then = (noises + totals).argmin(axis=1)
            worst = min(worst, _slack(now, then, exp(-RATE * size), level))
            moved += costs[now] - costs[then]
            allowed += RATE * size * costs[now]
            width += 2.0 * size + RATE * size**2  # no two of the differences are further apart
            now = then
        limits.append(p_values.lower_mean(moved - allowed, width, FALSE_ALARM / (2 * games)))
        shares.append(float(moved.mean()) / (2.0 * RATE * EPOCH * states * actions * steps))
    least = max(limits)
    text = (
        f"chances of policies are, up to limits that hold together, at least {worst:.1e} above their bounds; the term "
        f"is {np.mean(shares):.3f} of its bound, and below what single steps allow by {-least:.0f} at least up to "
        "limits that hold"
    )
    margins = {"policies": worst, "stability": -least}
    return judged(text, games * DRAWS, margins, slack=worst, share=float(np.mean(shares)))


def _estimates(parts: Parts, rng: np.random.Generator) -> list[Floats]:
    """The estimates `[t, s, a]` of each epoch of a game of the library, as printed."""
    entry = RenewedSwitching(Kernel.homogeneous(RHYTHM, STEPS))
    game = ArenaGame(Continuing(entry, EPOCH), FixedLosses(rng.random((STEPS, 1, *RHYTHM.shape[:2]))))
    learner = RecordingLearner(parts.leader(parts.laplace(RATE), parts.resampling(LIMIT), "enumeration"))
    for _ in parts.play(game, learner, game.arena.domain, random_streams(rng)):
        pass
    return learner.added


def _slack(now: Actions, then: Actions, factor: float, level: float) -> float:
    """How far the chance of each policy is above its bound, at least, by limits that are each wrong with `level`."""
    before, after = (np.bincount(x, minlength=len(POLICIES)).astype(np.float64) for x in (now, then))
    least, most = p_values.chances_between(before, DRAWS, level)[0], p_values.chances_between(after, DRAWS, level)[1]
    return float((most - factor * least).min())
