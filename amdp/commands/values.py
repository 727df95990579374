"""Settings on the command line, `key=value`: the value as in TOML, or a text without quotes."""

import tomllib
from collections.abc import Iterable
from typing import Any

from amdp.errors import InvalidInput


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
