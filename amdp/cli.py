"""Adversarial Markov decision processes: no-regret learners on planning oracles that prove their answers.

Experiments: new, compare, report, results. One run, one plan, one world: play, solve, reach.

Names to choose from: instances, learners, oracles. The theory: table, rates, verify.
"""

from typing import Annotated

import typer

from amdp import __version__
from amdp.commands.compare import compare
from amdp.commands.learners import learners
from amdp.commands.lists import instances, oracles
from amdp.commands.new import new
from amdp.commands.play import play
from amdp.commands.rates import rates
from amdp.commands.reach import reach
from amdp.commands.report import report
from amdp.commands.results import results
from amdp.commands.solve import solve
from amdp.commands.table import table
from amdp.commands.verify import verify

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, help=__doc__)
for command in (new, compare, report, results, play, solve, reach, instances, learners, oracles, table, rates, verify):
    app.command()(command)


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
