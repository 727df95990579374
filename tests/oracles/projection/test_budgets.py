"""Projections within budgets: both backends against each other, conditions of optimality, and edges."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import budgeted_policies

from amdp import BudgetedPolicies, Budgets, Kernel, bind_projection, project
from amdp.arrays import Floats
from amdp.errors import InvalidInput, Unsolved, UnsupportedDomain
from amdp.model.budgets import KEPT
from amdp.oracles.projection.budgets import BudgetedProjection
from amdp.oracles.projection.certificate import objective

SHAPE = (4, 3, 3)


def projected(name: str, domain: BudgetedPolicies, point: Floats) -> BudgetedProjection:
    found = bind_projection(name, domain).project(point)
    assert isinstance(found, BudgetedProjection)
    return found


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("size", [1.0, 20.0])
def test_newton_and_cvxpy_agree(count: int, size: float) -> None:
    domain = budgeted_policies(count, count, SHAPE, initial=count - 1)
    point = size * np.random.default_rng(count).normal(size=SHAPE)
    ours, theirs = (projected(name, domain, point) for name in ("newton", "cvxpy"))
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-7, abs=1e-7)
    np.testing.assert_allclose(ours.measure, theirs.measure, atol=1e-4)
    assert max(ours.budget_residual, theirs.budget_residual) <= KEPT


@pytest.mark.parametrize("seed", range(4))
def test_what_has_a_price_is_used_up_and_no_mixture_is_nearer(seed: int) -> None:
    domain = budgeted_policies(seed, 2, SHAPE)
    point = 3.0 * np.random.default_rng(seed).normal(size=SHAPE)
    found = projected("newton", domain, point)
    left = (domain.budgets.limits - found.use) / domain.budgets.sizes
    assert np.abs(found.budget_prices * domain.budgets.sizes * left).max() <= 1e-7
    rng = np.random.default_rng(seed)
    others = domain.dynamics.occupancy(rng.dirichlet(np.ones(3), size=(200, 4, 3)), domain.initial)
    for other in others[domain.budgets.excess(domain.budgets.use(others)) <= 0.0]:
        between = 0.999 * found.measure + 0.001 * other
        assert objective(np.log(between), point) >= found.objective - 1e-9


def test_limits_that_bind_nobody_change_nothing() -> None:
    domain = budgeted_policies(1, 2, SHAPE)
    free = replace(domain, budgets=replace(domain.budgets, limits=100.0 * domain.budgets.sizes))
    point = np.random.default_rng(1).normal(size=SHAPE)
    found = projected("newton", free, point)
    np.testing.assert_array_equal(
        found.log_measure, bind_projection("newton", domain.unlimited).project(point).log_measure
    )
    assert (found.budget_prices == 0.0).all()


def test_one_step_has_a_closed_form() -> None:
    """Two actions, one of which uses a unit: at the limit it has that chance, and the price is a logarithm of odds."""
    domain = BudgetedPolicies(Kernel(np.ones((1, 1, 2, 1))), Budgets.of(work=([[0.0, 1.0]], 0.2)))
    found = project("newton", domain, [[[1.0, 3.0]]])
    assert isinstance(found, BudgetedProjection)
    np.testing.assert_allclose(found.measure, [[[0.8, 0.2]]], atol=1e-9)
    assert found.budget_prices[0] == pytest.approx(np.log(3.0 * 0.8 / 0.2), abs=1e-7)


@pytest.mark.parametrize("name", ["newton", "cvxpy"])
def test_a_limit_at_the_least_possible_use_is_met_in_the_limit(name: str) -> None:
    domain = BudgetedPolicies(Kernel(np.ones((2, 1, 3, 1))), Budgets.of(work=([[0.0, 0.0, 1.0]], 0.0)))
    found = projected(name, domain, np.zeros((2, 1, 3)))
    np.testing.assert_allclose(found.measure, [[[0.5, 0.5, 0.0]]] * 2, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_weights_of_every_size_are_projected(count: int) -> None:
    domain = budgeted_policies(3, count, SHAPE)
    for size in (0.0, 1.0, 100.0, 1000.0):
        point = -size * np.random.default_rng(4).random(SHAPE)
        assert projected("newton", domain, point).budget_residual <= KEPT


def test_a_measure_that_keeps_the_budgets_is_its_own_projection_and_a_start_moves_nothing() -> None:
    domain = budgeted_policies(2, 2, SHAPE)
    projector = bind_projection("newton", domain)
    first = projector.project(np.random.default_rng(1).normal(size=SHAPE))
    again = projector.project(first.log_measure, first.as_prior())
    np.testing.assert_allclose(again.measure, first.measure, atol=1e-7)
    other = projector.project(np.random.default_rng(2).normal(size=SHAPE), first)
    alone = projector.project(np.random.default_rng(2).normal(size=SHAPE))
    assert other.objective == pytest.approx(alone.objective, abs=1e-8)


def test_weights_that_leave_no_measure_within_the_budgets_are_unsolved() -> None:
    domain = BudgetedPolicies(Kernel(np.ones((1, 1, 2, 1))), Budgets.of(work=([[0.0, 1.0]], 0.2)))
    with pytest.raises(Unsolved, match=r"budgets are exceeded by 0.8 of their sizes"):
        project("newton", domain, [[[0.0, 1.0]]])


def test_who_cannot_and_what_cannot_be_is_refused() -> None:
    with pytest.raises(UnsupportedDomain, match="use newton or cvxpy"):
        bind_projection("l1", budgeted_policies(1, 1))
    clash = Budgets.of(work=([[0.0, 1.0]], 0.5), fuel=([[1.0, 0.0]], 0.5))
    for name in ("newton", "cvxpy"):
        with pytest.raises(InvalidInput, match="no policy keeps all of them"):
            bind_projection(name, BudgetedPolicies(Kernel(np.ones((2, 1, 2, 1))), clash))
