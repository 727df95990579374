"""Minimizers against cvxpy, against their own first-order conditions, and under changes whose effect is known."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amdp
from amdp import (
    BernsteinBox,
    InvalidInput,
    LogBarrier,
    MarkovPolicies,
    NegativeEntropy,
    Regularizer,
    SparseKernel,
    Tsallis,
)
from amdp.errors import Unsolved, UnsupportedDomain
from amdp.oracles.base import Report, Status
from amdp.oracles.regularized.certificate import certified, reached_pairs, reduced_costs
from amdp.testing import sample_domains
from oracles.regularized.worlds import (
    REGULARIZERS,
    objective,
    policy_measure,
    random_cost,
    random_domain,
    spiky_domain,
)

regularizers = pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)


@regularizers
@pytest.mark.parametrize("size", [1.0, 100.0])
def test_newton_agrees_with_cvxpy(regularizer: Regularizer, size: float) -> None:
    for seed, shape in enumerate([(3, 2, 2), (5, 4, 3)]):
        domain = random_domain(shape, seed, initial=1)
        cost = random_cost(domain, seed, size)
        ours = amdp.minimize_regularized("newton", domain, cost, regularizer)
        theirs = amdp.minimize_regularized("cvxpy", domain, cost, regularizer)
        assert abs(ours.objective - theirs.objective) <= 1e-8
        assert np.abs(ours.measure - theirs.measure).max() <= 1e-6


@regularizers
def test_first_order_conditions(regularizer: Regularizer) -> None:
    """`c + psi'(q) + P v[h+1] - v[h] = 0` at every pair that can be reached, and `q` is an occupancy measure."""
    domain = random_domain()
    cost = random_cost(domain, size=5.0)
    found = amdp.minimize_regularized("newton", domain, cost, regularizer)
    reached = reached_pairs(domain)
    slopes = regularizer.slopes(found.measure[reached])
    assert np.allclose(reduced_costs(domain, cost, found.prices)[reached], -slopes, rtol=1e-8, atol=1e-8)
    assert np.allclose(amdp.occupancy(domain.dynamics, found.policy[None], domain.initial)[0], found.measure)  # type: ignore[arg-type]
    assert found.flow_residual <= 1e-14
    assert abs(found.objective - objective(domain, cost, regularizer, found.measure)) <= 1e-12


@given(st.integers(0, 10**6), st.floats(-3.0, 3.0), st.sampled_from(REGULARIZERS))
@settings(max_examples=25, deadline=None)
def test_what_is_returned_is_proved(seed: int, log_size: float, regularizer: Regularizer) -> None:
    """The gap of the plain certificate agrees, no measure is below the bound, and random ones are above the optimum."""
    domain = random_domain((4, 3, 2), seed, initial=seed % 3)
    cost = random_cost(domain, seed, 10.0**log_size)
    found = amdp.minimize_regularized("newton", domain, cost, regularizer)
    again = certified(domain, cost, regularizer, found.prices, Report("plain"))
    assert found.status is Status.OPTIMAL
    assert again.gap <= 1e-9
    assert abs(again.objective - found.objective) <= 1e-9 * (1.0 + abs(found.objective))
    for k in range(3):
        other = policy_measure(domain, seed + k)
        assert objective(domain, cost, regularizer, other) >= found.bound - 1e-9 * (1.0 + abs(found.bound))


@given(st.integers(0, 10**6), st.sampled_from(REGULARIZERS))
@settings(max_examples=15, deadline=None)
def test_the_dual_value_of_any_prices_is_a_bound(seed: int, regularizer: Regularizer) -> None:
    domain = random_domain((4, 3, 2), 7, initial=0)
    cost = random_cost(domain, 3)
    best = amdp.minimize_regularized("newton", domain, cost, regularizer)
    near = best.prices + 0.05 * np.random.default_rng(seed).normal(size=best.prices.shape)
    other = certified(domain, cost, regularizer, near, Report("plain"))
    if np.isfinite(other.gap):  # without entropy, prices may leave a pair no mass at all
        assert other.objective >= best.objective - 1e-10
        assert other.bound <= best.objective + 1e-10


@regularizers
def test_a_potential_moves_the_objective_by_its_start_alone(regularizer: Regularizer) -> None:
    """Costs `c + u[h] - P u[h+1]` add `u[0, initial]` to every occupancy measure."""
    domain = random_domain()
    cost, potential = random_cost(domain), 10.0 * np.random.default_rng(5).normal(size=domain.shape[:2])
    plain = amdp.minimize_regularized("newton", domain, cost, regularizer)
    moved = amdp.minimize_regularized("newton", domain, -reduced_costs(domain, -cost, potential), regularizer)
    assert np.allclose(moved.measure, plain.measure, rtol=1e-8)
    assert abs(moved.objective - plain.objective - potential[0, domain.initial]) <= 1e-10


@regularizers
def test_costs_and_weights_of_another_unit(regularizer: Regularizer) -> None:
    domain = random_domain()
    cost = random_cost(domain)
    entropy, tsallis, barrier = (1e3 * weight for weight in regularizer.weights)
    parts = [kind(w) for kind, w in ((NegativeEntropy, entropy), (Tsallis, tsallis), (LogBarrier, barrier)) if w > 0.0]
    scaled: Regularizer = parts[0]
    for part in parts[1:]:
        scaled = scaled + part
    plain = amdp.minimize_regularized("newton", domain, cost, regularizer)
    large = amdp.minimize_regularized("newton", domain, 1e3 * cost, scaled)
    assert np.allclose(large.measure, plain.measure, rtol=1e-8)


def test_entropy_is_the_projection_of_exponential_weights() -> None:
    domain = random_domain()
    cost = random_cost(domain, size=3.0)
    found = amdp.minimize_regularized("newton", domain, cost, NegativeEntropy(0.4))
    nearest = amdp.project("newton", domain, np.exp(-cost / 0.4))
    assert np.allclose(found.measure, nearest.measure, rtol=1e-9)
    # A little log-barrier takes the other method, and hardly another measure.
    close = amdp.minimize_regularized("newton", domain, cost, NegativeEntropy(0.4) + LogBarrier(1e-9))
    assert np.abs(close.measure - found.measure).max() <= 1e-6


def test_a_vanishing_log_barrier_vanishes() -> None:
    domain = random_domain()
    cost = random_cost(domain)
    without = amdp.minimize_regularized("newton", domain, cost, Tsallis(1.0)).measure
    off = [
        np.abs(amdp.minimize_regularized("newton", domain, cost, Tsallis(1.0) + LogBarrier(b)).measure - without).max()
        for b in (1e-1, 1e-3, 1e-5, 1e-12)
    ]
    assert off == sorted(off, reverse=True)
    assert off[-1] <= 1e-9


def test_one_step_is_a_bandit_with_closed_forms() -> None:
    domain = MarkovPolicies(amdp.Kernel(np.ones((1, 1, 2, 1))))
    measure = amdp.minimize_regularized("newton", domain, [[[0.0, 1.0]]], LogBarrier(1.0)).measure.ravel()
    # b/q0 - b/q1 = -1 with q0 + q1 = 1: q0 = (sqrt(5) - 1) / 2.
    assert np.allclose(measure, [(np.sqrt(5) - 1) / 2, (3 - np.sqrt(5)) / 2])


@pytest.mark.parametrize("chance", [1e-6, 1e-12, 0.0])
@regularizers
def test_rare_states_and_large_costs(chance: float, regularizer: Regularizer) -> None:
    domain = spiky_domain(chance)
    for size in (0.0, 1.0, 1e4, 1e6):
        found = amdp.minimize_regularized("newton", domain, random_cost(domain, size=size), regularizer)
        assert found.gap <= 1e-9 * len(found.measure)
        assert (found.measure[~reached_pairs(domain)] == 0.0).all()
        assert np.allclose(found.measure.sum(axis=(1, 2)), 1.0)


def test_importance_weights_of_a_long_game() -> None:
    """The leader of a game of 1e5 rounds: loss estimates up to one over the smallest mass are added to the costs."""
    domain, rng = spiky_domain(1e-6), np.random.default_rng(0)
    solver, total, near = amdp.bind_regularized("newton", domain), np.zeros(domain.shape), None
    for k in np.geomspace(1, 1e5, 150).astype(int):
        near = solver.minimize(total, Tsallis(float(np.sqrt(k))) + LogBarrier(0.01), near)
        pairs = rng.choice(near.measure.size, size=6)
        mass = near.measure.reshape(-1)[pairs]
        np.add.at(total.reshape(-1), pairs[mass > 0.0], 1.0 / mass[mass > 0.0])
    assert total.max() > 1e5


def test_no_proof_no_answer() -> None:
    domain = random_domain()
    with pytest.raises(Unsolved, match="rounding"):
        amdp.minimize_regularized("newton", domain, random_cost(domain, size=1e14), LogBarrier(1e-10))
    with pytest.raises(Unsolved, match="after 0 iterations"):
        amdp.regularized("newton", iterations=0).bind(domain).minimize(random_cost(domain), Tsallis(1.0))


@regularizers
def test_a_warm_start_changes_no_answer(regularizer: Regularizer) -> None:
    domain = random_domain()
    solver = amdp.bind_regularized("newton", domain)
    first = solver.minimize(random_cost(domain, 1), regularizer)
    cold = solver.minimize(random_cost(domain, 2), regularizer)
    warm = solver.minimize(random_cost(domain, 2), regularizer, first)
    assert np.allclose(cold.measure, warm.measure, rtol=1e-8)
    stays = solver.minimize(random_cost(domain, 2), regularizer, cold)
    assert stays.report.iterations <= 1


@pytest.mark.parametrize("factored_states", [0, 48])
def test_both_ways_to_solve_a_step_and_both_kinds_of_kernels(factored_states: int) -> None:
    domain = random_domain()
    matrices = [domain.dynamics.matrix(h) for h in range(5)]  # type: ignore[attr-defined]
    sparse = MarkovPolicies(SparseKernel(matrices), domain.initial)
    cost, regularizer = random_cost(domain, size=20.0), Tsallis(1.0) + LogBarrier(0.1)
    oracle = amdp.regularized("newton", factored_states=factored_states)
    plain = amdp.minimize_regularized("newton", domain, cost, regularizer)
    for each in (domain, sparse):
        assert np.allclose(amdp.minimize_regularized(oracle, each, cost, regularizer).measure, plain.measure, rtol=1e-6)


@pytest.mark.parametrize("name", ["newton", "cvxpy"])
def test_what_it_cannot_solve_is_refused(name: str) -> None:
    oracle, domain = amdp.regularized(name), random_domain()
    for each in sample_domains():
        if not oracle.supports(each):
            with pytest.raises(UnsupportedDomain, match=r"one kernel|budgets"):
                oracle.bind(each)
    assert not any(oracle.supports(each) for each in sample_domains() if isinstance(each.dynamics, BernsteinBox))
    with pytest.raises(InvalidInput, match="shape"):
        amdp.minimize_regularized(name, domain, np.zeros((1, 4, 3)), Tsallis(1.0))
    with pytest.raises(InvalidInput, match="finite"):
        amdp.minimize_regularized(name, domain, np.full(domain.shape, np.nan), Tsallis(1.0))
    with pytest.raises(InvalidInput, match="regularizer"):
        amdp.minimize_regularized(name, domain, np.zeros(domain.shape), 1.0)  # type: ignore[arg-type]
    small = amdp.minimize_regularized(name, random_domain((2, 3, 2)), np.zeros((2, 3, 2)), Tsallis(1.0))
    with pytest.raises(InvalidInput, match="near"):
        amdp.minimize_regularized(name, domain, np.zeros(domain.shape), Tsallis(1.0), small)


@pytest.mark.parametrize("name", ["newton", "cvxpy"])
def test_solvers_travel(name: str) -> None:
    solver = amdp.bind_regularized(name, random_domain())
    copy = pickle.loads(pickle.dumps(solver))
    cost = random_cost(solver.domain)
    assert np.allclose(copy.minimize(cost, Tsallis(1.0)).measure, solver.minimize(cost, Tsallis(1.0)).measure)
