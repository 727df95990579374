"""Work in a process of its own: what cannot be interrupted from within is ended from without.

HiGHS looks at its callbacks between two phases of a mixed-integer program, not inside the presolve or the first
relaxation, which may take minutes; CBC is a program of its own. So solvers run in another process, to which a Ctrl-C is
the end. One idle process is kept for the next call, since starting one takes about a second. It ends with this process.
"""

import atexit
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from queue import SimpleQueue
from threading import TIMEOUT_MAX, Thread, Timer
from typing import IO, Any, NoReturn

Tell = Callable[..., None]

START = "from amdp.oracles.subprocesses import serve; serve()"
DONE, FAILED, TOLD = "done", "failed", "told"


class SubprocessEnded(Exception):
    """The process ended before it answered: by the clock, or by itself."""


class Process:
    """One process that answers one question after the other."""

    def __init__(self) -> None:
        self.parent = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="amdp-")  # for the files of solvers, which do not clear up when ended
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._running = subprocess.Popen(
            [sys.executable, "-P", "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": paths} | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._folder),
            start_new_session=True,  # Ctrl-C at a terminal comes here only, and here it is decided what ends
        )

    def ask(self, work: Callable[..., Any], given: tuple[Any, ...], tell: Tell) -> Any:
        """What `work(*given, tell)` returns over there."""
        inlet, outlet = self._running.stdin, self._running.stdout
        assert inlet is not None
        assert outlet is not None
        with _as_ended():
            pickle.dump((work, given), inlet)
            inlet.flush()
        while True:
            with _as_ended():
                kind, content = pickle.load(outlet)
            if kind == DONE:
                return content
            if kind == FAILED:
                raise content
            tell(*content)

    def end(self) -> None:
        """End the process and all that it started."""
        if self._running.returncode is None:  # until it is waited for, its number is no one else's
            with suppress(OSError):
                _end_group(self._running.pid)
            self._running.kill()
            self._running.wait()
        for pipe in (self._running.stdin, self._running.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def _as_ended() -> Iterator[None]:
    """Turn what a pipe raises whose process has ended into `SubprocessEnded`."""
    try:
        yield
    # ValueError: another thread ended the process, and closed the pipe in the middle of a call.
    except (EOFError, BrokenPipeError, pickle.UnpicklingError, ValueError) as problem:
        raise SubprocessEnded from problem


def _end_group(leader: int) -> None:
    if os.name == "nt":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(leader)], capture_output=True, check=False)
    else:
        os.killpg(leader, signal.SIGKILL)


_idle: list[Process] = []


def run_in_subprocess(
    work: Callable[..., Any],
    *given: Any,
    seconds: float = inf,
    tell: Tell = lambda *_: None,
    on_start: Callable[[Callable[[], None]], None] = lambda end: None,
) -> Any:
    """Call `work(*given, tell)` in another process.

    `SubprocessEnded` is raised if that takes more than `seconds`, or if it crashes. `work` is a function of a module.
    What it passes to its `tell` comes to the one given here. An exception here, such as `KeyboardInterrupt`, ends the
    process; `on_start` is given the function with which other threads can end it.
    """
    process = _idle.pop() if _has_idle() else Process()
    clock = Timer(seconds, process.end)
    clock.daemon = True
    try:
        on_start(process.end)
        if seconds < TIMEOUT_MAX:
            clock.start()
        answer = process.ask(work, given, tell)
    except BaseException:
        process.end()
        raise
    finally:
        clock.cancel()
    if _has_idle():  # one is kept for the next call
        process.end()
    else:
        _idle.append(process)
    return answer


def _has_idle() -> bool:
    """Whether a process is kept; after a fork, that of the parent is not ours."""
    if _idle and _idle[-1].parent != os.getpid():
        _idle.clear()
    return bool(_idle)


@atexit.register
def end_idle() -> None:
    """End the process that is kept."""
    while _has_idle():
        _idle.pop().end()


def serve() -> NoReturn:
    """Answer questions from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inlet, outlet = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what solvers print is no answer
    questions: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()
    Thread(target=_listen, args=(inlet, questions.put), daemon=True).start()

    def send(kind: str, content: Any) -> None:
        pickle.dump((kind, content), outlet)
        outlet.flush()

    while True:
        work, given = questions.get()
        try:
            answer = DONE, work(*given, lambda *content: send(TOLD, content))
        except Exception as problem:
            answer = FAILED, problem
        send(*answer)


def _listen(inlet: IO[bytes], put: Callable[[Any], None]) -> None:
    """Pass questions on; when there is no one left to ask, end at once, in the middle of a solve as well."""
    with suppress(EOFError):
        while True:
            put(pickle.load(inlet))
    _end_group(os.getpid())
