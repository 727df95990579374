"""The page of speeds, a table a suite, and the README, which shows some rows of it.

These rows are read off that page, so that both always agree.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.page import DOCS, ROOT, filled, markdown, place, put
from benchmarks.results import Row, cells, goals_met, machine, plain_headings

SPEED, README = DOCS / "speed.md", ROOT / "README.md"
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


def put_suite(page: Path, name: str, rows: Sequence[Row], command: str, seconds: float) -> None:
    """Write the table of a suite, or of some of its cases, in its place; the README follows the page of speeds."""
    put(page, name, _suite_figures(rows, command, seconds))
    if page.resolve() == SPEED:
        readme, speeds = (file.read_text(encoding="utf-8") for file in (README, SPEED))
        README.write_text(with_chosen(readme, speeds), encoding="utf-8")


def with_chosen(readme: str, page: str) -> str:
    """The README with the chosen rows of the page; rows that were not measured are left out."""
    headings = plain_headings()
    columns = [headings.index(name) for name in SHOWN_COLUMNS]
    found = [row for row in (_row_of(page, one) for one in CHOSEN) if row]
    return filled(readme, SHOWN, markdown(SHOWN_COLUMNS, [[row[i] for i in columns] for row in found]))


def _row_of(page: str, one: Chosen) -> list[str]:
    table = place(one.suite).search(page)
    for line in table.group().splitlines() if table else ():
        row = [cell.strip() for cell in line.strip("|").split(" | ")]
        if row[:2] == [one.name, one.sizes] and row[2].startswith(one.peer):
            return row
    return []


def _suite_figures(rows: Sequence[Row], command: str, seconds: float) -> list[str]:
    facts = machine()
    about = f"{goals_met(rows)}{facts['processor']}, one thread unless said, Python {facts['python']}"
    return [
        f"`{command}`, {seconds:.0f} s: {about}.",
        "",
        *markdown(plain_headings(), map(cells, rows)),
    ]
