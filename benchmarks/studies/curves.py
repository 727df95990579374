"""Curves of a study: means over seeds, fitted exponents, a table and a figure."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log, nan, sqrt
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks.studies.choosing import Choice, choice
from benchmarks.studies.runs import Result, Run, collected

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
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
        return f"{self.slope:.2f} ± {self.error:.2f}"


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


def tabled(curve: Sequence[Point], axis: str) -> str:
    """The rows of one curve, with its exponents."""
    rows = [
        f"    {axis} = {point.x:>9,.0f}: regret {point.mean:9.1f} ± {point.error:6.1f}, {point.seeds} seeds"
        + (f", rows cut {point.cut:.2f}" if point.cut < 1.0 else "")
        for point in curve
    ]
    return "\n".join([*rows, f"    exponent {fitted(curve)}, of the last two {fitted(curve[-2:])}"])


def draw(axes: Axes, label: str, curve: Sequence[Point]) -> None:
    """One curve with bars of two standard errors."""
    x, mean, error = (np.array(column) for column in list(zip(*curve, strict=True))[:3])
    axes.errorbar(x, mean, 2 * error, marker="o", markersize=4, capsize=3, label=f"{label}: {fitted(curve).slope:.2f}")


def run_study(study: Study, folder: Path, figure: Path) -> None:
    """Play what is missing, print every number, and draw."""
    results = collected((run for panel in study.panels for curve in panel.curves for run in curve.runs), folder)
    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "amdp", "svg.fonttype": "none"}
    )  # the same numbers, the same small file
    rows = -(-len(study.panels) // COLUMNS)
    drawing, grid = pyplot.subplots(rows, COLUMNS, figsize=(10, 3.8 * rows), layout="constrained", squeeze=False)
    for axes in grid.flat[len(study.panels) :]:
        axes.remove()
    for axes, panel in zip(grid.flat, study.panels, strict=False):
        print(panel.title)
        for curve in panel.curves:
            measured = points([results[run] for run in curve.runs], study.x)
            print(f"  {curve.label}\n{tabled(measured, study.axis)}")
            draw(axes, curve.label, measured)
        axes.set(xscale="log", yscale="log", xlabel=study.axis, ylabel="mean regret")
        axes.set_title(panel.title, fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    drawing.savefig(figure, metadata={"Date": None})
    pyplot.close(drawing)
    print(f"drawn: {figure.name}")


def command(make: Callable[[bool, Choice], Study], about: str, arguments: Sequence[str] | None = None) -> None:
    """The command line of a study: a folder for its runs, and `--quick` for a small form drawn there too."""
    parser = ArgumentParser(description=about)
    parser.add_argument("folder", type=Path, help="where each run leaves a file; runs that have one are not repeated")
    parser.add_argument(
        "--quick", action="store_true", help="seconds instead of minutes; the figure goes to the folder"
    )
    given = parser.parse_args(arguments)
    study = make(given.quick, choice(given.folder, given.quick))
    place = given.folder if given.quick else FIGURES
    run_study(study, given.folder, place / f"{study.name}.svg")
