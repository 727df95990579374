"""HiGHS as the oracles use it: models from arrays, solves that Ctrl-C stops, one scheduler for the whole process."""

from collections.abc import Mapping
from threading import Event, Lock
from time import sleep
from typing import Any
from weakref import WeakSet

import highspy
import numpy as np

from amdp.arrays import Floats
from amdp.oracles.interrupts import POLL_SECONDS, interruptible
from amdp.oracles.solver_options import SolverOptions, refused
from amdp.text import suggestion

ACCURACY = {  # of the linear programs
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "small_matrix_value": 1e-12,  # chances below the default of 1e-9 would be dropped
}


def linear_model(
    matrix: Any, cost: Floats, row_lower: Floats, row_upper: Floats, lower: Floats | None = None, upper: Any = None
) -> Any:
    """Minimize `<cost, x>`, `row_lower <= matrix @ x <= row_upper`; without other bounds, `x >= 0`."""
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = cost
    model.col_lower_ = np.zeros(model.num_col_) if lower is None else lower
    model.col_upper_ = np.full(model.num_col_, highspy.kHighsInf) if upper is None else upper
    model.row_lower_, model.row_upper_ = row_lower, row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    return model


# Options of HiGHS for which the oracles have settings.
SETTINGS = {"threads": "threads", "time_limit": "seconds", "output_flag": "log", "log_to_console": "log"}


def configured(options: Mapping[str, Any]) -> Any:
    """A HiGHS with these options, or `InvalidInput` with the first that it does not know or whose value it refuses."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)  # it would print why it refuses
    for name, value in options.items():
        status, usual = highs.getOptionValue(name)
        if status != highspy.HighsStatus.kOk:
            raise refused(name, value, f"HiGHS has no such option; {suggestion(name, _known())}".rstrip("; "))
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise refused(name, value, f"HiGHS refuses this value; by itself it takes {usual!r}")
    return highs


def _known() -> list[str]:
    return [name for name in dir(highspy.HighsOptions) if not name.startswith("_")]


def require_options(options: SolverOptions) -> None:
    """Refuse options that HiGHS does not know, or for which the oracles have settings."""
    options.require_free(SETTINGS)
    configured(options)


def stoppable(highs: Any) -> Event:
    """An event that, once set, ends the runs of `highs` at their next iteration."""
    stop = Event()

    def look(event: Any) -> None:
        if stop.is_set():
            event.interrupt()

    highs.cbSimplexInterrupt += look
    highs.cbIpmInterrupt += look
    return stop


def run(highs: Any, threads: int, stop: Event | None = None) -> None:
    """Solve; with an event of `stoppable`, Ctrl-C ends it. What HiGHS does before it iterates it finishes first."""
    if stop is None:
        _run(highs, threads)
    else:
        interruptible(lambda: _run(highs, threads), stop.set)


class _Solve:
    """A token for one solve that is running in some thread."""


_threads = 1  # what the scheduler of HiGHS was made for
_turn = Lock()
_running: WeakSet[_Solve] = WeakSet()  # weak: whatever ends a solve, it does not stay here


def _run(highs: Any, threads: int) -> None:
    solve = _begin(threads)
    try:
        highs.run()
    finally:
        _running.discard(solve)


def _begin(wanted: int) -> _Solve:
    """A solve with this number of threads; those that run in other threads with another number are waited for."""
    global _threads
    while True:
        with _turn:
            if wanted != _threads and len(_running) == 0:
                highspy.Highs.resetGlobalScheduler(True)
                _threads = wanted
            if wanted == _threads:
                solve = _Solve()
                _running.add(solve)
                return solve
        sleep(POLL_SECONDS)
