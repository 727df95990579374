"""Figures on a page: the table of each suite stands between two comments, and is written anew in place."""

import re
from collections.abc import Sequence

from benchmarks.results import Row, cells, machine, plain_headings

BEGIN, END = "<!-- figures of {} -->", "<!-- end of figures -->"


def require_places(page: str, suites: Sequence[str]) -> None:
    """Refuse a page without a place for the figures of some suite, before hours of measuring."""
    for begin in map(BEGIN.format, suites):
        if begin not in page or END not in page.partition(begin)[2]:
            raise SystemExit(f"the page has no place for these figures: write {begin} and {END} where they belong")


def with_figures(page: str, suite: str, rows: Sequence[Row], command: str) -> str:
    """The page with the table of a suite put in its place."""
    begin = BEGIN.format(suite)
    place = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
    return place.sub(lambda _: "\n".join([begin, *_table(rows, command), END]), page, count=1)


def _table(rows: Sequence[Row], command: str) -> list[str]:
    facts = machine()
    headings = plain_headings()
    judged = [row for row in rows if row.met is not None]
    met = f": {sum(bool(row.met) for row in judged)} of {len(judged)} goals met" if judged else ""
    return [
        f"`{command}`, {facts['processor']}, one thread unless said, Python {facts['python']}{met}.",
        "",
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |" for row in rows),
    ]
