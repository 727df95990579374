"""The figures of a game, and one of all games; the same results give the same bytes.

A new figure of a game is a function and an entry of `KINDS`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
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
    MARGINS,
    SIZES,
    WIDE,
    Group,
    Keys,
    Pen,
    Size,
    finish,
    frame,
    grouped,
    linear_within,
    panels_of,
    plain_logarithms,
    put,
    style,
    with_pens,
)
from amdp.report.results import Contest, Series, legend_names
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
BASELINE: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 2.5)), "linewidth": 1.6, "zorder": 2.5}
RESAMPLING_SEED = 2015
CACHED_ESTIMATES = 1024  # the curves of a game are in several figures and tables

Draw = Callable[["Axes", Keys, Group, Contest, "Look"], None]  # one panel of a figure


@dataclass(frozen=True)
class Look:
    """How runs are summarized and drawn."""

    band: Band = field(default_factory=MeanBand)
    raw: bool = False  # draw every run as well
    formats: tuple[str, ...] = tuple(FORMATS)
    width: str = "screen"  # of the figures: a key of `SIZES`

    def __post_init__(self) -> None:
        if self.width not in SIZES:
            raise InvalidInput(f"no width {self.width!r}; known: {', '.join(SIZES)}")
        for name in self.formats:
            if name not in FORMATS:
                raise InvalidInput(f"no format {name!r}; known: {', '.join(FORMATS)}")

    @property
    def size(self) -> Size:
        """The size of the figures."""
        return SIZES[self.width]

    def named(self, series: Series, names: Mapping[str, str], behind: int = 0) -> str:
        """The name of a learner in a legend, with so many letters behind it, by the short names of labels."""
        return self.size.label(series.named(names.get(series.learner, series.learner)), behind)

    def of(self, samples: Floats) -> Estimate:
        """The estimate `[c]` of samples `[i, c]`; the same samples always give the same estimate."""
        return _estimated(self.band, samples.shape, np.ascontiguousarray(samples, dtype=np.float64).tobytes())


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure as the bytes of its files."""

    name: str  # the key in `KINDS`
    title: str
    caption: str  # what holds for this figure of any game
    words: str  # the alternative text
    svg: bytes
    files: dict[str, bytes]  # by format, those that were asked for


def resampling() -> np.random.Generator:
    """A fresh generator: an estimate does not depend on what else is reported."""
    return np.random.default_rng(RESAMPLING_SEED)


@lru_cache(maxsize=CACHED_ESTIMATES)
def _estimated(band: Band, shape: tuple[int, ...], samples: bytes) -> Estimate:
    return band.of(np.frombuffer(samples).reshape(shape), resampling())


def pictures_of(contest: Contest, look: Look) -> Iterator[Picture]:
    """All figures that the contest has runs for."""
    registry.require("a figure", ("matplotlib",))
    if not contest.series:
        return
    finals = _finals(contest, look)
    for name, kind in KINDS.items():
        if not kind.suits(contest):
            continue
        words = f"{kind.title} in the game {contest.label}. Final regret: {finals}."
        yield _picture(name, kind.title, kind.caption, words, partial(kind.make, contest), look)


def picture_of_all(contests: Sequence[Contest], look: Look) -> Iterator[Picture]:
    """Regret in all games that have finished runs, a small panel each; nothing if there is none."""
    registry.require("a figure", ("matplotlib",))
    played = [contest for contest in contests if contest.series]
    if played:
        finals = "; ".join(f"{contest.label}: {_finals(contest, look)}" for contest in played)
        words = f"Regret in every game. Final regret: {finals}."
        caption = (
            "A panel a game; a learner has the same color in all figures. The limits are those of the learners: a "
            "dotted line may leave a panel."
        )
        yield _picture("summary", "Regret in every game", caption, words, partial(_small_multiples, played), look)


def _finals(contest: Contest, look: Look) -> str:
    return ", ".join(f"{series.name} {look.of(series.low).value[-1]:.4g}" for series in contest.shown)


def _picture(name: str, title: str, caption: str, words: str, make: "Callable[[Look], Figure]", look: Look) -> Picture:
    with style(look.size):
        files = _rendered(make(look), look.formats)
    return Picture(name, title, caption, words, files["svg"], {format: files[format] for format in look.formats})


def _rendered(figure: "Figure", formats: Sequence[str]) -> dict[str, bytes]:
    """The figure in the formats, and in SVG for the page."""
    files = {}
    for format in dict.fromkeys(("svg", *formats)):
        stream = BytesIO()
        figure.savefig(stream, format=format, metadata=FORMATS[format])
        files[format] = stream.getvalue()
    return files


def _regret(axes: "Axes", keys: Keys, group: Group, contest: Contest, look: Look) -> None:
    for pen, series in group:
        _curve(axes, keys, pen, look.named(series, contest.names), series.played, series.low, look)
        _regret_interval(axes, keys, pen, series)
    _baseline(axes, keys, contest, look)
    _best_policy(axes, keys)
    _limit(axes, group, look)
    _shares(axes, contest, look)


def _shares(axes: "Axes", contest: Contest, look: Look) -> None:
    """An axis on the right: regret as a share of what uniform play has at the end; a narrow figure has no room."""
    whole = float(look.of(contest.baseline.low).value[-1]) if contest.baseline else 0.0
    if whole > 0.0 and look.size.width >= WIDE:
        there_and_back: Any = (lambda regret: regret / whole, lambda share: share * whole)
        right = axes.secondary_yaxis("right", functions=there_and_back)
        right.set_ylabel("share of uniform play's regret")


def _limit(axes: "Axes", group: Group, look: Look) -> None:
    """The limits of a figure of regret."""
    lines = [look.of(series.low).value for _, series in group]
    ends = [series.high.mean(axis=0) for _, series in group if series.open]
    axes.set_ylim(*_view(axes, np.concatenate(lines + ends)))
    axes.set(xlim=(0, 1.02 * max(series.played[-1] for _, series in group)))


def _view(axes: "Axes", shown: Floats) -> tuple[float, float]:
    """Limits around the lines: bands of two or three runs are so wide that they would flatten the lines."""
    low, high = axes.get_ylim()
    finite = shown[np.isfinite(shown)]
    room = 0.35 * max(float(np.ptp(finite)), 1e-9)
    return max(low, float(finite.min()) - room), min(high, float(finite.max()) + room)


def _loglog(axes: "Axes", keys: Keys, group: Group, contest: Contest, look: Look) -> None:
    axes.set(xscale="log")
    centers = []
    for pen, series in group:
        slope = fitted_exponent(series.played, series.low, MeanBand(), resampling())
        behind = f": {_slope(slope)}"
        label = look.named(series, contest.names, len(behind)) + behind
        centers.append(_curve(axes, keys, pen, label, series.played, series.low, look))
        _fit(axes, series, float(slope.value))
    frame(axes, centers + _baseline(axes, keys, contest, look))
    _references(axes, group[0][1].played, centers, look.size)
    dotted = axes.plot([], [], color="black", linestyle=":", linewidth=1.1)
    keys.marks["fit to the later half: slope, interval"] = dotted[0]
    keys.marks[f"slopes {', '.join(map(str, REFERENCES))}"] = axes.plot([], [], color=GRAY, linewidth=0.8)[0]


def _theory(axes: "Axes", keys: Keys, group: Group, contest: Contest, look: Look) -> None:
    axes.set(xscale="log")
    shown = []
    for pen, series in group:
        label = look.named(series, contest.names)
        shown.append(_curve(axes, keys, pen, label, series.played, series.low, look))
        bound = series.bound.mean(axis=0)
        single: dict[str, Any] = (
            {"marker": "_", "markersize": 12.0, "markeredgewidth": 2.0} if np.isfinite(bound).sum() <= 1 else {}
        )
        if series.role == Role.THEORY:
            dashes = (3.5 * pen.place, (5, 2))  # begins elsewhere for each learner: bounds may be equal
            axes.plot(series.played, bound, color=pen.color, linestyle=dashes, linewidth=1.2, **single)
            shown.append(bound)
    frame(axes, shown + _baseline(axes, keys, contest, look))
    keys.marks["bound of theory, same color"] = axes.plot([], [], color=GRAY, linestyle=(0, (5, 2)))[0]


def _seconds(axes: "Axes", keys: Keys, group: Group, contest: Contest, look: Look) -> None:
    axes.set(xscale="log", xlabel="seconds of the learner")
    for pen, series in group:
        label, seconds = look.named(series, contest.names), series.seconds.mean(axis=0)
        if seconds[-1] > 0.0:  # a logarithmic axis has no place for a learner that does nothing, as uniform play
            _curve(axes, keys, pen, label, seconds[1:], series.low[:, 1:], look)
    if contest.baseline:
        last = float(look.of(contest.baseline.low).value[-1])
        keys.marks[f"{look.size.label(contest.baseline.name)}, at the end"] = axes.axhline(last, **BASELINE)
    _best_policy(axes, keys)


def _calls(axes: "Axes", keys: Keys, group: Group, contest: Contest, look: Look) -> None:
    axes.set(xscale="log", ylabel="oracle calls")
    calling = [(look.named(series, contest.names), pen, series) for pen, series in group if series.oracle_calls.any()]
    lines = [_curve(axes, keys, pen, label, series.played, series.oracle_calls, look) for label, pen, series in calling]
    if lines:
        frame(axes, lines)


def _in_panels(draw: Draw, contest: Contest, look: Look) -> "Figure":
    """A figure of curves over episodes or steps, with a panel for each group of learners."""
    figure, panels = panels_of(contest, look.size)
    for axes, keys, group in panels:
        axes.set(xlabel=f"{contest.unit}s", ylabel="regret")
        draw(axes, keys, group, contest, look)
    return finish(figure, panels, look.size)


def _small_multiples(contests: Sequence[Contest], look: Look) -> "Figure":
    from matplotlib.figure import Figure

    size, names, keys = look.size, legend_names(contests), Keys()
    columns = min(size.abreast, len(contests))
    rows = -(-len(contests) // columns)
    figure = Figure(figsize=(size.width, rows * size.game))
    panels = [figure.add_subplot(rows, columns, place + 1) for place in range(len(contests))]
    for place, (axes, contest) in enumerate(zip(panels, contests, strict=True)):
        axes.set(xlabel=f"{contest.unit}s", ylabel="" if place % columns else "regret")
        beside = size.letters - size.letters // columns  # the letters of the other panels
        axes.set_title(size.label(contest.label, beside), parse_math=False, pad=2.0)
        axes.locator_params(nbins=4)
        _small(axes, keys, contest, names, look)
    below = keys.show(panels[columns * (rows - 1)], figure, size)
    figure.set_figheight(rows * size.game + below)
    across = (size.width - MARGINS["right"]) / columns
    for place, axes in enumerate(panels):
        row, column = divmod(place, columns)
        corner = (column * across + MARGINS["left"], below + (rows - 1 - row) * size.game + MARGINS["bottom"])
        put(axes, figure, corner, (across - MARGINS["left"], size.game))
    return figure


def _small(axes: "Axes", keys: Keys, contest: Contest, names: Mapping[str, str], look: Look) -> None:
    """A panel of a game; the legend has each learner once."""
    mine, group = Keys(), with_pens(contest)
    for pen, series in group:
        _curve(axes, mine, pen, look.named(series, names), series.played, series.low, look)
    _baseline(axes, mine, contest, look)
    _best_policy(axes, mine)
    _limit(axes, group, look)
    keys.learners = keys.learners | {label: key for label, key in mine.learners.items() if label not in keys.learners}
    keys.marks |= mine.marks


def _pace(contest: Contest, look: Look) -> "Figure":
    from matplotlib.figure import Figure

    count = len(contest.drawn)
    figure = Figure(figsize=(look.size.width, 0.6 + 0.36 * count))
    axes = figure.subplots()
    for place, (pen, series) in enumerate(chain.from_iterable(grouped(contest))):
        each = series.each(series.of_learner)
        if not each.any():  # as in the figure before
            continue
        center = look.of(each[:, None])
        axes.plot(each, np.full(len(each), place), "|", color=pen.color, alpha=0.45, markersize=8, zorder=2)
        axes.plot([center.low[0], center.high[0]], [place, place], color=pen.color, linewidth=2.5, zorder=3)
        axes.plot(center.value, [place], **pen.line | {"markersize": 7.0}, zorder=4)
    axes.set(xscale="log", xlabel=f"seconds of the learner for one {contest.unit}", yticks=range(count))
    axes.set(ylim=(count - 0.5, -0.7))
    axes.tick_params(which="both", left=False, labelleft=False)
    plain_logarithms(axes)
    for place, series in enumerate(contest.drawn):
        at: dict[str, Any] = {"xytext": (4, 9), "textcoords": "offset points", "fontsize": 8, "parse_math": False}
        label = look.named(series, contest.names)
        axes.annotate(label, (0.0, place), xycoords=("axes fraction", "data"), va="center", **at)
    figure.subplots_adjust(0.03, 0.5 / figure.get_figheight(), 0.97, 1 - 0.08 / figure.get_figheight())
    return figure


def _has_positive_regret(contest: Contest) -> bool:
    return any((series.low.mean(axis=0) > 0).any() for series in contest.series)


def _has_bound(contest: Contest) -> bool:
    return _has_positive_regret(contest) and not all(np.isnan(series.bound).all() for series in contest.series)


class _Kind(NamedTuple):
    title: str
    make: "Callable[[Contest, Look], Figure]"
    caption: str = ""  # explains its marks, for all games
    suits: Callable[[Contest], bool] = lambda contest: True


KINDS = {
    "regret": _Kind(
        "Regret",
        partial(_in_panels, _regret),
        "The limits are those of the learners: where there is a dotted line of uniform play, it may leave the figure. "
        "On the right: as a share of what uniform play has at the end.",
    ),
    "loglog": _Kind(
        "Growth of the regret",
        partial(_in_panels, _loglog),
        "In the legend: the exponent, the slope of the dotted line through the mean at the later half of the "
        "checkpoints, with its 95% interval over seeds.",
        _has_positive_regret,
    ),
    "theory": _Kind(
        "Regret and theory",
        partial(_in_panels, _theory),
        "Dashed: what theory allows the expected regret.",
        _has_bound,
    ),
    "seconds": _Kind(
        "Regret against seconds",
        partial(_in_panels, _seconds),
        "Seconds of the learner alone, without compiling and loading, the mean at the same checkpoint.",
        lambda contest: any(len(series.played) > 1 for series in contest.series),
    ),
    "pace": _Kind("Seconds", _pace, "Thin marks are single runs."),
    "calls": _Kind(
        "Oracle calls",
        partial(_in_panels, _calls),
        suits=lambda contest: any(series.oracle_calls.any() for series in contest.series),
    ),
}


def _curve(axes: "Axes", keys: Keys, pen: Pen, label: str, x: Floats, samples: Floats, look: Look) -> Floats:
    """Draw the line, its band, and each run if `look.raw`; returns the line."""
    center = look.of(samples)
    shift = 0.02 + 0.2 * (pen.place % len(COLORS)) / len(COLORS)  # markers of two learners do not hide each other
    drawn = axes.plot(x, center.value, **pen.line, markevery=(shift, 0.2), zorder=3)
    axes.fill_between(x, center.low, center.high, color=pen.color, alpha=0.16, linewidth=0, zorder=1)
    if look.raw:
        axes.plot(x, samples.T, color=pen.color, alpha=0.3, linewidth=0.5, zorder=2)
    alike = sum(known == label or known.startswith(f"{label} (") for known in keys.learners)  # cut to the same letters
    keys.learners[f"{label} ({alike + 1})" if label in keys.learners else label] = drawn[0]
    return center.value


def _baseline(axes: "Axes", keys: Keys, contest: Contest, look: Look) -> list[Floats]:
    """Draw the dotted line of uniform play; returns it, or nothing if there is no baseline."""
    if contest.baseline is None:
        return []
    line = look.of(contest.baseline.low).value
    (keys.marks[look.size.label(contest.baseline.name)],) = axes.plot(contest.baseline.played, line, **BASELINE)
    return [line]


def _best_policy(axes: "Axes", keys: Keys) -> None:
    """Draw the line of the best fixed policy in hindsight, which has no regret."""
    keys.marks["best fixed policy in hindsight"] = axes.axhline(0.0, color=GRAY, linewidth=0.8)


def _regret_interval(axes: "Axes", keys: Keys, pen: Pen, series: Series) -> None:
    """Where the comparator is only bounded: hatching up to the largest possible regret, arrows if that is infinite."""
    from matplotlib.patches import Patch
    from matplotlib.path import Path

    if not series.open:
        return
    low, high = series.low.mean(axis=0), series.high.mean(axis=0)
    proved = np.isfinite(high)
    if proved.any():
        look: dict[str, Any] = {"facecolor": "none", "hatch": "////", "linewidth": 0.8, "linestyle": ":"}
        top = np.where(proved, high, np.nan)
        axes.fill_between(series.played, low, top, edgecolor=pen.color, alpha=0.55, zorder=1, **look)
        keys.marks["regret in the strip: comparator bounded"] = Patch(edgecolor=GRAY, **look)
    if not proved.all():
        at = np.unique(np.searchsorted(series.played, np.linspace(0.05, 1.0, 12) * series.played[-1]))
        marks: dict[str, Any] = {"marker": Path(ARROW), "linestyle": "none", "markersize": 22.0, "fillstyle": "none"}
        axes.plot(series.played[at], np.where(proved, np.nan, low)[at], color=pen.color, zorder=2, **marks)
        keys.marks["regret at or above: nothing proved"] = axes.plot([], [], color=GRAY, **marks)[0]


def _fit(axes: "Axes", series: Series, slope: float) -> None:
    if np.isnan(slope):
        return
    x = np.log(series.played[len(series.played) // 2 :])
    y = np.log(series.low.mean(axis=0)[len(series.played) // 2 :])
    line = np.exp(y.mean() + slope * (x - x.mean()))
    axes.plot(np.exp(x), line, color="black", linestyle=":", linewidth=1.1, zorder=4)


def _references(axes: "Axes", played: Floats, centers: list[Floats], size: Size) -> None:
    """Lines with the exponents of the theorems below the curves, where the axis is logarithmic."""
    if axes.get_yscale() == "linear":
        return
    ends = played[[len(played) // 2, -1]]
    floor = linear_within(axes) or axes.get_ylim()[0]
    under = [center[len(center) // 2 :] for center in centers]
    lowest = min((float(part[part > 0].min()) for part in under if (part > 0).any()), default=floor)
    start = max(lowest / 3.0, floor * 1.3)
    for slope in REFERENCES:
        top = start * (ends[1] / ends[0]) ** float(slope)
        axes.plot(ends, [start, top], color=GRAY, linewidth=0.8, zorder=2)
        place: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(str(slope), (ends[1], top), **place, fontsize=size.small, color=GRAY, annotation_clip=False)


def _slope(slope: Estimate) -> str:
    if np.isnan(slope.value):
        return "no slope"
    return f"{slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
