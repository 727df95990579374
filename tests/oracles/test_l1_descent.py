"""Projection onto L1 balls: against cvxpy with the constraints written out, and UC-O-REPS on top of it."""

from typing import Any, cast

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from worlds import random_kernel, seeds

from amdp import (
    InvalidInput,
    MarkovPolicies,
    Projection,
    Segment,
    Status,
    Unsolved,
    UnsupportedDomain,
    instances,
    losses,
    values,
)
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation, Weights
from amdp.algorithms.occupancy.measures import MirrorDescent
from amdp.algorithms.occupancy.recipes import uc_o_reps
from amdp.algorithms.task import Task
from amdp.arrays import Floats
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.model.l1_ball import L1Ball
from amdp.oracles.projection.l1_descent import L1Descent, _L1Projector, nearest_rows

SHAPE = (3, 3, 2)


def ball_of(seed: int, width: float) -> MarkovPolicies:
    rng = np.random.default_rng(seed)
    return MarkovPolicies(L1Ball(random_kernel("dense", SHAPE, rng).dense().p, width * rng.random(SHAPE)))


def written_out(domain: MarkovPolicies, log_point: Floats) -> float:
    """The objective by cvxpy, from the definition."""
    ball, (steps, states, actions) = domain.dynamics, domain.shape
    assert isinstance(ball, L1Ball)
    flows = [[cvxpy.Variable((actions, states), nonneg=True) for _ in range(states)] for _ in range(steps - 1)]
    last = cvxpy.Variable((states, actions), nonneg=True)
    entering: list[Any] = [float(s == 0) for s in range(states)]
    rows, total = [], cvxpy.sum(cvxpy.kl_div(last, np.exp(log_point[-1, :, :, 0])))
    for h, step in enumerate(flows):
        for s, flow in enumerate(step):
            rows.append(cvxpy.sum(flow) == entering[s])
            total += cvxpy.sum(cvxpy.kl_div(flow, np.exp(log_point[h, s])))
            for a in range(actions):
                away = cvxpy.norm1(flow[a] - ball.center[h, s, a] * cvxpy.sum(flow[a]))
                rows.append(away <= ball.radius[h, s, a] * cvxpy.sum(flow[a]))
        entering = [sum(cvxpy.sum(flow[:, y]) for flow in step) for y in range(states)]
    rows.extend(cvxpy.sum(last[s]) == entering[s] for s in range(states))
    problem = cvxpy.Problem(cvxpy.Minimize(total), rows)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@pytest.mark.parametrize("width", [0.0, 0.1, 0.6, 2.0])
def test_it_finds_what_cvxpy_finds_and_proves_it(width: float) -> None:
    domain = ball_of(1, width)
    log_point = 2 * np.random.default_rng(2).normal(size=(*SHAPE, SHAPE[1]))
    found = L1Descent().bind(domain).project(log_point)
    assert found.objective == pytest.approx(written_out(domain, log_point), rel=1e-6)
    assert found.gap <= 1e-8 * max(1.0, found.objective)
    assert max(found.flow_residual, found.box_residual) <= 1e-12


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_the_nearest_row_beats_rows_around_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    center, radius = rng.dirichlet(np.ones(4)), rng.random()
    log_weights = 3 * rng.normal(size=4)
    row = nearest_rows(log_weights, center, np.asarray(radius))
    assert row.sum() == pytest.approx(1.0)
    assert np.abs(row - center).sum() <= radius + 1e-12

    def distance(p: Floats) -> float:
        return float((p * (np.log(p) - log_weights)).sum())

    for other in rng.dirichlet(np.ones(4), size=50):
        inside = center + min(1.0, radius / np.abs(other - center).sum()) * (other - center)
        assert distance(row) <= distance(0.5 * row + 0.5 * inside) + 1e-12


def test_a_measure_projects_to_itself() -> None:
    domain = ball_of(3, 0.4)
    first = L1Descent().bind(domain).project(np.zeros((*SHAPE, SHAPE[1])))
    again = L1Descent().bind(domain).project(first.log_measure)
    assert_allclose(again.measure, first.measure, atol=1e-7)
    assert again.objective == pytest.approx(0.0, abs=1e-8)


def test_without_radius_uc_o_reps_is_o_reps() -> None:
    kernel = random_kernel("dense", SHAPE, np.random.default_rng(4))
    ball = MarkovPolicies(L1Ball.exactly(kernel))
    learner = uc_o_reps(Task(ball, 100))
    known = MirrorDescent(learner.rate, WholeTable(), "cvxpy")
    rng, nowhere = np.random.default_rng(0), Segment(np.zeros(3, int), np.zeros(3, int))
    distribution = learner.start(ball, rng)
    twin = known.start(MarkovPolicies(kernel), rng)
    # Only the start differs: over moves the entropy of the rows counts as well.
    mu = distribution.projection.measure.sum(axis=-1)
    with np.errstate(divide="ignore"):
        twin = type(twin)(twin.projector, twin.rate, np.log(mu), twin.total, twin.gathered)
    for table in rng.random((5, *SHAPE)):
        assert_allclose(distribution.playing.policy, twin.playing.policy, atol=1e-5)
        told = FullInformation(nowhere, Weights(np.empty(0)), table)
        distribution = learner.learn(learner.observe(distribution, nowhere), told)
        twin = known.learn(known.observe(twin, nowhere), told)


def test_uc_o_reps_learns_in_epochs() -> None:
    rounds = 20
    world = instances.build("tiny")
    adversary = losses.named("nominal", world.shape, rounds, 1, world.costs)
    game = ArenaGame(Episodic(world.kernel, world.initial), adversary, None, FullInformation)
    domain = MarkovPolicies(L1Ball.vacuous(world.shape, rounds), world.initial)
    learner = uc_o_reps(Task(domain, rounds))
    policies = np.array([one.policy for one in play_rounds(game, learner, domain, Streams.from_seed(1))])
    assert_allclose(policies[0], 0.5, atol=1e-6)
    paid = values(world.kernel, policies, np.repeat(world.costs[None], rounds, axis=0))[:, 0, world.initial]
    assert paid[-1] < 0.8 * paid[0]


def test_other_domains_and_impossible_points_are_refused() -> None:
    with pytest.raises(UnsupportedDomain, match="does not project onto MarkovPolicies over Kernel"):
        L1Descent().bind(MarkovPolicies(random_kernel("dense", SHAPE, np.random.default_rng(1))))
    point = np.zeros((*SHAPE, SHAPE[1]))
    point[0, 0, 0, :2] = -np.inf
    with pytest.raises(InvalidInput, match="no mass on moves that a row of the ball needs"):
        L1Descent().bind(ball_of(1, 0.1)).project(point)
    assert_array_equal(L1Descent().bind(ball_of(1, 0.1)).point_shape, point.shape)


@pytest.mark.parametrize("dead", [(0, 0), (2, 1), (2,)], ids=["the start", "a later state", "the last step"])
def test_a_point_without_mass_on_any_measure_is_refused(dead: tuple[int, ...]) -> None:
    point = np.zeros((*SHAPE, SHAPE[1]))
    point[dead] = -np.inf
    with pytest.raises(InvalidInput, match="no mass on any occupancy measure from state 0"):
        L1Descent().bind(ball_of(1, 0.1)).project(point)


def test_a_state_without_weight_is_avoided_where_the_ball_allows_it() -> None:
    domain = MarkovPolicies(
        L1Ball(random_kernel("dense", SHAPE, np.random.default_rng(1)).dense().p, np.full(SHAPE, 2.0))
    )
    point = np.zeros((*SHAPE, SHAPE[1]))
    point[2, 1] = -np.inf
    found = L1Descent().bind(domain).project(point)
    assert found.measure[1, :, :, 1].sum() == 0.0
    assert_allclose(found.measure[2, [0, 2], :, 0].sum(), 1.0)
    assert np.isfinite(found.objective)


def best_found(domain: MarkovPolicies, point: Floats) -> Projection:
    """The answer, or what was found in place of one."""
    try:
        return L1Descent().bind(domain).project(point)
    except Unsolved as problem:
        return cast(Projection, problem.plans)


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e3, 1e4])
def test_no_bound_lies_above_a_measure(scale: float) -> None:
    """Whatever is found, proved or not, is no nearer than its bound, and a wrong answer is not called optimal."""
    for seed in range(2):
        domain = ball_of(seed, 0.6)
        point = scale * np.random.default_rng(seed).normal(size=(*SHAPE, SHAPE[1]))
        point -= point.max()
        found = best_found(domain, point)
        assert (found.status is Status.OPTIMAL) == (found.gap <= 3e-8)
        exact = L1Descent(iterations=1).bind(domain)
        assert isinstance(exact, _L1Projector)
        weights = point.copy()
        weights[-1, :, :, 1:] = -np.inf
        for prices in (found.prices, np.zeros(SHAPE[:2]), scale * np.random.default_rng(seed).normal(size=SHAPE[:2])):
            dual = exact._dual(prices, weights)
            met = found.measure > 0.0
            distance = (found.measure[met] * (np.log(found.measure[met]) - weights[met])).sum()
            assert -dual.value <= distance + 1e-9 * scale


def test_weights_too_faint_to_tell_apart_prove_nothing_false() -> None:
    """Of two moves that the ball forces, the fainter one gives up its mass; no bound may lie above that."""
    ball = L1Ball(np.full((2, 3, 1, 3), 1 / 3), np.full((2, 3, 1), 0.1))
    domain = MarkovPolicies(ball)
    point = np.zeros((2, 3, 1, 3))
    point[0, 0, 0] = 0.0, -1000.0, -2000.0
    row = np.array([1 / 3 + 0.05, 1 / 3, 1 / 3 - 0.05])
    weights = np.exp(point).sum() - np.exp(point[-1, ..., 1:]).sum()
    by_hand = row @ (np.log(row) - point[0, 0, 0]) + row @ np.log(row) - 2.0 + weights
    found = best_found(domain, point)
    assert found.bound <= by_hand + 1e-9
    assert found.status is not Status.OPTIMAL or found.objective <= by_hand + 1e-6


@pytest.mark.parametrize("options", [{"gap": -1.0}, {"gap": np.nan}, {"iterations": 1.5}, {"iterations": 0}])
def test_settings_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        L1Descent(**options)
