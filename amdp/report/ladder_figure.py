"""The curves of ladders in one figure: regret as a share of that of uniform play, against the size of the game."""

from collections.abc import Sequence
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from amdp import registry
from amdp.experiments.spec import Role
from amdp.report.drawing import GRAY, SIZES, Pen, plain_logarithms, style
from amdp.report.rates import LadderFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = SIZES["page"]
ABREAST = 2  # panels
HEIGHT = 2.9  # inches of a panel
LETTERS = 42  # of a line of its heading
DECADES = 5  # below 1, as far as a panel shows shares
TOP = 2.0  # of the shares that a panel shows
LINE = 0.05  # of the height of a panel, for a line of its legend


def ladder_figure(fits: Sequence[LadderFit]) -> bytes:
    """A panel for each heading, as an SVG; with rates by theory solid lines, with tuned rates broken ones."""
    registry.require("a figure", ("matplotlib",))
    from matplotlib.figure import Figure

    panels: dict[str, list[LadderFit]] = {}
    for fit in fits:
        panels.setdefault(fit.ladder.heading or f"Along {fit.ladder.size}", []).append(fit)
    rows = -(-len(panels) // ABREAST)
    with style(SIZE):
        figure = Figure(figsize=(SIZE.width, HEIGHT * rows), layout="constrained")
        for place, (heading, together) in enumerate(panels.items()):
            _draw(figure.add_subplot(rows, ABREAST, place + 1), heading, together)
        stream = BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _draw(axes: "Axes", heading: str, fits: Sequence[LadderFit]) -> None:
    ladders = list(dict.fromkeys(fit.ladder.name for fit in fits))
    for fit in fits:
        shown = fit.shares > 0.0  # a logarithmic axis has no place for a regret below 0, and none for a missing one
        line = Pen(ladders.index(fit.ladder.name), fit.role == Role.TUNED).line
        axes.plot(fit.rungs[shown], fit.shares[shown], **line | {"linewidth": 1.2, "markersize": 3.5}, label=fit.name)
    axes.axhline(1.0, color=GRAY, linewidth=0.8)
    axes.set(xscale="log", yscale="log", ylim=(bottom(fits), TOP), xlabel=fits[0].ladder.size)
    axes.set_title(fill(heading, LETTERS), fontsize=SIZE.small)
    axes.set_ylabel("share of uniform play's regret", fontsize=SIZE.small)
    axes.legend(frameon=False, fontsize=5.5, handlelength=2.6, labelspacing=0.2, loc="lower left")
    plain_logarithms(axes)


def bottom(fits: Sequence[LadderFit]) -> float:
    """The least share that a panel shows, so that its legend stands below the curves."""
    shown = np.concatenate([fit.shares[fit.shares > 0.0] for fit in fits])
    low = max(float(shown.min(initial=1.0)), 10.0**-DECADES)
    legend = min(0.5, LINE * (len(fits) + 1))
    return float(low * (low / TOP) ** (legend / (1.0 - legend)))
