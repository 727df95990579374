"""How a command ends when it must."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

import typer

from amdp.commands.screen import Screen
from amdp.errors import AmdpError
from amdp.text import one_line

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


@contextmanager
def clear_errors() -> Iterator[None]:
    """A deliberate error ends in one line and exit code 1, as do a disk and a memory that are too small.

    A stack of frames is for defects.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads on: the command line ends without a word
    except (AmdpError, OSError, MemoryError) as problem:
        reason = f"not enough memory: {problem}" if isinstance(problem, MemoryError) else str(problem)
        Screen(stderr=True).say(f"error: {one_line(reason)}", style="red")
        raise typer.Exit(1) from problem


@contextmanager
def interruptible() -> Iterator[Event]:
    """Ctrl-C sets the event, so that a round is never cut in two; a second one ends the program at once."""
    asked = Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
