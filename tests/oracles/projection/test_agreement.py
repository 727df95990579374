"""Two independent ways to the nearest measure, Newton on the prices and a conic solver, end at the same place."""

from itertools import product

import numpy as np
import pytest

import amdp
from amdp.oracles.projection.base import Projection
from amdp.oracles.projection.certificate import certified
from oracles.projection.points import BOXES, KINDS, POINTS, bound, random_domain, random_point

SHAPES = [(1, 4, 3), (2, 1, 3), (3, 3, 2), (4, 4, 3)]


def same(one: Projection, other: Projection) -> None:
    scale = max(1.0, abs(one.objective))
    assert abs(one.objective - other.objective) <= 1e-8 * scale
    # Each step of both lies within sqrt(2 gap) of the nearest measure.
    allowed = np.sqrt(2 * one.gap) + np.sqrt(2 * other.gap) + 1e-9
    assert np.abs(one.measure - other.measure).max() <= allowed


@pytest.mark.parametrize(("kind", "point"), list(product((*KINDS, *BOXES), POINTS)))
def test_newton_and_cvxpy_agree(kind: str, point: str) -> None:
    for seed, shape in enumerate(SHAPES):
        rng = np.random.default_rng([seed, KINDS.index(kind) if kind in KINDS else 9, POINTS.index(point)])
        domain = random_domain(kind, shape, rng)
        log_point = random_point(point, domain, rng)
        found = bound("newton", domain).project(log_point)
        assert found.flow_residual <= 1e-10
        assert found.box_residual <= 1e-10
        same(bound("cvxpy", domain).project(log_point), found)


@pytest.mark.parametrize("kind", ["dense", "box"])
def test_scs_agrees_too(kind: str) -> None:
    rng = np.random.default_rng(5)
    domain = random_domain(kind, (3, 3, 2), rng)
    log_point = random_point("mild", domain, rng)
    by_scs = amdp.projection("cvxpy", solver="SCS").bind(domain).project(log_point)
    same(by_scs, bound("newton", domain).project(log_point))


@pytest.mark.parametrize(("kind", "point"), list(product((*KINDS, *BOXES), POINTS)))
def test_the_compiled_certificate_is_the_plain_one(kind: str, point: str) -> None:
    for seed in range(6):
        rng = np.random.default_rng([seed, POINTS.index(point)])
        domain = random_domain(kind, tuple(rng.integers(1, 7, size=3)), rng)
        log_point = random_point(point, domain, rng)
        found = bound("newton", domain).project(log_point)
        plain = certified(domain, log_point, found.prices, found.report)
        scale = max(1.0, abs(plain.objective))
        assert abs(found.objective - plain.objective) <= 1e-9 * scale
        assert abs(found.gap - plain.gap) <= 1e-12 * scale**2
        assert np.abs(found.measure - plain.measure).max() <= 1e-12 * scale


@pytest.mark.parametrize("kind", ["dense", "sparse", *BOXES])
@pytest.mark.parametrize("point", POINTS)
def test_factors_and_conjugate_gradients_agree(kind: str, point: str) -> None:
    rng = np.random.default_rng(POINTS.index(point))
    domain = random_domain(kind, (6, 8, 3), rng)
    log_point = random_point(point, domain, rng)
    by_factors, by_gradients = (
        amdp.projection("newton", factored_states=states).bind(domain).project(log_point) for states in (8, 7)
    )
    assert by_factors.gap <= 1e-18 * max(1.0, abs(by_factors.objective))
    same(by_factors, by_gradients)


def test_the_gap_of_a_rough_answer_has_its_digits() -> None:
    gaps = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        domain = random_domain("dense", (4, 4, 3), rng)
        log_point = random_point("mild", domain, rng)
        rough = amdp.projection("newton", accuracy=1e-3).bind(domain).project(log_point)
        plain = certified(domain, log_point, rough.prices, rough.report)
        np.testing.assert_allclose(rough.gap, plain.gap, rtol=1e-5, atol=1e-17)
        gaps.append(rough.gap)
    assert any(gap > 1e-10 for gap in gaps)  # a series, not a difference, and far from rounding
