"""A list where one value is expected stands for several runs: tables of lists become lists of tables.

A value that is itself a list is written as a list of lists.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from amdp.errors import InvalidInput, SpecError
from amdp.experiments.reading import below, require_different, wrong

MOST = 10_000  # points of one grid


@dataclass(frozen=True)
class Leaf:
    """One value, and where it stands in the file."""

    path: str
    value: Any

    @property
    def plain(self) -> Any:
        """The value."""
        return self.value


@dataclass(frozen=True)
class Branch:
    """One value for each key of a table."""

    path: str
    parts: "dict[str, Leaf | Branch]"

    @property
    def plain(self) -> dict[str, Any]:
        """The values without their paths."""
        return {key: part.plain for key, part in self.parts.items()}

    def without(self, *keys: str) -> "Branch":
        """All but some keys."""
        return Branch(self.path, {key: part for key, part in self.parts.items() if key not in keys})

    def blamed(self, problem: Exception) -> SpecError:
        """What was refused, at the key that the message begins with, if it is one of this table."""
        message = str(problem)
        key, sign, rest = message.partition(" = ")
        if sign and key in self.parts and isinstance(problem, InvalidInput):
            return SpecError(rest, self.parts[key].path)
        return SpecError(message, self.path)


Point = Leaf | Branch


def expanded(path: str, given: dict[str, Any], origins: dict[str, str] | None = None) -> list[Branch]:
    """Every combination, the last key changing fastest; `origins` says which keys stand elsewhere in the file."""
    paths = {key: (origins or {}).get(key, below(path, key)) for key in given}
    count = prod(_count(value) for value in given.values())
    if count > MOST:
        raise SpecError(f"its lists make {count} combinations; at most {MOST} are allowed", path)
    choices = [list(_points(paths[key], value)) for key, value in given.items()]
    return [Branch(path, dict(zip(given, chosen, strict=True))) for chosen in product(*choices)]


def _points(path: str, given: Any) -> Iterator[Point]:
    if isinstance(given, dict):
        yield from expanded(path, given)
    elif isinstance(given, list):
        if not given:
            raise wrong(path, given, "an empty list leaves nothing to run")
        require_different(path, given)
        for i, one in enumerate(given):
            here = f"{path}[{i}]" if len(given) > 1 else path
            yield from [Leaf(here, one)] if isinstance(one, list) else _points(here, one)
    else:
        yield Leaf(path, given)


def _count(given: Any) -> int:
    if isinstance(given, dict):
        return prod(_count(value) for value in given.values())
    if isinstance(given, list):
        return sum(1 if isinstance(one, list) else _count(one) for one in given)
    return 1
