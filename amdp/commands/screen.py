"""The terminal: texts show as they are, whoever wrote them."""

from typing import Any

from rich.console import Console
from rich.text import Text

from amdp.text import visible


class Screen(Console):
    """A console to which brackets are no markup and colons no emoji, and on which no letter acts.

    That holds for all texts that are printed as such, alone or in cells and titles of a table.
    """

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **how: Any) -> Text:
        """As any console does, once the text is harmless."""
        return super().render_str(visible(text), **how)

    def say(self, text: str, style: str | None = None) -> None:
        """A line, however long."""
        self.print(text, style=style, soft_wrap=True)


def complain(text: str) -> None:
    """A line to those who watch, not to the program that reads the output."""
    Screen(stderr=True).say(text)


def unmarked(text: str) -> Text:
    """For what would read its texts as markup, whatever the console does."""
    return Text(visible(text))
