"""The analysis of FTPL over confidence sets: coverage, nestedness, and the four terms of the regret."""

from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from scipy.stats import binom

from amdp.algorithms.ftpl import laplace_rate, resampling_limit
from amdp.arrays import Actions, Floats, one_hot
from amdp.confidence import BernsteinBox, Radius
from amdp.feedback import Bandit
from amdp.mdp import MarkovPolicies
from amdp.verification.base import (
    FALSE_ALARM,
    NO_CHANCE,
    NORMAL,
    WIDE,
    Check,
    Effort,
    Finding,
    Parts,
    finding,
    threshold,
)
from amdp.verification.estimates import greatest_chances, optimistic_leaders, truncated_moment
from amdp.verification.worlds import ACTIONS, PAIRS, STATES, STEPS, SmallWorld, laplace, leaders, occupancies

ROUNDS = 120
DELTA = 0.02
TERMS = ("error", "bias1", "est_reg", "bias2", "regret")
DRAWS = 1_000  # noise that stands for its law
SCALE = 0.1  # of the radius in games: at full size the sets stay vacuous for thousands of rounds


def checks() -> list[Check]:
    """Section 3.2 and appendix B.2."""
    return [
        Check(
            "coverage",
            "Lemma 14: the confidence sets hold the true kernel (Lemma 2 of Jin et al.)",
            "with chance at least 1 - 4 delta the true kernel is in all sets",
            "the share of failures that is allowed, as a quantile of the binomial law",
            "paths of a uniform player, with sets narrowed after each",
            ("tight-radius",),
            _coverage,
            f"{FALSE_ALARM:g}, a quantile of the binomial law",
        ),
        Check(
            "nestedness",
            "Remark 15: the sets are intersections, so they shrink",
            "P_{k+1} is inside P_k",
            "the ends of all intervals, on each path",
            "",
            ("boxes-not-nested",),
            _nestedness,
            NO_CHANCE,
        ),
        Check(
            "radius",
            "appendix B.2.1: the confidence radius",
            "intervals are the mean -+ 4 sqrt(mean ln(10HSAK/delta) / n) + 10 ln(10HSAK/delta) / n, intersected",
            "all intervals after each path, from counts by hand",
            "",
            ("tight-radius",),
            _radius,
            NO_CHANCE,
            "the index i of the printed radius is read as k; a row that was never visited is the whole simplex",
        ),
        Check(
            "unknown-terms",
            "Theorem 17, Theorem 24: EstReg and Bias2, beside Error and Bias1 (appendix B.2.2)",
            "EstReg <= 2H(1+ln SA)/rate + 3 rate H^2 SAK + 8 delta KHL; Bias2 is what v/q (1-(1-q)^L) - 1 leaves of "
            "the losses, at most 0 on average while the sets hold the kernel; Error and Bias1 are measured",
            "the optimistic kernel of each round; the bound; the expectation of Bias2, given the law",
            "games of FTPL over boxes; the law by plain extended value iteration on common noise",
            ("wrong-step", "tripled-weights"),
            _unknown_terms,
            f"{NORMAL}, for Bias2; for EstReg {WIDE}",
        ),
    ]


def _walks(world: SmallWorld, rng: np.random.Generator) -> Any:
    uniform = np.full((STEPS, STATES, ACTIONS), 1.0 / ACTIONS)
    return world.kernel.walk(uniform, 0, rng.random((STEPS, 2)))


def _start(parts: Parts, radius: Radius) -> BernsteinBox:
    return parts.box.vacuous((STEPS, STATES, ACTIONS), radius)


def _coverage(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    runs, failed = effort.samples(60), 0
    world = SmallWorld.fixed()
    radius = parts.radius((STEPS, STATES, ACTIONS), ROUNDS, DELTA)
    for _ in range(runs):
        box, held = _start(parts, radius), True
        for _ in range(ROUNDS):
            box = box.narrow(_walks(world, rng))
            held = held and box.contains(world.kernel) and box.fallbacks == 0
        failed += not held
    most = int(binom.isf(FALSE_ALARM, runs, 4 * DELTA))
    text = f"{failed} of {runs} paths left the sets; allowed {most}, at a chance of {4 * DELTA:g} each"
    return finding(failed <= most, text, runs, most - failed, failed=failed)


def _nestedness(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    box = _start(parts, Radius.paper((STEPS, STATES, ACTIONS), ROUNDS, DELTA, scale=SCALE))
    rounds, worst = effort.samples(300), 0.0
    for _ in range(rounds):
        narrower = box.narrow(_walks(world, rng))
        if narrower.fallbacks == box.fallbacks:  # an empty intersection starts again, and is counted
            wider = max((box.lower - narrower.lower).max(), (narrower.upper - box.upper).max())
            worst = max(worst, float(wider))
        box = narrower
    text = f"intervals of {rounds} rounds grow by at most {worst:.1e}"
    return finding(worst <= 1e-12, text, 0, -worst, growth=worst)


def _radius(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world, shape = SmallWorld.fixed(), (STEPS, STATES, ACTIONS)
    box = _start(parts, parts.radius(shape, ROUNDS, DELTA))
    counts = np.zeros((*shape, STATES))
    lower, upper = np.zeros(counts.shape), np.ones(counts.shape)
    rounds, worst = effort.samples(120), 0.0
    term = log(10 * STEPS * STATES * ACTIONS * ROUNDS / DELTA)
    for _ in range(rounds):
        path = _walks(world, rng)
        box = box.narrow(path)
        for h in range(STEPS - 1):
            row = h, path.states[h], path.actions[h]
            counts[(*row, path.states[h + 1])] += 1
            visits = counts[row].sum()
            mean = counts[row] / visits
            width = 4.0 * np.sqrt(mean * term / visits) + 10.0 * term / visits
            lower[row], upper[row] = np.maximum(lower[row], mean - width), np.minimum(upper[row], mean + width)
        worst = max(worst, float(np.abs(box.lower - lower)[:-1].max()), float(np.abs(box.upper - upper)[:-1].max()))
    text = f"the ends of intervals differ by at most {worst:.1e} from those by hand, in {rounds} rounds"
    return finding(worst <= 1e-12, text, 0, 1e-12 - worst, difference=worst)


# --- the four terms ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """One game: what each term adds to the regret."""

    error: float
    bias1: float
    est_reg: float
    bias2: float
    regret: float
    unforeseen: float  # Bias2, less its expectation given the history
    unforeseen_square: float  # the sum of its squared steps


def value(p: Floats, policy: Actions, costs: Floats) -> float:
    """What a policy `[h, s]` pays."""
    return float((occupancies(p, policy[None])[0] * costs).sum())


def game(parts: Parts, rounds: int, rng: np.random.Generator) -> Terms:
    """Play over boxes, and find the optimistic kernel of every round from the noise that the learner drew."""
    world = SmallWorld.fixed()
    domain = MarkovPolicies(_start(parts, Radius.paper((STEPS, STATES, ACTIONS), rounds, DELTA, scale=SCALE)))
    rate, limit = laplace_rate(domain, rounds), resampling_limit(domain, rounds)
    learner = parts.ftpl(rate, limit)
    means = rng.uniform(size=(STEPS, STATES, ACTIONS))
    source: Any = learner.start(domain, rng)
    noise = laplace(DRAWS, rate, rng)
    expected: list[Floats] = []
    seen: list[tuple[Actions, Floats, Floats, Floats]] = []
    for _ in range(rounds):
        table = (rng.random(means.shape) < means).astype(np.float64)
        twin = deepcopy(rng)  # draws the same noise again, so that the costs of the leader are known
        policy = source.draw(rng).argmax(axis=2).astype(np.int32)
        costs = source.perturbation.perturbed(source.total, 1, twin)[0]
        box = source.domain.dynamics
        optimistic = box.optimistic_kernel(box.cheapest(costs[None]).values[0]).p
        expected.append(_expected_estimate(box, source.total + noise, limit) * table)
        segment = world.kernel.walk(one_hot(policy, ACTIONS), 0, rng.random((STEPS, 2)))
        weights = learner.weigh(source, segment, rng)
        told = learner.learn(source, Bandit.told(table, segment, weights)).total - source.total
        source = learner.learn(learner.observe(source, segment), Bandit.told(table, segment, weights))
        seen.append((policy, optimistic, table, told))
    tables, estimates = np.array([one[2] for one in seen]), np.array([one[3] for one in seen])
    best = leaders(world.p, tables.sum(axis=0)[None])[0]
    at_best = occupancies(world.p, best[None])[0]
    sums = np.zeros(3)
    for policy, optimistic, table, told in seen:
        real, dreamed = value(world.p, policy, table), value(optimistic, policy, table)
        hoped = value(optimistic, policy, told)
        sums += (real - dreamed, dreamed - hoped, hoped - float((at_best * told).sum()))
    each = (at_best * (estimates - tables)).sum(axis=(1, 2, 3))
    unforeseen = (at_best * (estimates - np.array(expected))).sum(axis=(1, 2, 3))
    regret = sum(value(world.p, one[0], one[2]) for one in seen) - float((at_best * tables).sum())
    return Terms(
        sums[0], sums[1], sums[2], float(each.sum()), regret, float(unforeseen.sum()), float((unforeseen**2).sum())
    )


def _expected_estimate(box: BernsteinBox, costs: Floats, limit: int) -> Floats:
    """`(v / q) (1 - (1-q)^L)` for every pair: visited with chance `v`, tried with chance `q`."""
    policies = optimistic_leaders(box.lower, box.upper, costs)
    visited = occupancies(SmallWorld.fixed().p, policies).mean(axis=0)
    tried = greatest_chances(box.lower, box.upper, policies).mean(axis=0)
    expected: Floats = visited * truncated_moment(tried, limit, 1)
    return expected


def _unknown_terms(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games = [game(parts, ROUNDS, rng) for _ in range(effort.samples(4))]
    domain = MarkovPolicies(BernsteinBox.vacuous((STEPS, STATES, ACTIONS)))
    rate, limit = laplace_rate(domain, ROUNDS), resampling_limit(domain, ROUNDS)
    allowed = 2.0 * STEPS * (1.0 + log(PAIRS)) / rate + 3.0 * rate * STEPS**2 * PAIRS * ROUNDS
    allowed += 8.0 * DELTA * ROUNDS * STEPS * limit
    means = {name: float(np.mean([getattr(one, name) for one in games])) for name in TERMS}
    off = abs(sum(one.unforeseen for one in games)) / np.sqrt(sum(one.unforeseen_square for one in games))
    most, trivial = threshold(1), STEPS * ROUNDS
    vacuous = ", vacuous: no learner loses more than" if allowed > trivial else ", of at most"
    text = (
        f"Error {means['error']:.2f}, Bias1 {means['bias1']:.2f}, EstReg {means['est_reg']:.2f} (bound {allowed:.0f}"
        f"{vacuous} {trivial}), Bias2 {means['bias2']:.2f} ({off:.1f} standard deviations from its expectation, "
        f"allowed {most:.1f}); regret {means['regret']:.2f}"
    )
    return finding(off <= most and means["est_reg"] <= allowed, text, len(games), most - off, **means)
