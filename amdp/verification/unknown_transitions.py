"""Unknown transitions: the confidence sets (section 3.2), and the terms of the regret of FTPL (appendix B.2)."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from amdp.algorithms.ftpl.perturbed_leader import laplace_rate, resampling_limit
from amdp.arrays import Actions, Floats
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Pairs, Segment
from amdp.model.transitions import Kernel
from amdp.oracles.base import bind
from amdp.verification import p_values, reference, worlds
from amdp.verification.base import FALSE_ALARM, Effort, Finding, Parts, check, equality_margin, judged, p_value_margin
from amdp.verification.comparison import SYMMETRIC, path_of
from amdp.verification.worlds import ACTIONS, DOMAIN, INITIAL, KERNEL, SHAPE, STEPS, TRANSITIONS

ROUNDS = 120
DELTA = 0.02
SCALE = 0.1  # of the radius in games: at full size the sets stay vacuous for thousands of rounds
MAX_WIDTH = 0.9  # of the intervals of a set that counts as narrowed, on average


def _walk(rng: np.random.Generator) -> Segment:
    return KERNEL.walk(np.full(SHAPE, 1.0 / ACTIONS), INITIAL, rng.random((STEPS, 2)))


def first_width(box: BernsteinBox) -> float:
    """The width of the intervals of the first step, on average."""
    return float((box.upper - box.lower)[0, INITIAL].mean())


@check(
    statement="Lemma 14: the confidence sets hold the true kernel (Lemma 2 of Jin et al.)",
    claim="with chance at least 1 - 4 delta the true kernel is in all sets",
    exact="the share of failures that is allowed, as a quantile of the binomial law",
    simulated="long paths of one policy, with sets narrowed after each until they say something",
    inequality="a quantile of the binomial law, at a chance of 4 delta each",
    rejects={"tight-radius": ("held",), "frozen-sets": ("narrowed",)},
)
def _coverage(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """One action, two states that are rarely left, ten steps: all rows but the first are visited often."""
    runs, failed, rounds, shape = effort.samples(12), 0, 1_800, (10, 2, 1)
    rows = np.tile(np.array([[[0.95, 0.05]], [[0.05, 0.95]]]), (shape[0], 1, 1, 1))
    kernel, radius = Kernel(rows), parts.radius(shape, rounds, DELTA)
    widths = []
    for _ in range(runs):
        box = parts.box.vacuous(shape, radius)
        for uniforms in rng.random((rounds, shape[0], 2)):
            box = box.narrow(kernel.walk(np.ones(shape), INITIAL, uniforms))
        # Sets are nested unless they were started again: in the last one is in all.
        failed += not box.contains(kernel) or box.fallbacks > 0
        widths.append((box.upper - box.lower)[1:-1].mean())
    most, width = int(binom.isf(FALSE_ALARM, runs, 4 * DELTA)), float(np.mean(widths))
    text = (
        f"{failed} of {runs} paths left the sets, whose intervals are {width:.2f} wide in the end; allowed "
        f"{most}, at a chance of {4 * DELTA:g} each"
    )
    return judged(text, runs, {"held": most - failed, "narrowed": MAX_WIDTH - width}, failed=failed)


@check(
    statement="Remark 15: the sets are intersections, so they shrink",
    claim="P_{k+1} is inside P_k",
    exact="the ends of all intervals, on each path",
    rejects={"boxes-not-nested": ("nested",), "frozen-sets": ("narrowed",)},
)
def _nestedness(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, ROUNDS, DELTA, scale=SCALE))
    rounds, worst = effort.samples(300), 0.0
    for _ in range(rounds):
        narrower = box.narrow(_walk(rng))
        if narrower.fallbacks == box.fallbacks:  # an empty intersection starts again, and is counted
            worst = max(worst, (box.lower - narrower.lower).max(), (narrower.upper - box.upper).max())
        box = narrower
    width = first_width(box)
    text = f"intervals of {rounds} rounds grow by at most {worst:.1e}; those of the first step end {width:.2f} wide"
    return judged(text, 0, {"nested": equality_margin(worst), "narrowed": MAX_WIDTH - width}, growth=worst)


@check(
    statement="appendix B.2.1: the confidence radius",
    claim="intervals are the mean -+ 4 sqrt(mean ln(10HSAK/delta) / n) + 10 ln(10HSAK/delta) / n, intersected",
    exact="all intervals, by plain loops over the counts, at full size until they say something",
    rejects={
        "tight-radius": ("ends",),
        "boxes-not-nested": ("ends",),
        "narrowed-at-powers-of-two": ("ends",),
        "frozen-sets": ("narrowed",),
    },
    correction="the index i of the printed radius is read as k; a row that was never visited is the whole simplex",
)
def _radius(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rounds = effort.samples(2_000)
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA))
    plain = reference.over_sets(SHAPE, INITIAL, 1.0, 1, rounds, DELTA, 1.0)
    worst = 0.0
    for k in range(rounds):
        segment = _walk(rng)
        box = box.narrow(segment)
        plain.observe(path_of(segment))
        if k % 10 == 0 or k == rounds - 1:
            ends = (box.lower, plain.lower), (box.upper, plain.upper)
            worst = max(worst, *(float(np.abs(ours - np.array(other))[:-1].max()) for ours, other in ends))
    width = first_width(box)
    text = (
        f"the ends of intervals differ by at most {worst:.1e} from plain loops, in {rounds} rounds; those of the first "
        f"step end {width:.2f} wide"
    )
    return judged(text, 0, {"ends": equality_margin(worst), "narrowed": MAX_WIDTH - width}, difference=worst)


@check(
    statement="Lemma 18: the error term over confidence sets that shrink",
    claim=(
        "sum over k = 0..K of V(pi_{k+1}; l_k, P_{k+1}) <= min over P_K of V(pi; l_{0:K}, P), for one noise l_0: "
        "leaders that look one round ahead, over sets that shrink"
    ),
    exact="the inequality for each draw of the noise, on each path",
    rejects={"boxes-not-nested": ("leaders",), "pessimism": ("leaders",), "frozen-sets": ("narrowed",)},
)
def _be_the_leader_sets(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """Each draw of the noise leads its own row of optimistic pairs of policy and kernel along one row of sets.

    The first set has seen some paths already, and most rounds bring no loss: what the sets do is not drowned.
    """
    rounds, draws, paths = 30, 8, effort.samples(8)
    excess, widths = -np.inf, []
    for _ in range(paths):
        box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, DELTA, scale=0.02))
        for _ in range(10):
            box = box.narrow(_walk(rng))
        sums = estimate = parts.laplace(1.0).perturbed(np.zeros(SHAPE), draws, rng)
        paid, started_again = np.zeros(draws), box.fallbacks
        for _ in range(rounds):
            paid += (_optimistic_occupancies(parts, box, sums) * estimate).sum(axis=(1, 2, 3))
            excess = max(excess, float((paid - worlds.extended_value_iteration(box.lower, box.upper, sums)[1]).max()))
            box = box.narrow(_walk(rng))
            if box.fallbacks > started_again:  # an empty intersection: these sets do not shrink
                break
            estimate = np.zeros((draws, *SHAPE))
            estimate[:, *rng.integers(0, SHAPE)] = float(rng.random() < 0.2)
            sums = sums + estimate
        widths.append(first_width(box))
    width = float(np.mean(widths))
    text = (
        f"leaders that look one round ahead pay at most {max(excess, 0.0):.1e} more than the cheapest pair of the last "
        f"set, on {paths} paths with {draws} draws each; intervals of the first step end {width:.2f} wide"
    )
    margins = {"leaders": equality_margin(excess), "narrowed": MAX_WIDTH - width}
    return judged(text, 0, margins, excess=excess)


def _optimistic_occupancies(parts: Parts, box: BernsteinBox, costs: Floats) -> Floats:
    """Where the cheapest pair of policy and kernel for each of `costs` `[n, h, s, a]` is, `[n, h, s, a]`."""
    actions = bind(parts.oracle, MarkovPolicies(box, INITIAL)).minimize(costs).actions
    kernels = [box.optimistic_kernel(values).p for values in box.cheapest(costs).values]
    return np.concatenate([worlds.occupancies(p, policy[None]) for p, policy in zip(kernels, actions, strict=True)])


@dataclass(frozen=True, eq=False)
class _Round:
    """What was played in a round, and its estimate."""

    policy: Actions
    optimistic: Floats  # the kernel of the leader
    table: Floats
    estimate: Floats
    other: Floats  # another estimate, by plain loops


@check(
    statement="Theorem 24: Bias2, beside EstReg, Error and Bias1 (appendix B.2.2)",
    claim=(
        "Bias2 is what v/q (1-(1-q)^L) - 1 leaves of the losses; v is at most q while the sets hold the kernel, so "
        "that it is at most 0 on average; EstReg, Error and Bias1 are measured"
    ),
    exact="the optimistic kernel of each round; true and greatest chances of the policies that were played",
    simulated="games of FTPL over boxes, and in each round the estimate of one more, by plain loops",
    inequality=SYMMETRIC,
    rejects={"wrong-step": ("greatest_chances",), "tripled-weights": ("bias2",), "frozen-sets": ("narrowed",)},
)
def _unknown_terms(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    rate, limit = laplace_rate(DOMAIN, ROUNDS), resampling_limit(DOMAIN, ROUNDS)
    terms, differences, shortfall, widths = [], [], 0.0, []
    for _ in range(effort.samples(4)):
        played, below, box = _game(parts, rate, limit, rng)
        of_game, unforeseen = _terms(played)
        terms.append(of_game)
        differences.append(unforeseen)
        shortfall = max(shortfall, below)
        widths.append(first_width(box))
    proved = worlds.proved_terms(rate, limit, ROUNDS)
    allowed = proved["error"] + proved["stability"] + 8.0 * DELTA * ROUNDS * STEPS * limit
    means = {name: float(np.mean([of_game[name] for of_game in terms])) for name in terms[0]}
    pooled, width = np.concatenate(differences), float(np.mean(widths))
    chance = min(p_values.symmetric(pooled, 1.0), p_values.symmetric(np.sign(pooled), 1.0))
    text = (
        f"Error {means['error']:.2f}, Bias1 {means['bias1']:.2f}, EstReg {means['est_reg']:.2f} (its bound "
        f"{allowed:.0f} is not judged: no learner loses more than {STEPS * ROUNDS}), Bias2 {means['bias2']:.2f} "
        f"(p = {chance:.2g}); regret {means['regret']:.2f}; intervals of the first step end {width:.2f} wide"
    )
    margins = {
        "bias2": p_value_margin(chance, 2),
        "greatest_chances": equality_margin(shortfall),
        "narrowed": MAX_WIDTH - width,
    }
    return judged(text, len(terms) * ROUNDS, margins, **means)


def _game(parts: Parts, rate: float, limit: int, rng: np.random.Generator) -> tuple[list[_Round], float, BernsteinBox]:
    """Play over boxes, and find the optimistic kernel of every round from the noise that the learner drew.

    Also how far a greatest chance is below the true one, at most, while the set holds the kernel; and the last box.
    """
    box = parts.box.vacuous(SHAPE, parts.radius(SHAPE, ROUNDS, DELTA, scale=SCALE))
    learner, plain = parts.ftpl(rate, limit), reference.over_sets(SHAPE, INITIAL, rate, limit, ROUNDS, DELTA, SCALE)
    means = rng.uniform(size=SHAPE)
    distribution: Any = learner.start(MarkovPolicies(box, INITIAL), rng)
    played: list[_Round] = []
    shortfall = 0.0
    for _ in range(ROUNDS):
        table = (rng.random(SHAPE) < means).astype(np.float64)
        twin = deepcopy(rng)  # draws the same noise again, so that the costs of the leader are known
        choices = distribution.draw(rng)
        policy = choices.argmax(axis=2).astype(np.int32)
        costs = distribution.perturbation.perturbed(distribution.total, 1, twin)[0]
        box = distribution.domain.dynamics
        optimistic = box.optimistic_kernel(box.cheapest(costs[None]).values[0]).p
        if box.contains(KERNEL):
            greatest = box.greatest_visits(choices[None], INITIAL, Pairs.all(SHAPE)).reshape(SHAPE)
            shortfall = max(shortfall, float((worlds.occupancies(TRANSITIONS, policy[None])[0] - greatest).max()))
        feedback = worlds.feedback_of_round(learner, distribution, choices, table, rng)
        estimate = learner.learn(distribution, feedback).total - distribution.total
        distribution = learner.learn(learner.observe(distribution, feedback.segment), feedback)
        played.append(_Round(policy, optimistic, table, estimate, _plain_estimate(plain, table, rng)))
        path = path_of(feedback.segment)
        plain.learn(path, feedback.weights.values.tolist(), table.tolist())
        plain.observe(path)
    return played, shortfall, distribution.domain.dynamics


def _plain_estimate(plain: reference.Episodes, table: Floats, rng: np.random.Generator) -> Floats:
    """The estimate of a round that the reference plays from the same history."""
    path = reference.walked(TRANSITIONS.tolist(), plain.drawn(rng), INITIAL, rng)
    estimate = np.zeros(SHAPE)
    for h, (s, a) in enumerate(path):
        estimate[h, s, a] = plain.counted(path, h, rng) * table[h, s, a]
    return estimate


def _terms(played: list[_Round]) -> tuple[dict[str, float], Floats]:
    """What each term adds to the regret; and the steps `[k]` of Bias2, less those of another draw of the same law."""
    total = np.sum([record.table for record in played], axis=0)
    at_best = worlds.occupancies(TRANSITIONS, worlds.leaders(TRANSITIONS, total[None]))[0]
    error = bias1 = est_reg = bias2 = paid = 0.0
    for record in played:
        true = worlds.value(TRANSITIONS, record.policy, record.table)
        optimistic = worlds.value(record.optimistic, record.policy, record.table)
        estimated = worlds.value(record.optimistic, record.policy, record.estimate)
        error += true - optimistic
        bias1 += optimistic - estimated
        est_reg += estimated - float((at_best * record.estimate).sum())
        bias2 += float((at_best * (record.estimate - record.table)).sum())
        paid += true
    unforeseen = np.array([float((at_best * (record.estimate - record.other)).sum()) for record in played])
    regret = paid - float((at_best * total).sum())
    return {"error": error, "bias1": bias1, "est_reg": est_reg, "bias2": bias2, "regret": regret}, unforeseen
