"""Figures of a contest; the same results give the same bytes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from amdp import registry
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.experiments.spec import Role
from amdp.report.drawing import (
    COLORS,
    GRAY,
    WIDTH,
    Keys,
    Pen,
    finish,
    frame,
    grouped,
    label_of,
    panels_of,
    plain_logarithms,
    style,
)
from amdp.report.results import Contest, Series
from amdp.report.statistics import Band, Estimate, MeanBand, fitted_exponent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARROW = ((0.0, 0.0), (0.0, 1.0), (-0.2, 0.75), (0.0, 1.0), (0.2, 0.75))  # upward from its place
REFERENCES = (Fraction(1, 2), Fraction(2, 3), Fraction(5, 6))  # exponents of the theorems
FORMATS: dict[str, dict[str, None]] = {  # and what a file says of its origin that is not in the results
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "ModDate": None},
    "png": {"Software": None},
}
SEED = 2015  # of resampling
REMEMBERED = 1024  # estimates: the curves of a contest stand in several figures and tables


@dataclass(frozen=True)
class Look:
    """How runs are summed up and drawn."""

    band: Band = field(default_factory=MeanBand)
    raw: bool = False  # every run, too
    formats: tuple[str, ...] = tuple(FORMATS)

    def __post_init__(self) -> None:
        for name in self.formats:
            if name not in FORMATS:
                raise InvalidInput(f"no format {name!r}; known: {', '.join(FORMATS)}")

    def of(self, samples: Floats) -> Estimate:
        """All series are resampled alike."""
        return _estimated(self.band, samples.shape, np.ascontiguousarray(samples, dtype=np.float64).tobytes())


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, drawn."""

    name: str  # of its kind
    title: str
    caption: str
    words: str  # for those who do not see it
    svg: bytes
    files: dict[str, bytes]  # by format, those that are wanted


def resampling() -> np.random.Generator:
    """A generator at its start: results do not depend on what else is reported."""
    return np.random.default_rng(SEED)


@lru_cache(maxsize=REMEMBERED)
def _estimated(band: Band, shape: tuple[int, ...], samples: bytes) -> Estimate:
    return band.of(np.frombuffer(samples).reshape(shape), resampling())


def pictures_of(contest: Contest, look: Look) -> Iterator[Picture]:
    """All figures that the contest has runs for."""
    registry.require("a figure", ("matplotlib",))
    if not contest.series:
        return
    told = _spoken(contest, look)
    for name, kind in KINDS.items():
        with style():
            figure = kind.make(contest, look)
            files = {} if figure is None else _rendered(figure, look.formats)
        if files:
            caption = f"{look.band.words.capitalize()}. {kind.caption}".strip()
            words = f"{kind.title} in the game {contest.label}. {told}"
            wanted = {format: files[format] for format in look.formats}
            yield Picture(name, kind.title, caption, words, files["svg"], wanted)


def _rendered(figure: "Figure", formats: Sequence[str]) -> dict[str, bytes]:
    """In the formats, and in SVG for the page."""
    files = {}
    for format in dict.fromkeys(("svg", *formats)):
        stream = BytesIO()
        figure.savefig(stream, format=format, metadata=FORMATS[format])
        files[format] = stream.getvalue()
    return files


def _spoken(contest: Contest, look: Look) -> str:
    return "Final regret: " + ", ".join(f"{one.name} {look.of(one.low).value[-1]:.4g}" for one in contest.series) + "."


def _regret(contest: Contest, look: Look) -> "Figure":
    figure, panels = panels_of(contest)
    for axes, keys, together in panels:
        for pen, one in together:
            _curve(axes, keys, pen, label_of(one.name), one.played, one.low, look)
            _openness(axes, keys, pen, one)
        axes.axhline(0.0, color=GRAY, linewidth=0.8)
        lines = [look.of(one.low).value for _, one in together]
        ends = [one.high.mean(axis=0) for _, one in together if one.open]
        axes.set_ylim(*_view(axes, np.concatenate(lines + ends)))
        axes.set(
            xlabel=f"{contest.unit}s", ylabel="regret", xlim=(0, 1.02 * max(one.played[-1] for _, one in together))
        )
    return finish(figure, panels)


def _view(axes: "Axes", shown: Floats) -> tuple[float, float]:
    """All lines with some room: strips of two or three runs are so wide that they would flatten the lines."""
    low, high = axes.get_ylim()
    finite = shown[np.isfinite(shown)]
    room = 0.35 * max(float(np.ptp(finite)), 1e-9)
    return max(low, float(finite.min()) - room), min(high, float(finite.max()) + room)


def _loglog(contest: Contest, look: Look) -> "Figure | None":
    if not _positive(contest):
        return None
    figure, panels = panels_of(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", xlabel=f"{contest.unit}s", ylabel="regret")
        centers = []
        for pen, one in together:
            slope = fitted_exponent(one.played, one.low, MeanBand(), resampling())
            centers.append(_curve(axes, keys, pen, f"{label_of(one.name)}: {_slope(slope)}", one.played, one.low, look))
            _fit(axes, one, float(slope.value))
        frame(axes, centers)
        _references(axes, together[0][1].played, centers)
        keys.marks["fit to the later half: slope, interval"] = axes.plot(
            [], [], color="black", linestyle=":", linewidth=1.1
        )[0]
        keys.marks[f"slopes {', '.join(map(str, REFERENCES))}"] = axes.plot([], [], color=GRAY, linewidth=0.8)[0]
    return finish(figure, panels)


def _theory(contest: Contest, look: Look) -> "Figure | None":
    if not _positive(contest) or all(np.isnan(one.bound).all() for one in contest.series):
        return None
    figure, panels = panels_of(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", xlabel=f"{contest.unit}s", ylabel="regret")
        shown = []
        for pen, one in together:
            shown.append(_curve(axes, keys, pen, label_of(one.name), one.played, one.low, look))
            bound = one.bound.mean(axis=0)
            lone: dict[str, Any] = (
                {} if np.isfinite(bound).sum() > 1 else {"marker": "_", "markersize": 12.0, "markeredgewidth": 2.0}
            )
            if one.role == Role.THEORY:
                axes.plot(one.played, bound, color=pen.color, linestyle=(0, (5, 2)), linewidth=1.2, **lone)
                shown.append(bound)
        frame(axes, shown)
        keys.marks["bound of theory, same color"] = axes.plot([], [], color=GRAY, linestyle=(0, (5, 2)))[0]
    return finish(figure, panels)


def _seconds(contest: Contest, look: Look) -> "Figure | None":
    if all(len(one.played) < 2 for one in contest.series):
        return None
    figure, panels = panels_of(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", xlabel="seconds of the learner, without compiling and loading", ylabel="regret")
        for pen, one in together:
            _curve(axes, keys, pen, label_of(one.name), one.seconds.mean(axis=0)[1:], one.low[:, 1:], look)
        axes.axhline(0.0, color=GRAY, linewidth=0.8)
    return finish(figure, panels)


def _pace(contest: Contest, look: Look) -> "Figure":
    from matplotlib.figure import Figure

    count = len(contest.series)
    figure = Figure(figsize=(WIDTH, 0.6 + 0.36 * count))
    axes = figure.subplots()
    for place, (pen, one) in enumerate(chain.from_iterable(grouped(contest))):
        each = one.each(one.spent[:, :, :3].sum(axis=2))
        center = look.of(each[:, None])
        axes.plot(each, np.full(len(each), place), "|", color=pen.color, alpha=0.45, markersize=8, zorder=2)
        axes.plot([center.low[0], center.high[0]], [place, place], color=pen.color, linewidth=2.5, zorder=3)
        axes.plot(center.value, [place], **pen.line | {"markersize": 7.0}, zorder=4)
    axes.set(xscale="log", xlabel=f"seconds of the learner for one {contest.unit}", yticks=range(count))
    axes.set(ylim=(count - 0.5, -0.7))
    axes.tick_params(which="both", left=False, labelleft=False)
    plain_logarithms(axes)
    for place, one in enumerate(contest.series):
        at: dict[str, Any] = {"xytext": (4, 9), "textcoords": "offset points", "fontsize": 8, "parse_math": False}
        axes.annotate(label_of(one.name), (0.0, place), xycoords=("axes fraction", "data"), va="center", **at)
    figure.subplots_adjust(0.03, 0.5 / figure.get_figheight(), 0.97, 1 - 0.08 / figure.get_figheight())
    return figure


def _calls(contest: Contest, look: Look) -> "Figure | None":
    """Of those who ask a planning oracle; None if nobody does."""
    if not any(one.oracle_calls.any() for one in contest.series):
        return None
    figure, panels = panels_of(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", yscale="log", xlabel=f"{contest.unit}s", ylabel="oracle calls")
        for pen, one in together:
            if one.oracle_calls.any():
                _curve(axes, keys, pen, label_of(one.name), one.played, one.oracle_calls, look)
    return finish(figure, panels)


class _Kind(NamedTuple):
    title: str
    caption: str  # what is to be said of its marks
    make: "Callable[[Contest, Look], Figure | None]"


KINDS = {
    "regret": _Kind("Regret", "", _regret),
    "loglog": _Kind(
        "Growth of the regret",
        "In the legend: the exponent, the slope of the dotted line through the mean at the later half of the "
        "checkpoints, with its 95% interval over seeds.",
        _loglog,
    ),
    "theory": _Kind("Regret and theory", "Dashed: what theory allows the expected regret.", _theory),
    "seconds": _Kind(
        "Regret against seconds", "Seconds of the learner alone, the mean at the same checkpoint.", _seconds
    ),
    "pace": _Kind("Seconds", "Thin marks are single runs.", _pace),
    "calls": _Kind("Oracle calls", "", _calls),
}


def _curve(axes: "Axes", keys: Keys, pen: Pen, label: str, x: Floats, samples: Floats, look: Look) -> Floats:
    """The line, its strip, and each run if wanted; returns the line."""
    center = look.of(samples)
    shift = 0.02 + 0.2 * (pen.place % len(COLORS)) / len(COLORS)  # markers of two learners do not hide each other
    drawn = axes.plot(x, center.value, **pen.line, markevery=(shift, 0.2), zorder=3)
    axes.fill_between(x, center.low, center.high, color=pen.color, alpha=0.16, linewidth=0, zorder=1)
    if look.raw:
        axes.plot(x, samples.T, color=pen.color, alpha=0.3, linewidth=0.5, zorder=2)
    alike = sum(known == label or known.startswith(f"{label} (") for known in keys.learners)  # cut to the same letters
    keys.learners[f"{label} ({alike + 1})" if label in keys.learners else label] = drawn[0]
    return center.value


def _openness(axes: "Axes", keys: Keys, pen: Pen, one: Series) -> None:
    """Where the comparator is only bounded: hatched up to the proved end, or arrows where nothing is proved."""
    from matplotlib.patches import Patch
    from matplotlib.path import Path

    if not one.open:
        return
    low, high = one.low.mean(axis=0), one.high.mean(axis=0)
    proved = np.isfinite(high)
    if proved.any():
        look: dict[str, Any] = {"facecolor": "none", "hatch": "////", "linewidth": 0.8, "linestyle": ":"}
        top = np.where(proved, high, np.nan)
        axes.fill_between(one.played, low, top, edgecolor=pen.color, alpha=0.55, zorder=1, **look)
        keys.marks["regret in the strip: comparator bounded"] = Patch(edgecolor=GRAY, **look)
    if not proved.all():
        at = np.unique(np.searchsorted(one.played, np.linspace(0.05, 1.0, 12) * one.played[-1]))
        marks: dict[str, Any] = {"marker": Path(ARROW), "linestyle": "none", "markersize": 22.0, "fillstyle": "none"}
        axes.plot(one.played[at], np.where(proved, np.nan, low)[at], color=pen.color, zorder=2, **marks)
        keys.marks["regret at or above: nothing proved"] = axes.plot([], [], color=GRAY, **marks)[0]


def _fit(axes: "Axes", one: Series, slope: float) -> None:
    if np.isnan(slope):
        return
    x = np.log(one.played[len(one.played) // 2 :])
    y = np.log(one.low.mean(axis=0)[len(one.played) // 2 :])
    line = np.exp(y.mean() + slope * (x - x.mean()))
    axes.plot(np.exp(x), line, color="black", linestyle=":", linewidth=1.1, zorder=4)


def _references(axes: "Axes", played: Floats, centers: list[Floats]) -> None:
    """A fan of slopes below the curves."""
    if axes.get_yscale() != "log":
        return
    ends = played[[len(played) // 2, -1]]
    floor = axes.get_ylim()[0]
    under = [center[len(center) // 2 :] for center in centers]
    lowest = min((float(part[part > 0].min()) for part in under if (part > 0).any()), default=floor)
    start = max(lowest / 3.0, floor * 1.3)
    for slope in REFERENCES:
        top = start * (ends[1] / ends[0]) ** float(slope)
        axes.plot(ends, [start, top], color=GRAY, linewidth=0.8, zorder=2)
        place: dict[str, Any] = {
            "xytext": (3, 0),
            "textcoords": "offset points",
            "va": "center",
            "fontsize": 7.5,
            "color": GRAY,
        }
        axes.annotate(str(slope), (ends[1], top), **place, annotation_clip=False)


def _positive(contest: Contest) -> bool:
    return any((one.low.mean(axis=0) > 0).any() for one in contest.series)


def _slope(slope: Estimate) -> str:
    if np.isnan(slope.value):
        return "no slope"
    return f"{slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
