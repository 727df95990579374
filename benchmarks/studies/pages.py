"""Tables of studies on pages that have prose around them: each stands between two comments, and is replaced there."""

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.page import BEGIN, END, require_places

DOCS = Path(__file__).parents[2] / "docs"


def placed(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with these lines in the place of that name."""
    require_places(page, [name])
    begin = BEGIN.format(name)
    place = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
    return place.sub(lambda _: "\n".join([begin, *lines, END]), page, count=1)


def put(page: str, name: str, lines: Sequence[str]) -> None:
    """Write the lines in their place on a page of `docs/`."""
    file = DOCS / page
    file.write_text(placed(file.read_text(encoding="utf-8"), name, lines), encoding="utf-8")
