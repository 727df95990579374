"""How long a command loads before it works: the world, its solvers, and machine code, which first calls load."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import NamedTuple

from numba.core.event import TimingListener, install_listener


class Spent(NamedTuple):
    """Seconds of the clock."""

    loading: float
    working: float


class Stopwatch:
    """Tells loading from working: before `begin` all is loading, later what it takes to load machine code."""

    def __init__(self, compiler: TimingListener) -> None:
        self._started = self._begun = perf_counter()
        self._compiler = compiler
        self._before = 0.0

    def begin(self) -> None:
        """Say that all is loaded but for machine code, and that the work begins."""
        self._begun, self._before = perf_counter(), self._all_code

    @property
    def code(self) -> float:
        """Seconds since `begin` in which machine code was compiled, or read where an earlier run left it."""
        return self._all_code - self._before

    @property
    def _all_code(self) -> float:
        return float(self._compiler.duration) if self._compiler.done else 0.0

    def read(self) -> Spent:
        """The seconds until now."""
        return Spent(self._begun - self._started + self.code, perf_counter() - self._begun - self.code)


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Watches the compiler, whose lock is held while it compiles and while it reads what it has compiled before."""
    with install_listener("numba:compiler_lock", TimingListener()) as compiler:
        yield Stopwatch(compiler)
