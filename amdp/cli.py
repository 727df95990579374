"""Adversarial Markov decision processes: no-regret learners on planning oracles that prove their answers.

Experiments: new, compare, report, results. One run, one plan, one world: play, solve, reach.

Names to choose from: instances, learners, oracles. The theory: table, rates, verify.
"""

import ast
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from amdp import __version__

COMMANDS = (
    *("new", "compare", "report", "results"),
    *("play", "solve", "reach"),
    *("instances", "learners", "oracles"),
    *("table", "rates", "verify"),
)


class LaterCommand(TyperCommand):
    """A command that is imported when it is called: the help of all of them and the version need no solver."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=_told(name))

    @cached_property
    def loaded(self) -> Any:
        """The command itself, imported when it is first asked for."""
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(self.name)(getattr(import_module(f"amdp.commands.{self.name}"), str(self.name)))
        return get_command(alone)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the command itself, which is what is called, explained and completed."""
        return self.loaded.make_context(*arguments, **options)


class Commands(TyperGroup):
    """All commands, none of them imported."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": {name: LaterCommand(name) for name in COMMANDS}})

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which they are used."""
        return list(COMMANDS)


def _told(name: str) -> str:
    """The docstring of a command, from the text of its module."""
    text = files("amdp.commands").joinpath(f"{name}.py").read_text(encoding="utf-8")
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    return ast.get_docstring(functions[name]) or ""


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


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
