"""Rates as values: fixed ones never look, adaptive ones fall with the gaps, and twice their sum bounds the regret."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import random_kernel, seeds

import amdp
from amdp import InvalidInput, Kernel, MarkovPolicies, Segment, instances
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.named import tunes_itself
from amdp.algorithms.occupancy.measures import MirrorDescent, RegularizedLeader
from amdp.algorithms.occupancy.recipes import o_reps_adaptive
from amdp.algorithms.rates import AdaptiveRate, FixedRate, Rate, as_rate
from amdp.algorithms.soft_leader import SoftLeader, adaptive_rate
from amdp.algorithms.task import Task
from amdp.oracles.projection.base import project

SHAPE = (3, 3, 2)
gaps = st.lists(st.floats(-3.0, 3.0), max_size=30)


def never() -> float:
    raise AssertionError("a fixed rate asked for the gap")


def test_a_fixed_rate_stays_and_never_asks_for_the_gap() -> None:
    rate = FixedRate(0.3)
    assert rate.after(never) is rate
    assert as_rate(0.3) == rate
    assert as_rate(rate) is rate


@given(gaps=gaps, first=st.floats(0.1, 5.0))
def test_an_adaptive_rate_follows_the_running_maximum_of_the_sum_and_never_rises(
    gaps: list[float], first: float
) -> None:
    rate: Rate = AdaptiveRate(2.0, first)
    sums = [0.0]
    for gap in gaps:
        before = rate.value
        rate = rate.after(lambda gap=gap: gap)  # type: ignore[misc]
        sums.append(sums[-1] + gap)
        assert rate.value <= before
        assert rate.value == pytest.approx(2.0 / max(first, *sums))


def test_what_is_no_rate_is_refused() -> None:
    for wrong in (-1.0, np.inf, np.nan):
        with pytest.raises(InvalidInput, match="rate"):
            FixedRate(wrong)
        with pytest.raises(InvalidInput, match="first"):
            AdaptiveRate(1.0, wrong)
        with pytest.raises(InvalidInput, match="range"):
            AdaptiveRate(wrong)
    with pytest.raises(InvalidInput, match="first"):
        AdaptiveRate(1.0, 0.0)
    with pytest.raises(InvalidInput, match="DelayAdapted"):
        RegularizedLeader(AdaptiveRate(1.0), DelayAdapted(0.1))


def test_one_action_leaves_nothing_to_tune() -> None:
    assert adaptive_rate((4, 3, 1)).value == 0.0


Leader = SoftLeader | RegularizedLeader


def leaders(domain: MarkovPolicies) -> list[Leader]:
    flattest = o_reps_adaptive(Task(domain, 10)).rate
    assert isinstance(flattest, AdaptiveRate)
    return [
        SoftLeader(adaptive_rate(domain.shape), WholeTable()),
        RegularizedLeader(flattest, WholeTable()),
    ]


@given(seed=seeds, scale=st.sampled_from((1e-3, 1.0, 10.0)))
@settings(max_examples=15, deadline=None)
def test_the_regret_of_any_losses_is_at_most_twice_the_gaps_and_the_first(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    kernel, initial = random_kernel("dense", SHAPE, rng), int(rng.integers(SHAPE[1]))
    domain = MarkovPolicies(kernel, initial)
    tables = scale * rng.random((25, *SHAPE)) * (rng.random((25, 1, 1, SHAPE[2])) < 0.6)
    least = kernel.cheapest(tables.sum(axis=0)[None]).values[0, 0, initial]
    nowhere = Segment(np.empty(0, int), np.empty(0, int))
    for leader in leaders(domain):
        state, paid = leader.start(domain, rng), 0.0
        for table in tables:
            policy = state.draw(rng)
            paid += float((kernel.occupancy(policy[None], initial)[0] * table).sum())
            weights = leader.weigh(state, nowhere, rng)  # type: ignore[arg-type]
            before = state.rate
            feedback = FullInformation(nowhere, weights, table)
            state = leader.learn(leader.observe(state, nowhere), feedback)  # type: ignore[arg-type]
            assert isinstance(before, AdaptiveRate)
            assert isinstance(state.rate, AdaptiveRate)
            assert state.rate.total >= before.total - 1e-8 * scale  # each gap is at least 0
            assert state.rate.value <= before.value
        assert isinstance(state.rate, AdaptiveRate)
        assert paid - least <= 2.0 * state.rate.gaps + state.rate.first + 1e-7 * scale


def test_the_range_of_the_entropy_is_that_of_its_flattest_measure() -> None:
    kernel = random_kernel("dense", SHAPE, np.random.default_rng(4))
    domain = MarkovPolicies(kernel, 1)
    rate = o_reps_adaptive(Task(domain, 10)).rate
    assert isinstance(rate, AdaptiveRate)
    measure = project("newton", domain, np.ones(SHAPE)).measure
    assert rate.range == pytest.approx(-(measure * np.log(np.where(measure > 0, measure, 1.0))).sum())
    assert rate.range <= SHAPE[0] * log(SHAPE[1] * SHAPE[2])
    for policy in np.eye(2)[np.random.default_rng(5).integers(2, size=(50, *SHAPE[:2]))]:
        met = kernel.occupancy(policy[None], 1)[0]
        assert (met * np.log(np.where(met > 0, met, 1.0))).sum() <= 0.0


def test_the_adaptive_leader_plays_the_measure_that_cvxpy_finds() -> None:
    rng = np.random.default_rng(6)
    kernel = random_kernel("dense", SHAPE, rng)
    domain = MarkovPolicies(kernel, 2)
    leader, nowhere = leaders(domain)[1], Segment(np.empty(0, int), np.empty(0, int))
    assert isinstance(leader, RegularizedLeader)
    state = leader.start(domain, rng)
    for table in 4.0 * rng.random((6, *SHAPE)):
        weights = leader.weigh(state, nowhere, rng)
        state = leader.learn(leader.observe(state, nowhere), FullInformation(nowhere, weights, table))
    other = project("cvxpy", domain, np.exp(-state.rate.value * state.total))
    assert state.rate.value < leaders(domain)[1].start(domain, rng).rate.value
    np.testing.assert_allclose(state.projection.measure, other.measure, atol=1e-5)


def test_a_leader_with_a_number_is_one_with_a_fixed_rate_to_the_bit() -> None:
    rng = np.random.default_rng(7)
    domain, nowhere = MarkovPolicies(random_kernel("dense", SHAPE, rng)), Segment(np.empty(0, int), np.empty(0, int))
    tables = rng.random((5, *SHAPE))
    policies = []
    for rate in (0.4, FixedRate(0.4)):
        leader = RegularizedLeader(rate, WholeTable())
        state = leader.start(domain, rng)
        for table in tables:
            weights = leader.weigh(state, nowhere, rng)
            assert weights.occupancy is None
            state = leader.learn(leader.observe(state, nowhere), FullInformation(nowhere, weights, table))
        policies.append(state.draw(rng))
    assert np.array_equal(policies[0], policies[1])


@pytest.mark.parametrize("actions", [1, 2])
def test_bounds_of_adaptive_leaders_are_twice_the_gaps_at_the_range_of_the_entropy(actions: int) -> None:
    # The entropy of a measure of H steps over S states and A actions is at most H ln SA: with one action, too.
    domain = MarkovPolicies(random_kernel("dense", (3, 3, actions), np.random.default_rng(9)))
    rate, pairs = AdaptiveRate(1.0, first=0.5), 3 * actions
    full = RegularizedLeader(rate, WholeTable()).bound(domain, 100)
    implicit = RegularizedLeader(rate, ImplicitExploration(0.02)).bound(domain, 100)
    assert full is not None
    assert implicit is not None
    assert full.total == pytest.approx(6 + 0.5 + 6 * np.sqrt(100 * log(pairs)))
    assert implicit.total == pytest.approx(6 + 0.5 + 6 * np.sqrt(pairs * 100 * log(pairs)) + 0.02 * 3 * pairs * 100)


def test_mirror_descent_takes_numbers_only_and_bounds_say_what_is_proved() -> None:
    with pytest.raises(InvalidInput, match="RegularizedLeader"):
        MirrorDescent(AdaptiveRate(1.0), ImportanceWeighting())
    domain = MarkovPolicies(random_kernel("dense", SHAPE, np.random.default_rng(8)))
    learner = o_reps_adaptive(Task(domain, 100))
    bound = learner.bound(domain, 100)
    assert bound is not None
    assert bound.total == pytest.approx(6 + 1 + 6 * np.sqrt(600 * log(6)))
    assert learner.bound(domain, 100, waited=3) is None
    with pytest.raises(InvalidInput, match="multiplier"):
        o_reps_adaptive(Task(domain, 100, multiplier=2.0))


@pytest.mark.parametrize("shape", [(2, 1, 1), (3, 1, 1), (1, 1, 1)])
def test_with_one_policy_there_is_nothing_to_lose(shape: tuple[int, int, int]) -> None:
    world = instances.Instance("one policy", Kernel(np.ones((*shape, 1))), np.zeros(shape))
    for name in ("o-reps-adaptive", "soft-leader", "ftpl-adaptive"):
        assert amdp.play(amdp.Game(world, losses="uniform", rounds=20), name, seed=1).regret[-1] == pytest.approx(0.0)


def test_what_tunes_itself_is_known_by_its_refusal_of_a_multiplier() -> None:
    assert tunes_itself("soft-leader", {})
    assert not tunes_itself("soft-leader", {"rate": "theory"})
    assert tunes_itself("ftpl-shared", {"rate": "adaptive"})
    assert not any(tunes_itself(name, {}) for name in ("ftpl", "o-reps", "uob-reps", "hedge", "uniform", "mdp-e"))


def test_a_rate_by_word_or_number_is_multiplied_alike_by_all_learners() -> None:
    game = amdp.Game("tiny", rounds=10)
    for name in ("soft-leader", "ftpl-scaled"):
        assert amdp.play(game, name, rate=0.1, multiplier=2.0).parameters["rate"] == pytest.approx(0.2)
        theory = amdp.play(game, name, rate="theory").parameters["rate"]
        assert amdp.play(game, name, rate="theory", multiplier=3.0).parameters["rate"] == pytest.approx(3.0 * theory)
