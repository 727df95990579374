"""A table as Markdown, LaTeX and CSV, with all texts escaped."""

import csv
import io
import re
from collections.abc import Iterable
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
    note: str = ""
    texts: int = 1  # columns of words, to the left of numbers


def markdown(table: Table) -> str:
    """A table of GitHub's Markdown."""
    rule = ["---"] * table.texts + ["---:"] * (len(table.columns) - table.texts)
    lines = [_line(map(_in_markdown, table.columns)), _line(rule)]
    lines += [_line(map(_in_markdown, row)) for row in table.rows]
    note = f"\n{_in_markdown(table.note)}\n" if table.note else ""
    return f"### {_in_markdown(table.title)}\n\n" + "\n".join(lines) + f"\n{note}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _in_markdown(text: str) -> str:
    plain = " ".join(text.split())
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", plain)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex(table: Table) -> str:
    """A table environment; needs the packages `booktabs`, and `textcomp` where LaTeX is older than 2020."""
    align = "l" * table.texts + "r" * (len(table.columns) - table.texts)
    head, *rows = (" & ".join(map(_in_latex, row)) + r" \\" for row in (table.columns, *table.rows))
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
