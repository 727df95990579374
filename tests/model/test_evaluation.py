"""Occupancy forward, values backward: against sums over all trajectories."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from worlds import World, box_around, kernel_worlds, plain_values, random_kernel, random_policies, random_rows, seeds

from amdp import (
    BernsteinBox,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    StationaryPolicies,
    evaluate,
    occupancy,
    one_hot,
    values,
)
from amdp.arrays import Floats
from amdp.model.transitions import SingleKernel

SHAPE = (3, 3, 2)


def trajectories(p: Floats, policy: Floats, initial: int) -> tuple[Floats, list[tuple[float, list[tuple[int, int]]]]]:
    """Every sequence of states and actions with its chance; and the chance of each pair, summed over them."""
    steps, states, actions = policy.shape
    visits = np.zeros(policy.shape)
    paths = []
    for path in product(product(range(states), range(actions)), repeat=steps):
        chance = float(path[0][0] == initial)
        for h, (s, a) in enumerate(path):
            chance *= policy[h, s, a]
            chance *= p[h, s, a, path[h + 1][0]] if h + 1 < steps else 1.0
        paths.append((chance, list(path)))
        for h, (s, a) in enumerate(path):
            visits[h, s, a] += chance
    return visits, paths


@settings(max_examples=15)
@given(world=kernel_worlds(steps=3, states=3, actions=2, n=1), seed=seeds, deterministic=st.booleans())
def test_occupancy_and_value_are_sums_over_all_trajectories(world: World, seed: int, deterministic: bool) -> None:
    kernel, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(kernel, SingleKernel)
    policy = random_policies(1, kernel.shape, np.random.default_rng(seed), deterministic=deterministic)
    visits, paths = trajectories(kernel.dense().p, policy[0], initial)
    paid = sum(chance * sum(world.costs[0, h, s, a] for h, (s, a) in enumerate(path)) for chance, path in paths)
    assert_allclose(occupancy(kernel, policy, initial)[0], visits, rtol=0, atol=1e-14)
    found = values(kernel, policy, world.costs)[0, 0, initial]
    assert found / world.size[0] == pytest.approx(paid / world.size[0], abs=1e-14)
    if deterministic:
        found = evaluate(world.domain, policy.argmax(axis=-1), world.costs)[0]
        assert found / world.size[0] == pytest.approx(paid / world.size[0], abs=1e-14)


@given(world=kernel_worlds(steps=6, states=6, actions=4), seed=seeds)
def test_occupancy_conserves_flow_and_prices_policies(world: World, seed: int) -> None:
    kernel, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(kernel, SingleKernel)
    policies = random_policies(len(world.costs), kernel.shape, np.random.default_rng(seed))
    visits = occupancy(kernel, policies, initial)
    assert visits.min() >= 0.0
    assert_allclose(visits.sum(axis=(2, 3)), 1.0, rtol=0, atol=1e-12)
    assert_allclose(visits[:, 0].sum(axis=-1), np.eye(kernel.shape[1])[[initial] * len(visits)], atol=0)
    entering = np.einsum("nhsa,hsay->nhy", visits[:, :-1], kernel.dense().p[:-1])
    assert_allclose(visits[:, 1:].sum(axis=-1), entering, rtol=0, atol=1e-13)
    assert_allclose(visits, visits.sum(axis=-1, keepdims=True) * policies, rtol=0, atol=1e-13)
    paid = (visits * world.costs).sum(axis=(1, 2, 3)) / world.size
    assert_allclose(values(kernel, policies, world.costs)[:, 0, initial] / world.size, paid, rtol=0, atol=1e-13)


@given(world=kernel_worlds(), seed=seeds)
def test_values_of_stochastic_policies_follow_their_recursion(world: World, seed: int) -> None:
    kernel = world.domain.dynamics
    assert isinstance(kernel, SingleKernel)
    policies = random_policies(len(world.costs), kernel.shape, np.random.default_rng(seed))
    found = values(kernel, policies, world.costs)
    later = np.zeros_like(found)
    later[:, :-1] = found[:, 1:]
    action_values = world.costs + np.einsum("hsay,nhy->nhsa", kernel.dense().p, later)
    size = world.size[:, None, None]
    assert_allclose(found / size, (policies * action_values).sum(axis=-1) / size, rtol=0, atol=1e-14)


def test_a_deterministic_policy_has_the_same_value_as_actions_and_as_chances() -> None:
    rng = np.random.default_rng(0)
    for dynamics in (random_kernel("sparse", SHAPE, rng), box_around(random_kernel("dense", SHAPE, rng), 0.2, rng)):
        actions = rng.integers(SHAPE[2], size=(4, *SHAPE[:2]))
        costs = rng.normal(size=(4, *SHAPE))
        as_chances = values(dynamics, one_hot(actions, SHAPE[2]), costs)[:, 0, 1]
        assert_allclose(evaluate(MarkovPolicies(dynamics, 1), actions, costs), as_chances, rtol=0, atol=1e-14)


def test_over_a_box_a_policy_is_priced_under_its_cheapest_kernel() -> None:
    rng = np.random.default_rng(1)
    domain = MarkovPolicies(box_around(random_kernel("dense", SHAPE, rng), 0.3, rng), 2)
    actions, costs = rng.integers(SHAPE[2], size=(3, *SHAPE[:2])), rng.normal(size=(3, *SHAPE))
    wanted = [plain_values(domain, cost, chosen)[0, 2] for cost, chosen in zip(costs, actions, strict=True)]
    assert_allclose(evaluate(domain, actions, costs), wanted, rtol=0, atol=1e-13)


def test_an_open_action_is_taken_to_be_the_cheapest() -> None:
    rng = np.random.default_rng(2)
    domain = MarkovPolicies(random_kernel("dense", SHAPE, rng))
    cost = rng.normal(size=SHAPE)
    found = evaluate(domain, np.full((1, *SHAPE[:2]), -1), cost[None])
    assert found[0] == pytest.approx(plain_values(domain, cost)[0, 0], abs=1e-14)


def test_the_least_expectation_of_one_kernel_is_its_expectation() -> None:
    rng = np.random.default_rng(3)
    later = rng.normal(size=(4, SHAPE[1]))
    for kind in ("dense", "homogeneous", "sparse", "sparse-homogeneous"):
        kernel = random_kernel(kind, SHAPE, rng)
        for h in range(SHAPE[0]):
            wanted = np.einsum("say,ny->nsa", kernel.dense().p[h], later)
            assert_allclose(kernel.least_expectation(h, later), wanted, rtol=0, atol=1e-14)


# --- what does not fit is refused, before compiled code reads past the end of an array ------------------------------

KERNEL = Kernel(random_rows(SHAPE, np.random.default_rng(4)))
DOMAINS = [MarkovPolicies(KERNEL), MarkovPolicies(BernsteinBox.exactly(KERNEL))]


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("shape", [(1, 2, 3), (1, 3, 2), (1, 3, 4), (2, 3, 3), (1, 3, 3, 1), (3, 3)])
def test_actions_of_the_wrong_shape_are_refused(domain: MarkovPolicies, shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match=r"actions has shape .* expected \(n, 3, 3\)|costs, .* policies"):
        evaluate(domain, np.zeros(shape, dtype=np.int32), np.zeros((1, *SHAPE)))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("action", [2, 7, -2])
def test_actions_out_of_range_are_refused(domain: MarkovPolicies, action: int) -> None:
    actions = np.zeros((1, *SHAPE[:2]), dtype=np.int64)
    actions[0, 1, 2] = action
    with pytest.raises(InvalidInput, match=r"actions run from .* they are 0 to 1"):
        evaluate(domain, actions, np.zeros((1, *SHAPE)))


def test_actions_that_are_not_whole_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="float64; they must be whole numbers"):
        evaluate(DOMAINS[0], np.full((1, *SHAPE[:2]), 0.7), np.zeros((1, *SHAPE)))


@pytest.mark.parametrize("shape", [(1, 2, 3, 2), (1, 3, 4, 2), (1, 3, 3, 1), (3, 3, 2)])
def test_costs_and_policies_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    fitting = np.full((1, *SHAPE), 0.5)
    with pytest.raises(InvalidInput, match="costs has shape"):
        evaluate(DOMAINS[0], np.zeros((1, *SHAPE[:2]), dtype=np.int32), np.zeros(shape))
    with pytest.raises(InvalidInput, match="costs has shape"):
        values(KERNEL, fitting, np.zeros(shape))
    with pytest.raises(InvalidInput, match="policies has shape"):
        values(KERNEL, np.zeros(shape), fitting)
    with pytest.raises(InvalidInput, match="policies has shape"):
        occupancy(KERNEL, np.zeros(shape))


def test_an_initial_state_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="initial = 3; it must be between 0 and 2"):
        occupancy(KERNEL, np.full((1, *SHAPE), 0.5), 3)


@pytest.mark.parametrize(("entry", "message"), [(0.5, "sums to"), (-1.0, "must not be negative"), (np.nan, "finite")])
def test_policies_that_are_not_distributions_are_refused_with_the_place(entry: float, message: str) -> None:
    kernel = Kernel(random_rows((3, 2, 2), np.random.default_rng(0)))
    policies = one_hot(np.zeros((1, 3, 2), dtype=np.int32), 2)
    policies[0, 1, 0, 1] = entry
    with pytest.raises(InvalidInput, match=rf"policies\[n=0, h=1, s=0.*{message}"):
        occupancy(kernel, policies)
    with pytest.raises(InvalidInput, match=rf"policies\[n=0, h=1, s=0.*{message}"):
        values(kernel, policies, np.zeros((1, 3, 2, 2)))


@pytest.mark.parametrize("kind", [MarkovPolicies, StationaryPolicies])
def test_a_distribution_as_the_start_of_a_domain_is_refused_with_the_way_to_have_one(kind: type) -> None:
    kernel = Kernel.homogeneous(np.full((2, 1, 2), 0.5), 3)
    with pytest.raises(InvalidInput, match=r"initial = .*amdp\.instances\.with_start"):
        kind(kernel, [0.5, 0.5])
