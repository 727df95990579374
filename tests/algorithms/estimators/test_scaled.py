"""Reach-scaled resampling: the exact law of its weights, the same weights by every way, boxes that narrow, games."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import box_around, random_kernel

from amdp import BernsteinBox, MarkovPolicies, Radius, Segment, StationaryPolicies, instances, kernels, losses, oracle
from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
    ScaledResampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.estimators.scaled_trials import CompiledScaledTrials, ScaledTrials
from amdp.algorithms.ftpl.perturbations import Gumbel, Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, PerturbedLeader
from amdp.algorithms.ftpl.recipes import ftpl_scaled, ftpl_scaled_per_step
from amdp.algorithms.task import Task
from amdp.algorithms.uniform import uniform
from amdp.arrays import Floats
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_blocks, play_rounds
from amdp.game.regret import Regret, measure
from amdp.game.seeding import Streams
from amdp.instances import Instance
from amdp.kernels.sweeps import LANES
from amdp.model.domains import Domain
from amdp.model.reach import BATCH, BoxReach, Reach, StationaryReach, reach, reach_of
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import bind
from amdp.oracles.checked import Checked
from amdp.verification.worlds import occupancies

SIGMAS = 6.0  # a false alarm once in 5e8 for each mean of many numbers
FORMS: dict[str, type[ScaledResampling | SharedScaledResampling]] = {
    "shared": SharedScaledResampling,
    "per_step": ScaledResampling,
}


# --- the law of a weight ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chances:
    """A finite law of the chance `x` that a trial gives, its bound `c`, and the limit `L`; `c L` is whole."""

    values: Floats
    weights: Floats
    scale: float
    limit: int

    @property
    def mean(self) -> float:
        return float(self.values @ self.weights)

    @property
    def trials(self) -> int:
        return round(self.scale * self.limit)

    def drawn(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.choice(self.values, size, p=self.weights)

    def batch(self, size: int) -> tuple[float, float, float, float]:
        """`E[B], E[S], E[B^2], E[BS]` of the sum `B` of a batch and the chance `S` to go on, one trial at a time."""
        factors = 1.0 - self.values / self.scale
        once, twice = float(factors @ self.weights), float(factors**2 @ self.weights)
        total, survival, square, both = 0.0, 1.0, 0.0, 0.0
        for _ in range(size):  # B = 1 + (1-y) B', S = (1-y) S'
            total, square, both = (
                1.0 + once * total,
                1.0 + 2.0 * once * total + twice * square,
                once * survival + twice * both,
            )
            survival *= once
        return total, survival, square, both

    def moments(self, size: int) -> tuple[float, float]:
        """`E[W]` and `E[W^2]`, from the last batch to the first."""
        sizes = [min(size, self.trials - done) for done in range(0, self.trials, size)]
        mean = square = 0.0
        for number in reversed(sizes):
            total, survival, total_square, both = self.batch(number)
            mean, square = total + survival * mean, total_square + 2.0 * both * mean + survival * square
        return mean / self.scale, square / self.scale**2


def some_laws(n: int, seed: int) -> list[Chances]:
    """Laws of few and of many values: most trials give nothing, as where their action is another one."""
    rng = np.random.default_rng(seed)
    laws = []
    for _ in range(n):
        limit = int(rng.integers(1, 60))
        scale = int(rng.integers(1, limit + 1)) / limit
        values = np.append(scale * rng.random(int(rng.integers(1, 5))) ** int(rng.integers(1, 4)), 0.0)
        if rng.random() < 0.3:
            values[0] = scale  # the bound is attained
        laws.append(Chances(values, rng.dirichlet(np.ones(len(values))), scale, limit))
    return laws


LAWS = [
    Chances(np.array([0.0, 1.0]), np.array([0.7, 0.3]), 1.0, 12),  # coins: the paper's estimator
    Chances(np.array([0.0, 0.2, 0.5]), np.array([0.6, 0.3, 0.1]), 0.5, 40),
    Chances(np.array([0.0, 0.05]), np.array([0.5, 0.5]), 0.05, 400),
    Chances(np.array([0.0, 0.001, 0.25]), np.array([0.2, 0.7, 0.1]), 0.25, 4),  # one trial
]


@pytest.mark.parametrize("size", [1, 3, 32, 1000])
def test_mean_bias_and_second_moment_are_what_the_regret_bound_asks_for(size: int) -> None:
    for law in [*LAWS, *some_laws(300, 1)]:
        q, scale, limit = law.mean, law.scale, law.limit
        mean, square = law.moments(size)
        assert mean == pytest.approx((1.0 - (1.0 - q / scale) ** law.trials) / q, rel=1e-9)
        assert 1.0 - q * mean + 1e-12 >= 0.0
        assert 1.0 - q * mean <= np.exp(-limit * q) + 1e-12
        assert square <= 2.0 / q**2 * (1.0 + 1e-12)
        assert mean <= limit * (1.0 + 1e-12)


def test_products_within_a_batch_lower_the_second_moment() -> None:
    for law in [*LAWS, *some_laws(300, 2)]:
        squares = [law.moments(size)[1] for size in (1, 2, 4, 8, 64)]  # each batch is a union of earlier ones
        assert all(later <= earlier * (1.0 + 1e-12) for earlier, later in pairwise(squares))


def test_coins_with_a_scale_of_one_are_the_truncated_geometric_count() -> None:
    law = LAWS[0]
    n = np.arange(1, law.limit + 1)
    chances = np.where(n < law.limit, 0.3 * 0.7 ** (n - 1.0), 0.7 ** (n - 1.0))
    for size in (1, 3, 32):
        assert_allclose(law.moments(size), (chances @ n, chances @ n**2), rtol=1e-12)


def test_batch_sizes_may_depend_on_all_that_was_drawn_before() -> None:
    """The mean of what is left is the same whatever the sizes, and the second moment at most that of coins."""
    rng = np.random.default_rng(3)
    for law in some_laws(200, 4):
        q, left = law.mean, law.trials
        mean = square = 0.0
        done = 0
        while done < left:
            size = int(rng.integers(1, left - done + 1))
            total, survival, total_square, both = law.batch(size)
            mean, square = total + survival * mean, total_square + 2.0 * both * mean + survival * square
            done += size
        assert mean / law.scale == pytest.approx((1.0 - (1.0 - q / law.scale) ** law.trials) / q, rel=1e-9)
        assert square <= law.moments(1)[1] * law.scale**2 * (1.0 + 1e-12)


def by_shared_trials(law: Chances, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """20,000 weights, each a pair with chances of its own, and how many trials each took."""
    n = 20_000
    bounds, limits = np.full(n, law.scale), np.full(n, law.trials)
    weights, is_open, trials, done = np.zeros(n), np.ones(n, bool), np.zeros(n), 0
    while number := kernels.trials.shared_batch(is_open, limits, done, np.full(n, size)):
        trials += number * is_open
        chances = law.drawn((number, n), rng)
        kernels.trials.weigh_shared(chances, bounds, limits, done, rng.random(n), is_open, weights)
        done += number
    return weights, trials


def by_trials_for_each_step(law: Chances, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The same in groups of 40 pairs, whose rows are divided among them; an open pair has `size` of them."""
    found, n = [], 40
    bounds, limits, owner = np.full(n, law.scale), np.full(n, law.trials), np.empty(n * size, np.int64)
    for _ in range(500):
        weights, is_open, trials, done = np.zeros(n), np.ones(n, bool), np.zeros(n), 0
        while is_open.any():
            batch = size * int(is_open.sum())
            each, number = kernels.trials.per_step_batch(is_open, limits, done, batch, owner)
            trials += np.bincount(owner[:number], minlength=n)
            chances = np.full((number, n), np.nan)
            chances[np.arange(number), owner[:number]] = law.drawn((number,), rng)
            kernels.trials.weigh_per_step(chances, bounds, limits, done, each, rng.random(n), is_open, weights)
            done += each
        found.append((weights, trials))
    return np.concatenate([weights for weights, _ in found]), np.concatenate([trials for _, trials in found])


@pytest.mark.parametrize("size", [1, 3, 32])
@pytest.mark.parametrize("drawn", [by_shared_trials, by_trials_for_each_step])
@pytest.mark.parametrize("law", LAWS, ids=["coins", "mixed", "rare", "one-trial"])
def test_weights_have_the_moments_of_the_recursion(
    law: Chances, drawn: Callable[..., tuple[Floats, Floats]], size: int
) -> None:
    # Three means of 20,000 numbers, six standard errors each: a false alarm once in 1.6e8.
    weights, trials = drawn(law, size, np.random.default_rng([5, size]))
    mean, square = law.moments(size)
    for power, exact in ((1, mean), (2, square)):
        sample = weights**power
        assert abs(sample.mean() - exact) <= SIGMAS * sample.std() / np.sqrt(len(sample)) + 1e-9 * exact
    assert weights.max() <= law.limit * (1.0 + 1e-12)
    expected = min(law.scale / law.mean, law.trials) + size - 1
    assert trials.mean() <= expected + SIGMAS * trials.std() / np.sqrt(len(trials))


# --- trials of policies -----------------------------------------------------------------------------------------------


def dynamics_of(kind: str, shape: Shape, rng: np.random.Generator) -> Any:
    if kind == "box":
        return box_around(random_kernel("dense", shape, rng), 0.15, rng)
    return random_kernel(kind, shape, rng)


def leaders(kind: str, shape: Shape, asked: Any, initial: int = 0) -> tuple[PerturbedLeader, PerturbedLeader, Segment]:
    """The same distribution, compiled and through an oracle, and a segment that was played with it."""
    rng = np.random.default_rng(3)
    domain = MarkovPolicies(dynamics_of(kind, shape, rng), initial)
    total = rng.random(shape) * 20
    quick, slow = (PerturbedLeader(bind(each, domain), Laplace(0.2), total) for each in ("dp", asked))
    assert isinstance(quick.scaled_trials, CompiledScaledTrials)
    assert isinstance(slow.scaled_trials, ScaledTrials)
    kernel = dynamics_of("dense" if kind == "box" else kind, shape, np.random.default_rng(3))
    return quick, slow, kernel.walk(quick.draw(rng), initial, rng.random((shape[0], 2)))


def weighed(distribution: PerturbedLeader, form: str, segment: Segment, limit: int, seed: int) -> Weights:
    weights: Weights = getattr(distribution.scaled_trials, form)(segment, limit, np.random.default_rng(seed))
    return weights


KINDS = ["dense", "homogeneous", "sparse", "sparse-homogeneous", "box"]
SHAPES: list[Shape] = [(1, 3, 2), (6, 5, 4), (BATCH + 8, 2, 2), (3, 1, 3), (4, 3, 1)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_compiled_weights_are_those_through_an_oracle(kind: str, shape: Shape, form: str) -> None:
    quick, slow, segment = leaders(kind, shape, Checked(oracle("dp")), initial=shape[1] - 1)
    starts = sorted({0, shape[0] // 2})
    for limit, start, seed in product((1, 5, 100), starts, range(3)):
        late = Segment(segment.states[start:], segment.actions[start:], start=start)
        pair = [weighed(each, form, late, limit, seed) for each in (quick, slow)]
        assert_array_equal(pair[0].values, pair[1].values)
        assert pair[0].trials == pair[1].trials
        assert (pair[0].values > 0.0).all()
        assert (pair[0].values <= limit * (1.0 + 1e-12)).all()


def test_trials_of_more_steps_than_a_sweep_carries_side_by_side_are_those_through_an_oracle() -> None:
    """Each step has a trial of its own, so that there are two groups: the second starts from nothing as well."""
    shape = (LANES + 8, 6, 3)
    quick, slow, segment = leaders("sparse", shape, Checked(oracle("dp")), initial=1)
    for limit, seed in product((3, 30), range(5)):
        pair = [weighed(each, "per_step", segment, limit, seed) for each in (quick, slow)]
        assert_array_equal(pair[0].values, pair[1].values)
        assert pair[0].trials == pair[1].trials >= shape[0]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("form", FORMS)
def test_compiled_weights_are_those_through_a_linear_program(kind: str, form: str) -> None:
    """Costs with noise have no ties, and in states that a policy does not visit its chances are 0 either way."""
    quick, slow, segment = leaders(kind, (4, 3, 2), "lp", initial=1)
    for limit, seed in product((1, 20), range(2)):
        pair = [weighed(each, form, segment, limit, seed) for each in (quick, slow)]
        assert_array_equal(pair[0].values, pair[1].values)
        assert pair[0].trials == pair[1].trials


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_leave_the_generator_in_the_same_place(kind: str) -> None:
    quick, slow, segment = leaders(kind, (5, 4, 3), Checked(oracle("dp")))
    for form in FORMS:
        left = []
        for distribution in (quick, slow):
            rng = np.random.default_rng(4)
            getattr(distribution.scaled_trials, form)(segment, 70, rng)
            left.append(rng.random())
        assert left[0] == left[1]


@pytest.mark.parametrize("kind", ["dense", "sparse", "box"])
@pytest.mark.parametrize("form", FORMS)
def test_weights_of_a_learner_have_the_mean_of_the_formula(kind: str, form: str) -> None:
    # q from 40,000 policies; the weights 3,000 times; six standard errors of both: a false alarm once in 5e7 a case.
    shape, initial, limit = (4, 3, 2), 1, 30
    quick, _, segment = leaders(kind, shape, Checked(oracle("dp")), initial)
    q, spread = visit_chances(quick, segment)
    scales, trials = reach_of(quick.domain).scaled(segment, limit)
    exact = (1.0 - (1.0 - q / scales) ** trials) / q
    values = np.stack([weighed(quick, form, segment, limit, seed).values for seed in range(3000)])
    slack = values.std(axis=0) / np.sqrt(len(values)) + spread / q**2
    assert (np.abs(values.mean(axis=0) - exact) <= SIGMAS * slack).all()
    squares = values**2
    slack = squares.std(axis=0) / np.sqrt(len(values)) + 4.0 * spread / q**3
    assert (squares.mean(axis=0) <= 2.0 / q**2 + SIGMAS * slack).all()


def visit_chances(distribution: PerturbedLeader, segment: Segment) -> tuple[Floats, Floats]:
    """The chance `[m]` of a trial at each pair, and its standard error."""
    domain = distribution.domain
    actions = distribution.sample(40_000, np.random.default_rng(9))
    steps, states, chosen = segment.places
    if isinstance(domain.dynamics, BernsteinBox):
        policies = np.eye(domain.shape[2])[actions]
        each = domain.dynamics.greatest_visits(policies, domain.initial, segment.pairs)
    else:
        assert isinstance(domain.dynamics, SingleKernel)
        each = occupancies(domain.dynamics.dense().p, actions, domain.initial)[:, steps, states, chosen]
    return each.mean(axis=0), each.std(axis=0) / np.sqrt(len(each))


def test_stationary_policies_have_scaled_trials_too() -> None:
    # q from 2,000 policies; the weights 150 times; six standard errors of both: a false alarm once in 5e7 a form.
    rng = np.random.default_rng(6)
    kernel = random_kernel("homogeneous", (40, 2, 2), rng)
    domain = StationaryPolicies(kernel, 1)
    leader = PerturbedLeader(bind("enumeration", domain), Laplace(2.0), np.zeros((40, 2, 2)))
    assert isinstance(leader.scaled_trials, ScaledTrials)
    assert isinstance(leader.scaled_trials.reach, StationaryReach)
    segment = Segment(np.array([0, 1, 1]), np.array([0, 1, 1]), start=20)
    actions = leader.sample(2000, np.random.default_rng(1))
    each = leader.scaled_trials.reach.chances(actions, segment, np.ones((2000, 3), bool), np.empty((2000, 0)))
    q, spread = each.mean(axis=0), each.std(axis=0) / np.sqrt(2000)
    limit = 10
    scales, trials = leader.scaled_trials.reach.scaled(segment, limit)
    for form in FORMS:
        values = np.stack([weighed(leader, form, segment, limit, seed).values for seed in range(150)])
        slack = values.std(axis=0) / np.sqrt(len(values)) + spread / q**2
        assert (np.abs(values.mean(axis=0) - (1.0 - (1.0 - q / scales) ** trials) / q) <= SIGMAS * slack).all()
        assert values.max() <= limit * (1.0 + 1e-12)


def test_other_noise_takes_the_way_through_the_oracle() -> None:
    kernel = random_kernel("dense", (3, 3, 2), np.random.default_rng(1))
    leader = PerturbedLeader(bind("dp", MarkovPolicies(kernel)), Gumbel(1.0), np.zeros((3, 3, 2)))
    assert isinstance(leader.scaled_trials, ScaledTrials)
    segment = kernel.walk(leader.draw(np.random.default_rng(2)), 0, np.random.default_rng(2).random((3, 2)))
    values = weighed(leader, "shared", segment, 7, 1).values
    assert (values > 0.0).all()
    assert (values <= 7.0 * (1.0 + 1e-12)).all()


# --- how many trials --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_step_takes_as_many_trials_as_the_reach_says(kind: str) -> None:
    """For a pair `(s, a)` of chance q they are `c/q` and less than a batch more: `A sum_s c(s)` on average."""
    # Means of 1,500 numbers at two steps, six standard errors: a false alarm once in 2.5e8.
    shape, limit = (4, 30, 2), 400
    rng = np.random.default_rng(7)
    domain = MarkovPolicies(random_kernel(kind, shape, rng), 3)
    kernel: Any = domain.dynamics
    leader = PerturbedLeader(bind("dp", domain), Laplace(0.5), rng.random(shape) * 3)
    trials = np.empty((1500, 4))
    for i in range(len(trials)):
        walked = kernel.walk(leader.draw(rng), 3, rng.random((4, 2)))
        for h in (2, 3):
            pair = Segment(walked.states[h : h + 1], walked.actions[h : h + 1], start=h)
            trials[i, h] = weighed(leader, "per_step", pair, limit, i).trials
    for h in (2, 3):
        every = [reach_of(domain).scaled(Segment(np.array([s]), np.array([0]), h), limit).bounds for s in range(30)]
        allowed = 2 * np.sum(every) + BATCH - 1
        assert trials[:, h].mean() <= allowed + SIGMAS * trials[:, h].std() / np.sqrt(len(trials))
    if kind == "dense":
        assert reach(kernel, 3)[2:].sum(axis=1).max() < 5.0  # of thirty states: plain trials would take up to 60


# --- confidence sets --------------------------------------------------------------------------------------------------


SMALL: Shape = (4, 3, 2)


def unknown(rounds: int, scale: float, shape: Shape = SMALL, initial: int = 0) -> MarkovPolicies:
    return MarkovPolicies(BernsteinBox.vacuous(shape, Radius.paper(shape, rounds, scale=scale)), initial)


def a_round(
    learner: Ftpl, kernel: Any, now: PerturbedLeader, rng: np.random.Generator
) -> tuple[PerturbedLeader, Segment]:
    segment = kernel.walk(now.draw(rng), now.domain.initial, rng.random((kernel.shape[0], 2)))
    weights = learner.weigh(now, segment, rng)
    table = rng.random(kernel.shape)
    return learner.learn(learner.observe(now, segment), Bandit.reveal(table, segment, weights)), segment


def box_reach(distribution: PerturbedLeader) -> BoxReach:
    assert isinstance(distribution.reach, BoxReach)
    assert distribution.reach.dynamics is distribution.domain.dynamics
    return distribution.reach


@pytest.mark.parametrize("scale", [0.1, 0.01])
def test_bounds_of_older_boxes_stay_above_the_reach_while_boxes_narrow(scale: float) -> None:
    """With the smaller radius rows become empty and start again: then the bounds are forgotten."""
    rounds, rng = 300, np.random.default_rng(8)
    kernel = random_kernel("dense", SMALL, rng)
    domain = unknown(rounds, scale)
    learner = Ftpl.tuned(domain, rounds, resampling=SharedScaledResampling, multiplier=30.0)
    now, kept = learner.start(domain, rng), 0
    for _ in range(rounds):
        before = box_reach(now)
        now, _ = a_round(learner, kernel, now, rng)
        held = box_reach(now)
        stand = ~np.isnan(held.known)
        fresh = reach(held.dynamics, domain.initial)
        assert (held.known[stand] >= fresh[stand] - 1e-12).all()
        kept += int((stand & (held.known > fresh + 1e-9)).any())
        if held.dynamics.fallbacks != before.dynamics.fallbacks:
            assert not stand.any()
    assert kept > 30  # bounds of older boxes were in use
    assert (box_reach(now).dynamics.fallbacks > 0) == (scale < 0.1)


def test_a_fallback_makes_bounds_invalid_and_they_are_forgotten() -> None:
    shape = (2, 2, 1)
    p = np.zeros((2, 2, 1, 2))
    p[..., 0], p[..., 1] = 0.9, 0.1
    sharp = Radius(log_term=1.0, spread=0.0, offset=0.05)
    box = BernsteinBox(np.maximum(0.0, p - 0.01), p + 0.01, None, sharp)
    segment = Segment(np.array([0, 1]), np.zeros(2, int))  # a move that the box holds for unlikely
    before = BoxReach.unknown(box, 0)
    assert before.bounds(segment)[1] == pytest.approx(0.11)
    narrowed = box.narrow(segment)
    assert narrowed.fallbacks == 1
    after = before.after(segment, narrowed)
    assert np.isnan(after.known).all()
    assert after.bounds(segment)[1] == pytest.approx(reach(narrowed, 0)[1, 1])
    assert after.bounds(segment)[1] > 0.9  # with the old bound a chance over it would be 8
    chances = after.chances(np.zeros((1, *shape[:2]), np.int32), segment, np.ones((1, 2), bool), np.empty((1, 0)))
    assert (chances <= after.bounds(segment) + 1e-12).all()


def test_a_bound_is_found_again_when_the_visits_of_its_state_have_more_than_doubled() -> None:
    rounds, rng = 120, np.random.default_rng(9)
    kernel = random_kernel("dense", SMALL, rng)
    domain = unknown(rounds, 0.02, initial=1)
    learner = Ftpl.tuned(domain, rounds, resampling=SharedScaledResampling)
    now, renewed = learner.start(domain, rng), 0
    for _ in range(rounds):
        before = box_reach(now)
        assert before.dynamics.visits is not None
        arrived = np.zeros(SMALL[:2])
        arrived[1:] = before.dynamics.visits[:-1].sum(axis=(1, 2))
        now, segment = a_round(learner, kernel, now, rng)
        after, places, fresh = box_reach(now), segment.places[:2], reach(before.dynamics, 1)
        doubled = np.isnan(before.known) | (arrived > 2 * before.visits)
        met = np.zeros(SMALL[:2], bool)
        met[places] = True
        assert_allclose(after.known[met & doubled], fresh[met & doubled], atol=1e-12)
        assert_array_equal(after.visits[met & doubled], arrived[met & doubled])
        assert_array_equal(after.known[~(met & doubled)], before.known[~(met & doubled)])
        renewed += int((met & doubled & ~np.isnan(before.known)).sum())
    assert renewed > 10
    assert box_reach(now).known[1:].max() < 1.0  # narrower than at the start


@pytest.mark.parametrize("form", FORMS)
def test_a_state_from_which_two_games_go_on_gives_both_the_same_numbers(form: str) -> None:
    rng = np.random.default_rng(10)
    kernel = random_kernel("dense", SMALL, rng)
    for domain in (unknown(50, 0.02), MarkovPolicies(kernel), MarkovPolicies(random_kernel("sparse", SMALL, rng))):
        learner = Ftpl.tuned(domain, 50, resampling=FORMS[form])
        world: Any = kernel if isinstance(domain.dynamics, BernsteinBox) else domain.dynamics
        now = learner.start(domain, rng)
        for _ in range(10):
            now, _ = a_round(learner, world, now, rng)

        first, other, again = (_eight_rounds_later(learner, world, now, seed) for seed in (1, 2, 1))
        assert_array_equal(first, again)
        assert (first != other).any()


def _eight_rounds_later(learner: Ftpl, kernel: Any, now: PerturbedLeader, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        now, _ = a_round(learner, kernel, now, rng)
    return now.total


# --- games ------------------------------------------------------------------------------------------------------------


def regret_of(world: Instance, learner: Learner[Any], domain: Domain, late: Delays, adversary: str = "swap") -> Regret:
    sequence = losses.named(adversary, world.shape, len(late), 3, world.costs)
    game = ArenaGame(Episodic(world.kernel, world.initial), sequence, late)
    # In blocks over kernels alone: over boxes another loop would be compiled for these short games.
    play: Any = play_rounds if isinstance(domain.dynamics, BernsteinBox) else play_blocks
    return measure(game, play(game, learner, domain, Streams.from_seed(4)), checkpoints=[len(late)])


RECIPES = {"shared": ftpl_scaled, "per_step": ftpl_scaled_per_step}


@pytest.mark.parametrize("recipe", RECIPES.values())
@pytest.mark.parametrize("late", [delays.none(3000), delays.bursts(3000, 8, 3)], ids=["at-once", "delayed"])
def test_scaled_learners_have_less_than_half_of_the_regret_of_uniform_play(recipe: Any, late: Delays) -> None:
    # One game with fixed seeds; the ratio was a sixth.
    world = instances.random_dense(4, 5, 3, np.random.default_rng(5))
    task = Task(world.domain, len(late), late.total_within, multiplier=16.0)
    scaled, plain = (regret_of(world, each, world.domain, late, "bernoulli") for each in (recipe(task), uniform(task)))
    assert scaled.high[-1] < 0.5 * plain.low[-1]


def test_scaled_trials_are_fewer_than_plain_ones_where_rows_are_spread() -> None:
    world = instances.random_dense(5, 30, 2, np.random.default_rng(6))
    spent: dict[type, int] = {}
    for kind in (SharedScaledResampling, SharedResampling):
        learner = Ftpl.tuned(world.domain, 200, resampling=kind)
        spent[kind] = regret_of(world, learner, world.domain, delays.none(200)).trials[-1]
    assert 3 * spent[SharedScaledResampling] < spent[SharedResampling]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [0.02, 1.0])  # 1: boxes stay as wide as all kernels
def test_unknown_transitions(form: str, scale: float) -> None:
    world = instances.random_dense(3, 4, 2, np.random.default_rng(7))
    domain = unknown(400, scale, world.shape, world.initial)
    learner = Ftpl.tuned(domain, 400, resampling=FORMS[form], multiplier=16.0)
    found = regret_of(world, learner, domain, delays.bursts(400, 8, 3), "bernoulli")
    assert np.isfinite(found.high).all()
    assert isinstance(learner.estimator, Resampling)
    assert 0 < found.trials[-1] <= 400 * 3 * learner.estimator.limit
    if scale < 1.0:
        plain = regret_of(world, uniform(Task(domain, 400)), domain, delays.none(400), "bernoulli")
        assert found.low[-1] < plain.high[-1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(1, 3, 2), (3, 1, 2), (3, 3, 1), (1, 1, 1)])
@pytest.mark.parametrize("known", [True, False])
def test_the_smallest_worlds(form: str, shape: Shape, known: bool) -> None:
    world = instances.random_dense(*shape, np.random.default_rng(8))
    domain = world.domain if known else unknown(30, 0.1, shape, world.initial)
    learner = Ftpl.tuned(domain, 30, resampling=FORMS[form])
    found = regret_of(world, learner, domain, delays.none(30))
    assert np.isfinite(found.high).all()
    if shape[2] == 1:
        assert found.high[-1] == pytest.approx(0.0, abs=1e-9)


def test_a_weight_where_every_policy_is_at_the_pair_is_one() -> None:
    """One state and one action: q = c = 1, and one trial says so."""
    kernel = random_kernel("dense", (3, 1, 1), np.random.default_rng(1))
    learner = Ftpl.tuned(MarkovPolicies(kernel), 1000, resampling=SharedScaledResampling)
    start = learner.start(MarkovPolicies(kernel), np.random.default_rng(1))
    weights = learner.weigh(start, Segment(np.zeros(3, int), np.zeros(3, int)), np.random.default_rng(1))
    assert_array_equal(weights.values, 1.0)


def test_plain_resampling_keeps_nothing_of_the_dynamics() -> None:
    domain = unknown(50, 0.02)
    for plain in (GeometricResampling(3), SharedResampling(3)):
        assert plain.reach(domain) is None
        start = Ftpl(Laplace(1.0), plain).start(domain, np.random.default_rng(1))
        assert start.reach is None
    scaled: Reach | None = ScaledResampling(3).reach(domain)
    assert isinstance(scaled, BoxReach)
    assert replace(ScaledResampling(3), limit=4) == ScaledResampling(4)
