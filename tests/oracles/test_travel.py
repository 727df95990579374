"""Oracles are values; planners travel to other processes and answer alike there."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from worlds import ORACLES, box_around, random_kernel, random_rows

from amdp import Checked, Kernel, MarkovPolicies, Planner, Unsolved, bind, oracle
from amdp.arrays import Actions, Costs, Floats

SHAPE = (3, 3, 2)
WATCHED = {**ORACLES, "checked": Checked(oracle("lp", seconds=30))}


def test_oracles_with_equal_settings_are_equal_and_hash_alike() -> None:
    assert oracle("lp", gap=1e-6) == oracle("lp", gap=1e-6)
    assert oracle("lp", gap=1e-6) != oracle("lp")
    assert oracle("dp") != oracle("lp")
    assert len({*WATCHED.values(), *pickle.loads(pickle.dumps(list(WATCHED.values())))}) == len(WATCHED)
    assert Checked(oracle("dp")) == Checked(oracle("dp"))
    assert Checked(oracle("dp")) != Checked(oracle("dp"), tolerance=1e-3)


@pytest.mark.parametrize("name", WATCHED)
def test_oracles_print_as_the_call_that_makes_them(name: str) -> None:
    shown = repr(WATCHED[name])
    assert shown.startswith(type(WATCHED[name]).__name__ + "(")
    assert shown.endswith(")")


@pytest.mark.parametrize("name", ["lp", "pulp", "cvxpy", "enumeration"])
def test_settings_cannot_be_changed(name: str) -> None:
    with pytest.raises(AttributeError, match="cannot assign"):
        oracle(name).limit = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", WATCHED)
@pytest.mark.parametrize("kind", ["dense", "sparse-homogeneous", "box"])
def test_a_pickled_planner_binds_again_and_answers_alike(name: str, kind: str) -> None:
    rng = np.random.default_rng(0)
    kernel = random_kernel("dense" if kind == "box" else kind, SHAPE, rng)
    planner = bind(WATCHED[name], MarkovPolicies(box_around(kernel, 0.2, rng) if kind == "box" else kernel, 2))
    costs = rng.normal(size=(2, *SHAPE))
    here = planner.minimize(costs)
    arrived = pickle.loads(pickle.dumps(planner))
    there = arrived.minimize(costs)
    assert arrived.oracle == planner.oracle
    assert arrived.domain.initial == 2
    assert_array_equal(there.actions, here.actions)
    assert_array_equal(there.objective, here.objective)


def test_a_planner_over_a_homogeneous_kernel_travels_as_one_step() -> None:
    step = random_rows((1, 30, 4), np.random.default_rng(1))[0]
    planner = bind("dp", MarkovPolicies(Kernel.homogeneous(step, 500)))
    planner.minimize(np.zeros((1, 500, 30, 4)))
    assert len(pickle.dumps(planner)) < 2 * step.nbytes


def answer(planner: Planner, costs: Costs) -> tuple[Actions, Floats]:
    plans = planner.minimize(costs)
    return np.array(plans.actions), plans.objective


def test_planners_answer_alike_in_a_spawned_process() -> None:
    rng = np.random.default_rng(2)
    kernel = random_kernel("homogeneous", SHAPE, rng)
    costs = rng.normal(size=(2, *SHAPE))
    planners = [bind(WATCHED[name], MarkovPolicies(kernel)) for name in ("dp", "lp", "checked")]
    planners.append(bind("lp", MarkovPolicies(box_around(kernel, 0.2, rng))))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for planner, (actions, objective) in zip(planners, pool.map(answer, planners, [costs] * 4), strict=True):
            here = planner.minimize(costs)
            assert_array_equal(actions, here.actions)
            assert_array_equal(objective, here.objective)


def test_answers_and_refusals_travel_too() -> None:
    plans = bind("lp", MarkovPolicies(random_kernel("dense", SHAPE, np.random.default_rng(3)))).minimize(
        np.ones((2, *SHAPE))
    )
    arrived = pickle.loads(pickle.dumps(plans))
    assert_array_equal(arrived.actions, plans.actions)
    assert arrived.report == plans.report
    refused = pickle.loads(pickle.dumps(Unsolved("out of time", plans)))
    assert str(refused) == "out of time"
    assert_array_equal(refused.plans.objective, plans.objective)


def test_a_plan_shows_its_policy_and_its_gap() -> None:
    rng = np.random.default_rng(4)
    plans = bind("dp", MarkovPolicies(random_kernel("dense", SHAPE, rng))).minimize(rng.random((3, *SHAPE)))
    assert len(plans) == len(list(plans)) == 3
    for one in plans:
        assert one.gap == 0.0
        assert one.policy.shape == SHAPE
        assert_array_equal(one.policy.argmax(axis=-1), one.actions)
        assert_array_equal(one.policy.sum(axis=-1), 1.0)
