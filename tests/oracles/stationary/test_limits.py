"""Under limits: a policy, its value, and a bound that holds; and what is told on the way."""

import itertools
from threading import Thread
from time import process_time, sleep

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amdp import Plan, StationaryPolicies, Status, bind, kernels, oracle
from amdp.arrays import Floats
from amdp.kernels.search.state import BOUNDS, NODES, OPEN
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, Mixing, TreeSearch, new_tree
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Progress
from benchmarks.brute_force import every_policy, plain_costs, plain_optimum
from benchmarks.stationary_worlds import FAMILIES, LOSSES, world
from oracles.stationary.test_agreement import branching


def assert_honest(plan: Plan, domain: StationaryPolicies, cost: Floats) -> None:
    best = plain_optimum(domain, cost)
    tolerance = 1e-9 * max(1.0, abs(best))
    assert plan.bound <= best + tolerance
    assert plan.objective >= best - tolerance
    assert plan.objective == pytest.approx(plain_costs(domain, cost, plan.actions[None])[0], abs=tolerance)
    if plan.status is Status.OPTIMAL:
        assert plan.objective <= best + tolerance


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(FAMILIES),
    st.sampled_from(LOSSES),
    st.integers(0, 2**32 - 1),
    st.integers(0, 60),
    st.sampled_from([1, 2, 9]),
)
def test_bounds_hold_wherever_a_node_limit_stops(family: str, losses: str, seed: int, nodes: int, lanes: int) -> None:
    domain, cost = world(family, losses, (30, 5, 3), np.random.default_rng(seed))
    settings = BranchAndBound(nodes=nodes, starts=1)
    planner = StationaryPlanner(settings, domain, lambda chains: TreeSearch(chains, settings, lanes=lanes), 1e-9)
    plan = planner.minimize(cost[None])[0]
    assert_honest(plan, domain, cost)
    assert plan.report.nodes <= nodes


@pytest.mark.parametrize("nodes", [0, 1, 7, 100, 10_000])
def test_cycles_are_honest_under_a_node_limit(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    for _ in range(5):
        domain, cost = world("deterministic", "noise", (50, 6, 3), rng)
        assert_honest(bind(oracle("cycles", nodes=nodes), domain).minimize(cost[None])[0], domain, cost)


@pytest.mark.parametrize("name", ["branch-and-bound", "cycles", "auto", "local-search", "milp", "milp-pulp"])
def test_without_time_the_answer_is_feasible_and_its_bound_holds(name: str) -> None:
    family = "deterministic" if name == "cycles" else "dense"
    domain, cost = world(family, "noise", (12, 8 if family == "dense" else 5, 3), np.random.default_rng(1))
    plan = bind(oracle(name, seconds=0), domain).minimize(cost[None])[0]
    assert np.isfinite(plan.bound)
    assert plan.status is Status.FEASIBLE or plan.gap <= 1e-9 * 12 * np.abs(cost).max()
    assert_honest(plan, domain, cost)


def test_a_program_that_the_clock_stopped_says_so() -> None:
    domain, cost = world("sparse", "noise", (60, 9, 3), np.random.default_rng(0))
    plan = bind(oracle("milp", seconds=0.2), domain).minimize(cost[None])[0]
    assert plan.status is Status.FEASIBLE
    assert plan.report.note == "stopped at 0.2 seconds"


@pytest.mark.parametrize("name", ["milp", "milp-pulp"])
def test_a_program_is_no_worse_than_the_local_search_that_it_begins_with(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, cost = world("dense", "noise", (6, 3, 2), np.random.default_rng(6))
    planner = bind(name, domain)
    assert isinstance(planner, StationaryPlanner)
    dearest = every_policy(domain)[plain_costs(domain, cost, every_policy(domain)).argmax()]
    monkeypatch.setattr("amdp.oracles.stationary.mixed_search.chosen_policy", lambda chains, choices: dearest)
    assert planner.minimize(cost[None])[0].objective == pytest.approx(plain_optimum(domain, cost), rel=1e-9)


def test_a_stopped_search_says_why() -> None:
    domain, cost = world("sparse", "noise", (400, 14, 3), np.random.default_rng(2))
    plan = bind(oracle("branch-and-bound", nodes=3), domain).minimize(cost[None])[0]
    assert plan.status is Status.FEASIBLE
    assert plan.report.note == "stopped at 3 nodes"
    assert plan.report.nodes == 3
    assert plan.bound < plan.objective


def test_local_search_proves_nothing_beyond_the_markov_bound() -> None:
    domain, cost = world("dense", "noise", (50, 5, 3), np.random.default_rng(3))
    plan = bind("local-search", domain).minimize(cost[None])[0]
    markov = float(domain.dynamics.cheapest(cost[None]).values[0, 0, domain.initial])
    assert plan.status is Status.FEASIBLE
    assert plan.bound == pytest.approx(markov, rel=1e-12)
    assert plan.objective == pytest.approx(plain_optimum(domain, cost), rel=1e-12)


@pytest.mark.parametrize("name", ["branch-and-bound", "auto", "milp"])
def test_progress_is_told_in_the_size_of_the_costs(name: str) -> None:
    shape = (8, 4, 3) if name == "milp" else (300, 9, 3)
    domain, cost = world("sparse", "noise", shape, np.random.default_rng(4))
    planner = bind(name, domain)
    heard: list[Progress] = []
    planner.on_progress = heard.append  # type: ignore[attr-defined]
    plan = planner.minimize(1000.0 * cost[None])[0]
    if name != "milp":
        assert heard, "nobody was told anything"
        assert heard[-1].incumbent == pytest.approx(plan.objective, rel=1e-9)
        assert heard[-1].gap <= 1e-6 * abs(plan.objective)
    assert all(one.bound <= plan.objective + 1e-6 * abs(plan.objective) for one in heard)
    assert [one.nodes for one in heard] == sorted(one.nodes for one in heard)


def test_enumeration_tells_a_bound_that_holds_and_means_something() -> None:
    domain, cost = world("sparse", "noise", (60, 10, 3), np.random.default_rng(7))
    planner = bind("enumeration", domain)
    heard: list[Progress] = []
    planner.on_progress = heard.append  # type: ignore[attr-defined]
    plan = planner.minimize(1000.0 * cost[None])[0]
    markov = 1000.0 * float(domain.dynamics.cheapest(cost[None]).values[0, 0, domain.initial])
    assert len(heard) > 1
    assert all(markov - 1e-6 <= one.bound <= plan.objective + 1e-6 for one in heard)


def test_in_a_batch_each_progress_is_told_in_the_size_of_its_own_costs() -> None:
    domain, cost = world("sparse", "noise", (60, 8, 3), np.random.default_rng(8))
    planner = bind(oracle("enumeration", table=0), domain)
    heard: list[Progress] = []
    planner.on_progress = heard.append  # type: ignore[attr-defined]
    plans = planner.minimize(np.stack([cost, 1e6 * cost]))
    told = np.array([one.incumbent for one in heard])
    for objective in plans.objective:
        assert np.isclose(told, objective, rtol=1e-9, atol=0.0).any()


LARGE = {
    "cycles": ("deterministic", (1000, 300, 3)),
    "branch-and-bound": ("sparse", (1000, 300, 3)),
    "local-search": ("dense", (2000, 100, 3)),
    "auto": ("grid", (3000, 49, 4)),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_clock_is_heard_in_the_middle_of_large_nodes(name: str) -> None:
    family, shape = LARGE[name]
    domain, cost = world(family, "noise", shape, np.random.default_rng(9))
    small, price = world(family, "noise", (4, 9, 4), np.random.default_rng(9))
    bind(name, small).minimize(price[None])  # nothing is compiled while the clock runs
    planner = bind(oracle(name, seconds=0.3), domain)
    began = process_time()  # of this process alone: others may keep the machine busy
    plan = planner.minimize(cost[None])[0]
    assert process_time() - began < 1.5
    assert plan.status is Status.FEASIBLE
    assert np.isfinite(plan.bound)
    assert plan.bound < plan.objective


def test_cycles_that_do_not_fit_the_table_are_summed_step_by_step() -> None:
    rng = np.random.default_rng(10)
    for room in (0, 8 * 7 * 7 * 3, 3 * 8 * 7 * 7 * 3):  # tables of no, of one, and of three lengths
        for steps in (3, 9, 60):
            domain, cost = world("deterministic", "noise", (steps, 7, 3), rng)
            plan = bind(oracle("cycles", table=room), domain).minimize(cost[None])[0]
            assert plan.status is Status.OPTIMAL
            assert plan.objective == pytest.approx(plain_optimum(domain, cost), abs=1e-9)


def test_paths_are_left_only_where_nothing_cheaper_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    # From the fifth node on, the search begins at a local optimum and cuts paths by the bound of Markov policies.
    monkeypatch.setattr("amdp.oracles.stationary.cycles.FIRST_PORTION", 5)
    rng = np.random.default_rng(11)
    cut = 0
    for _ in range(30):
        domain, cost = world("deterministic", "noise", (int(rng.integers(5, 30)), 6, 3), rng)
        plan = bind("cycles", domain).minimize(cost[None])[0]
        assert plan.objective == pytest.approx(plain_optimum(domain, cost), abs=1e-9)
        assert plan.status is Status.OPTIMAL
        cut += plan.report.nodes < 100
    assert cut > 5


def test_a_search_takes_the_same_way_in_every_run() -> None:
    domain, cost = world("sparse", "ftpl", (200, 9, 3), np.random.default_rng(5))
    first, second = (branching(domain, 3).minimize(cost[None]) for _ in range(2))
    assert first.report.nodes == second.report.nodes
    assert (first.actions == second.actions).all()


def heard_from(name: str, domain: StationaryPolicies, cost: Floats, **settings: object) -> tuple[Plan, list[Progress]]:
    planner = bind(oracle(name, **settings), domain)
    heard: list[Progress] = []
    planner.on_progress = heard.append  # type: ignore[attr-defined]
    return planner.minimize(cost[None])[0], heard


@pytest.mark.parametrize(
    "name", ["auto", "branch-and-bound", "enumeration", "cycles", "local-search", "milp", "milp-pulp"]
)
@pytest.mark.parametrize("scale", [1000.0, -0.01])
def test_bounds_begin_at_that_of_markov_policies_never_fall_and_end_at_the_answer(name: str, scale: float) -> None:
    family = "deterministic" if name == "cycles" else "sparse"
    shape = (8, 5, 3) if "milp" in name else (60, 60, 4) if name == "cycles" else (200, 9, 3)
    domain, cost = world(family, "noise", shape, np.random.default_rng(4))
    limits = {"nodes": 30_000} if name == "cycles" else {}
    plan, heard = heard_from(name, domain, scale * cost, **limits)
    markov = float(domain.dynamics.cheapest(scale * cost[None]).values[0, 0, domain.initial])
    rounding = 1e-12 * abs(scale) * shape[0]
    assert heard, "nobody was told anything"
    assert heard[0].first_bound == pytest.approx(markov, abs=rounding)
    for before, after in itertools.pairwise([*heard, heard[-1]._replace(incumbent=plan.objective, bound=plan.bound)]):
        assert before.first_bound <= before.bound <= after.bound + rounding
        assert before.gap == max(0.0, before.incumbent - before.bound)
    assert all((one.claim is not None) == ("milp" in name) for one in heard)


def test_what_a_solver_claims_is_no_bound_until_it_is_examined() -> None:
    domain, cost = world("sparse", "noise", (60, 9, 3), np.random.default_rng(0))
    plan, heard = heard_from("milp", domain, cost, seconds=1.0)
    assert plan.bound >= heard[-1].bound
    claims = [one.claim for one in heard if one.claim is not None]
    assert claims == sorted(claims)
    assert claims[0] == heard[0].first_bound, "HiGHS begins at minus infinity"


def test_a_bound_is_the_same_whether_or_not_somebody_listens() -> None:
    domain, cost = world("sparse", "noise", (100, 12, 3), np.random.default_rng(6))
    for nodes in (0, 1, 50):
        told, _ = heard_from("branch-and-bound", domain, cost, nodes=nodes, starts=1)
        alone = bind(oracle("branch-and-bound", nodes=nodes, starts=1), domain).minimize(cost[None])[0]
        assert told.bound == pytest.approx(alone.bound, abs=1e-10)
        assert (told.actions == alone.actions).all()


def test_a_node_that_the_clock_stops_stays_open() -> None:
    # It has so many scales of averaging to try that nothing but a halt in its middle ends it.
    domain, cost = world("sparse", "noise", (60, 9, 3), np.random.default_rng(8))
    chains = Chains.of(domain)
    problem, mixing = chains.pose(cost), Mixing.of(chains)
    tree = new_tree(chains, problem, (np.zeros(9, dtype=np.int64), np.inf))
    tree.mixing[0], tree.loosened[0] = mixing.moves, mixing.loosened

    def stop_in_its_middle() -> None:
        while tree.counts[BOUNDS] == 0:
            sleep(0.001)
        problem.halt[0] = 1

    stopper = Thread(target=stop_in_its_middle)
    stopper.start()
    kernels.search.trees.grow(chains.rows, problem, mixing.floors, tree, np.ones(10**7), False, 5)
    stopper.join()
    assert tree.counts[OPEN] == 1
    assert tree.counts[NODES] == 0
    assert tree.allowed[0].all()
    assert tree.bounds[0] == -np.inf
