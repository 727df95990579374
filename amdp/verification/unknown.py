"""The analysis of FTPL over confidence sets: coverage, nestedness, and the four terms of the regret."""

from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from scipy.stats import binom

from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Actions, Floats, one_hot
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Pairs, Segment
from amdp.model.transitions import Kernel
from amdp.oracles.base import bind
from amdp.verification import rates, reference
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
    STEPS,
    SmallWorld,
    extended_value_iteration,
    leaders,
    occupancies,
)

ROUNDS = 120
DELTA = 0.02
TERMS = ("error", "bias1", "est_reg", "bias2", "regret")
SCALE = 0.1  # of the radius in games: at full size the sets stay vacuous for thousands of rounds
NARROW = 0.9  # how wide intervals that were narrowed may be, on average


def checks() -> list[Check]:
    """Section 3.2 and appendix B.2."""
    return [
        Check(
            "coverage",
            "Lemma 14: the confidence sets hold the true kernel (Lemma 2 of Jin et al.)",
            "with chance at least 1 - 4 delta the true kernel is in all sets",
            "the share of failures that is allowed, as a quantile of the binomial law",
            "long paths of one policy, with sets narrowed after each until they say something",
            {"tight-radius": ("held",), "frozen-sets": ("narrowed",)},
            _coverage,
            at_most("a quantile of the binomial law, at a chance of 4 delta each"),
        ),
        Check(
            "nestedness",
            "Remark 15: the sets are intersections, so they shrink",
            "P_{k+1} is inside P_k",
            "the ends of all intervals, on each path",
            "",
            {"boxes-not-nested": ("nested",), "frozen-sets": ("narrowed",)},
            _nestedness,
            NO_CHANCE,
        ),
        Check(
            "radius",
            "appendix B.2.1: the confidence radius",
            "intervals are the mean -+ 4 sqrt(mean ln(10HSAK/delta) / n) + 10 ln(10HSAK/delta) / n, intersected",
            "all intervals, by plain loops over the counts, at full size until they say something",
            "",
            {
                "tight-radius": ("ends",),
                "boxes-not-nested": ("ends",),
                "narrowed-at-powers-of-two": ("ends",),
                "frozen-sets": ("narrowed",),
            },
            _radius,
            NO_CHANCE,
            "the index i of the printed radius is read as k; a row that was never visited is the whole simplex",
        ),
        Check(
            "be-the-leader-sets",
            "Lemma 18: the error term over confidence sets that shrink",
            "sum over k = 0..K of V(pi_{k+1}; l_k, P_{k+1}) <= min over P_K of V(pi; l_{0:K}, P), for one noise l_0: "
            "leaders that look one round ahead, over sets that shrink",
            "the inequality for each draw of the noise, on each path",
            "",
            {"boxes-not-nested": ("leaders",), "pessimism": ("leaders",), "frozen-sets": ("narrowed",)},
            _be_the_leader_sets,
            NO_CHANCE,
        ),
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


def _walk(world: SmallWorld, rng: np.random.Generator) -> Segment:
    uniform = np.full(SHAPE, 1.0 / ACTIONS)
    return world.kernel.walk(uniform, INITIAL, rng.random((STEPS, 2)))


def _narrowed(widths: Floats) -> float:
    """The margin of sets that have left the whole simplex."""
    return NARROW - float(widths.mean())


def _coverage(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """One action, two states that are rarely left, ten steps: all rows but the first are visited often."""
    runs, failed, rounds, shape = effort.samples(12), 0, 1_800, (10, 2, 1)
    rows = np.tile(np.array([[[0.95, 0.05]], [[0.05, 0.95]]]), (shape[0], 1, 1, 1))
    kernel, radius = Kernel(rows), parts.radius(shape, rounds, DELTA)
    alone = np.ones(shape)
    widths = []
    for _ in range(runs):
        box = parts.box.vacuous(shape, radius)
        for uniforms in rng.random((rounds, shape[0], 2)):
            box = box.narrow(kernel.walk(alone, INITIAL, uniforms))
        # Sets are nested unless they were started again: in the last one is in all.
        failed += not box.contains(kernel) or box.fallbacks > 0
        widths.append((box.upper - box.lower)[1:-1].mean())
    most = int(binom.isf(FALSE_ALARM, runs, 4 * DELTA))
    text = (
        f"{failed} of {runs} paths left the sets, whose intervals are {np.mean(widths):.2f} wide in the end; allowed "
        f"{most}, at a chance of {4 * DELTA:g} each"
    )
    return judged(text, runs, {"held": most - failed, "narrowed": _narrowed(np.array(widths))}, failed=failed)


def _nestedness(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, ROUNDS, DELTA, scale=SCALE))
    rounds, worst = effort.samples(300), 0.0
    for _ in range(rounds):
        narrower = box.narrow(_walk(world, rng))
        if narrower.fallbacks == box.fallbacks:  # an empty intersection starts again, and is counted
            wider = max((box.lower - narrower.lower).max(), (narrower.upper - box.upper).max())
            worst = max(worst, float(wider))
        box = narrower
    width = (box.upper - box.lower)[0, INITIAL]
    text = (
        f"intervals of {rounds} rounds grow by at most {worst:.1e}; those of the first step end {width.mean():.2f} wide"
    )
    return judged(text, 0, {"nested": agreement(worst), "narrowed": _narrowed(width)}, growth=worst)


def _radius(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world, rounds = SmallWorld.fixed(), effort.samples(2_000)
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA))
    plain = reference.over_sets(SHAPE, INITIAL, 1.0, 1, rounds, DELTA, 1.0)
    worst = 0.0
    for k in range(rounds):
        path = _walk(world, rng)
        box = box.narrow(path)
        plain.observe(list(zip(path.states.tolist(), path.actions.tolist(), strict=True)))
        if k % 10 == 0 or k == rounds - 1:
            ends = (box.lower, plain.lower), (box.upper, plain.upper)
            worst = max(worst, *(float(np.abs(one - np.array(other))[:-1].max()) for one, other in ends))
    width = (box.upper - box.lower)[0, INITIAL]
    text = (
        f"the ends of intervals differ by at most {worst:.1e} from plain loops, in {rounds} rounds; those of the first "
        f"step end {width.mean():.2f} wide"
    )
    return judged(text, 0, {"ends": agreement(worst), "narrowed": _narrowed(width)}, difference=worst)


def _be_the_leader_sets(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """Each draw of the noise leads its own row of optimistic pairs of policy and kernel along one row of sets.

    The first set has seen some paths already, and most rounds bring no loss: what the sets do is not drowned.
    """
    world, rounds, draws, paths = SmallWorld.fixed(), 30, 8, effort.samples(8)
    excess, widths = -np.inf, []
    for _ in range(paths):
        box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA, scale=0.02))
        for _ in range(10):
            box = box.narrow(_walk(world, rng))
        sums = estimate = parts.laplace(1.0).perturbed(np.zeros(SHAPE), draws, rng)
        paid, started_again = np.zeros(draws), box.fallbacks
        for _ in range(rounds):
            paid += (_optimistic_occupancies(parts, box, sums) * estimate).sum(axis=(1, 2, 3))
            excess = max(excess, float((paid - extended_value_iteration(box.lower, box.upper, sums)[1]).max()))
            box = box.narrow(_walk(world, rng))
            if box.fallbacks > started_again:  # an empty intersection: these sets do not shrink
                break
            told = np.zeros(SHAPE)
            told[tuple(rng.integers(0, SHAPE))] = float(rng.random() < 0.2)
            estimate = np.repeat(told[None], draws, axis=0)
            sums = sums + estimate
        widths.append((box.upper - box.lower)[0, INITIAL].mean())
    text = (
        f"leaders that look one round ahead pay at most {max(excess, 0.0):.1e} more than the cheapest pair of the last "
        f"set, on {paths} paths with {draws} draws each; intervals of the first step end {np.mean(widths):.2f} wide"
    )
    return judged(text, 0, {"leaders": agreement(excess), "narrowed": _narrowed(np.array(widths))}, excess=excess)


def _optimistic_occupancies(parts: Parts, box: BernsteinBox, costs: Floats) -> Floats:
    """Where the cheapest pair of policy and kernel for each of `costs` `[n, h, s, a]` is, `[n, h, s, a]`."""
    actions = bind(parts.oracle, MarkovPolicies(box, INITIAL)).minimize(costs).actions
    values = box.cheapest(costs).values
    kernels = [box.optimistic_kernel(one).p for one in values]
    return np.stack([occupancies(p, policy[None])[0] for p, policy in zip(kernels, actions, strict=True)])


# --- the four terms ---------------------------------------------------------------------------------------------------


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
class _Seen:
    """One round."""

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
    seen: list[_Seen] = []
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
        told = learner.learn(distribution, Bandit.reveal(table, segment, weights)).total - distribution.total
        distribution = learner.learn(learner.observe(distribution, segment), Bandit.reveal(table, segment, weights))
        seen.append(_Seen(policy, optimistic, table, told, _plain_estimate(plain, world, table, rng)))
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


def _terms(world: SmallWorld, seen: list[_Seen], shortfall: float, width: float) -> RegretTerms:
    total = np.sum([one.table for one in seen], axis=0)
    at_best = occupancies(world.p, leaders(world.p, total[None]))[0]
    sums = np.zeros(3)
    for one in seen:
        real, dreamed = value(world.p, one.policy, one.table), value(one.optimistic, one.policy, one.table)
        hoped = value(one.optimistic, one.policy, one.estimate)
        sums += (real - dreamed, dreamed - hoped, hoped - float((at_best * one.estimate).sum()))
    bias2 = sum(float((at_best * (one.estimate - one.table)).sum()) for one in seen)
    unforeseen = np.array([float((at_best * (one.estimate - one.other)).sum()) for one in seen])
    regret = sum(value(world.p, one.policy, one.table) for one in seen) - float((at_best * total).sum())
    error, bias1, est_reg = sums.tolist()
    return RegretTerms(error, bias1, est_reg, bias2, regret, unforeseen, shortfall, width)


def _unknown_terms(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    games = [game(parts, ROUNDS, rng) for _ in range(effort.samples(4))]
    domain = MarkovPolicies(BernsteinBox.vacuous(SHAPE), INITIAL)
    rate, limit = laplace_rate(domain, ROUNDS), resampling_limit(domain, ROUNDS)
    allowed = 2.0 * STEPS * (1.0 + log(PAIRS)) / rate + 3.0 * rate * STEPS**2 * PAIRS * ROUNDS
    allowed += 8.0 * DELTA * ROUNDS * STEPS * limit
    means = {name: float(np.mean([getattr(one, name) for one in games])) for name in TERMS}
    differences = np.concatenate([one.unforeseen for one in games])
    chance = min(rates.symmetric(differences, 1.0), rates.symmetric(np.sign(differences), 1.0))
    width, shortfall = np.array([one.width for one in games]), max(one.shortfall for one in games)
    text = (
        f"Error {means['error']:.2f}, Bias1 {means['bias1']:.2f}, EstReg {means['est_reg']:.2f} (its bound "
        f"{allowed:.0f} is not judged: no learner loses more than {STEPS * ROUNDS}), Bias2 {means['bias2']:.2f} "
        f"(p = {chance:.2g}); regret {means['regret']:.2f}; intervals of the first step end {width.mean():.2f} wide"
    )
    margins = {
        "bias2": unsurprising(chance, 2),
        "greatest_chances": agreement(shortfall),
        "narrowed": _narrowed(width),
    }
    return judged(text, len(games) * ROUNDS, margins, **means)
