"""Where runs are played: processes of this machine, a Dask cluster, or any executor of the standard library.

A run's result depends on its settings alone, so that an engine decides only when it is there.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any, Protocol, Self

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
STILLBORN = 5  # workers in a row that end before they do anything
GUARD = 'a script that plays runs must do so under `if __name__ == "__main__":`, because each worker imports it'
UNBORN, IDLE = -2.0, -1.0  # no worker yet; no run
AHEAD = 2  # runs that each worker of a cluster is given, so that it need not wait for the next one
CONNECTING = "10s"
ADDRESS = re.compile(
    r"((tcp|tls|ucx|wss?)://)?(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\]]+):\d{1,5}(/\S*)?|inproc://[^\s/]+/\d+/\d+"
)
LOOK_AGAIN = 5.0  # seconds after which the workers of a cluster are counted anew

MakePool = Callable[[int], ProcessPoolExecutor]


@dataclass(frozen=True)
class Playing:
    """A run under way."""

    row: int  # the row of the progress table that it belongs to
    rounds: int
    total: int
    seconds: float

    @property
    def share(self) -> float:
        """Of its rounds, how many are played, from 0 to 1."""
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
        self.workers = cores() if workers is None else workers
        require_whole("workers", self.workers, 1, MOST_WORKERS)
        self.notes: list[str] = []
        self._context = get_context("spawn")
        self._lanes: list[_Lane] = []
        self._stillborn = 0
        self._blameless: set[Future[Record]] = set()

    @property
    def capacity(self) -> int:
        """A run for each worker."""
        return self.workers

    def __enter__(self) -> Self:
        if getattr(current_process(), "_inheriting", False):  # a worker that still imports its script
            raise InvalidInput(GUARD)
        self._before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)  # numpy reads them as a worker imports it, before any code of ours
        self._theirs, self._mine = self._context.Pipe(duplex=False)
        self._board = self._context.RawArray("d", self.workers * _Cell.SIZE)
        self._lanes = [_Lane(self._new_pool, self._replace_pool, i) for i in range(self.workers)]
        return self

    def __exit__(self, *problem: object) -> None:
        if any(lane.busy for lane in self._lanes):
            self._mine.close()  # the workers see it, and go
        for lane in self._lanes:
            lane.close()
        self._mine.close()
        self._theirs.close()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        """Begin a run in a worker that is free."""
        lane = next(lane for lane in self._lanes if not lane.busy)
        if lane.succeeded:
            self._stillborn = 0
        return lane.submit(settings, row)

    def lost(self, problem: BaseException) -> bool:
        """A worker was killed or crashed."""
        return isinstance(problem, BrokenProcessPool)

    def began(self, future: "Future[Record]") -> bool:
        """By the board."""
        for lane in self._lanes:
            if lane.future is future:
                return not self._unborn(lane.index)
        known = future not in self._blameless
        self._blameless.discard(future)
        return known

    def playing(self) -> list[Playing]:
        """By the board on which the workers write after every round."""
        now = time.monotonic()
        cells = (_Cell(self._board, i).read() for i in range(self.workers))
        return [Playing(row - 1, rounds, total, now - began) for row, rounds, total, began in cells if row]

    def _unborn(self, index: int) -> bool:
        return _Cell(self._board, index).read()[3] == UNBORN

    def _new_pool(self, index: int) -> ProcessPoolExecutor:
        _Cell(self._board, index).clear(UNBORN)
        given = (self._theirs, self._board, index)
        return ProcessPoolExecutor(1, self._context, initializer=_begin_work, initargs=given)

    def _replace_pool(self, index: int) -> ProcessPoolExecutor:
        lost = self._lanes[index].future
        if lost and self._unborn(index):
            self._blameless.add(lost)
            self._stillborn += 1
        if self._stillborn >= STILLBORN:
            raise InvalidInput(f"{STILLBORN} workers in a row ended before they could begin; {GUARD}")
        return self._new_pool(index)


class _Lane:
    """One worker, and the next one if it is killed."""

    def __init__(self, new: MakePool, replace: MakePool, index: int) -> None:
        self._new, self._replace, self.index = new, replace, index
        self._pool: ProcessPoolExecutor | None = None
        self.future: Future[Record] | None = None

    @property
    def busy(self) -> bool:
        return self.future is not None and not self.future.done()

    @property
    def succeeded(self) -> bool:
        return self.future is not None and self.future.exception() is None

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        if self._pool is None:
            self._pool = self._new(self.index)
        elif self.future and isinstance(self.future.exception(), BrokenProcessPool):
            self._renew()
        try:
            self.future = self._submit(settings, row)
        except BrokenProcessPool:  # killed while it had nothing to do
            self._renew()
            self.future = self._submit(settings, row)
        return self.future

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _renew(self) -> None:
        self.close()
        self._pool = self._replace(self.index)

    def _submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        assert self._pool
        with _deaf_to_ctrl_c():
            return self._pool.submit(_work, settings, row)


class _Cell:
    """What one worker tells of its run: row + 1 (0: none), rounds, of how many, when it began (without run: IDLE)."""

    SIZE = 4

    def __init__(self, board: Any, index: int) -> None:
        self._board, self._at = board, index * self.SIZE

    def read(self) -> tuple[int, int, int, float]:
        row, rounds, total, began = self._board[self._at : self._at + self.SIZE]
        return int(row), int(rounds), int(total), began

    def begin(self, row: int) -> None:
        self._board[self._at : self._at + self.SIZE] = (row + 1, 0, 0, time.monotonic())

    def clear(self, state: float) -> None:
        self._board[self._at : self._at + self.SIZE] = (0, 0, 0, state)

    def tick(self, rounds: int, total: int) -> None:
        self._board[self._at + 1] = rounds
        self._board[self._at + 2] = total


_cell: _Cell | None = None  # of this process, if it is a worker of a LocalPool
_turn = Lock()  # some solvers cannot work for two threads at once


def _begin_work(runner: Connection, board: Any, index: int) -> None:
    global _cell
    _cell = _Cell(board, index)
    _cell.clear(IDLE)
    Thread(target=_end_with, args=(runner,), daemon=True).start()


def _end_with(runner: Connection) -> None:
    """Wait for the end of the pipe: the runner closes it, or it was closed as the runner was killed."""
    try:
        runner.poll(None)
    finally:
        os._exit(1)


def _work(settings: RunSettings, row: int = 0) -> Record:
    with _turn:
        if _cell is None:
            return execute(settings)
        _cell.begin(row)
        try:
            return execute(settings, _cell.tick)
        finally:
            _cell.clear(IDLE)


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
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Given:
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
        """Its workers ended."""
        return isinstance(problem, BrokenExecutor)

    def began(self, future: "Future[Record]") -> bool:
        """Nobody knows."""
        return True

    def playing(self) -> list[Playing]:
        """Nothing is known of them."""
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
            self._client: Any = distributed.Client(self.address, timeout=CONNECTING, set_as_default=False)
        except (OSError, ValueError) as problem:
            raise InvalidInput(f"no Dask scheduler answers at {self.address}: {problem}") from problem
        self._executor = self._client.get_executor(pure=False)
        self._counted = (0, -LOOK_AGAIN)
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
        found, when = self._counted
        if time.monotonic() - when >= LOOK_AGAIN:
            found = len(self._client.nthreads())
            self._counted = (found, time.monotonic())
        return AHEAD * max(1, found)

    def submit(self, settings: RunSettings, row: int) -> "Future[Record]":
        """Begin a run."""
        future: Future[Record] = self._executor.submit(_work, settings)
        return future

    def lost(self, problem: BaseException) -> bool:
        """Workers that Dask gave up, or the whole cluster."""
        if self._client.status != "running":
            raise InvalidInput(f"the Dask cluster at {self.address} is gone; finished runs are kept")
        return isinstance(problem, self._killed | CancelledError)

    def began(self, future: "Future[Record]") -> bool:
        """Dask has tried more than once."""
        return True

    def playing(self) -> list[Playing]:
        """Nothing is known of them."""
        return []

    def _look_at_workers(self) -> list[str]:
        try:
            installed = self._client.run(versions)
            threads = self._client.run(_threads)
        except ImportError as problem:
            raise InvalidInput(f"the workers at {self.address} cannot import amdp: {problem}") from problem
        notes = [
            f"{worker} has {found}; here are {versions()}" for worker, found in installed.items() if found != versions()
        ]
        many = [worker for worker, one in threads.items() if not one]
        if many:
            notes.append(f"start workers with OMP_NUM_THREADS=1 (a nanny does): not so {', '.join(many)}")
        if any(count > 1 for count in self._client.nthreads().values()):
            notes.append("each worker plays one run at a time, whatever its threads; start them with --nthreads 1")
        return notes


def _threads() -> bool:
    """Whether linear algebra is held to one thread."""
    return any(os.environ.get(name) == "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"))
