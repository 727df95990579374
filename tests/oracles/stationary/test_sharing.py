"""A tree that several threads work on: the same search, node by node, whatever their number."""

import numpy as np
import pytest

from amdp import Plan, StationaryPolicies, Status, oracle
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, TreeSearch
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.sharing import LONE_NODES, ROUND_NODES
from benchmarks.brute_force import plain_optimum
from benchmarks.stationary_worlds import world


def solved(domain: StationaryPolicies, cost: Floats, nodes: float, threads: int) -> Plan:
    """From a single descent, and with so few policies tried at a time that the tree is large."""
    settings = BranchAndBound(nodes=nodes, starts=1, threads=threads)
    planner = StationaryPlanner(settings, domain, lambda chains: TreeSearch(chains, settings, lanes=3), 1e-9)
    return planner.minimize(cost[None])[0]


@pytest.mark.parametrize("losses", ["noise", "adversarial"])
@pytest.mark.parametrize("nodes", [LONE_NODES + 3 * ROUND_NODES + 5, 600])
def test_the_search_does_not_depend_on_the_number_of_threads(losses: str, nodes: float) -> None:
    domain, cost = world("grid", losses, (100, 8, 4), np.random.default_rng(3))
    found = []
    for threads in (1, 2, 3):
        plan = solved(domain, cost, nodes, threads)
        found.append((plan.actions.tolist(), plan.objective, plan.bound, plan.status, plan.report.nodes))
    assert found[0] == found[1] == found[2]
    assert found[0][4] >= LONE_NODES + 2 * ROUND_NODES, "the tree was hardly shared"


@pytest.mark.parametrize("initial", [0, 5])
def test_a_shared_tree_loses_no_policy(initial: int) -> None:
    # Rounds that lose an open node, or forget what was closed by a bound, fail here.
    for seed in range(4):
        domain, cost = world("sparse", "noise", (60, 7, 3), np.random.default_rng(seed))
        domain = StationaryPolicies(domain.dynamics, initial)
        best = plain_optimum(domain, cost)
        for nodes in (LONE_NODES + ROUND_NODES, LONE_NODES + 2 * ROUND_NODES, np.inf):
            plan = solved(domain, cost, nodes, 2)
            assert plan.bound <= best + 1e-9 <= plan.objective + 2e-9
        assert plan.status is Status.OPTIMAL


@pytest.mark.parametrize("name", ["auto", "branch-and-bound"])
def test_threads_are_at_least_one(name: str) -> None:
    with pytest.raises(InvalidInput, match="threads"):
        oracle(name, threads=0)
