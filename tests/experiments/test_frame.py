"""The long table: a row for each run and checkpoint, the same bytes for the same runs."""

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from amdp.experiments.execution import execute, lost
from amdp.experiments.frame import LABELS, SUMS, TIMINGS, columns, frame, write_csv, write_parquet
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from experiments.specs import TUNE, small, table


@pytest.fixture(scope="module")
def spec() -> Spec:
    return small()


@pytest.fixture(scope="module")
def store(spec: Spec, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("runs"))
    for one in spec.first():
        store.write(execute(one.settings))
    return store


def test_every_number_is_that_of_its_record(spec: Spec, store: Store) -> None:
    rows = list(csv.DictReader(StringIO(table(spec, store.folder))))
    planned = {one.id: one for one in spec.first()}
    for row in rows:
        curve = store.read(row["id"]).curve
        assert curve
        at = curve.rounds.index(int(row["rounds"]))
        assert float(row["paid"]) == curve.paid[at]
        assert float(row["regret_low"]) == curve.paid[at] - curve.best[at]
        bound = curve.best_bound[at]
        assert bound is not None
        assert float(row["regret_high"]) == curve.paid[at] - bound
        assert int(row["trials"]) == curve.trials[at]
        assert int(row["oracle_calls"]) == curve.oracle_calls[at]
        one = planned[row["id"]]
        assert (row["learner"], row["role"], row["instance"]) == (one.learner, "theory", "tiny")
        assert int(row["seed"]) == one.settings.seed
    assert len(rows) == sum(len(record.curve.rounds) for record in store.records() if record.curve)


def test_rows_are_sorted_and_do_not_repeat(spec: Spec, store: Store) -> None:
    rows = list(csv.DictReader(StringIO(table(spec, store.folder))))
    keys = [(row["game"], row["learner"], int(row["seed"]), int(row["rounds"])) for row in rows]
    assert keys == sorted(set(keys))


def test_the_order_in_which_runs_were_written_leaves_no_trace(spec: Spec, store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path)
    for one in reversed(spec.first()):
        other.write(execute(one.settings))
    assert table(spec, tmp_path) == table(spec, store.folder)


def test_failed_and_missing_runs_have_no_rows(spec: Spec, store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path)
    kept, failed, *_ = spec.first()
    other.write(store.read(kept.id))
    other.write(lost(failed.settings, "WorkerLost", "gone"))
    assert set(frame(spec, other)["id"]) == {kept.id}


def test_nothing_finished_is_an_empty_table_with_all_columns(spec: Spec, tmp_path: Path) -> None:
    made = frame(spec, Store(tmp_path))
    assert list(made.columns) == list(columns())
    assert len(made) == 0


def test_timings_come_only_when_asked_for(spec: Spec, store: Store) -> None:
    assert list(frame(spec, store).columns) == list(LABELS + SUMS)
    timed = frame(spec, store, timings=True)
    assert list(timed.columns) == list(LABELS + SUMS + TIMINGS)
    for clock in ("seconds", "cpu"):
        parts = [timed[f"{clock}_{part}"] for part in ("draw", "weigh", "learn", "arena")]
        np.testing.assert_allclose(sum(parts), timed[f"{clock}_total"])
        assert (timed[f"{clock}_total"] > 0).all()


def test_a_run_of_two_roles_is_listed_in_both(tmp_path: Path) -> None:
    """Tuning may choose what theory says: one record, and one series for each role."""
    spec = small(seeds=2, more=TUNE.replace("[1, 4]", "[1]"))
    store = Store(tmp_path)
    for one in spec.first():
        store.write(execute(one.settings))
    made = frame(spec, store)
    theory, tuned = (made[made["role"] == role].drop(columns="role") for role in ("theory", "tuned"))
    pd.testing.assert_frame_equal(theory.reset_index(drop=True), tuned.reset_index(drop=True))
    assert len(theory)


def test_csv_and_parquet_hold_the_same_numbers(spec: Spec, store: Store, tmp_path: Path) -> None:
    with (tmp_path / "runs.csv").open("w", newline="") as file:
        rows = write_csv(spec, store, file)
    assert write_parquet(spec, store, tmp_path / "runs.parquet") == rows
    with (tmp_path / "runs.csv").open() as file:
        written = [[row[name] for name in SUMS] for row in csv.DictReader(file)]
    stored = pd.read_parquet(tmp_path / "runs.parquet")[list(SUMS)].to_numpy(dtype=np.float64)
    np.testing.assert_array_equal(np.array(written, dtype=np.float64), stored)


def test_what_is_not_proved_is_left_empty(spec: Spec, store: Store, tmp_path: Path) -> None:
    one = spec.first()[0]
    record = store.read(one.id)
    assert record.curve
    unproved = replace(record.curve, best_bound=[None] * len(record.curve.rounds))
    other = Store(tmp_path)
    other.write(replace(record, curve=unproved))
    row = next(csv.DictReader(StringIO(table(spec, tmp_path))))
    assert (row["best_bound"], row["regret_high"]) == ("", "")
    assert frame(spec, other)["regret_high"].isna().all()
