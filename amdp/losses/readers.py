"""Recorded losses: a data frame, or a `.csv`, `.parquet` or `.npz` file, one loss a row.

    round, step, state, action     whole numbers from 0
    loss                           in [0, 1]

The columns may stand in any order, among others. An `.npz` file holds these five arrays, or one array `losses`
`[k, h, s, a]`. Pickles are never loaded.
"""

import csv
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp import archives
from amdp.archives import UNREADABLE
from amdp.arrays import floats, located, refuse, require_room
from amdp.errors import AmdpError, InvalidInput, MissingDependency, SpecError
from amdp.losses.base import FixedLosses
from amdp.model.segments import Shape
from amdp.regular_files import open_binary, open_text
from amdp.text import suggestion

PLACE = ("round", "step", "state", "action")
COLUMNS = (*PLACE, "loss")
Columns = Mapping[str, ArrayLike]
Ints = NDArray[np.int64]
Places = tuple[Ints, ...]  # of each row: round, step, state, action
LARGEST = 2**40  # entries; more is a wrong column, not a sequence of losses


def load(path: str | PathLike[str], shape: Shape | None = None, default: float | None = None) -> FixedLosses:
    """The losses in a file; see `from_columns`."""
    file = Path(path)
    readers: dict[str, Callable[[Path], Columns]] = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}
    if file.suffix not in readers:
        raise SpecError(f"unknown suffix {file.suffix!r}; known are {', '.join(readers)}", str(file))
    try:
        columns = readers[file.suffix](file)
    except AmdpError:
        raise
    except UNREADABLE as problem:
        raise SpecError(f"cannot be read: {problem}", str(file)) from problem
    try:
        return _dense(columns["losses"], shape) if "losses" in columns else from_columns(columns, shape, default)
    except InvalidInput as problem:
        raise InvalidInput(f"{file}: {problem}") from problem


def is_table(losses: Any) -> bool:
    """Whether somebody gave losses as a table with columns: a data frame, or a dictionary of arrays."""
    return (isinstance(losses, Mapping) and "loss" in losses) or hasattr(losses, "columns")


def from_columns(columns: Columns | Any, shape: Shape | None = None, default: float | None = None) -> FixedLosses:
    """Losses from the columns round, step, state, action, loss: a dictionary of arrays or a data frame.

    The largest round met is the last; so with steps, states and actions, unless `shape` gives their numbers. A place
    that no row names has the loss `default`; without a default it is refused, as is a place that two rows name.
    """
    # `columns` are names in pandas and polars, and arrays in pyarrow, which has `column_names`.
    names = columns if isinstance(columns, Mapping) else getattr(columns, "column_names", None) or columns.columns
    known = list(names)
    for name in COLUMNS:
        if name not in known:
            near = suggestion(name, [str(other) for other in known if other not in COLUMNS])
            raise InvalidInput(f"no column {name!r}; {near}expected {', '.join(COLUMNS)}")
    losses = floats("loss", columns["loss"], "m")
    places = tuple(_whole(name, columns[name], len(losses)) for name in PLACE)
    sizes = _sizes(places, shape)
    _require_once(places, sizes, default is None)
    require_room("losses", sizes)
    array = np.full(sizes, default, dtype=np.float64)
    array[places] = losses
    return FixedLosses(array)


def _dense(losses: ArrayLike, shape: Shape | None) -> FixedLosses:
    sequence = FixedLosses(floats("losses", losses, "khsa"))
    if shape is not None and sequence.shape != tuple(shape):
        raise InvalidInput(f"losses are of shape {sequence.shape}; expected {tuple(shape)}")
    return sequence


def _whole(name: str, column: ArrayLike, n_rows: int) -> Ints:
    numbers = floats(name, column, "m")
    if len(numbers) != n_rows:
        raise InvalidInput(f"{name} has {len(numbers)} rows; loss has {n_rows}")
    bad = ~((numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers < LARGEST))
    refuse(name, numbers, bad, "m", f"must be a whole number from 0 to {LARGEST - 1}")
    return numbers.astype(np.int64)


def _sizes(places: Places, shape: Shape | None) -> tuple[int, ...]:
    met = tuple(int(index.max()) + 1 for index in places)
    sizes = met if shape is None else (met[0], *shape)
    for name, index, size in zip(PLACE, places, sizes, strict=True):
        if index.max() >= size:
            raise InvalidInput(f"{name}[m={index.argmax()}] = {index.max()}; it must be between 0 and {size - 1}")
    if prod(sizes) > LARGEST:
        raise InvalidInput(f"{len(places[0])} rows span {' x '.join(map(str, sizes))} places; is a column wrong?")
    return sizes


def _require_once(places: Places, sizes: tuple[int, ...], complete: bool) -> None:
    """Refuse a place that two rows name; and, if all must be there, one that none names."""
    named = np.sort(np.ravel_multi_index(places, sizes))
    again = np.flatnonzero(named[1:] == named[:-1])
    if again.size:
        raise InvalidInput(f"two rows for {_place(named[again[0]], sizes)}; expected one")
    if complete and len(named) < prod(sizes):
        gaps = np.flatnonzero(named != np.arange(len(named)))
        missing, others = gaps[0] if gaps.size else len(named), prod(sizes) - len(named) - 1
        more = f", and {others} more are missing" if others else ""
        remedy = "give a default to fill gaps: amdp.losses.from_columns(table, shape, default=0)"
        raise InvalidInput(f"no row for {_place(missing, sizes)}; counting is from 0{more}; {remedy}")


def _place(flat: np.integer | int, sizes: tuple[int, ...]) -> str:
    k, *place = np.unravel_index(int(flat), sizes)
    return f"round {k} {located('hsa', place)}"


def _csv(file: Path) -> Columns:
    with open_text(file, newline="") as stream:
        header = [title.strip() for title in next(csv.reader([stream.readline()]), [])]
        known = [name for name in COLUMNS if name in header]
        if not known:
            raise SpecError(f"no header; the first line must name {', '.join(COLUMNS)}", str(file))
        where = [header.index(name) for name in known]
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of a table without rows
            rows = np.loadtxt(stream, delimiter=",", quotechar='"', usecols=where, ndmin=2)
    return dict(zip(known, rows.T, strict=True))


def _parquet(file: Path) -> Columns:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as problem:
        raise MissingDependency('reading Parquet files needs pyarrow: pip install "amdp[frames]"') from problem
    with open_binary(file) as stream:
        opened = parquet.ParquetFile(stream)
        require_room("a table", (opened.metadata.num_rows, opened.metadata.num_columns))
        table = opened.read(columns=[name for name in COLUMNS if name in opened.schema_arrow.names])
    return {name: table.column(name).to_numpy() for name in COLUMNS if name in table.column_names}


def _npz(file: Path) -> Columns:
    wanted = (*COLUMNS, "losses")
    return archives.read(file, lambda names: [name for name in names if name in wanted])
