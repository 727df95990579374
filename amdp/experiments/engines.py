"""Where runs are played: processes of this machine, a Dask cluster, or any executor of the standard library.

A run's result depends on its settings alone, so that an engine decides only when it is there.

Libraries of process pools were tried for `LocalPool` and not taken. The workers of a pebble pool share one pipe and its
locks, and a worker that is killed at the wrong moment breaks the pool for all; loky ends all runs with one worker.
"""

import ctypes
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from threading import Lock, Thread
from typing import Any, Protocol, Self
from weakref import WeakKeyDictionary

from amdp import registry
from amdp.arrays import require_whole
from amdp.errors import InvalidInput
from amdp.experiments.execution import execute, versions
from amdp.experiments.record import Record
from amdp.experiments.settings import RunSettings
from amdp.text import quoted

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
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


class Engine(Protocol):
    """Plays runs; used as a context, at whose end unfinished runs are abandoned."""

    @property
    def capacity(self) -> int:
        """How many runs it takes at a time."""
        ...

    @property
    def notes(self) -> list[str]:
        """What a user should know of it."""
        ...

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        """Begin a run."""
        ...

    def lost(self, problem: BaseException) -> bool:
        """Whether the worker is to blame for a future's exception: then the run may be tried again."""
        ...

    def began(self, future: "Future[Record]") -> bool:
        """Whether a worker that was lost had begun the run, so that the run may be to blame."""
        ...

    def playing(self) -> list[Playing]:
        """The runs under way, where that is known."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *problem: object) -> None: ...


class LocalPool:
    """Processes of this machine, started afresh (`spawn`), with one thread each.

    Each has a pool of its own: one that is killed takes its own run with it, and no other.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.capacity = cores() if workers is None else workers  # a run for each worker
        require_whole("workers", self.capacity, 1, MOST_WORKERS)
        self.notes: list[str] = []
        self._workers: list[_Worker] = []
        self._worker_of: WeakKeyDictionary[Future[Record], _Worker] = WeakKeyDictionary()
        self._failed_starts = 0

    def __enter__(self) -> Self:
        if getattr(current_process(), "_inheriting", False):  # a worker that still imports its script
            raise InvalidInput(GUARD)
        self._environment = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)  # numpy reads them as a worker imports it, before any code of ours
        self._context = get_context("spawn")
        self._workers_end, self._runners_end = self._context.Pipe(duplex=False)
        self._workers = [self._new_worker() for _ in range(self.capacity)]
        return self

    def __exit__(self, *problem: object) -> None:
        if any(worker.busy for worker in self._workers):
            self._runners_end.close()  # the workers see it, and go
        for worker in self._workers:
            worker.close()
        self._runners_end.close()
        self._workers_end.close()
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        """Begin a run in a worker that is free."""
        index, worker = next((i, worker) for i, worker in enumerate(self._workers) if not worker.busy)
        if worker.succeeded:
            self._failed_starts = 0
        if worker.is_lost:
            worker = self._replace(index)
        try:
            future = worker.submit(settings, row)
        except BrokenProcessPool:  # killed while it had nothing to do
            worker = self._replace(index)
            future = worker.submit(settings, row)
        self._worker_of[future] = worker
        return future

    def lost(self, problem: BaseException) -> bool:
        """Whether a worker was killed or crashed."""
        return isinstance(problem, BrokenProcessPool)

    def began(self, future: "Future[Record]") -> bool:
        """Whether the worker had started, as it wrote in shared memory."""
        return bool(self._worker_of[future].progress.started)

    def playing(self) -> list[Playing]:
        """The runs under way, as the workers write in shared memory after every round."""
        now = time.monotonic()
        reports = [worker.progress for worker in self._workers if worker.busy and worker.progress.playing]
        return [Playing(report.row, report.rounds, report.total, now - report.began) for report in reports]

    def _new_worker(self) -> "_Worker":
        return _Worker(self._context, self._workers_end)

    def _replace(self, index: int) -> "_Worker":
        """A new worker in place of one that was lost; after many that never started there is no other."""
        lost = self._workers[index]
        lost.close()
        self._failed_starts += not lost.progress.started
        if self._failed_starts >= FAILED_STARTS:
            raise InvalidInput(f"{FAILED_STARTS} workers in a row ended before they could begin; {GUARD}")
        self._workers[index] = self._new_worker()
        return self._workers[index]


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

    @property
    def succeeded(self) -> bool:
        return self._future is not None and self._future.exception() is None

    @property
    def is_lost(self) -> bool:
        return self._future is not None and isinstance(self._future.exception(), BrokenProcessPool)

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        with _deaf_to_ctrl_c():
            self._future = self._pool.submit(_work, settings, row)
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


def _work(settings: RunSettings, row: int = 0) -> Record:
    """Play a run; a worker of a LocalPool reports its rounds."""
    with _turn:
        if _progress is None:
            return execute(settings)
        _progress.row, _progress.rounds, _progress.total, _progress.began = row, 0, 0, time.monotonic()
        _progress.playing = True
        try:
            return execute(settings, _report_rounds)
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


class ExternalExecutor:
    """An executor that somebody else made and will close."""

    def __init__(self, executor: Executor, capacity: int) -> None:
        self.executor, self.capacity = executor, capacity
        require_whole("capacity", capacity, 1, MOST_WORKERS)
        self.notes: list[str] = []
        self._futures: set[Future[Record]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        for future in self._futures:
            future.cancel()

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        """Begin a run."""
        try:
            future = self.executor.submit(_work, settings)
        except BrokenExecutor as problem:
            raise InvalidInput(f"the executor is broken, and only its maker can renew it: {problem}") from problem
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def lost(self, problem: BaseException) -> bool:
        """Whether the workers of the executor ended."""
        return isinstance(problem, BrokenExecutor)

    def began(self, future: "Future[Record]") -> bool:
        """Always true: executors do not report starts."""
        return True

    def playing(self) -> list[Playing]:
        """Always empty: executors do not report rounds."""
        return []


class DaskCluster:
    """A running Dask cluster, by the address of its scheduler."""

    def __init__(self, address: str) -> None:
        if not ADDRESS.fullmatch(address):  # Dask would wait, and leave a client behind that cannot be closed
            raise InvalidInput(f"{quoted(address)} is no address of a Dask scheduler; give one such as tcp://HOST:8786")
        self.address = address
        self.notes: list[str] = []

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

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        """Begin a run."""
        future: Future[Record] = self._executor.submit(_work, settings)
        return future

    def lost(self, problem: BaseException) -> bool:
        """Whether Dask gave up the run's workers; without the cluster there is nothing to go on with."""
        if self._client.status != "running":
            raise InvalidInput(f"the Dask cluster at {self.address} is gone; finished runs are kept")
        return isinstance(problem, self._killed | CancelledError)

    def began(self, future: "Future[Record]") -> bool:
        """Always true: Dask has tried more than once before it gives a run up."""
        return True

    def playing(self) -> list[Playing]:
        """Always empty: the cluster does not report rounds."""
        return []

    def _look_at_workers(self) -> list[str]:
        try:
            installed = self._client.run(versions)
            single = self._client.run(_is_single_threaded)
        except ImportError as problem:
            raise InvalidInput(f"the workers at {self.address} cannot import amdp: {problem}") from problem
        notes = [
            f"{worker} has {theirs}; here are {versions()}"
            for worker, theirs in installed.items()
            if theirs != versions()
        ]
        many = [worker for worker, is_single in single.items() if not is_single]
        if many:
            notes.append(f"start workers with OMP_NUM_THREADS=1 (a nanny does): not so {', '.join(many)}")
        if any(count > 1 for count in self._client.nthreads().values()):
            notes.append("each worker plays one run at a time, whatever its threads; start them with --nthreads 1")
        return notes


def _is_single_threaded() -> bool:
    """Whether linear algebra is held to one thread."""
    return any(os.environ.get(name) == "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"))
