"""The regret of FTPL over a kernel: the resampling, error and stability terms, and the noise behind the error term."""

from dataclasses import dataclass
from math import e, log
from typing import Any

import numpy as np

from amdp.algorithms.bounds import FtplBound
from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Floats
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
    p_value_margin,
)
from amdp.verification.worlds import (
    ACTIONS,
    INITIAL,
    PAIRS,
    SHAPE,
    STATES,
    STEPS,
    SmallWorld,
    laplace,
    leaders,
    occupancies,
)

ROUNDS = 100
DRAWS = 2_000  # of the noise, for expectations over the law of the leader


def checks() -> list[Check]:
    """The regret decomposition: section 3.1 and appendix B.1."""
    return [
        Check(
            "regret-terms",
            "Theorem 4, Lemma 9, Lemma 10, Lemma 12: the GR error, error and stability terms",
            "the terms of the regret are at most SAHK/(eL), 2H(1+ln SA)/rate and 3 rate H^2 SAK: the GR error is what "
            "(1-q)^L leaves out; the error term is that of be-the-leader; the stability term is at most "
            "rate sum of ||l_k||_1 <q_k, l_k>, which has the mean 3 rate H^2 SAK or less",
            "the bounds; the GR error in expectation, given the law; the error term, for each draw of the noise",
            "the stability term on the estimates of games: its mean over independent draws of the noise",
            {"bounds-cut": ("bounds",), "myopic-oracle": ("error",), "scale-for-rate": ("stability",)},
            _regret_terms,
            at_most("limits of a bounded mean (Maurer and Pontil 2009)"),
        ),
        Check(
            "played-from-its-law",
            "Theorem 4: in its proof p_k is the chance of a policy given the history",
            "sum over k of V(pi_k; l_k) - sum over pi of p_k(pi) V(pi; l_k) is a martingale, for losses l_k and for "
            "the sum of the estimates before round k",
            "the values of policies",
            "games of FTPL, and in each round one more policy, by plain backward induction on noise of numpy",
            {"fixed-noise": ("martingale",)},
            _played_from_its_law,
            at_most("differences of two draws from one law are symmetric (de la Pena 1999)"),
        ),
        Check(
            "be-the-leader",
            "Lemma 10: bounding the error term",
            "sum over k = 0..K of V(pi_{k+1}; l_k) <= V(pi*; l_{0:K}) on every path, for one noise l_0",
            "the inequality on each path, the best policy by plain backward induction",
            "",
            {"myopic-oracle": ("leaders",)},
            _be_the_leader,
            NO_FALSE_ALARM,
        ),
        Check(
            "noise-maximum",
            "Lemma 44: maximum of exponential variables (Fact 2 of Wang and Dong)",
            "E max |z_i| = (1 + 1/2 + ... + 1/n) / rate <= (1 + ln n) / rate",
            "the harmonic number; the law (1 - exp(-rate x))^n of the maximum",
            "draws of the noise",
            {"scale-for-rate": ("law",)},
            _noise_maximum,
            at_most("distance of an empirical distribution function (Massart 1990)"),
        ),
    ]


@dataclass(frozen=True, eq=False)
class RegretTerms:
    """One game: the terms of its regret, for each draw of noise that stands for the law of the leader."""

    resampling: float  # the GR error, in expectation given the history
    error: float
    stability: float
    leaders_excess: float  # what looking one round ahead costs more than the best policy, at most, noise included
    beyond: Floats  # [n], the stability term of each draw less what single steps allow
    width: float  # no two of `beyond` differ by more

    @classmethod
    def of(cls, parts: Parts, rng: np.random.Generator) -> "RegretTerms":
        """Play, and follow leaders of common noise along the estimates; losses change half way."""
        world = SmallWorld.fixed()
        rate, limit = laplace_rate(world.domain, ROUNDS), resampling_limit(world.domain, ROUNDS)
        estimates, tables = _played(parts, rate, limit, rng)
        planner = bind(parts.oracle, world.domain)
        noise = parts.laplace(rate).perturbed(np.zeros(SHAPE), DRAWS, rng)
        best = occupancies(world.p, leaders(world.p, tables.sum(axis=0)[None]))[0]
        total = np.zeros(SHAPE)
        now = occupancies(world.p, planner.minimize(noise).actions)
        first = (now * noise).sum(axis=(1, 2, 3))  # [n], what the first leader pays of the noise
        resampling, ahead, moved, allowed = 0.0, np.zeros(DRAWS), np.zeros(DRAWS), np.zeros(DRAWS)
        for estimate, table in zip(estimates, tables, strict=True):
            total = total + estimate
            then = occupancies(world.p, planner.minimize(total + noise).actions)
            paid, next_paid = ((occupancy * estimate).sum(axis=(1, 2, 3)) for occupancy in (now, then))
            q = now.mean(axis=0)
            resampling += float(((q - best) * (1.0 - q) ** limit * table).sum())
            moved += paid - next_paid
            allowed += rate * estimate.sum() * paid
            ahead += next_paid
            now = then
        at_best = (best * (total + noise)).sum(axis=(1, 2, 3))
        error = float(ahead.mean() - (best * total).sum())
        sizes = estimates.sum(axis=(1, 2, 3))
        width = float(2.0 * sizes.sum() + rate * (sizes**2).sum())
        excess = float((first + ahead - at_best).max())
        return cls(resampling, error, float(moved.mean()), excess, moved - allowed, width)


def _played(parts: Parts, rate: float, limit: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A game of the library: estimates and losses `[k, h, s, a]`."""
    world, learner = SmallWorld.fixed(), parts.ftpl(rate, limit)
    means = rng.uniform(size=(2, *SHAPE))
    distribution: Any = learner.start(world.domain, rng)
    estimates, tables = np.empty((ROUNDS, *SHAPE)), np.empty((ROUNDS, *SHAPE))
    for k in range(ROUNDS):
        tables[k] = rng.random(SHAPE) < means[2 * k // ROUNDS]
        segment = world.kernel.walk(distribution.draw(rng), INITIAL, rng.random((STEPS, 2)))
        weights = learner.weigh(distribution, segment, rng)
        after = learner.learn(distribution, Bandit.reveal(tables[k], segment, weights))
        estimates[k] = after.total - distribution.total
        distribution = after
    return estimates, tables


def _regret_terms(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games = [RegretTerms.of(parts, rng) for _ in range(effort.samples(3))]
    domain = SmallWorld.fixed().domain
    rate, limit = laplace_rate(domain, ROUNDS), resampling_limit(domain, ROUNDS)
    allowed = parts.ftpl(rate, limit).bound(domain, ROUNDS)
    proved = FtplBound(
        STEPS * PAIRS * ROUNDS / (e * limit),
        2.0 * STEPS * (1.0 + log(PAIRS)) / rate,
        3.0 * rate * STEPS**2 * PAIRS * ROUNDS,
    )
    least = max(p_values.lower_mean(game.beyond, game.width, FALSE_ALARM / len(games)) for game in games)
    names = ("resampling", "error", "stability")
    shares = {name: float(np.mean([getattr(game, name) for game in games])) / getattr(proved, name) for name in names}
    off = (
        np.inf if allowed is None else max(abs(getattr(allowed, name) / getattr(proved, name) - 1.0) for name in names)
    )
    excess = max(game.leaders_excess for game in games)
    text = (
        "share of its bound: "
        + ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        + f"; bounds agree to {off:.0e}; leaders that look ahead pay at most {max(excess, 0.0):.0e} more than the best "
        f"policy; the stability term is below what single steps allow, by {-least:.0f} at least up to limits that hold"
    )
    margins = {
        "bounds": equality_margin(off),
        "error": equality_margin(excess, 1e-6),
        "stability": -least,
    }
    return judged(text, len(games) * DRAWS, margins, **shares)


def _played_from_its_law(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world, rate = SmallWorld.fixed(), 1.0
    rounds, games = 150, effort.samples(10)
    differences = np.empty((2, games, rounds))  # in losses, and in the estimates so far
    for game in range(games):
        learner = parts.ftpl(rate, resampling_limit(world.domain, rounds))
        means = rng.uniform(size=SHAPE)
        distribution: Any = learner.start(world.domain, rng)
        for k in range(rounds):
            table = (rng.random(SHAPE) < means).astype(np.float64)
            policy = distribution.draw(rng)
            other = leaders(world.p, distribution.total + laplace(1, rate, rng))
            both = occupancies(world.p, np.concatenate([policy.argmax(axis=2)[None], other]))
            for what, costs in enumerate((table, distribution.total)):
                paid, expected = (both * costs).sum(axis=(1, 2, 3))
                differences[what, game, k] = paid - expected
            segment = world.kernel.walk(policy, INITIAL, rng.random((STEPS, 2)))
            distribution = learner.learn(
                distribution, Bandit.reveal(table, segment, learner.weigh(distribution, segment, rng))
            )
    chances: list[float] = []
    for unit, of_kind in zip((0.3, 3.0), differences, strict=True):
        chances += [p_values.symmetric(sample, unit) for sample in (*of_kind, of_kind.reshape(-1))]
    text = f"what was paid and what its law pays differ with p = {min(chances):.2g}, the least of {len(chances)}"
    return judged(text, games, {"martingale": p_value_margin(min(chances), len(chances))}, p_value=min(chances))


def _be_the_leader(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    planner = bind(parts.oracle, world.domain)
    paths, rounds = effort.samples(40), 30
    margin = np.inf
    for _ in range(paths):
        estimates = np.zeros((rounds + 1, STEPS, STATES, ACTIONS))
        estimates[0] = parts.laplace(0.2).perturbed(estimates[0], 1, rng)[0]
        places = rng.integers(0, [STEPS, STATES, ACTIONS], size=(rounds, 3))
        estimates[np.arange(1, rounds + 1), *places.T] = rng.geometric(0.3, rounds)
        sums = np.cumsum(estimates, axis=0)
        ahead = occupancies(world.p, planner.minimize(sums).actions)
        best = occupancies(world.p, leaders(world.p, sums[-1:]))[0]
        margin = min(margin, float((best * sums[-1]).sum() - (ahead * estimates).sum()))
    excess = max(0.0, -margin)
    text = f"leaders that look one round ahead pay at most {excess:.1e} more than the best policy, on {paths} paths"
    return judged(text, 0, {"leaders": equality_margin(excess)}, slack=margin)


def _noise_maximum(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, n = 3.0, PAIRS
    draws = effort.samples(20_000)
    z = parts.laplace(rate).perturbed(np.zeros(SHAPE), draws, rng)
    greatest = np.sort(np.abs(z).max(axis=(2, 3)).reshape(-1))
    law = (1.0 - np.exp(-rate * greatest)) ** n
    seen = np.arange(len(greatest) + 1) / len(greatest)
    largest = float(max((law - seen[:-1]).max(), (seen[1:] - law).max()))
    exact = sum(1.0 / i for i in range(1, n + 1)) / rate
    chance, allowed = p_values.distance(largest, len(greatest)), (1.0 + log(n)) / rate
    text = (
        f"mean {greatest.mean():.4f}, exactly {exact:.4f}, bound {allowed:.4f}; the distribution function is off by "
        f"{largest:.4f} (p = {chance:.2g})"
    )
    margins = {"law": p_value_margin(chance, 1)}
    return judged(text, draws, margins, mean=float(greatest.mean()), exact=exact)
