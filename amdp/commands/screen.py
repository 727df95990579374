"""The terminal: texts from files and names are printed literally, never as markup or control characters."""

from typing import Any

from rich.console import Console
from rich.text import Text

from amdp.text import visible


class Screen(Console):
    """A console without markup and emoji that spells out control characters, also in cells and titles of a table."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **how: Any) -> Text:
        """The text with control characters spelled out."""
        return super().render_str(visible(text), **how)

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line without wrapping it."""
        self.print(text, style=style, soft_wrap=True)


def complain(text: str) -> None:
    """Print a line on standard error, away from the output that programs read."""
    Screen(stderr=True).say(text)


def unmarked(text: str) -> Text:
    """The text for parts of rich, such as spinners, that read markup whatever the console is set to."""
    return Text(visible(text))
