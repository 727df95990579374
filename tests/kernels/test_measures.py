"""What compiled code reads off a measure that is kept as logarithms, against numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from amdp import kernels
from amdp.arrays import Floats

RNG = np.random.default_rng(3)
LOGS: dict[str, Floats] = {
    "plain": RNG.normal(size=(5, 3)),
    "far": RNG.normal(0.0, 1e5, (5, 3)),
    "with zeros": np.where(RNG.random((6, 4)) < 0.5, -np.inf, RNG.normal(size=(6, 4))),
    "one entry": np.array([[0.0], [-np.inf], [-745.0]]),
}


@pytest.mark.parametrize("logs", LOGS.values(), ids=LOGS)
def test_shares_are_chances_in_proportion_to_the_weights(logs: Floats) -> None:
    found = np.empty(logs.shape)
    kernels.measures.shares(logs, found)
    top = logs.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isneginf(top), 1.0, np.exp(logs - top))
    assert_allclose(found, weights / weights.sum(axis=1, keepdims=True), rtol=1e-15)


@pytest.mark.parametrize("logs", [LOGS["plain"], LOGS["with zeros"], LOGS["one entry"]])
def test_chances_and_entropy(logs: Floats) -> None:
    found = np.empty(len(logs))
    kernels.measures.chances(logs, found)
    assert_allclose(found, np.exp(logs).sum(axis=1), rtol=1e-14)
    kept = logs[logs > -np.inf]
    assert_allclose(kernels.measures.entropy(logs.reshape(-1)), -(np.exp(kept) * kept).sum(), rtol=1e-13)


def test_a_row_without_weight_is_shared_equally() -> None:
    found = np.empty((1, 4))
    kernels.measures.shares(np.full((1, 4), -np.inf), found)
    assert_array_equal(found, 0.25)
