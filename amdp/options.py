"""Options by keyword: what a function or a class takes, and whether a value is of the right kind."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import Parameter, signature
from math import isfinite
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from amdp.errors import InvalidInput
from amdp.text import quoted

KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}

LARGEST = 2**63  # from which on a whole number is none of numpy's


def usual(found: Any) -> dict[str, Any]:
    """The options of a function by keyword only, or of a dataclass, and their values if nothing is said."""
    if is_dataclass(found):
        return {field.name: field.default for field in fields(found) if field.init}
    return {name: given.default for name, given in _by_keyword(found).items()}


def kinds(found: Any) -> dict[str, Any]:
    """The annotation of each option."""
    if is_dataclass(found):
        return {field.name: field.type for field in fields(found) if field.init}
    return {name: given.annotation for name, given in _by_keyword(found).items()}


def misfit(kind: Any, value: Any) -> str | None:
    """What a value should be, if it is not of that kind; only plain kinds are judged."""
    if get_origin(kind) is Sequence or kind in (ArrayLike, ArrayLike | None):
        return None if isinstance(value, list | tuple) else "a list"
    allowed = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if any(one not in (*KINDS, NoneType) for one in allowed):
        return None
    accepted = [*allowed, int] if float in allowed else allowed
    if type(value) is int and not fits(int, value):
        return "a number of at most 64 bits"
    if type(value) in accepted:
        return None
    return " or ".join(KINDS[one] for one in allowed if one is not NoneType)


def require_kinds(name: str, found: Any, options: Mapping[str, Any]) -> None:
    """Refuse the first option whose value is of another kind than its annotation says."""
    known = kinds(found)
    for option, value in options.items():
        expected = misfit(known.get(option), value)
        if expected:
            raise InvalidInput(f"{name!r}: {option} = {quoted(value)}; it must be {expected}")


def fits(kind: Any, value: Any) -> bool:
    """Whether a value is of an annotated kind, and so is all that it holds; numbers must be finite.

    Meant for what comes from a file: a checksum shows that a file is whole, not that its values make sense.
    """
    origin, inside = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType):
        return any(fits(one, value) for one in inside)
    if origin is list:
        return isinstance(value, list) and all(fits(inside[0], one) for one in value)
    if origin is tuple:
        each = inside[:1] * len(value) if inside[-1] is ... else inside
        return type(value) is tuple and len(each) == len(value) and all(map(fits, each, value))
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(fits(inside[0], k) and fits(inside[1], v) for k, v in value.items())
    if is_dataclass(value):
        return isinstance(value, kind) and all(fits(one, getattr(value, name)) for name, one in _hints(kind).items())
    if kind is float:
        return (type(value) is float and isfinite(value)) or fits(int, value)
    if kind is int:
        return type(value) is int and -LARGEST <= value < LARGEST
    return kind is Any or isinstance(value, kind)


def generator(seed: int) -> np.random.Generator:
    """The generator of a seed of at least 0."""
    if seed < 0:
        raise InvalidInput(f"seed = {seed}; it must be a whole number, at least 0")
    return np.random.default_rng(seed)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _by_keyword(found: Any) -> dict[str, Parameter]:
    return {name: given for name, given in signature(found).parameters.items() if given.kind is given.KEYWORD_ONLY}
