"""Critics: costs to go by plain loops, estimates by listing all trajectories, and what the bonus promises."""

import pickle
from dataclasses import replace
from math import e

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from plain_policies import plain_costs_to_go, trajectories
from worlds import KINDS, box_around, kernel_inside, random_kernel, random_policies, seeds, shapes

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Segment, occupancy
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import PlayedPolicy
from amdp.algorithms.policy_optimization.learners import (
    DilatedBonus,
    Evaluation,
    KeptWeights,
    LossToGo,
    PolicyOptimization,
    costs_to_go,
    visit_bounds,
)
from amdp.algorithms.rates import as_rate
from amdp.arrays import Floats
from amdp.model.dynamics import Dynamics
from amdp.model.l1_ball import L1Ball
from amdp.model.segments import Shape

SHAPE = (3, 2, 2)


def played(dynamics: Dynamics, policy: Floats) -> PlayedPolicy:
    return PlayedPolicy(MarkovPolicies(dynamics), policy)


def world(seed: int, shape: Shape = SHAPE, width: float = 0.3) -> tuple[Kernel, BernsteinBox, Floats, Floats]:
    """A kernel, a box around it, a policy and a loss table."""
    rng = np.random.default_rng(seed)
    kernel = random_kernel("dense", shape, rng).dense()
    return kernel, box_around(kernel, width, rng), random_policies(1, shape, rng)[0], rng.random(shape)


def learned_scores(
    learner: PolicyOptimization, told: Dynamics, kernel: Kernel, table: Floats
) -> tuple[Floats, Floats, Floats]:
    """The mean score, the mean square of scores, and the policy, over all trajectories of a round in mid-game."""
    rng = np.random.default_rng(0)
    begun = learner.start(MarkovPolicies(told), rng)
    distribution = replace(begun, total=rng.normal(size=kernel.shape) / as_rate(learner.rate).value)
    mean, square = np.zeros(kernel.shape), np.zeros(kernel.shape)
    for segment, chance in trajectories(kernel, distribution.playing.policy):
        weights = learner.weigh(distribution, segment, rng)
        scores = learner.learn(distribution, Bandit.reveal(table, segment, weights)).total - distribution.total
        mean += chance * scores
        square += chance * scores**2
    return mean, square, distribution.playing.policy


# --- costs to go ------------------------------------------------------------------------------------------------------


@given(kind=st.sampled_from(KINDS), shape=shapes(steps=4, states=3), seed=seeds, dilation=st.sampled_from([1.0, 1.25]))
@settings(max_examples=25, deadline=None)
def test_costs_to_go_over_a_kernel_are_those_of_the_textbook(
    kind: str, shape: Shape, seed: int, dilation: float
) -> None:
    rng = np.random.default_rng(seed)
    kernel = random_kernel(kind, shape, rng)
    policy, costs = random_policies(1, shape, rng)[0], rng.normal(size=shape)
    expected = plain_costs_to_go(kernel, policy, costs, dilation)
    assert_allclose(costs_to_go(kernel, policy, costs, dilation), expected, atol=1e-12)


@given(shape=shapes(steps=4, states=3), seed=seeds, dilation=st.sampled_from([1.0, 1.25]))
@settings(max_examples=25, deadline=None)
def test_costs_to_go_over_a_box_are_the_least_that_its_kernels_allow(shape: Shape, seed: int, dilation: float) -> None:
    rng = np.random.default_rng(seed)
    box = box_around(random_kernel("dense", shape, rng), 0.4, rng)
    policy, costs = random_policies(1, shape, rng)[0], rng.normal(size=shape)
    found = costs_to_go(box, policy, costs, dilation)
    assert_allclose(found, plain_costs_to_go(box, policy, costs, dilation), atol=1e-12)
    assert (found <= costs_to_go(kernel_inside(box, rng), policy, costs, dilation) + 1e-12).all()


def test_a_box_of_one_kernel_has_the_costs_to_go_of_its_kernel() -> None:
    kernel, _, policy, table = world(1, (4, 3, 2))
    box = BernsteinBox.exactly(kernel)
    assert_allclose(costs_to_go(box, policy, table), costs_to_go(kernel, policy, table), atol=1e-14)


def test_costs_are_left_as_they_are() -> None:
    kernel, _, policy, table = world(2)
    before = table.copy()
    costs_to_go(kernel, policy, table)
    assert_array_equal(table, before)


@pytest.mark.parametrize("name", ["policy", "costs"])
def test_tables_of_another_shape_are_refused(name: str) -> None:
    kernel, _, policy, table = world(3)
    tables = {"policy": policy, "costs": table} | {name: np.ones((3, 3, 2))}
    with pytest.raises(InvalidInput, match=rf"{name} has shape \(3, 3, 2\)"):
        costs_to_go(kernel, tables["policy"], tables["costs"])


def test_dynamics_without_compiled_rows_are_refused() -> None:
    kernel, _, policy, table = world(3)
    with pytest.raises(InvalidInput, match="needs a kernel or a BernsteinBox, not L1Ball"):
        costs_to_go(L1Ball.exactly(kernel), policy, table)


# --- estimates, by enumeration ----------------------------------------------------------------------------------------


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_importance_weights_evaluated_have_the_right_mean(seed: int) -> None:
    """O-SSP: `E[Q] = Q^pi`; a weight by state chances alone, or an evaluation by another policy, would not."""
    kernel, _, _, table = world(seed)
    learner = PolicyOptimization(0.1, Evaluation(ImportanceWeighting()), exploration=0.3)
    mean, _, policy = learned_scores(learner, kernel, kernel, table)
    here = kernel.reachable(0)  # elsewhere nothing is ever met
    assert_allclose(mean[here], plain_costs_to_go(kernel, policy, table)[here], atol=1e-11)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_optimistic_estimates_are_no_larger_than_the_truth_on_average(seed: int) -> None:
    """POMD, Delayed OPPO: `E[l] = mu l / (u + gamma) <= l` and `E[Q] <= Q^pi` for a true kernel inside the box."""
    kernel, box, _, table = world(seed)
    learner = PolicyOptimization(0.1, Evaluation(ImplicitExploration(0.05)))
    mean, _, policy = learned_scores(learner, box, kernel, table)
    assert (mean <= plain_costs_to_go(kernel, policy, table) + 1e-12).all()
    mu = occupancy(kernel, policy[None])[0]
    _, greatest = visit_bounds(played(box, policy))
    assert_allclose(mean[-1], (mu * table / (greatest + 0.05))[-1], atol=1e-12)
    assert (mean[-1] <= table[-1]).all()


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_losses_to_go_have_the_mean_of_the_formula(seed: int) -> None:
    """Dilated bonuses: `E[Q] = mu Q^pi / (u + gamma)`, and the bonus is subtracted."""
    kernel, box, _, table = world(seed)
    critic = DilatedBonus(0.05)
    mean, _, policy = learned_scores(PolicyOptimization(0.1, critic), box, kernel, table)
    mu = occupancy(kernel, policy[None])[0]
    _, greatest = visit_bounds(played(box, policy))
    to_go = plain_costs_to_go(kernel, policy, table)
    bonus = critic.keep(played(box, policy))
    assert (bonus > 0).all()
    assert_allclose(mean, mu * to_go / (greatest + 0.05) - bonus, atol=1e-12)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_second_moments_are_within_what_the_bounds_say(seed: int) -> None:
    """`E <pi, Q^2> <= n (A + n - 1) / alpha` with importance weights, `E[Q^2] <= n^2 / gamma` with implicit ones."""
    kernel, _, _, table = world(seed)
    to_go = np.arange(SHAPE[0], 0, -1)
    _, square, policy = learned_scores(
        PolicyOptimization(0.1, Evaluation(ImportanceWeighting())), kernel, kernel, table
    )
    at = occupancy(kernel, policy[None])[0].sum(axis=-1)
    alpha = at[at > 0].min()  # of this policy: at least that of the assumption
    allowed = to_go * (SHAPE[2] + to_go - 1) / alpha
    here = at > 0  # elsewhere nothing is ever met
    assert ((policy * square).sum(axis=-1)[here] <= np.broadcast_to(allowed[:, None], at.shape)[here] + 1e-9).all()
    learner = PolicyOptimization(0.1, Evaluation(ImplicitExploration(0.05)))
    _, square, _ = learned_scores(learner, kernel, kernel, table)
    assert (square.max(axis=(1, 2)) <= to_go**2 / 0.05 + 1e-9).all()


def test_the_loss_to_go_sums_the_losses_from_its_step_on() -> None:
    segment = Segment(np.array([0, 1, 1]), np.array([1, 0, 1]))
    told = Bandit(segment, Weights(np.array([2.0, 3.0, 5.0])), np.array([0.1, 0.2, 0.4]))
    estimate = LossToGo(0.1).add(np.zeros(SHAPE), told, None)
    assert_allclose(estimate[segment.places], [2.0 * 0.7, 3.0 * 0.6, 5.0 * 0.4])
    assert np.count_nonzero(estimate) == 3


# --- the dilated bonus ------------------------------------------------------------------------------------------------


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_visit_bounds_hold_the_visits_of_every_kernel_inside(seed: int) -> None:
    _, box, policy, _ = world(seed, (4, 3, 2))
    least, greatest = visit_bounds(played(box, policy))
    mu = occupancy(kernel_inside(box, np.random.default_rng(seed)), policy[None])[0]
    assert (least >= 0).all()
    assert (least <= mu + 1e-12).all()
    assert (mu <= greatest + 1e-12).all()


def test_visit_bounds_begin_where_the_domain_does() -> None:
    kernel, _, policy, _ = world(7, (3, 3, 2))
    mu = occupancy(kernel, policy[None], 2)[0]
    for dynamics in (kernel, BernsteinBox.exactly(kernel)):
        for chances in visit_bounds(PlayedPolicy(MarkovPolicies(dynamics, 2), policy)):
            assert_allclose(chances, mu, atol=1e-13)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_the_bonus_solves_the_dilated_bellman_equation(seed: int) -> None:
    _, box, policy, _ = world(seed)
    critic, steps = DilatedBonus(0.02), SHAPE[0]
    one = played(box, policy)
    least, greatest = visit_bounds(one)
    local = np.zeros(SHAPE[:2])
    for h, s, a in np.ndindex(SHAPE):
        unsure = 3 * 0.02 * steps + steps * (greatest - least)[h, s, a]
        local[h, s] += policy[h, s, a] * unsure / (greatest[h, s, a] + 0.02)
    assert_allclose(critic.local(one), local, atol=1e-12)
    bonus = critic.keep(one)
    wide = np.repeat(local[:, :, None], SHAPE[2], axis=2)
    assert_allclose(bonus, plain_costs_to_go(box, policy, wide, 1 + 1 / steps, sense=-1.0), atol=1e-10)
    assert (bonus >= 0).all()
    assert (bonus <= e * steps * local.max()).all()


def test_over_one_kernel_the_bonus_is_for_rare_visits_alone() -> None:
    kernel, _, policy, _ = world(4)
    mu, gamma = occupancy(kernel, policy[None])[0], 0.02
    expected = 3 * gamma * SHAPE[0] * (policy / (mu + gamma)).sum(axis=-1)
    for dynamics in (kernel, BernsteinBox.exactly(kernel)):
        one = played(dynamics, policy)
        least, greatest = visit_bounds(one)
        assert_allclose(least, mu, atol=1e-13)
        assert_allclose(greatest, mu, atol=1e-13)
        assert_allclose(DilatedBonus(gamma).local(one), expected, rtol=1e-10)


def test_without_gamma_a_place_that_cannot_be_reached_has_no_bonus() -> None:
    kernel, _, policy, _ = world(5)
    assert_array_equal(DilatedBonus(0.0).local(played(kernel, policy)), np.zeros(SHAPE[:2]))


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_kept_weights_keep_their_table() -> None:
    table = np.arange(4.0)
    kept = KeptWeights.of(Weights(np.ones(2), 3), table)
    for one in (kept, kept._replace(life=7), pickle.loads(pickle.dumps(kept))):
        assert isinstance(one, KeptWeights)
        assert_array_equal(one.table, table)
        assert one.trials == 3
    assert kept._replace(life=7).life == 7


def test_feedback_without_its_table_is_refused() -> None:
    kernel, _, _, table = world(6)
    learner = PolicyOptimization(0.1, Evaluation(ImportanceWeighting()))
    distribution = learner.start(MarkovPolicies(kernel), np.random.default_rng(0))
    segment = Segment(np.zeros(3, int), np.zeros(3, int))
    with pytest.raises(InvalidInput, match="keep no table of their round"):
        learner.learn(distribution, Bandit.reveal(table, segment, Weights(np.ones(3))))
