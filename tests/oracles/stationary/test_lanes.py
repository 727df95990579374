"""Policies that are tried side by side: a lane ends early only if it cannot win."""

import numpy as np
import pytest

from amdp import StationaryPolicies, kernels
from amdp.arrays import Floats
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.enumeration import Table
from benchmarks.brute_force import plain_costs, plain_optimum
from benchmarks.stationary_worlds import FAMILIES, world


def cheapest_below(domain: StationaryPolicies, cost: Floats, ceiling: float) -> tuple[float, np.ndarray]:
    """What the lanes find among all policies below a ceiling."""
    steps, states, actions = domain.shape
    chains = Chains(domain.dynamics, domain.initial)
    everything, order = np.ones((states, actions), dtype=bool), np.zeros(states, dtype=np.int64)
    count = kernels.search.chains.reached(chains.rows, everything, domain.initial, steps, order)
    policy, work = np.zeros(states, dtype=np.int64), np.zeros(2)
    problem, lanes = chains.pose(cost), actions**count
    found = kernels.search.lanes.cheapest_lane(
        chains.rows, problem, everything, order, count, lanes, ceiling, policy, work
    )
    return float(found), policy


@pytest.mark.parametrize("family", FAMILIES)
def test_the_optimum_is_found_below_any_ceiling_that_is_above_it(family: str) -> None:
    rng = np.random.default_rng(21)
    for steps in (2, 9, 40, 300):
        for _ in range(6):
            domain, cost = world(family, "noise", (steps, 5, 3), rng)
            cost /= np.abs(cost).max()
            best = plain_optimum(domain, cost)
            for room in (1e-6, 1e-2, 1.0, np.inf):
                found, policy = cheapest_below(domain, cost, best + room)
                assert found == pytest.approx(best, abs=1e-9)
                assert plain_costs(domain, cost, policy[None])[0] == pytest.approx(best, abs=1e-9)


def test_nothing_is_found_below_the_optimum() -> None:
    domain, cost = world("grid", "noise", (60, 4, 3), np.random.default_rng(22))
    cost /= np.abs(cost).max()
    assert cheapest_below(domain, cost, plain_optimum(domain, cost) - 1e-6)[0] == np.inf


@pytest.mark.parametrize("family", FAMILIES)
def test_closed_policies_are_counted_once_each(family: str) -> None:
    rng = np.random.default_rng(23)
    for steps in (1, 2, 50):
        domain, _ = world(family, "noise", (steps, 4, 3), rng)
        rows = domain.dynamics.dense().p[0]
        distinct = set()
        for number in range(3**4):
            policy = [number // 3**s % 3 for s in range(4)]
            comes = np.eye(4, dtype=bool)[0]
            for _ in range(steps - 1):
                comes = comes | np.any([rows[s, policy[s]] > 0 for s in range(4) if comes[s]], axis=0)
            distinct.add(tuple(a if there else -1 for a, there in zip(policy, comes, strict=True)))
        assert Chains(domain.dynamics, 0).count_closed(1000) == len(distinct)


def test_the_table_of_fast_mixing_chains_is_short_and_right() -> None:
    rng = np.random.default_rng(24)
    domain, _ = world("dense", "noise", (3000, 5, 3), rng)
    chains = Chains(domain.dynamics, 0)
    stored = Table.of(chains, 1000, 2**26)
    assert stored is not None
    assert stored.ends.max() < 60
    for _ in range(10):
        cost = rng.uniform(-1.0, 1.0, size=(3000, 5, 3))
        (found,) = stored.solve([chains.pose(cost)])
        assert found is not None
        best = plain_optimum(domain, cost)
        assert plain_costs(domain, cost, found.policy[None])[0] == pytest.approx(best, abs=1e-9)
        assert best - 1e-6 <= found.bound <= best + 1e-9


def test_a_table_that_does_not_fit_is_not_made() -> None:
    domain, _ = world("sparse", "noise", (3000, 5, 3), np.random.default_rng(25))
    assert Table.of(Chains(domain.dynamics, 0), 1000, 1000) is None
