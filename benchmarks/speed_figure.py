"""The ratios of a table of speeds as a figure: how many times as fast as its peer each row is."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from amdp.report.drawing import COLORS, GRAY, STYLE
from benchmarks.results import Row, cells

INCHES = 7.0  # wide
INCHES_A_ROW, INCHES_OF_AXIS = 0.26, 0.8


def draw(rows: Sequence[Row], file: Path) -> None:
    """A dot at the ratio of each row that has one, and a bar for the middle half of the ratios within the rounds."""
    shown = [row for row in rows if row.ratio]
    if not shown:
        raise SystemExit("no row compares two times: there is nothing to draw")
    with rc_context(STYLE):
        figure = Figure((INCHES, INCHES_OF_AXIS + INCHES_A_ROW * len(shown)), layout="constrained")
        axes = figure.subplots()
        axes.axvline(1.0, color=GRAY, linewidth=1.0)
        for place, row in enumerate(shown):
            low, middle, high = times_as_fast(row)
            axes.plot([low, high], [place, place], color=COLORS[0], alpha=0.5, linewidth=4.0)
            axes.plot([middle], [place], "o", color=COLORS[0])
        peers = list(dict.fromkeys(row.peer for row in shown))
        axes.set_yticks(range(len(shown)), [_label(row, len(peers) > 1) for row in shown])
        axes.set(xscale="log", xlabel=f"times as fast as {peers[0] if len(peers) == 1 else 'its peer'}")
        axes.invert_yaxis()  # as the table has them, from top to bottom
        axes.grid(axis="y", visible=False)
        figure.savefig(file, metadata={"Date": None})


def times_as_fast(row: Row) -> tuple[float, float, float]:
    """Lower quartile, ratio and upper quartile as multiples of the peer's speed; without a spread the ratio alone."""
    assert row.ratio is not None
    low, high = row.spread or (row.ratio, row.ratio)
    if row.ratio_of == "theirs / ours":
        return low, row.ratio, high
    return 1.0 / high, 1.0 / row.ratio, 1.0 / low


def _label(row: Row, with_peer: bool) -> str:
    name, sizes, peer, *_ = cells(row)
    return f"{name}, {sizes}, against {peer}" if with_peer else f"{name}, {sizes}"
