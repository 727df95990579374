"""Play ladders of games of growing size, and print the exponents of their regret: `amdp table --run`, `amdp rates`."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Column, Table

from amdp.commands.refusals import INTERRUPTED, interruptible
from amdp.commands.screen import Screen, complain
from amdp.errors import InvalidInput
from amdp.experiments.engines import LocalPool
from amdp.experiments.ladders import Ladder, spec_of
from amdp.experiments.progress import watcher
from amdp.experiments.runner import Outcome, run
from amdp.experiments.storage import Store
from amdp.report.rates import LadderFit, fit_ladders
from amdp.report.tables import interval

SOME_FAILED = 3  # the exit code
WIDE = 110  # characters of a line that holds all columns
COLUMNS = (  # in a terminal; in a narrow one without the last two
    "learner, game",
    "up to",
    "final regret\nmean [95 % interval]",
    "exponent\n[95 % interval]",
    "proved",
    "seconds a round",
    "plans a round",
)
HEADS = (  # on a page
    "what",
    "up to",
    "final regret, mean and 95 % interval",
    "exponent",
    "proved",
    "seconds a round",
    "plans a round",
)
MEANING = (  # the explanation of the table on pages
    "Every game is tuned for its own size as theory says. The exponent is that of a power law through the mean final",
    "regrets, with a 95 % interval over seeds, none below 4 of them; it covers the noise of seeds, not a",
    "lack of fit. `proved` is the exponent of the whole bound over the same sizes. The worlds are small, the adversary",
    "is benign: its losses are independent zeros and ones with a fixed mean, and such losses allow exponents below the",
    "proved ones, which are for worst cases. Exponents above them come from sizes too small for the asymptotics.",
    "`seconds a round` and `plans a round`, questions to a planning oracle, are those of the largest game.",
)


def play_ladders(
    title: str, ladders: Sequence[Ladder], seeds: int, out: Path, workers: int | None
) -> tuple[list[LadderFit], Outcome]:
    """Play the runs that are missing, and fit exponents to all."""
    spec = spec_of(title, ladders, seeds)
    with Store(out) as store:
        with interruptible() as stop:
            outcome = run(spec, store, LocalPool(workers), watcher(Screen(stderr=True), False), stop=stop)
        return fit_ladders(spec, store, ladders), outcome


def require_place(page: Path | None) -> None:
    """Refuse a page that could not be written, before hours of games."""
    if page is None:
        return
    if page.is_dir():
        raise InvalidInput(f"--page {page} is a folder; name a file in it")
    if not page.absolute().parent.is_dir():
        raise InvalidInput(f"--page {page}: there is no folder {page.absolute().parent}; make it first")


def write(page: Path | None, text: Callable[[], str], outcome: Outcome) -> None:
    """Write the page if all runs were played: a page of some of them would look complete."""
    if page is None:
        return
    if outcome.interrupted or not outcome.complete:
        complain(f"interrupted: {page} is left as it was")
        return
    try:
        page.write_text(text(), encoding="utf-8")
    except OSError as problem:
        raise InvalidInput(f"{page} cannot be written: {problem}") from problem


def leave(outcome: Outcome) -> None:
    """Exit with a code if runs failed or were interrupted."""
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if outcome.failed:
        raise typer.Exit(SOME_FAILED)


def show(title: str, fits: Sequence[LadderFit], as_json: bool) -> None:
    """Print the fits as a table or as JSON."""
    if as_json:
        typer.echo(json.dumps([plain(fit) for fit in fits], indent=2))
        return
    screen = Screen()
    columns = COLUMNS if screen.width >= WIDE else COLUMNS[:-2]
    shown = Table(*(Column(head, no_wrap="[" in head) for head in columns), title=title)
    for fit in fits:
        shown.add_row(*cells(fit)[: len(columns)])
    screen.print(shown)


def cells(fit: LadderFit) -> tuple[str, ...]:
    """The cells of a fit in the table."""
    proved = "" if fit.ladder.proved is None else f"{fit.ladder.proved:.2f}"
    if not len(fit.rungs):
        return (_what(fit), "0", "no run ended well", "", proved, "", "")
    size = fit.ladder.along.removeprefix("instance.")
    return (
        _what(fit),
        f"{size} {fit.rungs[-1]:.0f}",
        interval(fit.last),
        interval(fit.exponent),
        proved,
        f"{fit.seconds[-1]:.1e}",
        f"{fit.calls[-1]:.3g}",
    )


def _what(fit: LadderFit) -> str:
    """The name of the ladder, and how many of its runs are missing."""
    if not fit.missing:
        return fit.ladder.name
    runs = "1 run" if fit.missing == 1 else f"{fit.missing} runs"
    nowhere = ", none at " + ", ".join(map(str, fit.empty)) if fit.empty else ""
    return f"{fit.ladder.name} ({runs} missing{nowhere})"


def plain(fit: LadderFit) -> dict[str, Any]:
    """The fit as JSON; keys of files that programs read."""
    return {
        "name": fit.ladder.name,
        "along": fit.ladder.along,
        "rungs": fit.rungs.tolist(),
        "regret": fit.regret.tolist(),
        "exponent": [_number(part) for part in fit.exponent],
        "proved": fit.ladder.proved,
        "seconds_a_round": fit.seconds.tolist(),
        "seconds_exponent": _number(fit.seconds_exponent),
        "oracle_calls_a_round": fit.calls.tolist(),
        "missing_runs": fit.missing,
    }


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]


def _number(part: Any) -> float | None:
    value = float(part.reshape(-1)[0]) if hasattr(part, "reshape") else float(part)
    return value if value == value else None  # NaN is not JSON
