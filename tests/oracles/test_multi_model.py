"""One policy for several models: against all policies, laws of weights and models, limits, and examined claims."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy
from numpy.testing import assert_allclose

import amdp
from amdp import InvalidInput, Kernel, MarkovPolicies, MultiModel, SparseKernel, StationaryPolicies, Status
from amdp.arrays import Costs, Floats
from amdp.oracles.multi_model.branch_and_bound import split
from amdp.oracles.multi_model.mixed_program import examined, greatest_chances
from amdp.oracles.multi_model.planning import Found, Problem

ORACLES = ("enumeration", "branch-and-bound", "milp", "auto")
KINDS = ("markov", "stationary")


def several(
    kind: str, seed: int, n_models: int = 2, shape: tuple[int, int, int] = (3, 3, 2)
) -> tuple[MultiModel, Costs]:
    """Models with rows of their own and starts of their own, weights, and costs in each."""
    rng = np.random.default_rng(seed)
    steps, states, actions = shape
    models: list[MarkovPolicies | StationaryPolicies] = []
    for _ in range(n_models):
        initial = int(rng.integers(states))
        if kind == "markov":
            models.append(MarkovPolicies(Kernel(rng.dirichlet(np.full(states, 0.5), size=shape)), initial))
        else:
            rows = rng.dirichlet(np.full(states, 0.5), size=(states, actions))
            models.append(StationaryPolicies(Kernel.homogeneous(rows, steps), initial))
    return MultiModel(models, rng.dirichlet(np.ones(n_models))), rng.normal(size=(n_models, *shape))


def test_auto_says_why_and_the_model_is_not_exported(tmp_path: Path) -> None:
    domain, costs = several("markov", 1)
    assert amdp.bind("auto", domain).reason.startswith("chose enumeration")  # type: ignore[attr-defined]
    with pytest.raises(amdp.UnsupportedDomain, match="several models"):
        amdp.oracle("milp").export(domain, costs, tmp_path / "model.lp")  # type: ignore[attr-defined]


def paid(domain: MultiModel, policy: Floats, costs: Costs) -> float:
    """What a policy `[h, s, a]` pays, forward, model by model, in plain numpy."""
    total = 0.0
    for model, weight, cost in zip(domain.models, np.asarray(domain.weights), costs, strict=True):
        assert isinstance(model.dynamics, Kernel)
        law = np.eye(domain.shape[1])[model.initial]
        for h in range(domain.shape[0]):
            pairs = law[:, None] * policy[h]
            total += weight * float((pairs * cost[h]).sum())
            law = np.einsum("sa,say->y", pairs, model.dynamics.p[h])
    return total


def least(domain: MultiModel, costs: Costs) -> float:
    steps, states, actions = domain.shape
    rules = [np.eye(actions)[list(rule)] for rule in product(range(actions), repeat=states)]
    if domain.is_stationary:
        return min(paid(domain, np.array([rule] * steps), costs) for rule in rules)
    return min(paid(domain, np.array(policy), costs) for policy in product(rules, repeat=steps))


@pytest.mark.parametrize("kind", KINDS)
def test_all_oracles_find_the_cheapest_of_all_policies(kind: str) -> None:
    for seed in range(4):
        domain, costs = several(kind, seed, n_models=2 + seed % 2)
        best = least(domain, costs)
        for name in ORACLES:
            plan = amdp.plan(name, domain, costs)
            assert plan.status is Status.OPTIMAL, f"{name}: {plan}"
            assert plan.bound <= plan.objective
            assert_allclose([plan.objective, plan.bound], best, atol=1e-9, err_msg=name)
            policy = np.broadcast_to(plan.policy, domain.cost_shape[1:])
            assert_allclose(paid(domain, policy, costs), plan.objective, atol=1e-12)
            own = [values[0, model.initial] for values, model in zip(plan.values, domain.models, strict=True)]
            assert_allclose(np.asarray(domain.weights) @ own, plan.objective)


@pytest.mark.parametrize("kind", KINDS)
def test_on_larger_cases_the_exact_oracles_agree_to_the_policy(kind: str) -> None:
    for seed in range(3):
        domain, costs = several(kind, 10 + seed, 3, (4, 3, 3))
        plans = [amdp.plan(name, domain, costs) for name in ("branch-and-bound", "milp")]
        assert plans[0].status is plans[1].status is Status.OPTIMAL
        assert_allclose(plans[0].objective, plans[1].objective, atol=1e-10)
        assert (plans[0].actions == plans[1].actions).all()


@pytest.mark.parametrize("name", ORACLES)
def test_one_model_and_equal_models_are_the_plain_problem(name: str) -> None:
    domain, costs = several("markov", 20, 1)
    (model,) = domain.models
    plain = amdp.plan("dp", model, costs[0])
    for models, weights in (([model], [1.0]), ([model, model], [0.3, 0.7]), ([model] * 3, None)):
        together = amdp.plan(name, MultiModel(models, weights), costs[0])
        assert_allclose([together.objective, together.bound], plain.objective, atol=1e-10)
        assert (together.actions == plain.actions)[model.dynamics.reachable(model.initial)].all()  # type: ignore[attr-defined]


def test_over_stationary_policies_one_model_is_the_stationary_problem() -> None:
    domain, costs = several("stationary", 21, 1)
    assert_allclose(
        amdp.plan("branch-and-bound", domain, costs).objective,
        amdp.plan("branch-and-bound", domain.models[0], costs[0]).objective,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_weights_scale_and_a_model_without_weight_does_not_count(kind: str) -> None:
    domain, costs = several(kind, 22, 2)
    plain = amdp.plan("auto", domain, costs)
    scaled = amdp.plan("auto", MultiModel(domain.models, 8.0 * np.asarray(domain.weights)), costs)
    assert_allclose([scaled.objective, scaled.bound], 8.0 * plain.objective)
    assert (scaled.actions == plain.actions).all()
    alone = amdp.plan("auto", MultiModel(domain.models, [0.0, 2.0]), costs)
    assert_allclose(alone.objective, 2.0 * amdp.plan("auto", domain.models[1], costs[1]).objective)


def test_costs_without_models_are_the_same_in_all() -> None:
    domain, costs = several("markov", 23, 3)
    together = amdp.bind("auto", domain).minimize(costs[None, 0])
    one_by_one = amdp.bind("auto", domain).minimize(np.repeat(costs[None, :1], 3, axis=1))
    assert_allclose(together.objective, one_by_one.objective)
    assert amdp.plan("auto", domain, costs[0]).objective == together.objective[0]


def test_sparse_kernels_are_models_too() -> None:
    domain, costs = several("markov", 24)
    sparse = [
        MarkovPolicies(SparseKernel([scipy.sparse.csr_array(kernel.matrix(h)) for h in range(3)]), model.initial)
        for kernel, model in zip(domain.kernels, domain.models, strict=True)
    ]
    for name in ("branch-and-bound", "milp"):
        plan = amdp.plan(name, MultiModel(sparse, domain.weights), costs)
        assert_allclose(plan.objective, amdp.plan("enumeration", domain, costs).objective)


def test_markov_policies_gain_nothing_by_chance() -> None:
    """What they pay is linear in each of their rows."""
    domain, costs = several("markov", 25)
    rng, best = np.random.default_rng(25), least(domain, costs)
    drawn = (rng.dirichlet(np.full(2, 0.3), size=(3, 3)) for _ in range(200))
    assert min(paid(domain, policy, costs) for policy in drawn) >= best - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_the_distance_of_a_policy_from_the_bound_of_a_node_is_a_sum_over_open_decisions(kind: str) -> None:
    """The performance difference, by which the tree branches: it catches wrong visits, regrets and bounds alike."""
    rng = np.random.default_rng(26)
    domain, costs = several(kind, 26, 3, (4, 4, 3))
    problem = Problem(domain, costs)
    for _ in range(20):
        node = np.where(rng.random(domain.n_decisions) < 0.5, rng.integers(3, size=domain.n_decisions), -1)
        policy, distance = split(problem, node)
        bound, cost = problem.values(np.array([node, policy]))
        assert (policy[node >= 0] == node[node >= 0]).all()
        assert_allclose(distance[node >= 0], 0.0, atol=1e-12)
        if kind == "markov":
            assert (distance >= -1e-12).all()
        assert_allclose(cost - bound, distance.sum(), atol=1e-12)


@pytest.mark.parametrize("options", [{"nodes": 0}, {"nodes": 5}, {"seconds": 0.0}])
def test_limits_leave_a_policy_and_a_bound_that_holds(options: dict[str, float]) -> None:
    domain, costs = several("markov", 27, 3, (5, 4, 3))
    best = amdp.plan("branch-and-bound", domain, costs)
    stopped = amdp.plan(amdp.oracle("branch-and-bound", starts=1, **options), domain, costs)
    assert best.status is Status.OPTIMAL
    assert stopped.status is Status.FEASIBLE
    assert stopped.bound <= best.objective <= stopped.objective
    assert stopped.report.note.startswith("stopped at")


def test_a_wrong_claim_of_a_solver_is_not_believed() -> None:
    domain, costs = several("markov", 28)
    problem = Problem(domain, costs)
    best = amdp.plan("enumeration", domain, costs)
    some = np.zeros(domain.n_decisions, dtype=np.int64)
    for claimed in (best.objective + 1.0, best.objective, -100.0):
        judged = examined(problem, Found(some, claimed), np.inf)
        assert judged.bound <= best.objective + 1e-12
    assert "rejected the bound of HiGHS" in examined(problem, Found(some, best.objective + 1.0), np.inf).note
    assert_allclose(examined(problem, Found(some, best.objective), np.inf).bound, best.objective)


def test_caps_are_the_greatest_chances() -> None:
    domain, _ = several("markov", 29)
    kernel = domain.kernels[0]
    policies = [np.eye(2)[np.array(rules)] for rules in product(product(range(2), repeat=3), repeat=3)]
    reached = kernel.occupancy(np.array(policies), 1).sum(axis=-1).max(axis=0)
    assert_allclose(greatest_chances(kernel, 1), reached, atol=1e-12)


def test_what_is_refused() -> None:
    domain, _ = several("markov", 30)
    other, _ = several("stationary", 30)
    larger, _ = several("markov", 30, 1, (3, 4, 2))
    box = MarkovPolicies(amdp.BernsteinBox(np.zeros((3, 3, 2, 3)), np.ones((3, 3, 2, 3))))
    with pytest.raises(InvalidInput, match="models is empty"):
        MultiModel([])
    with pytest.raises(InvalidInput, match=r"models\[1\] = MarkovPolicies, StationaryPolicies"):
        MultiModel([domain.models[0], other.models[0]])
    with pytest.raises(InvalidInput, match=r"models\[1\] = it has the shape \(3, 4, 2\); the first has \(3, 3, 2\)"):
        MultiModel([domain.models[0], larger.models[0]])
    with pytest.raises(InvalidInput, match=r"models\[0\] = it is over a BernsteinBox"):
        MultiModel([box])
    with pytest.raises(InvalidInput, match=r"models\[0\] = Kernel; give MarkovPolicies"):
        MultiModel([domain.kernels[0]])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="weights has 3 entries; there are 2 models"):
        MultiModel(domain.models, [1.0, 1.0, 1.0])
    with pytest.raises(InvalidInput, match=r"weights\[m=1\] = -1; it must be finite and not negative"):
        MultiModel(domain.models, [1.0, -1.0])
    with pytest.raises(InvalidInput, match="all zero"):
        MultiModel(domain.models, [0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"asks for \(n, 2, 3, 3, 2\)"):
        amdp.bind("auto", domain).minimize(np.zeros((1, 3, 3, 3, 2)))
    with pytest.raises(amdp.UnsupportedDomain, match="dp does not solve MultiModel of MarkovPolicies over Kernel"):
        amdp.bind("dp", domain)
    with pytest.raises(
        amdp.UnsupportedDomain, match=r"enumeration would try 2\^7 policies, more than its limit of 100"
    ):
        amdp.bind(amdp.oracle("enumeration", limit=100), MultiModel([domain.models[0]]))
    with pytest.raises(InvalidInput, match="MultiModel is not evaluated here"):
        amdp.evaluate(domain, np.zeros((1, 3, 3), dtype=int), np.zeros((1, 3, 3, 2)))  # type: ignore[arg-type]
    with pytest.raises(amdp.UnsupportedDomain):
        amdp.bind(amdp.oracle("milp", formulation="value"), domain)
