"""One solve at a time, and a fresh start after a solve that raised: the rules for everything that is bound to a domain.

Solvers are not safe for two threads, and an exception (Ctrl-C above all) may leave a model half changed at any moment.
"""

from collections.abc import Callable
from functools import wraps
from threading import Lock, get_ident
from typing import Any, ClassVar, Self

from amdp.errors import OracleError


class Exclusive:
    """What runs its solving method for one thread at a time, and forgets its state if the last call did not return.

    A second thread waits. The thread that is inside, as in a callback during a solve, is refused: it would wait for
    itself. A call marks the state as doubtful before it begins and as sound after it has returned, so that there is no
    moment at which an exception could leave a doubtful state that is taken for a sound one.
    """

    _solves: ClassVar[str] = ""  # the name of the method

    def __init_subclass__(cls, solves: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if solves is not None:
            cls._solves = solves
        method = vars(cls).get(cls._solves)
        if method is not None and not getattr(method, "__isabstractmethod__", False):
            setattr(cls, cls._solves, _guarded(cls._solves, method))

    _solving: "_Turn"

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """An object with a turn of its own, whatever `__init__` of a subclass leaves out."""
        new = super().__new__(cls)
        new._solving = _Turn()
        return new

    def forget(self) -> None:
        """Drop all that earlier calls left; called before the first call after one that raised."""


class _Turn:
    """Which thread may solve at the moment."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.thread: int | None = None  # whose turn it is
        self.is_sound = True

    def taken(self, owner: Exclusive, call: Callable[[], Any]) -> Any:
        """What the call returns; the lock is held."""
        try:
            self.thread = get_ident()
            if not self.is_sound:
                owner.forget()
            self.is_sound = False
            result = call()
            self.is_sound = True
            return result
        finally:
            self.thread = None


def _guarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def guarded(self: Exclusive, *arguments: Any, **options: Any) -> Any:
        if getattr(type(self), name) is not guarded:
            return method(self, *arguments, **options)  # by way of super(): the turn is taken already
        turn = self._solving
        if turn.thread == get_ident() and turn.lock.locked():
            raise OracleError(f"{name} was called from within itself; bind a second {type(self).__name__} for that")
        with turn.lock:  # and nothing else: Python looks for signals neither before this block nor after it
            return turn.taken(self, lambda: method(self, *arguments, **options))

    return guarded
