"""What `amdp table --run` and `amdp rates` share: play the rungs of ladders, and print what they grow like."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from amdp.commands.refusals import INTERRUPTED, interruptible
from amdp.commands.screen import Screen, complain
from amdp.errors import InvalidInput
from amdp.experiments.engines import LocalPool
from amdp.experiments.ladders import Ladder, spec_of
from amdp.experiments.progress import watcher
from amdp.experiments.runner import Outcome, run
from amdp.experiments.storage import Store
from amdp.report.rates import Climb, climb
from amdp.report.tables import interval

SOME_FAILED = 3  # the exit code
HEADS = (
    "what",
    "up to",
    "final regret, mean and 95 % interval",
    "exponent",
    "proved",
    "seconds a round",
    "plans a round",
)
MEANING = (  # of the table, for pages
    "Every game is tuned for its own size as theory says. The exponent is that of a power law through the mean final",
    "regrets, with a 95 % interval over seeds, none below 4 of them; it covers the noise of seeds, not a",
    "lack of fit. `proved` is the exponent of the whole bound over the same sizes. The worlds are small, the adversary",
    "is benign: its losses are independent zeros and ones with a fixed mean, and such losses allow exponents below the",
    "proved ones, which are for worst cases. Exponents above them come from sizes too small for the asymptotics.",
    "`seconds a round` and `plans a round`, questions to a planning oracle, are those of the largest game.",
)


def climbed(
    title: str, ladders: Sequence[Ladder], seeds: int, out: Path, workers: int | None
) -> tuple[list[Climb], Outcome]:
    """Play what is not there yet, and measure."""
    spec = spec_of(title, ladders, seeds)
    with Store(out) as store:
        with interruptible() as stop:
            outcome = run(spec, store, LocalPool(workers), watcher(Screen(stderr=True), False), stop=stop)
        return climb(spec, store, ladders), outcome


def require_place(page: Path | None) -> None:
    """Refuse a page that could not be written, before hours are spent on it."""
    if page is None:
        return
    if page.is_dir():
        raise InvalidInput(f"--page {page} is a folder; name a file in it")
    if not page.absolute().parent.is_dir():
        raise InvalidInput(f"--page {page}: there is no folder {page.absolute().parent}; make it first")


def write(page: Path | None, text: Callable[[], str], outcome: Outcome) -> None:
    """Write the page, unless runs are still to be played: a page of some of them would look like one of all."""
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
    """End with the exit code that says how it went."""
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if outcome.failed:
        raise typer.Exit(SOME_FAILED)


def show(title: str, climbs: Sequence[Climb], as_json: bool) -> None:
    """On the screen, for people or for programs."""
    if as_json:
        typer.echo(json.dumps([plain(one) for one in climbs], indent=2))
        return
    shown = Table(title=title)
    for head in HEADS:
        shown.add_column(head, overflow="fold")
    for one in climbs:
        shown.add_row(*cells(one))
    Screen().print(shown)


def cells(one: Climb) -> tuple[str, ...]:
    """A row of the table."""
    proved = "" if one.ladder.proved is None else f"{one.ladder.proved:.2f}"
    if not len(one.rungs):
        return (_what(one), "0", "no run ended well", "", proved, "", "")
    size = one.ladder.along.removeprefix("instance.")
    return (
        _what(one),
        f"{size} {one.rungs[-1]:.0f}",
        interval(one.last),
        interval(one.exponent),
        proved,
        f"{one.seconds[-1]:.1e}",
        f"{one.calls[-1]:.3g}",
    )


def _what(one: Climb) -> str:
    """The name, and what it lacks."""
    if not one.missing:
        return one.ladder.name
    runs = "1 run" if one.missing == 1 else f"{one.missing} runs"
    nowhere = ", none at " + ", ".join(map(str, one.empty)) if one.empty else ""
    return f"{one.ladder.name} ({runs} missing{nowhere})"


def plain(one: Climb) -> dict[str, Any]:
    """For JSON."""
    return {
        "name": one.ladder.name,
        "along": one.ladder.along,
        "rungs": one.rungs.tolist(),
        "regret": one.regret.tolist(),
        "exponent": [_number(part) for part in one.exponent],
        "proved": one.ladder.proved,
        "seconds_a_round": one.seconds.tolist(),
        "seconds_exponent": _number(one.seconds_exponent),
        "oracle_calls_a_round": one.calls.tolist(),
        "missing_runs": one.missing,
    }


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of a page."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]


def _number(part: Any) -> float | None:
    value = float(part.reshape(-1)[0]) if hasattr(part, "reshape") else float(part)
    return value if value == value else None  # NaN is not JSON
