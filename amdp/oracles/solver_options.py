"""What a solver is told in its own words, and what it says: options by their own names, and its log.

An option that amdp has a word of its own for (`seconds`, `threads`, `log`) is refused under the solver's name: two
values for one thing would contradict each other.
"""

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple, TextIO

from amdp.errors import InvalidInput


class SolverOptions(Mapping[str, Any]):
    """Options of a solver by name. They never change, so that the oracles that hold them can be hashed."""

    def __init__(self, given: object = None) -> None:
        table = {} if given is None else given
        if not isinstance(table, Mapping) or not all(isinstance(name, str) for name in table):
            raise InvalidInput(f"{given!r}; it must be a table of options, such as {{presolve = 'on'}}", "options")
        self._given = dict(table)

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __hash__(self) -> int:
        return hash(frozenset((name, repr(value)) for name, value in self._given.items()))

    def __repr__(self) -> str:
        return repr(self._given)

    def require_free(self, taken: Mapping[str, str]) -> None:
        """Refuse options for which the oracle has a setting: `taken` is the setting for each of these names."""
        for name in self:
            if name in taken:
                raise refused(name, self[name], f"it is the setting {taken[name]!r} of the oracle")


NO_OPTIONS = SolverOptions()


def adopt(settings: Any) -> SolverOptions:
    """The options of a frozen oracle, which may have been given as a plain dictionary."""
    options = SolverOptions(settings.options)
    object.__setattr__(settings, "options", options)
    return options


def refused(name: str, value: Any, reason: str) -> InvalidInput:
    """The error for one option of a solver."""
    return InvalidInput(f"{value!r}; {reason}", f"options.{name}")


_turn = Lock()
_logging: list["_Output"] = []  # standard output as it was, once for each solve that writes a log now, in any thread


class _Output(NamedTuple):
    descriptor: int
    stream: TextIO


@contextmanager
def log_on_stderr(wanted: bool) -> Iterator[None]:
    """Let what solvers print appear on standard error: standard output is for answers, which programs may read."""
    if not wanted:
        yield
        return
    with _turn:
        _flush()
        _logging.append(_logging[0] if _logging else _Output(os.dup(1), sys.stdout))
        os.dup2(2, 1)
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        with _turn:
            _flush()
            output = _logging.pop()
            if not _logging:  # the last one puts it back
                os.dup2(output.descriptor, 1)
                os.close(output.descriptor)
                sys.stdout = output.stream


def _flush() -> None:
    """Write out what Python and C have in store for standard output."""
    sys.stdout.flush()
    if os.name != "nt":
        ctypes.CDLL(None).fflush(None)
