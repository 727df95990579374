"""Options by keyword: what a function or a class takes, and whether a value is of the right kind."""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from inspect import Parameter, signature
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from numpy.random import Generator
from numpy.typing import ArrayLike

from amdp.errors import InvalidInput
from amdp.text import quoted

KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}

LARGEST = 2**63  # from which on a whole number is none of numpy's


def defaults(target: Any) -> dict[str, Any]:
    """The default value of each option: a parameter of a function that has one, or a field of a dataclass."""
    return {name: parameter.default for name, parameter in _parameters(target).items()}


def annotations(target: Any) -> dict[str, Any]:
    """The annotation of each option."""
    return {name: parameter.annotation for name, parameter in _parameters(target).items()}


def required(target: Any) -> list[str]:
    """The parameters of a function or class that have no default."""
    several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    parameters = signature(target).parameters.items()
    return [name for name, each in parameters if each.default is Parameter.empty and each.kind not in several]


def type_mismatch(annotation: Any, value: Any) -> str | None:
    """What a value should be, such as `a whole number`, if its type does not fit; only plain types are judged."""
    if get_origin(annotation) is Sequence or annotation in (ArrayLike, ArrayLike | None):
        return None if isinstance(value, list | tuple) else "a list"
    allowed = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    allowed = tuple(kind for kind in allowed if kind is not Generator)  # a setting gives a seed, never a generator
    words = [word for kind in allowed if get_origin(kind) is Literal for word in get_args(kind)]
    allowed = tuple(kind for kind in allowed if get_origin(kind) is not Literal)
    if any(kind not in (*KINDS, NoneType) for kind in allowed):
        return None
    accepted = [*allowed, int] if float in allowed else allowed
    if type(value) is int and not fits(int, value):
        return "a number of at most 64 bits"
    if type(value) in accepted or value in words:
        return None
    return " or ".join([*(KINDS[kind] for kind in allowed if kind is not NoneType), *map(repr, words)])


def require_kinds(name: str, target: Any, options: Mapping[str, Any]) -> None:
    """Refuse the first option whose value is of another type than its annotation says."""
    known = annotations(target)
    for option, value in options.items():
        expected = type_mismatch(known.get(option), value)
        if expected:
            raise InvalidInput(f"{name!r}: {option} = {quoted(value)}; it must be {expected}")


def fits(kind: Any, value: Any) -> bool:
    """Whether a value is of an annotated kind, and so is all that it holds; numbers must be finite.

    Meant for what comes from a file: a checksum shows that a file is whole, not that its values make sense.
    """
    origin, inside = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType):
        return any(fits(member, value) for member in inside)
    if origin is list:
        return isinstance(value, list) and all(fits(inside[0], item) for item in value)
    if origin is tuple:
        each = inside[:1] * len(value) if inside[-1] is ... else inside
        return type(value) is tuple and len(each) == len(value) and all(map(fits, each, value))
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(fits(inside[0], k) and fits(inside[1], v) for k, v in value.items())
    if is_dataclass(value):
        return isinstance(value, kind) and all(fits(hint, getattr(value, name)) for name, hint in _hints(kind).items())
    if kind is float:
        return (type(value) is float and isfinite(value)) or fits(int, value)
    if kind is int:
        return type(value) is int and -LARGEST <= value < LARGEST
    return kind is Any or isinstance(value, kind)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _parameters(target: Any) -> dict[str, Parameter]:
    parameters, whole = signature(target).parameters.items(), is_dataclass(target)
    return {name: each for name, each in parameters if whole or each.default is not Parameter.empty}
