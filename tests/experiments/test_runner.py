"""The runner plays what is missing, once, whatever happens to its workers; the results are always the same."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from amdp.errors import InvalidInput
from amdp.experiments import engines, runner
from amdp.experiments.engines import ONE_THREAD, Engine, ExternalExecutor, LocalPool, Playing
from amdp.experiments.execution import execute
from amdp.experiments.progress import Row, Tally, Watcher, sentence
from amdp.experiments.progress import table as progress_table
from amdp.experiments.record import Record
from amdp.experiments.runner import ATTEMPTS, Outcome, Shard, run
from amdp.experiments.settings import RunSettings
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from experiments.specs import TUNE, small, table, threads, workers_of


class Ears(Watcher):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.tally = Tally()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def show(self, tally: Tally) -> None:
        self.tally = tally


def played(spec: Spec, folder: Path, engine: Engine | None = None, **options: Any) -> Outcome:
    """A call of the runner; in this process if no engine is given."""
    with Store(folder) as store:
        if engine:
            return run(spec, store, engine, **options)
        with threads() as here:
            return run(spec, store, here, **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The results of `small()`, each run executed by a plain loop, in the order of the plan."""
    folder = tmp_path_factory.mktemp("plain")
    with Store(folder) as store:
        for one in small().first():
            store.write(execute(one.settings))
    return table(small(), folder)


@pytest.fixture(scope="module")
def undisturbed_record() -> Record:
    return execute(small().first()[0].settings)


def test_the_runner_changes_nothing(tmp_path: Path, undisturbed: str) -> None:
    assert played(small(), tmp_path) == Outcome(found=0, played=6)
    assert table(small(), tmp_path) == undisturbed
    assert undisturbed.count("\n") == 1 + 6 * 5


def test_order_and_threads_do_not_matter(tmp_path: Path, undisturbed: str) -> None:
    backwards = [Shard(i, 4) for i in (3, 1, 4, 2)]
    with threads(3) as engine:
        assert sum(played(small(), tmp_path, engine, shard=shard).played for shard in backwards) == 6
    assert table(small(), tmp_path) == undisturbed


def test_a_second_call_finds_everything(tmp_path: Path) -> None:
    played(small(), tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    assert played(small(), tmp_path) == Outcome(found=6, played=0)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == before


def test_changed_settings_make_new_runs_and_keep_the_old_ones(tmp_path: Path) -> None:
    played(small(), tmp_path)
    assert played(small(seeds=4), tmp_path) == Outcome(found=6, played=2)
    assert played(small(episodes=13), tmp_path) == Outcome(found=0, played=6)
    assert played(small(), tmp_path) == Outcome(found=6, played=0)
    assert (tmp_path / "spec.toml").read_text() == small().text
    assert len(list(Store(tmp_path).ids())) == 14


def test_a_tuned_run_that_is_the_one_of_theory_was_not_found_but_made(tmp_path: Path) -> None:
    spec = small(more="\n[tune]\nmultipliers = [1]\nseeds = 1\n")  # tuning cannot but choose theory's multiplier
    assert played(spec, tmp_path) == Outcome(found=0, played=6 + 2)
    assert played(spec, tmp_path) == Outcome(found=6 + 2, played=0)


def test_an_engine_that_refuses_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    class Refusing(LocalPool):
        def __enter__(self) -> "Refusing":
            raise InvalidInput("no workers today")

    with pytest.raises(InvalidInput, match="no workers today"), Store(tmp_path / "out") as store:
        run(small(), store, Refusing(1))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"cut", b"{}"])
def test_a_damaged_file_is_named_played_again_and_replaced(tmp_path: Path, undisturbed: str, content: bytes) -> None:
    played(small(), tmp_path)
    damaged = Store(tmp_path).file(small().first()[3].id)
    damaged.write_bytes(content or damaged.read_bytes()[:-7])
    ears = Ears()
    assert played(small(), tmp_path, watcher=ears) == Outcome(found=5, played=1)
    assert [str(damaged) in note for note in ears.notes] == [True]
    assert table(small(), tmp_path) == undisturbed


def test_runs_of_another_version_are_told_once(tmp_path: Path) -> None:
    played(small(), tmp_path)
    store = Store(tmp_path)
    for record in list(store.records())[:3]:
        store.write(replace(record, made={**record.made, "versions": {"amdp": "0.0.9"}}))
    ears = Ears()
    played(small(), tmp_path, watcher=ears)
    assert len(ears.notes) == 1
    assert "amdp 0.0.9" in ears.notes[0]


def test_runs_of_other_packages_or_another_revision_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(small(), tmp_path)
    store, ears = Store(tmp_path), Ears()
    for record in list(store.records())[:3]:
        older = {**record.made["versions"], "numpy": "1.0"}
        store.write(replace(record, made={**record.made, "versions": older, "git": "0123456789ab"}))
    monkeypatch.setattr(runner, "git_revision", lambda: "ba9876543210")
    played(small(), tmp_path, watcher=ears)
    told = [note for note in ears.notes if "0123456789ab" in note or "numpy" in note]
    assert [note.partition(",")[0] for note in told] == [
        "some runs are of numpy 1.0",
        "some runs are of revision 0123456789ab",
    ]


def test_another_spec_in_the_folder_is_told(tmp_path: Path) -> None:
    ears = Ears()
    played(small(), tmp_path, watcher=ears)
    played(small(seeds=4), tmp_path, watcher=ears)
    assert not ears.notes
    played(small(episodes=13), tmp_path, watcher=ears)
    assert ears.notes == ["another spec was here: 8 stored runs are not of this one; they are kept"]
    played(small(episodes=13), tmp_path, watcher=ears)
    assert len(ears.notes) == 1


def test_tuned_runs_are_not_those_of_another_spec(tmp_path: Path) -> None:
    ears = Ears()
    played(small(more=TUNE), tmp_path)
    played(replace(small(more=TUNE), text=small(more=TUNE).text + "\n"), tmp_path, watcher=ears)
    assert not [note for note in ears.notes if "another spec" in note]


def test_tries_without_news_are_told_and_tie(tmp_path: Path) -> None:
    """Nothing arrives within a try: all multipliers play alike."""
    late = small(seeds=1, more=TUNE + "rounds = 5\n").text.replace("episodes = 12", 'episodes = 12\ndelay = "fixed:6"')
    ears = Ears()
    played(Spec.parse(late), tmp_path, watcher=ears)
    assert sum("'small' come after the end of a try" in note for note in ears.notes) == 1
    tie = "a tie: all candidates did alike in all tries; the nearest to theory is taken"
    assert f"tuning of o-reps in small: {tie}" in ears.notes


def test_limits_of_seconds_are_noted_and_recorded(tmp_path: Path) -> None:
    text = small(seeds=1).text.replace(
        'name = "ftpl-shared"', 'name = "ftpl-shared"\noracle = { name = "lp", seconds = 60 }'
    )
    ears = Ears()
    played(Spec.parse(text), tmp_path, watcher=ears)
    assert sum("limit of seconds" in note for note in ears.notes) == 1
    marks = {record.settings.learner.name: record.made["repeatable"] for record in Store(tmp_path).records()}
    assert marks == {"ftpl-shared": False, "o-reps": True}


def test_a_picture_of_many_rows_looks_at_each_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Row] = []
    including = Row.including

    def counted(row: Row, run: Playing) -> Row:
        looks.append(row)
        return including(row, run)

    monkeypatch.setattr(Row, "including", counted)
    tally = Tally([Row("game", str(i), Role.THEORY, all=2, done=1, timed=i % 2, seconds=1.0) for i in range(300)])
    tally.playing = [Playing(row=i, rounds=1, total=2, seconds=1.0) for i in range(300)]
    progress_table(tally, 30)
    assert len(looks) <= 4 * 300


def test_a_defect_of_a_learner_is_a_failure_not_a_pairing_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defective(*_: object, **__: object) -> None:
        raise TypeError("a defect")

    monkeypatch.setattr("amdp.algorithms.occupancy.recipes.o_reps", defective)
    spec = small(seeds=1)
    assert not spec.skipped
    outcome = played(spec, tmp_path)
    (failed,) = outcome.failed
    failure = Store(tmp_path).read(failed).failure
    assert failure
    assert (failure.kind, failure.message) == ("TypeError", "a defect")
    assert "Traceback" in failure.trace


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A world in a file: without the file its runs fail."""
    file = tmp_path / "world.npz"
    costs = np.array([[[0.2, 0.8], [0.6, 0.1]]] * 2)
    np.savez(file, p=np.full((2, 2, 2, 2), 0.5), initial=0, costs=costs)
    return file


def test_a_run_that_raises_is_recorded_and_the_others_go_on(tmp_path: Path, world: Path) -> None:
    more = f'[[games]]\ninstance = "{world}"\nepisodes = 5\nlabel = "doomed"\n'
    spec, ears = small(more=more), Ears()
    hidden = world.rename(world.with_name("hidden"))
    outcome = played(spec, tmp_path / "out", watcher=ears)
    doomed = {one.id for one in spec.first() if one.game == "doomed"}
    assert set(outcome.failed) == doomed
    assert outcome.played == 12
    assert sum("failed: " in note and "doomed" in note for note in ears.notes) == len(doomed) == 6
    failure = Store(tmp_path / "out").read(outcome.failed[0]).failure
    assert failure
    assert "world.npz" in failure.message

    hidden.rename(world)
    again = played(spec, tmp_path / "out")
    assert (again.found, again.played, set(again.failed)) == (12, 0, doomed)
    healed = played(spec, tmp_path / "out", retry_failed=True)
    assert (healed.found, healed.played, healed.failed) == (6, 6, [])


def test_an_unexpected_error_leaves_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(settings: RunSettings) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("amdp.experiments.execution.arrange", broken)
    failure = execute(small().first()[0].settings).failure
    assert failure
    assert (failure.kind, failure.message) == ("ZeroDivisionError", "by nothing")
    assert "in broken" in failure.trace


class Deadly(Executor):
    """Plays, but some runs end their worker a few times."""

    def __init__(self, deaths: dict[str, int]) -> None:
        self.deaths, self.most = dict(deaths), 0

    def submit(self, work: Any, /, *given: Any, **others: Any) -> Future[Any]:
        (settings,) = given
        future: Future[Any] = Future()
        if self.deaths.get(settings.id, 0):
            self.deaths[settings.id] -= 1
            future.set_exception(BrokenExecutor("killed"))
        else:
            future.set_result(work(settings))
        return future


def test_a_lost_worker_costs_no_run(tmp_path: Path, undisturbed: str) -> None:
    ids = [one.id for one in small().first()]
    engine = ExternalExecutor(Deadly(dict.fromkeys(ids, ATTEMPTS - 1)), 3)
    assert played(small(), tmp_path, engine) == Outcome(found=0, played=6)
    assert table(small(), tmp_path) == undisturbed


def test_a_run_that_ends_its_workers_again_and_again_is_given_up(tmp_path: Path) -> None:
    victim = small().first()[2].id
    outcome = played(small(), tmp_path, ExternalExecutor(Deadly({victim: ATTEMPTS}), 3))
    assert (outcome.played, outcome.failed) == (6, [victim])
    failure = Store(tmp_path).read(victim).failure
    assert failure
    assert failure.kind == "WorkerLost"
    assert played(small(), tmp_path, retry_failed=True).failed == []


def test_what_an_engine_raises_is_the_failure_of_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(settings: RunSettings, tick: object = None) -> Record:
        raise SystemExit("a solver called exit")

    class Here(Deadly):
        def submit(self, work: Any, /, *given: Any, **others: Any) -> Future[Any]:
            future: Future[Any] = Future()
            try:
                future.set_result(work(*given))
            except BaseException as problem:
                future.set_exception(problem)
            return future

    monkeypatch.setattr(engines, "execute", leave)
    outcome = played(small(), tmp_path, ExternalExecutor(Here({}), 1))
    assert len(outcome.failed) == 6
    failure = Store(tmp_path).read(outcome.failed[0]).failure
    assert failure
    assert (failure.kind, failure.message) == ("SystemExit", "a solver called exit")


def test_a_killed_worker_takes_no_other_run_with_it(tmp_path: Path) -> None:
    """One of two workers is killed while it plays; the other one's runs are played once all the same.

    The games are long enough to be looked at while they are played.
    """
    spec, engine, over = small(seeds=2, episodes=20_000), LocalPool(2), Event()
    killed: list[int] = []
    shares: list[float] = []

    def kill() -> None:
        while not over.wait(0.02):
            playing = engine.playing()
            shares.extend(one.share for one in playing)
            if len(playing) == 2 and not killed:
                victim = workers_of(os.getpid())[-1]
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

    killer = Thread(target=kill)
    killer.start()
    outcome = played(spec, tmp_path, engine)
    over.set()
    killer.join()
    assert killed
    assert any(0 < share < 1 for share in shares)
    assert outcome == Outcome(found=0, played=4)


def test_workers_have_one_thread_and_the_environment_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with LocalPool(1) as engine:
        engine.submit(small().first()[0].settings, 0).result()
        (worker,) = workers_of(os.getpid())
        given = dict(
            entry.split("=", 1) for entry in Path(f"/proc/{worker}/environ").read_text().split("\0") if "=" in entry
        )
        assert {name: given.get(name) for name in ONE_THREAD} == ONE_THREAD
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
    assert not workers_of(os.getpid())


def test_workers_that_cannot_be_made_give_the_environment_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(engines, "_Worker", refused)
    before = dict(os.environ)
    with pytest.raises(OSError, match="no more processes"), LocalPool(1):
        pass
    assert dict(os.environ) == before


def test_a_run_that_cannot_be_submitted_is_not_claimed(tmp_path: Path) -> None:
    held: set[str] = set()

    class Claims(Store):
        def claim(self, run: str) -> bool:
            held.add(run)
            return super().claim(run)

        def release(self, run: str) -> None:
            held.discard(run)
            super().release(run)

    class Broken(Executor):
        def submit(self, *task: Any, **more: Any) -> Any:
            raise BrokenExecutor("all workers are gone")

    with Claims(tmp_path) as store, pytest.raises(InvalidInput, match="only its maker can renew it"):
        run(small(), store, ExternalExecutor(Broken(), 1))
    assert not held


def test_a_tuned_run_that_is_the_one_of_theory_is_shown_once(tmp_path: Path) -> None:
    ears = Ears()
    played(small(more="\n[tune]\nmultipliers = [1]\nseeds = 1\n"), tmp_path, watcher=ears)
    assert (ears.tally.all, ears.tally.done) == (6 + 2, 6 + 2)


def test_speed_and_time_left_count_what_is_under_way(
    undisturbed_record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of 12 rounds and 2 seconds are done, one is half through, one has not begun: all on one worker."""
    planned = small(seeds=4).first()[::2]
    record = replace(undisturbed_record, made={**undisturbed_record.made, "seconds": 2.0})
    tally = Tally()
    monkeypatch.setattr(Tally, "elapsed", 5.0)
    tally.expect(planned)
    for one in planned[:2]:
        tally.count(one, record, here=True)
    tally.playing = [Playing(row=0, rounds=6, total=12, seconds=1.0)]
    assert tally.rows_now[0].speed == pytest.approx(6.0)
    assert tally.speed == pytest.approx(6.0)
    assert tally.lefts()[0] == tally.all_left == pytest.approx(3.0)
    assert sentence(tally) == "2 of 4 runs, 6 rounds a second, 0:00:03 left"
    assert (tally.rows[0].best, tally.rows[0].worst) == (record.final_regret, record.final_regret)


def test_a_row_that_has_not_begun_is_guessed_from_the_others(
    undisturbed_record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other, *_ = small(seeds=2).first()
    tally = Tally()
    monkeypatch.setattr(Tally, "elapsed", 2.0)
    tally.expect([first, other])
    assert tally.all_left is None
    tally.count(first, replace(undisturbed_record, made={**undisturbed_record.made, "seconds": 2.0}), here=True)
    assert tally.lefts()[1] == pytest.approx(2.0)


def test_a_terminal_too_low_for_all_rows_shows_those_that_are_not_done() -> None:
    tally = Tally([Row("game", str(i), Role.THEORY, all=1, done=int(i < 8)) for i in range(10)])
    drawn = Console(width=80, file=StringIO(), record=True)
    drawn.print(progress_table(tally, 3))
    text = drawn.export_text()
    assert "and 7 more" in text
    assert all(f" {i} " in text for i in (0, 8, 9))


UNGUARDED = """
import sys
import amdp
amdp.compare(games=["tiny"], learners=["uniform"], seeds=1, rounds=2, out=sys.argv[1], workers=1)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    command = [sys.executable, str(script), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]
    assert not list(Store(tmp_path / "out").ids())
    assert done.stderr.count("Traceback") == 1  # the workers go silently


def test_asked_to_stop_it_keeps_what_is_finished(tmp_path: Path, undisturbed: str) -> None:
    stop = Event()

    class Stopper(Ears):
        def show(self, tally: Tally) -> None:
            if tally.done >= 2:
                stop.set()

    with threads() as engine:
        outcome = played(small(), tmp_path, engine, watcher=Stopper(), stop=stop)
    assert outcome.interrupted
    assert outcome.missing == 6 - outcome.played
    assert len(list(Store(tmp_path).records())) == outcome.played >= 2
    assert played(small(), tmp_path) == Outcome(found=outcome.played, played=6 - outcome.played)
    assert table(small(), tmp_path) == undisturbed


def test_only_runs_under_way_are_held(tmp_path: Path) -> None:
    alive = 0
    most = 0

    class Counting(Executor):
        def submit(self, work: Any, /, *given: Any, **others: Any) -> Future[Any]:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            future = Handed()
            future.set_result(work(*given))
            return future

    class Handed(Future[Any]):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    played(small(seeds=20, episodes=2), tmp_path, ExternalExecutor(Counting(), 3))
    assert most <= 2 * 3
    assert alive == 0


def test_shards_are_disjoint_complete_and_even() -> None:
    planned = small(seeds=25).first()
    shards = [Shard(i, 4).take(planned) for i in range(1, 5)]
    assert sorted(one.id for shard in shards for one in shard) == sorted(one.id for one in planned)
    assert {len(shard) for shard in shards} == {12, 13}
    assert all({one.learner for one in shard} == {"ftpl-shared", "o-reps"} for shard in shards)
    assert Shard().take(planned) == planned


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "a/b", "1/2/3", "-1/2"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="give i/n"):
        Shard.parse(text)


def test_tuned_runs_follow_their_tuning(tmp_path: Path) -> None:
    spec = small(more=TUNE)
    outcome = played(spec, tmp_path)
    tuned = spec.second(Store(tmp_path).final_paid)
    assert tuned
    assert {one.role for one in tuned} == {Role.TUNED}
    distinct = {one.id for one in [*spec.first(), *tuned]}
    assert {record.id for record in Store(tmp_path).records()} == distinct
    assert outcome.played == len(distinct)


def test_a_shard_says_what_of_others_it_waits_for_and_goes_on_when_called_again(tmp_path: Path) -> None:
    spec = small(more=TUNE)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    first = played(spec, parts, shard=Shard(1, 2))
    assert first.tuning > 0
    assert not first.complete
    tuning = [one for one in spec.first() if one.role is Role.TUNING]
    assert first.tuning == sum(Store(parts).find(one.id) is None for one in tuning)
    second = played(spec, parts, shard=Shard(2, 2))
    assert second.complete
    assert played(spec, parts, shard=Shard(1, 2)).complete
    played(spec, whole)
    assert table(spec, parts) == table(spec, whole)


def test_a_full_disk_ends_the_call_and_keeps_what_was_written_in_the_bytes_of_any_process(
    tmp_path: Path, undisturbed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of the runs come from a worker, the others from this process, and all are those of this process alone."""

    def limited(store: Store, record: Record, write: Any = Store.write) -> None:
        if len(list(store.ids())) == 2:
            raise InvalidInput("the disk is full")
        write(store, record)

    monkeypatch.setattr(Store, "write", limited)
    with pytest.raises(InvalidInput, match="full"):
        played(small(), tmp_path, LocalPool(1))
    monkeypatch.undo()
    assert not workers_of(os.getpid())
    assert played(small(), tmp_path) == Outcome(found=2, played=4)
    assert table(small(), tmp_path) == undisturbed


def test_the_record_says_where_its_numbers_come_from(tmp_path: Path) -> None:
    played(small(episodes=50), tmp_path)
    for record in Store(tmp_path).records():
        curve, made = record.curve, record.made
        assert curve
        assert made["entropy"] == record.settings.seed
        assert set(made["versions"]) == {"amdp", "numpy", "scipy", "numba", "highspy", "cvxpy", "pulp"}
        for clock, whole in ((curve.spent, made["seconds"]), (curve.cpu, made["cpu_seconds"])):
            assert 0 < sum(part[-1] for part in clock.values()) < whole + 0.01
        planned = curve.trials[-1] + 50 if record.settings.learner.name == "ftpl-shared" else 0
        assert curve.oracle_calls[-1] == planned
        assert curve.rebuilds[-1] == 0
        assert record.used["rounds"] == 50


def two_runners(text: str, folder: Path) -> "Iterator[subprocess.Popen[str]]":
    code = (
        "import sys\n"
        "from amdp.experiments.engines import LocalPool\n"
        "from amdp.experiments.runner import run\n"
        "from amdp.experiments.spec import Spec\n"
        "from amdp.experiments.storage import Store\n"
        "outcome = run(Spec.parse(sys.argv[1]), Store(sys.argv[2]), LocalPool(1))\n"
        "print(outcome.found, outcome.played, outcome.missing)\n"
    )
    for _ in range(2):
        yield subprocess.Popen([sys.executable, "-c", code, text, str(folder)], stdout=subprocess.PIPE, text=True)


def test_two_runners_on_one_folder_lose_and_double_nothing(tmp_path: Path) -> None:
    spec = small(seeds=12, episodes=60)
    answers = [list(map(int, runner.communicate()[0].split())) for runner in list(two_runners(spec.text, tmp_path))]
    for found, mine, missing in answers:
        assert (found + mine, missing) == (24, 0)
    assert sum(mine for _, mine, _ in answers) == 24
    assert all(mine > 0 for _, mine, _ in answers)
    assert len(list(Store(tmp_path).records())) == 24
