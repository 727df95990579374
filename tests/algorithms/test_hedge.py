"""Hedge: its weights by listing all policies, Exp3 as its one-step case, and its bound."""

from dataclasses import replace
from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from worlds import box_around, kernel_inside, plain_values, random_kernel, seeds

from amdp import (
    BernsteinBox,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    Pairs,
    Radius,
    Segment,
    StationaryPolicies,
    instances,
    losses,
    occupancy,
    one_hot,
)
from amdp.algorithms import bounds
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.hedge import (
    BoxPolicyList,
    Hedge,
    Mixture,
    SetPolicyList,
    WeightedPolicies,
    count_policies,
    list_policies,
)
from amdp.algorithms.rates import as_rate
from amdp.arrays import Floats
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.domains import Domain
from amdp.model.segments import Shape

SHAPE = (2, 2, 2)
NOTHING = Weights(np.empty(0))


def domain_of(shape: Shape, seed: int = 1, kind: str = "dense") -> MarkovPolicies:
    return MarkovPolicies(random_kernel(kind, shape, np.random.default_rng(seed)))


def started(learner: Hedge, domain: Domain) -> WeightedPolicies:
    return learner.start(domain, np.random.default_rng(0))


def told(table: Floats) -> FullInformation:
    return FullInformation(Segment(np.zeros(1, int), np.zeros(1, int)), NOTHING, table)


def some_mixture(domain: Domain, seed: int = 2) -> Mixture:
    listed = list_policies(domain)
    return Mixture(listed, np.random.default_rng(seed).dirichlet(np.ones(len(listed.actions))))


def trajectories(domain: MarkovPolicies, mixture: Mixture) -> list[tuple[float, Segment]]:
    """Every policy and every trajectory of it, with the chance of both."""
    kernel = domain.dynamics
    assert isinstance(kernel, Kernel)
    steps, states, _ = domain.shape
    found = []
    for chance, policy in zip(mixture.chances, mixture.listed.actions, strict=True):
        for later in product(range(states), repeat=steps - 1):
            path = np.array([domain.initial, *later])
            taken = policy[np.arange(steps), path]
            moves = kernel.p[np.arange(steps - 1), path[:-1], taken[:-1], path[1:]]
            found.append((float(chance * moves.prod()), Segment(path, taken)))
    return found


# --- the list of policies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 2, 2), (3, 2, 2), (2, 3, 3)])
def test_policies_that_differ_at_a_reachable_state_are_listed_once(shape: Shape) -> None:
    steps, states, actions = shape
    domain = domain_of(shape)
    listed = list_policies(domain).actions
    assert len(listed) == count_policies(domain) == actions ** (1 + (steps - 1) * states)
    assert len(np.unique(listed.reshape(len(listed), -1), axis=0)) == len(listed)
    assert count_policies(MarkovPolicies(BernsteinBox.vacuous(shape))) == len(listed)


def test_states_that_cannot_be_reached_are_not_decided() -> None:
    domain = domain_of((3, 4, 2), kind="layered")
    assert count_policies(domain) == 2 ** (1 + 2 + 2), "half of the states in each later step"
    every = occupancy(domain.dynamics, one_hot(list_policies(domain).actions, 2))  # type: ignore[arg-type]
    assert len(np.unique(every.round(12).reshape(len(every), -1), axis=0)) == len(every)


def test_too_many_policies_are_refused_with_their_number() -> None:
    with pytest.raises(InvalidInput, match=r"2\^17 policies, more than its limit of 100000"):
        started(Hedge(0.1, ImportanceWeighting()), domain_of((5, 4, 2)))
    with pytest.raises(InvalidInput, match=r"10\^9901 policies"):
        started(Hedge(0.1, ImportanceWeighting()), MarkovPolicies(BernsteinBox.vacuous((100, 100, 10))))
    started(Hedge(0.1, ImportanceWeighting(), limit=2**17), domain_of((5, 4, 2)))


def test_stationary_policies_choose_once_for_all_steps() -> None:
    listed = list_policies(StationaryPolicies(Kernel.homogeneous(np.ones((1, 2, 1)), 3)))
    assert_array_equal(listed.actions, [[0], [1]])


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("width", [None, 0.0, 0.3])
def test_policies_pay_what_plain_recursion_says(seed: int, width: float | None) -> None:
    rng = np.random.default_rng(seed)
    domain = domain_of(SHAPE, seed)
    if width is not None:
        domain = MarkovPolicies(box_around(domain.dynamics, width, rng))  # type: ignore[arg-type]
    table = rng.random(SHAPE)
    listed = list_policies(domain)
    expected = [plain_values(domain, table, policy)[0, 0] for policy in listed.actions]
    assert_allclose(listed.expected_losses(table), expected, rtol=1e-12)


def test_losses_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"losses have shape \(5, 2, 2\)"):
        list_policies(domain_of((1, 2, 2))).expected_losses(np.ones((5, 2, 2)))


def test_pairs_that_do_not_exist_are_refused() -> None:
    nowhere = Pairs(np.array([0]), np.array([7]), np.array([0]))
    with pytest.raises(IndexError):
        some_mixture(domain_of(SHAPE)).visits(nowhere)


# --- weights ----------------------------------------------------------------------------------------------------------


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_chances_are_the_exponentials_of_what_was_paid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = domain_of((3, 2, 2), seed)
    distribution = started(Hedge(0.7, WholeTable()), domain)
    tables = rng.random((4, 3, 2, 2))
    for table in tables:
        distribution = Hedge(0.7, WholeTable()).learn(distribution, told(table))
    paid = np.array(
        [plain_values(domain, tables.sum(axis=0), policy)[0, 0] for policy in list_policies(domain).actions]
    )
    expected = np.exp(-0.7 * paid)
    assert_allclose(distribution.mixture.chances, expected / expected.sum(), rtol=1e-10)


def test_weights_of_any_size_stay_numbers() -> None:
    domain = domain_of(SHAPE)
    learner = Hedge(1.0, WholeTable())
    distribution = learner.learn(started(learner, domain), told(np.full(SHAPE, 1e6) * np.arange(8).reshape(SHAPE)))
    assert distribution.mixture.chances.sum() == pytest.approx(1.0)
    assert distribution.draw(np.random.default_rng(0)).shape == SHAPE


def test_one_step_and_one_state_is_exp3() -> None:
    """Delayed Exp3-IX in plain numbers, fed with the same luck."""
    arms, rate, gamma = 3, 0.3, 0.05
    domain = MarkovPolicies(Kernel(np.ones((1, 1, arms, 1))))
    learner = Hedge(rate, ImplicitExploration(gamma))
    distribution, rng = started(learner, domain), np.random.default_rng(3)
    sums, waiting = np.zeros(arms), []
    for k in range(60):
        chances = np.exp(-rate * sums) / np.exp(-rate * sums).sum()
        assert_allclose(distribution.mixture.chances, chances, rtol=1e-10)
        arm = int(rng.integers(arms))
        segment = Segment(np.array([0]), np.array([arm]))
        waiting.append((arm, rng.random(), chances[arm], segment, learner.weigh(distribution, segment, rng)))
        distribution = learner.observe(distribution, segment)
        if k % 3 == 2:  # three at a time, the oldest two rounds late
            for pulled, loss, chance, seen, weights in waiting:
                sums[pulled] += loss / (chance + gamma)
                distribution = learner.learn(distribution, Bandit(seen, weights, np.array([loss])))
            waiting.clear()


def test_the_order_of_arrivals_does_not_matter() -> None:
    domain = MarkovPolicies(BernsteinBox.vacuous(SHAPE, Radius.paper(SHAPE, 100, scale=0.05)))
    learner = Hedge(0.2, DelayAdapted(0.1))
    distribution, rng = started(learner, domain), np.random.default_rng(4)
    feedbacks = []
    for _ in range(6):
        segment = Segment(rng.integers(2, size=2), rng.integers(2, size=2))
        feedbacks.append(Bandit(segment, learner.weigh(distribution, segment, rng), rng.random(2)))
        distribution = learner.observe(distribution, segment)
    forwards = backwards = distribution
    for one, other in zip(feedbacks, reversed(feedbacks), strict=True):
        forwards, backwards = learner.learn(forwards, one), learner.learn(backwards, other)
    assert_allclose(forwards.mixture.chances, backwards.mixture.chances, rtol=1e-12)
    assert (distribution.incurred == 0).all(), "states are values: the old one is what it was"


def test_delay_adapted_asks_the_mixture_and_the_box_of_the_round_of_arrival() -> None:
    domain = MarkovPolicies(BernsteinBox.vacuous(SHAPE, Radius.paper(SHAPE, 10, scale=1e-3)))
    learner = Hedge(0.5, DelayAdapted(0.1))
    first, rng = started(learner, domain), np.random.default_rng(8)
    early, table = Segment(np.array([0, 1]), np.array([1, 0])), np.ones(SHAPE)
    late = Bandit.reveal(table, early, learner.weigh(first, early, rng))
    second = learner.observe(first, early)
    dynamics = second.domain.dynamics
    assert isinstance(dynamics, BernsteinBox)
    assert dynamics.upper[0, 0, 1, 0] < 0.5, "the box narrows at once"
    again = Segment(np.array([0, 1]), np.array([1, 1]))
    prompt = Bandit.reveal(table, again, learner.weigh(second, again, rng))
    third = learner.learn(learner.observe(second, again), prompt)
    last = learner.observe(third, Segment(np.array([0, 0]), np.array([0, 0])))
    assert (last.mixture.visits(early.pairs) < third.mixture.visits(early.pairs) - 0.01).any(), "already the next round"
    found = learner.learn(last, late).incurred - last.incurred
    then, now = first.mixture.visits(early.pairs), third.mixture.visits(early.pairs)
    assert (now < then - 0.01).any()
    assert (now > then + 0.01).any()
    estimate = np.zeros(SHAPE)
    estimate[early.places] = 1 / (np.maximum(then, now) + 0.1)
    assert_allclose(found, last.listed.expected_losses(estimate), rtol=1e-12)


def test_policies_are_drawn_with_their_chances() -> None:
    mixture = some_mixture(domain_of(SHAPE))
    n = 40_000
    drawn = mixture.sample(n, np.random.default_rng(5)).reshape(n, -1)
    every = mixture.listed.actions.reshape(len(mixture.chances), -1)
    counts = (drawn[:, None] == every).all(axis=2).sum(axis=0)
    assert counts.sum() == n
    assert stats.chisquare(counts, mixture.chances * n).pvalue > 1e-7


# --- estimates --------------------------------------------------------------------------------------------------------


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_importance_weights_of_the_mixture_have_the_losses_as_their_mean(seed: int) -> None:
    domain, table = domain_of(SHAPE, seed), np.random.default_rng(seed).random(SHAPE)
    mixture = some_mixture(domain, seed)
    mean, second = np.zeros(SHAPE), 0.0
    for chance, segment in trajectories(domain, mixture):
        if chance > 0:
            weights = ImportanceWeighting().weigh(mixture, segment, np.random.default_rng(0))
            estimate = ImportanceWeighting().add(np.zeros(SHAPE), Bandit.reveal(table, segment, weights), mixture)
            mean += chance * estimate
            second += chance * float(mixture.chances @ mixture.listed.expected_losses(estimate) ** 2)
    reached = mixture.visits(Pairs.all(SHAPE)).reshape(SHAPE) > 0
    assert_allclose(mean[reached], table[reached], rtol=1e-9)
    steps, states, actions = SHAPE
    assert second <= steps**2 * states * actions, "what the bound says of the second moment"


def test_over_a_box_the_visits_are_the_mixture_of_the_greatest() -> None:
    rng = np.random.default_rng(6)
    box = box_around(random_kernel("dense", SHAPE, rng), 0.4, rng)
    mixture = some_mixture(MarkovPolicies(box))
    found = mixture.visits(Pairs.all(SHAPE))
    each = box.greatest_visits(one_hot(mixture.listed.actions, 2), 0, Pairs.all(SHAPE))
    assert_allclose(found, mixture.chances @ each)
    inside = kernel_inside(box, rng).occupancy(one_hot(mixture.listed.actions, 2), 0)
    assert (found.reshape(SHAPE) >= np.tensordot(mixture.chances, inside, 1) - 1e-12).all()


@pytest.mark.parametrize("estimator", [GeometricResampling(20), SharedResampling(20)], ids=["apart", "together"])
def test_resampling_counts_have_the_mean_that_their_chance_says(
    estimator: GeometricResampling | SharedResampling,
) -> None:
    domain = domain_of(SHAPE)
    distribution = started(Hedge(0.1, estimator), domain)
    segment = Segment(np.array([0, 1]), np.array([1, 0]))
    rng = np.random.default_rng(7)
    n = 3_000
    counts = np.array([estimator.weigh(distribution.mixture, segment, rng).values for _ in range(n)])
    q = distribution.mixture.visits(Pairs(*segment.places))
    expected = (1 - (1 - q) ** 20) / q
    assert (np.abs(counts.mean(axis=0) - expected) < 5.5 * counts.std(axis=0) / sqrt(n)).all()


# --- whole games ------------------------------------------------------------------------------------------------------

K = 2500  # enough that a learner which stays at its start exceeds its bound


def game_of(learner: Hedge, late: delays.Delays | None = None) -> tuple[ArenaGame, instances.Instance]:
    world = instances.build("tiny")
    adversary = losses.named("bernoulli", world.shape, K, 1, world.costs)
    return ArenaGame(Episodic(world.kernel, world.initial), adversary, late, learner.feedback), world


@pytest.mark.parametrize("delay", [0, 20])
@pytest.mark.parametrize("kind", ["exact", "tuned"])
def test_regret_stays_below_its_bound(kind: str, delay: int) -> None:
    domain = instances.build("tiny").domain
    late = delays.fixed(K, delay)
    learner = getattr(Hedge, kind)(domain, K, late.total_within)
    game, _ = game_of(learner, late)
    regret = measure(game, play_rounds(game, learner, domain, Streams.from_seed(1)), checkpoints=[K])
    bound = learner.bound(domain, K, late.total_within)
    assert bound is not None
    assert regret.low[-1] < bound.total
    assert (bound.waiting > 0) == (delay > 0)
    if not delay:
        idle = replace(learner, rate=1e-12)
        lazy = measure(game, play_rounds(game, idle, domain, Streams.from_seed(1)), checkpoints=[K])
        assert lazy.low[-1] > bound.total


def test_a_box_that_holds_one_kernel_plays_like_the_kernel() -> None:
    learner = Hedge(0.05, ImplicitExploration(0.05))
    game, world = game_of(learner)
    box = MarkovPolicies(BernsteinBox.exactly(world.kernel), world.initial)
    known = [one.policy for one in play_rounds(game, learner, world.domain, Streams.from_seed(1), rounds=100)]
    boxed = [one.policy for one in play_rounds(game, learner, box, Streams.from_seed(1), rounds=100)]
    assert_array_equal(known, boxed)


def test_without_delay_delay_adapted_plays_like_implicit_exploration() -> None:
    game, world = game_of(Hedge(0.05, ImplicitExploration(0.05)))
    told_nothing = MarkovPolicies(BernsteinBox.vacuous(world.shape, Radius.paper(world.shape, K, scale=0.03)))
    runs = [
        [
            one.policy
            for one in play_rounds(game, Hedge(0.05, kind(0.05)), told_nothing, Streams.from_seed(2), rounds=60)
        ]
        for kind in (ImplicitExploration, DelayAdapted)
    ]
    assert_array_equal(runs[0], runs[1])


# --- theory -----------------------------------------------------------------------------------------------------------


def test_the_tuned_rate_balances_the_bound_up_to_a_small_factor() -> None:
    domain = domain_of((3, 2, 2))
    learner = Hedge.exact(domain, 1000, 500)
    assert learner.rate == pytest.approx(sqrt(2 * log(2) / (3 * (4 * 1000 + 500))))
    assert Hedge.tuned(domain, 1000, 500, multiplier=2.0).rate == 2 * as_rate(learner.rate).value
    totals = [
        bounds.hedge(domain.shape, 1000, learner.rate * factor, count_policies(domain), 0.0, 500).total
        for factor in np.geomspace(0.05, 20, 60)
    ]
    bound = learner.bound(domain, 1000, 500)
    assert bound is not None
    assert bound.total < 1.2 * min(totals)


def test_the_terms_of_the_bound_are_those_of_the_formula() -> None:
    bound = Hedge(0.1, ImplicitExploration(0.2)).bound(domain_of((3, 2, 2)), 50, waited=7)
    expected = bounds.Bound(5 * log(2) / 0.1, 0.1 * 9 * 4 * 50 / 2, 0.2 * 12 * 50, 0.1 * 9 * 7)
    assert bound is not None
    assert_allclose(list(vars(bound).values()), list(vars(expected).values()))
    assert bound.total == pytest.approx(sum(vars(expected).values()))


def test_no_bound_is_stated_where_none_is_known() -> None:
    box = MarkovPolicies(BernsteinBox.vacuous(SHAPE))
    assert Hedge.tuned(box, 100).bound(box, 100) is None
    assert Hedge(0.1, GeometricResampling(5)).bound(domain_of(SHAPE), 100) is None


def test_one_action_costs_nothing() -> None:
    domain = domain_of((2, 2, 1))
    learner = Hedge.tuned(domain, 100)
    bound = learner.bound(domain, 100)
    assert learner.rate == 0.0
    assert bound is not None
    assert bound.total == 0.0


@pytest.mark.parametrize("rate", [-1.0, np.nan, np.inf])
def test_a_rate_that_means_nothing_is_refused(rate: float) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        Hedge(rate, ImportanceWeighting())


def test_the_other_kind_of_feedback_is_refused() -> None:
    learner = Hedge(0.1, WholeTable())
    distribution = started(learner, domain_of(SHAPE))
    with pytest.raises(InvalidInput, match="WholeTable understands FullInformation, not Bandit"):
        learner.learn(
            distribution, Bandit(Segment(np.zeros(2, int), np.zeros(2, int)), Weights(np.ones(2)), np.ones(2))
        )


@pytest.mark.parametrize("shape", [(1, 2, 3), (2, 3, 2), (3, 2, 3), (4, 3, 2)])
def test_policies_over_a_box_that_share_their_sweeps_get_what_each_alone_gets(shape: Shape) -> None:
    """Sharing policies that differ before a pair, or after it, would give some of them the numbers of others."""
    rng = np.random.default_rng(5)
    domain = MarkovPolicies(box_around(random_kernel("dense", shape, rng), 0.3, rng), shape[1] - 1)
    listed = list_policies(domain)
    alone = SetPolicyList(domain, listed.actions, one_hot(listed.actions, shape[2]))
    assert isinstance(listed, BoxPolicyList)
    every = Pairs.all(shape)
    shuffled = rng.permutation(len(every.steps))
    pairs = Pairs(every.steps[shuffled], every.states[shuffled], every.actions[shuffled])
    assert_allclose(listed.visits(pairs), alone.visits(pairs), atol=1e-13)
    estimate = rng.exponential(size=shape)
    assert_allclose(listed.expected_losses(estimate), alone.expected_losses(estimate), rtol=1e-13)
