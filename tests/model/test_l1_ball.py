"""L1 balls of kernels: sweeps against linear programs, counts, and the dynamics contract."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from worlds import random_kernel, random_policies, seeds

from amdp import Dynamics, InvalidInput, Kernel, MarkovPolicies, Pairs, Segment, evaluate
from amdp.arrays import Floats
from amdp.model import l1_ball
from amdp.model.l1_ball import L1Ball

SHAPE = (3, 3, 2)


def ball_of(seed: int, width: float = 0.6) -> L1Ball:
    rng = np.random.default_rng(seed)
    return L1Ball(random_kernel("dense", SHAPE, rng).dense().p, width * rng.random(SHAPE))


def kernel_inside(ball: L1Ball, rng: np.random.Generator) -> Kernel:
    """The center, moved towards other rows as far as the radius allows."""
    other = rng.dirichlet(np.ones(SHAPE[1]), size=SHAPE)
    away = np.abs(other - ball.center).sum(axis=-1)
    share = np.minimum(1.0, ball.radius / away)[..., None]
    return Kernel((1 - share) * ball.center + share * other)


def least(center: Floats, radius: float, values: Floats) -> float:
    """The least of `<p, values>` over a row of a ball, by a linear program in `(p, |p - center|)`."""
    n = len(center)
    one, zero = np.eye(n), np.zeros(n)
    limits = np.block([[one, -one], [-one, -one], [np.zeros((1, n)), np.ones((1, n))]])
    found = linprog(
        np.concatenate([values, zero]),
        limits,
        np.concatenate([center, -center, [radius]]),
        np.concatenate([np.ones(n), zero])[None],
        [1.0],
    )
    assert found.fun is not None
    return float(found.fun)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_the_least_expectation_is_that_of_a_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ball, later = ball_of(seed, width=float(rng.choice([0.0, 0.5, 3.0]))), rng.normal(size=(2, 3))
    found = ball.least_expectation(1, later)
    for n, s, a in np.ndindex(found.shape):
        assert found[n, s, a] == pytest.approx(least(ball.center[1, s, a], ball.radius[1, s, a], later[n]), abs=1e-9)


def test_rows_written_out_in_parts_have_the_same_least_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    ball, later = ball_of(1), np.random.default_rng(2).normal(size=(5, 3))
    at_once = ball.least_expectation(1, later)
    monkeypatch.setattr(l1_ball, "AT_ONCE", 1)
    assert_array_equal(ball.least_expectation(1, later), at_once)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_ball_without_radius_plans_like_its_kernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = random_kernel("dense", SHAPE, rng)
    ball, costs = L1Ball.exactly(kernel), rng.normal(size=(3, *SHAPE))
    assert_allclose(ball.cheapest(costs).values, kernel.cheapest(costs).values, atol=1e-12)
    assert_array_equal(ball.cheapest(costs).actions, kernel.cheapest(costs).actions)
    wanted = rng.integers(2, size=(3, 3, 3)).astype(np.int32)
    mine, theirs = (each.follow(costs, wanted, np.full(3, -np.inf)) for each in (ball, kernel))
    assert_allclose(mine.values, theirs.values, atol=1e-12)
    assert_allclose(mine.shortfall, theirs.shortfall, atol=1e-12)
    policies = random_policies(2, SHAPE, rng)
    assert_allclose(
        ball.greatest_visits(policies, 0, Pairs.all(SHAPE)), kernel.greatest_visits(policies, 0, Pairs.all(SHAPE))
    )
    assert ball.contains(kernel)
    assert ball.narrow(Segment(np.zeros(3, int), np.zeros(3, int))) is ball


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_every_kernel_inside_is_dearer_and_visits_less(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    ball = ball_of(seed)
    kernel = kernel_inside(ball, rng)
    assert ball.contains(kernel)
    costs, actions = rng.normal(size=(1, *SHAPE)), rng.integers(2, size=(1, 3, 3))
    assert evaluate(MarkovPolicies(ball), actions, costs) <= evaluate(MarkovPolicies(kernel), actions, costs) + 1e-12
    policies, every = random_policies(2, SHAPE, rng), Pairs.all(SHAPE)
    assert (ball.greatest_visits(policies, 0, every) >= kernel.greatest_visits(policies, 0, every) - 1e-12).all()


def test_ties_go_to_the_first_action() -> None:
    swept = ball_of(1).follow(np.ones((1, *SHAPE)), np.ones((1, 3, 3), dtype=np.int32), np.zeros(1))
    assert (swept.actions == 0).all()


def test_counts_move_the_center_and_shrink_the_radius() -> None:
    ball = L1Ball.vacuous(SHAPE, rounds=100)
    assert isinstance(ball, Dynamics)
    assert ball.contains(random_kernel("dense", SHAPE, np.random.default_rng(1)))
    for states in ([0, 1, 2], [0, 2, 2], [0, 1, 0]):
        ball = ball.narrow(Segment(np.array(states), np.array([1, 0, 0])))
    assert_allclose(ball.center[0, 0, 1], [0, 2 / 3, 1 / 3])
    assert ball.radius[0, 0, 1] == pytest.approx(np.sqrt(2 * 3 * np.log(100 * 18 * 100) / 3))
    assert_allclose(ball.center[1, 1, 0], [1 / 2, 0, 1 / 2])
    assert ball.radius[0, 0, 0] == 2.0
    assert ball.visits is not None
    assert ball.visits.sum() == 6


def test_trials_succeed_with_the_greatest_chance() -> None:
    ball, segment = ball_of(2), Segment(np.array([0, 1, 2]), np.array([1, 0, 1]))
    actions = np.random.default_rng(3).integers(2, size=(4, 3, 3)).astype(np.int32)
    chances = ball.greatest_visits(np.eye(2)[actions], 0, segment.pairs)
    for share in (0.99, 1.01):
        met = ball.meets_all(actions, 0, segment, share * chances)
        assert_array_equal(met, (share < 1) & (chances > 0))
        steps = np.array([2, 1, 0, 2])
        assert_array_equal(ball.meets(actions, 0, segment, steps, share * chances), met[np.arange(4), steps])


@pytest.mark.parametrize(
    ("center", "radius", "message"),
    [
        (np.full((2, 2, 1, 2), 0.4), np.zeros((2, 2, 1)), "sums to 0.8"),
        (np.full((2, 2, 1, 2), 0.5), np.full((2, 2, 1), -1.0), "radius.* = -1"),
        (np.full((2, 2, 1, 2), 0.5), np.zeros((2, 2, 2)), r"center \(2, 2, 1, 2\) and radius \(2, 2, 2\)"),
    ],
)
def test_a_ball_that_means_nothing_is_refused(center: Floats, radius: Floats, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        L1Ball(center, radius)


def test_terms_that_mean_nothing_are_refused() -> None:
    for rounds, delta in ((0, 0.1), (10, 0.0)):
        with pytest.raises(InvalidInput, match=r"rounds = .*, delta"):
            L1Ball.vacuous(SHAPE, rounds, delta)
