"""`amdp oracles`: the planning oracles, the domains that each solves, and its options."""

import json
from math import inf
from typing import Any

import typer
from rich.table import Column, Table

from amdp import registry
from amdp.commands.lists import AsJson
from amdp.commands.refusals import clear_errors
from amdp.commands.screen import Screen
from amdp.errors import MissingDependency
from amdp.oracles.base import GROUP, PlanningOracle, describe, oracle
from amdp.testing import sample_domains


def oracles(as_json: AsJson = False) -> None:
    """List the planning oracles: the domains that each one solves, its options, and packages that it lacks.

    Example: amdp oracles
    """
    with clear_errors():
        rows = [_described(name) for name in registry.names(GROUP)]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False))
        return
    _show(rows)


def _described(name: str) -> dict[str, Any]:
    try:
        chosen: PlanningOracle = oracle(name)
    except MissingDependency as problem:
        return {"name": name, "solves": [], "options": {}, "missing": problem.remedy}
    options = {option: getattr(chosen, option) for option in registry.known_options(type(chosen))}
    return {
        "name": name,
        "solves": list(dict.fromkeys(describe(domain) for domain in sample_domains() if chosen.supports(domain))),
        "options": {option: None if value == inf else value for option, value in options.items()},
        "missing": registry.remedy(registry.missing(chosen.requires)),
    }


def _show(rows: list[dict[str, Any]]) -> None:
    """A table of names that are not broken in a terminal of 80 columns."""
    classes = list(dict.fromkeys(type(domain).__name__ for domain in sample_domains()))
    over = (f"{policies.removesuffix('Policies')}\npolicies over" for policies in classes)
    table = Table(Column("oracle", no_wrap=True), *over, "options")
    for row in rows:
        solves = [_after(f"{policies} over ", row["solves"]) for policies in classes]
        lines = [name if value is None else f"{name}={value}" for name, value in row["options"].items()]
        lines += [f"not installed: {row['missing']}"] if row["missing"] else []
        table.add_row(row["name"], *solves, "\n".join(lines), end_section=True)
    Screen().print(table)


def _after(prefix: str, texts: list[str]) -> str:
    return "\n".join(text.removeprefix(prefix) for text in texts if text.startswith(prefix))
