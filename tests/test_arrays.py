"""The checks at the borders, and the small conversions."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from amdp import InvalidInput, one_hot
from amdp.arrays import floats, located, require_distributions, require_finite, require_index


def test_numbers_of_any_kind_become_float64() -> None:
    for array in ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], dtype=np.int8), np.array([[1, 2], [3, 4]], dtype=">f4")):
        result = floats("x", array, "sa")
        assert result.dtype == np.float64
        assert_array_equal(result, [[1.0, 2.0], [3.0, 4.0]])


def test_float64_is_not_copied() -> None:
    array = np.ones((2, 2))
    assert floats("x", array, "sa") is array


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([1.0, 2.0], r"x has shape \(2,\); expected axes \[s, a\]"),
        (np.ones((2, 0)), r"x is empty: shape \(2, 0\) of axes \[s, a\]"),
        ([["a", "b"]], "x is not an array of numbers"),
        ([[1.0], [2.0, 3.0]], "x is not an array of numbers"),
        ([[1.0 + 2.0j]], "x is not an array of numbers"),
    ],
)
def test_what_is_no_array_of_the_asked_axes_is_refused(array: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        floats("x", array, "sa")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_first_number_that_is_not_finite_is_named(bad: float, order: str) -> None:
    array = np.zeros((3, 4), order=order)  # type: ignore[call-overload]
    array[1, 2] = array[2, 0] = bad
    with pytest.raises(InvalidInput, match=rf"x\[s=1, a=2\] = {bad}; it must be finite"):
        require_finite("x", array, "sa")


def test_large_finite_numbers_pass() -> None:
    require_finite("x", np.full((3, 4), 1e300), "sa")


def test_rows_may_be_distributions_or_empty() -> None:
    require_distributions("p", np.array([[0.25, 0.75], [0.0, 0.0], [1.0, 0.0]]), "sy")
    with pytest.raises(InvalidInput, match=r"p\[s=1\] sums to 1.1"):
        require_distributions("p", np.array([[0.25, 0.75], [0.6, 0.5]]), "sy")


@pytest.mark.parametrize("index", [-1, 5])
def test_an_index_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(InvalidInput, match=f"initial = {index}; it must be between 0 and 4"):
        require_index("initial", index, 5)


def test_a_place_is_written_with_the_names_of_its_axes() -> None:
    assert located("hsa", (np.intp(0), np.intp(2), np.intp(1))) == "[h=0, s=2, a=1]"


def test_actions_become_chances() -> None:
    actions = np.array([[0, 2], [1, 1]])
    assert_array_equal(one_hot(actions, 3), [[[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 0]]])
    assert one_hot(actions, 3).dtype == np.float64
