"""`amdp rates`: what regret and seconds grow like along each size of the theorems."""

import json
from pathlib import Path
from typing import Annotated

import typer

from amdp.commands.climbing import HEADS, cells, climbed, leave, markdown, plain, show
from amdp.commands.refusals import clear_errors
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
        sizes = LONG if long else TRIAL if trial else SHORT
        climbs, outcome = climbed(TITLE, ladders(sizes), sizes.seeds, out, workers)
        if page:
            page.write_text(_page(climbs, " --long" if long else " --trial" if trial else ""), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps([plain(one) for one in climbs], indent=2))
    else:
        show(TITLE, climbs)
    leave(outcome)


def _page(climbs: list[Climb], flag: str) -> str:
    lines = [
        "# Rates and costs, measured",
        "",
        f"Written by `amdp rates{flag} --out DIR --page docs/rates.md`; do not edit. Every game is tuned for its own",
        "size as theory says; the exponent is that of a power law through the mean final regrets, with a 95 %",
        "bootstrap interval over seeds. `seconds a round` and `plans a round` are those of the largest game.",
        "",
        *markdown(HEADS, [cells(one) for one in climbs]),
        "",
        "## Cost",
        "",
        "Seconds a round of the learner, by size, and the exponent of their growth:",
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
