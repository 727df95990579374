"""Oracles and learners by short name, through entry points of installed packages; only what is named is imported.

Names such as `my_module:Uniform` are those of one's own code: see `amdp.own_code`.
"""

import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points, requires
from importlib.util import find_spec
from typing import Any

from amdp import own_code
from amdp.errors import InvalidInput, MissingDependency
from amdp.options import defaults, required
from amdp.text import suggestion


def names(group: str) -> list[str]:
    """The names that installed packages offer in an entry-point group, such as `amdp.oracles`."""
    return sorted(_entries(group))


def find(group: str, name: str) -> Any:
    """The class or function that an entry point names, or that one's own code defines."""
    if own_code.is_own(name):
        return own_code.find(name)
    known = _entries(group)
    if name not in known:
        near = suggestion(name, known)
        raise InvalidInput(f"no {name!r} in {group}; {near}known names: {', '.join(sorted(known))}")
    try:
        return known[name].load()
    except ModuleNotFoundError as problem:
        raise MissingDependency(f"{name!r} needs {problem.name}", remedy([problem.name or name])) from problem


def create(group: str, name: str, options: dict[str, Any]) -> Any:
    """An object of the class that an entry point names, made with these options; an unknown option is an error."""
    target = find(group, name)
    require_options(name, target, options)
    require_defaults(name, target, options)
    return target(**options)


@cache
def name_of(group: str, kind: type) -> str:
    """The name under which a class is registered in a group, or its own where it has none there."""
    home = f"{kind.__module__}:{kind.__qualname__}"
    return next((entry.name for entry in _entries(group).values() if entry.value == home), kind.__name__)


def require_options(name: str, target: Any, options: Iterable[str]) -> None:
    """Refuse options that a class or a function does not have."""
    known = known_options(target)
    for option in options:
        if option not in known:
            offer = f"its options: {', '.join(known)}" if known else "it has no options"
            raise InvalidInput(f"{name!r} has no option {option!r}; {suggestion(option, known)}{offer}")


def require_defaults(name: str, target: Any, given: Iterable[str] = ()) -> None:
    """Refuse a class or a function that needs more arguments than those that are given."""
    needed = [argument for argument in required(target) if argument not in given]
    if needed:
        raise InvalidInput(f"{name!r} needs {', '.join(needed)}; its arguments must have defaults")


def known_options(target: Any) -> list[str]:
    """The options of a class or function: the fields of a dataclass, the parameters of a function with defaults."""
    return list(defaults(target))


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of `packages` that are not installed; nothing is imported."""
    return [package for package in packages if find_spec(package) is None]


def require(user: str, packages: tuple[str, ...]) -> None:
    """Raise `MissingDependency` if a package that `user` needs is not installed."""
    absent = missing(packages)
    if absent:
        raise MissingDependency(f"{user} needs {', '.join(absent)}", remedy(absent))


def remedy(absent: list[str]) -> str:
    """The command that installs absent packages, in the versions that amdp works with."""
    pinned = {re.split(r"[^\w.-]", line)[0]: line.partition(";")[0].strip() for line in requires("amdp") or []}
    return " ".join(["pip install", *(f'"{pinned.get(name, name)}"' for name in absent)]) if absent else ""


def _entries(group: str) -> dict[str, EntryPoint]:
    return _installed(group, tuple(sys.path))


@cache
def _installed(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    # Once for each path: reading the metadata of all packages takes longer than most plans.
    return {entry.name: entry for entry in entry_points(group=group)}
