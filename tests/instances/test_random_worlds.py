from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amdp
from amdp.errors import InvalidInput
from amdp.instances import Instance, random_dense, random_layered, random_sparse, tiny
from amdp.model.transitions import SparseKernel


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_concentration_moves_rows_from_one_state_to_all() -> None:
    largest = [random_dense(2, 20, 3, rng(), c).kernel.dense().p.max(axis=3).mean() for c in (0.01, 1.0, 100.0)]
    assert largest[0] > 0.9
    assert 0.1 < largest[1] < 0.3
    assert largest[2] < 0.08


def test_copies_of_actions_leave_the_world_as_it_is() -> None:
    plain, copied = tiny(3, 4, 2), tiny(3, 4, 2, copies=3)
    assert copied.shape == (3, 4, 6)
    least, least_copied = (amdp.plan("dp", world, world.costs).objective for world in (plain, copied))
    assert least_copied == pytest.approx(least)
    uniform, uniform_copied = (
        (amdp.occupancy(world.kernel, np.full((1, *world.shape), 1.0 / world.shape[2]))[0] * world.costs).sum()
        for world in (plain, copied)
    )
    assert uniform_copied == pytest.approx(uniform)


def test_dense_dynamics_differ_between_steps() -> None:
    p = random_dense(2, 4, 2, rng()).kernel.dense().p
    assert not np.array_equal(p[0], p[1])


@settings(max_examples=25)
@given(n_states=st.integers(1, 12), n_actions=st.integers(1, 3), data=st.data())
def test_each_sparse_row_has_that_many_successors(n_states: int, n_actions: int, data: st.DataObject) -> None:
    n_successors = data.draw(st.integers(1, n_states))
    kernel = random_sparse(3, n_states, n_actions, rng(), n_successors).kernel
    assert np.all((kernel.dense().p[0] > 0).sum(axis=2) == n_successors)


def test_all_sets_of_successors_are_equally_likely() -> None:
    p = random_sparse(1, 5, 6000, rng(), 2).kernel.dense().p[0].reshape(-1, 5)
    found = [tuple(np.flatnonzero(row).tolist()) for row in p]
    expected = len(found) / comb(5, 2)
    for pair in combinations(range(5), 2):
        assert abs(found.count(pair) - expected) < 5 * np.sqrt(expected)


def test_ten_thousand_states_stay_sparse() -> None:
    kernel = random_sparse(20, 10_000, 4, rng()).kernel
    assert isinstance(kernel, SparseKernel)
    assert kernel.matrices[0].nnz == 10_000 * 4 * 4


def test_a_layered_world_is_in_layer_h_at_step_h() -> None:
    instance = random_layered(4, 3, 2, rng())
    layer = np.array([0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    in_layer = layer == np.arange(4)[:, None]
    np.testing.assert_array_equal(instance.kernel.reachable(0), in_layer)
    assert np.all(instance.costs[~in_layer] == 0.0)
    for h in range(3):
        np.testing.assert_array_equal(instance.kernel.empty_rows(h), np.repeat(~in_layer[h], 2).reshape(-1, 2))


def test_every_policy_of_a_layered_world_meets_each_layer_once() -> None:
    instance = random_layered(5, 2, 3, rng(), concentration=0.5)
    policy = rng(1).dirichlet(np.ones(3), size=(1, *instance.shape[:2]))
    visits = instance.kernel.occupancy(policy, instance.initial)[0].sum(axis=2)
    np.testing.assert_allclose(visits[0, 0], 1.0)
    for h in range(1, 5):
        np.testing.assert_allclose(visits[h, 2 * h - 1 : 2 * h + 1].sum(), 1.0)


def test_one_layer_is_one_state() -> None:
    assert random_layered(1, 3, 2, rng()).shape == (1, 1, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: random_dense(0, 3, 2, rng()), "n_steps = 0"),
        (lambda: random_dense(2, 0, 2, rng()), "n_states = 0"),
        (lambda: random_dense(2, 3, 2, rng(), 0.0), "concentration = 0.0; it must be finite and above 0"),
        (lambda: random_dense(2, 3, 2, rng(), float("nan")), "concentration = nan"),
        (lambda: random_sparse(2, 3, 2, rng(), 4), "n_successors = 4; it must be at most n_states = 3"),
        (lambda: random_sparse(2, 3, 2, rng(), 0), "n_successors = 0"),
        (lambda: random_layered(2, 0, 2, rng()), "width = 0"),
        (lambda: random_layered(2, 2, 0, rng()), "n_actions = 0"),
    ],
)
def test_bad_parameters_are_refused_with_the_rule(make: Callable[[], Instance], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
