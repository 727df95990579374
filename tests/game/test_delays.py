"""Delays: every feedback arrives at most once, in time, and what is outstanding adds up."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from amdp import InvalidInput
from amdp.game import delays
from amdp.game.delays import Delays

some_delays = st.lists(st.integers(0, 12) | st.just(10**18), min_size=1, max_size=12).map(delays.recorded)


def outstanding(late: Delays, k: int) -> list[int]:
    """The rounds before `k` whose feedback is not there when round `k` begins."""
    return [j for j in range(k) if j + int(late.values[j]) >= k]


def all_arrivals(late: Delays) -> list[int]:
    return [int(j) for k in range(len(late)) for j in late.arrivals(k)]


# --- arrivals and totals --------------------------------------------------------------------------------------------


@given(some_delays)
def test_arrivals_are_the_rounds_that_are_due_in_order(late: Delays) -> None:
    for k in range(len(late)):
        due = [j for j in range(len(late)) if j + int(late.values[j]) == k]
        assert late.arrivals(k).tolist() == due


@given(some_delays)
def test_every_feedback_arrives_at_most_once(late: Delays) -> None:
    seen = all_arrivals(late)
    assert len(seen) == len(set(seen))
    in_time = [j for j in range(len(late)) if j + int(late.values[j]) < len(late)]
    assert sorted(seen) == in_time


@given(st.lists(st.integers(0, 8), min_size=1, max_size=8))
def test_every_feedback_arrives_exactly_once_if_the_game_is_long_enough(first: list[int]) -> None:
    late = delays.recorded([*first, *[0] * 8])
    assert sorted(all_arrivals(late)) == list(range(len(late)))


@given(some_delays)
def test_outstanding_feedback_adds_up_to_the_total_within_the_game(late: Delays) -> None:
    n_rounds = len(late)
    assert late.total_within == sum(len(outstanding(late, k)) for k in range(n_rounds))
    assert late.total_within == sum(min(int(d), n_rounds - 1 - j) for j, d in enumerate(late.values))
    assert late.total_within <= late.total == sum(int(d) for d in late.values)


@given(some_delays)
def test_what_has_not_arrived_is_outstanding(late: Delays) -> None:
    arrived: set[int] = set()
    for k in range(len(late)):
        assert set(range(k)) - arrived == set(outstanding(late, k))
        arrived.update(late.arrivals(k).tolist())


def test_without_delay_feedback_arrives_in_its_own_round() -> None:
    late = delays.none(5)
    assert [late.arrivals(k).tolist() for k in range(5)] == [[0], [1], [2], [3], [4]]
    assert late.total == late.total_within == 0


def test_a_total_beyond_64_bits_is_exact() -> None:
    late = delays.fixed(20, 10**18)
    assert late.total == 20 * 10**18 > 2**64
    assert all_arrivals(late) == []


def test_arrivals_of_a_long_game_stay_in_order() -> None:
    late = delays.uniform(100_000, 0, 1000, np.random.default_rng(0))
    due = np.arange(100_000) + late.values
    for k in range(0, 100_000, 2500):
        assert_array_equal(late.arrivals(k), np.flatnonzero(due == k))
    assert_array_equal(delays.all_at_end(100_000).arrivals(99_999), np.arange(100_000))


@pytest.mark.parametrize("k", [-1, 5])
def test_arrivals_outside_the_game_are_refused(k: int) -> None:
    with pytest.raises(InvalidInput, match=rf"round {k} .* rounds are 0 \.\. 4"):
        delays.none(5).arrivals(k)


def test_delays_cannot_be_changed_and_survive_a_pickle() -> None:
    given_values = np.array([1, 0, 2])
    late = delays.recorded(given_values)
    given_values[0] = 7
    again: Delays = pickle.loads(pickle.dumps(late))
    for one in (late, again):
        assert one.values.tolist() == [1, 0, 2]
        assert one.arrivals(1).tolist() == [0, 1]
        for array in (one.values, one.arrivals(1)):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5


# --- kinds ----------------------------------------------------------------------------------------------------------


def test_bursts_are_released_together() -> None:
    late = delays.bursts(12, every=5, length=3)
    assert [late.arrivals(k).tolist() for k in range(12)] == [
        [], [], [0, 1, 2], [3], [4], [], [], [5, 6, 7], [8], [9], [], [],
    ]  # fmt: skip


def test_a_burst_as_long_as_its_period_releases_everything_at_its_end() -> None:
    late = delays.bursts(8, every=4, length=4)
    assert [k for k in range(8) if late.arrivals(k).size] == [3, 7]
    assert_array_equal(delays.bursts(4, 4, 4).values, delays.all_at_end(4).values)


def test_all_at_end_arrives_in_the_last_round() -> None:
    late = delays.all_at_end(6)
    assert late.arrivals(5).tolist() == list(range(6))
    assert late.total == late.total_within == 15


def test_one_huge_delay_leaves_the_others_alone() -> None:
    late = delays.one_huge(6, at=2, delay=1000)
    assert all_arrivals(late) == [0, 1, 3, 4, 5]
    assert (late.total, late.total_within) == (1000, 3)


def test_uniform_delays_meet_both_ends_and_nothing_outside() -> None:
    values = delays.uniform(2000, 3, 7, np.random.default_rng(1)).values
    assert set(values.tolist()) == {3, 4, 5, 6, 7}


def test_geometric_delays_start_at_zero_and_have_their_mean() -> None:
    # Six standard errors: a false alarm once in 5e8. Catches numpy's law, which starts at 1, and p = 1 / mean.
    mean, n = 10.0, 40_000
    values = delays.geometric(n, mean, np.random.default_rng(2)).values
    assert values.min() == 0
    assert abs(values.mean() - mean) < 6 * np.sqrt(mean * (1 + mean) / n)
    assert abs(np.mean(values == 0) - 1 / 11) < 6 * np.sqrt(1 / 11 * 10 / 11 / n)
    assert delays.geometric(9, 0.0, np.random.default_rng(2)).total == 0


def test_random_delays_depend_on_the_generator_alone() -> None:
    one, two = (delays.geometric(50, 4.0, np.random.default_rng(3)) for _ in range(2))
    other = delays.geometric(50, 4.0, np.random.default_rng(4))
    assert_array_equal(one.values, two.values)
    assert (one.values != other.values).any()


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 3, -1], r"delays\[k=2\] = -1; it must be a whole number"),
        ([0, 2.5], r"delays\[k=1\] = 2.5"),
        ([np.nan], r"delays\[k=0\] = nan"),
        ([1, np.inf], r"delays\[k=1\] = inf"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ([], "one whole number for each round"),
        (["a"], "one whole number for each round"),
        ([[1], [1, 2]], "not a list of numbers"),
        ([2**63], r"delays\[k=0\] = 9223372036854775808"),
        ([2**70], "object"),
    ],
)
def test_recorded_delays_that_are_none_are_refused(values: list[object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        delays.recorded(values)  # type: ignore[arg-type]


def test_recorded_delays_may_be_whole_floats_and_must_have_the_right_number() -> None:
    assert delays.recorded([1.0, 2.0], rounds=2).values.tolist() == [1, 2]
    with pytest.raises(InvalidInput, match="delays has 2 entries; there are 3 rounds"):
        delays.recorded([1, 2], rounds=3)


def test_settings_that_make_no_sense_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="rounds = 0"):
        delays.none(0)
    with pytest.raises(InvalidInput, match="delay = -1"):
        delays.fixed(5, -1)
    with pytest.raises(InvalidInput, match="high = 2"):
        delays.uniform(5, 3, 2, rng)
    with pytest.raises(InvalidInput, match="mean = nan"):
        delays.geometric(5, float("nan"), rng)
    with pytest.raises(InvalidInput, match="every = 3"):
        delays.bursts(5, 3, 4)
    with pytest.raises(InvalidInput, match=r"at = 5; it must be a whole number, 0 \.\. 4"):
        delays.one_huge(5, 5, 1)


# --- texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", delays.none(30)),
        ("fixed:5", delays.fixed(30, 5)),
        ("uniform:0:20", delays.uniform(30, 0, 20, np.random.default_rng(9))),
        ("geometric:2.5", delays.geometric(30, 2.5, np.random.default_rng(9))),
        ("bursts:10:4", delays.bursts(30, every=10, length=4)),
        ("one-huge:5:1000", delays.one_huge(30, at=5, delay=1000)),
        ("all-at-end", delays.all_at_end(30)),
    ],
)
def test_each_form_of_text_gives_its_delays(text: str, expected: Delays) -> None:
    assert_array_equal(delays.parse(text, 30, np.random.default_rng(9)).values, expected.values)


@pytest.mark.parametrize("text", ["", "fixd:5", "fixed", "fixed:5:6", "fixed:five", "none:1", "uniform:3"])
def test_an_unknown_text_lists_the_known_forms(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"known forms: none, fixed:DELAY, uniform:LOW:HIGH, .* all-at-end"):
        delays.parse(text, 10, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("text", "name"), [("fixed:-5", "delay = -5"), ("fixed:2.5", "delay = 2.5"), ("one-huge:10:1", "at = 10")]
)
def test_a_text_with_a_wrong_number_names_the_number(text: str, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        delays.parse(text, 10, np.random.default_rng(0))
