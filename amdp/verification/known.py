"""The analysis of FTPL over a kernel: error, stability and resampling terms, and the stability of single steps."""

from dataclasses import dataclass
from math import e, exp, log
from typing import Any

import numpy as np
from scipy.optimize import minimize

from amdp.algorithms.bounds import FtplBound
from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Actions, Floats
from amdp.kernels.threads import multiply
from amdp.oracles.base import bind
from amdp.verification import rates
from amdp.verification.base import (
    FALSE_ALARM,
    NO_CHANCE,
    Check,
    Effort,
    Finding,
    Parts,
    agreement,
    at_most,
    judged,
    unsurprising,
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
LEAST_CHANCE = 0.01  # of a visit, in the search for counterexamples
DRAWS = 2_000  # noise that stands for its law in the terms of the analysis


def checks() -> list[Check]:
    """Section 3.1 and appendix B.1."""
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
            NO_CHANCE,
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
        Check(
            "single-step-stability",
            "Lemma 3, Lemma 11: single-step stability",
            "p_{k+1}(pi) >= p_k(pi) exp(-rate ||l_k||_1) for every policy",
            "the bound",
            "draws of the noise, before and after an estimate arrives",
            {"scale-for-rate": ("policies",)},
            _single_step_stability,
            at_most("exact limits of binomial chances (Clopper and Pearson 1934)"),
        ),
        Check(
            "strong-stability-fails",
            "Lemma 13: the counterexample to the stability of Context-FTPL (appendix B.1.5)",
            "p_t = 0.609453, p_{t+1} = 0.675248, so that 0.00065795 > 0.000651492",
            "both chances and both sides in closed form; the largest ratio found in a search",
            "draws of the noise",
            {"scale-for-rate": ("drawn",)},
            _strong_stability_fails,
            at_most("the binomial law"),
        ),
    ]


# --- the terms of the regret ------------------------------------------------------------------------------------------


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
        estimates, tables = _told(parts, rate, limit, rng)
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
            paid, next_paid = ((one * estimate).sum(axis=(1, 2, 3)) for one in (now, then))
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


def _told(parts: Parts, rate: float, limit: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
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
    least = max(rates.lower_mean(one.beyond, one.width, FALSE_ALARM / len(games)) for one in games)
    names = ("resampling", "error", "stability")
    shares = {name: float(np.mean([getattr(one, name) for one in games])) / getattr(proved, name) for name in names}
    off = (
        np.inf if allowed is None else max(abs(getattr(allowed, name) / getattr(proved, name) - 1.0) for name in names)
    )
    excess = max(one.leaders_excess for one in games)
    text = (
        "share of its bound: "
        + ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        + f"; bounds agree to {off:.0e}; leaders that look ahead pay at most {max(excess, 0.0):.0e} more than the best "
        f"policy; the stability term is below what single steps allow, by {-least:.0f} at least up to limits that hold"
    )
    margins = {
        "bounds": agreement(off),
        "error": agreement(excess, 1e-6),
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
        chances += [rates.symmetric(one, unit) for one in (*of_kind, of_kind.reshape(-1))]
    text = f"what was paid and what its law pays differ with p = {min(chances):.2g}, the least of {len(chances)}"
    return judged(text, games, {"martingale": unsurprising(min(chances), len(chances))}, p_value=min(chances))


def _be_the_leader(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    planner = bind(parts.oracle, world.domain)
    paths, rounds = effort.samples(40), 30
    margin = np.inf
    for _ in range(paths):
        told = np.zeros((rounds + 1, STEPS, STATES, ACTIONS))
        told[0] = parts.laplace(0.2).perturbed(told[0], 1, rng)[0]
        places = rng.integers(0, [STEPS, STATES, ACTIONS], size=(rounds, 3))
        told[np.arange(1, rounds + 1), *places.T] = rng.geometric(0.3, rounds)
        sums = np.cumsum(told, axis=0)
        ahead = occupancies(world.p, planner.minimize(sums).actions)
        best = occupancies(world.p, leaders(world.p, sums[-1:]))[0]
        margin = min(margin, float((best * sums[-1]).sum() - (ahead * told).sum()))
    excess = max(0.0, -margin)
    text = f"leaders that look one round ahead pay at most {excess:.1e} more than the best policy, on {paths} paths"
    return judged(text, 0, {"leaders": agreement(excess)}, slack=margin)


def _noise_maximum(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, n = 3.0, PAIRS
    draws = effort.samples(20_000)
    z = parts.laplace(rate).perturbed(np.zeros(SHAPE), draws, rng)
    greatest = np.sort(np.abs(z).max(axis=(2, 3)).reshape(-1))
    law = (1.0 - np.exp(-rate * greatest)) ** n
    seen = np.arange(len(greatest) + 1) / len(greatest)
    largest = float(max((law - seen[:-1]).max(), (seen[1:] - law).max()))
    exact = sum(1.0 / i for i in range(1, n + 1)) / rate
    chance, allowed = rates.distance(largest, len(greatest)), (1.0 + log(n)) / rate
    text = (
        f"mean {greatest.mean():.4f}, exactly {exact:.4f}, bound {allowed:.4f}; the distribution function is off by "
        f"{largest:.4f} (p = {chance:.2g})"
    )
    margins = {"law": unsurprising(chance, 1)}
    return judged(text, draws, margins, mean=float(greatest.mean()), exact=exact)


# --- single steps -----------------------------------------------------------------------------------------------------


def _single_step_stability(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    planner = bind(parts.oracle, world.domain)
    rate, draws, cases = 0.4, effort.samples(40_000), 6
    level = FALSE_ALARM / (2 * cases * ACTIONS ** (STEPS * STATES))
    worst = np.inf
    for _ in range(cases):
        total = rng.uniform(0.0, 3.0, size=SHAPE)
        estimate = np.zeros(total.shape)
        estimate[rng.integers(STEPS), rng.integers(STATES), rng.integers(ACTIONS)] = rng.uniform(0.5, 2.0)
        before, after = (
            _policy_counts(planner.minimize(parts.laplace(rate).perturbed(costs, draws, rng)).actions)
            for costs in (total, total + estimate)
        )
        least = rates.chances_between(before, draws, level)[0] * exp(-rate * estimate.sum())
        worst = min(worst, float((rates.chances_between(after, draws, level)[1] - least).min()))
    text = (
        f"the chance of each policy is, up to limits that hold together, at least {worst:.1e} above its bound "
        f"({cases} estimates)"
    )
    return judged(text, 2 * draws * cases, {"policies": worst}, slack=worst)


def _policy_counts(actions: Actions) -> Floats:
    """How often each policy `[h, s]` is chosen."""
    weights = ACTIONS ** np.arange(STEPS * STATES)
    codes = actions.reshape(len(actions), -1) @ weights
    return np.bincount(codes, minlength=ACTIONS ** (STEPS * STATES)).astype(np.float64)


def first_leads(margin: float, rate: float) -> float:
    """The chance that `z1 - z2 > -margin` for two Laplace variables: `1 - e^-x (1 + x/2) / 2`, `x = rate margin`."""
    x = rate * abs(margin)
    beyond = 0.5 * exp(-x) * (1.0 + 0.5 * x)
    return 1.0 - beyond if margin >= 0.0 else beyond


def strong_ratio(first: float, second: float, margin: float, loss: float, rate: float) -> float:
    """The decrease of the loss over `rate E[<pi, l>^2]`, which the strong form says is at most 1.

    Two policies that differ in one coordinate, `first` and `second`; the second is dearer so far by `margin` in that
    coordinate; then `loss` is met there. The leader is the first one if its noise is below the margin.
    """
    # The chance of the second one, which may be tiny: one minus the other would lose it.
    before, after = (0.5 * exp(-rate * x) if x >= 0.0 else 1.0 - 0.5 * exp(rate * x) for x in (margin, margin + loss))
    decrease = (before - after) * (second - first) * loss
    return decrease / (rate * loss**2 * ((1.0 - before) * first**2 + before * second**2))


def _search(rng: np.random.Generator, starts: int) -> float:
    """The largest ratio if the dearer policy visits the place with a chance of at least `LEAST_CHANCE`."""

    def negative(x: Floats) -> float:
        first, second = 1.0 / (1.0 + np.exp(-np.clip(x[:2], -40.0, 40.0))) * (1.0 - LEAST_CHANCE)
        second += LEAST_CHANCE
        return -strong_ratio(
            float(first),
            float(second),
            float(np.clip(x[2], -30.0, 30.0)),
            float(np.exp(np.clip(x[3], -12.0, 5.0))),
            1.0,
        )

    found = [minimize(negative, rng.normal(0.0, 2.0, 4), method="Nelder-Mead") for _ in range(starts)]
    return max(-float(one.fun) for one in found)


def _strong_stability_fails(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, total, step = 3.0, np.array([0.75, 0.2, 0.6]), 0.1
    first, second = np.array([0.1, 0.1, 0.2]), np.array([0.2, 0.1, 0.1])
    chances = [
        first_leads(float((second - first) @ losses) / 0.1, rate) for losses in (total, total + step * np.eye(3)[0])
    ]
    decrease = (chances[1] - chances[0]) * step * float(second[0] - first[0])
    strong = rate * step**2 * (chances[0] * first[0] ** 2 + (1.0 - chances[0]) * second[0] ** 2)
    weak = rate * step * step * (chances[0] * first[0] + (1.0 - chances[0]) * second[0])
    draws = effort.samples(100_000)
    z = parts.laplace(rate).perturbed(total[None, None], draws, rng)[:, 0, 0]
    count = int((multiply(z, first) < multiply(z, second)).sum())
    off = rates.binomial(count, draws, chances[0])
    largest = _search(rng, effort.samples(10))
    text = (
        f"p = {chances[0]:.6f}, then {chances[1]:.6f}: {decrease:.8f} > {strong:.9f}, and below the weak form's "
        f"{weak:.6f}; drawn: {count / draws:.4f} (p = {off:.2g}). A search with visit chances of at least "
        f"{LEAST_CHANCE:g} finds a ratio of {largest:.1f}: no constant saves the strong form for Laplace noise"
    )
    return judged(text, draws, {"drawn": unsurprising(off, 1)}, ratio=decrease / strong, largest=largest)
