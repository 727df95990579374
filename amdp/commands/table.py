"""`amdp table`: the paper's Table 1, and what its rows do when they are played."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from amdp.algorithms.catalog import LOWER_BOUNDS, TABLE, LowerBound, Row, Setting
from amdp.commands.climbing import HEADS, cells, climbed, leave, markdown, plain, show
from amdp.commands.refusals import clear_errors
from amdp.errors import InvalidInput
from amdp.experiments.table_1 import ladders
from amdp.report.rates import Climb

TITLE = "Table 1, played"
SEEDS, QUICK_SEEDS = 8, 3
COLUMNS = ("algorithm", "learner", "transitions", "feedback", "regret", "method", "time")


def table(
    played: Annotated[bool, typer.Option("--run", help="Play every row on its standard game.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --run: the folder for the runs; called again, it goes on.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="With --run: shorter games and fewer seeds.")] = False,
    workers: Annotated[int | None, typer.Option(help="With --run: processes; as many as cores.")] = None,
    page: Annotated[Path | None, typer.Option(help="With --run: write a Markdown page.")] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="Also what is not in the paper's table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print the paper's Table 1; with --run, play every row and put measured rates beside the proved ones.

    Example: amdp table --all

    Example: amdp table --run --out table --quick
    """
    with clear_errors():
        if not played:
            _show_rows([row for row in TABLE if row.printed or all_rows], as_json)
            return
        if out is None:
            raise InvalidInput("--run needs a folder for the runs: --out DIR")
        climbs, outcome = climbed(TITLE, ladders(quick), QUICK_SEEDS if quick else SEEDS, out, workers)
        if page:
            page.write_text(_page(climbs, quick), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps([plain(one) for one in climbs], indent=2))
    else:
        show(TITLE, climbs)
    leave(outcome)


def _show_rows(rows: list[Row], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    console = Console()
    for setting in Setting:
        shown = Table(*COLUMNS, title=str(setting))
        for row in rows:
            if row.setting is setting:
                shown.add_row(*_cells(row))
        console.print(shown)
    for bound in LOWER_BOUNDS:
        console.print(f"no learner beats {_lower(bound)}", highlight=False, markup=False)


def _lower(bound: LowerBound) -> str:
    return f"{bound.regret}: {bound.setting}, {bound.transitions}, {bound.feedback} ({bound.reference})"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        row.learner,
        str(row.transitions),
        str(row.feedback),
        row.regret,
        str(row.method),
        str(row.efficiency),
    )


def _all_cells(row: Row) -> tuple[str, ...]:
    return (*_cells(row), row.cost, str(row.setting), row.reference, str(row.provenance))


def _page(climbs: list[Climb], quick: bool) -> str:
    """The rows as the paper states them, and as they were measured."""
    flag = " --quick" if quick else ""
    heads = (*COLUMNS, "operations a round", "setting", "source", "code")
    lines = [
        "# Table 1, executable",
        "",
        f"Written by `amdp table --run{flag} --out DIR --page docs/table-1.md`; do not edit. Letters: `H` steps, `S`",
        "states, `A` actions, `K` episodes, `T` steps of a stream, `D` total delay or diameter, `tau` mixing time.",
        "Each row is a learner by that short name; it refuses worlds in which its assumption does not hold, and why.",
        "",
        *markdown(
            heads, [(*_cells(row), row.cost, str(row.setting), row.reference, str(row.provenance)) for row in TABLE]
        ),
        "",
        "No learner beats these:",
        "",
        *(f"- {_lower(one)}" for one in LOWER_BOUNDS),
        "",
        "## Measured",
        "",
        "The regret of games of growing length, each tuned for its length as theory says; the exponent is that of a",
        "power law through the mean regrets, with a 95 % bootstrap interval over seeds. Small worlds, losses that are",
        "zeros and ones with a fixed mean: an exponent above the proved one is no contradiction (the bound is far",
        "away), one below it is luck that worst cases do not allow.",
        "",
        *markdown(HEADS, [cells(one) for one in climbs]),
    ]
    return "\n".join(lines) + "\n"
