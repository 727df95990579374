"""How a command ends when it must."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

import typer
from rich.console import Console

from amdp.errors import AmdpError

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


@contextmanager
def clear_errors() -> Iterator[None]:
    """A deliberate error ends in one line and exit code 1; a stack of frames is for defects."""
    try:
        yield
    except AmdpError as problem:
        Console(stderr=True).print(f"error: {problem}", style="red", markup=False, soft_wrap=True)
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
