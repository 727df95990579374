"""The linear program: hot starts, limits, Ctrl-C, the rows it solves and the files it writes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numpy.testing import assert_allclose, assert_array_equal
from worlds import (
    ORACLES,
    SOLVERS,
    World,
    box_around,
    box_worlds,
    kernel_inside,
    kernel_worlds,
    random_cost,
    random_kernel,
    random_policies,
    seeds,
    sizes,
)

from amdp import (
    BernsteinBox,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    Plans,
    Status,
    Unsolved,
    bind,
    evaluate,
    occupancy,
    oracle,
    plan,
)
from amdp.arrays import Costs
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.markov.linear_program import OccupancyProgram
from amdp.oracles.polytope import polytope
from amdp.oracles.solving import SolverPlanner

# --- hot starts -----------------------------------------------------------------------------------------------------


class HotStarts(RuleBasedStateMachine):
    """One planner, costs that change from solve to solve in every way; each answer is compared with a sweep."""

    domain: ClassVar[MarkovPolicies]

    def __init__(self) -> None:
        super().__init__()
        self.planner = bind("lp", self.domain)
        self.cost: Costs = np.zeros(self.domain.shape)

    @rule(seed=seeds, size=st.sampled_from((1e-12, 1e-6, 1e-2)))
    def nudge_everything(self, seed: int, size: float) -> None:
        largest = np.abs(self.cost).max() or 1.0
        self.cost = self.cost + size * largest * np.random.default_rng(seed).normal(size=self.cost.shape)

    @rule(seed=seeds)
    def change_one_place(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.cost = self.cost.copy()
        self.cost[tuple(rng.integers(self.cost.shape))] = (np.abs(self.cost).max() or 1.0) * rng.normal()

    @rule(power=st.integers(-8, 8))
    def rescale(self, power: int) -> None:
        largest = np.abs(self.cost).max() or 1.0
        self.cost = self.cost * (10.0**power / largest)

    @rule()
    def flip_the_sign(self) -> None:
        self.cost = -self.cost

    @rule(seed=seeds, kind=st.sampled_from(("normal", "uniform", "whole", "mixed", "zero")))
    def redraw(self, seed: int, kind: str) -> None:
        self.cost = random_cost(kind, self.domain.shape, np.random.default_rng(seed))

    @rule(seed=seeds)
    def add_a_round(self, seed: int) -> None:
        self.cost = self.cost + np.random.default_rng(seed).random(self.cost.shape)

    @rule()
    def forget_the_basis(self) -> None:
        assert isinstance(self.planner, SolverPlanner)
        self.planner.solver.restart()

    @invariant()
    def answer_is_that_of_backward_induction(self) -> None:
        found, wanted = self.planner.minimize(self.cost[None]), bind("dp", self.domain).minimize(self.cost[None])
        size = sizes(self.cost[None])
        assert found.status is Status.OPTIMAL
        assert found.report.rebuilds == 0
        assert found.bound[0] <= found.objective[0]
        assert_allclose(found.objective / size, wanted.objective / size, rtol=0, atol=1e-9)


class HotStartsOverKernel(HotStarts):
    domain = MarkovPolicies(random_kernel("dense", (5, 6, 4), np.random.default_rng(0)), 2)


class HotStartsOverSparseKernel(HotStarts):
    domain = MarkovPolicies(random_kernel("sparse", (6, 6, 3), np.random.default_rng(1)))


class HotStartsOverBox(HotStarts):
    domain = MarkovPolicies(
        box_around(random_kernel("dense", (3, 4, 2), np.random.default_rng(2)), 0.2, np.random.default_rng(3)), 1
    )


TestHotStartsOverKernel = HotStartsOverKernel.TestCase
TestHotStartsOverSparseKernel = HotStartsOverSparseKernel.TestCase
TestHotStartsOverBox = HotStartsOverBox.TestCase
TestHotStartsOverKernel.settings = settings(max_examples=3, stateful_step_count=150)
TestHotStartsOverSparseKernel.settings = settings(max_examples=3, stateful_step_count=100)
TestHotStartsOverBox.settings = settings(max_examples=2, stateful_step_count=60)


def test_a_small_change_of_costs_takes_fewer_pivots_than_the_first_solve() -> None:
    rng = np.random.default_rng(4)
    shape = (6, 10, 4)
    planner = bind("lp", MarkovPolicies(box_around(random_kernel("dense", shape, rng), 0.05, rng)))
    cost = rng.random((1, *shape))
    first = planner.minimize(cost).report.iterations
    assert planner.minimize(cost).report.iterations == 0
    assert planner.minimize(cost + 1e-6 * rng.random(cost.shape)).report.iterations < first / 10


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "cvxpy-clarabel"])
def test_chances_below_a_billionth_are_not_dropped(name: str) -> None:
    """200 of them lead to dear states; the other action costs half of what they add up to."""
    states, tiny = 200, 9e-10
    p = np.zeros((2, states, 2, states))
    p[..., 0] = 1.0
    p[0, 0, 0] = tiny
    p[0, 0, 0, 0] = 1.0 - tiny * (states - 1)
    cost = np.zeros((2, states, 2))
    cost[1, 1:] = 1.0
    cost[0, 0, 1] = 0.5 * tiny * (states - 1)
    found = plan(ORACLES[name], MarkovPolicies(Kernel(p)), cost)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(cost[0, 0, 1], rel=1e-9)


# --- limits ---------------------------------------------------------------------------------------------------------


def require_honest(plans: Plans, domain: MarkovPolicies, costs: Costs) -> None:
    """Optimal is said only of what is; otherwise the policy's value and a bound that holds; or nothing at all."""
    best = bind("dp", domain).minimize(costs).objective
    size = sizes(costs)
    if plans.status is Status.FAILED:
        assert np.isinf(plans.objective).any()
        return
    assert_allclose(plans.objective / size, evaluate(domain, plans.actions, costs) / size, rtol=0, atol=1e-12)
    assert (plans.bound <= best + 1e-12 * size).all()
    assert (best <= plans.objective + 1e-12 * size).all()
    if plans.status is Status.OPTIMAL:
        assert_allclose(plans.objective / size, best / size, rtol=0, atol=1e-9)


def large_box() -> MarkovPolicies:
    rng = np.random.default_rng(5)
    return MarkovPolicies(box_around(random_kernel("dense", (5, 10, 3), rng), 0.1, rng))


def large_kernel() -> MarkovPolicies:
    return MarkovPolicies(random_kernel("dense", (10, 50, 5), np.random.default_rng(6)))


def test_without_time_for_a_first_point_there_is_no_plan() -> None:
    domain = large_box()
    cost = np.random.default_rng(7).random(domain.shape)
    with pytest.raises(Unsolved, match="lp ended failed: Time limit reached") as caught:
        plan(oracle("lp", seconds=0), domain, cost)
    plans = caught.value.plans
    assert isinstance(plans, Plans)
    assert plans.status is Status.FAILED
    assert (plans.objective[0], plans.bound[0]) == (np.inf, -np.inf)


def test_at_the_limit_the_policy_in_hand_is_returned_and_not_called_optimal() -> None:
    """Over a kernel the first basis is a policy already: the shortsighted one."""
    domain = large_kernel()
    cost = np.random.default_rng(8).random(domain.shape)
    found = plan(oracle("lp", seconds=0), domain, cost)
    assert found.status is Status.FEASIBLE
    assert found.report.note == "Time limit reached"
    assert found.bound < plan("dp", domain, cost).objective < found.objective
    assert_array_equal(found.actions[0, domain.initial], cost[0, domain.initial].argmin())


def small_box() -> MarkovPolicies:
    rng = np.random.default_rng(10)
    return MarkovPolicies(box_around(random_kernel("dense", (3, 6, 2), rng), 0.1, rng))


LIMITED = [("lp", large_kernel), ("lp", large_box), ("pulp", small_box), ("cvxpy", small_box)]


@pytest.mark.parametrize(("name", "make"), LIMITED)
@pytest.mark.parametrize("seconds", [0.0, 1e-3, 1e-2, 0.1])
def test_under_any_limit_answers_are_honest(name: str, make: Callable[[], MarkovPolicies], seconds: float) -> None:
    domain = make()
    costs = np.random.default_rng(9).random((1, *domain.shape))
    require_honest(bind(oracle(name, seconds=seconds), domain).minimize(costs), domain, costs)


@pytest.mark.parametrize("solver", ["HIGHS", "CLARABEL"])
def test_cvxpy_at_a_limit_does_not_warn_but_reports(solver: str) -> None:
    domain = small_box()
    costs = np.random.default_rng(9).random((1, *domain.shape))
    plans = bind(oracle("cvxpy", solver=solver, seconds=1e-9), domain).minimize(costs)
    assert plans.status is not Status.OPTIMAL
    assert plans.report.note
    require_honest(plans, domain, costs)


def test_the_limit_is_for_each_solve_and_not_for_all_of_them() -> None:
    domain = large_kernel()
    planner = bind(oracle("lp", seconds=20.0), domain)
    assert isinstance(planner, SolverPlanner)
    rng = np.random.default_rng(11)
    limits = []
    for _ in range(3):
        assert planner.minimize(rng.random((1, *domain.shape))).status is Status.OPTIMAL
        limits.append(planner.solver._highs.getOptionValue("time_limit")[1])  # type: ignore[attr-defined]
    assert 20.0 <= limits[0] < limits[1] < limits[2]


def test_an_answer_that_is_backward_inductions_is_judged_without_another_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    planner = bind("lp", MarkovPolicies(Kernel(rng.dirichlet(np.ones(6), size=(5, 6, 3)))))
    costs = 0.1 + rng.random((1, 5, 6, 3))
    planner.minimize(costs)
    monkeypatch.setattr(Kernel, "follow", lambda *_: pytest.fail("a second sweep"))
    for h in range(5):
        costs[0, h, h, 0] += 0.2
        assert planner.minimize(costs).status is Status.OPTIMAL


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts out deaf to it
import numpy as np, scipy
from amdp import MarkovPolicies, SparseKernel, bind
from amdp.oracles.markov.linear_program import LONG_SOLVE_ENTRIES

steps, states, actions = 60, 1500, 6
rng = np.random.default_rng(0)
pair, successor = np.repeat(np.arange(states * actions), 2), rng.integers(states, size=2 * states * actions)
rows = scipy.sparse.csr_array((np.full(len(pair), 0.5), (pair, successor)), shape=(states * actions, states))
domain = MarkovPolicies(SparseKernel.homogeneous(rows, steps))
planner = bind("lp", domain)
assert planner.solver._rows.matrix.nnz > LONG_SOLVE_ENTRIES

easy = np.broadcast_to(rng.random((1, steps, 1, actions)), (1, *domain.shape))  # the shortsighted policy is best
print(planner.minimize(easy).status, flush=True)

best = bind("dp", domain).minimize(easy).objective[0]

sent = []
def press():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

for delay in sys.argv[1:]:
    threading.Timer(float(delay), press).start()
    try:
        planner.minimize(rng.random((1, *domain.shape)))
        print("finished")
    except KeyboardInterrupt:
        print("interrupted", time.perf_counter() - sent[-1], flush=True)
    again = planner.minimize(easy)
    print(again.status, abs(again.objective[0] - best))
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_a_long_solve_at_once_and_the_planner_lives_on() -> None:
    delays = ["0.1", "0.5"]  # before the first pivot and after
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, *delays], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    before, *lines = done.stdout.splitlines()
    assert before == "optimal"
    assert len(lines) == 2 * len(delays)
    for pressed, after in zip(lines[::2], lines[1::2], strict=True):
        word, seconds = pressed.split()
        assert word == "interrupted"
        assert float(seconds) < 5.0
        status, error = after.split()
        assert status == "optimal"
        assert float(error) < 1e-9


INTERRUPTED_OVER_A_BOX = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts out deaf to it
import numpy as np
from amdp import BernsteinBox, MarkovPolicies, bind

rng = np.random.default_rng(0)
p = rng.dirichlet(np.full(20, 0.3), size=(20, 20, 4))
radius = np.sqrt(p / 100) + 0.01
box = BernsteinBox(np.maximum(0, p - radius), np.minimum(1, p + radius))
planner = bind("lp", MarkovPolicies(box))
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.perf_counter()
try:
    planner.minimize(rng.normal(size=(1, 20, 20, 4)))
except KeyboardInterrupt:
    print(time.perf_counter() - began)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_a_solve_over_a_box_and_the_process_ends_in_peace() -> None:
    # The solve takes about ten seconds. A solver left running would abort the process at its end.
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_OVER_A_BOX], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 5.0


@pytest.mark.parametrize("threads", [(1, 2, 1), (2, 1, 2)])
def test_planners_with_different_numbers_of_threads_live_side_by_side(threads: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    domain = MarkovPolicies(Kernel(rng.dirichlet(np.ones(3), size=(3, 3, 2))))
    planners = [bind(OccupancyProgram(threads=number), domain) for number in threads]
    cost = rng.random((1, *domain.shape))
    assert {planner.minimize(cost).status for planner in planners * 2} == {Status.OPTIMAL}


# --- the rows -------------------------------------------------------------------------------------------------------


@given(world=kernel_worlds(), seed=seeds)
def test_occupancy_measures_satisfy_the_rows_of_a_kernel_and_others_do_not(world: World, seed: int) -> None:
    kernel = world.domain.dynamics
    assert isinstance(kernel, SingleKernel)
    rows = polytope(world.domain)
    policies = random_policies(1, kernel.shape, np.random.default_rng(seed))
    x = occupancy(kernel, policies, world.domain.initial).reshape(-1)
    assert rows.n_pairs == rows.matrix.shape[1] == len(x)
    assert_allclose(rows.matrix @ x, rows.row_lower, rtol=0, atol=1e-12)
    assert_array_equal(rows.row_lower, rows.row_upper)
    moved = x.copy()
    moved[seed % len(x)] += 0.1
    assert np.abs(rows.matrix @ moved - rows.row_lower).max() > 0.01


@given(world=box_worlds(), seed=seeds)
def test_flows_of_kernels_inside_satisfy_the_rows_of_a_box(world: World, seed: int) -> None:
    box, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(box, BernsteinBox)
    rng = np.random.default_rng(seed)
    kernel = kernel_inside(box, rng)
    pairs = occupancy(kernel, random_policies(1, box.shape, rng), initial)[0]
    flow = (pairs[:-1, ..., None] * kernel.p[:-1])[box.upper[:-1] > 0]
    rows = polytope(world.domain)
    activity = rows.matrix @ np.concatenate([pairs.reshape(-1), flow.reshape(-1)])
    assert (activity >= rows.row_lower - 1e-12).all()
    assert (activity <= rows.row_upper + 1e-12).all()


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("kind", ["dense", "box"])
@pytest.mark.parametrize("name", ["lp", "pulp", "cvxpy"])
def test_an_exported_model_has_names_and_the_same_optimum_in_another_program(
    name: str, suffix: str, kind: str, tmp_path: Path
) -> None:
    shape: Shape = (3, 3, 2)
    rng = np.random.default_rng(12)
    kernel = random_kernel("dense", shape, rng)
    domain = MarkovPolicies(box_around(kernel, 0.2, rng) if kind == "box" else kernel, 1)
    cost = rng.normal(size=shape)
    path = tmp_path / f"model{suffix}"
    oracle(name).export(domain, cost, path)  # type: ignore[attr-defined]
    other = solved_again(path)
    assert other.getInfo().objective_function_value == pytest.approx(plan("dp", domain, cost).objective, abs=1e-6)
    columns, rows = other.getLp().col_names_, other.getLp().row_names_
    opening, closing = "()" if suffix == ".lp" else "[]"  # the LP format reads square brackets otherwise
    assert {f"x{opening}2,1,0{closing}", f"x{opening}0,2,1{closing}"} <= set(columns)
    assert f"balance{opening}0,1{closing}" in rows
    assert (f"q{opening}0,0,0,0{closing}" in columns) == (kind == "box")
    assert (f"cap{opening}0,0,0,0{closing}" in rows) == (kind == "box")


def test_the_names_of_a_model_stand_at_their_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    domain = MarkovPolicies(random_kernel("dense", (3, 3, 2), rng), 1)
    cost = rng.normal(size=(3, 3, 2))
    for name in ("lp", "pulp", "cvxpy"):
        oracle(name).export(domain, cost, tmp_path / "model.mps")  # type: ignore[attr-defined]
        model = solved_again(tmp_path / "model.mps").getLp()
        prices = dict(zip(model.col_names_, model.col_cost_, strict=True))
        assert all(prices[f"x[{h},{s},{a}]"] == pytest.approx(cost[h, s, a]) for h, s, a in np.ndindex(3, 3, 2))
        entering = dict(zip(model.row_names_, model.row_lower_, strict=True))
        assert entering["balance[0,1]"] == 1.0
        assert entering["balance[0,0]"] == 0.0


def test_a_model_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    domain = MarkovPolicies(random_kernel("dense", (3, 3, 2), np.random.default_rng(14)))
    path = tmp_path / "model.lp"
    path.write_text("old")
    oracle("lp").export(domain, np.zeros((3, 3, 2)), path)  # type: ignore[attr-defined]
    assert "old" not in path.read_text()
    with pytest.raises(InvalidInput, match=r"no-such-folder/model\.lp cannot be written: No such file"):
        oracle("lp").export(domain, np.zeros((3, 3, 2)), tmp_path / "no-such-folder/model.lp")  # type: ignore[attr-defined]
    assert [file.name for file in tmp_path.iterdir()] == ["model.lp"]


def solved_again(path: Path) -> Any:
    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    assert other.readModel(str(path)) == highspy.HighsStatus.kOk
    other.run()
    return other
