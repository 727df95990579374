"""Statistics against independent formulas, and against laws whose truth is known."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.report.statistics import (
    MAX_EXACT_SIGNS,
    SIGN_DRAWS,
    MeanBand,
    MedianBand,
    exponents,
    fitted_exponent,
    holm,
    resampled_means,
    sign_flips,
)

numbers = st.floats(-10, 10).map(lambda x: round(x, 3))


@pytest.mark.parametrize("runs", [2, 3, 4, 5, 9, 10, 30])
def test_the_interval_of_the_mean_covers_the_truth_as_often_as_it_says(runs: int) -> None:
    """2,000 normal samples at once, as checkpoints that are independent; false alarms below 1e-4.

    Catches percentiles at the plain levels 2.5 % and 97.5 %, which cover 0.90 of samples of 10, and percentiles of any
    level for fewer runs, which stay in their range: 0.5, 0.75 and 0.875 of samples of 2, 3 and 4.
    """
    trials = 2000
    samples = np.random.default_rng(1).normal(3.0, 2.0, size=(runs, trials))
    band = MeanBand().of(samples, np.random.default_rng(2))
    covered = ((band.low <= 3.0) & (band.high >= 3.0)).mean()
    assert abs(covered - 0.95) < 0.024  # five deviations
    np.testing.assert_allclose(band.value, samples.mean(axis=0))


def test_the_interval_of_a_skewed_law_covers_it_too() -> None:
    """False alarms below 1e-4; a mean of 20 exponential numbers, where 0.92 is what intervals by Student reach."""
    samples = np.random.default_rng(3).exponential(1.0, size=(20, 2000))
    band = MeanBand().of(samples, np.random.default_rng(4))
    assert abs(((band.low <= 1.0) & (band.high >= 1.0)).mean() - 0.925) < 0.025


def test_the_interval_has_the_width_of_students_for_normal_samples() -> None:
    samples = np.random.default_rng(5).normal(size=(40, 1))
    band = MeanBand(level=0.9, resamples=100_000).of(samples, np.random.default_rng(6))
    half = stats.t.ppf(0.95, 39) * samples.std(ddof=1) / np.sqrt(40)
    assert (band.high - band.low)[0] / 2 == pytest.approx(half, rel=0.03)


@pytest.mark.parametrize("runs", [2, 4, 9])
def test_a_few_runs_have_students_interval(runs: int) -> None:
    samples = np.random.default_rng(17).normal(size=(runs, 3))
    band = MeanBand(level=0.9).of(samples, np.random.default_rng(0))
    expected = stats.ttest_1samp(samples, 0.0).confidence_interval(0.9)
    np.testing.assert_allclose(band.low, expected.low)
    np.testing.assert_allclose(band.high, expected.high)


@pytest.mark.parametrize("runs", [4, 9])
def test_the_interval_of_a_few_resampled_means_is_students_too(runs: int) -> None:
    """Half a percent is ten deviations of the spread of 2,000,000 resampled means."""
    samples = np.random.default_rng(18).normal(size=(runs, 1))
    band, rng = MeanBand(), np.random.default_rng(19)
    found = band.between(samples.mean(axis=0), resampled_means(samples, 2_000_000, rng), runs)
    student = band.of(samples, rng)
    np.testing.assert_allclose(found.high - found.low, student.high - student.low, rtol=0.005)


def test_resampled_means_are_those_of_runs_drawn_with_replacement() -> None:
    """All 27 draws of three runs, by brute force; each frequency within 5 deviations."""
    samples = np.array([[1.0], [10.0], [100.0]])
    found = resampled_means(samples, 30_000, np.random.default_rng(7))[:, 0]
    law: dict[float, float] = {}
    for drawn in product(samples[:, 0], repeat=3):
        mean = round(sum(drawn) / 3, 9)
        law[mean] = law.get(mean, 0.0) + 1 / 27
    values, counts = np.unique(found.round(9), return_counts=True)
    assert set(values) == set(law)
    for value, count in zip(values, counts, strict=True):
        p = law[value]
        assert abs(count / 30_000 - p) < 5 * np.sqrt(p * (1 - p) / 30_000)


def test_one_run_has_a_value_and_no_interval() -> None:
    band = MeanBand().of(np.array([[1.0, 2.0]]), np.random.default_rng(8))
    assert band.value.tolist() == [1.0, 2.0]
    assert np.isnan(band.low).all()
    assert np.isnan(band.high).all()


def test_the_median_band_is_made_of_quantiles() -> None:
    samples = np.arange(5.0)[:, None] * np.array([[1.0, 10.0]])
    band = MedianBand().of(samples, np.random.default_rng(9))
    assert [part.tolist() for part in band] == [[2.0, 20.0], [1.0, 10.0], [3.0, 30.0]]


def test_levels_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInput, match="level = 95"):
        MeanBand(95)
    with pytest.raises(InvalidInput, match=r"quantiles 0\.6, 0\.9"):
        MedianBand(0.6, 0.9)


@given(st.floats(0.05, 1.5), st.floats(0.01, 100.0), st.integers(6, 60))
def test_the_exponent_of_a_power_law_is_its_power(power: float, scale: float, points: int) -> None:
    rounds = np.geomspace(1, 10_000, points)
    assert exponents(rounds, scale * rounds[None] ** power)[0] == pytest.approx(power)


def test_the_exponent_is_that_of_the_later_half_and_of_least_squares() -> None:
    rounds = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    curve = np.array([900.0, 7.0, -3.0, 5.0, 6.0, 13.0])
    expected = stats.linregress(np.log(rounds[3:]), np.log(curve[3:])).slope
    assert exponents(rounds, curve[None])[0] == pytest.approx(expected)


def test_no_exponent_where_the_regret_is_not_positive_or_points_are_few() -> None:
    rounds = np.arange(1.0, 9.0)
    curves = np.array([rounds, rounds - 6.0])
    found = exponents(rounds, curves)
    assert found[0] == pytest.approx(1.0)
    assert np.isnan(found[1])
    assert np.isnan(exponents(rounds[:4], curves[:, :4])).all()


@pytest.mark.parametrize("runs", [4, 5, 8])
def test_the_exponent_of_noisy_runs_has_an_interval_that_covers_it(runs: int) -> None:
    """400 experiments; false alarms below 1e-4.

    Catches resampling checkpoints instead of runs, and percentiles of few runs, which cover 0.84 at 4.
    """
    rng = np.random.default_rng(10)
    rounds = np.geomspace(1, 1000, 20)
    covered = 0
    for _ in range(400):
        powers = rng.normal(0.6, 0.05, size=(runs, 1))
        found = fitted_exponent(rounds, rounds**powers, MeanBand(resamples=500), rng)
        many = 0.6 + 0.05**2 * np.log(rounds)  # d log E[k^p] / d log k for a normal power p
        later = many[10:].mean()
        covered += bool(found.low <= later <= found.high)
    assert 0.88 < covered / 400 < 0.985


@pytest.mark.parametrize(
    ("scales", "told"), [((3, 1, 2, 2), True), ((3, 1, 2), False), ((3, -1, 2, 2), False), ((-3, -1, -2, -2), False)]
)
def test_no_exponent_is_told_without_an_interval(scales: tuple[float, ...], told: bool) -> None:
    """Runs may be too few, or some resampled mean may not be positive."""
    rounds = np.geomspace(1, 100, 10)
    samples = np.array(scales)[:, None] * rounds**0.5
    found = fitted_exponent(rounds, samples, MeanBand(), np.random.default_rng(11))
    assert np.isfinite(found).tolist() == [told] * 3


@given(st.lists(numbers, min_size=1, max_size=8))
def test_sign_flips_count_all_signs(differences: list[float]) -> None:
    found = sign_flips(np.array(differences), np.random.default_rng(0))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    assert found.exact
    assert found.p == np.mean([one >= abs(sum(differences)) - 1e-9 for one in sums])


def by_scipy(differences: Floats) -> float:
    every = stats.permutation_test([differences], np.sum, permutation_type="samples", n_resamples=2 ** len(differences))
    return float(every.pvalue)


def test_sign_flips_agree_with_scipy_and_are_the_least_they_can_be() -> None:
    differences = np.random.default_rng(12).normal(0.4, 1.0, MAX_EXACT_SIGNS)
    assert sign_flips(differences, np.random.default_rng(0)).p == pytest.approx(by_scipy(differences))
    assert sign_flips(np.abs(differences), np.random.default_rng(0)).p == 2 / 2**MAX_EXACT_SIGNS


def test_random_signs_come_near_all_signs() -> None:
    """Within 5 deviations of 20,000 draws."""
    differences = np.random.default_rng(13).normal(0.3, 1.0, MAX_EXACT_SIGNS + 2)
    exact = by_scipy(differences)
    found = sign_flips(differences, np.random.default_rng(14))
    assert not found.exact
    assert abs(found.p - exact) < 5 * np.sqrt(exact / SIGN_DRAWS)
    assert sign_flips(np.ones(40), np.random.default_rng(15)).p == 1 / (SIGN_DRAWS + 1)


def test_equal_learners_are_rarely_told_apart() -> None:
    """The level of the exact test: at most 5 % of 2,000 null samples below 0.05; 5 deviations allowed.

    Catches a one-sided count, which refuses twice as often.
    """
    rng = np.random.default_rng(16)
    refused = np.mean([sign_flips(rng.normal(size=8), rng).p <= 0.05 for _ in range(2000)])
    assert refused < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 2000)
    assert refused > 0.02


def test_holm_by_hand() -> None:
    # Sorted: 0.01 * 4, 0.02 * 3, 0.03 * 2 (not below the one before), 0.5.
    np.testing.assert_allclose(holm(np.array([0.03, 0.01, 0.5, 0.02])), [0.06, 0.04, 0.5, 0.06])
    np.testing.assert_allclose(holm(np.array([0.6, 0.7])), [1.0, 1.0])
    assert len(holm(np.empty(0))) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10), st.floats(0.001, 0.999))
def test_holm_refuses_what_its_steps_refuse(p: list[float], alpha: float) -> None:
    """Step by step: the least p against alpha / m, the next against alpha / (m - 1), until one stays."""
    refused = set()
    for step, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[place] * (len(p) - step) > alpha:
            break
        refused.add(place)
    ties = {i for i in range(len(p)) if any(p[i] == p[j] for j in refused)}
    found = {i for i, one in enumerate(holm(np.array(p))) if one <= alpha}
    assert refused <= found <= refused | ties
