"""Read explicit transition files of the PRISM model checker (`.tra`, as written by `-exporttrans`)."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from amdp.arrays import ROW_TOLERANCE, Floats, floats, require_index
from amdp.errors import InvalidInput
from amdp.instances.base import Instance, repeated, require_counts
from amdp.model.transitions import SparseKernel
from amdp.regular_files import read_text
from amdp.text import as_name

HEADER = "a header of three counts: `states choices transitions`"
TRANSITION = "`state choice next-state chance [action]`"


def read_prism(path: str | PathLike[str], n_steps: int, initial: int = 0, costs: ArrayLike | None = None) -> Instance:
    """The Markov decision process of a `.tra` file, for `n_steps` steps.

    The file has a header `states choices transitions`, then a line `s choice s' p [action]` for each transition; `#`
    starts a comment, `p` may be a fraction, action names are ignored. The choices of a state count from 0. A state
    with fewer choices than the maximum is filled up with its first choice, so that actions beyond its own repeat it.

    `costs` `[s, a]` or `[h, s, a]` may be given. Without them a step costs 1 outside absorbing states (where every
    choice stays) and 0 in them: the total is the expected time to absorption, cut at `n_steps`.
    """
    require_counts(n_steps=n_steps)
    file = Path(path)
    counts, rows = _parsed(file)
    require_index("initial", initial, len(counts))
    actions = np.arange(counts.max())
    choices = _first(counts)[:, None] + np.where(actions < counts[:, None], actions, 0)  # [s, a]
    rows = rows[choices.reshape(-1)]
    table = _time_to_absorption(rows, choices.shape) if costs is None else costs
    nominal = repeated(table, n_steps) if np.ndim(table) == 2 else floats("costs", table, "hsa")
    return Instance(as_name(file.stem), SparseKernel.homogeneous(rows, n_steps), nominal, initial)


def _parsed(file: Path) -> tuple[NDArray[np.int64], Any]:
    """The number of choices `[s]`, and the rows of all choices, state by state, as CSR `[choice, y]`."""
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{file} cannot be read: {problem}") from problem
    lines = _meaningful(text)
    states, choices, transitions = _header(file, *next(lines, (1, "")))
    read = [_transition(file, number, line, states) for number, line in lines]
    if len(read) != transitions:
        raise InvalidInput(f"{file}: the header announces {transitions} transitions, the file has {len(read)}")
    state, choice, successor, chance = (np.array(column) for column in zip(*read, strict=True))
    counts = _counted(file, state, choice, states)
    if counts.sum() != choices:
        raise InvalidInput(f"{file}: the header announces {choices} choices, the file has {counts.sum()}")
    places = (_first(counts)[state] + choice, successor)
    rows = scipy.sparse.coo_array((chance, places), shape=(choices, states)).tocsr()
    _require_row_sums(file, rows, _first(counts))
    return counts, rows


def _first(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of the first choice of each state."""
    return np.cumsum(counts) - counts


def _meaningful(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if content:
            yield number, content


def _header(file: Path, number: int, line: str) -> list[int]:
    words = line.split()
    if len(words) != 3 or not all(_is_count(word) for word in words):
        _refuse(file, number, line, HEADER)
    counts = [int(word) for word in words]
    if not 0 < counts[0] <= counts[1] <= counts[2]:
        _refuse(file, number, line, "at least one choice a state and one transition a choice; a deadlock needs a loop")
    return counts


def _transition(file: Path, number: int, line: str, states: int) -> tuple[int, int, int, float]:
    """State, choice, next state and chance."""
    words = line.split()
    if len(words) not in (4, 5) or not all(_is_count(word) for word in words[:3]):
        _refuse(file, number, line, TRANSITION)
    state, choice, successor = (int(word) for word in words[:3])
    if max(state, successor) >= states:
        _refuse(file, number, line, f"states between 0 and {states - 1}, as the header says")
    return state, choice, successor, _chance(file, number, line, words[3])


def _chance(file: Path, number: int, line: str, word: str) -> float:
    above, _, below = word.partition("/")
    try:
        chance = float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        chance = np.nan
    if not 0.0 <= chance <= 1.0:
        _refuse(file, number, line, f"a chance between 0 and 1, not {word!r}")
    return chance


def _counted(file: Path, state: NDArray[np.int64], choice: NDArray[np.int64], states: int) -> NDArray[np.int64]:
    """The number of choices of each state; they must count from 0 without gaps."""
    chosen: list[set[int]] = [set() for _ in range(states)]
    for s, a in zip(state.tolist(), choice.tolist(), strict=True):
        chosen[s].add(a)
    for s, choices in enumerate(chosen):
        if not choices:
            raise InvalidInput(f"{file}: state {s} has no choice; a deadlock needs a loop: `{s} 0 {s} 1`")
        if max(choices) != len(choices) - 1:
            raise InvalidInput(f"{file}: state {s} has choices {sorted(choices)}; they must count from 0")
    return np.array([len(choices) for choices in chosen])


def _require_row_sums(file: Path, rows: Any, first: NDArray[np.int64]) -> None:
    sums: Floats = rows.sum(axis=1)
    wrong = np.abs(sums - 1.0) > ROW_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        state = int(np.searchsorted(first, row, side="right")) - 1
        raise InvalidInput(
            f"{file}: choice {row - first[state]} of state {state} sums to {sums[row]:.12g}; it must sum to 1"
        )


def _time_to_absorption(rows: Any, shape: tuple[int, ...]) -> Floats:
    entries = rows.tocoo()
    stays = np.bincount(entries.row, entries.data * (entries.col == entries.row // shape[1]), rows.shape[0])
    moving = (stays.reshape(shape) < 1.0 - ROW_TOLERANCE).any(axis=1)
    return np.repeat(np.where(moving, 1.0, 0.0).reshape(-1, 1), shape[1], axis=1)


def _is_count(word: str) -> bool:
    return word.isdecimal() and len(word) <= 12


def _refuse(file: Path, number: int, line: str, expected: str) -> NoReturn:
    raise InvalidInput(f"{file}, line {number}: expected {expected}; found {line!r}")
