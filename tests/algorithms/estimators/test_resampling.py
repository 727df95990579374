"""Geometric resampling against the exact law of its counts, and what estimates add to a sum."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from worlds import box_around, random_kernel

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Pairs, Segment, one_hot
from amdp.algorithms.base import Trials
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.estimators.trials import BatchedTrials
from amdp.arrays import Actions, Floats, Policies
from amdp.model.domains import Domain
from amdp.model.dynamics import Dynamics
from amdp.model.segments import Shape

SHAPE = (3, 2, 2)
FORMS: dict[str, type[GeometricResampling | SharedResampling]] = {
    "independent": GeometricResampling,
    "shared": SharedResampling,
}
SIGMAS = 5.5  # a false alarm in 26 million draws of a normal number


@dataclass(frozen=True, eq=False)
class FewPolicies:
    """A known distribution over a few policies: a sampler whose visit chances can be summed up."""

    domain: Domain
    table: Actions  # [i, h, s]
    chances: Floats  # [i]
    sampled: list[int] = field(default_factory=list)
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        return one_hot(self.policies(rng)(1)[0], self.domain.shape[2])

    @property
    def trials(self) -> Trials:
        return BatchedTrials(self)

    def policies(self, rng: np.random.Generator) -> Callable[[int], Actions]:
        def sample(n: int) -> Actions:
            self.sampled.append(n)
            return self.table[rng.choice(len(self.table), size=n, p=self.chances)]

        return sample

    def visits(self, segment: Segment) -> Floats:
        """The chance `[m]` that a trial succeeds at each pair of a segment."""
        pairs = Pairs(np.arange(len(segment.states)), segment.states, segment.actions)
        each = self.domain.dynamics.greatest_visits(one_hot(self.table, self.domain.shape[2]), 0, pairs)
        return self.chances @ each


def few_policies(dynamics: Dynamics, seed: int = 4) -> FewPolicies:
    rng = np.random.default_rng(seed)
    policies = rng.integers(dynamics.shape[2], size=(4, *dynamics.shape[:2])).astype(np.int32)
    return FewPolicies(MarkovPolicies(dynamics), policies, rng.dirichlet(np.ones(4)))


def dynamics_of(kind: str, shape: Shape = SHAPE) -> Dynamics:
    rng = np.random.default_rng(1)
    if kind == "exact box":
        return BernsteinBox.exactly(random_kernel("dense", shape, rng))
    if kind == "wide box":
        return box_around(random_kernel("dense", shape, rng), 0.3, rng)
    return random_kernel(kind, shape, rng)


def some_segment(distribution: FewPolicies) -> Segment:
    """The pairs of each step that are visited most rarely, but at times."""
    shape = distribution.domain.shape
    all_pairs = np.indices(shape[1:]).reshape(2, -1)
    chosen = []
    for h in range(shape[0]):
        visits = [distribution.visits(_constant(shape[0], s, a))[h] for s, a in all_pairs.T]
        chosen.append(all_pairs[:, int(np.argmin(np.where(np.array(visits) > 0.05, visits, 2.0)))])
    states, actions = np.array(chosen).T
    return Segment(states.copy(), actions.copy())  # in one piece, as a walk leaves them: one form of each kernel


def _constant(steps: int, s: int, a: int) -> Segment:
    return Segment(np.full(steps, s), np.full(steps, a))


def counts_of(form: str, limit: int, distribution: FewPolicies, segment: Segment, n: int, seed: int = 2) -> Floats:
    rng = np.random.default_rng(seed)
    return np.array([FORMS[form](limit).weigh(distribution, segment, rng).values for _ in range(n)])


def count_law(q: float, limit: int) -> Floats:
    """The chance of each count `1 .. limit`: geometric, with the rest at the limit."""
    chances: Floats = q * (1 - q) ** np.arange(float(limit))
    chances[-1] = (1 - q) ** (limit - 1)
    return chances


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["dense", "sparse", "exact box", "wide box"])
def test_counts_have_the_truncated_geometric_law(form: str, kind: str) -> None:
    distribution, limit, n = few_policies(dynamics_of(kind)), 6, 1000
    segment = some_segment(distribution)
    counts = counts_of(form, limit, distribution, segment, n)
    for h, q in enumerate(distribution.visits(segment)):
        law = count_law(q, limit)
        seen = np.bincount(counts[:, h].astype(int), minlength=limit + 1)[1:]
        if q > 1 - 1e-9:
            assert (counts[:, h] == 1).all()
            continue
        assert stats.chisquare(seen, n * law).pvalue > 1e-7  # the false-alarm rate of each


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["dense", "wide box"])
@pytest.mark.parametrize("limit", [1, 3, 40, 400])
def test_mean_and_second_moment_of_counts(form: str, kind: str, limit: int) -> None:
    distribution, n = few_policies(dynamics_of(kind)), 500
    segment = some_segment(distribution)
    counts = counts_of(form, limit, distribution, segment, n)
    for h, q in enumerate(distribution.visits(segment)):
        law, values = count_law(q, limit), np.arange(1.0, limit + 1)
        for power, expected in ((1, (1 - (1 - q) ** limit) / q), (2, law @ values**2)):
            error = np.sqrt(max(0.0, law @ values ** (2 * power) - expected**2) / n)
            assert abs(np.mean(counts[:, h] ** power) - expected) <= SIGMAS * error + 1e-9
        assert law @ values**2 <= 2 / q**2
        assert np.mean(counts[:, h] ** 2) <= 2 / q**2 + SIGMAS * np.sqrt(law @ values**4 / n)


@pytest.mark.parametrize("form", FORMS)
def test_rare_pairs_are_waited_for_over_several_batches_up_to_the_limit(form: str) -> None:
    # A kernel of one state: the pair is visited with the chance of its policy.
    q, limit, n = 0.004, 400, 500
    distribution = FewPolicies(
        MarkovPolicies(Kernel(np.ones((1, 1, 2, 1)))), np.array([[[0]], [[1]]], np.int32), np.array([1 - q, q])
    )
    counts = counts_of(form, limit, distribution, Segment(np.array([0]), np.array([1])), n)[:, 0]
    law, values = count_law(q, limit), np.arange(1.0, limit + 1)
    expected = (1 - (1 - q) ** limit) / q
    error = np.sqrt((law @ values**2 - expected**2) / n)
    assert abs(counts.mean() - expected) <= SIGMAS * error
    assert abs(counts.mean() - 1 / q) > 5 * error, "a test that forgot the limit would pass"
    assert stats.binomtest(int((counts == limit).sum()), n, law[-1]).pvalue > 1e-7
    assert counts.max() == limit


def shared(steps: int) -> tuple[FewPolicies, Segment]:
    """Two policies on a path of their own each: the pairs of a segment are met all at once or not at all."""
    p = np.zeros((steps, 2, 2, 2))
    p[:, :, 0, 0] = p[:, :, 1, 1] = 1.0
    policies = np.stack([np.zeros((steps, 2), np.int32), np.ones((steps, 2), np.int32)])
    distribution = FewPolicies(MarkovPolicies(Kernel(p)), policies, np.array([0.8, 0.2]))
    states = np.ones(steps, np.int64)
    states[0] = 0
    return distribution, Segment(states, np.ones(steps, np.int64))


def test_shared_trials_give_equal_counts_to_pairs_that_are_met_together() -> None:
    counts = counts_of("shared", 50, *shared(4), 200)
    assert_array_equal(counts, np.repeat(counts[:, :1], 4, axis=1))


def test_independent_trials_give_uncorrelated_counts_to_pairs_that_are_met_together() -> None:
    n = 1500
    counts = counts_of("independent", 50, *shared(4), n)
    correlations = np.asarray(np.corrcoef(counts.T))[np.triu_indices(4, 1)]
    assert (np.abs(correlations) < SIGMAS / np.sqrt(n)).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limit", [1, 5, 33, 1000])
def test_every_policy_that_is_sampled_is_counted_as_a_trial(form: str, limit: int) -> None:
    distribution = few_policies(dynamics_of("dense"))
    segment, rng = some_segment(distribution), np.random.default_rng(0)
    for _ in range(50):
        distribution.sampled.clear()
        weights = FORMS[form](limit).weigh(distribution, segment, rng)
        assert weights.trials == sum(distribution.sampled)
        assert weights.trials <= limit * (SHAPE[0] if form == "independent" else 1)
        assert weights.trials >= (weights.values.sum() if form == "independent" else weights.values.max())
        assert ((weights.values >= 1) & (weights.values <= limit)).all()
        assert_array_equal(weights.values, np.round(weights.values))


@pytest.mark.parametrize("form", FORMS)
def test_a_pair_that_is_never_met_gets_the_limit(form: str) -> None:
    distribution, segment = shared(3)
    never = Segment(segment.states, np.array([1, 1, 0]))
    assert (counts_of(form, 37, distribution, never, 5)[:, 2] == 37).all()


@pytest.mark.parametrize("form", FORMS)
def test_estimates_are_the_losses_but_for_the_truncation(form: str) -> None:
    # E[estimate] = (1 - (1-q)^limit) loss for a source that is also played.
    distribution, limit, n = few_policies(dynamics_of("dense")), 8, 2000
    rng, table = np.random.default_rng(8), np.random.default_rng(9).random(SHAPE)
    kernel, estimator = distribution.domain.dynamics, FORMS[form](limit)
    assert isinstance(kernel, Kernel)
    sums, squares = np.zeros(SHAPE), np.zeros(SHAPE)
    for _ in range(n):
        policy = one_hot(distribution.policies(rng)(1)[0], SHAPE[2])
        segment = kernel.walk(policy, 0, rng.random((SHAPE[0], 2)))
        weights = estimator.weigh(distribution, segment, rng)
        estimate = estimator.add(np.zeros(SHAPE), Bandit.reveal(table, segment, weights), distribution)
        sums += estimate
        squares += estimate**2
    q = distribution.chances @ kernel.occupancy(one_hot(distribution.table, SHAPE[2]), 0).reshape(4, -1)
    mean, spread = sums / n, np.sqrt(squares / n - (sums / n) ** 2)
    expected = (1 - (1 - q.reshape(SHAPE)) ** limit) * table
    assert (np.abs(mean - expected) <= SIGMAS * spread / np.sqrt(n) + 1e-9).all()


@pytest.mark.parametrize("form", FORMS)
def test_over_a_box_estimates_shrink_by_the_ratio_of_true_and_greatest_chance(form: str) -> None:
    # E[count] = (1 - (1-u)^limit) / u with u the greatest chance, so E[estimate] = (q/u) (1 - (1-u)^limit) loss.
    kernel = dynamics_of("dense")
    assert isinstance(kernel, Kernel)
    box = box_around(kernel, 0.3, np.random.default_rng(3))
    true, seen = few_policies(kernel), few_policies(box)
    segment = some_segment(true)
    q, u, limit, n = true.visits(segment), seen.visits(segment), 12, 1000
    assert (u >= q - 1e-12).all()
    assert (u > q + 0.01).any()
    counts = counts_of(form, limit, seen, segment, n)
    ratio = (q * counts).mean(axis=0) / (1 - (1 - u) ** limit)
    error = q * counts.std(axis=0) / np.sqrt(n) / (1 - (1 - u) ** limit)
    assert (np.abs(ratio - q / u) <= SIGMAS * error + 1e-9).all()


def test_weight_times_loss_is_added_at_the_visited_pairs_only() -> None:
    table = np.random.default_rng(0).random(SHAPE)
    segment = Segment(np.array([0, 1, 1]), np.array([1, 0, 1]))
    total = np.ones(SHAPE)
    for estimator in (GeometricResampling(5), SharedResampling(5)):
        result = estimator.add(total, Bandit.reveal(table, segment, Weights(np.array([2.0, 3.0, 5.0]))), None)
        expected = np.ones(SHAPE)
        for h, s, a, weight in ((0, 0, 1, 2), (1, 1, 0, 3), (2, 1, 1, 5)):
            expected[h, s, a] += weight * table[h, s, a]
        assert_array_equal(result, expected)
        assert_array_equal(total, np.ones(SHAPE))


def test_a_segment_that_starts_late_is_booked_at_its_own_steps() -> None:
    table = np.random.default_rng(0).random(SHAPE)
    segment = Segment(np.array([1, 0]), np.array([1, 0]), start=1)
    told = Bandit.reveal(table, segment, Weights(np.array([2.0, 3.0])))
    assert_array_equal(told.losses, [table[1, 1, 1], table[2, 0, 0]])
    result = GeometricResampling(5).add(np.zeros(SHAPE), told, None)
    assert_array_equal(np.argwhere(result), [[1, 1, 1], [2, 0, 0]])


def test_full_information_adds_the_table_and_asks_for_no_trials() -> None:
    distribution, table = few_policies(dynamics_of("dense")), np.random.default_rng(0).random(SHAPE)
    segment = some_segment(distribution)
    weights = WholeTable().weigh(distribution, segment, np.random.default_rng(0))
    assert weights.trials == 0
    assert not distribution.sampled
    total = np.ones(SHAPE)
    assert_allclose(WholeTable().add(total, FullInformation.reveal(table, segment, weights), distribution), 1 + table)
    assert_array_equal(total, np.ones(SHAPE))


def test_bandit_feedback_holds_the_losses_that_were_met_and_no_table() -> None:
    table = np.random.default_rng(0).random(SHAPE)
    segment = Segment(np.array([0, 1, 1]), np.array([1, 0, 1]))
    told = Bandit.reveal(table, segment, Weights(np.ones(3)))
    assert_array_equal(told.losses, [table[0, 0, 1], table[1, 1, 0], table[2, 1, 1]])
    assert told.losses.base is None, "a view would lead to the whole table"
    assert not hasattr(told, "table")


def test_full_information_holds_one_table_and_no_way_to_the_others() -> None:
    tables = np.random.default_rng(0).random((5, *SHAPE))
    segment = Segment(np.array([0, 1, 1]), np.array([1, 0, 1]))
    told = FullInformation.reveal(tables[2], segment, Weights(np.ones(0)))
    assert_array_equal(told.table, tables[2])
    assert told.table.base is None, "a view would lead to the losses of rounds to come"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limit", [0, -3])
def test_fewer_than_one_trial_is_refused(form: str, limit: int) -> None:
    with pytest.raises(InvalidInput, match=f"limit = {limit}; it must be at least 1"):
        FORMS[form](limit)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limit", [10.0, np.nan, "9"])
def test_a_limit_that_is_no_whole_number_is_refused_before_the_game(form: str, limit: Any) -> None:
    with pytest.raises(InvalidInput, match=r"limit = .*it must be a whole number"):
        FORMS[form](limit)
