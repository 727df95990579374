"""Reach-scaled resampling, beyond the paper: what its proof puts in the place of the lemmas on geometric resampling."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np
import scipy

from amdp.algorithms.estimators.resampling import ScaledResampling, SharedScaledResampling
from amdp.algorithms.ftpl.perturbed_leader import PerturbedLeader
from amdp.arrays import Actions, Floats
from amdp.model.domains import MarkovPolicies
from amdp.model.reach import BATCH, BoxReach
from amdp.model.segments import Segment
from amdp.model.transitions import SparseKernel
from amdp.verification.base import FALSE_ALARM, Effort, Finding, Parts, check, equality_margin, judged
from amdp.verification.p_values import lower_mean
from amdp.verification.worlds import (
    ACTIONS,
    DOMAIN,
    INITIAL,
    KERNEL,
    SHAPE,
    STATES,
    STEPS,
    TRANSITIONS,
    extended_value_iteration,
    greatest_chances,
    laplace,
    leaders,
    occupancies,
)

RATE, LIMIT = 0.4, 200
CONTRAST = 14.0  # the sum of losses so far: some pairs are rare, so that trials go on for several batches
PATH = (INITIAL, 2, 2)  # states whose chances are far below their scale, and differ between policies
POLICIES = 200_000  # drawn by plain array operations, to know the chance of a pair
MEANS, SQUARES, EPISODES = 15_000, 3000, 1500  # weights, weights and episodes that the quick form draws
BOX_POLICIES = 30_000  # the same over a box, where a chance takes longer
BOUNDED = "limits of a bounded mean (Maurer and Pontil 2009)"


# --- weights ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Case:
    """One way to make trials, and what is known of them by plain array operations."""

    estimator: SharedScaledResampling | ScaledResampling
    domain: MarkovPolicies
    total: Floats
    scales: Floats  # [h, s], c
    chances: Floats  # [n, h, s, a], of independent policies of the leader's law

    @property
    def segment(self) -> Segment:
        """In each state of the path the rarer action."""
        states, mean = np.array(PATH), self.chances.mean(axis=0)
        return Segment(states, mean[np.arange(STEPS), states].argmin(axis=1))

    def distribution(self, parts: Parts, rng: np.random.Generator) -> tuple[Any, Any]:
        """The learner and its leader for `total`."""
        learner = parts.leader(parts.laplace(RATE), self.estimator, parts.oracle)
        return learner, replace(learner.start(self.domain, rng), total=self.total)

    def weights(self, parts: Parts, n: int, rng: np.random.Generator) -> Floats:
        """`n` independent weights `[n, h]` of the segment."""
        learner, distribution = self.distribution(parts, rng)
        segment = self.segment
        return np.array([learner.weigh(distribution, segment, rng).values for _ in range(n)])


def _every_policy() -> Actions:
    every = np.array(list(product(range(ACTIONS), repeat=STEPS * STATES)), dtype=np.int32)
    return every.reshape(-1, STEPS, STATES)


def _rounded(chances: Floats) -> Floats:
    """The scale `[h, s]`: the greatest of the chances `[n, h, s, a]`, rounded up to a multiple of `1 / LIMIT`."""
    greatest = chances.sum(axis=3).max(axis=0)
    return np.asarray(np.ceil(greatest * LIMIT - 1e-9) / LIMIT)


def _total() -> Floats:
    """Always the same sum of losses, with which the pairs of the path are rare."""
    return CONTRAST * np.random.default_rng(1).uniform(0.2, 1.0, size=SHAPE)


def _sparse() -> SparseKernel:
    return SparseKernel([scipy.sparse.csr_array(step.reshape(-1, STATES)) for step in TRANSITIONS])


def _over_kernels(rng: np.random.Generator) -> Iterator[_Case]:
    """Shared trials over a dense kernel, trials for each step over a sparse one."""
    total = _total()
    scales = _rounded(occupancies(TRANSITIONS, _every_policy()))
    chances = occupancies(TRANSITIONS, leaders(TRANSITIONS, total + laplace(POLICIES, RATE, rng)))
    yield _Case(SharedScaledResampling(LIMIT), DOMAIN, total, scales, chances)
    yield _Case(ScaledResampling(LIMIT), MarkovPolicies(_sparse(), INITIAL), total, scales, chances)


def _cases(parts: Parts, rng: np.random.Generator) -> Iterator[_Case]:
    """The same, and shared trials over a box, where chances are the greatest that a kernel of it allows."""
    yield from _over_kernels(rng)
    p, total = TRANSITIONS, _total()
    lower, upper = np.maximum(0.0, p - 0.1), np.minimum(1.0, p + 0.1)
    scales = _rounded(greatest_chances(lower, upper, _every_policy()))
    actions, _ = extended_value_iteration(lower, upper, total + laplace(BOX_POLICIES, RATE, rng))
    domain = MarkovPolicies(parts.box(lower, upper), INITIAL)
    yield _Case(SharedScaledResampling(LIMIT), domain, total, scales, greatest_chances(lower, upper, actions))


def _limits(samples: Floats, width: float, level: float) -> tuple[float, float]:
    """The mean lies below the first or above the second, each with chance at most `level`."""
    return lower_mean(samples, width, level), -lower_mean(-samples, width, level)


def _mean_of_weight(q: float, scale: float) -> float:
    return (1.0 - (1.0 - q / scale) ** round(scale * LIMIT)) / q


@check(
    statement="beyond the paper: the mean of scaled resampling, in the place of Lemma 38",
    claim="E[W] = (1 - (1 - q/c)^N) / q with N = c L, so that 1 - q E[W] <= exp(-L q); and W <= L",
    exact="the greatest chance c of each state over all policies, by enumeration; W <= L",
    simulated="weights of the library over a kernel, a sparse kernel and a box; q by plain planning on noise of numpy",
    inequality=BOUNDED,
    rejects={
        "scale-below-reach": ("mean",),
        "limit-not-scaled": ("limit",),
        "coins-twice": ("mean", "bias"),
    },
)
def _scaled_mean(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    samples, largest = effort.samples(MEANS), 0.0
    level = FALSE_ALARM / (3 * STEPS * 4)  # limits on both sides of E[W] and of q
    means, biases = [], []
    for case in _cases(parts, rng):
        weights = case.weights(parts, samples, rng)
        largest = max(largest, float(weights.max()))
        for h, (scale, chances) in enumerate(_at_pairs(case)):
            few, many = _limits(chances, scale, level)
            low, high = _limits(weights[:, h], LIMIT, level)
            least, most = _mean_of_weight(many, scale), _mean_of_weight(max(few, 1e-9), scale)
            means.append(min(high - least, most - low) / least)
            biases.append(np.exp(-LIMIT * few) - (1.0 - many * high))
    text = (
        f"{len(means)} means within their limits, by {min(means):.2g} of themselves at least; "
        f"weights reach {largest:.6g} of {LIMIT}"
    )
    margins = {"mean": min(means), "bias": min(biases), "limit": equality_margin(largest - LIMIT)}
    return judged(text, 3 * samples, margins, largest=largest)


def _at_pairs(case: _Case) -> Iterator[tuple[float, Floats]]:
    """The scale of each pair of the segment, and the chances `[n]` of trials there."""
    for h, s, a in zip(*case.segment.places, strict=True):
        yield float(case.scales[h, s]), case.chances[:, h, s, a]


@check(
    statement="beyond the paper: the second moments of scaled resampling, in the place of Lemma 39",
    claim="E[W^2] <= 2 / q^2; if trials are shared, E[W^h W^g] <= 2 / (q^h q^g)",
    exact="nothing",
    simulated="weights of the library over a kernel, a sparse kernel and a box; q by plain planning on noise of numpy",
    inequality=BOUNDED,
    rejects={"no-coin-between-batches": ("squares", "products")},
)
def _scaled_variance(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    samples, level = effort.samples(SQUARES), FALSE_ALARM / (3 * (STEPS + STEPS**2))
    squares, products = [], []
    for case in _cases(parts, rng):
        weights = case.weights(parts, samples, rng)
        q = [max(lower_mean(chances, scale, level), 1e-9) for scale, chances in _at_pairs(case)]
        squares += [_share(weights, q, (h, h), level) for h in range(STEPS)]
        if isinstance(case.estimator, SharedScaledResampling):
            products += [_share(weights, q, pair, level) for pair in permutations(range(STEPS), 2)]
    text = (
        f"E[W^2] is {max(squares):.2f} of 2/q^2 at most, E[W W'] of shared trials {max(products):.2f} of 2/(q q'), "
        f"by lower limits of the means"
    )
    margins = {"squares": 1.0 - max(squares), "products": 1.0 - max(products)}
    return judged(text, 3 * samples, margins, squares=max(squares), products=max(products))


def _share(weights: Floats, q: list[float], pair: tuple[int, int], level: float) -> float:
    """The lower limit of `E[W^g W^h]` as a share of `2 / (q^g q^h)`."""
    g, h = pair
    return lower_mean(weights[:, g] * weights[:, h], float(LIMIT**2), level) * q[g] * q[h] / 2.0


# --- trials -----------------------------------------------------------------------------------------------------------


@check(
    statement="beyond the paper: how many trials scaled resampling takes",
    claim="a step takes A C + b - 1 trials on average at most, with C the sum of c over all states and b a batch",
    exact="the greatest chance c of each state over all policies, by enumeration",
    simulated="trials of the library for each step of its episodes, over a kernel and a sparse kernel",
    inequality=BOUNDED,
    rejects={"no-coin-between-batches": ("trials",)},
)
def _scaled_trials(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    episodes, level, shares = effort.samples(EPISODES), FALSE_ALARM / (2 * STEPS), []
    kernel = KERNEL
    for case in _over_kernels(rng):
        each = replace(case, estimator=ScaledResampling(LIMIT))
        learner, distribution = each.distribution(parts, rng)
        trials = np.empty((episodes, STEPS))
        for i in range(episodes):
            walked = kernel.walk(distribution.draw(rng), INITIAL, rng.random((STEPS, 2)))
            trials[i] = [learner.weigh(distribution, pair, rng).trials for pair in _single_steps(walked)]
        allowed = ACTIONS * case.scales.sum(axis=1) + BATCH - 1
        shares += [lower_mean(trials[:, h], LIMIT, level) / allowed[h] for h in range(STEPS)]
    text = f"the trials of a step are {max(shares):.2f} of A C + b - 1 at most, by lower limits of their means"
    return judged(text, 2 * episodes, {"trials": 1.0 - max(shares)}, share=max(shares))


def _single_steps(walked: Segment) -> list[Segment]:
    """Each pair of a segment as a segment of its own."""
    return [Segment(walked.states[h : h + 1], walked.actions[h : h + 1], start=h) for h in range(STEPS)]


# --- confidence sets --------------------------------------------------------------------------------------------------


@check(
    statement="beyond the paper: the scale of resampling over confidence sets that narrow",
    claim="no policy and no kernel of the set gives a pair that was visited a chance above the scale in use",
    exact="the greatest chance over all policies and kernels, by enumeration, in every round",
    rejects={
        "stale-scale": ("scale",),
        "boxes-not-nested": ("scale",),
        "frozen-sets": ("narrowed",),
    },
)
def _scaled_sets(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """Sets with a small radius, whose rows become empty now and then and start again from the newest interval."""
    rounds, every = effort.samples(120), _every_policy()
    domain = MarkovPolicies(parts.box.vacuous(SHAPE, parts.radius(SHAPE, rounds, 0.1, scale=0.01)), INITIAL)
    learner = parts.leader(parts.laplace(RATE), SharedScaledResampling(LIMIT), parts.oracle)
    kernel, distribution, above = KERNEL, learner.start(domain, rng), 0.0
    for _ in range(rounds):
        walked = kernel.walk(distribution.draw(rng), INITIAL, rng.random((STEPS, 2)))
        reach = _box_reach(distribution)
        greatest = greatest_chances(reach.dynamics.lower, reach.dynamics.upper, every).sum(axis=3).max(axis=0)
        above = max(above, float((greatest[walked.places[:2]] - reach.bounds(walked)).max()))
        distribution = learner.observe(distribution, walked)
    box = _box_reach(distribution).dynamics
    width = float((box.upper - box.lower)[0, INITIAL].mean())
    text = (
        f"chances exceed the scale in use by {above:.1e} at most, in {rounds} rounds with {box.fallbacks} rows that "
        f"were empty; intervals of the first step are {width:.2f} wide at the end"
    )
    margins = {"scale": equality_margin(above), "narrowed": 0.9 - width}
    return judged(text, 0, margins, above=above, fallbacks=float(box.fallbacks))


def _box_reach(distribution: PerturbedLeader) -> BoxReach:
    """What the learner knows of the reach over the set that it plans with."""
    reach = distribution.reach
    assert isinstance(reach, BoxReach)
    assert reach.dynamics is distribution.domain.dynamics
    return reach
