"""The regret of FTPL over confidence sets: its terms Error, Bias1, EstReg and Bias2."""

from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Actions, Floats, one_hot
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Pairs
from amdp.verification import p_values, reference
from amdp.verification.base import (
    Check,
    Effort,
    Finding,
    Parts,
    at_most,
    equality_margin,
    judged,
    p_value_margin,
)
from amdp.verification.confidence_sets import DELTA, ROUNDS, SCALE, width_margin
from amdp.verification.worlds import (
    ACTIONS,
    INITIAL,
    PAIRS,
    SHAPE,
    STEPS,
    SmallWorld,
    leaders,
    occupancies,
)

TERMS = ("error", "bias1", "est_reg", "bias2", "regret")


def checks() -> list[Check]:
    """The regret decomposition with unknown transitions: appendix B.2."""
    return [
        Check(
            "unknown-terms",
            "Theorem 24: Bias2, beside EstReg, Error and Bias1 (appendix B.2.2)",
            "Bias2 is what v/q (1-(1-q)^L) - 1 leaves of the losses; v is at most q while the sets hold the kernel, so "
            "that it is at most 0 on average; EstReg, Error and Bias1 are measured",
            "the optimistic kernel of each round; true and greatest chances of the policies that were played",
            "games of FTPL over boxes, and in each round the estimate of one more, by plain loops",
            {"wrong-step": ("greatest_chances",), "tripled-weights": ("bias2",), "frozen-sets": ("narrowed",)},
            _unknown_terms,
            at_most("differences of two draws from one law are symmetric (de la Pena 1999)"),
        ),
    ]


@dataclass(frozen=True, eq=False)
class RegretTerms:
    """One game: what each term adds to the regret."""

    error: float
    bias1: float
    est_reg: float
    bias2: float
    regret: float
    unforeseen: Floats  # [k], the step of Bias2, less that of another draw of the same law
    shortfall: float  # how far a greatest chance is below the true one, at most, while the set holds the kernel
    width: float  # of the intervals of the first step, in the end


def value(p: Floats, policy: Actions, costs: Floats) -> float:
    """What a policy `[h, s]` pays."""
    return float((occupancies(p, policy[None])[0] * costs).sum())


@dataclass(frozen=True, eq=False)
class _Round:
    """What was played in a round, and its estimate."""

    policy: Actions
    optimistic: Floats  # the kernel of the leader
    table: Floats
    estimate: Floats
    other: Floats  # another estimate, by plain loops


def game(parts: Parts, rounds: int, rng: np.random.Generator) -> RegretTerms:
    """Play over boxes, and find the optimistic kernel of every round from the noise that the learner drew."""
    world = SmallWorld.fixed()
    domain = MarkovPolicies(parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA, scale=SCALE)), INITIAL)
    rate, limit = laplace_rate(domain, rounds), resampling_limit(domain, rounds)
    learner, plain = parts.ftpl(rate, limit), reference.over_sets(SHAPE, INITIAL, rate, limit, rounds, DELTA, SCALE)
    means = rng.uniform(size=SHAPE)
    distribution: Any = learner.start(domain, rng)
    seen: list[_Round] = []
    shortfall = 0.0
    for _ in range(rounds):
        table = (rng.random(SHAPE) < means).astype(np.float64)
        twin = deepcopy(rng)  # draws the same noise again, so that the costs of the leader are known
        policy = distribution.draw(rng).argmax(axis=2).astype(np.int32)
        costs = distribution.perturbation.perturbed(distribution.total, 1, twin)[0]
        box = distribution.domain.dynamics
        optimistic = box.optimistic_kernel(box.cheapest(costs[None]).values[0]).p
        shortfall = max(shortfall, _shortfall(world, box, policy))
        segment = world.kernel.walk(one_hot(policy, ACTIONS), INITIAL, rng.random((STEPS, 2)))
        weights = learner.weigh(distribution, segment, rng)
        estimate = learner.learn(distribution, Bandit.reveal(table, segment, weights)).total - distribution.total
        distribution = learner.learn(learner.observe(distribution, segment), Bandit.reveal(table, segment, weights))
        seen.append(_Round(policy, optimistic, table, estimate, _plain_estimate(plain, world, table, rng)))
        path = list(zip(segment.states.tolist(), segment.actions.tolist(), strict=True))
        plain.learn(path, weights.values.tolist(), table.tolist())
        plain.observe(path)
    last = distribution.domain.dynamics
    return _terms(world, seen, shortfall, float((last.upper - last.lower)[0, INITIAL].mean()))


def _shortfall(world: SmallWorld, box: BernsteinBox, policy: Actions) -> float:
    if not box.contains(world.kernel):
        return 0.0
    greatest = box.greatest_visits(one_hot(policy[None], ACTIONS), INITIAL, Pairs.all(SHAPE)).reshape(SHAPE)
    return float((occupancies(world.p, policy[None])[0] - greatest).max())


def _plain_estimate(plain: reference.Episodes, world: SmallWorld, table: Floats, rng: np.random.Generator) -> Floats:
    """The estimate of a round that the reference plays from the same history."""
    path = reference.walked(world.p.tolist(), plain.drawn(rng), INITIAL, rng)
    estimate = np.zeros(SHAPE)
    for h, (s, a) in enumerate(path):
        estimate[h, s, a] = plain.counted(path, h, rng) * table[h, s, a]
    return estimate


def _terms(world: SmallWorld, seen: list[_Round], shortfall: float, width: float) -> RegretTerms:
    total = np.sum([played.table for played in seen], axis=0)
    at_best = occupancies(world.p, leaders(world.p, total[None]))[0]
    sums = np.zeros(3)
    for played in seen:
        true = value(world.p, played.policy, played.table)
        optimistic = value(played.optimistic, played.policy, played.table)
        estimated = value(played.optimistic, played.policy, played.estimate)
        sums += (true - optimistic, optimistic - estimated, estimated - float((at_best * played.estimate).sum()))
    bias2 = sum(float((at_best * (played.estimate - played.table)).sum()) for played in seen)
    unforeseen = np.array([float((at_best * (played.estimate - played.other)).sum()) for played in seen])
    regret = sum(value(world.p, played.policy, played.table) for played in seen) - float((at_best * total).sum())
    error, bias1, est_reg = sums.tolist()
    return RegretTerms(error, bias1, est_reg, bias2, regret, unforeseen, shortfall, width)


def _unknown_terms(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games = [game(parts, ROUNDS, rng) for _ in range(effort.samples(4))]
    domain = MarkovPolicies(BernsteinBox.vacuous(SHAPE), INITIAL)
    rate, limit = laplace_rate(domain, ROUNDS), resampling_limit(domain, ROUNDS)
    allowed = 2.0 * STEPS * (1.0 + log(PAIRS)) / rate + 3.0 * rate * STEPS**2 * PAIRS * ROUNDS
    allowed += 8.0 * DELTA * ROUNDS * STEPS * limit
    means = {name: float(np.mean([getattr(terms, name) for terms in games])) for name in TERMS}
    differences = np.concatenate([terms.unforeseen for terms in games])
    chance = min(p_values.symmetric(differences, 1.0), p_values.symmetric(np.sign(differences), 1.0))
    width, shortfall = np.array([terms.width for terms in games]), max(terms.shortfall for terms in games)
    text = (
        f"Error {means['error']:.2f}, Bias1 {means['bias1']:.2f}, EstReg {means['est_reg']:.2f} (its bound "
        f"{allowed:.0f} is not judged: no learner loses more than {STEPS * ROUNDS}), Bias2 {means['bias2']:.2f} "
        f"(p = {chance:.2g}); regret {means['regret']:.2f}; intervals of the first step end {width.mean():.2f} wide"
    )
    margins = {
        "bias2": p_value_margin(chance, 2),
        "greatest_chances": equality_margin(shortfall),
        "narrowed": width_margin(width),
    }
    return judged(text, len(games) * ROUNDS, margins, **means)
