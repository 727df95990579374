"""Points that make no sense are refused with their place; solvers that fail are not believed."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import random_kernel

import amdp
from amdp import EmptyConfidenceSet, InvalidInput, MarkovPolicies, Unsolved, UnsupportedDomain
from amdp.oracles.projection import certificate, cvxpy_program, newton
from amdp.oracles.projection.base import status_of
from oracles.projection.points import bound, random_domain

ORACLES = ("newton", "cvxpy")


@pytest.fixture
def domain() -> MarkovPolicies:
    return random_domain("dense", (3, 3, 2), np.random.default_rng(1))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.nan, r"point\[h=1, s=2, a=0\] = nan; it must be a number that is not negative"),
        (-0.5, r"point\[h=1, s=2, a=0\] = -0.5; it must be a number that is not negative"),
        (np.inf, r"point\[h=1, s=2, a=0\] = inf; it must be finite"),
    ],
)
def test_a_wrong_weight_is_named(name: str, domain: MarkovPolicies, wrong: float, words: str) -> None:
    point = np.ones((3, 3, 2))
    point[1, 2, 0] = wrong
    with pytest.raises(InvalidInput, match=words):
        amdp.project(name, domain, point)


@pytest.mark.parametrize("name", ORACLES)
def test_a_logarithm_that_is_too_large_is_named(name: str, domain: MarkovPolicies) -> None:
    point = np.zeros((3, 3, 2))
    point[0, 1, 1] = 800.0
    with pytest.raises(InvalidInput, match=r"log_point\[h=0, s=1, a=1\] = 800; it must be a number below 700"):
        bound(name, domain).project(point)


@pytest.mark.parametrize("name", ORACLES)
def test_shapes_must_fit(name: str, domain: MarkovPolicies) -> None:
    projector = bound(name, domain)
    with pytest.raises(InvalidInput, match=r"log_point has shape \(3, 3, 3\); the domain asks for \(3, 3, 2\)"):
        projector.project(np.zeros((3, 3, 3)))
    other = bound("newton", random_domain("dense", (2, 3, 2), np.random.default_rng(2))).project(np.zeros((2, 3, 2)))
    with pytest.raises(InvalidInput, match=r"near has prices \(2, 3\); the domain asks for \(3, 3\)"):
        projector.project(np.zeros((3, 3, 2)), other)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("kind", ["dense", "box"])
def test_a_point_without_mass_on_any_measure_is_refused(name: str, kind: str) -> None:
    domain = random_domain(kind, (3, 3, 2), np.random.default_rng(3))
    projector = bound(name, domain)
    point = np.zeros(projector.point_shape)
    point[2, 1] = -np.inf  # every kernel leads there with some chance, whatever the policy
    if kind == "dense":
        with pytest.raises(InvalidInput, match=r"no mass on any occupancy measure from state 0"):
            projector.project(point)
    point[2] = -np.inf
    with pytest.raises(InvalidInput, match=r"no mass on any occupancy measure from state 0"):
        projector.project(point)


@pytest.mark.parametrize("name", ORACLES)
def test_a_trap_that_can_be_avoided_is_avoided(name: str) -> None:
    p = np.zeros((3, 3, 2, 3))
    p[:, 0, 0, 1] = p[:, 0, 1, 2] = p[:, 1, :, 1] = p[:, 2, :, 2] = 1.0
    point = np.ones((3, 3, 2))
    point[2, 2] = 0.0  # so action 1 of the start must not be taken
    found = amdp.project(name, MarkovPolicies(amdp.Kernel(p)), point)
    np.testing.assert_allclose(found.policy[0, 0], [1.0, 0.0])
    np.testing.assert_allclose(found.measure[2, 1], 0.5, atol=1e-7)


def test_an_empty_box_is_refused_where_it_is_made() -> None:
    with pytest.raises(EmptyConfidenceSet, match=r"no distribution fits at \[h=0, s=0, a=0\]"):
        amdp.BernsteinBox(np.full((2, 2, 1, 2), 0.1), np.full((2, 2, 1, 2), 0.2))


@pytest.mark.parametrize("name", ORACLES)
def test_stationary_policies_are_refused(name: str) -> None:
    kernel = random_kernel("homogeneous", (3, 2, 2), np.random.default_rng(4))
    with pytest.raises(UnsupportedDomain, match="does not project onto StationaryPolicies over Kernel"):
        bound(name, amdp.StationaryPolicies(kernel))  # type: ignore[arg-type]


def test_what_is_no_projection_oracle_is_refused(domain: MarkovPolicies) -> None:
    with pytest.raises(InvalidInput, match="is not a projection oracle"):
        amdp.project(amdp.oracle("dp"), domain, np.ones((3, 3, 2)))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"no 'simplex' in amdp.projections; known names: .*newton"):
        amdp.project("simplex", domain, np.ones((3, 3, 2)))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("newton", {"accuracy": -1.0}, "accuracy = -1.0"),
        ("newton", {"iterations": 1.5}, "iterations = 1.5"),
        ("newton", {"tolerance": 1.0}, "no option 'tolerance'"),
        ("cvxpy", {"solver": "ECOS"}, "cvxpy is asked for one of CLARABEL, SCS"),
        ("cvxpy", {"gap": -1.0}, "gap = -1.0"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        amdp.projection(name, **options)


def test_newton_without_steps_is_unsolved_and_carries_what_it_found(domain: MarkovPolicies) -> None:
    projector = amdp.projection("newton", iterations=0).bind(domain)
    point = np.random.default_rng(5).normal(size=(3, 3, 2))
    with pytest.raises(Unsolved, match=r"newton ended feasible after 0 iterations: .* gap .* flow residual"):
        projector.project(point)
    try:
        projector.project(point)
    except Unsolved as problem:
        found = problem.plans
    assert isinstance(found, amdp.Projection)
    assert found.flow_residual <= 1e-12
    assert found.gap > 1e-9


def test_a_proof_is_measured_by_the_steps_and_not_by_the_objective(domain: MarkovPolicies) -> None:
    hasty = amdp.projection("newton", iterations=0).bind(domain)
    point = np.random.default_rng(5).normal(size=(3, 3, 2))
    unreached = point.copy()
    unreached[0, 1] = np.log(1e12)  # counts in every objective alike
    for each in (point + np.log(1e12), unreached):
        with pytest.raises(Unsolved, match="ended feasible"):
            hasty.project(each)
    assert status_of(3e-9, 3, 1e-9) is amdp.Status.OPTIMAL
    for gap in (4e-9, np.inf, np.nan):
        assert status_of(gap, 3, 1e-9) is amdp.Status.FEASIBLE
    assert status_of(np.inf, 3, np.inf) is amdp.Status.FEASIBLE


@pytest.mark.parametrize("name", ORACLES)
def test_a_kernel_is_no_domain(name: str, domain: MarkovPolicies) -> None:
    with pytest.raises(InvalidInput, match=r"is not a domain; wrap the kernel: MarkovPolicies\(kernel\)"):
        amdp.bind_projection(name, domain.dynamics)  # type: ignore[arg-type]


def test_a_proof_that_the_plain_certificate_contradicts_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = random_domain("vacuous", (3, 3, 2), np.random.default_rng(1))
    point = np.zeros((3, 3, 2, 3))
    point[1, 2] -= 2000.0  # masses below the smallest number
    assert bound("newton", domain).project(point).status is amdp.Status.OPTIMAL

    def doubt(*arguments: object) -> amdp.Projection:
        return replace(certificate.certified(*arguments), gap=1.0)  # type: ignore[arg-type]

    monkeypatch.setattr(newton, "certified", doubt)
    with pytest.raises(Unsolved, match=r"ended feasible .* gap 1,"):
        bound("newton", domain).project(point)


def test_an_inaccurate_answer_that_the_check_proves_is_accepted(
    domain: MarkovPolicies, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(monkeypatch, "optimal_inaccurate", blur=1e-7)
    found = bound("cvxpy", domain).project(np.zeros((3, 3, 2)))
    assert found.status is amdp.Status.OPTIMAL
    assert found.report.note == "optimal_inaccurate"
    assert found.flow_residual <= 1e-12


def test_a_wrong_answer_that_is_called_optimal_is_not_believed(
    domain: MarkovPolicies, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(monkeypatch, "optimal", blur=0.1)
    with pytest.raises(Unsolved, match=r"cvxpy ended feasible .* gap .* flow residual"):
        bound("cvxpy", domain).project(np.random.default_rng(6).normal(size=(3, 3, 2)))


def test_a_solver_that_gives_up_is_unsolved_with_its_reason(
    domain: MarkovPolicies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> tuple[str, None, None]:
        return "failed: the solver broke down", None, None

    monkeypatch.setattr(cvxpy_program._Program, "solve", fail)
    with pytest.raises(Unsolved, match="the solver broke down"):
        bound("cvxpy", domain).project(np.random.default_rng(7).normal(size=(3, 3, 2)))


def test_the_certificate_prices_are_what_newton_finds(domain: MarkovPolicies) -> None:
    """At the optimum the prices follow from the state chances: `v = log d - L`."""
    point = np.random.default_rng(8).normal(size=(3, 3, 2))
    found = bound("newton", domain).project(point)
    with np.errstate(divide="ignore"):
        log_chance = np.log(found.measure.sum(axis=-1))
    weights = certificate.supported(domain, point)
    np.testing.assert_allclose(certificate.prices_for(domain, weights, log_chance), found.prices, atol=1e-8)


def claim(monkeypatch: pytest.MonkeyPatch, status: str, blur: float) -> None:
    """Let the solver's answers be off by `blur`, under a status of our choice."""
    solve = cvxpy_program._Program.solve

    def blurred(*arguments: object) -> tuple[str, np.ndarray, np.ndarray]:
        _, prices, measure = solve(*arguments)  # type: ignore[arg-type]
        assert prices is not None
        assert measure is not None
        noise = 1.0 + blur * np.random.default_rng(9).normal(size=measure.shape)
        return status, prices + blur * np.random.default_rng(9).normal(size=prices.shape), measure * np.abs(noise)

    monkeypatch.setattr(cvxpy_program._Program, "solve", blurred)
