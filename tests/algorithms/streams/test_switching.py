"""Switching: the law at the end is that of the policy, the printed text's is not; lengths, routes, and bad kernels."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2
from worlds import as_csr, seeds

from algorithms.streams.streams import every_policy, parked_entry, parked_rows, plain_law
from amdp import InvalidInput, Kernel, SparseKernel, one_hot
from amdp.algorithms.streams.switching import Epoch, PolicySwitching, RenewedSwitching
from amdp.arrays import Floats, Policies
from amdp.model.chains import chains, laws, rows_of
from amdp.model.segments import Place, Visit

# A chain with a slow rhythm: its law still moves when a switch ends, so that a target of the wrong time shows.
RHYTHM = np.zeros((3, 2, 3))
RHYTHM[0, 0, 0] = 1.0
RHYTHM[0, 1, 1], RHYTHM[0, 1, 2] = 0.9, 0.1
RHYTHM[1, :, 2], RHYTHM[1, :, 1] = 0.9, 0.1
RHYTHM[2, :, 0], RHYTHM[2, :, 2] = 0.95, 0.05
ALWAYS_ON = one_hot(np.array([1, 0, 0]), 2)


class PrintedSwitching(PolicySwitching):
    """The printed text: the target is drawn from the law of the step in which the attempt starts."""

    def _targets(self, place: Place, policy: Policies, stop: int) -> Floats:
        found: Floats = laws(chains(rows_of(self.kernel), policy[None]), self.initial, place.time, stop)[0]
        return found


def ends(entry: PolicySwitching, place: Place, policy: Policies, runs: int, seed: int = 1) -> Floats:
    """How often `[t, s]` a switch ended in each step and state."""
    steps, states, _ = entry.kernel.shape
    counts = np.zeros((steps, states))
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        segment = entry.walk(place, policy, steps, rng).segment
        if len(segment.states):
            counts[segment.start, segment.states[0]] += 1
    return counts


def chance_of_counts(counts: Floats, law: Floats) -> float:
    """The p-value of a chi-square test of `counts` `[t, s]` against `law` `[t, s]`, step by step."""
    expected = counts.sum(axis=1, keepdims=True) * law
    usual = expected >= 5.0
    assert (counts[law == 0.0] == 0.0).all()
    statistic = ((counts - expected)[usual] ** 2 / expected[usual]).sum()
    freedom = np.maximum(usual.sum(axis=1) - 1, 0).sum()
    return float(chi2.sf(statistic, freedom))


def test_the_law_at_the_end_of_a_switch_is_that_of_the_policy() -> None:
    entry = PolicySwitching(Kernel.homogeneous(RHYTHM, 25))
    counts = ends(entry, Place(4, 2), ALWAYS_ON, 8000)
    assert counts.sum() > 4000
    assert chance_of_counts(counts, plain_law(RHYTHM, ALWAYS_ON, 0, 25)) > 1e-3


def test_the_printed_text_misses_that_law() -> None:
    entry = PrintedSwitching(Kernel.homogeneous(RHYTHM, 25))
    counts = ends(entry, Place(4, 2), ALWAYS_ON, 8000)
    assert chance_of_counts(counts, plain_law(RHYTHM, ALWAYS_ON, 0, 25)) < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_random_policies_are_entered_at_their_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    entry = parked_entry(30, 4, 2, seed)
    policy = rng.dirichlet(np.ones(2), size=4)
    counts = ends(entry, Place(3, int(rng.integers(4))), policy, 3000, seed)
    assert chance_of_counts(counts, plain_law(rows_of(entry.kernel), policy, 0, 30)) > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_the_chance_that_a_switch_is_over_is_how_often_it_is(seed: int) -> None:
    entry = parked_entry(30, 3, 2, seed)
    policy, place = one_hot(np.array([1, 0, 1]), 2), Place(6, 1)
    runs = 6000
    seen = np.cumsum(ends(entry, place, policy, runs).sum(axis=1))[6:] / runs
    chance = entry.finished(chains(rows_of(entry.kernel), policy[None]), place, 30)[0]
    assert_allclose(seen, chance, atol=5.0 * np.sqrt(0.25 / runs))
    assert (np.diff(chance) >= 0.0).all()
    assert chance[-1] > 0.5


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_the_expected_length_stays_below_its_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states, actions = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    rows = parked_rows(states, actions + 1, rng, 0.2)
    steps = 3000
    entry = PolicySwitching(Kernel.homogeneous(rows, steps))
    assert entry.expected_length <= 12.0 * entry.diameter.value**2 + 1e-9
    assert 1 <= entry.routes.length <= max(1, int(2.0 * entry.diameter.value))
    policy = one_hot(rng.integers(actions + 1, size=states), actions + 1)
    over = entry.finished(chains(rows, policy[None]), Place(1, int(rng.integers(states))), steps)[0]
    if over[-1] > 0.999:
        assert (1.0 - over).sum() <= entry.expected_length + 1e-6


def test_routes_have_the_chances_of_brute_force() -> None:
    """The best chance of being at a state after `l` steps, over all rules that depend on the time."""
    rows = parked_rows(3, 2, np.random.default_rng(5))
    entry = PolicySwitching(Kernel.homogeneous(rows, 40))
    routes = entry.routes
    rules = [one_hot(rule, 2) for rule in every_policy(3, 2)]
    best = np.zeros(3)
    assert routes.length <= 4
    for plan in product(rules, repeat=routes.length):
        law = np.eye(3)[routes.parked]
        for rule in plan:
            law = law @ chains(rows, rule[None])[0]
        best = np.maximum(best, law)
    assert_allclose(routes.arrival, best)
    assert routes.success == best.min()
    assert routes.arrival[routes.parked] == 1.0


def test_a_sparse_kernel_switches_like_its_dense_one() -> None:
    rows = parked_rows(4, 2, np.random.default_rng(2))
    one = PolicySwitching(Kernel.homogeneous(rows, 50))
    other = PolicySwitching(SparseKernel.homogeneous(as_csr(rows), 50))
    policy = one_hot(np.array([0, 1, 1, 0]), 2)
    for seed in range(20):
        a = one.walk(Place(5, 1), policy, 50, np.random.default_rng(seed))
        b = other.walk(Place(5, 1), policy, 50, np.random.default_rng(seed))
        assert_array_equal(a.segment.states, b.segment.states)
        assert_array_equal(a.entering.states, b.entering.states)


# --- when an entry is needed ------------------------------------------------------------------------------------------


def played(entry: PolicySwitching, place: Place, actions: list[int], stop: int = 20, seed: int = 1) -> Visit:
    return entry.walk(place, one_hot(np.array(actions), 2), stop, np.random.default_rng(seed))


def test_the_first_policy_and_the_same_policy_need_no_entry() -> None:
    entry = parked_entry(60)
    first = played(entry, Place(0, 0), [0, 1, 1])
    assert len(first.entering.states) == 0
    assert (first.place.time, len(first.segment.states)) == (20, 20)
    again = played(entry, first.place, [0, 1, 1], 40)
    assert len(again.entering.states) == 0
    assert again.segment.states[0] == first.place.state
    other = played(entry, again.place, [0, 0, 1], 60)
    assert len(other.entering.states) >= entry.routes.length


def test_renewed_switching_enters_the_same_policy_again() -> None:
    entry = RenewedSwitching(parked_entry(60).kernel)
    first = played(entry, Place(0, 0), [0, 1, 1])
    assert len(first.entering.states) == 0
    again = played(entry, first.place, [0, 1, 1], 60)
    assert len(again.entering.states) >= entry.routes.length


def test_a_switch_is_cut_at_the_end_and_waits_where_the_next_one_starts() -> None:
    entry = parked_entry(60)
    short = entry.routes.length
    place = Place(10, entry.routes.parked)
    cut = played(entry, place, [0, 1, 1], 10 + short)
    assert (len(cut.entering.states), len(cut.segment.states), cut.segment.start) == (short, 0, 10 + short)
    assert cut.place.policy is None
    assert cut.place.state == entry.routes.parked
    assert not entry.follows(cut.place, one_hot(np.array([[0, 1, 1]]), 2)).any()


@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_every_step_is_entering_or_in_the_segment_and_moves_are_possible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    entry = parked_entry(200, 3, 2, seed)
    rows, place = rows_of(entry.kernel), Place(0, 0)
    for _ in range(5):
        stop = place.time + int(rng.integers(1, 40))
        visit = entry.walk(place, one_hot(rng.integers(2, size=3), 2), stop, rng)
        entering, segment = visit.entering, visit.segment
        assert isinstance(segment, Epoch)
        assert (entering.start, entering.stop, segment.stop, visit.place.time) == (
            place.time,
            segment.start,
            stop,
            stop,
        )
        states = np.concatenate([entering.states, segment.states, [visit.place.state]])
        actions = np.concatenate([entering.actions, segment.actions])
        assert states[0] == place.state
        assert (rows[states[:-1], actions, states[1:]] > 0.0).all()
        place = visit.place


# --- bad input --------------------------------------------------------------------------------------------------------


def test_a_kernel_without_a_parking_pair_is_refused() -> None:
    rows = np.full((2, 1, 2), 0.5)
    with pytest.raises(InvalidInput, match="no parking pair"):
        PolicySwitching(Kernel.homogeneous(rows, 10))


def test_a_kernel_that_does_not_communicate_is_refused_with_a_pair() -> None:
    rows = np.zeros((2, 2, 2))
    rows[0, 0, 0] = rows[0, 1, 1] = rows[1, :, 1] = 1.0
    with pytest.raises(InvalidInput, match="state 1 never leads to state 0"):
        PolicySwitching(Kernel.homogeneous(rows, 10))


def test_a_diameter_beyond_all_steps_is_refused() -> None:
    states = 8
    rows = np.zeros((states, 2, states))
    rows[:, 0] = np.eye(states)
    rows[:, 1] = np.roll(np.eye(states), 1, axis=1)
    entry = PolicySwitching(Kernel.homogeneous(rows, 5))
    with pytest.raises(InvalidInput, match=r"the diameter 7, .* too large for 5 steps"):
        _ = entry.routes


def test_a_single_state_is_entered() -> None:
    entry = PolicySwitching(Kernel.homogeneous(np.ones((1, 2, 1)), 10))
    visit = entry.walk(Place(2, 0), one_hot(np.array([1]), 2), 10, np.random.default_rng(1))
    assert len(visit.entering.states) == entry.routes.length == 1
