"""Wrong questions are refused, each with its own error, the place and the rule."""

import numpy as np
import pytest
from worlds import ORACLES, random_kernel, random_rows

from amdp import (
    AmdpError,
    BernsteinBox,
    Checked,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    PlanningOracle,
    StationaryPolicies,
    UnsupportedDomain,
    bind,
    oracle,
    plan,
)
from amdp.model.l1_ball import L1Ball
from amdp.oracles.markov.pulp_program import PulpProgram

SHAPE = (2, 3, 2)
RNG = np.random.default_rng(0)
KERNEL = random_kernel("dense", SHAPE, RNG)
DOMAIN = MarkovPolicies(KERNEL)
WATCHED: dict[str, PlanningOracle] = {**ORACLES, "checked": Checked(oracle("dp"))}

each_oracle = pytest.mark.parametrize("name", WATCHED)


@each_oracle
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_a_cost_that_is_not_finite_is_named_with_its_place(name: str, bad: float, layout: str) -> None:
    costs = np.zeros((2, *SHAPE))
    costs[1, 0, 2, 1] = bad
    planner = bind(WATCHED[name], DOMAIN)
    with pytest.raises(InvalidInput, match=rf"costs\[n=1, h=0, s=2, a=1\] = {bad}; it must be finite"):
        planner.minimize(np.asarray(costs, order="F" if layout == "F" else "C"))
    assert planner.minimize(np.zeros((1, *SHAPE))).objective[0] == 0.0  # it still works


@each_oracle
@pytest.mark.parametrize("kind", ["sparse", "box"])
def test_a_cost_that_is_not_finite_is_found_in_the_last_step_too(name: str, kind: str) -> None:
    dynamics = BernsteinBox.vacuous(SHAPE) if kind == "box" else random_kernel(kind, SHAPE, np.random.default_rng(1))
    costs = np.zeros((1, *SHAPE))
    costs[0, 1, 2, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"costs\[n=0, h=1, s=2, a=1\] = nan"):
        bind(WATCHED[name], MarkovPolicies(dynamics)).minimize(costs)


@each_oracle
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (SHAPE, r"costs has shape \(2, 3, 2\); expected axes \[n, h, s, a\]"),
        ((1, 3, 3, 2), r"costs has shape \(1, 3, 3, 2\); the domain asks for \(n, 2, 3, 2\)"),
        ((1, 2, 2, 3), r"costs has shape \(1, 2, 2, 3\); the domain asks for \(n, 2, 3, 2\)"),
        ((1, 2, 3, 1), r"costs has shape \(1, 2, 3, 1\); the domain asks for"),
        ((0, 2, 3, 2), r"costs is empty"),
    ],
)
def test_costs_of_the_wrong_shape_are_refused(name: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        bind(WATCHED[name], DOMAIN).minimize(np.zeros(shape))


@each_oracle
def test_one_cost_must_have_no_batch_axis_in_plan(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"cost has shape \(1, 2, 3, 2\); expected axes \[h, s, a\]"):
        plan(WATCHED[name], DOMAIN, np.zeros((1, *SHAPE)))


@each_oracle
def test_costs_that_are_no_numbers_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="costs is not an array of numbers"):
        bind(WATCHED[name], DOMAIN).minimize([[[["cheap"]]]])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(set(WATCHED) - {"enumeration"}))
def test_a_domain_of_stationary_policies_is_refused_when_bound(name: str) -> None:
    stationary = StationaryPolicies(Kernel.homogeneous(random_rows((1, 3, 2), RNG)[0], 4))
    assert not WATCHED[name].supports(stationary)
    with pytest.raises(UnsupportedDomain, match="does not solve StationaryPolicies over Kernel"):
        bind(WATCHED[name], stationary)


@pytest.mark.parametrize("name", [name for name in ORACLES if name != "dp"])
def test_dynamics_without_linear_rows_are_refused_by_all_but_backward_induction(name: str) -> None:
    domain = MarkovPolicies(L1Ball.exactly(KERNEL))
    assert plan("dp", domain, np.ones(SHAPE)).objective == pytest.approx(2.0)
    with pytest.raises(UnsupportedDomain, match="does not solve MarkovPolicies over L1Ball"):
        bind(ORACLES[name], domain)


@pytest.mark.parametrize(("limit", "fits"), [(127, False), (128, True)])
def test_enumeration_counts_the_policies_that_differ_and_refuses_too_many(limit: int, fits: bool) -> None:
    """One state in the first step, three in each of the other two: 2^7 policies."""
    domain = MarkovPolicies(random_kernel("dense", (3, 3, 2), np.random.default_rng(2)))
    chosen = oracle("enumeration", limit=limit)
    assert chosen.supports(domain) == fits
    if fits:
        assert bind(chosen, domain).minimize(np.zeros((1, 3, 3, 2))).report.nodes == 128
        return
    with pytest.raises(UnsupportedDomain, match=r"would try 2\^7 policies, more than its limit of 127"):
        bind(chosen, domain)


def test_enumeration_can_say_no_to_more_policies_than_a_float_can_count() -> None:
    domain = MarkovPolicies(Kernel.homogeneous(random_rows((1, 60, 2), RNG)[0], 30))
    with pytest.raises(UnsupportedDomain, match=r"2\^1741 policies"):
        bind("enumeration", domain)


@pytest.mark.parametrize(
    ("cost", "suffix", "message"),
    [
        (np.zeros((2, 2, 2)), ".lp", r"costs has shape \(1, 2, 2, 2\)"),
        (np.zeros((3, 3, 3)), ".lp", r"costs has shape \(1, 3, 3, 3\)"),
        (np.full(SHAPE, np.nan), ".mps", "must be finite"),
        (np.zeros((1, *SHAPE)), ".mps", "cost has shape"),
        (np.zeros(SHAPE), ".txt", "the suffix must be .lp or .mps, not '.txt'"),
    ],
)
def test_no_model_is_exported_for_wrong_costs_or_to_an_unknown_format(
    cost: np.ndarray, suffix: str, message: str, tmp_path: object
) -> None:
    path = f"{tmp_path}/model{suffix}"
    with pytest.raises(InvalidInput, match=message):
        PulpProgram().export(DOMAIN, cost, path)


def test_every_refusal_belongs_to_one_tree() -> None:
    with pytest.raises(AmdpError):
        Kernel(np.ones((1, 2, 2, 2)))
    with pytest.raises(ValueError, match="sums to 2"):
        Kernel(np.ones((1, 2, 2, 2)))


# --- extremes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in WATCHED if name not in ("dp", "checked")])
def test_costs_whose_squares_overflow_are_no_trouble(name: str) -> None:
    costs = 1e200 * np.random.default_rng(3).random((1, *SHAPE))
    wanted = 1e200 * plan("dp", DOMAIN, costs[0] / 1e200).objective
    assert bind(WATCHED[name], DOMAIN).minimize(costs).objective[0] == pytest.approx(wanted)


def test_costs_whose_sum_overflows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="costs"):
        bind("dp", DOMAIN).minimize(np.full((1, *SHAPE), 1.7e308))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: plan("dp", MarkovPolicies(KERNEL, 1.0), np.zeros(SHAPE)),  # type: ignore[arg-type]
        lambda: Kernel.homogeneous(random_rows((1, 3, 2), RNG)[0], 2.5),  # type: ignore[arg-type]
    ],
)
def test_indices_and_sizes_must_be_whole_numbers(wrong) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput):
        wrong()
