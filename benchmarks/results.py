"""Rows of results: what was compared, how it came out, what was hoped for; as a table and as JSON."""

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.timing import Times

PACKAGES = ("numpy", "scipy", "numba", "highspy", "cvxpy", "clarabel", "pulp", "quantecon", "pymdptoolbox")


@dataclass(frozen=True)
class Goal:
    """A bound to keep: at least so many times faster, at most so many times as much, or at most so many seconds."""

    rule: str  # "at least" or "at most"
    value: float
    unit: str = "x"

    def met(self, amount: float) -> bool:
        """Whether the amount keeps the rule."""
        return amount >= self.value if self.rule == "at least" else amount <= self.value

    def __str__(self) -> str:
        return f"{self.rule} {self.value:g}{self.unit}"


def at_least(times: float) -> Goal:
    """So many times faster than the peer."""
    return Goal("at least", times)


def at_most(times: float) -> Goal:
    """At most so many times what the peer takes."""
    return Goal("at most", times)


@dataclass(frozen=True)
class Row:
    """One line of a table. `ours` and `theirs` are medians in `unit`; without a goal the row is for orientation."""

    name: str
    peer: str
    ours: float
    theirs: float
    unit: str = "s"
    sizes: Mapping[str, int] = field(default_factory=dict)
    ratio: float | None = None
    ratio_of: str = ""  # "theirs / ours": times faster; "ours / theirs": times as much
    spread: tuple[float, float] | None = None  # the middle half of the ratios within the rounds
    goal: Goal | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is kept; None without one."""
        if self.goal is None:
            return None
        return self.goal.met(self.ours if self.ratio is None else self.ratio)


@dataclass(frozen=True)
class Fuzz(Row):
    """A count of wrong answers, of which there must be none: `ours` are wrong out of `theirs`."""

    @classmethod
    def counted(cls, name: str, peer: str, wrong: int, cases: int, note: str) -> "Fuzz":
        """A row that fails the command unless `wrong` is 0."""
        return cls(name, peer, wrong, cases, "", goal=Goal("at most", 0.0, " wrong"), note=note)


def faster(
    name: str, sizes: Mapping[str, int], times: Times, ours: str, peer: str, goal: Goal | None = None, note: str = ""
) -> Row:
    """A row that says how many times faster than the peer ours is."""
    ratio, spread = times.ratio(peer, ours), times.spread(peer, ours)
    medians = times.median(ours), times.median(peer)
    return Row(name, peer, *medians, "s", sizes, ratio, "theirs / ours", spread, goal, note)


def as_long(
    name: str, sizes: Mapping[str, int], times: Times, ours: str, peer: str, goal: Goal | None = None, note: str = ""
) -> Row:
    """A row that says how many times as long as the peer ours takes."""
    ratio, spread = times.ratio(ours, peer), times.spread(ours, peer)
    medians = times.median(ours), times.median(peer)
    return Row(name, peer, *medians, "s", sizes, ratio, "ours / theirs", spread, goal, note)


def show(title: str, rows: Sequence[Row], console: Console) -> None:
    """Print the rows as one table."""
    table = Table(title=title, caption=_caption(rows), title_justify="left", caption_justify="left")
    for heading, justify in _COLUMNS:
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(_COLORS.get(cell, escape(cell)) for cell in cells(row)))
    console.print(table)


def as_json(suite: str, rows: Iterable[Row]) -> dict[str, Any]:
    """The rows and the machine as plain values."""
    return {"suite": suite, "machine": machine(), "rows": [_plain(row) for row in rows]}


def machine() -> dict[str, Any]:
    """What the figures depend on; nothing that tells whose machine it is."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES if any(distributions(name=name))},
    }


def amount(value: float, unit: str) -> str:
    """A figure with a prefix that suits it: `3.1 ms`, `1.4 GB`."""
    if unit == "":
        return f"{value:g}"
    prefixes = ((1e9, "G"), (1e6, "M"), (1e3, "k")) if unit == "B" else ((1.0, ""), (1e-3, "m"), (1e-6, "µ"))
    scale, prefix = next((entry for entry in prefixes if abs(value) >= entry[0]), prefixes[-1])
    return f"{value / scale:.3g} {prefix}{unit}"


_COLUMNS = (
    ("what", "left"),
    ("sizes", "left"),
    ("against", "left"),
    ("ours", "right"),
    ("theirs", "right"),
    ("ratio", "right"),
    ("middle half", "right"),
    ("goal", "left"),
    ("outcome", "left"),
    ("note", "left"),
)
_OUTCOMES = {True: "met", False: "missed", None: ""}
_COLORS = {"met": "[green]met[/]", "missed": "[red]missed[/]"}


def plain_headings() -> list[str]:
    """The headings of the columns."""
    return [heading for heading, _ in _COLUMNS]


def cells(row: Row) -> list[str]:
    """The cells of a row."""
    return [
        row.name,
        " ".join(f"{letter}={size}" for letter, size in row.sizes.items()),
        row.peer,
        amount(row.ours, row.unit),
        amount(row.theirs, row.unit),
        "" if row.ratio is None else f"{row.ratio:.3g}x {_comparison(row.ratio, row.ratio_of)}",
        "" if row.spread is None else "{:.3g}-{:.3g}".format(*row.spread),
        str(row.goal or ""),
        _OUTCOMES[row.met],
        row.note,
    ]


def _comparison(ratio: float, ratio_of: str) -> str:
    if ratio_of == "ours / theirs":
        return "as much"
    return "faster" if ratio >= 1.0 else "as fast"


def _caption(rows: Sequence[Row]) -> str:
    return f"{goals_met(rows)}{_processor()}, one thread unless said"


def goals_met(rows: Sequence[Row]) -> str:
    """How many goals are met, if there are any."""
    judged = [row.met for row in rows if row.met is not None]
    return f"{sum(judged)} of {len(judged)} goals met; " if judged else ""


def _plain(row: Row) -> dict[str, Any]:
    return {**asdict(row), "goal": str(row.goal) if row.goal else None, "met": row.met}


def _processor() -> str:
    """The model's name; `platform.processor` does not know it on Linux."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
