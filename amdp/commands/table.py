"""`amdp table`: the paper's Table 1, and what its rows do when they are played."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from amdp.algorithms.paper_table import LOWER_BOUNDS, SINCE, STREAM, TABLE, LowerBound, Row
from amdp.commands import listing
from amdp.commands.ladder_rates import HEADS, MEANING, cells, markdown, play_ladders
from amdp.commands.listing import Entry
from amdp.commands.screen import AsJson, Screen, clear_errors, print_json
from amdp.errors import InvalidInput
from amdp.experiments.ladders import spec_of
from amdp.experiments.table_1 import ladders
from amdp.report.rates import LadderFit

SEEDS, QUICK_SEEDS = 20, 4
LETTERS = (
    "Letters: `H` steps, `S` states, `A` actions, `K` episodes, `T` steps of a stream, `D` total delay, `diam` "
    "diameter, `tau` mixing time, `alpha` least chance of a visit or a start."
)
COLUMNS = ("algorithm", "learner", "transitions", "feedback", "regret", "method", "time", "source")


def table(
    played: Annotated[bool, typer.Option("--run", help="Play the rows on their standard games.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --run: the folder for the runs; runs that are there are not repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="With --run: shorter games and fewer seeds.")] = False,
    workers: Annotated[
        int | None, typer.Option(help="With --run: number of processes; without it, one for each core.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="With --run: write the table to this Markdown page.")] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="Add rows of related work, and of work since then.")] = False,
    tuned: Annotated[
        bool,
        typer.Option("--tuned", help="With --run: also at the best of five multiples of theory's rate, tried first."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the paper's Table 1; with --run, play its rows and put measured rates beside the proved ones.

    Example: amdp table --all

    Example: amdp table --run --all --out table --quick
    """
    rows = [row for row in TABLE if row.printed or all_rows]
    with clear_errors():
        if not played:
            _refuse_unused({"--out": out, "--quick": quick, "--tuned": tuned, "--workers": workers, "--page": page})
            _show_rows(rows, as_json)
            return
        if out is None:
            raise InvalidInput("--run needs a folder for the runs: --out DIR")
        rungs = ladders(quick, rows)
        spec = spec_of("Table 1, played", rungs, QUICK_SEEDS if quick else SEEDS, tuned)
    flags = "".join(f" --{flag}" for flag, is_set in (("all", all_rows), ("tuned", tuned), ("quick", quick)) if is_set)
    play_ladders(spec, rungs, out, workers, page, lambda fits, figure: _page(rows, fits, figure, flags), as_json)


def _refuse_unused(options: dict[str, object]) -> None:
    """Refuse options that mean nothing without --run."""
    unused = [name for name, value in options.items() if value not in (None, False)]
    if unused:
        raise InvalidInput(f"{', '.join(unused)} without --run: nothing is played; add --run, or leave it out")


def _show_rows(rows: list[Row], as_json: bool) -> None:
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    ordered = sorted(rows, key=lambda row: (row.part == SINCE, row.setting == STREAM))  # else as the paper has them
    listing.show(listing.by_heading((row.heading, _entry(row)) for row in ordered), whole=False, hint=LETTERS)
    screen = Screen()
    for bound in LOWER_BOUNDS:
        screen.print(f"no learner beats {_lower(bound)}")


def _entry(row: Row) -> Entry:
    """The learner by name, then what the paper's row says of the algorithm, and how close the code is to its source."""
    about = f"{row.name}: {row.regret}; {row.method}, {row.efficiency}; {row.reference}"
    return Entry(row.learner, f"{about}; code: {row.provenance}")


def _lower(bound: LowerBound) -> str:
    return f"{bound.regret}: {bound.setting}, {bound.transitions}, {bound.feedback} ({bound.reference})"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        row.learner,
        row.transitions,
        row.feedback,
        row.regret,
        row.method,
        row.efficiency,
        row.reference,
    )


def _page(rows: list[Row], fits: list[LadderFit], figure: str, flags: str) -> str:
    """The rows as the paper states them, and as they were measured."""
    heads = (*COLUMNS, "operations a round", "setting", "part", "code")
    which = (
        "the rows of the paper's table, its related work, and work since then"
        if len(rows) == len(TABLE)
        else "the paper's rows only"
    )
    lines = [
        "# Table 1, executable",
        "",
        f"Written by `amdp table --run{flags} --out DIR --page docs/table-1.md`; do not edit. It has {which}.",
        LETTERS,
        "The column `learner` has the name for `amdp play`. A learner refuses worlds in which its assumption does not",
        "hold, and says why.",
        "",
        *markdown(heads, [(*_cells(row), row.cost, row.setting, row.part, row.provenance) for row in rows]),
        "",
        "No learner beats these:",
        "",
        *(f"- {_lower(bound)}" for bound in LOWER_BOUNDS),
        "",
        "## Measured",
        "",
        "The regret of games of growing length, in small worlds of two to four states and two actions. Delays are of",
        "20 rounds.",
        *MEANING,
        "",
        f"![The regret of every row as a share of that of uniform play, against the length of the game]({figure})",
        "",
        *markdown(HEADS, [cells(fit) for fit in fits]),
    ]
    return "\n".join(lines) + "\n"
