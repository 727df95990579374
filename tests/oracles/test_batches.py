"""A batch is its members side by side, wherever they lie in memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import KINDS, ORACLES, box_around, random_kernel

from amdp import Dynamics, MarkovPolicies, bind, plan, step_major
from amdp.arrays import Costs
from amdp.model.segments import Shape


def dynamics_of(kind: str, shape: Shape, rng: np.random.Generator) -> Dynamics:
    if kind == "box":
        return box_around(random_kernel("dense", shape, rng), 0.3, rng)
    return random_kernel(kind, shape, rng)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("kind", ["dense", "sparse", "layered", "box"])
def test_a_batch_answers_like_its_members_alone(name: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    shape = (3, 3, 2)
    domain = MarkovPolicies(dynamics_of(kind, shape, rng))
    costs = rng.normal(size=(4, *shape)) * np.array([1.0, 1e-8, 1e8, 0.0])[:, None, None, None]
    plans = bind(ORACLES[name], domain).minimize(costs)
    for together, cost in zip(plans, costs, strict=True):
        alone = plan(ORACLES[name], domain, cost)
        assert_array_equal(together.actions, alone.actions)
        assert_allclose(together.values, alone.values, rtol=1e-13)
        assert together.objective == pytest.approx(alone.objective, rel=1e-13)


@pytest.mark.parametrize("kind", [*KINDS, "box"])
@pytest.mark.parametrize("n", [2, 16, 17, 37])
def test_a_batch_wider_than_the_compiled_lanes_answers_like_its_members_alone(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    shape = (4, 5, 3)
    planner = bind("dp", MarkovPolicies(dynamics_of(kind, shape, rng)))
    costs = rng.normal(size=(n, *shape))
    plans = planner.minimize(costs)
    alone = [planner.minimize(cost[None]) for cost in costs]
    assert_array_equal(plans.actions, np.concatenate([one.actions for one in alone]))
    assert_allclose(plans.values, np.concatenate([one.values for one in alone]), rtol=0, atol=1e-13)


def by_step(costs: Costs) -> Costs:
    laid = step_major(len(costs), costs.shape[1:])
    laid[:] = costs
    return laid


def with_gaps(costs: Costs) -> Costs:
    wide = np.zeros((2 * len(costs), *costs.shape[1:-1], 2 * costs.shape[-1]))
    wide[::2, ..., ::2] = costs
    return wide[::2, ..., ::2]


def backwards(costs: Costs) -> Costs:
    return np.ascontiguousarray(costs[::-1, ..., ::-1])[::-1, ..., ::-1]


def read_only(costs: Costs) -> Costs:
    costs.flags.writeable = False
    return costs


LAYOUTS: dict[str, Callable[[Costs], Any]] = {
    "step-major": by_step,
    "gaps": with_gaps,
    "backwards": backwards,
    "fortran": np.asfortranarray,
    "read-only": lambda costs: read_only(costs.copy()),
    "read-only step-major": lambda costs: read_only(by_step(costs)),
    "other byte order": lambda costs: costs.astype(">f8"),
    "lists": lambda costs: costs.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("kind", ["dense", "sparse", "box"])
@pytest.mark.parametrize("name", ["dp", "lp"])
def test_the_layout_of_costs_in_memory_does_not_matter(name: str, kind: str, n: int, layout: str) -> None:
    rng = np.random.default_rng(5)
    shape = (3, 4, 3)
    planner = bind(name, MarkovPolicies(dynamics_of(kind, shape, rng)))
    costs = rng.normal(size=(n, *shape))
    laid_out = LAYOUTS[layout](costs)
    plain, laid = planner.minimize(costs), planner.minimize(laid_out)
    assert_array_equal(laid.actions, plain.actions)
    assert_allclose(laid.values, plain.values, rtol=0, atol=1e-13)
    assert_array_equal(np.asarray(laid_out), costs)


def test_step_major_costs_have_the_asked_shape_and_lie_step_by_step() -> None:
    costs = step_major(5, (3, 4, 2))
    assert costs.shape == (5, 3, 4, 2)
    assert costs.transpose(1, 0, 2, 3).flags.c_contiguous


@pytest.mark.parametrize("name", ORACLES)
def test_the_same_costs_repeated_give_the_same_answer_again(name: str) -> None:
    rng = np.random.default_rng(6)
    shape = (2, 3, 2)
    planner = bind(ORACLES[name], MarkovPolicies(random_kernel("dense", shape, rng)))
    cost = rng.normal(size=(1, *shape))
    repeated = np.broadcast_to(cost, (3, *shape))
    plans = planner.minimize(repeated)
    assert (plans.objective == plans.objective[0]).all()
    assert (plans.actions == planner.minimize(cost).actions).all()


@pytest.mark.parametrize("shape", [(3, 300, 3), (2, 2, 600), (2, 520, 1), (3, 513, 2)])
@pytest.mark.parametrize("n", [1, 3, 65, 130])
def test_sparse_sweeps_over_many_rows_and_many_solves_are_those_of_the_dense_kernel(shape: Shape, n: int) -> None:
    rng = np.random.default_rng(n)
    kernel = random_kernel("sparse-homogeneous", shape, rng)
    costs = rng.normal(size=(n, *shape))
    sparse = bind("dp", MarkovPolicies(kernel, 1)).minimize(costs)
    dense = bind("dp", MarkovPolicies(kernel.dense(), 1)).minimize(costs)
    assert_allclose(sparse.values, dense.values, rtol=0, atol=1e-13)
    assert_array_equal(sparse.actions, dense.actions)
    by_steps = bind("dp", MarkovPolicies(kernel, 1)).minimize(by_step(costs))
    assert_array_equal(by_steps.values, sparse.values)
