"""Losses from a data frame: a row for each round, step, state and action."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import amdp
from amdp.errors import InvalidInput
from amdp.instances import river_swim, tiny, waiting_ring, with_start

WORLD = tiny()
TABLES = np.random.default_rng(3).random((4, *WORLD.shape))


def frame_of(tables: Any) -> Any:
    """The rows, shuffled, with a column that nobody asked for."""
    places = {name: index.ravel() for name, index in zip(NAMES, np.indices(tables.shape), strict=True)}
    return pd.DataFrame(places | {"loss": tables.ravel(), "day": "Monday"}).sample(frac=1, random_state=1)


NAMES = ("round", "step", "state", "action")


class Polars:
    """What polars has of a data frame: names in `columns`, and columns by name."""

    def __init__(self, frame: Any) -> None:
        self.columns, self._frame = list(frame.columns), frame

    def __getitem__(self, name: str) -> Any:
        return self._frame[name]

    def __iter__(self) -> Any:
        return iter(self._frame[name] for name in self.columns)


@pytest.mark.parametrize("form", [lambda frame: frame, pa.Table.from_pandas, lambda frame: dict(frame), Polars])
def test_a_game_reads_any_table_with_the_columns(form: Callable[[Any], Any]) -> None:
    game = amdp.Game(WORLD, losses=form(frame_of(TABLES)))
    assert game.rounds == 4
    np.testing.assert_array_equal(game.losses.batch(0, 4), TABLES)
    assert amdp.Game(WORLD, losses=form(frame_of(TABLES)), rounds=3).rounds == 3


def test_missing_rows_are_named() -> None:
    frame = frame_of(TABLES).sort_values(list(NAMES)).reset_index(drop=True)
    with pytest.raises(InvalidInput, match=r"no row for round 0 \[h=0, s=0, a=1\]; .* and 1 more are missing"):
        amdp.Game(WORLD, losses=frame.drop([1, 40]))


def test_a_misspelled_column_is_named() -> None:
    with pytest.raises(InvalidInput, match="no column 'action'; did you mean 'actions'"):
        amdp.Game(WORLD, losses=frame_of(TABLES).rename(columns={"action": "actions"}))


def test_missing_values_are_refused() -> None:
    frame = frame_of(TABLES)
    frame.iloc[3, frame.columns.get_loc("loss")] = np.nan
    with pytest.raises(InvalidInput, match="nan"):
        amdp.Game(WORLD, losses=frame)


def test_rows_beyond_the_world_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"step.* must be between 0 and 2"):
        amdp.Game(WORLD, losses=frame_of(np.zeros((2, 4, 3, 2))))


def test_rows_of_a_stream_and_of_a_world_behind_an_entrance() -> None:
    steps = np.random.default_rng(4).random((6, 1, 3, 2))
    ring = waiting_ring(6, 3)
    np.testing.assert_array_equal(amdp.Game(ring, losses=frame_of(steps), steps=6).losses.batch(0, 6), steps)
    swim = river_swim(n_states=3, n_steps=4)
    inside = np.random.default_rng(5).random((2, *swim.shape))
    game = amdp.Game(with_start(swim, [0.5, 0.5, 0.0]), losses=frame_of(inside))
    np.testing.assert_array_equal(game.losses.batch(0, 2)[:, 1:, :-1], inside)
