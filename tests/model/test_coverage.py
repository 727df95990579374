"""The least visit chance of any policy, by listing all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from worlds import KINDS, all_policies, random_kernel, seeds, shapes

from amdp import Kernel, one_hot
from amdp.model.evaluation import least_chances, least_visited


@given(kind=st.sampled_from(KINDS), shape=shapes(steps=3, states=3, actions=2), seed=seeds)
@settings(max_examples=30, deadline=None)
def test_least_chances_are_those_of_the_policy_that_avoids_a_place_best(
    kind: str, shape: tuple[int, int, int], seed: int
) -> None:
    kernel = random_kernel(kind, shape, np.random.default_rng(seed))
    at = kernel.occupancy(one_hot(all_policies(shape), shape[2]), 0).sum(axis=-1)
    assert_allclose(least_chances(kernel), at.min(axis=0), atol=1e-12)
    reached = at.max(axis=0) > 0
    least = least_visited(kernel)
    assert least.chance == pytest.approx(at.min(axis=0)[reached].min(), abs=1e-12)
    assert reached[least.step, least.state]


def test_a_place_that_cannot_be_reached_does_not_count() -> None:
    p = np.zeros((3, 3, 2, 3))
    p[..., 0] = 0.3
    p[..., 1] = 0.7  # nothing leads to state 2
    least = least_visited(Kernel(p))
    assert least.chance == pytest.approx(0.3)
    assert (least.step, least.state) == (1, 0)


def test_the_place_that_a_policy_can_avoid_is_named() -> None:
    p = np.zeros((4, 3, 2, 3))
    p[:, :, :, :2] = 0.5
    p[2, 1, 1] = [0.5, 0.0, 0.5]  # only there, and only by this action
    assert least_visited(Kernel(p)) == (0.0, 3, 2)
