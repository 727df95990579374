"""What `amdp table --run` and `amdp rates` share: play the rungs of ladders, and print what they grow like."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from amdp.commands.refusals import INTERRUPTED, interruptible
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


def climbed(
    title: str, ladders: Sequence[Ladder], seeds: int, out: Path, workers: int | None
) -> tuple[list[Climb], Outcome]:
    """Play what is not there yet, and measure."""
    spec = spec_of(title, ladders, seeds)
    with Store(out) as store:
        with interruptible() as stop:
            outcome = run(spec, store, LocalPool(workers), watcher(Console(stderr=True), False), stop=stop)
        return climb(spec, store, ladders), outcome


def leave(outcome: Outcome) -> None:
    """End with the exit code that says how it went."""
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if outcome.failed:
        raise typer.Exit(SOME_FAILED)


def show(title: str, climbs: Sequence[Climb]) -> None:
    """A table on the screen."""
    shown = Table(*HEADS, title=title)
    for one in climbs:
        shown.add_row(*cells(one))
    Console().print(shown)


def cells(one: Climb) -> tuple[str, ...]:
    """A row of the table."""
    proved = "" if one.ladder.proved is None else f"{one.ladder.proved:.2f}"
    if not len(one.rungs):
        return (one.ladder.name, "0", "no run ended well", "", proved, "", "")
    size = one.ladder.along.removeprefix("instance.")
    return (
        one.ladder.name,
        f"{size} {one.rungs[-1]:.0f}",
        interval(one.last),
        interval(one.exponent),
        proved,
        f"{one.seconds[-1]:.1e}",
        f"{one.calls[-1]:.3g}",
    )


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
