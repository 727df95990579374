"""A table as Markdown, LaTeX and CSV, with all texts escaped."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from amdp.text import cell

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "[": "{[}",  # at the begin of a row it would belong to the end of the one before
    "*": "{*}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "∞": r"$\infty$",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "≤": r"$\le$",
    "…": r"\dots{}",
} | {letter: f"\\{letter}" for letter in "&%$#_{}"}


@dataclass(frozen=True)
class Table:
    """A table of plain texts, which are escaped where it is written."""

    name: str  # the stem of its files
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()  # what a reader has to know, thought by thought
    texts: int = 1  # columns of words, to the left of numbers
    strong: frozenset[tuple[int, int]] = frozenset()  # rows and columns of the cells in bold

    @property
    def note(self) -> str:
        """All notes as one text."""
        return " ".join(self.notes)


def markdown(table: Table) -> str:
    """A table of GitHub's Markdown."""
    rule = ["---"] * table.texts + ["---:"] * (len(table.columns) - table.texts)
    lines = [_line(map(_in_markdown, table.columns)), _line(rule)]
    lines += [_line(row) for row in _cells(table, _in_markdown, "**{}**")]
    note = f"\n{_in_markdown(table.note)}\n" if table.note else ""
    return f"### {_in_markdown(table.title)}\n\n" + "\n".join(lines) + f"\n{note}"


def _cells(table: Table, escaped: Callable[[str], str], bold: str) -> Iterator[list[str]]:
    """The rows of a table, escaped, and those cells in bold that are to be."""
    for i, row in enumerate(table.rows):
        yield [bold.format(escaped(cell)) if (i, j) in table.strong else escaped(cell) for j, cell in enumerate(row)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _in_markdown(text: str) -> str:
    plain = " ".join(text.split())
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", plain)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex(table: Table) -> str:
    """A table environment; needs the packages `booktabs`, and `textcomp` where LaTeX is older than 2020."""
    align = "l" * table.texts + "r" * (len(table.columns) - table.texts)
    written = ([_in_latex(name) for name in table.columns], *_cells(table, _in_latex, r"\textbf{{{}}}"))
    head, *rows = (" & ".join(row) + r" \\" for row in written)
    caption = _in_latex(f"{table.title}. {table.note}".strip())
    begin = (r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{align}}}", r"\toprule")
    end = (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")
    return "\n".join([*begin, head, r"\midrule", *rows, *end])


def _in_latex(text: str) -> str:
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return "".join(LATEX.get(letter, letter) for letter in plain)


def comma_separated(table: Table) -> str:
    """CSV with a header; no cell is a formula to a spreadsheet."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows(map(cell, row) for row in (table.columns, *table.rows))
    return stream.getvalue()
