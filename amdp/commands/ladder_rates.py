"""Play ladders of games of growing size, and print the exponents of their regret: `amdp table --run`, `amdp rates`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Column, Table

from amdp.commands.screen import Screen, clear_errors, complain, interruptible, leave, print_json
from amdp.errors import InvalidInput
from amdp.experiments.engines import LocalPool
from amdp.experiments.ladders import TUNE, Ladder
from amdp.experiments.progress import watcher
from amdp.experiments.runner import Outcome, run
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.report.ladder_figure import ladder_figure
from amdp.report.rates import LadderFit, fit_ladders
from amdp.report.tables import interval, number

WIDE = 120  # characters of a line that holds all columns
REST = ("proved", "share of uniform", "seconds a round", "plans a round")
# In a terminal, in a narrow one without the last three; and on a page.
COLUMNS = ("learner, game", "up to", "final regret\nmean [95 % interval]", "exponent\n[95 % interval]", *REST)
HEADS = ("what", "up to", "final regret, mean and 95 % interval", "exponent", *REST)
MEANING = (  # the explanation of the table on pages
    "Every game is tuned for its own size as theory says; where a row is called tuned, by the best of",
    f"five multiples of that rate, tried on {TUNE['seeds']} other seeds in games of at most {TUNE['rounds']:,} rounds.",
    "Rows with unknown transitions use the confidence sets of Jin et al. (2020) with a tenth of their radius,",
    "for which nothing is proved: there `proved` is the exponent for the whole radius. The exponent",
    "is that of a power law through the mean final regrets of the last decade of sizes, with a 95 %",
    "interval over seeds, which says nothing of whether a power law fits; there is no interval with",
    "fewer than 4 seeds, nor where the mean of some bootstrap sample of the seeds is not above zero. `proved` is the",
    "exponent of the whole bound over the same sizes. `share of uniform` is the final regret divided",
    "by that of uniform play: 1 if nothing is learned. The worlds are small, the adversary is benign:",
    "its losses are independent zeros and ones with a fixed mean, and such losses allow exponents",
    "below the proved ones, which are for worst cases. Why those of Table 1 that are above the proved",
    "ones are so is tested in [longer games, other worlds and with tuned rates](exponents.md).",
    "`seconds a round` and `plans a round`, questions to a planning oracle, are those of the largest",
    "game. For learners in epochs a round is an epoch. Plans are made in batches of up to 32, and all",
    "of a batch are counted. Seconds depend on the machine and on what else it does.",
)


def play_ladders(
    spec: Spec,
    ladders: Sequence[Ladder],
    out: Path,
    workers: int | None,
    page: Path | None,
    text: Callable[[list[LadderFit], str], str],
    as_json: bool,
) -> None:
    """Play the runs that are missing, fit exponents to all, print them, and write their `text` to the page.

    The text gets the fits, and the place of the figure that is written beside the page.
    """
    with clear_errors(), Store(out) as store:
        _require_place(page)
        with interruptible() as stop:
            outcome = run(spec, store, LocalPool(workers), watcher(Screen(stderr=True), False), stop=stop)
        fits = fit_ladders(spec, store, ladders)
        if as_json:
            print_json([plain(fit) for fit in fits])
        else:
            _show(spec.title, fits)
        if page:
            figure = Path("figures", f"{page.stem}.svg")
            _write(page, text(fits, figure.as_posix()), page.parent / figure, fits, outcome)
    leave(interrupted=outcome.interrupted, failed=bool(outcome.failed))


def _require_place(page: Path | None) -> None:
    """Refuse a page that could not be written, before hours of games."""
    if page is None:
        return
    if page.is_dir():
        raise InvalidInput(f"--page {page} is a folder; name a file in it")
    if not page.absolute().parent.is_dir():
        raise InvalidInput(f"--page {page}: there is no folder {page.absolute().parent}; make it first")


def _write(page: Path, text: str, figure: Path, fits: list[LadderFit], outcome: Outcome) -> None:
    """Write the page and its figure if all runs were played: a page of some of them would look complete."""
    if outcome.interrupted or not outcome.complete:
        complain(f"interrupted: {page} is left as it was")
        return
    try:
        figure.parent.mkdir(exist_ok=True)
        figure.write_bytes(ladder_figure(fits))
        page.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InvalidInput(f"{page} cannot be written: {problem}") from problem


def _show(title: str, fits: Sequence[LadderFit]) -> None:
    screen = Screen()
    columns = COLUMNS if screen.width >= WIDE else COLUMNS[:-3]
    shown = Table(*(Column(head, no_wrap="[" in head) for head in columns), title=title)
    for fit in fits:
        shown.add_row(*cells(fit)[: len(columns)])
    screen.print(shown)


def cells(fit: LadderFit) -> tuple[str, ...]:
    """The cells of a fit in the table."""
    proved = "" if fit.ladder.proved is None else f"{fit.ladder.proved:.2f}"
    if not len(fit.rungs):
        return (_what(fit), "0", "no run ended well", "", proved, "", "", "")
    return (
        _what(fit),
        f"{fit.ladder.size} {fit.rungs[-1]:.0f}",
        interval(fit.last),
        interval(fit.exponent),
        proved,
        number(float(fit.shares[-1])),
        f"{fit.seconds[-1]:.1e}",
        f"{fit.calls[-1]:.3g}",
    )


def _what(fit: LadderFit) -> str:
    """The name of the ladder, and how many of its runs are missing."""
    if not fit.missing:
        return fit.name
    runs = "1 run" if fit.missing == 1 else f"{fit.missing} runs"
    nowhere = ", none at " + ", ".join(map(str, fit.empty)) if fit.empty else ""
    return f"{fit.name} ({runs} missing{nowhere})"


def plain(fit: LadderFit) -> dict[str, Any]:
    """The fit as JSON; keys of files that programs read."""
    return {
        "name": fit.name,
        "along": fit.ladder.along,
        "rungs": fit.rungs.tolist(),
        "regret": fit.regret.tolist(),
        "share_of_uniform": [_number(share) for share in fit.shares],
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
    value = float(np.ravel(part)[0])
    return value if value == value else None  # NaN is not JSON
