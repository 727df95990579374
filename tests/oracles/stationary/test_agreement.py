"""All exact methods find what plain enumeration finds: 600 instances, 40 of them also by HiGHS and CBC."""

from itertools import product

import numpy as np
import pytest

from amdp import Kernel, Plan, StationaryPolicies, Status, bind, kernels, oracle, testing
from amdp.arrays import Floats
from amdp.oracles.base import PlanningOracle
from amdp.oracles.stationary.branch_and_bound import SCALES, BranchAndBound, TreeSearch
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.planning import StationaryPlanner
from benchmarks.brute_force import plain_costs, plain_optimum
from benchmarks.stationary_worlds import FAMILIES, LOSSES, world

EACH = 25  # instances of a family with losses of a kind: 600 in all
SHAPES = ((1, 3, 3), (2, 3, 2), (7, 4, 3), (23, 5, 2), (60, 6, 2), (40, 3, 4), (120, 4, 2), (11, 1, 3), (90, 5, 3))
EXACT = ("enumeration", "branch-and-bound", "auto")


def branching(domain: StationaryPolicies, lanes: int, scales: Floats = SCALES) -> StationaryPlanner:
    """Branch and bound that must branch on tiny cases, too: few policies are tried side by side."""
    settings = BranchAndBound(starts=1)
    return StationaryPlanner(settings, domain, lambda chains: TreeSearch(chains, settings, scales, lanes), 1e-9)


def instances(family: str, losses: str, count: int) -> list[tuple[StationaryPolicies, Floats]]:
    rng = np.random.default_rng([FAMILIES.index(family), LOSSES.index(losses)])
    return [world(family, losses, SHAPES[i % len(SHAPES)], rng) for i in range(count)]


def assert_right(plan: Plan, domain: StationaryPolicies, cost: Floats, best: float) -> None:
    tolerance = 1e-9 * max(1.0, abs(best))
    own = plain_costs(domain, cost, plan.actions[None])[0]
    assert plan.status is Status.OPTIMAL
    assert abs(plan.objective - own) <= tolerance, "the objective is not the value of the policy"
    assert abs(plan.objective - best) <= tolerance
    assert plan.objective - tolerance <= plan.bound <= plan.objective


@pytest.mark.parametrize(("family", "losses"), list(product(FAMILIES, LOSSES)))
def test_every_exact_method_agrees_with_plain_enumeration(family: str, losses: str) -> None:
    for i, (domain, cost) in enumerate(instances(family, losses, EACH)):
        best = plain_optimum(domain, cost)
        planners = [bind(name, domain) for name in EXACT]
        planners += [bind("cycles", domain)] if family == "deterministic" else []
        planners.append(branching(domain, 1 + i % 3))
        for planner in planners:
            assert_right(planner.minimize(cost[None])[0], domain, cost, best)
        assert_right(planners[0].minimize(cost[None])[0], domain, cost, best)  # the second time by the table


@pytest.mark.parametrize("scale", [0.0, 1.0, 16.0, 256.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_scale_of_averaging_leads_to_the_optimum(family: str, scale: float) -> None:
    for domain, cost in instances(family, "noise", 6):
        plan = branching(domain, 2, np.array([scale])).minimize(cost[None])[0]
        assert_right(plan, domain, cost, plain_optimum(domain, cost))


SOLVERS: dict[str, PlanningOracle] = {
    "milp, occupancy": oracle("milp"),
    "milp, aggregated": oracle("milp", formulation="aggregated"),
    "milp, value": oracle("milp", formulation="value"),
    "pulp, HiGHS": oracle("milp-pulp"),
    "pulp, CBC": oracle("milp-pulp", solver="CBC"),
}
SMALL = ((3, 3, 2), (6, 3, 2), (4, 2, 3), (8, 2, 2))


@pytest.mark.parametrize("name", SOLVERS)
def test_mixed_integer_programs_agree_with_plain_enumeration(name: str) -> None:
    rng = np.random.default_rng(7)
    pairs = list(product(FAMILIES, LOSSES))
    for i in range(40):
        family, losses = pairs[i % len(pairs)]
        domain, cost = world(family, losses, SMALL[i % len(SMALL)], rng)
        plan = bind(SOLVERS[name], domain).minimize(cost[None])[0]
        best = plain_optimum(domain, cost)
        assert abs(plan.objective - best) <= 1e-9 * max(1.0, abs(best)), (i, family, losses)
        assert plan.bound <= best + 1e-6
        assert plan.status is Status.OPTIMAL or plan.gap < 1e-5


@pytest.mark.parametrize("name", ["enumeration", "branch-and-bound", "auto", "local-search", "milp"])
@pytest.mark.parametrize("check", testing.oracle_checks(), ids=lambda check: check.__name__)
def test_every_stationary_oracle_passes_the_conformance_checks(name: str, check: testing.OracleCheck) -> None:
    check(oracle(name))


@pytest.mark.parametrize("name", ["enumeration", "branch-and-bound"])
def test_a_batch_gives_what_its_single_solves_give(name: str) -> None:
    rng = np.random.default_rng(3)
    domain, _ = world("sparse", "noise", (200, 5, 3), rng)
    costs = rng.laplace(size=(9, 200, 5, 3))
    together = bind(name, domain).minimize(costs)
    for cost, plan in zip(costs, together, strict=True):
        alone = bind(name, domain).minimize(cost[None])[0]
        assert (alone.actions == plan.actions).all()
        assert alone.objective == pytest.approx(plan.objective, rel=1e-12)


@pytest.mark.parametrize("name", ["enumeration", "auto"])
def test_the_table_knows_how_rough_the_law_of_each_policy_is(name: str) -> None:
    # One law goes back and forth until the end, one all but stays: only the second is rough.
    rows = np.zeros((3, 3, 3))
    rows[0, 0, 0] = rows[0, 1, 1] = 1.0
    rows[0, 2] = 1.0 - 4e-7, 0.0, 4e-7
    rows[1, :, 0] = rows[2, :, 2] = 1.0
    domain = StationaryPolicies(Kernel.homogeneous(rows, 2000))
    cost = np.zeros((2000, 3, 3))
    cost[:, 2], cost[:, 0, 0], cost[:, 0, 1] = -1.0, -1e-5, 1.0
    planner = bind(name, domain)
    for _ in range(2):
        found = planner.minimize(cost[None])[0]
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(-0.799387, abs=1e-6)
        assert found.objective == pytest.approx(plain_optimum(domain, cost), abs=1e-9)


@pytest.mark.parametrize("losses", LOSSES)
def test_the_table_is_right_where_moves_are_rare(losses: str) -> None:
    rng = np.random.default_rng(8)
    for _ in range(5):
        domain, _ = world("rare", losses, (2000, 4, 3), rng)
        planner = bind("enumeration", domain)
        for _ in range(3):
            _, cost = world("rare", losses, (2000, 4, 3), rng)
            found = planner.minimize(cost[None])[0]
            assert found.status is Status.OPTIMAL
            assert found.objective == pytest.approx(plain_optimum(domain, cost), abs=1e-8)


def test_settling_ties_looks_at_states_that_a_new_action_leads_to() -> None:
    rows = np.zeros((2, 2, 2))
    rows[0, 0, 1] = rows[0, 1, 0] = 1.0
    rows[1, :, 1] = 1.0
    chains = Chains(Kernel.homogeneous(rows, 10), 0)
    cost = np.zeros((10, 2, 2))
    cost[:, 1, 0] = 1.0
    policy = np.array([1, 1])
    kernels.search.chains.settle(chains.rows, chains.pose(cost), policy, 1e-12)
    assert chains.value(chains.pose(cost), policy) == 0.0
    assert policy.tolist() == [1, 0]


@pytest.mark.parametrize("name", [*EXACT, "local-search"])
def test_settling_ties_makes_no_answer_dearer(name: str) -> None:
    halves = [[[0, 1, 1], [1, 0, 1]], [[1, 1, 0], [0, 1, 1]], [[1, 1, 0], [1, 0, 1]]]
    domain = StationaryPolicies(Kernel.homogeneous(0.5 * np.array(halves), 3))
    cost = np.repeat(np.array([[[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]), 3, axis=0)
    assert bind(name, domain).minimize(cost[None])[0].objective == 0.0


def test_exact_methods_return_the_same_policy() -> None:
    rng = np.random.default_rng(4)
    for family in ("dense", "sparse", "grid", "river"):
        domain, cost = world(family, "noise", (300, 6, 3), rng)
        plans = [bind(name, domain).minimize(cost[None])[0] for name in EXACT]
        assert all((plan.actions == plans[0].actions).all() for plan in plans), family
        assert len({plan.objective for plan in plans}) == 1, family


def test_a_large_dense_case_is_proved_and_beats_random_policies() -> None:
    rng = np.random.default_rng(5)
    domain, cost = world("dense", "noise", (1000, 15, 3), rng)
    plan = bind("branch-and-bound", domain).minimize(cost[None])[0]
    others = rng.integers(3, size=(500, 15))
    assert plan.status is Status.OPTIMAL
    assert plan.objective <= plain_costs(domain, cost, others).min()
    flips = np.repeat(plan.actions[None], 45, axis=0)
    flips[np.arange(45), np.arange(45) // 3] = np.arange(45) % 3
    assert plan.objective <= plain_costs(domain, cost, flips).min() + 1e-9
