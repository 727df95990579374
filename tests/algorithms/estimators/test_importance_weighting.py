"""Weights by visit chances: their means by listing all trajectories, their size, and what a delay does to them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from worlds import box_around, kernel_inside, random_kernel, random_policies, seeds

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Pairs, Segment, occupancy
from amdp.algorithms.estimators.base import Estimator, learned
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.estimators.importance_weighting import (
    DelayAdapted,
    ImplicitExploration,
    ImportanceWeighting,
)
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.occupancy.measures import PlayedPolicy
from amdp.arrays import Floats, Policies
from amdp.model.segments import Shape

SHAPE = (2, 2, 2)
GAMMA = 0.1


def played(domain: MarkovPolicies, seed: int = 1) -> PlayedPolicy:
    return PlayedPolicy(domain, random_policies(1, domain.shape, np.random.default_rng(seed))[0])


def trajectories(kernel: Kernel, policy: Floats) -> Iterator[tuple[float, Segment]]:
    """Every trajectory from state 0, with its chance."""
    steps, states, actions = kernel.shape
    for path in product(product(range(states), range(actions)), repeat=steps):
        chance = float(path[0][0] == 0)
        for h, (s, a) in enumerate(path):
            chance *= policy[h, s, a]
            if h + 1 < steps:
                chance *= kernel.p[h, s, a, path[h + 1][0]]
        yield chance, Segment(np.array([s for s, _ in path]), np.array([a for _, a in path]))


def mean_estimate(estimator: Estimator, distribution: PlayedPolicy, kernel: Kernel, table: Floats) -> Floats:
    """The mean of the estimate over all trajectories; it arrives in its own round."""
    mean = np.zeros(kernel.shape)
    rng = np.random.default_rng(0)
    for chance, segment in trajectories(kernel, distribution.policy):
        if chance > 0.0:
            weights = estimator.weigh(distribution, segment, rng)
            mean += chance * estimator.add(np.zeros(kernel.shape), Bandit.reveal(table, segment, weights), distribution)
    return mean


def dense(shape: Shape, seed: int) -> Kernel:
    return random_kernel("dense", shape, np.random.default_rng(seed)).dense()


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_importance_weights_have_the_losses_as_their_mean(seed: int) -> None:
    kernel, table = dense(SHAPE, seed), np.random.default_rng(seed).random(SHAPE)
    distribution = played(MarkovPolicies(kernel), seed)
    reached = occupancy(kernel, distribution.policy[None])[0] > 0
    mean = mean_estimate(ImportanceWeighting(), distribution, kernel, table)
    assert_allclose(mean[reached], table[reached], rtol=1e-12)
    assert (mean[~reached] == 0).all()


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_implicit_exploration_has_its_bias_and_no_other(seed: int) -> None:
    kernel, table = dense(SHAPE, seed), np.random.default_rng(seed).random(SHAPE)
    distribution = played(MarkovPolicies(kernel), seed)
    mu = occupancy(kernel, distribution.policy[None])[0]
    mean = mean_estimate(ImplicitExploration(GAMMA), distribution, kernel, table)
    assert_allclose(mean, mu * table / (mu + GAMMA), rtol=1e-12)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("width", [0.05, 0.5])
def test_over_a_box_that_holds_the_kernel_estimates_are_too_small_on_average(seed: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    box = box_around(dense(SHAPE, seed), width, rng)
    kernel, table = kernel_inside(box, rng), rng.random(SHAPE)
    distribution = played(MarkovPolicies(box), seed)
    mu = occupancy(kernel, distribution.policy[None])[0]
    greatest = distribution.visits(Pairs.all(SHAPE)).reshape(SHAPE)
    assert (greatest >= mu - 1e-12).all()
    assert (greatest <= distribution.policy + 1e-12).all()
    mean = mean_estimate(ImplicitExploration(GAMMA), distribution, kernel, table)
    assert_allclose(mean, mu * table / (greatest + GAMMA), rtol=1e-12)
    assert (mean <= table).all()


def test_a_degenerate_box_weighs_like_its_kernel() -> None:
    kernel = dense((3, 3, 2), 4)
    rng = np.random.default_rng(5)
    for chance, segment in trajectories(kernel, played(MarkovPolicies(kernel)).policy):
        if chance > 0 and rng.random() < 0.1:
            known = ImportanceWeighting().weigh(played(MarkovPolicies(kernel)), segment, rng)
            boxed = ImportanceWeighting().weigh(played(MarkovPolicies(BernsteinBox.exactly(kernel))), segment, rng)
            assert_allclose(boxed.values, known.values, rtol=1e-12)


# --- delays -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Told:
    """Chances as they are told, and who asked."""

    chances: Floats
    asked: list[Pairs] = field(default_factory=list)
    domain: ClassVar[Any] = None
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        raise NotImplementedError

    def visits(self, pairs: Pairs) -> Floats:
        self.asked.append(pairs)
        return self.chances


SEGMENT = Segment(np.array([0, 1, 1]), np.array([1, 0, 1]))
TABLE = np.arange(12, dtype=np.float64).reshape(3, 2, 2) / 12.0


def arrived(estimator: Estimator, then: Told, now: Told) -> Floats:
    weights = estimator.weigh(then, SEGMENT, np.random.default_rng(0))
    return estimator.add(np.zeros((3, 2, 2)), Bandit.reveal(TABLE, SEGMENT, weights), now)


def test_delay_adapted_takes_the_greater_chance_of_two_rounds() -> None:
    then, now = Told(np.array([0.5, 0.2, 0.9])), Told(np.array([0.1, 0.4, 0.9]))
    expected = TABLE[SEGMENT.places] / (np.array([0.5, 0.4, 0.9]) + GAMMA)
    found = arrived(DelayAdapted(GAMMA), then, now)
    assert_array_equal(found[SEGMENT.places], expected)
    assert np.count_nonzero(found) == 3
    (asked,) = now.asked
    assert_array_equal(asked.states, SEGMENT.states, "the chances of the round of arrival, at the pairs of the play")


def test_delay_adapted_is_at_most_implicit_exploration_and_equal_without_delay() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        then, now = Told(rng.random(3)), Told(rng.random(3))
        standard = arrived(ImplicitExploration(GAMMA), then, now)
        assert (arrived(DelayAdapted(GAMMA), then, now) <= standard).all()
        assert_array_equal(arrived(DelayAdapted(GAMMA), then, then), standard)


def test_only_delay_adapted_looks_again() -> None:
    for estimator in (ImportanceWeighting(), ImplicitExploration(GAMMA)):
        now = Told(np.ones(3))
        arrived(estimator, Told(np.full(3, 0.5)), now)
        assert not now.asked


def test_a_weight_is_at_most_one_over_gamma() -> None:
    never = Told(np.zeros(3))
    rng = np.random.default_rng(0)
    assert_allclose(ImplicitExploration(GAMMA).weigh(never, SEGMENT, rng).values, 1 / GAMMA)
    assert_allclose(DelayAdapted(GAMMA).weigh(never, SEGMENT, rng).values, 1 / GAMMA)


def test_a_chance_of_zero_in_the_round_of_arrival_is_no_trouble() -> None:
    found = arrived(DelayAdapted(0.0), Told(np.full(3, 0.5)), Told(np.zeros(3)))
    assert_array_equal(found[SEGMENT.places], TABLE[SEGMENT.places] / 0.5)


def test_a_segment_may_start_later() -> None:
    later = Segment(np.array([1, 0]), np.array([0, 1]), start=1)
    distribution = Told(np.array([0.5, 0.25]))
    weights = ImportanceWeighting().weigh(distribution, later, np.random.default_rng(0))
    (asked,) = distribution.asked
    assert_array_equal(asked.steps, [1, 2])
    found = ImportanceWeighting().add(np.zeros((3, 2, 2)), Bandit.reveal(TABLE, later, weights), distribution)
    assert found[1, 1, 0] == TABLE[1, 1, 0] / 0.5
    assert found[2, 0, 1] == TABLE[2, 0, 1] / 0.25


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_visit_without_a_chance_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"\[h=1, s=1, a=0\] was visited, but its chance is 0; only a gamma above 0"):
        ImportanceWeighting().weigh(Told(np.array([0.5, 0.0, 1.0])), SEGMENT, np.random.default_rng(0))


@pytest.mark.parametrize("gamma", [-0.1, np.nan, np.inf])
@pytest.mark.parametrize("kind", [ImplicitExploration, DelayAdapted])
def test_a_gamma_that_cannot_be_added_is_refused(kind: type[ImplicitExploration], gamma: float) -> None:
    with pytest.raises(InvalidInput, match="gamma"):
        kind(gamma)


def test_a_learner_that_does_not_know_its_visits_is_refused() -> None:
    domain = MarkovPolicies(dense(SHAPE, 1))
    learner = replace(Ftpl.tuned(domain, 10), estimator=ImportanceWeighting())
    distribution = learner.start(domain, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="PerturbedLeader does not know its visit chances"):
        learner.weigh(distribution, Segment(np.array([0, 1]), np.array([1, 0])), np.random.default_rng(0))


def test_the_other_kind_of_feedback_is_refused() -> None:
    told = FullInformation(SEGMENT, Weights(np.ones(3)), TABLE)
    with pytest.raises(InvalidInput, match="DelayAdapted understands Bandit, not FullInformation"):
        learned(DelayAdapted(GAMMA), np.zeros((3, 2, 2)), told, Told(np.ones(3)))
