"""Names for the points of a grid: what they share, then what tells them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from amdp.experiments.settings import GameSettings, LearnerSettings, Named

HIDDEN = ("sha256",)


def told_apart(items: Sequence[GameSettings | LearnerSettings]) -> list[str]:
    """What to append to a label that all items share: their values of the keys in which they differ."""
    flat = [_flat(item) for item in items]
    parts = [field.name for field in fields(items[0])]
    keys = sorted(dict.fromkeys(key for one in flat for key in one), key=lambda key: parts.index(key.split(".")[0]))
    differing = [key for key in keys if any(one.get(key) != flat[0].get(key) for one in flat)]
    short = {key: key.rpartition(".")[2] for key in differing}
    names = {key: word if list(short.values()).count(word) == 1 else key for key, word in short.items()}
    return [
        "".join(f" {names[key]}={_text(one[key])}" for key in differing if one.get(key) is not None) for one in flat
    ]


def _flat(item: GameSettings | LearnerSettings) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(item):
        value = getattr(item, field.name)
        if isinstance(value, Named):
            found[field.name] = value.name
            found |= _under(field.name, value.settings)
        elif isinstance(value, Mapping):
            found |= _under(field.name, value)
        else:
            found[field.name] = value
    return found


def _under(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}.{key}": value for key, value in settings.items() if key not in HIDDEN}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
