"""Where measures over a box can have mass: the compiled rule against the plain one of the certificate."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from amdp import BernsteinBox, MarkovPolicies, kernels
from amdp.oracles.projection.certificate import supported


@pytest.mark.parametrize("width", [0.0, 1e-13, 0.1, 1.0])
def test_the_support_of_a_box_is_that_of_its_certificate(width: float) -> None:
    """Rows with zeros and fixed rows too: they decide which states are dead."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        shape = steps, states, actions = tuple(rng.integers(1, 5, size=3).tolist())
        p = rng.dirichlet(np.full(states, 0.3), size=shape)
        p[p < 0.05] = 0.0
        p /= p.sum(axis=-1, keepdims=True)
        lower, upper = (
            np.maximum(0.0, p - width * rng.random(p.shape)),
            np.minimum(1.0, p + width * rng.random(p.shape)),
        )
        box, initial = BernsteinBox(lower, upper), int(rng.integers(states))
        usable, reached = np.empty((*shape, states), bool), np.empty((steps, states), bool)
        assert kernels.boxes.support(lower, upper, initial, usable, reached)
        plain = supported(MarkovPolicies(box, initial), np.zeros((steps, states, actions, states)))
        assert_array_equal(usable, plain > -np.inf)
        assert_array_equal(reached, usable.any(axis=(2, 3)))
