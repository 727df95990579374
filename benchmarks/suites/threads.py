"""Products held to one thread against products on all cores, on the wall's clock: alone, and beside busy processes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numba import njit

from amdp.kernels import blas, threads
from amdp.kernels.products import multiply
from benchmarks.results import Row, at_least, faster
from benchmarks.timing import Call, Effort, Times

Rows = Iterator[Row]

SEED = 20_260
SOLVES = 64  # the rows of a product: solves of a batch
STEPS = 50  # products of a call
BUSY = 2
REST = 0.05  # seconds after which the library's threads have stopped looking out for work


def compiled(effort: Effort) -> Rows:
    """The products of a batched sweep, in compiled code."""
    for states, actions in ((10, 4), (80, 5), (200, 5)):
        left, right, out = _operands(states, actions)
        held, split = partial(_held, left, right, out, STEPS), partial(_split, left, right, out, STEPS)
        yield from _compared("compiled products", states, actions, held, split, effort)


def of_numpy(effort: Effort) -> Rows:
    """The same products by numpy."""
    for states, actions in ((10, 4), (80, 5), (200, 5)):
        left, right, _ = _operands(states, actions)
        held, split = partial(_repeated, threads.multiply, left, right), partial(_repeated, np.matmul, left, right)
        yield from _compared("products of numpy", states, actions, held, split, effort)


def small(effort: Effort) -> Rows:
    """What holding costs where the library stays on one thread by itself."""
    left, right, out = np.ones(3), np.ones((3, 6)), np.ones(6)
    calls: dict[str, Call] = {
        "held": partial(_held, left, right, out, 100 * STEPS),
        "not held": partial(_split, left, right, out, 100 * STEPS),
    }
    with _all_cores():
        times = _side_by_side(calls, effort)
    yield faster("compiled products", {"S": 3, "A": 2, "n": 1}, times, "held", "not held", at_least(0.8))


def _operands(states: int, actions: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(SEED)
    pairs = states * actions
    return rng.random((SOLVES, states)), rng.random((states, pairs)), np.empty((SOLVES, pairs))


def _compared(name: str, states: int, actions: int, held: Call, split: Call, effort: Effort) -> Rows:
    cores = os.cpu_count() or 1
    other = f"{cores} threads"
    for busy in (0, BUSY):
        with _all_cores(), _neighbours(busy):
            times = _side_by_side({"held": held, other: split}, effort)
        note = f"beside {busy} busy processes" if busy else "nothing else of ours runs"
        goal = at_least(0.9) if SOLVES * states**2 * actions >= blas.LARGE_OF_MATRICES else None  # others are not split
        yield faster(name, {"S": states, "A": actions, "n": SOLVES}, times, "held", other, goal, note)


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _held(left: Any, right: Any, out: Any, count: int) -> None:
    for _ in range(count):
        multiply(left, right, out)


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _split(left: Any, right: Any, out: Any, count: int) -> None:
    for _ in range(count):
        np.dot(left, right, out)


def _repeated(product: Any, left: Any, right: Any) -> None:
    for _ in range(STEPS):
        product(left, right)


@contextmanager
def _all_cores() -> Iterator[None]:
    """As many threads as cores: what a user has who says nothing."""
    setters = [setter for setter in map(blas.setter, (blas.NUMPY, blas.SCIPY)) if setter is not None]
    before = [setter(os.cpu_count() or 1) for setter in setters]
    try:
        yield
    finally:
        for setter, count in zip(setters, before, strict=True):
            setter(count)


@contextmanager
def _neighbours(count: int) -> Iterator[None]:
    """Processes that do nothing but take processors."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _side_by_side(contestants: Mapping[str, Call], effort: Effort) -> Times:
    """As `timing.side_by_side`, by the wall's clock; the library's threads rest before each."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for call in contestants.values():
        call()
    began = perf_counter()
    while len(times["held"]) < effort.rounds or perf_counter() - began < effort.seconds:
        for name, call in contestants.items():
            sleep(REST)
            started = perf_counter()
            call()
            times[name].append(perf_counter() - started)
    return Times(times)


CASES = {"compiled": compiled, "of-numpy": of_numpy, "small": small}
