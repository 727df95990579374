"""Figures of a contest; the same results give the same bytes.

Colors are those of Okabe and Ito, told apart by the color-blind; markers tell them apart in print.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from amdp import registry
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.experiments.spec import Role
from amdp.report.results import Contest, Series
from amdp.report.statistics import Band, Estimate, MeanBand, fitted_exponent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C7A00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GRAY = "#767676"
ARROW = ((0.0, 0.0), (0.0, 1.0), (-0.2, 0.75), (0.0, 1.0), (0.2, 0.75))  # upward from its place
REFERENCES = (Fraction(1, 2), Fraction(2, 3), Fraction(5, 6))  # exponents of the theorems
FORMATS: dict[str, dict[str, None]] = {  # and what a file says of its origin that is not in the results
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "ModDate": None},
    "png": {"Software": None},
}
WIDTH = 5.6  # inches: of a text column, and readable on a phone
HEIGHT = 3.1  # without the legend
MARGINS = {"left": 0.72, "right": 0.3, "top": 0.2, "bottom": 0.5}
LINE = 0.165  # of a legend
SHORT = 80  # letters of two labels that fit into a line
LONGEST = 44  # letters of a label
DECADES = 5  # of a logarithmic axis below its largest value
SEED = 2015  # of resampling
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "legend.fontsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 5),
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.7,
    "pdf.fonttype": 42,  # letters that can be searched and edited
    "svg.hashsalt": "amdp",
    "savefig.dpi": 200,
}


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
        return self.band.of(samples, resampling())


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


def pictures_of(contest: Contest, look: Look) -> Iterator[Picture]:
    """All figures that the contest has runs for."""
    registry.require("a figure", ("matplotlib",))
    if not contest.series:
        return
    told = _spoken(contest, look)
    for name, kind in KINDS.items():
        with _style():
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
    figure, panels = _panels(contest)
    for axes, keys, together in panels:
        for pen, one in together:
            _curve(axes, keys, pen, _label(one.name), one.played, one.low, look)
            _openness(axes, keys, pen, one)
        axes.axhline(0.0, color=GRAY, linewidth=0.8)
        axes.set(
            xlabel=f"{contest.unit}s", ylabel="regret", xlim=(0, 1.02 * max(one.played[-1] for _, one in together))
        )
    return _finish(figure, panels)


def _loglog(contest: Contest, look: Look) -> "Figure | None":
    if not _positive(contest):
        return None
    figure, panels = _panels(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", xlabel=f"{contest.unit}s", ylabel="regret")
        centers = []
        for pen, one in together:
            slope = fitted_exponent(one.played, one.low, MeanBand(), resampling())
            centers.append(_curve(axes, keys, pen, f"{_label(one.name)}: {_slope(slope)}", one.played, one.low, look))
            _fit(axes, one, float(slope.value))
        _frame(axes, centers)
        _references(axes, together[0][1].played, centers)
        keys.marks["fit to the later half: slope, interval"] = axes.plot(
            [], [], color="black", linestyle=":", linewidth=1.1
        )[0]
        keys.marks[f"slopes {', '.join(map(str, REFERENCES))}"] = axes.plot([], [], color=GRAY, linewidth=0.8)[0]
    return _finish(figure, panels)


def _theory(contest: Contest, look: Look) -> "Figure | None":
    if not _positive(contest) or all(np.isnan(one.bound).all() for one in contest.series):
        return None
    figure, panels = _panels(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", xlabel=f"{contest.unit}s", ylabel="regret")
        shown = []
        for pen, one in together:
            shown.append(_curve(axes, keys, pen, _label(one.name), one.played, one.low, look))
            bound = one.bound.mean(axis=0)
            lone: dict[str, Any] = (
                {} if np.isfinite(bound).sum() > 1 else {"marker": "_", "markersize": 12.0, "markeredgewidth": 2.0}
            )
            if one.role == Role.THEORY:
                axes.plot(one.played, bound, color=pen.color, linestyle=(0, (5, 2)), linewidth=1.2, **lone)
                shown.append(bound)
        _frame(axes, shown)
        keys.marks["bound of theory, same color"] = axes.plot([], [], color=GRAY, linestyle=(0, (5, 2)))[0]
    return _finish(figure, panels)


def _seconds(contest: Contest, look: Look) -> "Figure | None":
    if all(len(one.played) < 2 for one in contest.series):
        return None
    figure, panels = _panels(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", xlabel="seconds of the learner, without compiling and loading", ylabel="regret")
        for pen, one in together:
            _curve(axes, keys, pen, _label(one.name), one.seconds.mean(axis=0)[1:], one.low[:, 1:], look)
        axes.axhline(0.0, color=GRAY, linewidth=0.8)
    return _finish(figure, panels)


def _pace(contest: Contest, look: Look) -> "Figure":
    from matplotlib.figure import Figure

    count = len(contest.series)
    figure = Figure(figsize=(WIDTH, 0.6 + 0.36 * count))
    axes = figure.subplots()
    for place, (pen, one) in enumerate(chain.from_iterable(_grouped(contest))):
        each = one.each(one.spent[:, :, :3].sum(axis=2))
        center = look.of(each[:, None])
        axes.plot(each, np.full(len(each), place), "|", color=pen.color, alpha=0.45, markersize=8, zorder=2)
        axes.plot([center.low[0], center.high[0]], [place, place], color=pen.color, linewidth=2.5, zorder=3)
        axes.plot(center.value, [place], **pen.line | {"markersize": 7.0}, zorder=4)
    axes.set(xscale="log", xlabel=f"seconds of the learner for one {contest.unit}", yticks=range(count))
    axes.set(ylim=(count - 0.5, -0.7))
    axes.tick_params(which="both", left=False, labelleft=False)
    _plain_logarithms(axes)
    for place, one in enumerate(contest.series):
        at: dict[str, Any] = {"xytext": (4, 9), "textcoords": "offset points", "fontsize": 8, "parse_math": False}
        axes.annotate(_label(one.name), (0.0, place), xycoords=("axes fraction", "data"), va="center", **at)
    figure.subplots_adjust(0.03, 0.5 / figure.get_figheight(), 0.97, 1 - 0.08 / figure.get_figheight())
    return figure


def _calls(contest: Contest, look: Look) -> "Figure":
    figure, panels = _panels(contest)
    for axes, keys, together in panels:
        axes.set(xscale="log", yscale="log", xlabel=f"{contest.unit}s", ylabel="oracle calls")
        for pen, one in together:
            _curve(axes, keys, pen, _label(one.name), one.played, one.oracle_calls, look)
    return _finish(figure, panels)


class _Kind(NamedTuple):
    title: str
    caption: str  # what is to be said of its marks
    make: "Callable[[Contest, Look], Figure | None]"


KINDS = {
    "regret": _Kind("Regret", "", _regret),
    "loglog": _Kind(
        "Growth of the regret",
        "In the legend: the exponent, the slope of the dotted line through the mean at the later half of the "
        "checkpoints, with its 95% bootstrap interval.",
        _loglog,
    ),
    "theory": _Kind("Regret and theory", "Dashed: what theory allows the expected regret.", _theory),
    "seconds": _Kind(
        "Regret against seconds", "Seconds of the learner alone, the mean at the same checkpoint.", _seconds
    ),
    "pace": _Kind("Seconds", "Thin marks are single runs.", _pace),
    "calls": _Kind("Oracle calls", "", _calls),
}


@dataclass(frozen=True)
class _Pen:
    """A learner keeps its color and marker; tuned by a grid, its line is broken and its marker hollow."""

    place: int
    tuned: bool

    @property
    def color(self) -> str:
        return COLORS[self.place % len(COLORS)]

    @property
    def line(self) -> dict[str, Any]:
        return {
            "color": self.color,
            "marker": MARKERS[self.place % len(MARKERS)],
            "linestyle": (0, (7, 1.5, 1.5, 1.5)) if self.tuned else "-",
            "markerfacecolor": "white" if self.tuned else self.color,
        }


class _Keys:
    """The lines of a legend: learners, then the other marks."""

    def __init__(self) -> None:
        self.learners: dict[str, Artist] = {}
        self.marks: dict[str, Artist] = {}

    def show(self, axes: "Axes", figure: "Figure") -> float:
        """Below the axes; the inches that are needed there."""
        from matplotlib.transforms import ScaledTranslation

        keys = self.learners | self.marks
        half = -(-len(keys) // 2)
        lengths = [max(map(len, part), default=0) for part in (list(keys)[:half], list(keys)[half:])]
        columns = 2 if sum(lengths) <= SHORT and len(keys) > 1 else 1
        below = axes.transAxes + ScaledTranslation(0.0, -MARGINS["bottom"], figure.dpi_scale_trans)
        place: dict[str, Any] = {
            "loc": "upper center",
            "bbox_to_anchor": (0.5, 0.0),
            "bbox_transform": below,
            "borderaxespad": 0.0,
        }
        look: dict[str, Any] = {"frameon": False, "ncols": columns, "columnspacing": 1.2, "handlelength": 2.8}
        _write(axes.legend(keys.values(), ["-"] * len(keys), **place, **look).get_texts(), list(keys))
        return LINE * -(-len(keys) // columns) + 0.08


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # whoever draws, whatever their habits
        mpl.rcParams.update(STYLE)
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a label in a script we cannot draw
        yield


def _panels(contest: Contest, **axes: str) -> "tuple[Figure, list[tuple[Axes, _Keys, list[tuple[_Pen, Series]]]]]":
    """Axes one below the other, each for as many learners as there are colors."""
    from matplotlib.figure import Figure

    groups = _grouped(contest)
    figure = Figure(figsize=(WIDTH, HEIGHT * len(groups)))
    every = figure.subplots(len(groups), squeeze=False, subplot_kw=axes)[:, 0]
    return figure, [(one, _Keys(), together) for one, together in zip(every, groups, strict=True)]


def _finish(figure: "Figure", panels: "list[tuple[Axes, _Keys, list[tuple[_Pen, Series]]]]") -> "Figure":
    """Legends below the axes, and room for them: margins in inches, much faster than to look for the best ones."""
    heights = [HEIGHT + keys.show(axes, figure) for axes, keys, _ in panels]
    figure.set_figheight(sum(heights))
    top = sum(heights)
    for (axes, _, _), height in zip(panels, heights, strict=True):
        bottom = top - HEIGHT + MARGINS["bottom"]
        inside = HEIGHT - MARGINS["bottom"] - MARGINS["top"]
        width = WIDTH - MARGINS["left"] - MARGINS["right"]
        left, total = MARGINS["left"] / WIDTH, sum(heights)
        axes.set_position((left, bottom / total, width / WIDTH, inside / total))
        axes.yaxis.set_label_coords(0.17 / WIDTH, (bottom + inside / 2) / total, transform=figure.transFigure)
        _plain_logarithms(axes)
        top -= height
    return figure


def _plain_logarithms(axes: "Axes") -> None:
    """Ticks of logarithmic axes without formulas, which are slow; more of them where the range is short."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100.0 * low else (1.0, 2.0, 5.0)))
            axis.set_major_formatter(lambda value, _: _power(value))
            axis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    """In the letters that a PDF has anyway: each further set of them takes half a second."""
    if 0.001 <= value < 100_000:
        return f"{value:g}"
    digit, _, exponent = f"{value:.0e}".partition("e")
    return f"{digit}e{int(exponent)}"


def _grouped(contest: Contest) -> list[list[tuple[_Pen, Series]]]:
    places = {label: place for place, label in enumerate(dict.fromkeys(one.learner for one in contest.series))}
    groups: dict[int, list[tuple[_Pen, Series]]] = {}
    for one in contest.series:
        pen = _Pen(places[one.learner], one.role == Role.TUNED)
        groups.setdefault(pen.place // len(COLORS), []).append((pen, one))
    return list(groups.values())


def _curve(axes: "Axes", keys: _Keys, pen: _Pen, label: str, x: Floats, samples: Floats, look: Look) -> Floats:
    """The line, its strip, and each run if wanted; returns the line."""
    center = look.of(samples)
    shift = 0.02 + 0.2 * (pen.place % len(COLORS)) / len(COLORS)  # markers of two learners do not hide each other
    drawn = axes.plot(x, center.value, **pen.line, markevery=(shift, 0.2), zorder=3)
    axes.fill_between(x, center.low, center.high, color=pen.color, alpha=0.16, linewidth=0, zorder=1)
    if look.raw:
        axes.plot(x, samples.T, color=pen.color, alpha=0.3, linewidth=0.5, zorder=2)
    keys.learners[label] = drawn[0]
    return center.value


def _openness(axes: "Axes", keys: _Keys, pen: _Pen, one: Series) -> None:
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


def _frame(axes: "Axes", shown: list[Floats]) -> None:
    """Logarithmic limits around what is positive, a few decades at most."""
    values = np.concatenate(shown)
    positive = values[np.isfinite(values) & (values > 0)]
    if len(positive):
        top = float(positive.max())
        axes.set(ylim=(max(float(positive.min()), top * 10.0**-DECADES) / 2.5, 2.0 * top), yscale="log")


def _positive(contest: Contest) -> bool:
    return any((one.low.mean(axis=0) > 0).any() for one in contest.series)


def _slope(slope: Estimate) -> str:
    if np.isnan(slope.value):
        return "no slope"
    if np.isnan(slope.low):
        return f"{slope.value:.2f}"
    return f"{slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"


def _label(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"


def _write(texts: Sequence[Any], labels: Sequence[str]) -> None:
    """Labels as they are: a dollar sign is no formula, a leading underscore no reason to hide."""
    for text, label in zip(texts, labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
