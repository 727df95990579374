"""Names under headings, with a line or two about each: what `amdp instances`, `learners` and `oracles` print.

No name and no word is ever broken: a name that is copied from the screen can be typed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import getdoc
from textwrap import TextWrapper
from typing import Any

import typer

from amdp.commands.completion import Completion
from amdp.commands.screen import Screen, complain
from amdp.errors import InvalidInput
from amdp.text import suggestion

COLUMN = 20  # where the text beside a name begins; a longer name pushes its first line to the right


@dataclass(frozen=True)
class Entry:
    """A name, what is said of it in a list, and what is added where it was asked for by name."""

    name: str
    text: str
    details: Mapping[str, str] = field(default_factory=dict)


Groups = Mapping[str, Sequence[Entry]]  # entries by heading


def names_of(names: Completion) -> Any:
    """The argument of a list: names of which all is shown."""
    return typer.Argument(help="Names to see all about; without them, a list of all.", autocompletion=names)


def chosen(kind: str, names: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The names that were asked for, each once, or all; one that nothing has is refused."""
    for name in names or ():
        if name not in known:
            raise InvalidInput(f"no {kind} {name!r}; {suggestion(name, known)}known names: {', '.join(known)}")
    return list(dict.fromkeys(names or known))


def summary(target: Any) -> str:
    """The first line of a docstring."""
    return (getdoc(target) or "").partition("\n")[0]


def by_heading(pairs: Iterable[tuple[str, Entry]]) -> Groups:
    """Entries grouped by their headings, both in the order in which they come."""
    groups: dict[str, list[Entry]] = {}
    for heading, entry in pairs:
        groups.setdefault(heading, []).append(entry)
    return groups


def show(groups: Groups, *, whole: bool, hint: str = "") -> None:
    """Print entries under their headings: `whole` with their details, otherwise with a hint at the end."""
    if not groups:
        complain("nothing fits: leave out a filter")
    screen = Screen()
    for i, (heading, entries) in enumerate(groups.items()):
        screen.say("\n" * (i > 0) + "\n".join(_wrapped(heading, screen.width)), style="bold")
        for entry in entries:
            screen.say("\n".join(_lines(entry, screen.width, whole)))
    if hint and groups and not whole:
        screen.say("\n" + "\n".join(_wrapped(hint, screen.width)))


def _lines(entry: Entry, width: int, whole: bool) -> Iterator[str]:
    margin = " " * COLUMN
    yield from _wrapped(entry.text, width, f"  {entry.name}".ljust(COLUMN - 2) + "  ", margin)
    for key, text in entry.details.items() if whole else ():
        yield from _wrapped(f"{key}: {text}", width, margin, margin + "  ")


def _wrapped(text: str, width: int, first: str = "", margin: str = "") -> list[str]:
    wrapper = TextWrapper(width, first, margin, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text) or [first.rstrip()]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings with their defaults, `name=value`; those that have none, or that theory chooses, by name alone."""
    return ", ".join(name if usual is None else f"{name}={usual}" for name, usual in settings.items())
