"""Models in files that other solvers read, `.lp` or `.mps`, with names such as `x[t,s,a]` for columns and rows.

Square brackets stand for quadratic terms in the LP format, and HiGHS refuses such names there. In a `.lp` file the same
names have round ones: `x(t,s,a)`.
"""

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amdp.errors import InvalidInput

SUFFIXES = (".lp", ".mps")
LEAST_COEFFICIENT = 1e-12  # HiGHS by itself drops what is below 1e-9
_ROUND = str.maketrans("[]", "()")


class Block(NamedTuple):
    """Columns or rows of one kind that stand side by side; their places are listed only when a file is written."""

    label: str
    places: Callable[[], Iterable[tuple[Any, ...]]]

    def names(self) -> list[str]:
        """The names in order, `label[place]`."""
        return [named(self.label, place) for place in self.places()]


def grid(label: str, *sizes: int) -> Block:
    """A block with a member for each place of an array, the last axis fastest."""
    return Block(label, partial(np.ndindex, *sizes))


def listed(label: str, *axes: Any) -> Block:
    """A block with a member for each place of a list, which is given by axes."""
    return Block(label, partial(zip, *axes))


def named(label: str, place: tuple[Any, ...]) -> str:
    """The name of one column or row."""
    return f"{label}[{','.join(map(str, place))}]"


def require_model_suffix(path: str | Path) -> None:
    """Refuse to write a model to a file of another kind."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise InvalidInput(f"{path}: the suffix must be {' or '.join(SUFFIXES)}, not {suffix!r}")


def names_of(blocks: Iterable[Block]) -> list[str]:
    """The names of all members, block by block."""
    return [name for block in blocks for name in block.names()]


def write_model(model: Any, columns: list[str], rows: list[str], path: str | Path) -> None:
    """Write a `HighsLp` under these names, whole or not at all; a file that stands there is replaced."""
    import highspy  # who writes no file needs none

    require_model_suffix(path)
    target = Path(path)
    if target.suffix == ".lp":
        columns, rows = ([name.translate(_ROUND) for name in names] for names in (columns, rows))
    model.col_names_, model.row_names_ = columns, rows
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("small_matrix_value", LEAST_COEFFICIENT)
    if highs.passModel(model) == highspy.HighsStatus.kError:
        raise InvalidInput(f"{path}: HiGHS, which writes the file, does not accept the model; costs must be below 1e20")
    unfinished = target.with_name(f"{target.stem}.{secrets.token_hex(4)}.part{target.suffix}")
    try:
        unfinished.open("x").close()  # HiGHS says that a file cannot be written, but not why
        if highs.writeModel(str(unfinished)) != highspy.HighsStatus.kOk:
            raise InvalidInput(f"{path}: HiGHS could not write the model")
        unfinished.replace(target)
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be written: {problem.strerror or problem}") from problem
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
