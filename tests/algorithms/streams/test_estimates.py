"""Estimates that know of switches: their chances and means by enumeration of everything that can happen."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from algorithms.streams.streams import every_policy, parked_entry, plain_law
from amdp import InvalidInput, Segment, StationaryPolicies, one_hot
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.estimators.trials import StationaryTrials
from amdp.algorithms.hedge import Mixture, list_policies
from amdp.algorithms.streams.epochs import EnteredWeighting, ReplayedResampling, SkipSwitchWindow
from amdp.algorithms.streams.switching import Epoch, PolicySwitching, RenewedSwitching
from amdp.arrays import Floats, Policies
from amdp.model.chains import rows_of, stationary_costs, stationary_visits
from amdp.model.segments import Pairs, Place
from amdp.verification.stream_estimates import followed

STEPS, STOP = 16, 15
RENEWED = RenewedSwitching(parked_entry(STEPS, seed=3).kernel)
LAZY = PolicySwitching(RENEWED.kernel)
PLACES = {
    "first": Place(0, 0),
    "cut": Place(5, 1),
    "following": Place(7, 1, one_hot(np.array([1, 0, 1]), 2)),
}


def seen_from(place: Place, states: Any, actions: Any) -> Epoch:
    return Epoch(np.array(states), np.array(actions), STOP - len(states), began=place)


@pytest.mark.parametrize("entry", [LAZY, RENEWED], ids=["lazy", "renewed"])
@pytest.mark.parametrize("where", PLACES)
def test_visits_after_an_entry_are_those_of_enumeration(entry: PolicySwitching, where: str) -> None:
    place = PLACES[where]
    size = STOP - place.time
    rng = np.random.default_rng(1)
    policies = every_policy(3, 2)
    for _ in range(4):
        seen = seen_from(place, rng.integers(3, size=size), rng.integers(2, size=size))
        chances = entry.visits(seen, policies)
        for actions, found in zip(policies, chances, strict=True):
            exact = followed(entry, place, actions, STOP)
            expected = exact[np.arange(seen.start, STOP), seen.states] * (actions[seen.states] == seen.actions)
            assert_allclose(found, expected, atol=1e-12)


def test_continued_policies_go_on_from_the_state_where_they_are() -> None:
    place = PLACES["following"]
    seen = Epoch(np.array([1]), np.array([0]), 7, began=place)
    assert LAZY.visits(seen, np.array([[1, 0, 1]], dtype=np.int32))[0, 0] == 1.0


@dataclass(frozen=True, eq=False)
class Dice:
    """Policies with given chances."""

    domain: StationaryPolicies
    chances: Floats
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        return one_hot(self.policies(rng)(1)[0], self.domain.shape[2])

    def policies(self, rng: np.random.Generator) -> Any:
        every = every_policy(3, 2)
        return lambda n: every[rng.choice(len(every), size=n, p=self.chances)]

    @property
    def trials(self) -> StationaryTrials:
        return StationaryTrials.from_start(self, self.domain)


def dice(seed: int = 1) -> Dice:
    domain = StationaryPolicies(LAZY.kernel)
    return Dice(domain, np.random.default_rng(seed).dirichlet(np.ones(8)))


def mean_counts(estimator: Any, distribution: Any, seen: Epoch, runs: int) -> Floats:
    rng = np.random.default_rng(4)
    counts = np.array([estimator.weigh(distribution, seen, rng).values for _ in range(runs)])
    mean: Floats = counts.mean(axis=0)
    return mean


def likely(place: Place, size: int) -> Epoch:
    """A segment whose pairs all have a chance."""
    rng = np.random.default_rng(9)
    return seen_from(place, rng.integers(3, size=size), rng.integers(2, size=size))


@pytest.mark.parametrize("where", ["cut", "following"])
def test_replayed_counts_make_estimates_without_bias_but_for_the_limit(where: str) -> None:
    """`E[count] * chance of the visit = 1 - (1 - q)^limit`, with `q` the chance of being entered and there."""
    distribution, limit, runs = dice(), 30, 1500
    seen = likely(PLACES[where], 6)
    q = distribution.chances @ np.stack(
        [followed(LAZY, seen.began, pi, STOP)[np.arange(9, 15), seen.states] for pi in every_policy(3, 2)]
        * (every_policy(3, 2)[:, seen.states] == seen.actions)
    )
    mean = mean_counts(ReplayedResampling(limit, LAZY), distribution, seen, runs)
    expected = np.array([(1.0 - (1.0 - one) ** limit) / one if one > 0.0 else limit for one in q])
    assert_allclose(mean, expected, atol=2.0 * limit / np.sqrt(runs))


def test_settled_counts_are_those_of_policies_followed_from_the_start() -> None:
    distribution, limit, runs = dice(), 30, 1500
    seen = likely(PLACES["cut"], 8)  # from step 7 on; the epoch began in step 5
    q = distribution.chances @ stationary_visits(distribution.domain, every_policy(3, 2), seen.pairs)
    settled = SkipSwitchWindow(SharedResampling(limit), window=5)
    mean = mean_counts(settled, distribution, seen, runs)
    assert_array_equal(mean[:3], 0.0)
    assert_allclose(mean[3:], ((1.0 - (1.0 - q) ** limit) / q)[3:], atol=2.0 * limit / np.sqrt(runs))
    per_step = mean_counts(SkipSwitchWindow(GeometricResampling(limit), window=5), distribution, seen, runs)
    assert_allclose(per_step[3:], mean[3:], atol=3.0 * limit / np.sqrt(runs))


@pytest.mark.parametrize("window", [0, 2, 9, 10, 1000])
def test_a_window_ends_with_the_epoch_at_the_latest(window: int) -> None:
    seen = likely(PLACES["cut"], 8)
    weights = SkipSwitchWindow(SharedResampling(3), window).weigh(dice(), seen, np.random.default_rng(1)).values
    ignored = min(max(0, window - 2), 8)
    assert_array_equal(weights[:ignored], 0.0)
    assert (weights[ignored:] >= 1.0).all()


def test_hedge_weighs_by_the_exact_chance_of_being_entered_and_there() -> None:
    listed = list_policies(StationaryPolicies(LAZY.kernel))
    chances = np.random.default_rng(2).dirichlet(np.ones(8))
    seen = likely(PLACES["cut"], 6)
    q = np.zeros(6)
    for chance, actions in zip(chances, listed.actions, strict=True):
        there = followed(LAZY, seen.began, actions, STOP)[np.arange(9, 15), seen.states]
        q += chance * there * (actions[seen.states] == seen.actions)
    weights = EnteredWeighting(LAZY).weigh(Mixture(listed, chances), seen, np.random.default_rng(1))
    assert_allclose(weights.values, 1.0 / q)


def test_hedge_estimates_of_a_whole_epoch_have_the_losses_as_their_mean() -> None:
    """Over all policies and all that can happen, `E[1(followed there) / u] = 1` wherever there is a chance."""
    listed = list_policies(StationaryPolicies(RENEWED.kernel))
    chances = np.random.default_rng(2).dirichlet(np.ones(8))
    place, time = PLACES["cut"], 12
    met = np.zeros((3, 2))
    for chance, actions in zip(chances, listed.actions, strict=True):
        met[np.arange(3), actions] += chance * followed(RENEWED, place, actions, STOP)[time]
    for s, a in np.ndindex(3, 2):
        seen = Epoch(np.array([s, 0, 0]), np.array([a, 0, 0]), time, began=place)
        weight = EnteredWeighting(RENEWED).weigh(Mixture(listed, chances), seen, np.random.default_rng(1)).values[0]
        assert met[s, a] * weight == pytest.approx(1.0)


def test_an_empty_segment_needs_no_trials() -> None:
    nothing = Epoch(np.empty(0, int), np.empty(0, int), STOP, began=PLACES["cut"])
    for estimator in (SkipSwitchWindow(SharedResampling(3), 4), ReplayedResampling(3, LAZY)):
        weights = estimator.weigh(dice(), nothing, np.random.default_rng(1))
        assert (weights.values.shape, weights.trials) == ((0,), 0)
    listed = list_policies(StationaryPolicies(LAZY.kernel))
    mixture = Mixture(listed, np.full(8, 0.125))
    for weighting in (EnteredWeighting(LAZY), SkipSwitchWindow(ImportanceWeighting(), 4)):
        assert weighting.weigh(mixture, nothing, np.random.default_rng(1)).values.shape == (0,)


def test_chances_and_costs_of_stationary_policies_are_plain_sums() -> None:
    domain, rng = StationaryPolicies(LAZY.kernel), np.random.default_rng(1)
    rows, costs = rows_of(LAZY.kernel), np.zeros(domain.shape)
    costs[4:11] = rng.normal(size=(7, 3, 2))
    policies = every_policy(3, 2)
    visits = stationary_visits(domain, policies, Pairs.all(domain.shape)).reshape(8, *domain.shape)
    paid = stationary_costs(domain, policies, costs)
    for actions, found, cost in zip(policies, visits, paid, strict=True):
        exact = plain_law(rows, one_hot(actions, 2), 0, STEPS)[:, :, None] * one_hot(actions, 2)
        assert_allclose(found, exact, atol=1e-12)
        assert cost == pytest.approx((exact * costs).sum())
    assert_array_equal(stationary_costs(domain, policies, np.zeros(domain.shape)), np.zeros(8))


# --- bad input --------------------------------------------------------------------------------------------------------


def test_a_segment_of_an_episode_is_refused() -> None:
    plain = Segment(np.zeros(2, int), np.zeros(2, int))
    for estimator in (SkipSwitchWindow(SharedResampling(3), 1), ReplayedResampling(3, LAZY), EnteredWeighting(LAZY)):
        with pytest.raises(InvalidInput, match="play in a Continuing arena"):
            estimator.weigh(dice(), plain, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("inner", "window"), [(SharedResampling(3), -1), (SharedResampling(3), 1.5), (WholeTable(), 3)]
)
def test_a_window_makes_sense(inner: Any, window: Any) -> None:
    with pytest.raises(InvalidInput, match="window"):
        SkipSwitchWindow(inner, window)


def test_a_limit_is_at_least_one() -> None:
    with pytest.raises(InvalidInput, match="limit = 0"):
        ReplayedResampling(0, LAZY)
    assert ReplayedResampling(1, LAZY).feedback is Bandit
