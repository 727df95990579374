"""The laws of the noise, and how it is laid on losses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from amdp import InvalidInput
from amdp.algorithms.ftpl.perturbations import Exponential, Gaussian, Gumbel, Laplace, Perturbation
from amdp.arrays import Floats

RATE = 0.2
KINDS: dict[str, Callable[[float], Perturbation]] = {
    "laplace": Laplace,
    "exponential": Exponential,
    "gumbel": Gumbel,
    "gaussian": Gaussian,
}
SIZE = (3, 4, 5)
FALSE_ALARM = 1e-6  # of each test by p-value, over the choice of seeds


def distribution(name: str, rate: float) -> Callable[[Any], Any]:
    """The cumulative distribution of what is added to the losses."""
    if name == "laplace":
        return stats.laplace(scale=1 / rate).cdf
    if name == "gaussian":
        return stats.norm(scale=1 / rate).cdf
    subtracted = stats.expon(scale=1 / rate) if name == "exponential" else stats.gumbel_r(scale=1 / rate)
    return lambda z: subtracted.sf(-z)


def noise(name: str, n: int = 4000, seed: int = 3) -> Floats:
    return KINDS[name](RATE).perturbed(np.zeros(SIZE), n, np.random.default_rng(seed))


@pytest.mark.parametrize("name", KINDS)
def test_noise_has_its_law(name: str) -> None:
    assert stats.kstest(noise(name).reshape(-1), distribution(name, RATE)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", KINDS)
def test_the_test_of_the_law_sees_a_scale_that_is_wrong_by_three_percent(name: str) -> None:
    assert stats.kstest(noise(name).reshape(-1), distribution(name, 1.03 * RATE)).pvalue < FALSE_ALARM
    assert stats.kstest(noise(name).reshape(-1), distribution(name, 1 / RATE)).pvalue < FALSE_ALARM


@pytest.mark.parametrize("name", KINDS)
def test_every_entry_and_every_copy_has_the_law(name: str) -> None:
    noisy = noise(name, 3000)
    for place in np.ndindex(*SIZE):
        at_place = noisy[(slice(None), *place)]
        assert stats.kstest(at_place, distribution(name, RATE)).pvalue > FALSE_ALARM / noisy[0].size


@pytest.mark.parametrize("name", KINDS)
def test_entries_of_a_copy_are_uncorrelated(name: str) -> None:
    # Six standard errors for each of 1770 pairs: a false alarm in 280,000 seeds.
    noisy = noise(name, 4000).reshape(4000, -1)
    correlations = np.corrcoef(noisy.T) - np.eye(noisy.shape[1])
    assert np.abs(correlations).max() < 6.0 / np.sqrt(4000)


def test_laplace_signs_are_balanced() -> None:
    positive = int((noise("laplace") > 0).sum())
    assert stats.binomtest(positive, 4000 * 60).pvalue > FALSE_ALARM


def test_exponential_noise_only_lowers_losses() -> None:
    assert (noise("exponential") <= 0.0).all()


@pytest.mark.parametrize("name", KINDS)
def test_noise_is_added_to_the_losses_of_its_place_and_leaves_them_as_they_were(name: str) -> None:
    total = np.random.default_rng(0).random(SIZE)
    before = total.copy()
    shifted = KINDS[name](RATE).perturbed(total, 7, np.random.default_rng(3))
    plain = KINDS[name](RATE).perturbed(np.zeros(SIZE), 7, np.random.default_rng(3))
    assert_allclose(shifted, plain + total, rtol=0, atol=1e-12)
    assert_array_equal(total, before)
    assert shifted.shape == (7, *SIZE)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [(1, 1, 1), (1, 3, 2), (4, 1, 1)])
def test_costs_lie_step_by_step_whatever_the_sizes(name: str, size: tuple[int, int, int]) -> None:
    for n in (1, 5):
        costs = KINDS[name](RATE).perturbed(np.zeros(size), n, np.random.default_rng(3))
        assert costs.shape == (n, *size)
        assert costs.swapaxes(0, 1).flags.c_contiguous
        assert len(np.unique(costs)) == costs.size


@pytest.mark.parametrize("name", KINDS)
def test_noise_depends_on_the_generator_alone(name: str) -> None:
    first, again = noise(name, 10, seed=5), noise(name, 10, seed=5)
    assert_array_equal(first, again)
    assert not np.equal(first, noise(name, 10, seed=6)).any()


@pytest.mark.parametrize("name", KINDS)
def test_one_call_after_another_repeats_nothing(name: str) -> None:
    rng = np.random.default_rng(3)
    calls = [KINDS[name](RATE).perturbed(np.zeros(SIZE), 20, rng) for _ in range(50)]
    assert len(np.unique(calls)) == 50 * 20 * 60


@pytest.mark.parametrize("name", KINDS)
def test_losses_that_are_a_view_or_read_only_are_read_right(name: str) -> None:
    total = np.random.default_rng(0).random((5, 4, 3)).T
    total.flags.writeable = False
    seen = KINDS[name](RATE).perturbed(total, 2, np.random.default_rng(3))
    assert_array_equal(seen, KINDS[name](RATE).perturbed(np.ascontiguousarray(total), 2, np.random.default_rng(3)))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rate", [0.0, -1.0, np.inf, np.nan])
def test_a_rate_that_is_not_positive_and_finite_is_refused(name: str, rate: float) -> None:
    with pytest.raises(InvalidInput, match="rate = "):
        KINDS[name](rate)
