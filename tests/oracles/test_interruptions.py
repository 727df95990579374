"""Exceptions at any moment, two threads at once, calls from within: a planner answers rightly or refuses, always."""

import os
import pickle
import signal
import subprocess
import sys
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from linecache import getline
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import box_around, random_kernel

import amdp
from amdp import MarkovPolicies, OracleError, Planner, Plans, Status, bind, projection
from amdp.arrays import Costs
from amdp.model.domains import Domain
from amdp.oracles import interrupts
from amdp.oracles.interrupts import interruptible
from amdp.oracles.markov import linear_program
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.oracles.projection.base import bind_projection

SHAPE = (4, 5, 3)
RNG = np.random.default_rng(0)
KERNEL = MarkovPolicies(random_kernel("dense", SHAPE, RNG), 1)
BOX = MarkovPolicies(box_around(random_kernel("dense", (3, 3, 2), RNG), 0.2, RNG), 1)
DOMAINS = {"kernel": KERNEL, "box": BOX}
INSIDE = str(Path(amdp.__file__).parent / "oracles")


# --- exceptions -----------------------------------------------------------------------------------------------------


def is_interrupted(call: Callable[[], object], moment: int) -> bool:
    """Run `call` with Ctrl-C at the given line of the oracles' code that it comes to; whether it came that far.

    Lines with `with` are left out: a trace sees them a second time on the way out, before the lock is given back.
    Python itself does not look for signals there.
    """
    lines = 0

    def at_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if event == "line" and not getline(frame.f_code.co_filename, frame.f_lineno).strip().startswith("with "):
            lines += 1
            if lines == moment:
                raise KeyboardInterrupt
        return at_line

    def at_call(frame: FrameType, event: str, argument: Any) -> Any:
        return at_line if frame.f_code.co_filename.startswith(INSIDE) else None

    before = sys.gettrace()
    sys.settrace(at_call)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    assert lines < moment
    return False


def moments(call: Callable[[], object], many: int) -> Iterator[int]:
    """So many moments of a call, from the first to the last line; all of them if there are fewer."""
    total = 1
    while is_interrupted(call, 2 * total):
        total *= 2
    yield from sorted({*range(1, 2 * total, max(1, 2 * total // many))})


CASES = [("lp", "kernel", 150), ("lp", "box", 60), ("pulp", "kernel", 25), ("cvxpy", "kernel", 20)]


@pytest.mark.parametrize("in_a_thread", [False, True], ids=["here", "thread"])
@pytest.mark.parametrize(("name", "kind", "many"), CASES)
def test_after_an_exception_at_any_moment_a_planner_is_as_good_as_new(
    name: str, kind: str, many: int, in_a_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_a_thread:
        monkeypatch.setattr(linear_program, "LONG_SOLVE_ENTRIES", 0)
        monkeypatch.setattr(linear_program, "LONG_BOX_SOLVE_ENTRIES", 0)
        monkeypatch.setattr(interrupts, "STOP_SECONDS", 10.0)
    domain, rng = DOMAINS[kind], np.random.default_rng(1)
    steps, _, actions = domain.shape
    hard = rng.random((1, *domain.shape))
    easy = np.broadcast_to(rng.random((1, steps, 1, actions)), hard.shape)  # the shortsighted policy is best
    wanted = bind("dp", domain).minimize(easy)
    fresh = bind(name, domain).minimize(easy).report.iterations
    planner = bind(name, domain)
    for moment in moments(lambda: planner.minimize(hard), many):
        planner.minimize(easy)
        is_interrupted(lambda: planner.minimize(hard), moment)
        found = planner.minimize(easy)
        assert found.status is Status.OPTIMAL
        assert (found.report.rebuilds, found.report.improved) == (0, 0)
        assert_array_equal(found.actions, wanted.actions)
        assert found.report.iterations <= fresh


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_after_an_exception_at_any_moment_a_projector_is_as_good_as_new(solver: str) -> None:
    domain = BOX
    projector = bind_projection(projection("cvxpy", solver=solver, gap=1e-6), domain)
    points = np.random.default_rng(2).normal(size=(2, *projector.point_shape))
    wanted = bind_projection(projection("cvxpy", solver=solver, gap=1e-6), domain).project(points[1])
    for moment in moments(lambda: projector.project(points[0]), 8):
        is_interrupted(lambda: projector.project(points[0]), moment)
        assert_allclose(projector.project(points[1]).measure, wanted.measure, rtol=0, atol=1e-5)


def test_what_a_solver_raises_by_itself_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = np.random.default_rng(3).random((1, *KERNEL.shape))

    def broken(*arguments: Any, **options: Any) -> None:
        raise ValueError("Cannot unpack invalid solution")

    for name, method in (("pulp", "pulp.LpProblem.solve"), ("cvxpy", "cvxpy.Problem.solve")):
        planner = bind(name, KERNEL)
        with monkeypatch.context() as patched:
            patched.setattr(method, broken)
            plans = planner.minimize(costs)
        assert plans.status is Status.FAILED
        assert plans.report.note == "ValueError: Cannot unpack invalid solution"
        assert planner.minimize(costs).status is Status.OPTIMAL


# --- threads --------------------------------------------------------------------------------------------------------

SHARED = """
import sys
from threading import Thread
import numpy as np
from amdp import Kernel, MarkovPolicies, bind

rng = np.random.default_rng(0)
domain = MarkovPolicies(Kernel(rng.dirichlet(np.ones(6), size=(5, 6, 3))))
judge = bind("dp", domain)

def work(planner, seed, solves, answers):
    rng = np.random.default_rng(seed)
    for _ in range(solves):
        costs = rng.normal(size=(1, *domain.shape))
        try:
            answers.append(np.array_equal(planner.minimize(costs).actions, judge.minimize(costs).actions))
        except BaseException as problem:
            answers.append(False)

for name, solves in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    planner, answers = bind(name, domain), []
    threads = [Thread(target=work, args=(planner, seed, solves, answers)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(name, answers.count(True), answers.count(False), flush=True)
"""


def test_a_planner_that_threads_share_gives_each_its_own_answer() -> None:
    words = ["lp", "100", "pulp", "10", "cvxpy", "10"]  # how often each of four threads solves
    command = [sys.executable, "-c", SHARED, *words]  # a process of its own: solvers that meet may end it
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "lp 400 0\npulp 40 0\ncvxpy 40 0\n"), done.stderr


class Waiting(Planner):
    """Says when it is inside, and stays there until told to go."""

    def __init__(self, domain: Domain = KERNEL) -> None:
        super().__init__(BackwardInduction(), domain)
        self.inside, self.go, self.visitors, self.forgotten = Event(), Event(), 0, 0

    def minimize(self, costs: Costs) -> Plans:
        self.visitors += 1
        assert self.visitors == 1
        self.inside.set()
        self.go.wait()
        self.visitors -= 1
        return BackwardInduction().bind(self.domain).minimize(costs)

    def forget(self) -> None:
        self.forgotten += 1
        self.visitors = 0


class Asking(Waiting):
    """Asks its parent's method, and may ask itself, as a callback might."""

    asks_itself = False

    def minimize(self, costs: Costs) -> Plans:
        self.go.set()
        return self.minimize(costs) if self.asks_itself else super().minimize(costs)


def test_a_second_thread_waits_for_its_turn_with_any_planner() -> None:
    planner, costs = Waiting(), np.zeros((1, *SHAPE))
    answers: list[Plans] = []
    threads = [Thread(target=lambda: answers.append(planner.minimize(costs))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert planner.inside.wait(60)
    planner.go.set()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 2


def test_a_call_from_within_is_refused_and_one_by_way_of_super_is_not() -> None:
    planner, costs = Asking(), np.zeros((1, *SHAPE))
    assert planner.minimize(costs).status is Status.OPTIMAL
    planner.asks_itself = True
    with pytest.raises(OracleError, match="minimize was called from within itself; bind a second Asking"):
        planner.minimize(costs)
    planner.asks_itself = False
    assert planner.minimize(costs).status is Status.OPTIMAL
    assert planner.forgotten == 1


def test_a_planner_that_is_at_work_can_be_pickled_and_its_copy_is_free() -> None:
    planner = bind("lp", KERNEL)
    planner._solving.lock.acquire()
    copy = pickle.loads(pickle.dumps(planner))
    assert copy.minimize(np.zeros((1, *SHAPE))).status is Status.OPTIMAL


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def test_work_that_ends_is_done_and_what_it_raises_is_raised() -> None:
    done: list[int] = []
    interruptible(lambda: done.append(1), lambda: done.append(2))
    assert done == [1]
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, lambda: None)


def test_work_that_does_not_hear_is_left_to_end_by_itself() -> None:
    heard, end, ended = Event(), Event(), Event()

    def work() -> None:
        try:
            interrupt_main()
            end.wait(60)
        finally:
            ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts out deaf to it
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(work, heard.set, patience=0.01)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard.is_set()
    assert not ended.is_set()
    end.set()
    assert ended.wait(60)


PRESSED = """
import os, signal, sys, tempfile, threading, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts out deaf to it
import numpy as np
from amdp import BernsteinBox, MarkovPolicies, bind, oracle

pressed = []
def press():
    pressed.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

def wrapped(inner):
    def begun(work, *arguments, **options):
        if not callable(work):  # a program of its own: one that does not end by itself
            threading.Timer(0.2, press).start()
            return inner([sys.executable, "-c", "import time; time.sleep(1000)"], *arguments, **options)
        def pressing():  # in the thread of the solver: the signal is there before it can be done
            press()
            return work()
        return inner(pressing, *arguments, **options)
    return begun

for name, solver, into, method, size in {heard}:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(size, 0.3), size=(size, size, 4))
    radius = np.sqrt(p / 100) + 0.01
    domain = MarkovPolicies(BernsteinBox(np.maximum(0, p - radius), np.minimum(1, p + radius)))
    planner = bind(oracle(name, solver=solver), domain)
    module = __import__(into, fromlist=[method])
    inner = getattr(module, method)
    setattr(module, method, wrapped(inner))
    try:
        planner.minimize(rng.normal(size=(1, *domain.shape)))
        print("finished")
    except KeyboardInterrupt:
        print(time.perf_counter() - pressed[-1], os.listdir(tempfile.gettempdir()), flush=True)
    setattr(module, method, inner)
"""
HEARD = [
    ("pulp", "HiGHS", "amdp.oracles.highs", "interruptible", 10),
    ("pulp", "CBC", "amdp.oracles.pulp_solvers", "run", 10),
    ("cvxpy", "HIGHS", "amdp.oracles.highs", "interruptible", 10),
    ("cvxpy", "CLARABEL", "amdp.oracles.cvxpy_solvers", "interruptible", 12),
]


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_is_heard_while_a_solver_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PRESSED.replace("{heard}", repr(HEARD))]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(HEARD)
    for case, line in zip(HEARD, lines, strict=True):
        seconds, left = line.split(maxsplit=1)
        assert float(seconds) < 5.0, case
        assert left == "[]", case
