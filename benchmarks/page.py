"""Figures on a page: each table stands between two comments, and is written anew in place."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.results import Row, cells, machine, plain_headings

BEGIN, END = "<!-- figures of {} -->", "<!-- end of figures -->"


def require_places(page: Path, names: Iterable[str]) -> None:
    """Refuse a page without a place for the figures of some name, before hours of measuring."""
    text = page.read_text(encoding="utf-8")
    for begin in map(BEGIN.format, names):
        if begin not in text or END not in text.partition(begin)[2]:
            raise SystemExit(f"the page has no place for these figures: write {begin} and {END} where they belong")


def put(page: Path, name: str, figures: Iterable[str]) -> None:
    """Write these lines in the place of a name."""
    begin = BEGIN.format(name)
    place = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
    text = place.sub(lambda _: "\n".join([begin, *figures, END]), page.read_text(encoding="utf-8"), count=1)
    page.write_text(text, encoding="utf-8")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]


def suite_figures(rows: Sequence[Row], command: str) -> list[str]:
    """The table of a suite, under a line that says how it was made."""
    facts = machine()
    judged = [row for row in rows if row.met is not None]
    met = f"{sum(bool(row.met) for row in judged)} of {len(judged)} goals met"
    return [
        f"`{command}`, {facts['processor']}, one thread, Python {facts['python']}: {met}.",
        "",
        *markdown(plain_headings(), map(cells, rows)),
    ]
