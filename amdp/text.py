"""Texts from files and users: which may be names, and how they are made safe for terminals, files and spreadsheets."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeGuard

MAX_NAME = 1000  # letters
MAX_MESSAGE = 4000  # letters of an error message
LEAST_PART = 3  # letters of a part of a name from which the name is guessed
MAX_VALUE = 200  # letters of a value in a message
RULE = f"it must be a text of one line, of printable letters, {MAX_NAME} of them at most"
# What a spreadsheet takes for the begin of a formula, in ASCII and in its wide forms, behind any number of our marks.
FORMULA = re.compile(r"'*\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]")


def is_name(value: object) -> TypeGuard[str]:
    """Whether a value may be a name: one line that every terminal and every file can hold."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= MAX_NAME


def as_name(text: str) -> str:
    """A valid name made of any text, such as the name of a file."""
    return visible(text).replace("\n", " ").strip()[:MAX_NAME] or "unnamed"


def quoted(value: object) -> str:
    """The `repr` of a value, cut after `MAX_VALUE` letters."""
    written = repr(value)
    return written if len(written) <= MAX_VALUE else f"{written[:MAX_VALUE]}..."


def visible(text: str) -> str:
    """The text with its invisible letters spelled out: a control character would act, half a surrogate ends a program.

    Line ends stay.
    """
    if text.isprintable():
        return text
    shown = (each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text)
    return "".join(shown)


def one_line(text: str) -> str:
    """The text on one line, the middle left out if it is long."""
    line = visible(" ".join(text.split()))
    half = MAX_MESSAGE // 2
    return line if len(line) <= MAX_MESSAGE else f"{line[:half]} ... {line[-half:]}"


def encoded(text: str) -> bytes:
    """The text in UTF-8; halves of surrogates, which UTF-8 has no bytes for, are spelled out."""
    return text.encode("utf-8", "backslashreplace")


def cell(text: str) -> str:
    """A text as a cell of a CSV file that no spreadsheet takes for a formula: behind `'` where it would be one.

    A number stays as it is, and invisible letters are spelled out: a tab or a carriage return might begin a new cell.
    A text that begins with such marks already gets one more, so that one taken away from every cell that begins like
    a formula behind marks gives back what was written.
    """
    shown = visible(text)
    return f"'{shown}" if FORMULA.match(shown) and not _is_number(shown) else shown


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and text.strip() == text


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'? `, where a known word is near: small letters and hyphens may be written otherwise."""
    names = list(known)
    plain = {_plain(name): name for name in [*names, *get_close_matches(word, names, 1)]}  # of two, the one as written
    wanted = _plain(word)
    inside = sorted((name for name in plain if len(wanted) >= LEAST_PART and wanted in name), key=len)
    near = get_close_matches(wanted, plain, 1) or inside
    return f"did you mean {plain[near[0]]!r}? " if near else ""


def _plain(word: str) -> str:
    return word.casefold().replace("_", "-")
