"""Ctrl-C during compiled work: Python raises it only between its own instructions, so the work gets a thread."""

import ctypes
from collections.abc import Callable
from math import inf
from threading import Event, Thread, current_thread, main_thread
from time import perf_counter, sleep
from typing import TypeVar

POLL_SECONDS = 0.05  # seconds between two looks at pending signals, where waiting itself does not wake up for them
STOP_SECONDS = 1.0  # seconds that a solver is given to stop

Result = TypeVar("Result")


def interruptible(work: Callable[[], Result], stop: Callable[[], object], patience: float = STOP_SECONDS) -> Result:
    """What `work` returns; an exception that comes meanwhile, such as Ctrl-C, stops the work and is raised.

    `stop` makes compiled code return, and Python code of the work is interrupted. Work that does not stop within
    `patience` seconds goes on by itself until its next look at what `stop` has set; the process waits for that before
    it ends. Only the main thread hears Ctrl-C: in any other the work is simply done.
    """
    if current_thread() is not main_thread():
        return work()
    results, problems, done = list[Result](), list[BaseException](), Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as problem:
            problems.append(problem)
        finally:
            done.set()

    worker = Thread(target=run)
    try:
        worker.start()
        _wait(done, worker, inf)
    except BaseException:
        stop()
        _interrupt(worker)
        _wait(done, worker, patience)
        raise
    if problems:
        raise problems[0]
    return results[0]


def _wait(done: Event, worker: Thread, seconds: float) -> None:
    # Not Thread.join: once interrupted, it takes a running thread for a finished one.
    end = perf_counter() + seconds
    while worker.is_alive() and perf_counter() < end:
        if done.wait(POLL_SECONDS):
            sleep(0)  # for the last statements of the thread, which follow `done`


def _interrupt(worker: Thread) -> None:
    """Raise `KeyboardInterrupt` in the Python code of a thread."""
    if worker.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(KeyboardInterrupt))
