"""The mixing bound lies below every policy, also where chains are periodic, and is close where they mix fast."""

from itertools import pairwise

import numpy as np
import pytest

from amdp import Kernel, StationaryPolicies, kernels
from amdp.arrays import Bools, Floats
from amdp.kernels.search.state import Problem, new_node
from amdp.oracles.stationary.branch_and_bound import SCALES, Mixing
from amdp.oracles.stationary.chains import Chains
from benchmarks.brute_force import plain_costs, plain_optimum
from benchmarks.stationary_worlds import FAMILIES, LOSSES, world


def scaled_bound(
    chains: Chains, problem: Problem, scale: float, allowed: Bools | None = None, precision: float = 1e-6
) -> float:
    """The mixing bound on all policies of the allowed pairs, for scaled costs, averaged at one of the scales."""
    steps, states, actions = chains.shape
    node, mixing = (
        new_node(np.ones((states, actions), dtype=bool) if allowed is None else allowed),
        Mixing.of(chains, allowed),
    )
    count = kernels.search.chains.reached(chains.rows, node.allowed, chains.initial, steps, node.order)
    kernels.search.bounds.list_pairs(node, count)
    runs = np.empty(steps, dtype=np.int64)
    kernels.search.bounds.find_runs(problem.costs, runs)
    size = node, count, mixing.moves, mixing.loosened, runs, scale, precision, np.zeros(2)
    bound = kernels.search.bounds.bound(chains.rows, problem, mixing.floors, *size)
    ends = node.first[: count + 1].tolist()
    return float(bound + sum(node.terms[low:high].min() for low, high in pairwise(ends)))


def bound_at(domain: StationaryPolicies, cost: Floats, scale: float, allowed: Bools | None = None) -> float:
    chains = Chains(domain.dynamics, domain.initial)
    size = float(np.abs(cost).max())
    return size * scaled_bound(chains, chains.pose(cost / size), scale, allowed)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("losses", LOSSES)
def test_the_bound_is_below_thousands_of_random_policies_at_every_scale(family: str, losses: str) -> None:
    rng = np.random.default_rng(11)
    for shape in ((20, 7, 3), (150, 8, 3), (400, 6, 4)):
        domain, cost = world(family, losses, shape, rng)
        least = plain_costs(domain, cost, rng.integers(shape[2], size=(800, shape[1]))).min()
        for scale in SCALES:
            found = bound_at(domain, cost, float(scale))
            assert np.isfinite(found)
            assert found <= least + 1e-9 * abs(least)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bound_of_a_node_is_below_all_policies_of_the_node(family: str) -> None:
    rng = np.random.default_rng(12)
    for _ in range(8):
        domain, cost = world(family, "noise", (60, 6, 3), rng)
        allowed = rng.random((6, 3)) < 0.6
        allowed[np.arange(6), rng.integers(3, size=6)] = True
        inside = np.stack([rng.choice(np.flatnonzero(row), size=300) for row in allowed], axis=1)
        least = plain_costs(domain, cost, inside).min()
        for scale in SCALES:
            assert bound_at(domain, cost, float(scale), allowed) <= least + 1e-9 * abs(least)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_policy_moves_its_law_faster_than_the_mixing_says(family: str) -> None:
    rng = np.random.default_rng(13)
    domain, _ = world(family, "noise", (80, 7, 3), rng)
    moves, distances, sums = Mixing.of(Chains(domain.dynamics, domain.initial)).moves
    np.testing.assert_allclose(sums[:-1], distances[:-1][::-1].cumsum()[::-1], rtol=1e-12)
    rows = domain.dynamics.dense().p[0]
    for _ in range(200):
        chosen = rows[np.arange(7), rng.integers(3, size=7)]
        laws = [np.eye(7)[0]]
        for _ in range(79):
            laws.append(laws[-1] @ chosen)
        apart = 0.5 * np.abs(np.array(laws)[:, None] - np.array(laws)).sum(axis=2)
        assert (np.diagonal(apart, 1) <= moves[:79] + 1e-12).all()
        assert (np.triu(apart) <= distances[:80, None] + 1e-12).all()


def test_the_mixing_of_a_chain_with_a_trap_is_exact() -> None:
    # Random policies are far from the worst one: a state that is left out, or a step too many, shows here alone.
    rows = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    moves, distances, _ = Mixing.of(Chains(Kernel.homogeneous(rows, 60), 0)).moves
    np.testing.assert_allclose(moves[:60], 0.5 ** np.arange(1, 61), rtol=1e-12)
    np.testing.assert_allclose(distances[:60], 0.5 ** np.arange(60), rtol=1e-12)


@pytest.mark.parametrize("precision", [0.1, 1.0, 10.0])
def test_leaps_lose_no_more_than_they_may_and_gain_nothing(precision: float) -> None:
    rows = np.array([[[0.99, 0.01]], [[0.0, 1.0]]])
    chains = Chains(Kernel.homogeneous(rows, 300), 0)
    problem = chains.pose(np.repeat([[[1.0], [0.0]]], 300, axis=0))
    paid = float((0.99 ** np.arange(300)).sum())  # later steps add less and less: a leap goes too far by itself
    assert paid - precision <= scaled_bound(chains, problem, 0.0, precision=precision) <= paid + 1e-10


@pytest.mark.parametrize("family", FAMILIES)
def test_no_policy_avoids_a_state_more_than_the_floors_say(family: str) -> None:
    rng = np.random.default_rng(14)
    domain, _ = world(family, "noise", (90, 5, 2), rng)
    floors = Mixing.of(Chains(domain.dynamics, domain.initial)).floors
    rows = domain.dynamics.dense().p[0]
    for _ in range(100):
        chosen = rows[np.arange(5), rng.integers(2, size=5)]
        law = np.eye(5)[0]
        for t in range(90):
            floor = floors.reach[t] if t < len(floors.reach) else floors.late
            assert (law >= floor - 1e-12).all()
            law = law @ chosen


@pytest.mark.parametrize("period", [2, 3])
def test_on_periodic_chains_the_bound_is_finite_and_never_below_backward_induction(period: int) -> None:
    rng = np.random.default_rng(period)
    states = 2 * period
    rows = np.zeros((states, 2, states))
    for s, a in np.ndindex(states, 2):
        side = (s + 1) % period
        following = [y for y in range(states) if y % period == side]
        rows[s, a, following] = rng.dirichlet(np.ones(len(following)))
    domain = StationaryPolicies(Kernel.homogeneous(rows, 300))
    cost = rng.laplace(size=(300, states, 2))
    chains = Chains(domain.dynamics, 0)
    problem = chains.pose(cost / np.abs(cost).max())
    bounds = [scaled_bound(chains, problem, float(scale)) for scale in SCALES]
    markov = chains.markov_bound(problem.costs)
    assert np.isfinite(bounds).all()
    assert markov - 1e-9 <= max(bounds) <= plain_optimum(domain, problem.costs) + 1e-9


def test_without_averaging_the_bound_is_at_least_that_of_backward_induction() -> None:
    rng = np.random.default_rng(15)
    for family in FAMILIES:
        domain, cost = world(family, "noise", (70, 6, 3), rng)
        markov = float(domain.dynamics.cheapest(cost[None]).values[0, 0, 0])
        assert bound_at(domain, cost, 0.0) >= markov - 1e-9 * abs(markov)


def test_where_chains_mix_fast_averaging_closes_most_of_the_gap() -> None:
    rng = np.random.default_rng(16)
    for _ in range(5):
        domain, cost = world("dense", "noise", (1000, 8, 2), rng)
        best = plain_optimum(domain, cost)
        markov = float(domain.dynamics.cheapest(cost[None]).values[0, 0, 0])
        averaged = max(bound_at(domain, cost, float(scale)) for scale in SCALES[1:])
        assert best - averaged < 0.05 * (best - markov)


def test_costs_that_never_change_need_no_averaging_error() -> None:
    rng = np.random.default_rng(17)
    domain, _ = world("dense", "noise", (2000, 6, 3), rng)
    cost = np.repeat(rng.random((1, 6, 3)), 2000, axis=0)
    best = plain_optimum(domain, cost)
    assert best - 0.5 <= bound_at(domain, cost, 16.0) <= best + 1e-9
