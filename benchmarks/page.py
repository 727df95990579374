"""Figures on pages: each table stands between two comments, with prose around it, and is written anew in place."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

BEGIN, END = "<!-- figures of {} -->", "<!-- end of figures -->"
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def require_places(page: Path, names: Iterable[str]) -> None:
    """Refuse a page without a place for the figures of some name, before hours of measuring."""
    text = page.read_text(encoding="utf-8")
    for name in names:
        if place(name).search(text) is None:
            begin = BEGIN.format(name)
            raise SystemExit(f"the page has no place for these figures: write {begin} and {END} where they belong")


def put(page: Path, name: str, lines: Iterable[str]) -> None:
    """Write these lines in the place of a name."""
    require_places(page, [name])
    page.write_text(filled(page.read_text(encoding="utf-8"), name, lines), encoding="utf-8")


def filled(text: str, name: str, lines: Iterable[str]) -> str:
    """The text of a page with these lines in the place of a name."""
    return place(name).sub(lambda _: "\n".join([BEGIN.format(name), *lines, END]), text, count=1)


def place(name: str) -> re.Pattern[str]:
    """From the comment with the name to the next one that ends a place."""
    return re.compile(f"{re.escape(BEGIN.format(name))}.*?{re.escape(END)}", re.DOTALL)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]
