"""`amdp rates`: what regret and seconds grow like along each size of the theorems."""

from pathlib import Path
from typing import Annotated

import typer

from amdp.commands.climbing import HEADS, MEANING, cells, climbed, leave, markdown, require_place, show, write
from amdp.commands.refusals import clear_errors
from amdp.errors import InvalidInput
from amdp.experiments.growth import LONG, SHORT, TRIAL, ladders
from amdp.report.rates import Climb

TITLE = "Rates"


def rates(
    out: Annotated[Path, typer.Option(help="The folder for the runs; called again, it goes on.")],
    long: Annotated[bool, typer.Option("--long", help="Longer games, more seeds: hours instead of minutes.")] = False,
    trial: Annotated[bool, typer.Option("--trial", help="Tiny games, to see that it works: seconds.")] = False,
    workers: Annotated[int | None, typer.Option(help="Processes; as many as cores.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write a Markdown page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Fit exponents of regret in episodes, delay, steps, horizon, states and actions, beside those of the theorems.

    Each game is tuned for its own size. FTPL stands beside mirror descent and Hedge, on three families of worlds.

    Example: amdp rates --out rates --page docs/rates.md
    """
    with clear_errors():
        if long and trial:
            raise InvalidInput("--long and --trial exclude each other; give one, or none for games of minutes")
        require_place(page)
        flag, sizes = (" --long", LONG) if long else (" --trial", TRIAL) if trial else ("", SHORT)
        climbs, outcome = climbed(TITLE, ladders(sizes), sizes.seeds, out, workers)
        show(TITLE, climbs, as_json)
        write(page, lambda: _page(climbs, flag), outcome)
    leave(outcome)


def _page(climbs: list[Climb], flag: str) -> str:
    lines = [
        "# Rates and costs, measured",
        "",
        f"Written by `amdp rates{flag} --out DIR --page docs/rates.md`; do not edit.",
        "",
        *MEANING,
        "",
        *markdown(HEADS, [cells(one) for one in climbs]),
        "",
        "## Cost",
        "",
        "Seconds a round of the learner, by size, and the exponent of their growth. At these sizes a round is mostly",
        "fixed cost. Where FTPL is cheaper than mirror descent, as the paper says it is, and where it is not, is",
        "measured up to 5,000 states on [a page of its own](ftpl-or-omd.md).",
        "",
        *markdown(("what", "size", "seconds a round", "exponent"), [_cost(one) for one in climbs if _grows(one)]),
    ]
    return "\n".join(lines) + "\n"


def _grows(one: Climb) -> bool:
    return one.ladder.along.startswith("instance.") and len(one.rungs) > 0


def _cost(one: Climb) -> tuple[str, ...]:
    rungs = ", ".join(f"{rung:.0f}" for rung in one.rungs)
    seconds = ", ".join(f"{second:.1e}" for second in one.seconds)
    return one.ladder.name, rungs, seconds, f"{one.seconds_exponent:.2f}"
