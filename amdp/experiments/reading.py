"""Reads the tables of a spec: each key has a reader, and every refusal names the key's path, its value and the rule.

The same readers serve TOML, JSON and dictionaries of Python. A library for such models (pydantic, msgspec) was tried
and not taken: a value may stand alone, in a table or in a list of either, and the messages about such unions name the
branches of the model instead of the rule.
"""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from amdp import options
from amdp.errors import SpecError
from amdp.text import RULE, is_name, suggestion

LONGEST_SHOWN = 60  # letters of a value in a message

Table = dict[str, Any]
Reader = Callable[[str, Any], Any]  # takes a path and a value, returns what the value means, or raises a SpecError


def table(path: str, value: Any, readers: Mapping[str, Reader], required: Iterable[str] = ()) -> Table:
    """A table, each value read by the reader of its key; unknown and missing keys are refused."""
    if not isinstance(value, dict):
        raise wrong(path, value, "it must be a table")
    require_known(path, value, list(readers))
    require_keys(path, value, required)
    return {key: readers[key](below(path, key), item) for key, item in value.items()}


def anything(path: str, value: Any) -> Any:
    """A value that is judged later, where its place in the grid is known."""
    return value


def tables(path: str, value: Any) -> list[Table]:
    """At least one table."""
    if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
        raise wrong(path, value, f"write one or more [[{path}]]")
    return value


def labels(path: str, value: Any) -> list[str]:
    """A list of labels, none of them twice."""
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise wrong(path, value, "it must be a list of labels")
    require_different(path, value)
    return value


def line(path: str, value: Any) -> str:
    """A text of one line."""
    if not is_name(value):
        raise wrong(path, value, RULE)
    return value


def truth(path: str, value: Any) -> bool:
    """A truth value, `true` or `false`."""
    require_type(path, value, bool)
    return bool(value)


def whole(least: int, most: int | None = None) -> Reader:
    """The reader of a whole number within its ends."""
    rule = f"it must be a whole number, {f'at least {least}' if most is None else f'{least} .. {most}'}"

    def read(path: str, value: Any) -> int:
        if type(value) is not int or value < least or (most is not None and value > most):
            raise wrong(path, value, rule)
        return value

    return read


def positive_numbers(path: str, value: Any) -> tuple[float, ...]:
    """A list of different numbers above 0."""
    if not isinstance(value, list) or not value:
        raise wrong(path, value, "it must be a list of numbers")
    require_different(path, value)
    for i, number in enumerate(value):
        if type(number) not in (int, float) or not 0.0 < number < float("inf"):
            raise wrong(f"{path}[{i}]", number, "it must be a number above 0 and finite")
    return tuple(map(float, value))


def require_known(path: str, keys: Iterable[str], known: list[str]) -> None:
    """Refuse a key that nobody reads."""
    for key in keys:
        if key not in known:
            offer = f"known keys: {', '.join(known)}" if known else "nothing can be set here"
            raise SpecError(f"unknown key; {suggestion(key, known)}{offer}", below(path, key))


def require_keys(path: str, value: Table, required: Iterable[str]) -> None:
    """Refuse a table without a key that it must have."""
    for key in required:
        if key not in value:
            raise SpecError("missing; it must be given", below(path, key))


def require_name(path: str, name: str, known: list[str]) -> None:
    """Refuse a name that nothing has."""
    if name not in known:
        raise SpecError(f"{shown(name)}; {suggestion(name, known)}known names: {', '.join(known)}", path)


def unknown_setting(path: str, name: str, known: Iterable[str], why: str) -> SpecError:
    """The refusal of a setting that nothing has."""
    names = list(known)
    return SpecError(f"{why}; {suggestion(name, names)}known settings: {', '.join(names)}", path)


def require_type(path: str, value: Any, annotation: Any) -> None:
    """Refuse a value of another type than an annotation says."""
    expected = options.type_mismatch(annotation, value)
    if expected:
        raise wrong(path, value, f"it must be {expected}")


def require_different(path: str, values: list[Any]) -> None:
    """Refuse a list in which something stands twice."""
    seen: set[Any] = set()
    for i, value in enumerate(values):
        key = _hashable(value)
        if key in seen:
            raise wrong(f"{path}[{i}]", value, "it is in the list already")
        seen.add(key)


def wrong(path: str, value: Any, rule: str) -> SpecError:
    """The refusal of a value."""
    return SpecError(f"{shown(value)}; {rule}", path)


def shown(value: Any) -> str:
    """A value as it stands in a file; long ones are cut."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def below(path: str, key: str) -> str:
    """The path of a key in a table."""
    return f"{path}.{key}" if path else key


def plain(value: Any) -> Any:
    """A value of Python as TOML would give it: dictionaries, lists, scalars; keys whose value is None are left out."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value


def from_toml(text: str, name: str) -> Table:
    """The tables of a text; what is not TOML is refused with its line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        lines = text.split("\n")
        end = f"at line {len(lines)}, column {len(lines[-1]) + 1}, the end"
        raise SpecError(f"not TOML: {str(problem).replace('at end of document', end)}", name) from problem
    except (ValueError, RecursionError) as problem:  # a number or lists without end
        raise SpecError(f"not TOML that can be read: {problem}", name) from problem


def from_json(text: str, name: str) -> Table:
    """The tables of a text; what is not JSON, or no object, is refused."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise SpecError(f"not JSON: {problem}", name) from problem
    if not isinstance(content, dict):
        raise SpecError("not a JSON object with the keys of a spec", name)
    return content


def to_toml(content: Mapping[str, Any]) -> str:
    """The text of a spec that was given as a dictionary: what a folder of results keeps."""
    inline = {key: value for key, value in content.items() if key not in ("games", "learners")}
    lines = [f"{key} = {_toml(value)}" for key, value in inline.items()]
    for kind in ("learners", "games"):
        for entry in content[kind]:
            lines += ["", f"[[{kind}]]", *(f"{key} = {_toml(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # Texts, numbers and truth values are written alike, but for a letter that only TOML escapes.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _hashable(value: Any) -> Any:
    """What is equal for equal values, lists and tables too."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    return value
