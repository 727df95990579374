"""`amdp instances`, `amdp learners`: the names that commands and specs know, with their settings."""

import json
from inspect import getdoc
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from amdp import options, registry
from amdp.algorithms.named import GROUP
from amdp.commands.refusals import clear_errors
from amdp.commands.screen import Screen
from amdp.instances import continuing, standard

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def instances(as_json: AsJson = False) -> None:
    """List the built-in worlds, their sizes and their settings; infinite-horizon worlds come last.

    Example: amdp instances
    """
    rows: list[dict[str, Any]] = [
        dict(zip(("name", "steps", "states", "actions"), (name, *make().shape), strict=True)) | _settings(make)
        for name, make in (standard() | continuing()).items()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(Column("instance", no_wrap=True), "steps", "states", "actions", "settings")
    for row in rows:
        table.add_row(*(str(row[key]) for key in ("name", "steps", "states", "actions")), _text(row["settings"]))
    Screen().print(table)


def learners(as_json: AsJson = False) -> None:
    """List the learners and their settings.

    Example: amdp learners
    """
    with clear_errors():
        recipes = {name: registry.find(GROUP, name) for name in registry.names(GROUP)}
    rows = [{"name": name, "what": _first_line(recipe)} | _settings(recipe) for name, recipe in recipes.items()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(Column("learner", no_wrap=True), "description and settings")
    for row in rows:
        settings = f"\nsettings: {_text(row['settings'])}" if row["settings"] else ""
        table.add_row(row["name"], row["what"] + settings)
    Screen().print(table)


def _first_line(recipe: Any) -> str:
    return (getdoc(recipe) or "").split("\n")[0]


def _settings(recipe: Any) -> dict[str, Any]:
    return {"settings": options.defaults(recipe)}


def _text(settings: dict[str, Any]) -> str:
    return ", ".join(name if usual is None else f"{name}={usual}" for name, usual in settings.items())
