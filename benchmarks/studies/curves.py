"""Curves of a study: means over seeds, fitted exponents, a table and a figure."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan, log, nan, sqrt
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks.page import DOCS, markdown, put
from benchmarks.studies.choosing import Choice, choice
from benchmarks.studies.runs import Result, Run, collected

FIGURES = DOCS / "figures"
PAGE = DOCS / "ftpl.md"
COLUMNS = 2
Seeds = Mapping[int, int]  # how many seeds for each number of rounds


class Point(NamedTuple):
    """The mean regret over seeds, its standard error, and where it belongs on the horizontal axis."""

    x: float
    mean: float
    error: float
    seeds: int
    cut: float


class Fit(NamedTuple):
    """Exponent of a power law through points, and its standard error."""

    slope: float
    error: float

    def __str__(self) -> str:
        return "none" if isnan(self.slope) else f"{self.slope:.2f} ± {self.error:.2f}"


class Curve(NamedTuple):
    """Runs that differ in their seed and in what the horizontal axis shows."""

    label: str
    runs: tuple[Run, ...]


class Panel(NamedTuple):
    """Curves that are drawn together."""

    title: str
    curves: tuple[Curve, ...]


class Study(NamedTuple):
    """Panels over one horizontal axis, and the name of their figure."""

    name: str
    axis: str
    x: Callable[[Result], float]
    panels: tuple[Panel, ...]


def over_rounds(run: Run, seeds: Seeds) -> tuple[Run, ...]:
    """The run for each number of rounds, tuned for each of them, and for each seed."""
    return tuple(run._replace(rounds=rounds, seed=seed) for rounds, count in seeds.items() for seed in range(count))


def points(results: Iterable[Result], x: Callable[[Result], float]) -> list[Point]:
    """Means over the results at the same place, from left to right."""
    places: dict[float, list[Result]] = {}
    for result in results:
        places.setdefault(x(result), []).append(result)
    return [_point(place, places[place]) for place in sorted(places)]


def _point(place: float, results: Sequence[Result]) -> Point:
    regrets = np.array([result.regret for result in results])
    error = float(regrets.std(ddof=1)) / sqrt(len(regrets)) if len(regrets) > 1 else nan
    return Point(place, float(regrets.mean()), error, len(regrets), float(np.mean([one.cut for one in results])))


def fitted(curve: Sequence[Point]) -> Fit:
    """Least squares of the logarithms; the error is what the errors of the means make of it."""
    if len(curve) < 2 or min(point.mean for point in curve) <= 0.0:
        return Fit(nan, nan)
    x = np.log([point.x for point in curve])
    pull = (x - x.mean()) / ((x - x.mean()) @ (x - x.mean()))
    heights = np.array([log(point.mean) for point in curve])
    relative = np.array([point.error / point.mean for point in curve])
    return Fit(float(pull @ heights), float(np.sqrt(pull**2 @ relative**2)))


def tables(panel: Panel, axis: str, measured: Mapping[str, Sequence[Point]]) -> list[str]:
    """Markdown: curves over the same places, or some of them, share a table."""
    groups: list[list[str]] = []
    for label in measured:
        mine = _places(measured[label])
        group = next((one for one in groups if _nested(mine, _places(measured[one[0]]))), None)
        if group is None:
            groups.append([label])
        elif len(mine) > len(measured[group[0]]):
            group.insert(0, label)  # the first one has all places
        else:
            group.append(label)
    return [
        line for group in groups for line in (*_table(panel.title, axis, {one: measured[one] for one in group}), "")
    ]


def _places(curve: Sequence[Point]) -> set[float]:
    return {point.x for point in curve}


def _nested(one: set[float], other: set[float]) -> bool:
    return one <= other or other <= one


def _table(title: str, axis: str, measured: Mapping[str, Sequence[Point]]) -> list[str]:
    places = [point.x for point in next(iter(measured.values()))]
    heads = (title, *(f"{axis} = {place:,.0f}" for place in places), "exponent", "of the last two")
    rows = []
    for label, curve in measured.items():
        cells = {point.x: _cell(point) for point in curve}
        exponents = str(fitted(curve)), str(fitted(curve[-2:]))
        rows.append((label, *(cells.get(place, "") for place in places), *exponents))
    return markdown(heads, rows)


def _cell(point: Point) -> str:
    """Mean and standard error; in brackets the share of the rows that were cut, where it is not all of them."""
    digits = 0 if abs(point.mean) >= 1_000.0 else 1
    cut = f" ({point.cut:.2f})" if point.cut < 1.0 else ""
    return f"{point.mean:,.{digits}f} ± {point.error:,.{digits}f}{cut}"


def draw(axes: Axes, label: str, curve: Sequence[Point]) -> None:
    """One curve with bars of two standard errors; a logarithmic axis has no place for a mean below 0."""
    shown = [point for point in curve if point.mean > 0.0]
    x, mean, error = (np.array(column) for column in list(zip(*shown, strict=True))[:3])
    slope = fitted(curve).slope
    exponent = "no exponent" if isnan(slope) else f"{slope:.2f}"
    axes.errorbar(x, mean, 2 * error, marker="o", markersize=4, capsize=3, label=f"{label}: {exponent}")


def run_study(study: Study, folder: Path, figure: Path) -> list[str]:
    """Play what is missing, and draw; the tables of all numbers."""
    results = collected((run for panel in study.panels for curve in panel.curves for run in curve.runs), folder)
    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "amdp", "svg.fonttype": "none"}
    )  # the same numbers, the same small file
    rows = -(-len(study.panels) // COLUMNS)
    drawing, grid = pyplot.subplots(rows, COLUMNS, figsize=(10, 3.8 * rows), layout="constrained", squeeze=False)
    for axes in grid.flat[len(study.panels) :]:
        axes.remove()
    lines: list[str] = []
    for axes, panel in zip(grid.flat, study.panels, strict=False):
        measured = {curve.label: points([results[run] for run in curve.runs], study.x) for curve in panel.curves}
        lines += tables(panel, study.axis, measured)
        for label, curve in measured.items():
            draw(axes, label, curve)
        axes.set(xscale="log", yscale="log", xlabel=study.axis, ylabel="mean regret")
        axes.set_title(panel.title, fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    drawing.savefig(figure, metadata={"Date": None})
    pyplot.close(drawing)
    return lines[:-1]


def command(make: Callable[[bool, Choice], Study], about: str, arguments: Sequence[str] | None = None) -> None:
    """The command line of a study: a folder for its runs, and `--quick` for a small form that changes no page."""
    parser = ArgumentParser(description=about)
    parser.add_argument("folder", type=Path, help="where each run leaves a file; runs that have one are not repeated")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="seconds instead of minutes; the figure goes to the folder, no page is written",
    )
    given = parser.parse_args(arguments)
    study = make(given.quick, choice(given.folder, given.quick))
    place = given.folder if given.quick else FIGURES
    lines = run_study(study, given.folder, place / f"{study.name}.svg")
    print("\n".join(lines))
    if not given.quick:
        put(PAGE, study.name, lines)
