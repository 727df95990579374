"""Bounds where chains mix slowly, never, or swing, and costs stay for a while: below all policies, at every scale."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amdp import Kernel, StationaryPolicies, Status, bind, kernels, oracle
from amdp.arrays import Bools, Floats
from amdp.oracles.stationary.branch_and_bound import SCALES, Mixing
from amdp.oracles.stationary.chains import Chains
from benchmarks.brute_force import every_policy, plain_costs, plain_optimum
from benchmarks.stationary_worlds import world
from oracles.stationary.test_agreement import branching
from oracles.stationary.test_mixing_bound import bound_at

STATES, ACTIONS = 5, 2
CHAINS = ("slow", "periodic", "multichain", "spiky")


def awkward_rows(chains: str, rng: np.random.Generator) -> Floats:
    """Rows `[s, a, y]` of chains that do not settle soon."""
    if chains == "spiky":
        rows = rng.dirichlet(np.full(STATES, 0.05), size=(STATES, ACTIONS)) + 1e-12
        return np.asarray(rows / rows.sum(axis=-1, keepdims=True))
    rows = np.zeros((STATES, ACTIONS, STATES))
    for s, a in np.ndindex(STATES, ACTIONS):
        if chains == "slow":
            moves = 10.0 ** rng.uniform(-4, -1)
            rows[s, a] = moves * rng.dirichlet(np.ones(STATES))
            rows[s, a, s] += 1.0 - moves
        else:
            side = (
                (s + 1) % 2 if chains == "periodic" or s == 0 else s % 2
            )  # with several classes, 0 alone changes sides
            following = np.arange(side, STATES, 2)
            rows[s, a, following] = rng.dirichlet(np.ones(len(following)))
    return rows


def awkward(chains: str, initial: int, steps: int, pieces: int, seed: int) -> tuple[StationaryPolicies, Floats]:
    """A domain and costs that change `pieces - 1` times."""
    rng = np.random.default_rng(seed)
    kernel = Kernel.homogeneous(awkward_rows(chains, rng), steps)
    cost = rng.laplace(size=(pieces, STATES, ACTIONS))[np.arange(steps) * pieces // steps]
    return StationaryPolicies(kernel, initial), cost


def some_pairs(seed: int) -> Bools:
    rng = np.random.default_rng(seed)
    allowed = rng.random((STATES, ACTIONS)) < 0.6
    allowed[np.arange(STATES), rng.integers(ACTIONS, size=STATES)] = True
    return np.asarray(allowed)


worlds = {
    "chains": st.sampled_from(CHAINS),
    "initial": st.integers(0, STATES - 1),
    "steps": st.sampled_from([7, 60, 200]),
    "pieces": st.sampled_from([1, 2, 5, 200]),
    "seed": st.integers(0, 2**32 - 1),
}


@settings(max_examples=30, deadline=None)
@given(**worlds)
def test_bounds_of_nodes_are_below_all_their_policies_at_every_scale(
    chains: str, initial: int, steps: int, pieces: int, seed: int
) -> None:
    domain, cost = awkward(chains, initial, steps, min(pieces, steps), seed)
    policies, allowed = every_policy(domain), some_pairs(seed)
    inside = allowed[np.arange(STATES), policies].all(axis=1)
    least = plain_costs(domain, cost, policies[inside]).min()
    for scale in SCALES:
        assert bound_at(domain, cost, float(scale), allowed) <= least + 1e-9 * steps


@settings(max_examples=25, deadline=None)
@given(**worlds)
def test_the_search_finds_what_enumeration_finds(chains: str, initial: int, steps: int, pieces: int, seed: int) -> None:
    domain, cost = awkward(chains, initial, steps, min(pieces, steps), seed)
    plan = branching(domain, 1).minimize(cost[None])[0]
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(plain_optimum(domain, cost), abs=1e-9 * steps)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(CHAINS), st.integers(0, STATES - 1), st.integers(0, 2**32 - 1))
def test_no_law_is_farther_from_a_later_one_than_the_distances_say(chains: str, initial: int, seed: int) -> None:
    domain, _ = awkward(chains, initial, 60, 1, seed)
    moves, distances, _ = Mixing.of(Chains.of(domain)).moves
    rows = domain.dynamics.dense().p[0]
    for policy in every_policy(domain):
        laws = [np.eye(STATES)[initial]]
        for _ in range(59):
            laws.append(laws[-1] @ rows[np.arange(STATES), policy])
        apart = 0.5 * np.abs(np.array(laws)[:, None] - np.array(laws)).sum(axis=2)
        assert (np.diagonal(apart, 1) <= moves[:59] + 1e-12).all()
        assert (np.triu(apart) <= distances[:60, None] + 1e-12).all()


@pytest.mark.parametrize("chains", CHAINS)
def test_leaps_over_equal_costs_lose_next_to_nothing(chains: str) -> None:
    # Without averaging, five phases of 800 steps: the bound is that of backward induction but for the precision.
    for seed in range(4):
        domain, cost = awkward(chains, 0, 4_000, 5, seed)
        markov = float(domain.dynamics.cheapest(cost[None]).values[0, 0, 0])
        assert markov - 1e-5 <= bound_at(domain, cost, 0.0) <= plain_optimum(domain, cost) + 1e-5


def test_runs_of_equal_costs_end_where_any_cost_changes() -> None:
    costs = np.zeros((6, 2, 2))
    costs[2:, 1, 0] = 1.0
    costs[5, 0, 1] = -1.0
    runs = np.empty(6, dtype=np.int64)
    kernels.search.bounds.find_runs(costs, runs)
    assert runs.tolist() == [2, 2, 5, 5, 5, 6]


def test_the_bound_of_a_stopped_search_moves_with_its_nodes() -> None:
    domain, cost = world("grid", "adversarial", (1000, 12, 4), np.random.default_rng(41))
    bounds = [bind(oracle("branch-and-bound", nodes=n), domain).minimize(cost[None])[0].bound for n in (1, 20, 100)]
    assert bounds[0] < bounds[1] < bounds[2]
