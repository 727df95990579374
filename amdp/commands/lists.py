"""`amdp instances`, `amdp learners`: what there is to play."""

import json
from inspect import getdoc
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from amdp import registry
from amdp.algorithms.recipes import GROUP
from amdp.commands.refusals import clear_errors
from amdp.instances import standard

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def instances(as_json: AsJson = False) -> None:
    """List the built-in worlds and their sizes.

    Example: amdp instances
    """
    made = [(name, make().shape) for name, make in standard().items()]
    _print(
        [dict(zip(("name", "steps", "states", "actions"), (name, *shape), strict=True)) for name, shape in made],
        as_json,
    )


def learners(as_json: AsJson = False) -> None:
    """List the learners.

    Example: amdp learners
    """
    with clear_errors():
        found = [(name, registry.find(GROUP, name)) for name in registry.names(GROUP)]
        _print([{"name": name, "what": (getdoc(recipe) or "").split("\n")[0]} for name, recipe in found], as_json)


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)
