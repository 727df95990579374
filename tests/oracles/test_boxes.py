"""Planning over a box: the cheapest policy under the cheapest kernel that the box holds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from worlds import (
    KINDS,
    ORACLES,
    World,
    all_policies,
    box_around,
    box_worlds,
    kernel_inside,
    kernel_worlds,
    random_kernel,
    row_vertices,
    seeds,
)

from amdp import BernsteinBox, Kernel, MarkovPolicies, bind, plan
from amdp.arrays import Floats
from amdp.model.transitions import SingleKernel

AGREEMENT = 1e-9


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "layered"])
def test_a_box_that_holds_one_kernel_plans_like_that_kernel(name: str, kind: str) -> None:
    rng = np.random.default_rng(8)
    shape = (3, 3, 2)
    kernel = random_kernel(kind, shape, rng)
    costs = rng.normal(size=(3, *shape))
    of_box = bind(ORACLES[name], MarkovPolicies(BernsteinBox.exactly(kernel), 1)).minimize(costs)
    of_kernel = bind(ORACLES[name], MarkovPolicies(kernel, 1)).minimize(costs)
    assert_array_equal(of_box.actions, of_kernel.actions)
    assert_allclose(of_box.values, of_kernel.values, rtol=0, atol=1e-13)


@given(world=kernel_worlds(kinds=("dense", "homogeneous", "deterministic", "sparse")))
def test_every_box_that_holds_one_kernel_plans_like_that_kernel(world: World) -> None:
    assert isinstance(world.domain.dynamics, SingleKernel)
    box = MarkovPolicies(BernsteinBox.exactly(world.domain.dynamics), world.domain.initial)
    of_box, of_kernel = bind("dp", box).minimize(world.costs), bind("dp", world.domain).minimize(world.costs)
    assert_allclose(of_box.objective / world.size, of_kernel.objective / world.size, rtol=0, atol=1e-14)


def best_of_all_policies_and_kernels(box: BernsteinBox, initial: int, cost: Floats) -> float:
    """The least cost over all policies *and* all kernels at vertices, tried one by one."""
    steps, states, _ = box.shape
    best = np.inf
    for actions in all_policies(box.shape):
        places = [(h, s) for h in range(steps - 1) for s in range(states)]
        rows = [row_vertices(box.lower[h, s, actions[h, s]], box.upper[h, s, actions[h, s]]) for h, s in places]
        for chosen in product(*rows):
            best = min(best, chain_cost(dict(zip(places, chosen, strict=True)), actions, initial, cost))
    return best


def chain_cost(rows: dict[tuple[int, int], Floats], actions: Floats, initial: int, cost: Floats) -> float:
    steps, states, _ = cost.shape
    at = np.eye(states)[initial]
    total = 0.0
    for h in range(steps):
        total += sum(at[s] * cost[h, s, actions[h, s]] for s in range(states))
        if h < steps - 1:
            at = np.sum([at[s] * rows[h, s] for s in range(states)], axis=0)
    return total


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 2, 1), (2, 3, 1)])
@settings(max_examples=10)
@given(seed=seeds, width=st.sampled_from((0.1, 0.4, 1.0)))
def test_extended_value_iteration_finds_the_best_of_all_pairs_of_policy_and_kernel(
    shape: tuple[int, int, int], seed: int, width: float
) -> None:
    rng = np.random.default_rng(seed)
    box = box_around(random_kernel("dense", shape, rng), width, rng)
    cost = rng.normal(size=shape)
    found = plan("dp", MarkovPolicies(box), cost).objective
    assert found == pytest.approx(best_of_all_policies_and_kernels(box, 0, cost), abs=1e-12)


@given(world=box_worlds(steps=4, states=5, actions=3), seed=seeds)
def test_no_kernel_inside_is_cheaper_than_the_box(world: World, seed: int) -> None:
    box = world.domain.dynamics
    assert isinstance(box, BernsteinBox)
    optimistic = bind("dp", world.domain).minimize(world.costs).objective
    rng = np.random.default_rng(seed)
    for _ in range(3):
        inside = MarkovPolicies(kernel_inside(box, rng), world.domain.initial)
        realistic = bind("dp", inside).minimize(world.costs).objective
        assert (optimistic <= realistic + AGREEMENT * world.size).all()


@given(world=box_worlds(steps=4, states=5, actions=3))
def test_the_optimistic_kernel_lies_inside_and_reaches_the_value_of_the_box(world: World) -> None:
    box = world.domain.dynamics
    assert isinstance(box, BernsteinBox)
    for cost, size in zip(world.costs, world.size, strict=True):
        optimistic = plan("dp", world.domain, cost)
        kernel = box.optimistic_kernel(optimistic.values)
        assert box.contains(kernel)
        reached = plan("dp", MarkovPolicies(kernel, world.domain.initial), cost)
        assert reached.objective / size == pytest.approx(optimistic.objective / size, abs=1e-12)


@given(world=box_worlds(steps=4, states=5, actions=3), seed=seeds, share=st.floats(0, 1))
def test_shrinking_a_box_cannot_lower_its_value(world: World, seed: int, share: float) -> None:
    box = world.domain.dynamics
    assert isinstance(box, BernsteinBox)
    kept = kernel_inside(box, np.random.default_rng(seed)).p
    lower, upper = box.lower + share * (kept - box.lower), box.upper - share * (box.upper - kept)
    smaller = BernsteinBox(np.minimum(lower, kept), np.minimum(1.0, np.maximum(upper, kept)))
    wide = bind("dp", world.domain).minimize(world.costs).objective
    narrow = bind("dp", MarkovPolicies(smaller, world.domain.initial)).minimize(world.costs).objective
    assert (wide <= narrow + AGREEMENT * world.size).all()


def test_a_vacuous_box_goes_wherever_it_likes() -> None:
    rng = np.random.default_rng(9)
    cost = rng.random((4, 5, 3))
    cheapest_anywhere = cost[0, 2].min() + cost[1:].min(axis=(1, 2)).sum()
    found = plan("dp", MarkovPolicies(BernsteinBox.vacuous(cost.shape), 2), cost).objective
    assert found == pytest.approx(cheapest_anywhere, rel=1e-14)


def test_rows_of_the_last_step_are_never_read() -> None:
    rng = np.random.default_rng(10)
    cost = rng.random((3, 2, 2))
    lower, upper = np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 2))
    lower[-1], upper[-1] = 0.9, 0.1
    plain = plan("dp", MarkovPolicies(BernsteinBox.vacuous(cost.shape)), cost)
    for name in ("dp", "lp"):
        assert plan(name, MarkovPolicies(BernsteinBox(lower, upper)), cost).objective == plain.objective


@pytest.mark.parametrize("name", [name for name in ORACLES if name != "enumeration"])
@pytest.mark.parametrize("excess", [9e-9, -9e-9, 7e-10, -7e-10])
def test_rounded_rows_that_a_kernel_accepts_are_no_trouble_in_a_box(name: str, excess: float) -> None:
    rng = np.random.default_rng(12)
    shape = (3, 3, 2)
    rounded = Kernel(np.asarray(rng.dirichlet(np.ones(3), size=shape)) * (1.0 + excess))
    cost = rng.random(shape)
    of_box = plan(ORACLES[name], MarkovPolicies(BernsteinBox.exactly(rounded)), cost)
    assert of_box.objective == pytest.approx(plan("dp", MarkovPolicies(rounded), cost).objective, rel=1e-7)


def cheapest_filling(lower: Floats, upper: Floats, values: Floats) -> float:
    """The least expectation over one row: what is left after the lower bounds goes to the cheapest states first."""
    p = np.array(lower)
    for y in sorted(range(len(values)), key=lambda y: values[y]):
        p[y] += max(0.0, min(upper[y] - lower[y], 1.0 - p.sum()))
    return float(p @ values)


@pytest.mark.parametrize("n_states", [1, 2, 5, 13, 64, 130])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
def test_the_least_expectation_over_many_states_fills_the_cheapest_first(n_states: int, order: str) -> None:
    rng = np.random.default_rng(n_states)
    box = box_around(random_kernel("dense", (2, n_states, 2), rng), 0.05, rng)
    later = rng.normal(size=(3, n_states))
    later = {"random": later, "rising": np.sort(later), "falling": -np.sort(-later), "equal": 0 * later + 0.3}[order]
    found = box.least_expectation(0, later)
    for i, s, a in np.ndindex(found.shape):
        wanted = cheapest_filling(box.lower[0, s, a], box.upper[0, s, a], later[i])
        assert found[i, s, a] == pytest.approx(wanted, abs=1e-12)
