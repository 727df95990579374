"""FTPL: noise, whole episodes against the printed algorithm in numpy, the spread of resampling weights, growth."""

import resource
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from itertools import islice
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp import Kernel, MarkovPolicies, kernels, losses
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, PerturbedLeader
from amdp.arrays import Floats
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.kernels.layout import lanes
from amdp.model.reach import BATCH
from amdp.model.segments import Shape
from benchmarks import worlds
from benchmarks.results import Goal, Row, as_long, at_least, at_most, faster
from benchmarks.timing import Call, Effort, side_by_side

Rows = Iterator[Row]

SEED = 20_261
SMALL: Shape = (10, 10, 4)  # steps, states, actions
ROUNDS = 10_000  # what the learners are tuned for
WARM_UP = 300  # rounds played before the clock runs: estimates as large as in mid-game
WEIGHED_STATES = (5, 10, 20, 40, 80)  # with the steps and actions of `SMALL`
WEIGHED = (3, 6, 50)  # kernels, segments of each, repeats of each segment
SPREAD_GOAL, SPREAD_GOAL_FROM = at_most(0.65), 10  # states


def noise(effort: Effort) -> Rows:
    """Laplace noise for a batch of perturbed losses."""
    rng = np.random.default_rng(SEED)
    total, n = rng.random(SMALL), 128
    size = (SMALL[0], n, *SMALL[1:])
    contestants: dict[str, Call] = {
        "amdp": partial(Laplace(0.01).perturbed, total, n, rng),
        "Generator.laplace": lambda: total[:, None] + rng.laplace(scale=100.0, size=size),
    }
    times = side_by_side(contestants, effort)
    yield faster("Laplace noise", _sizes(SMALL, n=n), times, "amdp", "Generator.laplace", at_least(5.0))


def episode(effort: Effort) -> Rows:
    """One whole episode in mid-game: play, resample, learn."""
    rng = np.random.default_rng(SEED)
    kernel = worlds.kernel(SMALL, rng)
    contestants: dict[str, Call] = {
        "shared": _round(kernel, shared=True),
        "independent": _round(kernel, shared=False),
        "numpy, trial by trial": _printed(kernel),
    }
    few = Effort(min(effort.rounds, 5), 0.0, 0.0) if effort.seconds else effort
    times = side_by_side(contestants, few)
    goals = {"shared": at_least(60.0), "independent": at_least(30.0)}
    for name, goal in goals.items():
        yield faster(f"episode, {name} trials", _sizes(SMALL, K=ROUNDS), times, name, "numpy, trial by trial", goal)


def overhead(effort: Effort) -> Rows:
    """Rounds of `play` against their compiled calls alone: the same noise, sweeps and simulations."""
    games = ((SMALL, 60), ((20, 50, 4), 3)) if effort.seconds else ((SMALL, 6),)
    for name, shared in (("shared", True), ("independent", False)):
        for shape, rounds in games:
            kernel = worlds.kernel(shape, np.random.default_rng(SEED))
            tables = np.random.default_rng(SEED).random((rounds, *shape))
            game, domain = ArenaGame(Episodic(kernel), losses.FixedLosses(tables)), MarkovPolicies(kernel)
            learner = Ftpl.tuned(domain, ROUNDS, resampling=SharedResampling if shared else GeometricResampling)
            contestants: dict[str, Call] = {
                "play": partial(_played, game, learner, domain),
                "kernels": _kernels_alone(kernel, learner, tables),
            }
            times = side_by_side(contestants, effort)
            what = f"{rounds} rounds of play, {name} trials"
            yield as_long(what, _sizes(shape, K=ROUNDS), times, "play", "kernels", at_most(1.15))


def weights(effort: Effort) -> Rows:
    """The standard deviation of resampling weights given the segment, and the trials: reach-scaled against plain.

    Dense Dirichlet kernels; both weigh the same segments from the same mid-game distribution. Deviations are averaged
    over the steps, the segments and the kernels, and the ratio is that of the averages: large weights count most.
    """
    for states in WEIGHED_STATES if effort.seconds else WEIGHED_STATES[:2]:
        shape = _resized(SMALL, 1, states)
        count, segments, repeats = WEIGHED if effort.seconds else (1, 2, 10)
        pairs = [pair for seed in range(count) for pair in _weighed_pairs(shape, seed, segments, repeats)]
        scaled, plain = (np.array([pair[i].deviations for pair in pairs]) for i in (0, 1))
        fewer, more = (float(np.mean([pair[i].trials for pair in pairs])) for i in (0, 1))
        sizes, peer, ratio = _sizes(shape, K=ROUNDS), "plain shared trials", "ours / theirs"
        low, high = np.quantile(scaled.mean(axis=1) / plain.mean(axis=1), (0.25, 0.75))
        goal = SPREAD_GOAL if states >= SPREAD_GOAL_FROM else None
        note = f"mean of the ratios of single steps {float((scaled / plain).mean()):.2f}"
        ours, theirs = float(scaled.mean()), float(plain.mean())
        what = "deviation of the weights, scaled trials"
        yield Row(what, peer, ours, theirs, "", sizes, ours / theirs, ratio, (float(low), float(high)), goal, note)
        yield Row("trials of an episode, scaled", peer, fewer, more, "", sizes, fewer / more, ratio)


def growth(effort: Effort) -> Rows:
    """Seconds an episode as each size doubles, and the exponent.

    Theory: a trial costs `HS^2 A`, and an episode takes at most `HSA` of them on average, at most `L ~ sqrt(K)`.
    """
    theory = {"H": 2.0, "S": 3.0, "A": 2.0}
    for axis, (letter, most) in enumerate(theory.items()):
        sizes = [4, 8, 16, 32] if letter != "A" else [2, 4, 8]
        shapes = [_resized((8, 8, 4), axis, size) for size in sizes]
        yield _exponent(letter, sizes, [_seconds(shape, ROUNDS, effort) for shape in shapes], most)
    rounds = [1_000, 10_000, 100_000]
    yield _exponent("K", rounds, [_seconds(SMALL, k, effort) for k in rounds], 0.5)


def long_run(effort: Effort) -> Rows:
    """Bandit feedback, known transitions, one core: seconds and memory of a whole run."""
    rounds = 10_000 if effort.seconds else 200
    rng = np.random.default_rng(SEED)
    kernel = worlds.kernel(SMALL, rng)
    game = ArenaGame(Episodic(kernel), losses.named("bernoulli", SMALL, rounds, SEED, rng.random(SMALL)))
    domain = MarkovPolicies(kernel)
    learner = Ftpl.tuned(domain, rounds, resampling=SharedResampling)
    list(islice(play_rounds(game, learner, domain, Streams.from_seed(0)), 50))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = perf_counter()
    regret = measure(game, play_rounds(game, learner, domain, Streams.from_seed(0)), checkpoints=[rounds])
    seconds = perf_counter() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    note = f"regret {regret.low[-1]:.0f}, {regret.trials[-1] / rounds:.0f} trials a round, {grown:.0f} MB more memory"
    yield Row("whole run, shared trials", "", seconds, seconds / rounds, "s", _sizes(SMALL, K=rounds), note=note)


CASES = {
    "noise": noise,
    "episode": episode,
    "overhead": overhead,
    "weights": weights,
    "growth": growth,
    "long-run": long_run,
}


class Weighed(NamedTuple):
    """What repeats of the resampling of one segment gave."""

    deviations: Floats  # [h], of the weight of each step
    trials: float  # on average


def _weighed_pairs(shape: Shape, seed: int, segments: int, repeats: int) -> Iterator[tuple[Weighed, Weighed]]:
    """For each segment of a mid-game in a kernel of its own: scaled and plain."""
    kernel, rng = worlds.kernel(shape, np.random.default_rng([SEED, seed])), np.random.default_rng([SEED, seed, 1])
    learner, distribution = _leader(kernel, ROUNDS, SharedScaledResampling)
    assert isinstance(learner.estimator, Resampling)
    plain = SharedResampling(learner.estimator.limit)
    for _ in range(segments):
        segment = kernel.walk(distribution.draw(rng), 0, rng.random((shape[0], 2)))
        scaled, coins = (
            [estimator.weigh(distribution, segment, rng) for _ in range(repeats)]
            for estimator in (learner.estimator, plain)
        )
        yield _summary(scaled), _summary(coins)


def _summary(found: list[Weights]) -> Weighed:
    deviations = np.std([weights.values for weights in found], axis=0, ddof=1)
    return Weighed(deviations, float(np.mean([weights.trials for weights in found])))


def _leader(kernel: Kernel, rounds: int, resampling: type[Resampling]) -> tuple[Ftpl, PerturbedLeader]:
    """A learner and its distribution in mid-game."""
    domain = MarkovPolicies(kernel)
    learner = Ftpl.tuned(domain, rounds, resampling=resampling)
    rng = np.random.default_rng(SEED)
    distribution = learner.start(domain, rng)
    for _ in range(WARM_UP):
        segment = kernel.walk(distribution.draw(rng), 0, rng.random((kernel.shape[0], 2)))
        weights = learner.weigh(distribution, segment, rng)
        distribution = learner.learn(distribution, Bandit.reveal(rng.random(kernel.shape), segment, weights))
    return learner, distribution


def _round(kernel: Kernel, shared: bool, rounds: int = ROUNDS) -> Call:
    """One round after the warm-up, always from the same distribution."""
    learner, distribution = _leader(kernel, rounds, SharedResampling if shared else GeometricResampling)
    table = np.random.default_rng(SEED).random(kernel.shape)
    rng = np.random.default_rng(SEED + 1)

    def call() -> object:
        segment = kernel.walk(distribution.draw(rng), 0, rng.random((kernel.shape[0], 2)))
        weights = learner.weigh(distribution, segment, rng)
        return learner.learn(distribution, Bandit.reveal(table, segment, weights))

    return call


def _played(game: ArenaGame, learner: Ftpl, domain: MarkovPolicies) -> int:
    return sum(one.trials for one in play_rounds(game, learner, domain, Streams.from_seed(SEED)))


def _kernels_alone(kernel: Kernel, learner: Ftpl, tables: Floats) -> Call:
    """What compiled code does in the same rounds as `_played`, recorded, and nothing else."""
    assert isinstance(learner.perturbation, Laplace)
    assert isinstance(learner.estimator, GeometricResampling | SharedResampling)
    search = kernels.trials.shared if isinstance(learner.estimator, SharedResampling) else kernels.trials.per_step
    scale, limit = 1.0 / learner.perturbation.rate, learner.estimator.limit
    streams = Streams.from_seed(SEED)
    distribution = learner.start(MarkovPolicies(kernel), streams.learner)
    rounds = []
    for table in tables:
        seeds = [lanes(deepcopy(streams.learner))]
        segment = Episodic(kernel).play(distribution.draw(streams.learner), streams.arena)
        ahead = deepcopy(streams.learner)
        seeds += [lanes(ahead), lanes(ahead)]
        weights = learner.weigh(distribution, segment, streams.learner)
        rounds.append((distribution.total, segment, seeds))
        distribution = learner.learn(distribution, Bandit.reveal(table, segment, weights))
    rows = kernel.leader_rows, MarkovPolicies(kernel).reached, kernel.paths
    steps, states, _ = kernel.shape
    drawn, counts = np.empty((steps, 1, states), dtype=np.int32), np.empty(steps)

    def call() -> int:
        trials = 0
        for total, segment, seeds in rounds:
            noise, trial_noise, luck = (one.copy() for one in seeds)  # a call moves them on
            kernels.trials.leader(kernel.rows, noise, scale, total, drawn)
            wanted = 0, 0, segment.states, segment.actions
            trials += search(*rows, trial_noise, luck, scale, total, *wanted, limit, BATCH, counts)
        return trials

    assert call() == _played(ArenaGame(Episodic(kernel), losses.FixedLosses(tables)), learner, MarkovPolicies(kernel))
    return call


def _printed(kernel: Kernel) -> Call:
    """The printed algorithm: for each step, trial after trial, each a numpy backward induction and a simulation."""
    _, distribution = _leader(kernel, ROUNDS, GeometricResampling)
    steps, states, _ = kernel.shape
    rate, limit = (
        1.0 / np.sqrt(np.prod(kernel.shape) * ROUNDS),
        int(np.ceil(np.sqrt(np.prod(SMALL[1:]) * ROUNDS / steps))),
    )
    rng = np.random.default_rng(SEED + 1)

    def leader() -> NDArray[np.int64]:
        costs = distribution.total + rng.laplace(scale=1.0 / rate, size=kernel.shape)
        value, policy = np.zeros(states), np.empty((steps, states), dtype=np.int64)
        for h in reversed(range(steps)):
            ahead = costs[h] + (kernel.p[h] @ value if h < steps - 1 else 0.0)
            policy[h], value = ahead.argmin(axis=1), ahead.min(axis=1)
        return policy

    def path(policy: NDArray[np.int64], length: int) -> list[int]:
        visited = [0]
        for h in range(length - 1):
            s = visited[-1]
            visited.append(int(rng.choice(states, p=kernel.p[h, s, policy[h, s]])))
        return visited

    def call() -> object:
        played = leader()
        visited = path(played, steps)
        counts = []
        for h, s in enumerate(visited):
            count, met = 0, False
            while count < limit and not met:
                other = leader()
                met = path(other, h + 1)[-1] == s and other[h, s] == played[h, s]
                count += 1
            counts.append(count)
        return counts

    return call


def _resized(shape: Shape, axis: int, size: int) -> Shape:
    steps, states, actions = (size if i == axis else old for i, old in enumerate(shape))
    return steps, states, actions


def _seconds(shape: Shape, rounds: int, effort: Effort) -> float:
    kernel = worlds.kernel(shape, np.random.default_rng(SEED))
    return side_by_side({"round": _round(kernel, shared=True, rounds=rounds)}, effort).median("round")


def _exponent(letter: str, sizes: list[int], seconds: list[float], theory: float) -> Row:
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    note = f"exponent {slope:.2f} (theory {theory:g}): " + ", ".join(
        f"{letter}={size} {1e3 * one:.2f} ms" for size, one in zip(sizes, seconds, strict=True)
    )
    return Row(f"growth in {letter}", "theory", slope, theory, "", goal=Goal("at most", theory, ""), note=note)


def _sizes(shape: Shape, **others: int) -> dict[str, int]:
    steps, states, actions = shape
    return {"S": states, "A": actions, "H": steps, **others}
