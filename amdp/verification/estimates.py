"""Geometric resampling and importance weighting: what the estimates are on average, and how much they scatter."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from amdp.algorithms.ftpl import Ftpl
from amdp.arrays import Actions, Floats
from amdp.dynamics import Segment
from amdp.feedback import Bandit
from amdp.losses import FixedLosses
from amdp.mdp import Kernel, MarkovPolicies
from amdp.seeding import Streams
from amdp.simulation import Episodic, Game, play
from amdp.verification.base import NO_CHANCE, Check, Effort, Finding, Parts, Verdict, deviations, finding, threshold
from amdp.verification.worlds import ACTIONS, STATES, STEPS, SmallWorld, laplace, mean_occupancy, occupancies

RATE, LIMIT = 0.4, 3
LAWS = 400_000  # draws that make the law of the leader known


def checks() -> list[Check]:
    """The lemmas on estimators."""
    return [
        Check(
            "resampling-mean",
            "Lemma 38: expectation of geometric resampling (Lemma 1 of Neu and Bartok)",
            "E[estimate] = (1 - (1-q)^L) loss",
            "the truncated geometric law, given q",
            "episodes with their counts; q by plain backward induction on noise of numpy",
            ("scale-for-rate", "no-truncation", "fixed-noise"),
            _resampling_mean,
        ),
        Check(
            "resampling-variance",
            "Lemma 39: variance of geometric resampling",
            "E[estimate^2] = loss^2 q E[M^2], at most 2 loss^2 / q",
            "the second moment of the truncated law, given q",
            "episodes with their counts",
            ("scale-for-rate", "no-truncation", "fixed-noise"),
            _resampling_variance,
        ),
        Check(
            "resampling-unequal",
            "Corollary 40, Corollary 41: expectation and variance with unequal probabilities",
            "visited with chance v, tried with chance q: E[estimate] = (v/q) (1 - (1-q)^L) loss, "
            "E[estimate^2] <= 2 loss^2 v / q^2",
            "greatest visit chances over the box by hand, the truncated law",
            "episodes over a box with their counts; policies by plain extended value iteration",
            ("wrong-step", "scale-for-rate", "no-truncation", "fixed-noise"),
            _resampling_unequal,
        ),
        Check(
            "importance-weighting",
            "Lemma 42, Lemma 43: mean and variance of importance weighting",
            "E[estimate] = loss, E[estimate^2] = loss^2 / q",
            "everything: all policies and all paths are enumerated",
            "",
            ("exploring-weights",),
            _importance_weighting,
            NO_CHANCE,
        ),
        Check(
            "delayed-weights",
            "section 4: with delays the estimators are those of the undelayed run",
            "the estimate of a round has the mean (1 - (1-q)^L) loss with q of the round that was played",
            "q = 1/2 before anything was learned, the truncated law",
            "games of five rounds in which feedback of the first comes last",
            ("late-weights", "delay-off-by-one"),
            _delayed_weights,
        ),
    ]


def truncated_moment(q: Floats, limit: int, power: int) -> Floats:
    """`E[min(Geo(q), L)^power]`."""
    n = np.arange(1, limit + 1)
    miss = 1.0 - q[..., None]
    chances = np.where(n < limit, q[..., None] * miss ** (n - 1), miss ** (n - 1))
    return np.array((n**power * chances).sum(axis=-1))


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
    return _moment_of(found, q, q, error, 1)


def _resampling_variance(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    found, q, error = _known(parts, effort, rng)
    seen = q > 0.0
    below = (q * truncated_moment(q, LIMIT, 2) <= 2.0 / np.where(seen, q, 1.0))[seen].all()
    return _also(bool(below), _moment_of(found, q, q, error, 2))


def _moment_of(found: Floats, visited: Floats, tried: Floats, error: Floats, power: int) -> Finding:
    """The mean of a power of the estimates against its law; they scatter as that law says, not as they did."""
    expected = visited * truncated_moment(tried, LIMIT, power)
    variance = visited * truncated_moment(tried, LIMIT, 2 * power) - expected**2
    scatter = np.sqrt(np.maximum(variance, 0.0) / len(found))
    off = np.hypot(scatter, LIMIT ** (power + 1) * error)
    return _compared(f"mean of power {power}", (found**power).mean(axis=0), expected, off, len(found))


def _also(condition: bool, found: Finding) -> Finding:
    return found if condition else replace(found, verdict=Verdict.FAILS)


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
    error = np.hypot(v_error, q_error)
    mean, square = (_moment_of(found, visited, tried, error, power) for power in (1, 2))
    squares = visited * truncated_moment(tried, LIMIT, 2)
    below = bool((squares * tried**2 <= 2.0 * visited + 1e-12).all())
    return _also(below and mean.verdict is Verdict.HOLDS, square if square.margin < mean.margin else mean)


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


@dataclass(frozen=True)
class _Watched(Ftpl):
    """Keeps what each feedback added, in the order of arrival."""

    added: list[Floats] = field(default_factory=list, compare=False)

    def learn(self, source: Any, feedback: Any) -> Any:
        after = super().learn(source, feedback)
        self.added.append(after.total - source.total)
        return after


def _delayed_weights(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    """A bandit: when the first round's feedback arrives, four rounds have shown that its first action is dear."""
    kernel = Kernel(np.ones((1, 1, ACTIONS, 1)))
    dear = np.zeros((5, 1, 1, ACTIONS))
    dear[0], dear[1:, ..., 0] = 1.0, 1.0
    game = Game(Episodic(kernel), FixedLosses(dear), parts.delays(np.array([4, 0, 0, 0, 0])))
    runs = effort.samples(2000)
    found = np.zeros((runs, ACTIONS))
    for i in range(runs):
        learner = _Watched(parts.laplace(5.0), parts.resampling(LIMIT), parts.oracle)
        seed = int(rng.integers(2**32))
        for _ in play(game, learner, game.arena.domain, Streams.from_seed(seed)):
            pass
        if len(learner.added) == 5:  # in its own round the last feedback comes after the first one's
            found[i] = learner.added[3][0, 0]
    q = np.full(ACTIONS, 0.5)
    return _moment_of(found, q, q, np.zeros(ACTIONS), 1)
