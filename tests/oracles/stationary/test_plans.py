"""What comes back from a planner: values that are worked out late, and costs that are read in many shapes."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from amdp import InvalidInput, Plans, bind, kernels, oracle
from amdp.arrays import Costs, step_major
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.enumeration import Table
from benchmarks.brute_force import every_policy, plain_costs, plain_optimum
from benchmarks.stationary_worlds import FAMILIES, world


def by_step(costs: Costs) -> Costs:
    """The same numbers, laid out step by step in memory, as perturbations lay them out."""
    laid = step_major(len(costs), costs.shape[1:])
    laid[:] = costs
    return laid


def read_only(costs: Costs) -> Costs:
    view = costs.view()
    view.flags.writeable = False
    return view


LAYOUTS: dict[str, Callable[[Costs], Costs]] = {
    "as given": lambda costs: costs,
    "by step": by_step,
    "read only": read_only,
    "reversed": lambda c: c[::-1][::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_batches_in_any_layout_are_solved_over_long_horizons(family: str, layout: str) -> None:
    rng = np.random.default_rng(41)
    domain, _ = world(family, "noise", (700, 4, 3), rng)
    costs = rng.laplace(size=(6, 700, 4, 3)) * 10.0 ** np.arange(-3, 3)[:, None, None, None] + rng.random((1, 1, 4, 3))
    planner = bind("enumeration", domain)
    for _ in range(2):  # the second time the table is there
        plans = planner.minimize(LAYOUTS[layout](costs))
        for plan, cost in zip(plans, costs, strict=True):
            best, tolerance = plain_optimum(domain, cost), 1e-10 * 700 * np.abs(cost).max()
            assert plan.objective == pytest.approx(best, abs=tolerance)
            assert plan.objective == pytest.approx(plain_costs(domain, cost, plan.actions[None])[0], abs=tolerance)
            assert best - tolerance <= plan.bound + 1e-9 * 700 * np.abs(cost).max()
            assert plan.bound <= best + tolerance


@pytest.mark.parametrize("head", [4, 7, 50, 299, 300])
@pytest.mark.parametrize("n", [1, 3])
def test_the_first_steps_and_the_sums_of_the_others_are_right(head: int, n: int) -> None:
    costs = np.random.default_rng(42).laplace(size=(300, n, 5))
    kept, tails = np.empty((n, head, 5)), np.empty((n, head + 1, 5))
    spans, peaks = np.empty((n, head + 2)), np.empty((n, 5))
    kernels.search.chains.pose(costs.reshape(300, -1), kept, tails, spans, peaks)
    rest = np.concatenate([costs[::-1].cumsum(axis=0)[::-1], np.zeros((1, n, 5))])
    np.testing.assert_array_equal(kept, costs[:head].swapaxes(0, 1))
    np.testing.assert_allclose(tails, rest[: head + 1].swapaxes(0, 1), atol=1e-11)
    np.testing.assert_array_equal(peaks, np.abs(costs).max(axis=0))
    wide = np.concatenate([np.ptp(rest, axis=2)[::-1].cumsum(axis=0)[::-1], np.zeros((1, n))])[: head + 2].T
    assert (spans >= wide - 1e-9).all(), "spans bound an error: they must not be too small"
    assert (spans <= wide + 300 * 9 * np.abs(costs).max()).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("step", [0, 3, 650])
def test_costs_that_are_not_finite_are_found_wherever_they_are(wrong: float, step: int) -> None:
    domain, _ = world("dense", "noise", (700, 4, 3), np.random.default_rng(43))
    planner = bind("enumeration", domain)
    costs = np.ones((3, 700, 4, 3))
    planner.minimize(costs)
    costs[2, step, 1, 2] = wrong
    with pytest.raises(InvalidInput, match=rf"costs\[n=2, h={step}, s=1, a=2\] = (nan|-?inf); it must be finite"):
        planner.minimize(by_step(costs))


def test_values_come_late_and_are_those_of_the_policy() -> None:
    domain, cost = world("sparse", "noise", (40, 5, 3), np.random.default_rng(44))
    plans = bind("auto", domain).minimize(np.stack([cost, -cost]))
    assert "values" not in vars(plans)
    np.testing.assert_allclose(plans.values[:, 0, 0], plans.objective, rtol=1e-12)
    assert plans.values is plans.values
    travelled = pickle.loads(pickle.dumps(plans))
    assert type(travelled) is Plans
    np.testing.assert_array_equal(travelled.values, plans.values)
    assert replace(plans, bound=plans.bound - 1.0).values is plans.values


def test_values_of_costs_that_were_changed_are_refused() -> None:
    domain, cost = world("dense", "noise", (40, 4, 2), np.random.default_rng(45))
    costs = cost[None].copy()
    plans = bind("auto", domain).minimize(costs)
    costs += 1.0
    with pytest.raises(InvalidInput, match="costs has changed since the plans were made"):
        _ = plans.values


@pytest.mark.parametrize("family", ["dense", "sparse"])
def test_after_the_horizon_of_a_table_no_law_moves(family: str) -> None:
    domain, _ = world(family, "noise", (4000, 4, 3), np.random.default_rng(46))
    table = Table.of(Chains.of(domain), 1000, 2**26)
    assert table is not None
    assert table.horizon < 4000
    moves = domain.dynamics.dense().p[0][np.arange(4), every_policy(domain)]  # [n, s, y]
    law = np.linalg.matrix_power(moves, table.horizon)[:, 0]
    assert np.abs(np.einsum("ns,nsy->ny", law, moves) - law).sum(axis=1).max() < 1e-13


def test_the_gaps_of_a_batch_are_those_of_its_plans() -> None:
    domain, cost = world("sparse", "noise", (40, 9, 3), np.random.default_rng(3))
    hurried = oracle("branch-and-bound", nodes=1, starts=1)
    plans = bind(hurried, domain).minimize(np.stack([cost, -3.0 * cost, 0.0 * cost]))
    assert (plans.gap >= 0.0).all()
    assert plans.gap[0] > 0.0
    for one, gap, part in zip(plans, plans.gap, plans.relative_gap, strict=True):
        assert one.gap == gap == one.objective - one.bound
        assert one.relative_gap == (None if np.isnan(part) else part)
    assert plans.relative_gap[0] == pytest.approx(plans.gap[0] / abs(plans.objective[0]), rel=1e-15)
    assert plans[2].relative_gap is None
