"""A list where one value is expected stands for several runs: tables of lists become lists of tables.

A value that is itself a list is written as a list of lists.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from amdp.errors import AmdpError, InvalidInput, SpecError
from amdp.experiments.reading import below, require_different, wrong

MOST_POINTS = 10_000  # of one grid

Choice = tuple[Any, dict[str, str]]  # a value, and the paths of what is below it, by dotted keys


@dataclass(frozen=True)
class Point:
    """One combination of a grid: a value for each key, and where in the spec each stands."""

    path: str  # of the entry
    values: dict[str, Any]
    paths: dict[str, str]  # by dotted keys, such as `instance.n_states`

    def path_of(self, *keys: str) -> str:
        """The path of the deepest of nested keys that is given."""
        return next((self.paths[key] for key in _nested(keys) if key in self.paths), self.path)

    def locate(self, field: str | None, *keys: str) -> str | None:
        """The path of an option in the table of nested keys, or in a table around it; None if it is not given."""
        candidates = [*(f"{key}.{field}" for key in _nested(keys)), field] if field else []
        return next((self.paths[key] for key in candidates if key in self.paths), None)

    @contextmanager
    def blaming(self, *keys: str) -> Iterator[None]:
        """Raise an error of what nested keys describe anew, at the path of the option to blame where that is known."""
        try:
            yield
        except (AmdpError, TypeError, ValueError, ArithmeticError, MemoryError) as problem:
            if isinstance(problem, InvalidInput) and (path := self.locate(problem.field, *keys)):
                raise SpecError(problem.detail, path) from problem
            raise SpecError(str(problem), self.path_of(*keys)) from problem


def expanded(path: str, table: dict[str, Any], origins: dict[str, str] | None = None) -> list[Point]:
    """Every combination, the last key changing fastest; `origins` are the paths of keys that stand elsewhere."""
    count = prod(map(_count, table.values()))
    if count > MOST_POINTS:
        raise SpecError(f"its lists make {count} combinations; at most {MOST_POINTS} are allowed", path)
    return [Point(path, values, paths) for values, paths in _combinations(path, table, origins or {})]


def _combinations(path: str, table: dict[str, Any], origins: dict[str, str]) -> Iterator[Choice]:
    choices = [list(_choices(origins.get(key, below(path, key)), value)) for key, value in table.items()]
    for combination in product(*choices):
        values = {key: value for key, (value, _) in zip(table, combination, strict=True)}
        paths = {
            f"{key}.{inner}" if inner else key: place
            for key, (_, places) in zip(table, combination, strict=True)
            for inner, place in places.items()
        }
        yield values, paths


def _choices(path: str, value: Any) -> Iterator[Choice]:
    """The values that one key takes, each with its own path under the empty key."""
    if isinstance(value, dict):
        yield from ((values, {"": path, **paths}) for values, paths in _combinations(path, value, {}))
    elif isinstance(value, list):
        if not value:
            raise wrong(path, value, "an empty list leaves nothing to run")
        require_different(path, value)
        for i, item in enumerate(value):
            here = f"{path}[{i}]" if len(value) > 1 else path
            yield from [(item, {"": here})] if isinstance(item, list) else _choices(here, item)
    elif value is None:
        raise wrong(path, value, "leave it out instead")
    else:
        yield value, {"": path}


def _count(value: Any) -> int:
    """How many values a key takes."""
    if isinstance(value, dict):
        return prod(map(_count, value.values()))
    if isinstance(value, list):
        return sum(1 if isinstance(item, list) else _count(item) for item in value)
    return 1


def _nested(keys: tuple[str, ...]) -> list[str]:
    """The dotted keys from the deepest to the outermost."""
    return [".".join(keys[:end]) for end in range(len(keys), 0, -1)]
