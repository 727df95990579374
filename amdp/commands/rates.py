"""`amdp rates`: exponents of regret and seconds in each size that the theorems name."""

from pathlib import Path
from typing import Annotated

import typer

from amdp.commands.ladder_rates import HEADS, MEANING, cells, markdown, play_ladders
from amdp.commands.screen import AsJson, Workers, clear_errors
from amdp.errors import InvalidInput
from amdp.experiments.growth import LONG, SHORT, TRIAL, ladders
from amdp.experiments.ladders import spec_of
from amdp.report.rates import LadderFit


def rates(
    out: Annotated[Path, typer.Option(help="The folder for the runs; runs that are there are not repeated.")],
    long: Annotated[
        bool, typer.Option("--long", help="Longer games and more seeds: some 20 minutes of one processor.")
    ] = False,
    trial: Annotated[bool, typer.Option("--trial", help="Tiny games that take seconds, to try the command.")] = False,
    workers: Workers = None,
    page: Annotated[Path | None, typer.Option(help="Write the table to this Markdown page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit exponents of regret in episodes, delay, steps, horizon, states and actions, beside those of the theorems.

    Each game is tuned for its own size. FTPL is compared with mirror descent and Hedge, on three families of worlds.

    Example: amdp rates --out rates --page docs/rates.md
    """
    with clear_errors():
        if long and trial:
            raise InvalidInput("--long and --trial exclude each other; give one, or none for games of minutes")
        flag, sizes = (" --long", LONG) if long else (" --trial", TRIAL) if trial else ("", SHORT)
        rungs = ladders(sizes)
        spec = spec_of("Rates", rungs, sizes.seeds)
    play_ladders(spec, rungs, out, workers, page, lambda fits, figure: _page(fits, figure, flag), as_json)


def _page(fits: list[LadderFit], figure: str, flag: str) -> str:
    lines = [
        "# Rates and costs, measured",
        "",
        f"Written by `amdp rates{flag} --out DIR --page docs/rates.md`; do not edit.",
        "",
        *MEANING,
        "",
        f"![The regret of every ladder as a share of that of uniform play, against its size]({figure})",
        "",
        *markdown(HEADS, [cells(fit) for fit in fits]),
        "",
        "Along `n_actions` a random world has better actions as it has more of them: uniform play loses more to the",
        "best policy, whoever learns. Along `copies` each action is there so many times: the number of actions grows,",
        "and the best and the uniform policy stay as they are. The exponent of the bounds is about that growth.",
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
