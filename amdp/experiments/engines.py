"""Where runs are played: processes of this machine, a Dask cluster, or any executor of the standard library.

A run's result depends on its settings alone, so that an engine decides only when it is there.

Libraries of process pools were tried for `LocalPool` and not taken. The workers of a pebble pool share one pipe and its
locks, and a worker that is killed at the wrong moment breaks the pool for all; loky ends all runs with one worker.
"""

import ctypes
import os
import re
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self
from weakref import WeakKeyDictionary

from amdp import registry
from amdp.arrays import require_whole
from amdp.errors import InvalidInput
from amdp.experiments.execution import execute, versions
from amdp.experiments.record import Record
from amdp.experiments.settings import RunSettings
from amdp.text import quoted

LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "RAYON", "NUMBA", "NUMEXPR")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}
MOST_WORKERS = 4096
FAILED_STARTS = 5  # workers in a row that end before they have started
GUARD = 'a script that plays runs must do so under `if __name__ == "__main__":`, because each worker imports it'
RUNS_AHEAD = 2  # that each worker of a cluster is given, so that it need not wait for the next one
CONNECTION_TIMEOUT = "10s"
ADDRESS = re.compile(
    r"((tcp|tls|ucx|wss?)://)?(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\]]+):\d{1,5}(/\S*)?|inproc://[^\s/]+/\d+/\d+"
)
RECOUNT_SECONDS = 5.0  # after which the workers of a cluster are counted anew


@dataclass(frozen=True)
class Playing:
    """A run under way."""

    row: int  # the row of the progress table that it belongs to
    rounds: int
    total: int
    seconds: float

    @property
    def share(self) -> float:
        """The share of its rounds that are played, from 0 to 1."""
        return self.rounds / self.total if self.total else 0.0


class Engine(ABC):
    """Plays runs; used as a context, at whose end unfinished runs are abandoned."""

    notes: Sequence[str] = ()  # what a user should know of it

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many runs it takes at a time."""

    @abstractmethod
    def submit(self, settings: RunSettings, row: int, unfinished: Path | None = None) -> "Future[Record]":
        """Begin a run, in a row of the progress table; a long one may be kept in the file `unfinished` meanwhile."""

    @abstractmethod
    def lost(self, problem: BaseException) -> bool:
        """Whether the worker is to blame for a future's exception: then the run may be tried again."""

    def began(self, future: "Future[Record]") -> bool:
        """Whether a worker that was lost had begun the run, so that the run may be to blame."""
        return True

    def playing(self) -> list[Playing]:
        """The runs under way, where the workers report their rounds."""
        return []

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *problem: object) -> None: ...


class LocalPool(Engine):
    """Processes of this machine, started afresh (`spawn`), with one thread each.

    Each has a pool of its own: one that is killed takes its own run with it, and no other.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._size = cores() if workers is None else workers
        require_whole("workers", self._size, 1, MOST_WORKERS)
        self._workers: list[_Worker] = []
        self._worker_of: WeakKeyDictionary[Future[Record], _Worker] = WeakKeyDictionary()
        self._failed_starts = 0

    def __enter__(self) -> Self:
        leave_if_importing()
        self._context = get_context("spawn")
        with ExitStack() as stack:
            stack.enter_context(_one_thread())
            self._workers_end, self._runners_end = self._context.Pipe(duplex=False)
            stack.callback(self._workers_end.close)
            stack.callback(self._runners_end.close)
            self._workers = [_Worker(self._context, self._workers_end) for _ in range(self._size)]
            stack.callback(self._close_workers)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *problem: object) -> None:
        self._open.close()

    @property
    def capacity(self) -> int:
        return self._size

    def submit(self, settings: RunSettings, row: int, unfinished: Path | None = None) -> "Future[Record]":
        index, worker = next((i, worker) for i, worker in enumerate(self._workers) if not worker.busy)
        if worker.progress.started:
            self._failed_starts = 0
        try:
            future = worker.submit(settings, row, unfinished)
        except BrokenProcessPool:  # it was killed
            worker = self._replace(index)
            future = worker.submit(settings, row, unfinished)
        self._worker_of[future] = worker
        return future

    def lost(self, problem: BaseException) -> bool:
        return isinstance(problem, BrokenProcessPool)

    def began(self, future: "Future[Record]") -> bool:
        return bool(self._worker_of[future].progress.started)

    def playing(self) -> list[Playing]:
        now = time.monotonic()
        reports = [worker.progress for worker in self._workers if worker.busy and worker.progress.playing]
        return [Playing(report.row, report.rounds, report.total, now - report.began) for report in reports]

    def _replace(self, index: int) -> "_Worker":
        """A new worker in place of one that was lost; after many that never started there is no other."""
        lost = self._workers[index]
        lost.close()
        self._failed_starts += not lost.progress.started
        if self._failed_starts >= FAILED_STARTS:
            raise InvalidInput(f"{FAILED_STARTS} workers in a row ended before they could begin; {GUARD}") from None
        self._workers[index] = _Worker(self._context, self._workers_end)
        return self._workers[index]

    def _close_workers(self) -> None:
        if any(worker.busy for worker in self._workers):
            self._runners_end.close()  # the workers see it, and go
        for worker in self._workers:
            worker.close()


def leave_if_importing() -> None:
    """End this process if it is a worker that still imports an unguarded script: the runner says why, once."""
    if getattr(current_process(), "_inheriting", False):
        sys.exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for processes that are started here: numpy looks as a worker imports it, before any code of ours."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Progress(ctypes.Structure):
    """What a worker tells of itself and its run, in memory that it shares with the runner."""

    _fields_ = (
        ("started", ctypes.c_bool),  # the worker; what follows is of its run
        ("playing", ctypes.c_bool),
        ("row", ctypes.c_int64),
        ("rounds", ctypes.c_int64),
        ("total", ctypes.c_int64),
        ("began", ctypes.c_double),
    )


class _Worker:
    """One process, from its start to its end, and the run that it was last given."""

    def __init__(self, context: SpawnContext, runner: Connection) -> None:
        self.progress: Any = context.RawValue(_Progress)
        self._future: Future[Record] | None = None
        self._pool = ProcessPoolExecutor(1, context, initializer=_start_worker, initargs=(runner, self.progress))

    @property
    def busy(self) -> bool:
        return self._future is not None and not self._future.done()

    def submit(self, settings: RunSettings, row: int, unfinished: Path | None) -> "Future[Record]":
        with _deaf_to_ctrl_c():
            self._future = self._pool.submit(_work, settings, row, unfinished)
        return self._future

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


_progress: Any = None  # a `_Progress` if this process is a worker of a LocalPool
_turn = Lock()  # some solvers cannot work for two threads at once


def _start_worker(runner: Connection, progress: Any) -> None:
    global _progress
    _progress = progress
    _progress.started = True
    Thread(target=_end_with, args=(runner,), daemon=True).start()


def _end_with(runner: Connection) -> None:
    """Wait for the end of the pipe: the runner closes it, or it was closed as the runner was killed."""
    try:
        runner.poll(None)
    finally:
        os._exit(1)


def _work(settings: RunSettings, row: int = 0, unfinished: Path | None = None) -> Record:
    """Play a run; a worker of a LocalPool reports its rounds."""
    with _turn:
        if _progress is None:
            return execute(settings)
        _progress.row, _progress.rounds, _progress.total, _progress.began = row, 0, 0, time.monotonic()
        _progress.playing = True
        try:
            return execute(settings, _report_rounds, unfinished)
        finally:
            _progress.playing = False


def _report_rounds(rounds: int, total: int) -> None:
    _progress.rounds, _progress.total = rounds, total


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started here do not hear Ctrl-C: it is the runner that decides."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ExternalExecutor(Engine):
    """An executor that somebody else made and will close; it reports neither starts nor rounds."""

    def __init__(self, executor: Executor, capacity: int) -> None:
        require_whole("capacity", capacity, 1, MOST_WORKERS)
        self._executor, self._capacity = executor, capacity
        self._futures: set[Future[Record]] = set()

    def __exit__(self, *problem: object) -> None:
        for future in self._futures:
            future.cancel()

    @property
    def capacity(self) -> int:
        return self._capacity

    def submit(self, settings: RunSettings, row: int, unfinished: Path | None = None) -> "Future[Record]":
        try:
            future = self._executor.submit(_work, settings)
        except BrokenExecutor as problem:
            raise InvalidInput(f"the executor is broken, and only its maker can renew it: {problem}") from problem
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def lost(self, problem: BaseException) -> bool:
        return isinstance(problem, BrokenExecutor)


class DaskCluster(Engine):
    """A running Dask cluster, by the address of its scheduler; it tries a run more than once before it gives it up."""

    def __init__(self, address: str) -> None:
        if not ADDRESS.fullmatch(address):  # Dask would wait, and leave a client behind that cannot be closed
            raise InvalidInput(f"{quoted(address)} is no address of a Dask scheduler; give one such as tcp://HOST:8786")
        self.address = address

    def __enter__(self) -> Self:
        registry.require("--dask", ("distributed",))
        distributed: Any = import_module("distributed")
        self._killed: type[Exception] = distributed.KilledWorker
        try:
            self._client: Any = distributed.Client(self.address, timeout=CONNECTION_TIMEOUT, set_as_default=False)
        except (OSError, ValueError) as problem:
            raise InvalidInput(f"no Dask scheduler answers at {self.address}: {problem}") from problem
        self._executor = self._client.get_executor(pure=False)
        self._counted = (0, -RECOUNT_SECONDS)
        try:
            self.notes = self._look_at_workers()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._executor.shutdown(wait=False)
        self._client.close()

    @property
    def capacity(self) -> int:
        """Some runs for each worker that the cluster has now."""
        workers, when = self._counted
        if time.monotonic() - when >= RECOUNT_SECONDS:
            workers = len(self._client.nthreads())
            self._counted = (workers, time.monotonic())
        return RUNS_AHEAD * max(1, workers)

    def submit(self, settings: RunSettings, row: int, unfinished: Path | None = None) -> "Future[Record]":
        future: Future[Record] = self._executor.submit(_work, settings)
        return future

    def lost(self, problem: BaseException) -> bool:
        if self._client.status != "running":  # without the cluster there is nothing to go on with
            raise InvalidInput(f"the Dask cluster at {self.address} is gone; finished runs are kept")
        return isinstance(problem, self._killed | CancelledError)

    def _look_at_workers(self) -> list[str]:
        try:
            installed = self._client.run(versions)
            single = self._client.run(_is_single_threaded)
        except ImportError as problem:
            raise InvalidInput(f"the workers at {self.address} cannot import amdp: {problem}") from problem
        ours = versions()
        notes = [f"{worker} has {theirs}; here are {ours}" for worker, theirs in installed.items() if theirs != ours]
        many = [worker for worker, is_single in single.items() if not is_single]
        if many:
            notes.append(f"start workers with OMP_NUM_THREADS=1 (a nanny does): not so {', '.join(many)}")
        if any(count > 1 for count in self._client.nthreads().values()):
            notes.append("each worker plays one run at a time, whatever its threads; start them with --nthreads 1")
        return notes


def _is_single_threaded() -> bool:
    """Whether linear algebra is held to one thread."""
    return any(os.environ.get(name) == "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"))
