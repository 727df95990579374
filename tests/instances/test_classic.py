from collections.abc import Callable
from math import comb

import mdptoolbox.example
import numpy as np
import pytest

from amdp.errors import InvalidInput
from amdp.instances import Instance, forest, grid, lock, river_swim
from amdp.oracles.base import plan
from amdp.oracles.markov.dynamic_programming import BackwardInduction


def cheapest(instance: Instance) -> float:
    return plan(BackwardInduction(), instance.domain, instance.costs).objective


def best_return(p: np.ndarray, rewards: np.ndarray, n_steps: int) -> float:
    """Backward induction on rewards, `p[a][s, y]`, from state 0."""
    value = np.zeros(len(rewards))
    for _ in range(n_steps):
        value = np.max([rewards[:, a] + p[a] @ value for a in range(len(p))], axis=0)
    return float(value[0])


def test_river_swim_has_the_published_numbers() -> None:
    p = river_swim().kernel.dense().p[0]
    left, right = p[:, 0], p[:, 1]
    np.testing.assert_array_equal(left, np.eye(6)[[0, 0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(right[0], [0.4, 0.6, 0, 0, 0, 0])
    np.testing.assert_array_equal(right[1], [0.05, 0.6, 0.35, 0, 0, 0])
    np.testing.assert_array_equal(right[4], [0, 0, 0, 0.05, 0.6, 0.35])
    np.testing.assert_array_equal(right[5], [0, 0, 0, 0, 0.4, 0.6])


def test_river_swim_pays_little_downstream_and_much_upstream() -> None:
    instance = river_swim(6, 20)
    rewards = 1.0 - instance.costs[0]
    assert rewards[0, 0] == pytest.approx(0.005)
    assert rewards[5, 1] == 1.0
    assert np.count_nonzero(instance.costs[0] != 1.0) == 2


def test_river_swim_return_is_recovered_from_the_cost() -> None:
    instance = river_swim(6, 30)
    p = instance.kernel.dense().p[0].transpose(1, 0, 2)
    best = best_return(p, 1.0 - instance.costs[0], 30)
    assert instance.scale.original(cheapest(instance)) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (4, 1), (3, 5)])
def test_without_slip_the_goal_is_as_far_as_its_coordinates(width: int, height: int) -> None:
    assert cheapest(grid(width, height, 0.0, 30)) == width + height - 2


def test_a_grid_walker_slips_to_the_sides_and_stays_at_walls() -> None:
    p = grid(3, 3, 0.2, 5).kernel.dense().p[0]
    north, east, south, west = range(4)
    np.testing.assert_allclose(p[4, north], [0, 0, 0, 0.1, 0, 0.1, 0, 0.8, 0])
    np.testing.assert_allclose(p[4, east], [0, 0.1, 0, 0, 0, 0.8, 0, 0.1, 0])
    np.testing.assert_allclose(p[0, south], [0.9, 0.1, 0, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(p[0, west], [0.9, 0, 0, 0.1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(p[8], np.eye(9)[[8] * 4])


@pytest.mark.parametrize("jam", [0.0, 0.3])
def test_the_best_lock_breaker_waits_for_enough_felt_presses(jam: float) -> None:
    # E[min(T, n)] = sum over k < n of P(fewer than L of k presses are felt)
    code, n_steps = (2, 0, 1), 12
    felt = 1.0 - jam
    expected = sum(comb(k, i) * felt**i * jam ** (k - i) for k in range(n_steps) for i in range(min(len(code), k + 1)))
    assert cheapest(lock(code, 3, jam, n_steps)) == pytest.approx(expected, abs=1e-12)


def test_a_wrong_button_resets_the_lock() -> None:
    p = lock((1, 0, 1), 2, 0.1, 5).kernel.dense().p[0]
    np.testing.assert_array_equal(p[[0, 1, 2], [0, 1, 0], 0], 1.0)


@pytest.mark.parametrize(("n_states", "fire"), [(2, 0.0), (3, 0.1), (7, 0.35)])
def test_forest_is_the_one_of_the_toolbox(n_states: int, fire: float) -> None:
    p, rewards = mdptoolbox.example.forest(S=n_states, p=fire)
    instance = forest(n_states, 15, fire)
    np.testing.assert_allclose(instance.kernel.dense().p[0].transpose(1, 0, 2), p, atol=1e-15)
    np.testing.assert_allclose(4.0 - 4.0 * instance.costs[0], rewards, atol=1e-15)
    best = best_return(p, rewards, 15)
    assert instance.scale.original(cheapest(instance)) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: river_swim(1), "n_states = 1; it must be a whole number, at least 2"),
        (lambda: river_swim(6, 0), "n_steps = 0; it must be a whole number, at least 1"),
        (lambda: river_swim(2.5), "n_states = 2.5; it must be a whole number"),  # type: ignore[arg-type]
        (lambda: grid(0, 3), "width = 0"),
        (lambda: grid(3, -1), "height = -1"),
        (lambda: grid(3, 3, 1.5), "slip = 1.5; it must be between 0 and 1"),
        (lambda: grid(3, 3, float("nan")), "slip = nan"),
        (lambda: lock(()), "code is empty"),
        (lambda: lock((0, 2), 2), r"code\[1\] = 2; it must be between 0 and 1"),
        (lambda: lock((0,), jam=-0.1), "jam = -0.1"),
        (lambda: forest(3, 20, 2.0), "fire = 2.0"),
        (lambda: forest(1), "n_states = 1"),
    ],
)
def test_bad_parameters_are_refused_with_the_rule(make: Callable[[], Instance], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
