"""What all commands share: the terminal, errors and Ctrl-C as a line and an exit code, settings as `key=value`.

Texts from files and names are printed literally, never as markup or control characters.
"""

import json
import signal
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from threading import Event
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from amdp.errors import AmdpError, InvalidInput
from amdp.text import one_line, visible

SOME_FAILED = 3  # the exit code if runs failed, or statements do not hold
INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
WorldSettings = Annotated[list[str] | None, typer.Option(help="KEY=VALUE for the instance; repeatable.")]
Workers = Annotated[
    int | None, typer.Option(help="Number of processes, one thread each; without it, one for each core.")
]


class PolicyClass(StrEnum):
    """The policies over which the cost is minimized."""

    MARKOV = "markov"
    STATIONARY = "stationary"


class Screen(Console):
    """A console without markup and emoji that spells out control characters, also in cells and titles of a table."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **how: Any) -> Text:
        """The text with control characters spelled out."""
        return super().render_str(visible(text), **how)

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line without wrapping it."""
        self.print(text, style=style, soft_wrap=True)


def complain(text: str) -> None:
    """Print a line on standard error, away from the output that programs read."""
    Screen(stderr=True).say(text)


def unmarked(text: str) -> Text:
    """The text for parts of rich, such as spinners, that read markup whatever the console is set to."""
    return Text(visible(text))


def leave(*, interrupted: bool = False, failed: bool = False) -> None:
    """Exit with a code if the command was interrupted, or runs or statements failed."""
    if interrupted or failed:
        raise typer.Exit(INTERRUPTED if interrupted else SOME_FAILED)


def print_json(content: Any) -> None:
    """Print the output that programs read."""
    typer.echo(json.dumps(content, indent=2, allow_nan=False))


def gap_text(gap: float, objective: float) -> str:
    """A gap between a value and its bound: absolute, and relative to the value."""
    part = f", {gap / abs(objective):.3g} relative" if gap and objective else ""
    return f"{gap:.3g} absolute{part}" if gap else "0"


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


def settings(option: str, texts: Iterable[str]) -> dict[str, Any]:
    """The settings of all `--option key=value`."""
    result: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise InvalidInput(f"{option} {text}: give key=value, such as {option} rate=0.1")
        if key.strip() in result:
            raise InvalidInput(f"{option} {key.strip()} is given twice")
        result[key.strip()] = _value(value.strip())
    return result


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, a number without end, lists without end
        return text
