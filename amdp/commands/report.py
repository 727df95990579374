"""`amdp report`: figures, tables and a page from stored runs, without playing any."""

import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from amdp.commands.screen import Screen, clear_errors, complain
from amdp.experiments import manifest
from amdp.experiments.storage import Store
from amdp.report import Look, MeanBand, MedianBand, StoredRuns, write_runs
from amdp.report.figures import FORMATS
from amdp.report.page import progress
from amdp.report.statistics import Band


class Center(StrEnum):
    """The statistic that summarizes the seeds of a learner in a game."""

    MEAN = "mean"
    MEDIAN = "median"


class Width(StrEnum):
    """Where the figures are to stand."""

    SCREEN = "screen"
    COLUMN = "column"
    PAGE = "page"


BANDS: dict[Center, Band] = {Center.MEAN: MeanBand(), Center.MEDIAN: MedianBand()}


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `amdp compare` wrote; it need not be complete.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the report; FOLDER/report without it.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Also draw a thin line for every run.")] = False,
    band: Annotated[Center, typer.Option(help="Mean with its 95 % interval, or median with quartiles.")] = Center.MEAN,
    formats: Annotated[str, typer.Option(help="File formats of the figures, separated by commas.")] = ",".join(FORMATS),
    width: Annotated[Width, typer.Option(help="Width of the figures: 3.3 or 6.9 inches for papers.")] = Width.SCREEN,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
) -> None:
    """Write figures, tables and one page about the runs of a folder, and print how many runs are missing.

    Example: amdp report results --width column --formats pdf
    """
    with clear_errors(), Store(folder) as store:
        wanted = tuple(dict.fromkeys(name.strip() for name in formats.split(",") if name.strip()))
        look = Look(BANDS[band], raw, wanted, width)
        runs = StoredRuns.gather(manifest.load(folder), store)
        written = write_runs(runs, out or folder / "report", look)
    for problem in store.broken.values():
        complain(f"left out: {problem}")
    screen = Screen()
    screen.say(progress(runs))
    screen.say(f"{written.page}: {len(written.figures)} figure files, {len(written.tables)} table files")
    if open_page:
        webbrowser.open(written.page.resolve().as_uri())
