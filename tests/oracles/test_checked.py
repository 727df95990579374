"""Nobody is trusted: lying solvers are restarted or demoted, lying oracles are rejected with the reason."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from worlds import ORACLES, World, box_around, plain_best, plain_values, random_kernel

from amdp import (
    BernsteinBox,
    CertificateRejected,
    Checked,
    MarkovPolicies,
    Planner,
    PlanningOracle,
    Plans,
    Status,
    Unsolved,
    UnsupportedDomain,
    bind,
    evaluate,
    one_hot,
    oracle,
    plan,
)
from amdp.arrays import Actions, Costs, Floats
from amdp.model.domains import Domain
from amdp.oracles.checked import provable_bound
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.oracles.solving import Answer, SolverPlanner, worst

SHAPE = (3, 3, 2)
RNG = np.random.default_rng(0)
DOMAIN = MarkovPolicies(random_kernel("dense", SHAPE, RNG), 1)
BOX = MarkovPolicies(box_around(random_kernel("dense", SHAPE, RNG), 0.2, RNG), 1)
COST = RNG.random(SHAPE)


# --- solvers that lie -----------------------------------------------------------------------------------------------


class ScriptedSolver:
    """Gives its answers in order, the last one for ever."""

    name = "script"

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.restarts = 0
        self.asked: list[Floats] = []

    def solve(self, cost: Floats) -> Answer:
        self.asked.append(cost)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def restart(self) -> None:
        self.restarts += 1


def scripted(*answers: Answer, domain: MarkovPolicies = DOMAIN) -> SolverPlanner:
    return SolverPlanner(BackwardInduction(), domain, lambda accepted: ScriptedSolver(*answers), 1e-9)


def mass_of(actions: Actions) -> Floats:
    """A mass that visits every state with the given actions."""
    return one_hot(actions, SHAPE[2]) / SHAPE[1]


# By plain loops: an oracle here would compile its kernels in every process that collects tests.
BEST = plain_best(DOMAIN, COST)
LEAST = plain_values(DOMAIN, COST)[0, DOMAIN.initial]
RIGHT = Answer(mass_of(BEST), Status.OPTIMAL)
WRONG = Answer(mass_of(1 - BEST), Status.OPTIMAL)


def test_a_right_answer_is_taken_at_once() -> None:
    planner = scripted(RIGHT)
    plans = planner.minimize(COST[None])
    assert (plans.status, plans.report.rebuilds) == (Status.OPTIMAL, 0)
    assert_array_equal(plans.actions[0], BEST)
    assert plans.objective[0] == plans.bound[0] == pytest.approx(LEAST, abs=1e-14)


def test_a_wrong_answer_is_asked_again_from_a_cold_start() -> None:
    planner = scripted(WRONG, RIGHT)
    plans = planner.minimize(COST[None])
    assert isinstance(planner.solver, ScriptedSolver)
    assert planner.solver.restarts == 1
    assert (plans.status, plans.report.rebuilds) == (Status.OPTIMAL, 1)
    assert plans.objective[0] == pytest.approx(LEAST, abs=1e-14)


def require_honest(plans: Plans, domain: MarkovPolicies, cost: Floats) -> None:
    """The objective is the policy's, the bound holds, and optimal is said only if both meet."""
    best = plain_values(domain, cost)[0, domain.initial]
    paid = evaluate(domain, plans.actions, cost[None])[0]
    assert plans.objective[0] == pytest.approx(paid, abs=1e-12)
    assert plans.bound[0] <= best + 1e-12
    assert plans.bound[0] <= plans.objective[0]
    if plans.status is Status.OPTIMAL:
        assert plans.objective[0] == pytest.approx(best, abs=1e-9 * len(cost))


@pytest.mark.parametrize("domain", [DOMAIN, BOX])
def test_the_policy_of_a_solver_that_always_lies_is_improved_and_counted(domain: MarkovPolicies) -> None:
    best = plan("dp", domain, COST)
    plans = scripted(Answer(mass_of(1 - best.actions), Status.OPTIMAL), domain=domain).minimize(COST[None])
    assert (plans.status, plans.report.rebuilds, plans.report.improved) == (Status.OPTIMAL, 1, 1)
    assert plans.report.note == "optimal by the solver, made cheaper by backward induction"
    assert_array_equal(plans.actions[0], best.actions)
    require_honest(plans, domain, COST)


def test_any_mass_at_all_leads_to_an_honest_answer() -> None:
    rng = np.random.default_rng(1)
    strange = [np.zeros(SHAPE), np.full(SHAPE, np.nan), -np.ones(SHAPE), np.full(SHAPE, 1e300), rng.normal(size=SHAPE)]
    strange += [np.abs(mass) / np.abs(mass).sum(axis=(1, 2), keepdims=True) for mass in strange[-1:]]
    for mass in strange:
        for status in (Status.OPTIMAL, Status.FEASIBLE):
            plans = scripted(Answer(mass, status)).minimize(COST[None])
            if plans.status is not Status.FAILED:
                require_honest(plans, DOMAIN, COST)
    assert plans.status is not Status.FAILED  # the last one sums to 1


def test_a_stopped_solver_that_leaves_zeros_has_no_policy() -> None:
    plans = scripted(Answer(np.zeros(SHAPE), Status.FEASIBLE, note="time limit")).minimize(COST[None])
    assert (plans.status, plans.objective[0]) == (Status.FAILED, np.inf)


def test_each_plan_of_a_batch_keeps_its_own_status() -> None:
    plans = scripted(RIGHT, Answer(None, Status.FEASIBLE, note="time limit"), RIGHT).minimize(np.stack([COST] * 3))
    assert [each.status for each in plans] == [Status.OPTIMAL, Status.FAILED, Status.OPTIMAL]


def test_an_answer_at_a_limit_keeps_its_policy_and_a_bound_that_holds() -> None:
    planner = scripted(Answer(mass_of(1 - BEST), Status.FEASIBLE, note="time limit"))
    plans = planner.minimize(COST[None])
    assert (plans.status, plans.report.rebuilds, plans.report.note) == (Status.FEASIBLE, 0, "time limit")
    require_honest(plans, DOMAIN, COST)
    assert plans.require(Status.OPTIMAL, Status.FEASIBLE) is plans
    with pytest.raises(Unsolved, match="dp ended feasible: time limit"):
        plans.require(Status.OPTIMAL)


def test_an_answer_at_a_limit_that_happens_to_be_best_is_still_not_called_optimal() -> None:
    plans = scripted(replace(RIGHT, status=Status.FEASIBLE)).minimize(COST[None])
    assert plans.status is Status.FEASIBLE
    assert plans.objective[0] == plans.bound[0]


def test_a_solver_that_gives_up_is_asked_again_from_a_cold_start() -> None:
    plans = scripted(Answer(None, Status.FAILED, note="gave up"), RIGHT).minimize(COST[None])
    assert (plans.status, plans.report.rebuilds, plans.report.note) == (Status.OPTIMAL, 1, "")


@pytest.mark.parametrize("status", [Status.FAILED, Status.FEASIBLE, Status.OPTIMAL])
def test_an_answer_without_a_policy_has_failed_whatever_the_solver_says(status: Status) -> None:
    plans = scripted(Answer(None, status, note="nothing found")).minimize(COST[None])
    assert plans.status is Status.FAILED
    assert (plans.objective[0], plans.bound[0]) == (np.inf, -np.inf)
    with pytest.raises(Unsolved, match="ended failed: nothing found") as caught:
        plans.require(Status.OPTIMAL, Status.FEASIBLE)
    assert caught.value.plans is plans


def test_the_worst_member_names_the_batch() -> None:
    planner = scripted(RIGHT, Answer(None, Status.FEASIBLE, note="time limit"), RIGHT)
    plans = planner.minimize(np.stack([COST, COST, COST]))
    assert plans.status is Status.FAILED
    assert plans.objective == pytest.approx(np.array([LEAST, np.inf, LEAST]), abs=1e-14)
    assert worst([Status.OPTIMAL, Status.FEASIBLE, Status.OPTIMAL]) is Status.FEASIBLE


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_solvers_see_costs_of_size_one(size: float) -> None:
    planner = scripted(RIGHT)
    assert planner.minimize(-size * COST[None] + size * COST[None].max()).status is not Status.FAILED
    assert isinstance(planner.solver, ScriptedSolver)
    assert 0.5 <= np.abs(planner.solver.asked[0]).max() <= 1.0


# --- oracles that lie -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Liar:
    """Backward induction whose answers are altered."""

    alter: Callable[[Plans], Plans]
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return True

    def bind(self, domain: Domain) -> Planner:
        return _Liar(self, domain)


class _Liar(Planner):
    def minimize(self, costs: Costs) -> Plans:
        assert isinstance(self.oracle, Liar)
        return self.oracle.alter(BackwardInduction().bind(self.domain).minimize(costs))


def with_action(plans: Plans, action: int) -> Plans:
    actions = plans.actions.copy()
    actions[0, 1, 2] = action
    return replace(plans, actions=actions)


LIES: list[tuple[str, Callable[[Plans], Plans], str]] = [
    ("lower objective", lambda p: replace(p, objective=p.objective - 1e-3), r"objective\[0\] = .* its policy costs"),
    ("higher objective", lambda p: replace(p, objective=p.objective + 1e-3), r"objective\[0\] = .* its policy costs"),
    ("no objective", lambda p: replace(p, objective=p.objective * np.nan), r"objective\[0\] = nan"),
    ("high bound", lambda p: replace(p, bound=p.bound + 1e-3), r"bound\[0\] = .* its values prove"),
    ("no bound", lambda p: replace(p, bound=p.bound * np.nan), r"bound\[0\] = nan"),
    ("low bound", lambda p: replace(p, bound=p.bound - 1e-3), r"optimal objective\[0\] = .* its bound is"),
    (
        "other values",
        lambda p: replace(p, values=p.values + RNG.random(SHAPE[:2])),
        r"bound\[0\] = .* its values prove",
    ),
    ("no values", lambda p: replace(p, values=p.values * np.nan), r"its values prove nan"),
    ("negative action", lambda p: with_action(p, -1), r"actions lie outside 0 \.\. 1"),
    ("unknown action", lambda p: with_action(p, 2), r"actions lie outside 0 \.\. 1"),
    ("actions as floats", lambda p: replace(p, actions=p.actions.astype(float)), "actions are float64"),
    ("fewer actions", lambda p: replace(p, actions=p.actions[:, :, 1:]), r"actions has shape \(1, 3, 2\)"),
    ("fewer steps", lambda p: replace(p, values=p.values[:, 1:]), r"values has shape \(1, 2, 3\)"),
    ("a column of objectives", lambda p: replace(p, objective=p.objective[:, None]), r"objective has shape \(1, 1\)"),
    ("two bounds", lambda p: replace(p, bound=np.repeat(p.bound, 2)), r"bound has shape \(2,\)"),
    ("two answers", lambda p: replace(p, actions=np.repeat(p.actions, 2, axis=0)), r"actions has shape \(2, 3, 3\)"),
]


@pytest.mark.parametrize("domain", [DOMAIN, BOX], ids=["kernel", "box"])
@pytest.mark.parametrize(("alter", "reason"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_a_lie_is_rejected_with_its_reason(alter: Any, reason: str, domain: MarkovPolicies) -> None:
    with pytest.raises(CertificateRejected, match=rf"Liar: .*{reason}"):
        bind(Checked(Liar(alter)), domain).minimize(COST[None])


def test_the_member_of_the_batch_that_was_lied_about_is_named() -> None:
    def alter(plans: Plans) -> Plans:
        return replace(plans, objective=plans.objective + np.array([0.0, 0.0, 0.5]))

    with pytest.raises(CertificateRejected, match=r"objective\[2\]"):
        bind(Checked(Liar(alter)), DOMAIN).minimize(np.stack([COST, COST, COST]))


def test_a_suboptimal_policy_called_optimal_is_rejected() -> None:
    def worse(plans: Plans) -> Plans:
        actions = 1 - plans.actions
        sweep = DOMAIN.dynamics.follow(COST[None], actions, np.full(1, -1.0))
        paid = sweep.values[:, 0, DOMAIN.initial]
        honest = replace(plans, actions=actions, values=sweep.values, objective=paid, bound=paid + sweep.shortfall)
        assert bind(Checked(Liar(lambda _: replace(honest, status=Status.FEASIBLE))), DOMAIN).minimize(COST[None])
        return honest

    with pytest.raises(CertificateRejected, match="optimal objective"):
        bind(Checked(Liar(worse)), DOMAIN).minimize(COST[None])


def test_a_loose_bound_that_is_not_called_optimal_passes() -> None:
    loose = Liar(lambda plans: replace(plans, bound=plans.bound - 1.0, status=Status.FEASIBLE))
    assert bind(Checked(loose), DOMAIN).minimize(COST[None]).status is Status.FEASIBLE


def test_a_confessed_failure_passes() -> None:
    failed = Liar(lambda plans: replace(plans, status=Status.FAILED, objective=np.full(1, np.inf)))
    assert bind(Checked(failed), DOMAIN).minimize(COST[None]).status is Status.FAILED


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_right_answers_pass(name: str, size: float) -> None:
    rng = np.random.default_rng(3)
    for domain in (DOMAIN, BOX, MarkovPolicies(random_kernel("layered", SHAPE, rng))):
        costs = size * rng.normal(size=(2, *SHAPE))
        plans = bind(Checked(ORACLES[name]), domain).minimize(costs)
        assert plans.status is Status.OPTIMAL
        assert_array_equal(plans.actions, bind(ORACLES[name], domain).minimize(costs).actions)


def test_checked_supports_what_is_inside() -> None:
    watched = Checked(oracle("enumeration", limit=1))
    assert isinstance(watched, PlanningOracle)
    assert not watched.supports(DOMAIN)
    assert Checked(oracle("lp")).supports(DOMAIN)
    with pytest.raises(UnsupportedDomain, match="more than its limit of 1"):
        bind(watched, DOMAIN)
    assert pickle.loads(pickle.dumps(watched)) == watched


def test_the_provable_bound_holds_for_any_values() -> None:
    rng = np.random.default_rng(4)
    for domain in (DOMAIN, BOX):
        best = plain_values(domain, COST)[0, domain.initial]
        for _ in range(50):
            values = rng.normal(size=(1, *SHAPE[:2]))
            assert provable_bound(domain, values, COST[None])[0] <= best + 1e-12
        exact = plain_values(domain, COST)[None]
        assert provable_bound(domain, exact, COST[None])[0] == pytest.approx(best, abs=1e-12)


def test_worlds_differ_enough_for_these_tests() -> None:
    assert plain_values(DOMAIN, COST, 1 - BEST)[0, DOMAIN.initial] - 1e-3 > LEAST
    assert isinstance(BOX.dynamics, BernsteinBox)
    assert World(DOMAIN, COST[None]).size[0] > 0
