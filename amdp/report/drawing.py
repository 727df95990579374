"""What all figures share: the style of each learner, panels with legends, axes, labels.

The colors are those of Okabe and Ito, which color-blind readers can distinguish; markers distinguish them in print.
Learners that played alike have lines of different width and dashes, so that the one on top does not hide the other.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import floor, log10
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
MARGINS = {"left": 0.72, "right": 0.3, "top": 0.2, "bottom": 0.5}
SECOND_AXIS = 0.62  # instead of the right margin, for an axis with its label
WIDE = 5.0  # of figures with such an axis
LINE = 1.6  # points, the width of a line
WIDER = 1.8  # points, by which a line is wider than the one that covers it
LETTER = 0.55  # of the size of a font: the width of a letter, more than the mean
KEY = 6  # letters that the line and marker before a label take
MAX_LABEL = 44  # letters
DECADES = 5  # of a logarithmic axis below its largest value
SIGNED_DECADES = 4  # of an axis for values of both signs, between its largest value and its linear part
MOST_TICKS = 7  # of an axis for values of both signs
POINTS = 72  # in an inch
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
    "lines.linewidth": LINE,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.7,
    "pdf.fonttype": 42,  # letters that can be searched and edited
    "svg.fonttype": "none",  # letters, too: smaller files, and half the time
    "svg.hashsalt": "amdp",
    "savefig.dpi": 200,
}


@dataclass(frozen=True)
class Size:
    """The width of all figures in inches, the height of their panels, and the letters in points."""

    width: float
    height: float  # of the axes of a learner's curves with their labels, without the legend
    text: float
    small: float  # in legends and remarks
    abreast: int  # games side by side in the figure of all games
    game: float  # the height of one of these

    @property
    def letters(self) -> int:
        """The letters that fit into one line of a legend."""
        return round(self.width * POINTS / (self.small * LETTER))

    def label(self, text: str, behind: int = 0) -> str:
        """A name that fits into a legend before more letters; both ends stay: names of one grid differ at the end."""
        plain = "".join(letter if letter.isprintable() else " " for letter in text)
        most = min(MAX_LABEL, self.letters - KEY - behind)
        half = most // 2
        return plain if len(plain) <= most else f"{plain[: most - half - 1]}…{plain[-half:]}"

    @property
    def fonts(self) -> dict[Any, Any]:
        """The sizes of letters, as settings of matplotlib."""
        return {"font.size": self.text, "axes.titlesize": self.text, "legend.fontsize": self.small}


SIZES = {
    "screen": Size(5.6, 3.1, 9.0, 7.5, 2, 2.0),  # readable on a phone
    "column": Size(3.3, 2.4, 8.0, 8.0, 1, 1.7),  # of a paper with two columns
    "page": Size(6.9, 3.2, 9.0, 8.0, 3, 2.0),  # of a paper, from margin to margin
}


@dataclass(frozen=True)
class Pen:
    """The color, marker and line of a learner in all figures; tuned by a grid: a broken line and a hollow marker.

    Of learners that played alike the first has the widest line, and those that are drawn over it have gaps.
    """

    place: int
    tuned: bool
    covering: int = 0  # learners that played alike and are drawn before it
    covered: int = 0  # and after it

    @property
    def color(self) -> str:
        """The color of lines and bands."""
        return COLORS[self.place % len(COLORS)]

    @property
    def line(self) -> dict[str, Any]:
        """Keywords for `Axes.plot`."""
        return {
            "color": self.color,
            "marker": MARKERS[(self.place + self.place // len(COLORS)) % len(MARKERS)],
            "linestyle": self._dashes,
            "linewidth": LINE + WIDER * self.covered,
            "markerfacecolor": "white" if self.tuned else self.color,
        }

    @property
    def _dashes(self) -> Any:
        if self.covering:
            return (self.covering - 1.0, (5, 3, 1.5, 3) if self.tuned else (3, 3))
        return (0, (7, 1.5, 1.5, 1.5)) if self.tuned else "-"


class Keys:
    """The entries of a legend: learners, then other marks."""

    def __init__(self) -> None:
        self.learners: dict[str, Artist] = {}
        self.marks: dict[str, Artist] = {}

    def show(self, axes: "Axes", figure: "Figure", size: Size) -> float:
        """Draw the legend below the axes and in the middle of the figure; returns its height in inches."""
        from matplotlib.transforms import ScaledTranslation, blended_transform_factory

        keys = self.learners | self.marks
        half = -(-len(keys) // 2)
        lengths = [max(map(len, part), default=0) for part in (list(keys)[:half], list(keys)[half:])]
        columns = 2 if sum(lengths) <= size.letters - 2 * KEY and len(keys) > 1 else 1
        across = blended_transform_factory(figure.transFigure, axes.transAxes)
        below = across + ScaledTranslation(0.0, -MARGINS["bottom"], figure.dpi_scale_trans)
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
        place |= {"borderaxespad": 0.0}
        look: dict[str, Any] = {"frameon": False, "ncols": columns, "columnspacing": 1.2, "handlelength": 2.8}
        texts = axes.legend(keys.values(), ["-"] * len(keys), **place, **look).get_texts()
        for text, label in zip(texts, keys, strict=True):  # literally: no formulas at dollars, no hiding at underscores
            text.set_parse_math(False)
            text.set_text(label)
        return 1.6 * size.small / POINTS * -(-len(keys) // columns) + 0.08


@contextmanager
def style(size: Size = SIZES["screen"]) -> Iterator[None]:
    """The style of all figures of a size, whatever the settings of the user."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE | size.fonts)
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a label in a script we cannot draw
        yield


Group = list[tuple[Pen, Series]]


def with_pens(contest: Contest) -> Group:
    """The series that are drawn, with their pens."""
    layers = {id(series): (at, len(group) - 1 - at) for group in contest.alike for at, series in enumerate(group)}
    return [
        (Pen(contest.place(series.learner), series.role == Role.TUNED, *layers[id(series)]), series)
        for series in contest.drawn
    ]


def grouped(contest: Contest) -> list[Group]:
    """The series with their pens, in groups of as many learners as there are colors."""
    places = {label: place for place, label in enumerate(dict.fromkeys(series.learner for series in contest.series))}
    groups: dict[int, Group] = {}
    for pen, series in with_pens(contest):
        groups.setdefault(places[series.learner] // len(COLORS), []).append((pen, series))
    return list(groups.values())


def panels_of(contest: Contest, size: Size) -> "tuple[Figure, list[tuple[Axes, Keys, Group]]]":
    """A figure with axes and a legend for each group, one below the other."""
    from matplotlib.figure import Figure

    groups = grouped(contest)
    figure = Figure(figsize=(size.width, size.height * len(groups)))
    panels = figure.subplots(len(groups), squeeze=False)[:, 0]
    return figure, [(axes, Keys(), group) for axes, group in zip(panels, groups, strict=True)]


def finish(figure: "Figure", panels: "list[tuple[Axes, Keys, Group]]", size: Size) -> "Figure":
    """Draw legends below the axes, with margins in inches: much faster than constrained layout."""
    heights = [size.height + keys.show(axes, figure, size) for axes, keys, _ in panels]
    figure.set_figheight(sum(heights))
    top = sum(heights)
    for (axes, _, _), height in zip(panels, heights, strict=True):
        width = size.width - MARGINS["left"] - (SECOND_AXIS if axes.child_axes else MARGINS["right"])
        put(axes, figure, (MARGINS["left"], top - size.height + MARGINS["bottom"]), (width, size.height))
        plain_logarithms(axes)
        top -= height
    return figure


def put(axes: "Axes", figure: "Figure", corner: tuple[float, float], outer: tuple[float, float]) -> None:
    """Place axes by the lower left corner of what they frame, and the height that they take with their labels."""
    (left, bottom), (width, height) = corner, outer
    inside = height - MARGINS["bottom"] - MARGINS["top"]
    across, total = figure.get_figwidth(), figure.get_figheight()
    axes.set_position((left / across, bottom / total, width / across, inside / total))
    beside, middle = (left - MARGINS["left"] + 0.17) / across, (bottom + inside / 2) / total
    axes.yaxis.set_label_coords(beside, middle, transform=figure.transFigure)


def plain_logarithms(axes: "Axes") -> None:
    """Few ticks on logarithmic axes, and no formulas: both take long to draw; more where the range is short."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            wide = high > 100.0 * low
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
            axis.set_major_formatter(lambda value, _: _power(value))
            axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)) if wide else NullLocator())
            axis.set_minor_formatter(NullFormatter())
    if axes.get_yscale() == "symlog":
        axes.yaxis.set_major_locator(FixedLocator(_signed_ticks(axes)))
        axes.yaxis.set_major_formatter(lambda value, _: _power(value))
        axes.yaxis.set_minor_locator(NullLocator())


def linear_within(axes: "Axes") -> float:
    """The value up to which an axis for values of both signs is linear; 0 for any other axis."""
    return float(getattr(axes.yaxis.get_transform(), "linthresh", 0.0))


def _signed_ticks(axes: "Axes") -> list[float]:
    """Zero and powers of ten of both signs, every second one or fewer where they are many."""
    low, high = axes.get_ylim()
    unit = linear_within(axes)
    powers = [unit * 10.0**k for k in range(2 * SIGNED_DECADES)]
    inside = [value for sign in (-1.0, 1.0) for value in powers if low <= sign * value <= high]
    step = -(-(len(inside) + 1) // MOST_TICKS)
    return [0.0, *(sign * value for sign in (-1.0, 1.0) for value in powers[::step] if low <= sign * value <= high)]


def _power(value: float) -> str:
    """A number without superscripts: each further font of a PDF takes half a second."""
    if value == 0.0 or 0.001 <= abs(value) < 100_000:
        return f"{value:g}".replace("-", "\N{MINUS SIGN}")
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"


def frame(axes: "Axes", shown: list[Floats]) -> None:
    """A logarithmic axis around the values, a few decades at most; linear about zero if some are not positive."""
    values = np.concatenate(shown)
    values = values[np.isfinite(values)]
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    if low > 0.0:
        axes.set(ylim=(max(low, high * 10.0**-DECADES) / 2.5, 2.0 * high), yscale="log")
    elif values.any():
        _frame_signed(axes, np.abs(values[values != 0.0]), low, high)


def _frame_signed(axes: "Axes", sizes: Floats, low: float, high: float) -> None:
    """An axis that is linear about zero and logarithmic beyond, and says so."""
    unit = 10.0 ** floor(log10(max(float(sizes.min()), float(sizes.max()) * 10.0**-SIGNED_DECADES)))
    axes.set_yscale("symlog", linthresh=unit)
    axes.set(ylim=(min(2.0 * low, -0.5 * unit), max(2.0 * high, 0.5 * unit)))
    axes.set_ylabel(f"{axes.get_ylabel()}, linear within ±{_power(unit)}")
    axes.axhline(0.0, color=GRAY, linewidth=0.8, zorder=1.5)
