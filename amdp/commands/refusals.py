"""Errors and Ctrl-C of commands: one line on the screen, and an exit code."""

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
    """End the command in one line and exit code 1 on an error of the library, the disk or the memory.

    Any other exception is a defect, and keeps its traceback.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of a pipe has gone: typer ends the program silently
    except (AmdpError, OSError, MemoryError) as problem:
        reason = f"not enough memory: {problem}" if isinstance(problem, MemoryError) else str(problem)
        Screen(stderr=True).say(f"error: {one_line(reason)}", style="red")
        raise typer.Exit(1) from problem


@contextmanager
def interruptible() -> Iterator[Event]:
    """An event that Ctrl-C sets, so that no round is interrupted; a second Ctrl-C ends the program at once."""
    asked = Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
