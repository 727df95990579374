"""Confidence sets of unknown transitions: coverage, nestedness, the radius, and be-the-leader over sets that shrink."""

import numpy as np
from scipy.stats import binom

from amdp.arrays import Floats
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel
from amdp.oracles.base import bind
from amdp.verification import reference
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
)
from amdp.verification.worlds import (
    ACTIONS,
    INITIAL,
    SHAPE,
    STEPS,
    SmallWorld,
    extended_value_iteration,
    occupancies,
)

ROUNDS = 120
DELTA = 0.02
SCALE = 0.1  # of the radius in games: at full size the sets stay vacuous for thousands of rounds
MAX_WIDTH = 0.9  # of the intervals of a set that counts as narrowed, on average


def checks() -> list[Check]:
    """The confidence sets: section 3.2 and appendix B.2."""
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
            NO_FALSE_ALARM,
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
            NO_FALSE_ALARM,
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
            NO_FALSE_ALARM,
        ),
    ]


def _walk(world: SmallWorld, rng: np.random.Generator) -> Segment:
    uniform = np.full(SHAPE, 1.0 / ACTIONS)
    return world.kernel.walk(uniform, INITIAL, rng.random((STEPS, 2)))


def width_margin(widths: Floats) -> float:
    """The margin of confidence sets that must be narrower than the whole simplex."""
    return MAX_WIDTH - float(widths.mean())


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
    return judged(text, runs, {"held": most - failed, "narrowed": width_margin(np.array(widths))}, failed=failed)


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
    return judged(text, 0, {"nested": equality_margin(worst), "narrowed": width_margin(width)}, growth=worst)


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
            worst = max(worst, *(float(np.abs(ours - np.array(other))[:-1].max()) for ours, other in ends))
    width = (box.upper - box.lower)[0, INITIAL]
    text = (
        f"the ends of intervals differ by at most {worst:.1e} from plain loops, in {rounds} rounds; those of the first "
        f"step end {width.mean():.2f} wide"
    )
    return judged(text, 0, {"ends": equality_margin(worst), "narrowed": width_margin(width)}, difference=worst)


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
            losses = np.zeros(SHAPE)
            losses[tuple(rng.integers(0, SHAPE))] = float(rng.random() < 0.2)
            estimate = np.repeat(losses[None], draws, axis=0)
            sums = sums + estimate
        widths.append((box.upper - box.lower)[0, INITIAL].mean())
    text = (
        f"leaders that look one round ahead pay at most {max(excess, 0.0):.1e} more than the cheapest pair of the last "
        f"set, on {paths} paths with {draws} draws each; intervals of the first step end {np.mean(widths):.2f} wide"
    )
    margins = {"leaders": equality_margin(excess), "narrowed": width_margin(np.array(widths))}
    return judged(text, 0, margins, excess=excess)


def _optimistic_occupancies(parts: Parts, box: BernsteinBox, costs: Floats) -> Floats:
    """Where the cheapest pair of policy and kernel for each of `costs` `[n, h, s, a]` is, `[n, h, s, a]`."""
    actions = bind(parts.oracle, MarkovPolicies(box, INITIAL)).minimize(costs).actions
    values = box.cheapest(costs).values
    kernels = [box.optimistic_kernel(value).p for value in values]
    return np.stack([occupancies(p, policy[None])[0] for p, policy in zip(kernels, actions, strict=True)])
