"""The long table: a row for each run and checkpoint, the same bytes for the same runs."""

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from typer.testing import CliRunner

import amdp
from amdp.cli import app
from amdp.experiments.execution import execute, lost
from amdp.experiments.frame import GAME, LABELS, MADE, SUMS, TIMINGS, Layout, frame
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
    assert list(made.columns) == list(Layout.of(spec, Store(tmp_path)).columns)
    assert len(made) == 0


def test_timings_come_only_when_asked_for(spec: Spec, store: Store) -> None:
    plain = list(frame(spec, store).columns)
    assert plain == [*LABELS, *GAME, *Layout.of(spec, store).settings, *MADE, *SUMS]
    timed = frame(spec, store, timings=True)
    assert list(timed.columns) == [*plain, *TIMINGS]
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


VARIED = """
seeds = 2
checkpoints = 3
[[games]]
label = "lock"
instance = { name = "lock", code = [[1, 0]] }
losses = { name = "switching", every = 3 }
episodes = 6
delay = "fixed:2"
[[games]]
label = "unknown"
instance = { name = "tiny", n_states = 2 }
episodes = 6
unknown = true
[[learners]]
name = "ftpl"
settings = { rate = ["adaptive", 0.2] }
[[learners]]
label = "=by lp"
name = "ftpl-shared"
oracle = { name = "lp", gap = 1e-8 }
[[learners]]
name = "uob-reps"
games = ["unknown"]
[tune]
multipliers = [1, 2]
seeds = 1
"""


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Spec, Store]:
    spec, store = Spec.parse(VARIED), Store(tmp_path_factory.mktemp("varied"))
    for one in spec.first():
        store.write(execute(one.settings))
    for one in spec.second(store.final_paid) or []:
        store.write(execute(one.settings))
    return spec, store


def agree(frames: list[pd.DataFrame]) -> None:
    """The same columns, the same texts, and the same numbers to the last bit."""
    first, *others = frames
    for other in others:
        assert list(other.columns) == list(first.columns)
        for column in first.columns:
            ours, theirs = first[column], other[column]
            if pd.api.types.is_numeric_dtype(ours) and not pd.api.types.is_bool_dtype(ours):
                np.testing.assert_array_equal(ours.to_numpy(np.float64), theirs.map(float).to_numpy(np.float64), column)
            else:
                assert [None if pd.isna(cell) else str(cell) for cell in ours] == [
                    None if pd.isna(cell) else str(cell) for cell in theirs
                ], column


@pytest.mark.parametrize("more", [(), ("--tries", "--timings")])
def test_terminal_csv_parquet_and_pandas_agree(
    varied: tuple[Spec, Store], tmp_path: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, store = varied
    (store.folder / "spec.toml").write_text(spec.titled, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    folder, wanted = str(store.folder), {word.removeprefix("--"): True for word in more}

    def written(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["results", folder, *arguments, *more])
        assert result.exit_code == 0, result.output
        return result.stdout

    printed = written()
    assert written("--out", "runs.csv") == ""
    assert Path("runs.csv").read_text(encoding="utf-8") == printed
    assert written("--out", "runs.parquet") == written("--format", "parquet") == ""
    by_name = Path(f"{store.folder.name}.parquet")
    from_csv = pd.read_csv("runs.csv", dtype=str)
    from_csv["learner"] = from_csv["learner"].str.removeprefix("'")  # which keeps spreadsheets from running it
    tables = [frame(spec, store, **wanted), amdp.read(folder, **wanted), amdp.Results.open(folder).frame(**wanted)]
    agree([*tables, pd.read_parquet("runs.parquet"), pd.read_parquet(by_name), from_csv])


def test_tries_come_only_when_asked_for(varied: tuple[Spec, Store]) -> None:
    spec, store = varied
    assert set(frame(spec, store)["role"]) == {"theory", "tuned", "baseline"}
    everything = frame(spec, store, tries=True)
    assert set(everything["role"]) == {"theory", "tuned", "tuning", "baseline"}
    assert len(everything[everything["role"] != "tuning"]) == len(frame(spec, store))


def test_every_setting_is_a_column_with_its_default(varied: tuple[Spec, Store]) -> None:
    made = frame(*varied)
    lock, unknown = made[made["game"] == "lock"], made[made["game"] == "unknown"]
    assert set(lock["instance.code"]) == {"[1, 0]"}
    assert set(lock["instance.jam"]) == {0.1}  # the default
    assert (set(lock["losses.every"]), set(lock["losses.tables"])) == ({3}, {10})
    assert (set(unknown["instance.n_states"]), set(unknown["instance.n_steps"])) == ({2}, {3})
    assert unknown["losses.every"].isna().all()
    assert set(made["comparator"]) == {"dp"}
    assert set(made["feedback"]) == {"bandit"}
    assert set(unknown["radius"]) == {"paper", "jin-2020"}  # each learner's own
    assert lock["radius"].isna().all()
    assert set(lock["total_delay"]) == {4 * 2 + 1}
    by_lp = made[made["learner"] == "=by lp"]
    assert (set(by_lp["oracle"]), set(by_lp["oracle.gap"])) == ({"lp(gap=1e-08)"}, {1e-8})
    assert set(by_lp["oracle.threads"]) == {1}
    assert set(made[made["recipe"] == "ftpl"]["oracle"]) == {"dp"}
    assert set(made[made["recipe"] == "uob-reps"]["projection"]) == {"newton"}
    assert set(made[made["recipe"] == "ftpl"]["settings.rate"]) == {"adaptive", "0.2"}
    fixed = made[made["settings.rate"] == "0.2"]
    np.testing.assert_allclose(fixed["rate"], 0.2 * fixed["multiplier"])  # what was played with
    assert set(made[made["recipe"] == "ftpl"]["settings.perturbation"]) == {"laplace"}


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


def test_options_of_a_solver_are_a_cell_and_several_values_are_several_runs(tmp_path: Path) -> None:
    text = """
        seeds = 1
        baseline = false
        games = [{ instance = "tiny", losses = "bernoulli", episodes = 3 }]
        learners = [{ name = "ftpl-shared", oracle = { name = "lp", options = { presolve = ["on", "off"] } } }]
    """
    spec, store = Spec.parse(text, "options"), Store(tmp_path)
    for one in spec.first():
        store.write(execute(one.settings))
    assert set(frame(spec, store)["oracle.options"]) == {"{'presolve': 'on'}", "{'presolve': 'off'}"}
