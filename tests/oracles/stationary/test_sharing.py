"""A tree that several threads work on: the same search, node by node, whatever their number."""

import numpy as np
import pytest

from amdp import Plan, StationaryPolicies, Status, bind, kernels, oracle
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.kernels.search.state import NODES, OPEN, Tree
from amdp.oracles.stationary import branch_and_bound, planning
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, TreeSearch, new_tree
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.sharing import LONE_NODES, ROUND_NODES, SHARES, Team
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
    assert nodes >= found[0][4] >= LONE_NODES + 2 * ROUND_NODES, "the tree was hardly shared"


@pytest.mark.parametrize("initial", [0, 5])
def test_a_shared_tree_loses_no_policy(initial: int) -> None:
    # Rounds that lose an open node fail here.
    for seed in range(4):
        domain, cost = world("sparse", "noise", (60, 7, 3), np.random.default_rng(seed))
        domain = StationaryPolicies(domain.dynamics, initial)
        best = plain_optimum(domain, cost)
        for nodes in (LONE_NODES + ROUND_NODES, LONE_NODES + 2 * ROUND_NODES, np.inf):
            plan = solved(domain, cost, nodes, 2)
            assert plan.bound <= best + 1e-9 <= plan.objective + 2e-9
        assert plan.status is Status.OPTIMAL


@pytest.mark.parametrize("threads", [1, 3])
def test_the_least_bounds_are_handed_out_numbered_as_if_in_turn_and_taken_back_in_order(threads: int) -> None:
    # Some bounds are tried at every fourth or 64th node only: with one number for all of a round, never.
    domain, cost = world("dense", "noise", (9, 4, 3), np.random.default_rng(4))
    chains = Chains.of(domain)
    tree = new_tree(chains, chains.pose(cost), (np.zeros(4), np.inf))
    tree.counts[:2] = SHARES + 4, LONE_NODES
    tree.allowed[: SHARES + 4] = True
    tree.bounds[: SHARES + 4] = np.random.default_rng(5).permutation(SHARES + 4)
    tree.marks[: SHARES + 4] = 0
    seen = list[tuple[float, int]]()
    with Team(tree, threads) as team:
        team.work(lambda part, _: seen.append((part.bounds[0], int(part.counts[NODES]))))
    assert sorted(seen) == [(i, LONE_NODES + i) for i in range(SHARES)]
    assert tree.counts[:2].tolist() == [SHARES + 4, LONE_NODES], "nothing was worked on"
    assert sorted(tree.bounds[:4]) == list(range(SHARES, SHARES + 4))
    assert tree.bounds[4 : SHARES + 4].tolist() == list(range(SHARES))


def test_what_a_round_brings_back_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiled code would write beyond the end of an array without a word.
    rounds, work = list[Tree](), Team.work

    def watched(team: Team, grow: object) -> None:
        work(team, grow)  # type: ignore[arg-type]
        rounds.append(team._tree)
        assert team._tree.counts[OPEN] + 7 * 3 <= len(team._tree.bounds), "no room to go on depth first"

    monkeypatch.setattr(Team, "work", watched)
    monkeypatch.setattr(branch_and_bound, "OPEN_NODES", 12)
    domain, cost = world("sparse", "noise", (60, 7, 3), np.random.default_rng(2))
    plan = solved(domain, cost, np.inf, 1)
    assert plan.objective == pytest.approx(plain_optimum(domain, cost), rel=1e-9)
    assert rounds
    assert plan.report.nodes > LONE_NODES + ROUND_NODES * len(rounds), "room was never short"


def test_a_tree_that_is_short_of_room_for_long_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # Portions that doubled each time would be beyond all numbers after a thousand of them.
    monkeypatch.setattr(branch_and_bound, "OPEN_NODES", 1)
    monkeypatch.setattr(branch_and_bound, "ROUND_NODES", 1)
    domain, cost = world("grid", "noise", (100, 8, 4), np.random.default_rng(3))
    plan = solved(domain, cost, 1_200, 1)
    assert plan.report.nodes == 1_200
    assert plan.bound <= plan.objective


def test_what_rounds_need_is_compiled_before_the_clock_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    called, take_back = list[int](), kernels.search.shares.take_back
    monkeypatch.setattr(planning, "_COMPILED", set())
    monkeypatch.setattr(kernels.search.shares, "take_back", lambda *given: called.append(take_back(*given)))
    domain, _ = world("sparse", "noise", (9, 4, 3), np.random.default_rng(6))
    bind(oracle("branch-and-bound", seconds=60), domain)
    assert called


@pytest.mark.parametrize("name", ["auto", "branch-and-bound"])
def test_threads_are_at_least_one(name: str) -> None:
    with pytest.raises(InvalidInput, match="threads"):
        oracle(name, threads=0)
