"""A long run that was killed goes on from where it was, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amdp.experiments import unfinished
from amdp.experiments.execution import execute
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.experiments.storage import Store

ROUNDS = 2000


def settings_of(learner: str, **game: Any) -> RunSettings:
    return RunSettings(GameSettings(Named("tiny"), Named("bernoulli"), ROUNDS, **game), LearnerSettings(learner), 3)


def killed_at(rounds: int) -> Any:
    def tick(played: int, total: int) -> None:
        if played >= rounds:
            raise KeyboardInterrupt

    return tick


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is written after every block."""
    monkeypatch.setattr(unfinished.UnfinishedRun.__init__, "__defaults__", (0.0,))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("delay", ["none", "geometric:30"])
@pytest.mark.parametrize("learner", ["ftpl-shared", "soft-leader"])
def test_a_killed_run_goes_on_from_its_last_block(learner: str, delay: str, tmp_path: Path) -> None:
    settings, file = settings_of(learner, delay=delay), tmp_path / "run.npz"
    whole = execute(settings).curve
    for rounds in (500, 1500):
        with pytest.raises(KeyboardInterrupt):
            execute(settings, killed_at(rounds), file)
    assert file.exists()
    seen: list[int] = []
    again = execute(settings, lambda played, total: seen.append(played), file).curve
    assert seen[0] > 1000, "it did not begin anew"
    assert whole is not None
    assert again is not None
    for name in ("rounds", "paid", "best", "trials", "oracle_calls", "bound"):
        assert getattr(again, name) == getattr(whole, name), name


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_a_state_that_cannot_be_trusted_is_not_taken_up(damage: str, tmp_path: Path) -> None:
    settings, file = settings_of("ftpl-shared"), tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        execute(settings, killed_at(800), file)
    if damage == "other":
        with np.load(file) as stored:
            np.savez(file, **{name: stored[name] for name in stored.files} | {"origin": np.array("another")})
    else:
        file.write_bytes(b"" if damage == "empty" else file.read_bytes()[:-40])
    seen: list[int] = []
    assert execute(settings, lambda played, total: seen.append(played), file).curve is not None
    assert seen[0] <= 256


def test_a_short_run_leaves_no_state(tmp_path: Path) -> None:
    execute(settings_of("ftpl-shared"), unfinished=tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


def test_a_record_takes_the_place_of_its_state(tmp_path: Path) -> None:
    store, record = Store(tmp_path), execute(settings_of("ftpl-shared"))
    store.unfinished(record.id).parent.mkdir(parents=True)
    store.unfinished(record.id).write_bytes(b"state")
    store.write(record)
    assert [file.suffix for file in store.unfinished(record.id).parent.iterdir()] == [".json"]


@pytest.mark.usefixtures("eager")
def test_a_state_is_that_of_its_own_run_and_its_own_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.npz"
    for other in (settings_of("ftpl"), settings_of("ftpl-shared")):
        with pytest.raises(KeyboardInterrupt):
            execute(settings_of("ftpl-shared"), killed_at(800), file)
        if other == settings_of("ftpl-shared"):
            monkeypatch.setattr("amdp.experiments.execution.sources", lambda: "of another day")
        seen: list[int] = []
        execute(other, lambda played, total: seen.append(played), file)  # noqa: B023
        assert seen[0] <= 256


@pytest.mark.usefixtures("eager")
def test_a_state_without_all_its_parts_is_not_taken_up(tmp_path: Path) -> None:
    settings, file = settings_of("soft-leader"), tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        execute(settings, killed_at(800), file)
    with np.load(file) as stored:
        some: Any = {name: stored[name] for name in stored.files if name != "measurement: losses"}
    np.savez(file, **some)
    again, whole = execute(settings, None, file).curve, execute(settings).curve
    assert again is not None
    assert whole is not None
    assert again.paid == whole.paid


@pytest.mark.usefixtures("eager")
def test_a_state_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert execute(settings_of("ftpl-shared"), None, tmp_path / "file" / "run.npz").failure is None


def test_states_are_no_broken_records_and_go_when_the_record_is_there(tmp_path: Path) -> None:
    record, store = execute(settings_of("ftpl-shared")), Store(tmp_path)
    store.write(record)
    store.unfinished(record.id).write_bytes(b"left by a process that was killed")
    assert list(store.ids()) == [record.id]
    assert not store.broken
    store.prepare("")
    assert not store.unfinished(record.id).exists()
