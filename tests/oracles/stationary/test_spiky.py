"""Kernels with tiny chances: what a solver claims about them is examined, and only what holds is passed on."""

import numpy as np
import pytest

from amdp import Kernel, StationaryPolicies, Status, bind, oracle
from amdp.arrays import Floats
from amdp.kernels.search.state import Problem
from amdp.oracles.stationary import mixed_search
from amdp.oracles.stationary.branch_and_bound import BranchAndBound, TreeSearch
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.formulations import LEAST_CHANCE, Rounded
from amdp.oracles.stationary.mixed_search import Answer, Examination
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import SearchClock, SearchResult
from benchmarks.brute_force import every_policy, plain_costs, plain_optimum
from benchmarks.stationary_worlds import world
from benchmarks.studies.spiky import PROGRAMS, counted, lies, spiky


def misleading(seed: int = 717) -> tuple[StationaryPolicies, Floats]:
    """A world of which HiGHS, at tight tolerances, says that nothing costs less than -2.87; the optimum is -7.45."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(3, 0.02), size=(3, 3))
    return StationaryPolicies(Kernel.homogeneous(rows, 8)), rng.normal(size=(8, 3, 3))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_world_that_misled_solvers_is_solved(name: str) -> None:
    domain, cost = misleading()
    plan = bind(PROGRAMS[name], domain).minimize(cost[None])[0]
    assert not lies(plan, domain, cost)
    assert plan.objective == pytest.approx(-7.450550033, abs=1e-8)
    assert plan.gap < 1e-6


def test_no_program_lies_where_chances_are_tiny() -> None:
    counts = counted(range(20_000, 20_100))  # the study has the first 20,000
    assert sum(counts.values()) >= 200
    assert not any(key.endswith("lies") for key in counts)
    optimal = sum(count for key, count in counts.items() if key.endswith("optimal"))
    assert optimal > 75, "most answers are still proved"


def test_in_the_rounded_model_no_policy_costs_more_and_few_chances_cost_less() -> None:
    rng = np.random.default_rng(3)
    cut = 0
    for _ in range(40):
        domain, cost = spiky(rng)
        chains = Chains.of(domain)
        model = Rounded.of(chains, cost)
        policies = every_policy(domain)
        true = plain_costs(domain, cost, policies)
        paid = np.array([np.vdot(model.chances(policy), model.cost) for policy in policies])
        start = np.array([model.costs_to_go(policy)[0, domain.initial] for policy in policies])
        np.testing.assert_allclose(paid, start, atol=1e-12)
        removed = chains.kernel.matrix(0).size - model.moves.nnz
        steps, states, _ = domain.shape
        charge = LEAST_CHANCE * states * steps * (model.greatest.max() - model.least.min())
        assert (paid <= true + 1e-12).all()
        assert (paid >= true - charge - 1e-12).all()
        cut += removed > 0
    assert cut > 20


def claimed(bound: float, note: str = "") -> tuple[SearchResult, Chains, Problem, float, float]:
    """A claim about a small world, the world, its optimum and its bound of Markov policies; all for scaled costs."""
    domain, cost = world("dense", "noise", (6, 3, 2), np.random.default_rng(6))
    cost = cost / np.abs(cost).max()
    chains = Chains.of(domain)
    problem = chains.pose(np.ascontiguousarray(cost))
    best = plain_optimum(domain, cost)
    dearest = every_policy(domain)[plain_costs(domain, cost, every_policy(domain)).argmax()]
    return SearchResult(dearest, best + bound, note=note), chains, problem, best, chains.markov_bound(problem.costs)


def test_a_bound_that_a_policy_undercuts_is_rejected_and_reported() -> None:
    claim, chains, problem, best, markov = claimed(1e-6)
    found = Examination(chains).judged(claim, problem, SearchClock(np.inf, None), "HiGHS")
    assert found.bound == markov < best
    assert chains.value(problem, found.policy) == pytest.approx(best, abs=1e-12)
    assert found.note.startswith("rejected the bound of HiGHS")


@pytest.mark.parametrize("below", [0.0, 1e-7])
def test_a_bound_that_holds_is_confirmed_as_it_is(below: float) -> None:
    claim, chains, problem, best, _ = claimed(-below)
    found = Examination(chains).judged(claim, problem, SearchClock(np.inf, None), "HiGHS")
    assert found.bound == pytest.approx(best - below, abs=1e-12)
    assert ("rounded" in found.note) == (below > 0.0)


def test_a_bound_that_is_not_confirmed_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_search, "EXAMINED_NODES", 0)
    claim, chains, problem, best, markov = claimed(0.0)
    found = Examination(chains).judged(claim, problem, SearchClock(np.inf, None), "CBC")
    assert markov <= found.bound < best
    assert found.note == "the bound of CBC was not confirmed in 0 nodes"


def test_whether_a_policy_costs_less_than_a_target_is_decided_without_the_optimum() -> None:
    domain, cost = world("grid", "adversarial", (100, 7, 3), np.random.default_rng(9))
    search = TreeSearch(Chains.of(domain), BranchAndBound(starts=1), lanes=1)
    problem, clock = Chains.of(domain).pose(cost), SearchClock(np.inf, None)
    whole = search.solve([problem], clock)[0]
    best = plain_optimum(domain, cost)
    assert whole.bound == pytest.approx(best, abs=1e-9)
    target = 0.8 * best
    none = search.undercut(problem, target, clock)
    assert target <= none.bound <= best
    assert none.nodes < whole.nodes
    some = search.undercut(problem, best + 1e-6, clock)
    assert Chains.of(domain).value(problem, some.policy) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("name", ["milp", "milp-pulp"])
def test_a_solver_that_errs_ends_feasible(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    domain, cost = world("dense", "noise", (6, 3, 2), np.random.default_rng(6))
    wrong = Answer(np.array([1.0, 0.0] * 3), bound=100.0, nodes=1)
    monkeypatch.setattr(SearchClock, "run_in_subprocess", lambda *given, tell: wrong)
    planner = bind(oracle(name), domain)
    assert isinstance(planner, StationaryPlanner)
    plan = planner.minimize(cost[None])[0]
    assert plan.status is Status.FEASIBLE
    assert plan.bound == pytest.approx(planner.chains.markov_bound(cost), rel=1e-12)
    assert plan.objective == pytest.approx(plain_optimum(domain, cost), rel=1e-9)
    assert "rejected the bound" in plan.report.note
