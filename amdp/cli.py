"""The command line: `amdp new`, `compare`, `report` and `results` for experiments; `play` and `solve` for one game or
world; `instances`, `learners` and `oracles` list what there is; `table`, `rates` and `verify` look at the theory.
"""

import json
from math import inf
from typing import Annotated, Any

import typer
from rich.table import Table

from amdp import __version__, registry
from amdp.commands.compare import compare
from amdp.commands.lists import instances, learners
from amdp.commands.new import new
from amdp.commands.play import play
from amdp.commands.rates import rates
from amdp.commands.refusals import clear_errors
from amdp.commands.report import report
from amdp.commands.results import results
from amdp.commands.screen import Screen
from amdp.commands.solve import solve
from amdp.commands.table import table
from amdp.commands.verify import verify
from amdp.errors import MissingDependency
from amdp.oracles.base import GROUP, PlanningOracle, describe, oracle
from amdp.testing import sample_domains

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, help=__doc__)
app.command()(compare)
app.command()(results)
app.command()(report)
app.command()(play)
app.command()(new)
app.command()(solve)
app.command()(instances)
app.command()(learners)
app.command()(table)
app.command()(rates)
app.command()(verify)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"amdp {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Adversarial Markov decision processes on planning oracles that prove their answers."""


@app.command()
def oracles(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """List the oracles: what each one solves, and what is missing to use it.

    Example: amdp oracles
    """
    with clear_errors():
        found = [_describe_oracle(name) for name in registry.names(GROUP)]
        if as_json:
            typer.echo(json.dumps(found, indent=2, allow_nan=False))
            return
        _show_oracles(found)


def _describe_oracle(name: str) -> dict[str, Any]:
    try:
        made: PlanningOracle = oracle(name)
    except MissingDependency as problem:
        return {"name": name, "solves": [], "options": {}, "missing": problem.remedy}
    options = {option: getattr(made, option) for option in registry.known_options(type(made))}
    return {
        "name": name,
        "solves": list(dict.fromkeys(describe(domain) for domain in sample_domains() if made.supports(domain))),
        "options": {option: None if value == inf else value for option, value in options.items()},
        "missing": registry.remedy(registry.missing(made.requires)),
    }


def _show_oracles(found: list[dict[str, Any]]) -> None:
    policies = list(dict.fromkeys(type(domain).__name__ for domain in sample_domains()))
    table = Table(
        "oracle", *(f"{kind.removesuffix('Policies')}\npolicies over" for kind in policies), "options", "installed"
    )
    for row in found:
        solves = [_after(f"{kind} over ", row["solves"]) for kind in policies]
        options = "\n".join(name if value is None else f"{name}={value}" for name, value in row["options"].items())
        table.add_row(row["name"], *solves, options, row["missing"] or "yes", end_section=True)
    Screen().print(table)


def _after(prefix: str, texts: list[str]) -> str:
    return "\n".join(text.removeprefix(prefix) for text in texts if text.startswith(prefix))
