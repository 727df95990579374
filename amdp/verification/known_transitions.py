"""FTPL over a known kernel: the terms of its regret, their noise, and the stability of its law (appendix B.1)."""

from math import exp, log
from typing import Any

import numpy as np
from scipy.optimize import minimize

from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Actions, Floats
from amdp.kernels.threads import multiply
from amdp.oracles.base import bind
from amdp.verification import p_values, worlds
from amdp.verification.base import FALSE_ALARM, Effort, Finding, Parts, check, equality_margin, judged, p_value_margin
from amdp.verification.comparison import SYMMETRIC
from amdp.verification.worlds import ACTIONS, DOMAIN, PAIRS, SHAPE, STATES, STEPS, TRANSITIONS

ROUNDS = 100
DRAWS = 2_000  # of the noise, for expectations over the law of the leader
LEAST_CHANCE = 0.01  # of a visit, in the search for counterexamples


@check(
    statement="Theorem 4, Lemma 9, Lemma 10, Lemma 12: the GR error, error and stability terms",
    claim=(
        "the terms of the regret are at most SAHK/(eL), 2H(1+ln SA)/rate and 3 rate H^2 SAK: the GR error is what "
        "(1-q)^L leaves out; the error term is that of be-the-leader; the stability term is at most "
        "rate sum of ||l_k||_1 <q_k, l_k>, which has the mean 3 rate H^2 SAK or less"
    ),
    exact="the bounds; the GR error in expectation, given the law; the error term, for each draw of the noise",
    simulated="the stability term on the estimates of games: its mean over independent draws of the noise",
    inequality="limits of a bounded mean (Maurer and Pontil 2009)",
    rejects={"bounds-cut": ("bounds",), "myopic-oracle": ("error",), "scale-for-rate": ("stability",)},
)
def _regret_terms(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games = effort.samples(3)
    rate, limit = laplace_rate(DOMAIN, ROUNDS), resampling_limit(DOMAIN, ROUNDS)
    terms, excesses, limits = zip(
        *(_terms_of_game(parts, rate, limit, FALSE_ALARM / games, rng) for _ in range(games)), strict=True
    )
    proved, bound = worlds.proved_terms(rate, limit, ROUNDS), parts.ftpl(rate, limit).bound(DOMAIN, ROUNDS)
    shares = {name: float(np.mean([of_game[name] for of_game in terms])) / proved[name] for name in proved}
    off = np.inf if bound is None else max(abs(getattr(bound, name) / proved[name] - 1.0) for name in proved)
    excess, least = max(excesses), max(limits)
    text = (
        "share of its bound: "
        + ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        + f"; bounds agree to {off:.0e}; leaders that look ahead pay at most {max(excess, 0.0):.0e} more than the best "
        f"policy; the stability term is below what single steps allow, by {-least:.0f} at least up to limits that hold"
    )
    margins = {"bounds": equality_margin(off), "error": equality_margin(excess, 1e-6), "stability": -least}
    return judged(text, games * DRAWS, margins, **shares)


def _terms_of_game(
    parts: Parts, rate: float, limit: int, level: float, rng: np.random.Generator
) -> tuple[dict[str, float], float, float]:
    """Play, and follow leaders of common noise along the estimates; each draw stands for the law of the leader.

    The terms of the regret; what looking one round ahead costs more than the best policy, at most, noise included; and
    a lower limit of how far the stability term is beyond what single steps allow, on average.
    """
    estimates, tables = _played(parts, rate, limit, rng)
    planner = bind(parts.oracle, DOMAIN)
    noise = parts.laplace(rate).perturbed(np.zeros(SHAPE), DRAWS, rng)
    best = worlds.occupancies(TRANSITIONS, worlds.leaders(TRANSITIONS, tables.sum(axis=0)[None]))[0]
    total = np.zeros(SHAPE)
    now = worlds.occupancies(TRANSITIONS, planner.minimize(noise).actions)
    first = (now * noise).sum(axis=(1, 2, 3))  # [n], what the first leader pays of the noise
    resampling, ahead, moved, allowed = 0.0, np.zeros(DRAWS), np.zeros(DRAWS), np.zeros(DRAWS)
    for estimate, table in zip(estimates, tables, strict=True):
        total = total + estimate
        then = worlds.occupancies(TRANSITIONS, planner.minimize(total + noise).actions)
        paid, next_paid = ((occupancy * estimate).sum(axis=(1, 2, 3)) for occupancy in (now, then))
        q = now.mean(axis=0)
        resampling += float(((q - best) * (1.0 - q) ** limit * table).sum())  # in expectation given the history
        moved += paid - next_paid
        allowed += rate * estimate.sum() * paid
        ahead += next_paid
        now = then
    error = float(ahead.mean() - (best * total).sum())
    excess = float((first + ahead - (best * (total + noise)).sum(axis=(1, 2, 3))).max())
    sizes = estimates.sum(axis=(1, 2, 3))
    width = float(2.0 * sizes.sum() + rate * (sizes**2).sum())  # no two of the differences are further apart
    least = p_values.lower_mean(moved - allowed, width, level)
    return {"resampling": resampling, "error": error, "stability": float(moved.mean())}, excess, least


def _played(parts: Parts, rate: float, limit: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A game of the library, whose losses change half way: estimates and losses `[k, h, s, a]`."""
    learner = parts.ftpl(rate, limit)
    means = rng.uniform(size=(2, *SHAPE))
    distribution: Any = learner.start(DOMAIN, rng)
    estimates, tables = np.empty((ROUNDS, *SHAPE)), np.empty((ROUNDS, *SHAPE))
    for k in range(ROUNDS):
        tables[k] = rng.random(SHAPE) < means[2 * k // ROUNDS]
        feedback = worlds.feedback_of_round(learner, distribution, distribution.draw(rng), tables[k], rng)
        after = learner.learn(distribution, feedback)
        estimates[k] = after.total - distribution.total
        distribution = after
    return estimates, tables


@check(
    statement="Theorem 4: in its proof p_k is the chance of a policy given the history",
    claim=(
        "sum over k of V(pi_k; l_k) - sum over pi of p_k(pi) V(pi; l_k) is a martingale, for losses l_k and for "
        "the sum of the estimates before round k"
    ),
    exact="the values of policies",
    simulated="games of FTPL, and in each round one more policy, by plain backward induction on noise of numpy",
    inequality=SYMMETRIC,
    rejects={"fixed-noise": ("martingale",)},
)
def _played_from_its_law(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, rounds, games = 1.0, 150, effort.samples(20)
    differences = np.empty((2, games, rounds))  # in losses, and in the estimates so far
    for game in range(games):
        learner = parts.ftpl(rate, resampling_limit(DOMAIN, rounds))
        means = rng.uniform(size=SHAPE)
        distribution: Any = learner.start(DOMAIN, rng)
        for k in range(rounds):
            table = (rng.random(SHAPE) < means).astype(np.float64)
            policy = distribution.draw(rng)
            other = worlds.leaders(TRANSITIONS, distribution.total + worlds.laplace(1, rate, rng))
            both = worlds.occupancies(TRANSITIONS, np.concatenate([policy.argmax(axis=2)[None], other]))
            for what, costs in enumerate((table, distribution.total)):
                paid, expected = (both * costs).sum(axis=(1, 2, 3))
                differences[what, game, k] = paid - expected
            feedback = worlds.feedback_of_round(learner, distribution, policy, table, rng)
            distribution = learner.learn(distribution, feedback)
    chances: list[float] = []
    for unit, of_kind in zip((0.3, 3.0), differences, strict=True):
        chances += [p_values.symmetric(sample, unit) for sample in (*of_kind, of_kind.reshape(-1))]
    text = f"what was paid and what its law pays differ with p = {min(chances):.2g}, the least of {len(chances)}"
    return judged(text, games, {"martingale": p_value_margin(min(chances), len(chances))}, p_value=min(chances))


@check(
    statement="Lemma 10: bounding the error term",
    claim="sum over k = 0..K of V(pi_{k+1}; l_k) <= V(pi*; l_{0:K}) on every path, for one noise l_0",
    exact="the inequality on each path, the best policy by plain backward induction",
    rejects={"myopic-oracle": ("leaders",)},
)
def _be_the_leader(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    planner = bind(parts.oracle, DOMAIN)
    paths, rounds, margin = effort.samples(40), 30, np.inf
    for _ in range(paths):
        estimates = np.zeros((rounds + 1, *SHAPE))
        estimates[0] = parts.laplace(0.2).perturbed(estimates[0], 1, rng)[0]
        places = rng.integers(0, SHAPE, size=(rounds, 3))
        estimates[np.arange(1, rounds + 1), *places.T] = rng.geometric(0.3, rounds)
        sums = np.cumsum(estimates, axis=0)
        ahead = worlds.occupancies(TRANSITIONS, planner.minimize(sums).actions)
        best = worlds.occupancies(TRANSITIONS, worlds.leaders(TRANSITIONS, sums[-1:]))[0]
        margin = min(margin, float((best * sums[-1]).sum() - (ahead * estimates).sum()))
    excess = max(0.0, -margin)
    text = f"leaders that look one round ahead pay at most {excess:.1e} more than the best policy, on {paths} paths"
    return judged(text, 0, {"leaders": equality_margin(excess)}, slack=margin)


@check(
    statement="Lemma 44: maximum of exponential variables (Fact 2 of Wang and Dong)",
    claim="E max |z_i| = (1 + 1/2 + ... + 1/n) / rate <= (1 + ln n) / rate",
    exact="the harmonic number; the law (1 - exp(-rate x))^n of the maximum",
    simulated="draws of the noise",
    inequality="distance of an empirical distribution function (Massart 1990)",
    rejects={"scale-for-rate": ("law",)},
)
def _noise_maximum(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, n, draws = 3.0, PAIRS, effort.samples(20_000)
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
    return judged(text, draws, {"law": p_value_margin(chance, 1)}, mean=float(greatest.mean()), exact=exact)


@check(
    statement="Lemma 3, Lemma 11: single-step stability",
    claim="p_{k+1}(pi) >= p_k(pi) exp(-rate ||l_k||_1) for every policy",
    exact="the bound",
    simulated="draws of the noise, before and after an estimate arrives",
    inequality="exact limits of binomial chances (Clopper and Pearson 1934)",
    rejects={"scale-for-rate": ("policies",)},
)
def _single_step_stability(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    planner = bind(parts.oracle, DOMAIN)
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
        least = p_values.chances_between(before, draws, level)[0] * exp(-rate * estimate.sum())
        worst = min(worst, float((p_values.chances_between(after, draws, level)[1] - least).min()))
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
        margin, loss = np.clip(x[2], -30.0, 30.0), np.exp(np.clip(x[3], -12.0, 5.0))
        return -strong_ratio(float(first), float(second + LEAST_CHANCE), float(margin), float(loss), 1.0)

    searches = [minimize(negative, rng.normal(0.0, 2.0, 4), method="Nelder-Mead") for _ in range(starts)]
    return max(-float(search.fun) for search in searches)


@check(
    statement="Lemma 13: the counterexample to the stability of Context-FTPL (appendix B.1.5)",
    claim="p_t = 0.609453, p_{t+1} = 0.675248, so that 0.00065795 > 0.000651492",
    exact="both chances and both sides in closed form; the largest ratio found in a search",
    simulated="draws of the noise",
    inequality="the binomial law",
    rejects={"scale-for-rate": ("drawn",)},
)
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
    off = p_values.binomial(count, draws, chances[0])
    largest = _search(rng, effort.samples(10))
    text = (
        f"p = {chances[0]:.6f}, then {chances[1]:.6f}: {decrease:.8f} > {strong:.9f}, and below the weak form's "
        f"{weak:.6f}; drawn: {count / draws:.4f} (p = {off:.2g}). A search with visit chances of at least "
        f"{LEAST_CHANCE:g} finds a ratio of {largest:.1f}: no constant saves the strong form for Laplace noise"
    )
    return judged(text, draws, {"drawn": p_value_margin(off, 1)}, ratio=decrease / strong, largest=largest)
