"""Figures on a page: each table stands between two comments, and is written anew in place.

The README shows some rows of the page of speeds: they are read off that page, so that both always agree.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import Row, cells, machine, plain_headings

BEGIN, END = "<!-- figures of {} -->", "<!-- end of figures -->"
ROOT = Path(__file__).parent.parent
SPEED, README = ROOT / "docs" / "speed.md", ROOT / "README.md"
SHOWN = "docs/speed.md"  # the place on the README


class Chosen(NamedTuple):
    """A row for the README: the first of its suite with this name, these sizes, and a peer that begins so."""

    suite: str
    name: str
    sizes: str
    peer: str


CHOSEN = (
    Chosen("oracles", "dp, one solve", "S=10 A=4 H=10", "QuantEcon"),
    Chosen("oracles", "dp, one solve", "S=10 A=4 H=10", "pymdptoolbox"),
    Chosen("oracles", "lp, hot, small change", "S=30 A=4 H=20", "linprog"),
    Chosen("ftpl", "episode, shared trials", "S=10 A=4 H=10 K=10000", "numpy"),
    Chosen("projections", "newton, kernel", "S=10 A=4 H=10", "cvxpy"),
    Chosen("projections", "newton, box", "S=10 A=4 H=10", "cvxpy"),
    Chosen("stationary", "auto, deterministic", "S=6 A=2 T=50", "the fastest of three in HiGHS"),
)
SHOWN_COLUMNS = ("what", "sizes", "against", "ratio")


def require_places(page: str, names: Sequence[str]) -> None:
    """Refuse a page without a place for the figures of some name, before an hour of measuring."""
    for name in names:
        begin = BEGIN.format(name)
        if _place(name).search(page) is None:
            raise SystemExit(f"the page has no place for these figures: write {begin} and {END} where they belong")


def with_figures(page: str, name: str, rows: Sequence[Row], command: str, seconds: float) -> str:
    """The page with the table of a suite, or of some of its cases, put in its place."""
    return _filled(page, name, _table(rows, command, seconds))


def with_chosen(readme: str, page: str) -> str:
    """The README with the chosen rows of the page; rows that were not measured are left out."""
    headings = plain_headings()
    columns = [headings.index(name) for name in SHOWN_COLUMNS]
    found = [row for row in (_row_of(page, one) for one in CHOSEN) if row]
    return _filled(readme, SHOWN, _lines(SHOWN_COLUMNS, [[row[i] for i in columns] for row in found]))


def _row_of(page: str, one: Chosen) -> list[str]:
    place = _place(one.suite).search(page)
    for line in place.group().splitlines() if place else ():
        row = [cell.strip() for cell in line.strip("|").split(" | ")]
        if row[:2] == [one.name, one.sizes] and row[2].startswith(one.peer):
            return row
    return []


def _place(suite: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(BEGIN.format(suite))}.*?{re.escape(END)}", re.DOTALL)


def _filled(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with these lines in the place of that name."""
    return _place(name).sub(lambda _: "\n".join([BEGIN.format(name), *lines, END]), page, count=1)


def _table(rows: Sequence[Row], command: str, seconds: float) -> list[str]:
    facts = machine()
    judged = [row for row in rows if row.met is not None]
    met = f": {sum(bool(row.met) for row in judged)} of {len(judged)} goals met" if judged else ""
    return [
        f"`{command}`, {seconds:.0f} s, {facts['processor']}, one thread unless said, Python {facts['python']}{met}.",
        "",
        *_lines(plain_headings(), [cells(row) for row in rows]),
    ]


def _lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]
