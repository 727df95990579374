"""The mathematics of the regularizers, one mass at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amdp import InvalidInput, LogBarrier, NegativeEntropy, Regularizer, Tsallis
from oracles.regularized.worlds import REGULARIZERS

masses = st.floats(-20.0, 0.0).map(np.exp)


@given(masses, st.sampled_from(REGULARIZERS))
def test_the_mass_of_a_reduced_cost_is_where_the_slope_is_its_negative(mass: float, regularizer: Regularizer) -> None:
    slope = regularizer.slopes(np.array([mass]))
    assert np.allclose(regularizer.masses(-slope), mass, rtol=1e-9)


@given(masses, masses, st.sampled_from(REGULARIZERS))
def test_distances_are_bregman_distances(mass: float, other: float, regularizer: Regularizer) -> None:
    x, q = np.array([mass]), np.array([other])
    distance = regularizer.distances(x, q)[0]
    terms = [regularizer.values(x), -regularizer.values(q), -regularizer.slopes(q) * (x - q)]
    assert distance >= 0.0
    assert abs(distance - sum(terms)[0]) <= 1e-12 * max(abs(term[0]) for term in terms)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
def test_distances_of_neighbors_keep_their_digits(regularizer: Regularizer) -> None:
    # D(x, q) = psi''(q) (x - q)^2 / 2 up to the third order; plain subtraction would leave nothing of it.
    q = np.array([1e-6, 0.01, 0.7])
    off = 1e-7 * q
    expected = 0.5 * off**2 / regularizer.softness(q)
    assert np.allclose(regularizer.distances(q + off, q), expected, rtol=1e-5)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
def test_softness_is_how_fast_masses_fall(regularizer: Regularizer) -> None:
    reduced = np.array([0.5, 3.0, 40.0])
    step = 1e-6 * reduced
    falls = (regularizer.masses(reduced - step) - regularizer.masses(reduced + step)) / (2.0 * step)
    assert np.allclose(regularizer.softness(regularizer.masses(reduced)), falls, rtol=1e-6)


def test_sums_add_weights_and_have_no_sums_inside() -> None:
    three = NegativeEntropy(1.0) + (Tsallis(2.0) + LogBarrier(3.0)) + Tsallis(0.5)
    assert tuple(three.weights) == (1.0, 2.5, 3.0)
    assert len(three.parts) == 4
    assert three == NegativeEntropy(1.0) + Tsallis(2.0) + LogBarrier(3.0) + Tsallis(0.5)
    assert hash(three)


@pytest.mark.parametrize("kind", [NegativeEntropy, Tsallis, LogBarrier])
@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, "1"])
def test_weights_are_positive_numbers(kind: type[Tsallis], weight: float) -> None:
    with pytest.raises(InvalidInput, match="weight"):
        kind(weight)


def test_a_regularizer_and_a_number_have_no_sum() -> None:
    with pytest.raises(TypeError):
        Tsallis(1.0) + 1.0  # type: ignore[operator]
