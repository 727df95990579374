"""One run is one file, whole or not at all; claims keep runners apart and end with their holder."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amdp.errors import InvalidInput
from amdp.experiments.execution import execute, lost
from amdp.experiments.record import Record
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.experiments.storage import Store

GAME = GameSettings(Named("tiny"), episodes=8)
SETTINGS = RunSettings(GAME, LearnerSettings("ftpl-shared"), seed=1)


@pytest.fixture(scope="module")
def record() -> Record:
    return execute(SETTINGS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "out") as store:
        store.prepare("")
        yield store


def files(store: Store) -> list[str]:
    return sorted(file.name for file in store.folder.rglob("*") if file.is_file())


def test_what_is_written_is_read(store: Store, record: Record) -> None:
    store.write(record)
    assert store.read(record.id) == record
    assert list(store.records()) == [record]
    assert record.curve
    assert store.final_paid(record.id) == record.final_paid == record.curve.paid[-1]
    assert not store.broken
    assert files(store) == sorted(["claims", "spec.toml", f"{record.id}.json"])


def test_a_file_is_plain_json(store: Store, record: Record) -> None:
    store.write(record)
    written = json.loads(store.file(record.id).read_text())
    assert written["id"] == record.id
    assert written["curve"]["paid"][-1] - written["curve"]["best"][-1] == record.final_regret


def test_a_failure_counts_as_infinite_loss(store: Store) -> None:
    store.write(lost(SETTINGS, "WorkerLost", "gone"))
    assert store.final_paid(SETTINGS.id) == float("inf")
    assert store.final_paid("0" * 32) is None


def test_no_cut_and_no_flipped_bit_is_trusted(record: Record) -> None:
    whole = record.to_bytes()
    assert Record.from_bytes(whole) == record
    for length in [*range(0, len(whole), 97), len(whole) - 1, len(whole) - 2]:
        with pytest.raises(InvalidInput, match=r"damaged|not the record"):
            Record.from_bytes(whole[:length])
    for place in range(0, len(whole), 61):
        flipped = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        with pytest.raises(InvalidInput, match=r"damaged|not the record"):
            Record.from_bytes(flipped)
    with pytest.raises(InvalidInput, match="damaged"):
        Record.from_bytes(whole + b" ")


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00\xff", b'{"sha256":"', b"[1, 2]\n"])
def test_a_foreign_file_is_named_and_skipped(store: Store, record: Record, content: bytes) -> None:
    store.write(record)
    file = store.file("ab" * 16)
    file.parent.mkdir()
    file.write_bytes(content)
    assert list(store.records()) == [record]
    assert str(file) in store.broken[file]
    with pytest.raises(InvalidInput, match="abab"):
        store.read("ab" * 16)


def test_a_sound_record_under_another_name_is_not_taken_for_it(store: Store, record: Record) -> None:
    store.write(record)
    file = store.file("ab" * 16)
    file.parent.mkdir()
    file.write_bytes(record.to_bytes())
    assert store.find("ab" * 16) is None
    assert f"another run, {record.id}" in store.broken[file]


def test_a_file_with_a_strange_name_is_named(store: Store, record: Record) -> None:
    store.write(record)
    strange = store.file(record.id).with_name("notes.txt")
    strange.write_text("hello")
    assert list(store.ids()) == [record.id]
    assert strange in store.broken


def test_a_record_replaces_a_broken_one(store: Store, record: Record) -> None:
    store.write(record)
    store.file(record.id).write_bytes(b"cut")
    assert store.find(record.id) is None
    store.write(record)
    assert store.find(record.id) == record
    assert not store.broken


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_is_an_error_of_one_line_and_keeps_what_was_there(
    store: Store, record: Record, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    store.write(record)
    before = files(store)

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, function, full)
    other = replace(record, settings=replace(SETTINGS, seed=2))
    with pytest.raises(InvalidInput, match=r"cannot be written: No space left on device; what was written before") as e:
        store.write(other)
    assert "\n" not in str(e.value)
    with pytest.raises(InvalidInput, match="cannot be written"):
        store.write(replace(record, made={}))
    assert files(store) == before
    assert store.read(record.id) == record


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 kB; where mounting is not permitted the test is skipped."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no permission to mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def wrote(store: Store, record: Record) -> str:
    store.write(record)
    return record.id


def test_a_disk_that_really_fills_up_keeps_all_whole_runs(little_disk: Path, record: Record) -> None:
    with Store(little_disk) as store:
        store.prepare("")
        written: list[str] = []
        with pytest.raises(InvalidInput, match="No space left on device"):
            written.extend(wrote(store, replace(record, settings=replace(SETTINGS, seed=seed))) for seed in range(1000))
        assert written
        assert [one.id for one in store.records()] == sorted(written)
        assert not list(little_disk.rglob("*.part"))
        assert not store.broken


def test_a_file_system_that_became_read_only_is_an_error_of_one_line(little_disk: Path, record: Record) -> None:
    with Store(little_disk) as store:
        store.prepare("")
        store.write(record)
    subprocess.run(["mount", "-o", "remount,ro", str(little_disk)], check=True)
    with pytest.raises(InvalidInput, match="Read-only file system"):
        Store(little_disk).write(replace(record, settings=replace(SETTINGS, seed=2)))
    with pytest.raises(InvalidInput, match="claims cannot be written: Read-only file system"):
        Store(little_disk).prepare("")
    assert list(Store(little_disk).records()) == [record]


def test_a_file_in_place_of_the_folder_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InvalidInput, match=r"spec\.toml cannot be written"):
        Store(tmp_path / "out").prepare("")


HOLDER = """
import sys
from amdp.experiments.storage import Store
store = Store(sys.argv[1])
print(store.claim(sys.argv[2]), flush=True)
sys.stdin.read()
"""


def holder(store: Store, run: str) -> "subprocess.Popen[str]":
    """Another process that claims a run and waits."""
    command = [sys.executable, "-c", HOLDER, str(store.folder), run]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_claim_is_exclusive_and_ends_with_its_holder(store: Store) -> None:
    mine, other = "12" * 16, "34" * 16
    assert store.claim(mine)
    assert store.claim(mine)  # it is ours already
    with holder(store, mine) as refused, holder(store, other) as granted:
        assert refused.stdout
        assert granted.stdout
        assert refused.stdout.readline() == "False\n"
        assert granted.stdout.readline() == "True\n"
        assert not store.claim(other)
        granted.kill()
        granted.wait()
        assert store.claim(other)
        refused.kill()


def test_half_written_files_are_cleared_away_unless_their_run_is_claimed(store: Store, record: Record) -> None:
    store.write(record)
    dead, alive = (store.file(run).with_name(f"{run}.x.part") for run in ("12" * 16, "34" * 16))
    for file in (dead, alive):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(record.to_bytes()[:50])
    with holder(store, "34" * 16) as claimed:
        assert claimed.stdout
        claimed.stdout.readline()
        with Store(store.folder) as next_runner:
            next_runner.prepare("")
        claimed.kill()
    assert not dead.exists()
    assert alive.exists()
    assert list(store.records()) == [record]
