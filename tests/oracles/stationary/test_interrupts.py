"""Ctrl-C is heard in every phase of every stationary oracle; then nothing runs, and the planner is as good as new."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

from amdp import Status, bind, oracle
from amdp.oracles import subprocesses
from amdp.oracles.stationary.search import Progress
from benchmarks.brute_force import plain_optimum
from benchmarks.stationary_worlds import world

PATIENCE = 60.0  # seconds; the phases below take more, most of them hours
INTO_PHASE = 0.1  # seconds after which the signal comes
INTO_SOLVER = 1.0  # the same where a solver has to be started first

# Each begins phases in which only a signal can stop it, after everything in them was compiled on a small world.
SCRIPT = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts out deaf to it
import numpy as np
from amdp import bind, kernels, oracle
from amdp.oracles import subprocesses
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary import search
from amdp.oracles.interrupts import interruptible
from amdp.oracles.stationary.enumeration import Table
from amdp.oracles.stationary.branch_and_bound import Mixing
from benchmarks.stationary_worlds import world

def say(name, module):
    inside = getattr(module, name)
    def wrapped(*given, **named):
        print("phase", flush=True)
        return inside(*given, **named)
    setattr(module, name, wrapped)
    return lambda: setattr(module, name, inside)

def solve(name, family, shape, **options):
    small, price = world(family, "noise", (4, 3, 3), np.random.default_rng(0))
    bind(oracle(name, **options), small).minimize(price[None])
    domain, cost = world(family, "noise", shape, np.random.default_rng(1))
    planner = bind(oracle(name, **options), domain)
    return lambda: planner.minimize(cost[None])

def table(shape):
    small, _ = world("rare", "noise", (4, 3, 3), np.random.default_rng(0))
    Table.of(Chains.of(small), 100, 2**20)
    domain, _ = world("rare", "noise", shape, np.random.default_rng(1))
    listed = bind(oracle("enumeration", table=2**50), domain).search
    return lambda: listed.horizon(2, search.SearchClock(np.inf, None))

def mixing(shape):
    small, _ = world("dense", "noise", (4, 3, 3), np.random.default_rng(0))
    Mixing.of(Chains.of(small))
    domain, _ = world("dense", "noise", shape, np.random.default_rng(1))
    watch, chains = search.SearchClock(np.inf, None), Chains.of(domain)
    assert chains.is_long
    return lambda: interruptible(lambda: Mixing.of(chains, halt=watch.halt), watch.interrupt)

def count(shape):
    small, _ = world("dense", "noise", (4, 3, 3), np.random.default_rng(0))
    Chains.of(small).count_closed(100)
    domain, _ = world("dense", "noise", shape, np.random.default_rng(1))
    return lambda: Chains.of(domain).count_closed(10**12)

for work, announce in {phases}:
    run, silence = work(), announce()
    print("ready", flush=True)
    try:
        run()
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", len(subprocesses._idle), threading.active_count(), flush=True)
    silence()
"""

PHASES = {
    "milp": ('solve("milp", "dense", (200, 14, 3))', 'say("run_in_subprocess", search)'),
    "milp-pulp, HiGHS": ('solve("milp-pulp", "dense", (200, 14, 3))', 'say("run_in_subprocess", search)'),
    "milp-pulp, CBC": ('solve("milp-pulp", "dense", (200, 14, 3), solver="CBC")', 'say("run_in_subprocess", search)'),
    "descents": ('solve("local-search", "sparse", (5000, 200, 4))', 'say("descend", kernels.search.chains)'),
    "mixing": ("mixing((3, 100, 100))", 'say("mix", kernels.search.couplings)'),
    "branch and bound": (
        'solve("branch-and-bound", "sparse", (300, 40, 3), threads=2)',
        'say("hand_out", kernels.search.shares)',
    ),
    "cycles": ('solve("cycles", "deterministic", (1000, 60, 4))', 'say("explore", kernels.search.cycles)'),
    "enumeration": ('solve("enumeration", "rare", (2000, 19, 3), limit=10**10)', 'say("grow", kernels.search.trees)'),
    "table": ("table((10**6, 10, 3))", 'say("rest", kernels.search.tables)'),
    "counting": ("count((50, 40, 3))", 'say("list_closed", kernels.search.trees)'),
}


IN_SOLVERS = [name for name, (_, announce) in PHASES.items() if "run_in_subprocess" in announce]
ELSEWHERE = [name for name in PHASES if name not in IN_SOLVERS]


def interrupted(names: list[str], folder: Path, after: float) -> list[str]:
    """What one process says after a SIGINT in each of its phases, which it announces."""
    phases = ", ".join("(lambda: {}, lambda: {})".format(*PHASES[name]) for name in names)
    script = SCRIPT.replace("{phases}", f"[{phases}]")
    root, said = Path(__file__).parents[3], []
    environment = os.environ | {"PYTHONPATH": str(root), "TMPDIR": str(folder)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root, env=environment
    ) as running:
        assert running.stdout is not None
        lines = iter(running.stdout.readline, "")
        for name in names:
            assert "ready\n" in lines
            assert "phase\n" in lines
            with suppress(subprocess.TimeoutExpired):
                running.wait(after)  # well into the phase
            running.send_signal(signal.SIGINT)
            deaf = Timer(PATIENCE, running.kill)
            deaf.start()
            answer = next((line for line in lines if line != "phase\n"), "Ctrl-C was not heard")
            deaf.cancel()
            said.append(f"{name}: {answer.strip()}")
    return said


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on POSIX")
@pytest.mark.parametrize(
    ("phases", "after"), [(IN_SOLVERS, INTO_SOLVER), (ELSEWHERE, INTO_PHASE)], ids=["in solvers", "elsewhere"]
)
def test_ctrl_c_is_heard_and_leaves_nothing_behind(phases: list[str], after: float, tmp_path: Path) -> None:
    assert interrupted(phases, tmp_path, after) == [f"{name}: interrupted 0 1" for name in phases]
    assert not list(tmp_path.iterdir()), "files of a solver were left"


def stop_at(number: int) -> Callable[[Progress], None]:
    """A listener at which a Ctrl-C comes at this report; the first one of a program is made before its solver runs."""
    asked: list[Progress] = []

    def listen(now: Progress) -> None:
        asked.append(now)
        if len(asked) == number:
            raise KeyboardInterrupt

    return listen


@pytest.mark.parametrize("name", ["milp", "branch-and-bound", "enumeration", "local-search"])
def test_after_ctrl_c_a_planner_is_as_good_as_new(name: str) -> None:
    shape = (8, 4, 3) if name == "milp" else (60, 7, 3)
    domain, cost = world("sparse", "noise", shape, np.random.default_rng(4))
    planner = bind(oracle(name), domain)
    planner.on_progress = stop_at(2 if name == "milp" else 1)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        planner.minimize(cost[None])
    assert not subprocesses._idle or name != "milp"
    planner.on_progress = None  # type: ignore[attr-defined]
    for _ in range(2):
        plan, fresh = planner.minimize(cost[None])[0], bind(oracle(name), domain).minimize(cost[None])[0]
        assert (plan.actions == fresh.actions).all()
        assert (plan.objective, plan.bound) == pytest.approx((fresh.objective, fresh.bound), rel=1e-12)
        assert name == "local-search" or plan.objective == pytest.approx(plain_optimum(domain, cost), rel=1e-9)
        assert name == "local-search" or plan.status is Status.OPTIMAL
