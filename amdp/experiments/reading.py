"""What a file says, key by key: every refusal carries the path of its key, the value and the rule."""

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from json import dumps
from typing import Any

from amdp import options
from amdp.errors import SpecError
from amdp.text import RULE, is_name

Table = dict[str, Any]


def toml(text: str, name: str) -> Table:
    """The tables of a text; what is not TOML is refused with its line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        lines = text.split("\n")
        end = f"at line {len(lines)}, column {len(lines[-1]) + 1}, the end"
        raise SpecError(f"not TOML: {str(problem).replace('at end of document', end)}", name) from problem
    except (ValueError, RecursionError) as problem:  # a number or lists without end
        raise SpecError(f"not TOML that can be read: {problem}", name) from problem


def table(path: str, value: Any, known: Iterable[str] | None = None, needed: Iterable[str] = ()) -> Table:
    """A table whose keys are known, and among them those needed."""
    if not isinstance(value, dict):
        raise wrong(path, value, "it must be a table")
    if known is not None:
        require_known(path, value, list(known))
    for key in needed:
        if key not in value:
            raise SpecError("missing; it must be given", below(path, key))
    return value


def tables(path: str, value: Any) -> list[Table]:
    """At least one table."""
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        raise wrong(path, value, f"write one or more [[{path}]]")
    return value


def require_known(path: str, given: Iterable[str], known: list[str]) -> None:
    """Refuse a key that nobody reads."""
    for key in given:
        if key not in known:
            offer = f"known keys: {', '.join(known)}" if known else "nothing can be set here"
            raise SpecError(f"unknown key; {meant(key, known)}{offer}", below(path, key))


def meant(given: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, where something is near."""
    near = get_close_matches(given, list(known), 1)
    return f"did you mean {near[0]!r}? " if near else ""


def texts(path: str, value: Any) -> list[str]:
    """A list of texts, none of them twice."""
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise wrong(path, value, "it must be a list of labels")
    require_different(path, value)
    return value


def line(path: str, value: Any) -> str:
    """A text of one line."""
    if not is_name(value):
        raise wrong(path, value, RULE)
    return value


def whole(path: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number within its ends."""
    if type(value) is not int or value < least or (most is not None and value > most):
        ends = f"at least {least}" if most is None else f"{least} .. {most}"
        raise wrong(path, value, f"it must be a whole number, {ends}")
    return value


def of_kind(path: str, value: Any, kind: Any) -> None:
    """Refuse a value of another kind than an annotation says."""
    expected = options.misfit(kind, value)
    if expected:
        raise wrong(path, value, f"it must be {expected}")


def require_different(path: str, values: list[Any]) -> None:
    """Refuse a list in which something stands twice."""
    seen: set[Any] = set()
    for i, one in enumerate(values):
        plain = _hashable(one)
        if plain in seen:
            raise wrong(f"{path}[{i}]", one, "it is in the list already")
        seen.add(plain)


def _hashable(value: Any) -> Any:
    """What is equal for equal values, lists and tables too."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return frozenset((key, _hashable(one)) for key, one in value.items())
    return value


def wrong(path: str, value: Any, rule: str) -> SpecError:
    """The refusal of a value."""
    return SpecError(f"{shown(value)}; {rule}", path)


def shown(value: Any) -> str:
    """As in a file; long values are cut."""
    text = dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def below(path: str, key: str) -> str:
    """The path of a key in a table."""
    return f"{path}.{key}" if path else key


def merged(given: Mapping[str, Any], usual: Mapping[str, Any], alternatives: tuple[str, ...] = ()) -> Table:
    """`given` over `usual`; of some alternatives, one given drops the usual other."""
    dropped = set(alternatives) if set(alternatives) & set(given) else set()
    return {key: value for key, value in usual.items() if key not in dropped} | dict(given)
