"""What all figures share: the style of each learner, panels with legends, axes, labels.

The colors are those of Okabe and Ito, which color-blind readers can distinguish; markers distinguish them in print.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from amdp.arrays import Floats
from amdp.experiments.spec import Role
from amdp.report.results import Contest, Series

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C7A00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GRAY = "#767676"
WIDTH = 5.6  # inches: of a text column, and readable on a phone
HEIGHT = 3.1  # without the legend
MARGINS = {"left": 0.72, "right": 0.3, "top": 0.2, "bottom": 0.5}
LEGEND_LINE = 0.165  # inches
MAX_TWO_LABELS = 80  # letters of two labels that fit into a line
MAX_LABEL = 44  # letters
DECADES = 5  # of a logarithmic axis below its largest value
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
    "svg.fonttype": "none",  # letters, too: smaller files, and half the time
    "svg.hashsalt": "amdp",
    "savefig.dpi": 200,
}


@dataclass(frozen=True)
class Pen:
    """The color, marker and line of a learner in all figures; tuned by a grid: a broken line and a hollow marker."""

    place: int
    tuned: bool

    @property
    def color(self) -> str:
        """The color of lines and bands."""
        return COLORS[self.place % len(COLORS)]

    @property
    def line(self) -> dict[str, Any]:
        """Keywords for `Axes.plot`."""
        return {
            "color": self.color,
            "marker": MARKERS[self.place % len(MARKERS)],
            "linestyle": (0, (7, 1.5, 1.5, 1.5)) if self.tuned else "-",
            "markerfacecolor": "white" if self.tuned else self.color,
        }


class Keys:
    """The entries of a legend: learners, then other marks."""

    def __init__(self) -> None:
        self.learners: dict[str, Artist] = {}
        self.marks: dict[str, Artist] = {}

    def show(self, axes: "Axes", figure: "Figure") -> float:
        """Draw the legend below the axes; returns its height in inches."""
        from matplotlib.transforms import ScaledTranslation

        keys = self.learners | self.marks
        half = -(-len(keys) // 2)
        lengths = [max(map(len, part), default=0) for part in (list(keys)[:half], list(keys)[half:])]
        columns = 2 if sum(lengths) <= MAX_TWO_LABELS and len(keys) > 1 else 1
        below = axes.transAxes + ScaledTranslation(0.0, -MARGINS["bottom"], figure.dpi_scale_trans)
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
        place |= {"borderaxespad": 0.0}
        look: dict[str, Any] = {"frameon": False, "ncols": columns, "columnspacing": 1.2, "handlelength": 2.8}
        texts = axes.legend(keys.values(), ["-"] * len(keys), **place, **look).get_texts()
        for text, label in zip(texts, keys, strict=True):  # literally: no formulas at dollars, no hiding at underscores
            text.set_parse_math(False)
            text.set_text(label)
        return LEGEND_LINE * -(-len(keys) // columns) + 0.08


@contextmanager
def style() -> Iterator[None]:
    """The style of all figures, whatever the settings of the user."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a label in a script we cannot draw
        yield


Group = list[tuple[Pen, Series]]


def grouped(contest: Contest) -> list[Group]:
    """The series with their pens, in groups of as many learners as there are colors."""
    places = {label: place for place, label in enumerate(dict.fromkeys(series.learner for series in contest.series))}
    groups: dict[int, Group] = {}
    for series in contest.series:
        if contest.tuned_as_theory(series):
            continue  # the same runs would be drawn twice
        pen = Pen(places[series.learner], series.role == Role.TUNED)
        groups.setdefault(pen.place // len(COLORS), []).append((pen, series))
    return list(groups.values())


def panels_of(contest: Contest) -> "tuple[Figure, list[tuple[Axes, Keys, Group]]]":
    """A figure with axes and a legend for each group, one below the other."""
    from matplotlib.figure import Figure

    groups = grouped(contest)
    figure = Figure(figsize=(WIDTH, HEIGHT * len(groups)))
    panels = figure.subplots(len(groups), squeeze=False)[:, 0]
    return figure, [(axes, Keys(), group) for axes, group in zip(panels, groups, strict=True)]


def finish(figure: "Figure", panels: "list[tuple[Axes, Keys, Group]]") -> "Figure":
    """Draw legends below the axes, with margins in inches: much faster than constrained layout."""
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
        plain_logarithms(axes)
        top -= height
    return figure


def plain_logarithms(axes: "Axes") -> None:
    """Few ticks on logarithmic axes, and no formulas: both take long to draw; more where the range is short."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            wide = high > 100.0 * low
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
            axis.set_major_formatter(lambda value, _: _power(value))
            axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)) if wide else NullLocator())
            axis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    """A number without superscripts: each further font of a PDF takes half a second."""
    if 0.001 <= value < 100_000:
        return f"{value:g}"
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"


def frame(axes: "Axes", shown: list[Floats]) -> None:
    """Logarithmic limits around what is positive, a few decades at most."""
    values = np.concatenate(shown)
    positive = values[np.isfinite(values) & (values > 0)]
    if len(positive):
        top = float(positive.max())
        axes.set(ylim=(max(float(positive.min()), top * 10.0**-DECADES) / 2.5, 2.0 * top), yscale="log")


def label_of(text: str) -> str:
    """A name that fits into a legend; both ends stay, since names of one grid differ at the end."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    half = MAX_LABEL // 2
    return plain if len(plain) <= MAX_LABEL else f"{plain[: MAX_LABEL - half - 1]}…{plain[-half:]}"
