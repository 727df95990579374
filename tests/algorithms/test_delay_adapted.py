"""Delay-adapted FTPL: what the smaller of two counts stands for, and whose luck the second count has."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from worlds import random_kernel, seeds

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Radius, Segment
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.algorithms.estimators.resampling import SharedResampling
from amdp.algorithms.ftpl.delay_adapted import DelayAdaptedFtpl, DelayAdaptedResampling, RememberingLeader
from amdp.algorithms.ftpl.perturbations import Exponential, Gaussian, Gumbel, Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, PerturbedLeader
from amdp.algorithms.ftpl.recipes import NOISES
from amdp.algorithms.named import learner
from amdp.arrays import Floats
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.verification.known_transitions import first_leads

ARM = Segment(np.array([0]), np.array([0]))
RATE, LIMIT = 0.7, 9


def bandit(advantage: float) -> RememberingLeader:
    """Two arms, of which the first is ahead by so much."""
    domain = MarkovPolicies(Kernel(np.ones((1, 1, 2, 1))))
    fresh = DelayAdaptedFtpl(Laplace(RATE), DelayAdaptedResampling(LIMIT)).start(domain, np.random.default_rng(1))
    return replace(fresh, total=np.array([[[0.0, advantage]]]))


def weight(then: RememberingLeader, now: RememberingLeader, k: int) -> float:
    """What a loss of 1 at the first arm in round `k` adds to the sum."""
    estimator = DelayAdaptedResampling(LIMIT)
    weights = estimator.weigh(replace(then, rounds=k), ARM, np.random.default_rng(0))
    return float(estimator.add(np.zeros((1, 1, 2)), Bandit(ARM, weights, np.ones(1)), now)[0, 0, 0])


@pytest.mark.parametrize(("before", "after"), [(-1.0, 0.5), (0.5, -1.0), (-1.5, -1.5)])
def test_with_arms_the_mean_weight_is_that_of_the_greater_chance(before: float, after: float) -> None:
    # Common noise nests the two events, so that u = max(q_then, q_now). False alarms: 6 standard errors, 2e-9 each.
    # It rejects independent counts (u = q + q' - qq'), the larger count, and the count of either round alone.
    then, now = bandit(before), bandit(after)
    found = np.array([weight(then, now, k) for k in range(3_000)])
    chance = max(first_leads(before, RATE), first_leads(after, RATE))
    mean = (1.0 - (1.0 - chance) ** LIMIT) / chance
    assert abs(found.mean() - mean) < 6.0 * found.std() / np.sqrt(len(found))


def told(domain: MarkovPolicies, total: Floats, seed: int) -> tuple[RememberingLeader, Segment, Bandit]:
    """A distribution, a segment of a policy from it, and its feedback."""
    rng = np.random.default_rng(seed)
    recipe = DelayAdaptedFtpl(Laplace(0.3), DelayAdaptedResampling(20))
    distribution = replace(recipe.start(domain, rng), total=total, rounds=int(rng.integers(100)))
    segment = Episodic(domain.dynamics).play(distribution.draw(rng), rng)  # type: ignore[arg-type]
    return (
        distribution,
        segment,
        Bandit.reveal(rng.random(domain.shape), segment, recipe.weigh(distribution, segment, rng)),
    )


@settings(max_examples=25)
@given(seed=seeds)
def test_nothing_is_adapted_if_nothing_was_learned_in_between(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = MarkovPolicies(random_kernel("dense", (3, 3, 2), rng))
    distribution, segment, feedback = told(domain, 5.0 * rng.random(domain.shape), seed)
    plain = distribution.total.copy()
    plain[segment.places] += feedback.weights.values * feedback.losses
    later = replace(distribution, rounds=distribution.rounds + 7)
    assert_array_equal(DelayAdaptedResampling(20).add(distribution.total, feedback, later), plain)


@settings(max_examples=25)
@given(seed=seeds)
def test_a_delay_makes_weights_smaller_never_larger(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = MarkovPolicies(random_kernel("dense", (3, 3, 2), rng))
    distribution, segment, feedback = told(domain, np.zeros(domain.shape), seed)
    later = replace(distribution, total=20.0 * rng.random(domain.shape))
    found = DelayAdaptedResampling(20).add(np.zeros(domain.shape), feedback, later)[segment.places]
    assert (found <= feedback.weights.values * feedback.losses).all()
    assert (found >= feedback.losses).all()  # a count is at least 1


def test_a_game_with_delays_is_that_of_a_loop_by_hand() -> None:
    rng = np.random.default_rng(3)
    kernel, rounds, limit = Kernel(rng.dirichlet(np.ones(2), size=(2, 2, 2))), 30, 15
    domain, tables = MarkovPolicies(kernel), rng.random((rounds, 2, 2, 2))
    late = delays.recorded(rng.integers(0, 6, size=rounds))
    game = ArenaGame(Episodic(kernel), FixedLosses(tables), late)
    recipe = DelayAdaptedFtpl(Laplace(0.5), DelayAdaptedResampling(limit))
    played = list(play_rounds(game, recipe, domain, Streams.from_seed(4)))

    luck = Streams.from_seed(4).learner
    seed, planner = int(luck.integers(2**63)), recipe.start(domain, np.random.default_rng(0)).planner
    total, waiting = np.zeros(domain.shape), {}

    def counts(costs: Floats, segment: Segment, k: int) -> Weights:
        distribution = PerturbedLeader(planner, Laplace(0.5), costs)
        return SharedResampling(limit).weigh(distribution, segment, np.random.default_rng([seed, k]))

    for k, one in enumerate(played):
        assert_array_equal(one.policy, PerturbedLeader(planner, Laplace(0.5), total).draw(luck))
        waiting[k] = one.segment, counts(total, one.segment, k).values
        for j in late.arrivals(k):
            segment, then = waiting[int(j)]
            now, total = counts(total, segment, int(j)).values, total.copy()
            total[segment.places] += np.minimum(then, now) * tables[j][segment.places]


def test_every_round_has_luck_of_its_own() -> None:
    distribution = bandit(-2.0)
    assert len({float(weight(distribution, distribution, k)) for k in range(40)}) > 3
    assert distribution.trial_rng(3).random() == replace(distribution, rounds=9).trial_rng(3).random()


def test_the_recipe_is_tuned_as_plain_ftpl_and_states_no_bound() -> None:
    domain = MarkovPolicies(random_kernel("dense", (3, 3, 2), np.random.default_rng(1)))
    names = ("ftpl-shared", "ftpl-delay-adapted")
    plain, adapted = [cast(Any, learner(name, domain, 50, 200, multiplier=3.0)) for name in names]
    assert adapted.perturbation == plain.perturbation
    assert adapted.estimator.limit == plain.estimator.limit
    assert adapted.bound(domain, 50) is None
    assert plain.bound(domain, 50) is not None
    with pytest.raises(InvalidInput, match="limit = 0"):
        DelayAdaptedResampling(0)


def test_it_learns_over_a_box() -> None:
    rng = np.random.default_rng(2)
    kernel, shape = Kernel(rng.dirichlet(np.ones(2), size=(2, 2, 2))), (2, 2, 2)
    domain = MarkovPolicies(BernsteinBox.vacuous(shape, Radius.paper(shape, 20, scale=0.01)))
    game = ArenaGame(Episodic(kernel), FixedLosses(rng.random((20, *shape))), delays.fixed(20, 3))
    played = list(play_rounds(game, learner("ftpl-delay-adapted", domain, 20, 60), domain, Streams.from_seed(1)))
    assert sum(one.arrived for one in played) == 17
    assert any(one.rebuilt for one in played)


@pytest.mark.parametrize("name", ["ftpl", "ftpl-shared"])
def test_the_noise_of_ftpl_is_chosen_by_name(name: str) -> None:
    domain = MarkovPolicies(random_kernel("dense", (2, 2, 2), np.random.default_rng(1)))
    kinds = {"laplace": Laplace, "exponential": Exponential, "gumbel": Gumbel, "gaussian": Gaussian}
    assert set(kinds) == set(NOISES)
    usual: Any = learner(name, domain, 50)
    assert isinstance(usual, Ftpl)
    for noise, kind in kinds.items():
        made: Any = learner(name, domain, 50, perturbation=noise)
        assert type(made.perturbation) is kind
        assert made.perturbation.rate == usual.perturbation.rate
    with pytest.raises(InvalidInput, match="perturbation = 'cauchy'; known names: laplace"):
        learner(name, domain, 50, perturbation="cauchy")
