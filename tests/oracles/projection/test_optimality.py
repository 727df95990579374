"""What the nearest measure must be, by mathematics that no solver had a part in."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import random_kernel, random_rows, seeds, shapes

import amdp
from amdp import BernsteinBox, MarkovPolicies, SparseKernel
from amdp.model.transitions import SingleKernel
from amdp.oracles.projection.certificate import certified
from oracles.projection.points import BOXES, KINDS, POINTS, bound, random_domain, random_measure, random_point

ORACLES = ("newton", "cvxpy")


@given(shapes(5, 5, 4), seeds, st.sampled_from((*KINDS, *BOXES)), st.sampled_from(POINTS))
@settings(max_examples=60, deadline=None)
def test_no_direction_leads_nearer(shape: tuple[int, int, int], seed: int, kind: str, point: str) -> None:
    """`<log(q / w), other - q> >= 0` for every measure `other` that has mass only where `w` has."""
    rng = np.random.default_rng(seed)
    domain = random_domain(kind, shape, rng)
    log_point = random_point(point, domain, rng)
    found = bound("newton", domain).project(log_point)
    used = found.log_measure > -np.inf
    slope = (found.log_measure - np.where(used, log_point, 0.0))[used]
    scale = max(1.0, float(np.abs(slope).max()))
    for _ in range(20):
        other = random_measure(domain, rng)
        if other[~used].max(initial=0.0) == 0.0:
            assert slope @ (other[used] - found.measure[used]) >= -1e-8 * scale


@pytest.mark.parametrize("name", ORACLES)
def test_with_one_step_the_weights_are_divided_by_their_sum(name: str) -> None:
    rng = np.random.default_rng(1)
    domain = MarkovPolicies(random_kernel("dense", (1, 3, 4), rng), initial=2)
    weights = rng.random((1, 3, 4))
    found = amdp.project(name, domain, weights)
    expected = np.zeros((1, 3, 4))
    expected[0, 2] = weights[0, 2] / weights[0, 2].sum()
    np.testing.assert_allclose(found.measure, expected, atol=1e-7)
    rest = weights[0, [0, 1]].sum()
    total = weights[0, 2].sum()
    np.testing.assert_allclose(found.objective, -np.log(total) - 1 + total + rest, rtol=1e-9)


@pytest.mark.parametrize("kind", [*KINDS, *BOXES])
@pytest.mark.parametrize("name", ORACLES)
def test_a_measure_is_its_own_projection(name: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    domain = random_domain(kind, (4, 4, 3), rng)
    measure = random_measure(domain, rng)
    found = amdp.project(name, domain, measure)
    np.testing.assert_allclose(found.measure, measure, atol=1e-6 if name == "cvxpy" else 1e-12)
    assert abs(found.objective) <= 1e-10


@pytest.mark.parametrize("point", [kind for kind in POINTS if kind != "holes"])
def test_a_box_that_holds_one_kernel_projects_like_it(point: str) -> None:
    rng = np.random.default_rng(3)
    kernel = random_kernel("dense", (4, 4, 3), rng)
    over_kernel = MarkovPolicies(kernel)
    over_box = MarkovPolicies(BernsteinBox.exactly(kernel))
    log_point = random_point(point, over_kernel, rng)
    spread = log_point[..., None] + np.log(kernel.dense().p)
    spread[-1, :, :, 0], spread[-1, :, :, 1:] = log_point[-1], -np.inf
    one, other = bound("newton", over_kernel).project(log_point), bound("newton", over_box).project(spread)
    np.testing.assert_allclose(other.measure.sum(axis=-1), one.measure, atol=1e-9)
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.policy, one.policy, atol=1e-7)


def test_a_vacuous_box_has_the_weights_themselves_as_rows() -> None:
    rng = np.random.default_rng(4)
    shape = (3, 4, 2)
    domain = MarkovPolicies(BernsteinBox.vacuous(shape))
    log_point = rng.normal(size=(*shape, 4))
    found = bound("newton", domain).project(log_point)
    priced = log_point[:-1] - found.prices[1:, None, None]  # the weights, with what their next states cost
    expected = scipy.special.softmax(priced, axis=-1)
    moved = found.measure[:-1]
    np.testing.assert_allclose(moved, moved.sum(axis=-1, keepdims=True) * expected, atol=1e-12)
    np.testing.assert_allclose(found.policy[-1], scipy.special.softmax(log_point[-1, :, :, 0], axis=-1))


@pytest.mark.parametrize("far", [300.0, 800.0, 1e3, 1e4])
@pytest.mark.parametrize("kind", [*KINDS, *BOXES])
def test_a_start_from_far_away_changes_no_answer(kind: str, far: float) -> None:
    rng = np.random.default_rng(9)
    domain = random_domain(kind, (3, 3, 2), rng)
    projector = bound("newton", domain)
    flat = np.zeros(projector.point_shape)
    hated, hated_all_over = flat.copy(), -far * rng.random(flat.shape)
    hated[1, 2] -= far
    alone = projector.project(flat)
    for point in (hated, hated_all_over):
        warm = projector.project(flat, projector.project(point))
        np.testing.assert_allclose(warm.measure, alone.measure, atol=1e-9)
        plain = certified(domain, flat, warm.prices, warm.report)
        assert plain.gap <= 1e-18


@pytest.mark.parametrize("name", ORACLES)
def test_a_start_without_finite_prices_is_ignored(name: str) -> None:
    domain = random_domain("box", (3, 3, 2), np.random.default_rng(10))
    projector = bound(name, domain)
    flat = np.zeros(projector.point_shape)
    alone = projector.project(flat)
    for wrong in (np.nan, np.inf):
        spoiled = replace(alone, prices=np.where(alone.prices == alone.prices.max(), wrong, alone.prices))
        np.testing.assert_allclose(projector.project(flat, spoiled).measure, alone.measure, atol=1e-9)


@pytest.mark.parametrize("scale", [1e3, 3e3, 1e4, 1e5])
def test_losses_of_thousands_are_solved_over_all_kernels(scale: float) -> None:
    rng = np.random.default_rng(0)
    domain = MarkovPolicies(BernsteinBox.vacuous((3, 3, 2)))
    projector = bound("newton", domain)
    for _ in range(60):
        log_point = np.repeat(-scale * rng.random((3, 3, 2, 1)), 3, axis=-1)
        found = projector.project(log_point)
        assert certified(domain, log_point, found.prices, found.report).gap <= 1e-9
        # Nothing is lost: every move that may be made keeps a logarithm.
        assert np.isfinite(found.log_measure[0, 0]).all()
        assert np.isfinite(found.log_measure[1]).all()
        assert np.isfinite(found.log_measure[2, :, :, 0]).all()


@pytest.mark.parametrize("scale", [1e7, 1e8, 1e9, 1e10, 1e11])
def test_losses_beyond_all_measure_lead_to_the_cheapest_policies(scale: float) -> None:
    """`KL(q || exp(-scale c))` is `scale <c, q>` less an entropy: the least is that of backward induction."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(2, 7)), int(rng.integers(2, 7)), int(rng.integers(2, 4)))
        rows, width = random_rows(shape, rng), rng.choice([0.02, 0.1, 0.4])
        domain = MarkovPolicies(BernsteinBox(np.maximum(rows - width, 0.0), np.minimum(rows + width, 1.0)))
        projector = bound("newton", domain)
        losses = rng.random(shape) if seed % 2 else np.round(rng.random(shape))  # with ties
        answer = projector.project(np.repeat(-scale * losses[..., None], shape[1], axis=-1))
        assert answer.flow_residual <= 1e-10
        assert answer.box_residual <= 1e-10
        paid = (answer.measure.sum(axis=-1) * losses).sum()
        np.testing.assert_allclose(paid, amdp.plan("dp", domain, losses).objective, atol=100.0 / scale + 1e-12)


def test_losses_that_leave_no_digits_are_refused_with_the_reason() -> None:
    rng = np.random.default_rng(0)
    rows = random_rows((6, 5, 3), rng)
    domain = MarkovPolicies(BernsteinBox(np.maximum(rows - 0.02, 0.0), np.minimum(rows + 0.02, 1.0)))
    projector = bound("newton", domain)
    with pytest.raises(
        amdp.Unsolved, match=r"logarithms of weights reach .*e\+1\d, and their rounding alone may leave"
    ):
        projector.project(-1e15 * rng.random(projector.point_shape))


def test_a_state_that_was_hated_comes_back() -> None:
    """An update by a loss and one by its opposite: the first answer must not have lost a state for good."""
    domain = MarkovPolicies(BernsteinBox.vacuous((3, 3, 2)))
    projector = bound("newton", domain)
    loss = np.zeros(projector.point_shape)
    loss[1, 2] = 1000.0
    start = projector.project(np.zeros(projector.point_shape))
    hated = projector.project(start.log_measure - loss)
    assert hated.measure[1, 2].sum() < 1e-100
    # Half of what the loss takes is taken from the moves into the state: x (log x - log x0) counts in two steps.
    np.testing.assert_allclose(hated.log_measure[0, 0, :, 2], -500.0, atol=5.0)
    back = projector.project(hated.log_measure + loss)
    np.testing.assert_allclose(back.measure, start.measure, atol=1e-8)


def test_sparse_and_dense_kernels_project_alike() -> None:
    rng = np.random.default_rng(5)
    kernel = amdp.Kernel(random_rows((5, 6, 3), rng))
    sparse = SparseKernel([kernel.matrix(h) for h in range(5)])
    log_point = rng.normal(size=(5, 6, 3))
    one, other = (bound("newton", MarkovPolicies(dynamics)).project(log_point) for dynamics in (kernel, sparse))
    np.testing.assert_allclose(one.measure, other.measure, atol=1e-12)


@given(shapes(4, 4, 3), seeds, st.sampled_from((*KINDS, *BOXES)))
@settings(max_examples=30, deadline=None)
def test_a_warm_start_changes_no_answer(shape: tuple[int, int, int], seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    domain = random_domain(kind, shape, rng)
    projector = bound("newton", domain)
    point, other = random_point("wide", domain, rng), random_point("tiny", domain, rng)
    alone = projector.project(point)
    warm = projector.project(point, projector.project(other))
    assert np.abs(warm.measure - alone.measure).max() <= 1e-9
    assert np.array_equal(projector.project(point).log_measure, alone.log_measure)


def test_a_warm_start_from_the_answer_needs_no_step() -> None:
    rng = np.random.default_rng(6)
    domain = random_domain("dense", (5, 5, 3), rng)
    projector = bound("newton", domain)
    point = random_point("wide", domain, rng)
    first = projector.project(point)
    assert projector.project(point, first).report.iterations == 0


def test_policies_are_uniform_where_no_mass_is() -> None:
    rng = np.random.default_rng(7)
    domain = random_domain("dense", (3, 3, 2), rng)
    found = bound("newton", domain).project(rng.normal(size=(3, 3, 2)))
    np.testing.assert_array_equal(found.policy[0, 1:], 0.5)
    np.testing.assert_allclose(found.policy.sum(axis=-1), 1.0)
    assert isinstance(domain.dynamics, SingleKernel)
    walked = domain.dynamics.occupancy(found.policy[None], domain.initial)[0]
    np.testing.assert_allclose(walked, found.measure, atol=1e-14)


@pytest.mark.parametrize("weight", [-20.0, -200.0, -2000.0])
def test_rare_branches_have_the_mass_that_is_due_to_them(weight: float) -> None:
    """A branch of mass `x` pays for entropy in each of four steps: `log x` is `(weight + 3 log 2) / 4` at small x."""
    found = branching(weight)
    by_hand = (weight + 3 * np.log(2.0)) / 4
    np.testing.assert_allclose(found.log_measure[0, 0, 1], by_hand, atol=4 * np.exp(by_hand) + 1e-7)
    np.testing.assert_allclose(np.logaddexp(*found.log_measure[1, 1]), found.log_measure[0, 0, 1], rtol=1e-12)


def test_masses_below_the_smallest_number_keep_a_logarithm() -> None:
    found = branching(-20_000.0)
    assert found.measure[0, 0, 1] == 0.0
    assert -20_000.0 < found.log_measure[0, 0, 1] < -700.0
    np.testing.assert_allclose(np.logaddexp(*found.log_measure[1, 1]), found.log_measure[0, 0, 1], rtol=1e-12)


def branching(weight: float) -> amdp.Projection:
    """Two branches of four steps; the logarithm of the weight of changing over is `weight`, and less later."""
    p = np.zeros((4, 2, 2, 2))
    p[:, 0, 0, 0] = p[:, 0, 1, 1] = p[:, 1, :, 1] = 1.0
    log_point = np.zeros((4, 2, 2))
    log_point[0, 0, 1] = weight
    log_point[1:, 0, 1] = 10.0 * weight
    return bound("newton", MarkovPolicies(amdp.Kernel(p))).project(log_point)


def test_a_long_chain_is_solved_by_gradients() -> None:
    """Sixty states in a row: what is nearest spreads over all of them, far from where a walk would be."""
    states, steps = 60, 120
    p = np.zeros((states, 2, states))
    here = np.arange(states)
    p[here, 0, np.maximum(0, here - 1)] = p[here, 1, np.minimum(states - 1, here + 1)] = 1.0
    sparse = SparseKernel.homogeneous(p.reshape(-1, states), steps)
    rng = np.random.default_rng(8)
    found = bound("newton", MarkovPolicies(sparse)).project(-rng.random((steps, states, 2)))
    assert found.gap <= 1e-15
    assert found.flow_residual <= 1e-12
