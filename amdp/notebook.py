"""Notebooks: whether Python runs in one, and a line of progress there, which needs nothing but IPython itself."""

import sys
import time
from html import escape
from typing import Any, Self
from uuid import uuid4

PATIENCE_SECONDS = 0.5  # what ends sooner shows no progress
REFRESH_SECONDS = 0.25  # between two drawings


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this; IPython in a terminal is a terminal."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """A bar and a text below a cell, drawn anew in their place; gone at the end, unless `keep`."""

    def __init__(self, keep: bool = False) -> None:
        self._keep = keep
        self._id = uuid4().hex
        self._due = time.monotonic() + PATIENCE_SECONDS
        self._is_shown = False
        self._last: tuple[float, float, str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._is_shown:
            self._draw(_content(*self._last) if self._keep and self._last else {"text/html": "", "text/plain": ""})

    def show(self, done: float, of: float, text: str) -> None:
        """Show how much of the work is done, if it is time to draw again."""
        self._last = done, of, text
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + REFRESH_SECONDS
            self._draw(_content(done, of, text))

    def _draw(self, content: dict[str, str]) -> None:
        from IPython.display import display, publish_display_data  # type: ignore[import-not-found, unused-ignore]

        if self._is_shown:
            publish_display_data(content, transient={"display_id": self._id}, update=True)
        else:
            display(content, raw=True, display_id=self._id)
        self._is_shown = True


def _content(done: float, of: float, text: str) -> dict[str, Any]:
    bar = f'<progress value="{done:g}" max="{of:g}" style="width: 20em"></progress>'
    return {"text/html": f"<div>{bar} {escape(text)}</div>", "text/plain": text}
