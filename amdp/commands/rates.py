"""`amdp rates`: exponents of regret and seconds in each size that the theorems name."""

from pathlib import Path
from typing import Annotated

import typer

from amdp.commands.ladder_rates import HEADS, MEANING, cells, leave, markdown, play_ladders, require_place, show, write
from amdp.commands.refusals import clear_errors
from amdp.errors import InvalidInput
from amdp.experiments.growth import LONG, SHORT, TRIAL, ladders
from amdp.report.rates import LadderFit

TITLE = "Rates"


def rates(
    out: Annotated[Path, typer.Option(help="The folder for the runs; runs that are there are not repeated.")],
    long: Annotated[
        bool, typer.Option("--long", help="Longer games and more seeds: hours instead of minutes.")
    ] = False,
    trial: Annotated[bool, typer.Option("--trial", help="Tiny games that take seconds, to try the command.")] = False,
    workers: Annotated[int | None, typer.Option(help="Number of processes; without it, one for each core.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the table to this Markdown page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Fit exponents of regret in episodes, delay, steps, horizon, states and actions, beside those of the theorems.

    Each game is tuned for its own size. FTPL is compared with mirror descent and Hedge, on three families of worlds.

    Example: amdp rates --out rates --page docs/rates.md
    """
    with clear_errors():
        if long and trial:
            raise InvalidInput("--long and --trial exclude each other; give fit, or none for games of minutes")
        require_place(page)
        flag, sizes = (" --long", LONG) if long else (" --trial", TRIAL) if trial else ("", SHORT)
        fits, outcome = play_ladders(TITLE, ladders(sizes), sizes.seeds, out, workers)
        show(TITLE, fits, as_json)
        write(page, lambda: _page(fits, flag), outcome)
    leave(outcome)


def _page(fits: list[LadderFit], flag: str) -> str:
    lines = [
        "# Rates and costs, measured",
        "",
        f"Written by `amdp rates{flag} --out DIR --page docs/rates.md`; do not edit.",
        "",
        *MEANING,
        "",
        *markdown(HEADS, [cells(fit) for fit in fits]),
        "",
        "## Cost",
        "",
        "Seconds a round of the learner, by size, and the exponent of their growth. At these sizes a round is mostly",
        "fixed cost. Where FTPL is cheaper than mirror descent, as the paper says it is, and where it is not, is",
        "measured up to 5,000 states on [a page of its own](ftpl-or-omd.md).",
        "",
        *markdown(("what", "size", "seconds a round", "exponent"), [_cost(fit) for fit in fits if _grows(fit)]),
    ]
    return "\n".join(lines) + "\n"


def _grows(fit: LadderFit) -> bool:
    return fit.ladder.along.startswith("instance.") and len(fit.rungs) > 0


def _cost(fit: LadderFit) -> tuple[str, ...]:
    rungs = ", ".join(f"{rung:.0f}" for rung in fit.rungs)
    seconds = ", ".join(f"{second:.1e}" for second in fit.seconds)
    return fit.ladder.name, rungs, seconds, f"{fit.seconds_exponent:.2f}"
