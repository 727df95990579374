"""Geometric resampling and importance weighting: what the estimates are on average, and how much they scatter."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from amdp.arrays import Actions, Floats
from amdp.dynamics import Segment
from amdp.feedback import Bandit
from amdp.mdp import Kernel, MarkovPolicies
from amdp.verification.base import Check, Effort, Finding, Parts, deviations, finding, threshold
from amdp.verification.worlds import ACTIONS, STATES, STEPS, SmallWorld, laplace, mean_occupancy, occupancies

RATE, LIMIT = 0.4, 3
LAWS = 400_000  # draws that make the law of the leader known


def checks() -> list[Check]:
    """The lemmas on estimators."""
    return [
        Check(
            "resampling-mean",
            "Lemma 1 of Neu and Bartok, appendix: expectation of geometric resampling",
            "E[estimate] = (1 - (1-q)^L) loss",
            "the truncated geometric law, given q",
            "episodes with their counts; q by plain backward induction on noise of numpy",
            ("scale-for-rate", "no-truncation", "fixed-noise"),
            _resampling_mean,
        ),
        Check(
            "resampling-variance",
            "appendix: variance of geometric resampling",
            "E[estimate^2] = loss^2 q E[M^2], at most 2 loss^2 / q",
            "the second moment of the truncated law, given q",
            "episodes with their counts",
            ("scale-for-rate", "no-truncation", "fixed-noise"),
            _resampling_variance,
        ),
        Check(
            "resampling-unequal",
            "corollaries, appendix: expectation and variance with unequal probabilities",
            "visited with chance v, tried with chance q: E[estimate] = (v/q) (1 - (1-q)^L) loss, "
            "E[estimate^2] <= 2 loss^2 v / q^2",
            "greatest visit chances over the box by hand, the truncated law",
            "episodes over a box with their counts; policies by plain extended value iteration",
            ("wrong-step", "scale-for-rate", "no-truncation", "fixed-noise"),
            _resampling_unequal,
        ),
        Check(
            "importance-weighting",
            "appendix: mean and variance of importance weighting",
            "E[estimate] = loss, E[estimate^2] = loss^2 / q",
            "everything: all policies and all paths are enumerated",
            "",
            ("exploring-weights",),
            _importance_weighting,
        ),
        Check(
            "delayed-weights",
            "section 4: with delays the estimators are those of the undelayed run",
            "the estimate of a round has the mean (1 - (1-q)^L) loss with q of the round that was played",
            "q = 1/2 before anything was learned, the truncated law",
            "three rounds with late feedback of the first, many times",
            ("late-weights",),
            _delayed_weights,
        ),
    ]


def truncated_mean(q: Floats, limit: int) -> Floats:
    """`E[min(Geo(q), L)] = (1 - (1-q)^L) / q`."""
    return np.array((1.0 - (1.0 - q) ** limit) / q)


def truncated_square(q: Floats, limit: int) -> Floats:
    """`E[min(Geo(q), L)^2] = sum over n <= L of (2n - 1) (1-q)^(n-1)`."""
    n = np.arange(1, limit + 1)
    return np.array(((2 * n - 1) * (1.0 - q[..., None]) ** (n - 1)).sum(axis=-1))


def _losses(rng: np.random.Generator) -> Floats:
    return rng.uniform(0.2, 1.0, size=(STEPS, STATES, ACTIONS))


def _estimates(parts: Parts, domain: MarkovPolicies, total: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Estimates `[n, h, s, a]` of losses that are 1 everywhere, each of one episode in the small world."""
    learner = parts.ftpl(RATE, LIMIT)
    kernel = SmallWorld.fixed().kernel
    source: Any = replace(learner.start(domain, rng), total=total)
    table = np.ones(domain.shape)
    found = np.empty((n, *domain.shape))
    for i in range(n):
        segment = kernel.walk(source.draw(rng), domain.initial, rng.random((STEPS, 2)))
        told = Bandit.told(table, segment, learner.weigh(source, segment, rng))
        found[i] = learner.learn(source, told).total - total
    return found


def _moments(found: Floats) -> tuple[Floats, Floats]:
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))


def _known(parts: Parts, effort: Effort, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Estimates, the visit chance of every pair and its standard error, after some losses were learned."""
    world = SmallWorld.fixed()
    total = 3.0 * _losses(rng)
    found = _estimates(parts, world.domain, total, effort.samples(4000), rng)
    return found, *mean_occupancy(world.p, total, laplace(LAWS, RATE, rng))


def _resampling_mean(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    found, q, error = _known(parts, effort, rng)
    expected = 1.0 - (1.0 - q) ** LIMIT
    mean, scatter = _moments(found)
    slope = LIMIT * (1.0 - q) ** (LIMIT - 1)  # what an error of q does to the expectation
    return _compared("mean", mean, expected, np.hypot(scatter, slope * error), len(found))


def _resampling_variance(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    found, q, error = _known(parts, effort, rng)
    seen = q > 0.0
    expected = np.where(seen, q * truncated_square(np.where(seen, q, 1.0), LIMIT), 0.0)
    allowed = 2.0 / np.where(seen, q, 1.0)
    square, scatter = _moments(found**2)
    result = _compared("second moment", square, expected, np.hypot(scatter, LIMIT**2 * error), len(found))
    below = bool((expected <= allowed)[seen].all())
    return result if below else replace(result, verdict=finding(False, "", 0, 0.0).verdict)


def _compared(what: str, mean: Floats, expected: Floats, error: Floats, samples: int) -> Finding:
    off, most = float(deviations(mean, expected, error).max()), threshold(mean.size)
    text = f"{what} of the estimates: at most {off:.1f} standard errors off, of {mean.size} pairs; allowed {most:.1f}"
    return finding(off <= most, text, samples, most - off, deviations=off)


# --- over a box -------------------------------------------------------------------------------------------------------


def _box_around(p: Floats, half_width: float = 0.12) -> tuple[Floats, Floats]:
    return np.maximum(0.0, p - half_width), np.minimum(1.0, p + half_width)


def optimistic_leaders(lower: Floats, upper: Floats, costs: Floats) -> Actions:
    """The policies `[n, h, s]` of extended value iteration, for two states: all spare mass goes to the cheaper one."""
    n, steps, states, _ = costs.shape
    actions = np.empty((n, steps, states), dtype=np.int32)
    ahead = np.zeros((n, states))
    for h in reversed(range(steps)):
        worth = costs[:, h].copy()
        if h < steps - 1:
            to_first = np.minimum(upper[h, ..., 0], 1.0 - lower[h, ..., 1])  # [s, a], as likely as can be
            to_second = np.minimum(upper[h, ..., 1], 1.0 - lower[h, ..., 0])
            first = to_first * ahead[:, None, None, 0] + (1.0 - to_first) * ahead[:, None, None, 1]
            second = (1.0 - to_second) * ahead[:, None, None, 0] + to_second * ahead[:, None, None, 1]
            worth += np.minimum(first, second)
        actions[:, h] = worth.argmin(axis=2)
        ahead = worth.min(axis=2)
    return actions


def greatest_chances(lower: Floats, upper: Floats, actions: Actions) -> Floats:
    """The greatest chance `[n, h, s, a]` of each pair over the kernels of the box, for two states, by hand."""
    n, steps, states = actions.shape
    result = np.zeros((n, steps, states, ACTIONS))
    for h, target in product(range(steps), range(states)):
        reach = np.zeros((n, states))
        reach[:, target] = 1.0
        for step in reversed(range(h)):
            best = np.empty((n, states))
            for s in range(states):
                row = actions[:, step, s]
                most = np.stack(
                    [np.minimum(upper[step, s, row, y], 1.0 - lower[step, s, row, 1 - y]) for y in range(states)],
                    axis=1,
                )
                best[:, s] = np.maximum(
                    most[:, 0] * reach[:, 0] + (1.0 - most[:, 0]) * reach[:, 1],
                    (1.0 - most[:, 1]) * reach[:, 0] + most[:, 1] * reach[:, 1],
                )
            reach = best
        result[np.arange(n), h, target, actions[:, h, target]] = reach[:, 0]
    return result


def _resampling_unequal(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    lower, upper = _box_around(world.p)
    domain = MarkovPolicies(parts.box(lower, upper))
    total = 3.0 * _losses(rng)
    found = _estimates(parts, domain, total, effort.samples(1500), rng)
    policies = optimistic_leaders(lower, upper, total + laplace(LAWS // 4, RATE, rng))
    visited, v_error = _moments(occupancies(world.p, policies))
    tried, q_error = _moments(greatest_chances(lower, upper, policies))
    seen = tried > 0.0
    q = np.where(seen, tried, 1.0)
    expected = np.where(seen, visited * truncated_mean(q, LIMIT), 0.0)
    squares = np.where(seen, visited * truncated_square(q, LIMIT), 0.0)
    error = LIMIT**2 * np.hypot(v_error, q_error)
    mean, scatter = _moments(found)
    square, square_scatter = _moments(found**2)
    both = _compared(
        "mean and second moment",
        np.stack([mean, square]),
        np.stack([expected, squares]),
        np.hypot(np.stack([scatter, square_scatter]), error),
        len(found),
    )
    below = bool((squares <= 2.0 * visited / q**2 + 1e-12).all())
    return both if below else replace(both, verdict=finding(False, "", 0, 0.0).verdict)


# --- exact ------------------------------------------------------------------------------------------------------------


def _importance_weighting(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    world = SmallWorld.fixed()
    learner = parts.hedge(0.3, parts.weighting())
    start = learner.start(world.domain, rng)
    mixture = replace(start, paid=rng.uniform(0.0, 8.0, len(start.paid))).mixture
    losses = _losses(rng)
    mean, square = np.zeros(losses.shape), np.zeros(losses.shape)
    q = (mixture.chances[:, None, None, None] * occupancies(world.p, mixture.experts.actions)).sum(axis=0)
    for states in product(range(STATES), repeat=STEPS - 1):
        for actions in product(range(ACTIONS), repeat=STEPS):
            path = Segment(np.array([0, *states]), np.array(actions))
            chance = _chance_of_path(world, mixture, path)
            if chance == 0.0:
                continue
            weights = parts.weighting().weigh(mixture, path, rng)
            estimate = parts.weighting().add(np.zeros(losses.shape), Bandit.told(losses, path, weights), mixture)
            mean += chance * estimate
            square += chance * estimate**2
    reached = q > 1e-12
    off = float(np.abs(mean - losses)[reached].max())
    off_square = float(np.abs(square - losses**2 / np.where(reached, q, 1.0))[reached].max())
    worst = max(off, off_square)
    text = f"off by at most {off:.1e} in the mean and {off_square:.1e} in the second moment; allowed 1e-9"
    return finding(worst <= 1e-9, text, 0, 1e-9 - worst, mean=off, second_moment=off_square)


def _chance_of_path(world: SmallWorld, mixture: Any, path: Segment) -> float:
    moves = np.prod([world.p[h, path.states[h], path.actions[h], path.states[h + 1]] for h in range(STEPS - 1)])
    agree = (mixture.experts.actions[:, np.arange(STEPS), path.states] == path.actions).all(axis=1)
    return float(moves * mixture.chances[agree].sum())


def _delayed_weights(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """A bandit: one step, one state, two actions; feedback of the first round comes when other losses were learned."""
    kernel = Kernel(np.ones((1, 1, ACTIONS, 1)))
    domain = MarkovPolicies(kernel)
    learner = parts.ftpl(RATE, LIMIT)
    runs = effort.samples(3000)
    added = np.empty((runs, ACTIONS))
    for i in range(runs):
        source: Any = learner.start(domain, rng)
        first = kernel.walk(source.draw(rng), 0, rng.random((1, 2)))
        weights = learner.weigh(source, first, rng)
        moved = replace(source, total=np.array([[[6.0, 0.0]]]))  # by then the first action is known to be dear
        after = learner.learn(moved, Bandit.told(np.ones((1, 1, ACTIONS)), first, weights))
        added[i] = (after.total - moved.total)[0, 0]
    expected = np.full(ACTIONS, 1.0 - 0.5**LIMIT)
    mean, scatter = _moments(added)
    return _compared("mean", mean, expected, scatter, runs)
