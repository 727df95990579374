"""`amdp instances`, `amdp learners`: what there is to play."""

import json
from inspect import getdoc
from typing import Annotated, Any

import typer
from rich.table import Table

from amdp import options, registry
from amdp.algorithms.named import GROUP
from amdp.commands.refusals import clear_errors
from amdp.commands.screen import Screen
from amdp.instances import continuing, standard

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def instances(as_json: AsJson = False) -> None:
    """List the built-in worlds, their sizes, and what can be set; those without end come last.

    Example: amdp instances
    """
    found = [
        dict(zip(("name", "steps", "states", "actions"), (name, *make().shape), strict=True)) | _settings(make)
        for name, make in (standard() | continuing()).items()
    ]
    _print(found, as_json)


def learners(as_json: AsJson = False) -> None:
    """List the learners.

    Example: amdp learners
    """
    with clear_errors():
        found = {name: registry.find(GROUP, name) for name in registry.names(GROUP)}
        _print(
            [{"name": name, "what": _first_line(recipe)} | _settings(recipe) for name, recipe in found.items()], as_json
        )


def _first_line(made: Any) -> str:
    return (getdoc(made) or "").split("\n")[0]


def _settings(made: Any) -> dict[str, Any]:
    return {"settings": options.defaults(made)}


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(_text, row.values()))
    Screen().print(table)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(name if usual is None else f"{name}={usual}" for name, usual in value.items())
    return str(value)
