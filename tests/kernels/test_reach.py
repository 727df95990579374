"""Compiled reaches against plain loops, and how trials are divided into batches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import box_around, random_kernel

from amdp import BernsteinBox, kernels
from amdp.arrays import Floats
from amdp.model.reach import reach
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel

SHAPE: Shape = (5, 4, 3)


def dynamics(kind: str) -> SingleKernel | BernsteinBox:
    rng = np.random.default_rng(1)
    if kind == "box":
        return box_around(random_kernel("dense", SHAPE, rng), 0.1, rng)
    return random_kernel(kind, SHAPE, rng)


@pytest.mark.parametrize("kind", ["dense", "homogeneous", "sparse", "sparse-homogeneous", "deterministic", "box"])
@pytest.mark.parametrize("initial", [0, 3])
def test_the_reach_of_given_states_is_that_of_all_states(kind: str, initial: int) -> None:
    given, (n_steps, n_states, n_actions) = dynamics(kind), SHAPE
    steps, states = (axis.reshape(-1) for axis in np.indices((n_steps, n_states)))
    found = np.empty(steps.size)
    kernels.reach.reach(given.rows, n_actions, n_states, initial, steps, states, found)
    assert_allclose(found.reshape(n_steps, n_states), reach(given, initial), atol=1e-13)


@pytest.mark.parametrize("kind", ["homogeneous", "sparse-homogeneous"])
def test_one_pass_over_lags_gives_the_reach_at_every_step_and_from_every_start(kind: str) -> None:
    given, (n_steps, n_states, n_actions) = dynamics(kind), SHAPE
    from_each = np.stack([reach(given, start) for start in range(n_states)])  # [start, h, s]
    for state in range(n_states):
        found = np.empty((n_steps, 2))
        kernels.reach.reach_by_lag(given.rows, n_actions, n_states, 2, state, found)
        assert_allclose(found[:, 0], from_each[2, :, state], atol=1e-13)
        assert_allclose(found[:, 1], from_each[:, :, state].max(axis=0), atol=1e-13)


# --- batches ----------------------------------------------------------------------------------------------------------


def test_a_shared_batch_has_what_the_most_demanding_open_pair_asks_for() -> None:
    limits, batches = np.array([3, 50, 20]), np.array([8, 8, 32])
    everything = np.ones(3, bool)
    assert kernels.trials.shared_batch(everything, limits, 0, batches) == 20
    assert kernels.trials.shared_batch(np.array([True, True, False]), limits, 0, batches) == 8
    assert kernels.trials.shared_batch(np.array([True, False, False]), limits, 0, batches) == 3
    assert kernels.trials.shared_batch(np.array([False, True, False]), limits, 48, batches) == 2
    assert kernels.trials.shared_batch(~everything, limits, 0, batches) == 0


def test_in_a_batch_for_each_step_the_open_pairs_divide_the_trials_and_none_exceeds_its_limit() -> None:
    limits = np.array([2, 50, 20])
    owner = np.full(40, -1)
    assert kernels.trials.per_step_batch(np.ones(3, bool), limits, 0, 32, owner) == (10, 22)
    assert_array_equal(owner[:22], [0] * 2 + [1] * 10 + [2] * 10)
    assert kernels.trials.per_step_batch(np.array([False, True, False]), limits, 10, 32, owner) == (32, 32)
    assert_array_equal(owner[:32], 1)
    assert kernels.trials.per_step_batch(np.array([False, True, False]), limits, 45, 32, owner) == (5, 5)
    assert kernels.trials.per_step_batch(np.zeros(3, bool), limits, 45, 32, owner) == (0, 0)
    assert kernels.trials.per_step_batch(np.ones(3, bool), limits, 0, 2, owner) == (1, 3)  # one each at least


def plain_batch(chances: Floats, scale: float) -> tuple[float, float]:
    """`(1/c) sum_{n < b} prod_{i <= n} (1 - x_i / c)`, and the whole product, by numpy."""
    factors = np.maximum(0.0, 1.0 - chances / scale)
    products = np.cumprod(factors)
    return float((1.0 + products[:-1].sum()) / scale), float(products[-1])


@pytest.mark.parametrize("size", [1, 3, 32])
def test_a_batch_adds_the_sum_of_products(size: int) -> None:
    rng = np.random.default_rng(2)
    for scale in (0.01, 0.4, 1.0):
        chances = scale * rng.random(size)
        added, going_on = plain_batch(chances, scale)
        assert_allclose(kernels.trials.weigh_batch(chances, scale, size, 2.0), (2.0 + added, going_on), rtol=1e-13)
        assert kernels.trials.weigh_batch(0.0 * chances, scale, size, 0.0) == pytest.approx((size / scale, 1.0))
    certain = np.array([0.0, 0.5, 0.3])
    assert kernels.trials.weigh_batch(certain, 0.5, 3, 0.0) == (4.0, 0.0)  # the second trial is a visit for certain


@pytest.mark.parametrize("form", ["shared", "per_step"])
def test_a_batch_closes_the_pairs_whose_coin_says_so_and_those_at_their_limit(form: str) -> None:
    scale, limits = np.full(4, 0.5), np.array([2, 9, 9, 9])
    chances, coins = np.full((2, 4), 0.25), np.array([0.0, 0.2, 0.25, 0.3])  # two factors of 1/2
    is_open, weights = np.array([True, True, True, False]), np.zeros(4)
    if form == "shared":
        kernels.trials.weigh_shared(chances, scale, limits, 0, coins, is_open, weights)
    else:
        rows = np.repeat(chances[:1], 6, axis=0)
        kernels.trials.weigh_per_step(rows, scale, limits, 0, 2, coins, is_open, weights)
    assert_array_equal(weights, [3.0, 3.0, 3.0, 0.0])  # (1 + 1/2) / c
    assert_array_equal(is_open, [False, True, False, False])
