"""The regularized leader: mirror descent's twin over a kernel, and the update of its formula over a box."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from worlds import box_around, kernel_inside, random_kernel, random_policies, seeds

from amdp import BernsteinBox, MarkovPolicies, Radius, Segment
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation, Weights
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import MeasureLearner, MirrorDescent, RegularizedLeader, TiltedMeasure
from amdp.algorithms.occupancy.recipes import delayed_uob_ftrl
from amdp.algorithms.task import Task
from amdp.arrays import Floats
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.domains import Domain
from amdp.model.transitions import SingleKernel

FAST = "newton"
SHAPE = (3, 3, 2)
NOWHERE = Segment(np.zeros(3, int), np.zeros(3, int))


def kernel_of(seed: int = 1) -> SingleKernel:
    return random_kernel("dense", SHAPE, np.random.default_rng(seed))


def learned(learner: MeasureLearner, domain: Domain, tables: Floats) -> TiltedMeasure:
    distribution = learner.start(domain, np.random.default_rng(0))
    for table in tables:
        told = FullInformation(NOWHERE, Weights(np.empty(0)), table)
        distribution = learner.learn(learner.observe(distribution, NOWHERE), told)
    return distribution


def played(learner: MeasureLearner, domain: Domain, late: delays.Delays | None = None) -> Floats:
    game = ArenaGame(Episodic(kernel_of()), FixedLosses(np.random.default_rng(3).random((40, *SHAPE))), late)
    return np.array([one.policy for one in play_rounds(game, learner, domain, Streams.from_seed(1))])


@pytest.mark.parametrize("delay", [0, 4])
def test_over_a_kernel_it_plays_like_mirror_descent(delay: int) -> None:
    domain, late = MarkovPolicies(kernel_of()), delays.fixed(40, delay)
    leader, descent = (kind(0.1, ImportanceWeighting(), FAST) for kind in (RegularizedLeader, MirrorDescent))
    assert_allclose(played(leader, domain, late), played(descent, domain, late), atol=1e-5)


def test_over_a_box_that_narrows_it_does_not() -> None:
    domain = MarkovPolicies(BernsteinBox.vacuous(SHAPE, Radius.jin_2020(SHAPE, 40, scale=0.02)))
    leader, descent = (kind(0.1, ImplicitExploration(0.1), FAST) for kind in (RegularizedLeader, MirrorDescent))
    assert np.abs(played(leader, domain) - played(descent, domain)).max() > 1e-2


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_no_measure_of_the_box_has_a_smaller_sum_of_losses_and_entropy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    box = box_around(kernel_of(seed), 0.2, rng)
    tables = rng.random((3, *SHAPE))
    q = learned(RegularizedLeader(0.7, WholeTable(), FAST), MarkovPolicies(box), tables).projection.measure

    def regularized(q: Floats) -> float:
        met = q[q > 0]
        return float(0.7 * (q.sum(axis=-1) * tables.sum(axis=0)).sum() + (met * np.log(met)).sum())

    for policy in random_policies(20, SHAPE, rng):
        kernel = kernel_inside(box, rng)
        other = kernel.occupancy(policy[None], 0)[0][..., None] * kernel.p
        other[-1, ..., 0], other[-1, ..., 1:] = other[-1].sum(axis=-1), 0.0
        for share in (1e-3, 0.1, 1.0):
            assert regularized(q) <= regularized((1 - share) * q + share * other) + 1e-8


def test_its_prior_never_moves_and_nothing_is_forgotten() -> None:
    tables = np.random.default_rng(2).random((5, *SHAPE))
    distribution = learned(RegularizedLeader(0.3, WholeTable(), FAST), MarkovPolicies(kernel_of()), tables)
    assert (distribution.prior == 0).all()
    assert_allclose(distribution.total, tables.sum(axis=0))


def test_the_tuned_rate_is_that_of_the_formula() -> None:
    box = MarkovPolicies(BernsteinBox.vacuous(SHAPE))
    learner = delayed_uob_ftrl(Task(box, 1000, 200, multiplier=2.0))
    assert learner.rate == pytest.approx(2 * sqrt(log(18 * 1000) / (6 * 1000 + 3 * 36 * 200)))
    assert isinstance(learner.rate, float)
    assert learner.estimator == ImplicitExploration(learner.rate / 2)  # the multiplier scales the rate alone


def test_over_a_kernel_the_bound_is_that_of_mirror_descent() -> None:
    domain = MarkovPolicies(kernel_of())
    leader, descent = (kind(0.1, ImportanceWeighting()) for kind in (RegularizedLeader, MirrorDescent))
    assert leader.bound(domain, 500) == descent.bound(domain, 500)
