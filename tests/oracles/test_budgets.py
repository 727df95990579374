"""Plans within budgets: solvers against each other and against mixtures of all policies, proofs, and refusals."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from worlds import budgeted_policies

from amdp import (
    BernsteinBox,
    Checked,
    Kernel,
    PlanningOracle,
    SparseKernel,
    bind,
    bind_projection,
    one_hot,
    oracle,
    plan,
)
from amdp.arrays import Costs, Floats
from amdp.errors import CertificateRejected, InvalidInput, UnsupportedDomain
from amdp.model.budgets import KEPT, Budgets
from amdp.model.domains import BudgetedPolicies, MarkovPolicies
from amdp.oracles.base import Status
from amdp.oracles.budgets import BudgetedPlan, BudgetedPlans, proved_bound
from amdp.oracles.markov.linear_program import OccupancyProgram
from amdp.oracles.solving import Answer, BudgetedPlanner

SOLVERS: dict[str, PlanningOracle] = {
    "lp": oracle("lp"),
    "cvxpy-highs": oracle("cvxpy"),
    "cvxpy-clarabel": oracle("cvxpy", solver="CLARABEL"),
    "pulp-highs": oracle("pulp"),
    "pulp-cbc": oracle("pulp", solver="CBC", gap=1e-7),  # it writes its answers with eight digits
    "lagrangian": oracle("lagrangian"),
}


def costs_for(domain: BudgetedPolicies, n: int, seed: int = 7) -> Costs:
    return np.random.default_rng(seed).normal(size=(n, *domain.shape))


def every_policy(domain: BudgetedPolicies, costs: Costs) -> tuple[Floats, Floats]:
    """Cost `[n, p]` and use `[p, i]` of all deterministic policies."""
    steps, states, actions = domain.shape
    listed = np.array(list(product(range(actions), repeat=steps * states))).reshape(-1, steps, states)
    measures = domain.dynamics.occupancy(one_hot(listed, actions), domain.initial)
    return np.einsum("phsa,nhsa->np", measures, costs), domain.budgets.use(measures)


def best_mixture_of_two(cost: Floats, use: Floats, limit: float) -> float:
    """The least cost of two policies, mixed so that together they use at most the limit."""
    best = float(cost[use <= limit].min(initial=np.inf))
    for over, under in product(np.flatnonzero(use > limit), np.flatnonzero(use <= limit)):
        share = (limit - use[under]) / (use[over] - use[under])
        best = min(best, float(share * cost[over] + (1.0 - share) * cost[under]))
    return best


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("initial", [0, 1])
def test_one_budget_is_kept_by_the_best_mixture_of_two_policies(name: str, initial: int) -> None:
    domain = budgeted_policies(1, 1, initial=initial)
    costs = costs_for(domain, 4)
    plans = bind(SOLVERS[name], domain).minimize(costs)
    all_costs, use = every_policy(domain, costs)
    expected = [best_mixture_of_two(cost, use[:, 0], domain.budgets.limits[0]) for cost in all_costs]
    np.testing.assert_allclose(plans.objective, expected, rtol=0, atol=1e-7)
    assert plans.status is Status.OPTIMAL
    assert isinstance(plans, BudgetedPlans)
    assert (domain.budgets.excess(plans.use) <= KEPT).all()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_all_solvers_agree_and_prove_their_plans(count: int, seed: int) -> None:
    domain = budgeted_policies(seed, count, (4, 4, 3), initial=seed)
    costs = costs_for(domain, 3, seed) * 10.0 ** np.array([-6, 0, 6])[:, None, None, None]
    reference = bind("lp", domain).minimize(costs)
    for name, solver in SOLVERS.items():
        plans = bind(Checked(solver, 1e-7 if name == "pulp-cbc" else 1e-9), domain).minimize(costs)
        error = np.abs(plans.objective - reference.objective) / np.abs(costs).max(axis=(1, 2, 3))
        assert error.max() <= (1e-6 if name == "pulp-cbc" else 1e-8), name
        assert (plans.bound <= plans.objective).all()


@pytest.mark.parametrize("name", ["lp", "lagrangian"])
def test_what_has_a_price_is_used_up(name: str) -> None:
    domain = budgeted_policies(5, 3, (4, 4, 3))
    plans = bind(SOLVERS[name], domain).minimize(costs_for(domain, 5))
    assert isinstance(plans, BudgetedPlans)
    left = (domain.budgets.limits - plans.use) / domain.budgets.sizes
    assert (plans.prices > 0.0).any()
    assert np.abs(plans.prices * domain.budgets.sizes * left).max() <= 1e-9


def test_any_prices_prove_a_bound() -> None:
    domain = budgeted_policies(6, 2, (4, 4, 3))
    costs = costs_for(domain, 1)
    best = bind("lp", domain).minimize(costs)
    assert isinstance(best, BudgetedPlans)
    for prices in np.random.default_rng(1).exponential(size=(20, 1, 2)) * best.prices.max():
        assert proved_bound(domain, costs, prices)[0][0] <= best.objective[0] + 1e-9
    assert proved_bound(domain, costs, best.prices)[0][0] == pytest.approx(best.objective[0], abs=1e-9)


@pytest.mark.parametrize("name", ["lp", "lagrangian"])
def test_the_cost_is_convex_and_falls_as_the_limit_grows(name: str) -> None:
    domain = budgeted_policies(2, 1, (4, 4, 3))
    cost = costs_for(domain, 1)[0]
    usage, size = domain.budgets.usage, domain.budgets.sizes[0]
    least = float(domain.dynamics.cheapest(usage).values[0, 0, domain.initial])
    limits = least + size * np.linspace(0.0, 3.0, 13)
    found = [plan(SOLVERS[name], replace(domain, budgets=Budgets(usage, np.array([limit]))), cost) for limit in limits]
    paid = np.array([each.objective for each in found])
    assert (np.diff(paid) <= 1e-9).all()
    assert (np.diff(paid, 2) >= -1e-9).all()
    # The price is what a little more of the budget saves.
    slopes = np.diff(paid) / np.diff(limits)
    for each, before, after in zip(found[1:-1], slopes[:-1], slopes[1:], strict=True):
        assert isinstance(each, BudgetedPlan)
        assert -before + 1e-9 >= each.prices[0] >= -after - 1e-9


@pytest.mark.parametrize("name", SOLVERS)
def test_limits_that_bind_nobody_leave_the_plan_of_backward_induction(name: str) -> None:
    domain = budgeted_policies(3, 2, (4, 4, 3))
    free = replace(domain, budgets=replace(domain.budgets, limits=domain.budgets.sizes * 100.0))
    cost = costs_for(domain, 1)[0]
    ours, unlimited = plan(SOLVERS[name], free, cost), plan("dp", domain.unlimited, cost)
    assert ours.objective == pytest.approx(unlimited.objective, abs=1e-9)
    if name != "cvxpy-clarabel":  # an interior point is never quite at a vertex
        reached = domain.dynamics.reachable(domain.initial)
        assert (ours.actions == unlimited.actions)[reached].all()


@pytest.mark.parametrize("name", SOLVERS)
def test_a_limit_at_the_least_possible_use_leaves_the_cheapest_of_those_policies(name: str) -> None:
    """Action 0 uses nothing in all states but one, where both do: the limit leaves the choice free there alone."""
    rng = np.random.default_rng(1)
    kernel = Kernel(rng.dirichlet(np.ones(3), size=(3, 3, 2)))
    usage = np.zeros((1, 3, 3, 2))
    usage[..., 1] = 1.0
    usage[:, :, 2] = 0.0
    cost = rng.random((3, 3, 2))
    forced = cost.copy()
    forced[:, :2, 1] = 1e3
    found = plan(SOLVERS[name], BudgetedPolicies(kernel, Budgets(usage, np.zeros(1))), cost)
    assert isinstance(found, BudgetedPlan)
    assert found.objective == pytest.approx(plan("dp", MarkovPolicies(kernel), forced).objective, abs=1e-6)
    assert found.excess <= KEPT


def test_a_sparse_kernel_gives_the_same_plan() -> None:
    domain = budgeted_policies(4, 2, (4, 4, 3))
    sparse = SparseKernel([domain.dynamics.matrix(h) for h in range(4)])
    cost = costs_for(domain, 1)[0]
    for name in ("lp", "pulp", "lagrangian"):
        there = plan(name, BudgetedPolicies(sparse, domain.budgets), cost)
        assert there.objective == pytest.approx(plan(name, domain, cost).objective, abs=1e-9)


def test_a_plan_may_be_randomized_and_says_so() -> None:
    kernel = Kernel(np.ones((1, 1, 2, 1)))
    domain = BudgetedPolicies(kernel, Budgets.of(work=([[0.0, 1.0]], 0.25)))
    found = plan("lp", domain, [[[1.0, 0.0]]])
    assert isinstance(found, BudgetedPlan)
    np.testing.assert_allclose(found.policy, [[[0.75, 0.25]]])
    assert found.objective == pytest.approx(0.75)
    assert found.prices[0] == pytest.approx(1.0)
    assert "work: 0.25 of 0.25" in repr(found)
    with pytest.raises(InvalidInput, match="the plan is randomized"):
        found.actions  # noqa: B018
    assert plan("lp", replace(domain, budgets=Budgets.of(work=([[0.0, 1.0]], 1.0))), [[[1.0, 0.0]]]).actions == [[1]]


def test_draws_visit_pairs_as_the_plan_does() -> None:
    """100,000 draws: each frequency is within five standard errors; chance of a false alarm below 1e-4."""
    domain = budgeted_policies(8, 2, (4, 3, 3))
    plans = bind("lagrangian", domain).minimize(np.repeat(costs_for(domain, 1), 2, axis=0))
    assert isinstance(plans, BudgetedPlans)
    policy = plans.policies[:1]
    many = replace(plans, chances=np.repeat(policy, 100_000, axis=0))
    assert ((policy > 0.0) & (policy < 1.0)).any()
    drawn = domain.dynamics.occupancy(one_hot(many.draws(np.random.default_rng(1)), 3), domain.initial)
    expected = domain.dynamics.occupancy(policy, domain.initial)[0]
    errors = 5.0 * drawn.std(axis=0) / np.sqrt(len(drawn)) + 1e-12
    assert (np.abs(drawn.mean(axis=0) - expected) <= errors).all()


@pytest.mark.parametrize("name", ["dp", "enumeration", "auto"])
def test_oracles_that_do_not_know_budgets_refuse_them_with_the_reason(name: str) -> None:
    with pytest.raises(UnsupportedDomain, match=r"randomized policy; use lagrangian, lp, cvxpy or pulp"):
        bind(name, budgeted_policies(1, 1))


def test_a_budget_that_cannot_be_kept_is_named() -> None:
    kernel = Kernel(np.ones((2, 1, 2, 1)))
    with pytest.raises(InvalidInput, match=r"limits\[1\] = 1 for 'fuel'; every policy uses at least 3, 2 more"):
        BudgetedPolicies(kernel, Budgets.of(work=([[0.0, 1.0]], 5.0), fuel=([[1.5, 2.0]], 1.0)))


@pytest.mark.parametrize("name", ["lp", "cvxpy", "pulp", "lagrangian"])
def test_budgets_that_contradict_each_other_are_refused_at_bind(name: str) -> None:
    kernel = Kernel(np.ones((2, 1, 2, 1)))
    budgets = Budgets.of(work=([[0.0, 1.0]], 0.5), fuel=([[1.0, 0.0]], 0.5))
    with pytest.raises(InvalidInput, match=r"no policy keeps all of them; .* 'work' by 0.5, 'fuel' by 0.5"):
        bind(name, BudgetedPolicies(kernel, budgets))


def test_what_is_no_budget_is_refused() -> None:
    kernel, usage = Kernel(np.ones((2, 1, 2, 1))), np.zeros((1, 1, 2))
    with pytest.raises(InvalidInput, match="usage has 1 budgets and limits has 2"):
        Budgets(usage, np.ones(2))
    with pytest.raises(InvalidInput, match="must be finite"):
        Budgets(usage, np.array([np.inf]))
    with pytest.raises(InvalidInput, match="names = "):
        Budgets(usage, np.ones(1), ("a", "b"))
    with pytest.raises(InvalidInput, match=r"usage has shape \(1, 2, 2\); the world asks for \(1, 1, 2\)"):
        BudgetedPolicies(kernel, Budgets(np.zeros((1, 2, 2)), np.ones(1)))
    with pytest.raises(InvalidInput, match="one known kernel, not a BernsteinBox"):
        BudgetedPolicies(BernsteinBox(kernel.p, kernel.p), Budgets(usage, np.ones(1)))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"budgets = dict; give Budgets"):
        BudgetedPolicies(kernel, {})  # type: ignore[arg-type]


class Greedy:
    """A solver whose answer exceeds the budget by a part, with prices of its own."""

    name = "greedy"

    def __init__(self, domain: BudgetedPolicies, part: float, prices: Floats) -> None:
        right = plan("lp", domain, np.zeros(domain.shape))
        free = domain.dynamics.cheapest(-domain.budgets.usage[:1]).actions
        worst = domain.dynamics.occupancy(one_hot(free, domain.shape[2]), domain.initial)[0]
        kept = domain.dynamics.occupancy(right.policy[None], domain.initial)[0]
        self.mass, self.prices = (1.0 - part) * kept + part * worst, prices

    def solve(self, cost: Floats) -> Answer:
        return Answer(self.mass, Status.OPTIMAL, prices=self.prices)

    def restart(self) -> None:
        pass


@pytest.mark.parametrize("part", [1e-7, 1.0])
def test_an_answer_that_exceeds_a_budget_is_repaired_and_not_called_optimal(part: float) -> None:
    domain = budgeted_policies(9, 1, (4, 4, 3))
    solver = Greedy(domain, part, np.array([-5.0]))
    planner = BudgetedPlanner(OccupancyProgram(), domain, lambda _: solver, 1e-9)
    found = planner.minimize(costs_for(domain, 1))
    assert isinstance(found, BudgetedPlans)
    assert found.status is Status.FEASIBLE
    assert domain.budgets.excess(found.use)[0] <= 1e-12
    best = plan("lp", domain, costs_for(domain, 1)[0])
    assert found.bound[0] <= best.objective <= found.objective[0]
    assert found.report.rebuilds == 1
    assert (found.prices >= 0.0).all()


def test_a_wrong_plan_within_budgets_is_rejected() -> None:
    domain = budgeted_policies(10, 1, (4, 4, 3))
    costs = costs_for(domain, 1)
    right = bind("lp", domain).minimize(costs)
    assert isinstance(right, BudgetedPlans)
    wrong = {
        "its policy costs": {"objective": right.objective - 1.0},
        "its prices prove": {"bound": right.bound + 1.0, "objective": right.objective},
        "its policy uses": {"use": right.use + domain.budgets.sizes},
        "no price is below": {"prices": -np.ones((1, 1))},
        "exceeds a budget": {"chances": one_hot(domain.dynamics.cheapest(-domain.budgets.usage).actions, 3)},
        "sums to": {"chances": right.policies / 2.0},
        "chances has shape": {"chances": right.policies[:, :1]},
    }
    for reason, change in wrong.items():
        fake = replace(right, **change)  # type: ignore[arg-type]
        with pytest.raises(CertificateRejected, match=reason):
            bind(Checked(Fake(fake)), domain).minimize(costs)


class Fake(OccupancyProgram):
    """An oracle that always gives the same plans."""

    def __init__(self, plans: BudgetedPlans) -> None:
        super().__init__()
        object.__setattr__(self, "plans", plans)

    def bind(self, domain: object) -> BudgetedPlanner:
        planner = super().bind(domain)  # type: ignore[arg-type]
        planner.minimize = lambda costs: self.plans  # type: ignore[method-assign, attr-defined]
        return planner  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(20))
def test_limits_that_a_policy_just_meets_and_budgets_that_repeat_each_other_are_no_trouble(seed: int) -> None:
    """Whole numbers, so that costs tie; limits are what a random policy uses, so that there may be no room at all."""
    rng = np.random.default_rng(seed)
    shape, count = (int(rng.integers(1, 5)), int(rng.integers(1, 4)), 3), int(rng.integers(1, 5))
    kernel = Kernel(np.eye(shape[1])[rng.integers(0, shape[1], size=shape)])
    usage = rng.integers(-1, 3, size=(count, *shape)).astype(float)
    policy = rng.dirichlet(np.full(3, 0.3), size=(1, *shape[:2]))
    limits = Budgets(usage, np.zeros(count)).use(kernel.occupancy(policy, 0))[0]
    domain = BudgetedPolicies(kernel, Budgets(usage, limits))
    costs = rng.integers(0, 3, size=(3, *shape)).astype(float)
    found = [bind(Checked(SOLVERS[name]), domain).minimize(costs) for name in ("lp", "lagrangian")]
    assert all(plans.status is Status.OPTIMAL for plans in found)
    np.testing.assert_allclose(found[0].objective, found[1].objective, atol=1e-8)
    for size in (1.0, 30.0):
        assert bind_projection("newton", domain).project(size * rng.normal(size=shape)).status is Status.OPTIMAL
