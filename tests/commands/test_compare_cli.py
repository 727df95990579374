"""`amdp compare` and `amdp results`, as a person and as a program would use them."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from experiments.specs import TUNE, Here, small, table, toml
from typer.testing import CliRunner

from amdp.cli import app
from amdp.experiments.execution import execute, lost
from amdp.experiments.storage import Store

runner = CliRunner()
compare_command = import_module("amdp.commands.compare")
AMDP = [sys.executable, "-m", "amdp"]
PATIENCE = 120.0


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "spec.toml"
    file.write_text(toml(seeds=2))
    return file


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are played in this process: workers are for the tests in a terminal, and for those of the runner."""
    monkeypatch.setattr(compare_command, "LocalPool", Here)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all runs of `small(seeds=2)`."""
    folder = tmp_path_factory.mktemp("finished")
    fill(folder)
    return folder


def fill(folder: Path) -> None:
    """By hand."""
    with Store(folder) as store:
        store.prepare(toml(seeds=2))
        for one in small(seeds=2).first():
            store.write(execute(one.settings))


def asked(*words: object) -> Any:
    return runner.invoke(app, [str(word) for word in words])


def refused(*words: object) -> str:
    """The message of a call that ends in a clear error of one line."""
    done = asked(*words)
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    message: str = done.stderr
    return message


@pytest.mark.usefixtures("few_figures")
def test_the_end_is_a_table_and_the_path_of_a_page(finished: Path) -> None:
    done = asked("compare", finished / "spec.toml", "--out", finished)
    assert done.exit_code == 0
    assert "4 of 4 runs" in done.stderr
    assert "ftpl-shared" in done.stdout
    assert "o-reps" in done.stdout
    page = finished / "report" / "index.html"
    assert f"report: {page}" in done.stdout
    assert page.exists()


def test_the_table_has_the_means_of_the_runs(finished: Path) -> None:
    done = asked("compare", finished / "spec.toml", "--out", finished, "--json", "--no-report", "--quiet")
    assert done.stderr == ""
    summary = json.loads(done.stdout)
    assert (summary["runs"], summary["found"], summary["played"], summary["failed"]) == (4, 4, 0, [])
    assert summary["report"] is None
    finals: dict[str, list[float]] = {}
    for record in Store(finished).records():
        finals.setdefault(record.settings.learner.name, []).append(record.final_regret)
    for row in summary["regret"]:
        assert row["mean"] == pytest.approx(np.mean(finals[row["learner"]]))
        assert row["low"] <= row["mean"] <= row["high"]
        assert (row["game"], row["role"], row["runs"]) == ("small", "theory", 2)
        assert "share_of_uniform" not in row  # nothing to compare with


def test_commands_on_stored_runs_load_no_compiler() -> None:
    code = "import amdp.commands.compare, amdp.commands.report, amdp.commands.results, sys"
    assert subprocess.run([sys.executable, "-c", f"{code}; sys.exit('numba' in sys.modules)"]).returncode == 0


@pytest.mark.usefixtures("here")
def test_uniform_play_is_shown_beside_the_learners(tmp_path: Path, spec: Path) -> None:
    spec.write_text(toml(seeds=2).replace("baseline = false\n", ""))
    words = ("compare", spec, "--out", tmp_path / "out", "--workers", 1, "--no-report")
    shown = asked(*words).stdout
    assert "share of" in shown
    assert re.search(r"uniform +│ baseline", shown)
    summary = json.loads(asked(*words, "--json").stdout)
    assert (summary["runs"], summary["played"]) == (6, 0)
    finals = {(row["learner"], row["role"]): row["share_of_uniform"] for row in summary["regret"]}
    assert list(finals) == [("ftpl-shared", "theory"), ("o-reps", "theory"), ("uniform", "baseline")]
    assert finals["uniform", "baseline"] == 1.0


def test_the_spec_is_kept_beside_the_runs(finished: Path) -> None:
    assert (finished / "spec.toml").read_text() == toml(seeds=2)


@pytest.mark.usefixtures("here")
def test_lines_in_a_pipe_are_few(tmp_path: Path, spec: Path) -> None:
    spec.write_text(toml(seeds=40, episodes=2))
    done = asked("compare", spec, "--out", tmp_path / "out", "--workers", 1, "--no-report")
    assert done.exit_code == 0
    assert 2 <= done.stderr.count(" of 80 runs") <= 13


@pytest.mark.usefixtures("here")
def test_failed_runs_are_told_and_change_the_exit_code(tmp_path: Path, spec: Path) -> None:
    out = tmp_path / "out"
    fill(out)
    victim = small(seeds=2).first()[0]
    Store(out).write(lost(victim.settings, "WorkerLost", "it was killed"))
    done = asked("compare", spec, "--out", out, "--workers", 1, "--no-report")
    assert done.exit_code == 3
    assert "failed: " in done.stderr
    assert "it was killed" in done.stderr
    assert "1 runs failed. Play them again with: amdp" in done.stderr
    assert "--retry-failed" in done.stderr
    assert asked("compare", spec, "--out", out, "--workers", 1, "--no-report", "--retry-failed").exit_code == 0


@pytest.mark.usefixtures("here")
def test_a_shard_says_that_tuning_runs_of_others_are_missing(tmp_path: Path, spec: Path) -> None:
    spec.write_text(toml(seeds=1, more=TUNE))
    words = ("compare", spec, "--out", tmp_path / "out", "--workers", 1, "--shard")
    done = asked(*words, "1/2")
    assert done.exit_code == 0
    assert re.search(r"\d tuning runs of other shards than 1/2 are missing", done.stderr)
    assert not (tmp_path / "out" / "report").exists()
    for shard in ("2/2", "1/2"):
        last = asked(*words, shard, "--no-report", "--json")
        assert last.exit_code == 0
    assert (json.loads(last.stdout)["tuning"], json.loads(last.stdout)["missing"]) == (0, 0)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--shard", "3/2"), "give i/n"),
        (("--workers", "0"), "workers"),
        (("--workers", "2", "--dask", "tcp://nowhere:1"), "a Dask cluster has its own"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, spec: Path, words: tuple[str, ...], rule: str) -> None:
    assert rule in refused("compare", spec, "--out", tmp_path / "out", *words)
    assert not (tmp_path / "out" / "runs").exists()


def test_a_wrong_spec_is_refused_before_anything_is_made(tmp_path: Path, spec: Path) -> None:
    spec.write_text(toml().replace("ftpl-shared", "no-such-learner"))
    assert "no-such-learner" in refused("compare", spec, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "missing.toml" in refused("compare", tmp_path / "missing.toml", "--out", tmp_path / "out")


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, spec: Path) -> None:
    (tmp_path / "out").write_text("")
    assert "cannot be written" in refused("compare", spec, "--out", tmp_path / "out")


def test_results_are_printed_or_written(finished: Path, tmp_path: Path) -> None:
    printed = asked("results", finished)
    assert printed.exit_code == 0
    assert printed.stdout == table(small(seeds=2), finished)
    assert "4 of 4 runs" in printed.stderr
    for form in ("csv", "parquet"):
        file = tmp_path / f"runs.{form}"
        done = asked("results", finished, "--format", form, "--out", file, "--json", "--timings")
        assert done.exit_code == 0
        summary = json.loads(done.stdout)
        assert (summary["runs"], summary["finished"], summary["failed"], summary["missing"]) == (4, 4, 0, 0)
        read = pd.read_csv(file) if form == "csv" else pd.read_parquet(file)
        assert list(read.columns) == summary["columns"]
        assert len(read) == summary["rows"] == 20


def test_results_name_what_they_leave_out(finished: Path, tmp_path: Path) -> None:
    copy = Store(tmp_path / "copy")
    copy.prepare(toml(seeds=2))
    copy.close()
    kept, cut, *_ = Store(finished).records()
    copy.write(kept)
    copy.write(cut)
    copy.file(cut.id).write_bytes(cut.to_bytes()[:100])
    done = asked("results", tmp_path / "copy")
    assert f"left out: {copy.file(cut.id)}" in done.stderr
    assert "1 of 4 runs; 3 missing" in done.stderr


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--json",), "give --out"),
        (("--out", "/no/such/folder/file.csv"), "cannot be written"),
    ],
)
def test_results_that_cannot_be_are_refused(finished: Path, words: tuple[str, ...], rule: str) -> None:
    assert rule in refused("results", finished, *words)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    assert "spec.toml" in refused("results", tmp_path)


class Terminal:
    """A program in a terminal of its own, and what it has written there."""

    def __init__(self, words: list[str], **environment: str) -> None:
        self.screen, theirs = pty.openpty()
        size = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, **size, **environment},
            start_new_session=True,
            preexec_fn=_take_the_terminal,
        )
        os.close(theirs)
        self.written = ""

    def read_until(self, pattern: str | None) -> None:
        """Or to its end."""
        deadline = time.monotonic() + PATIENCE
        while pattern is None or not re.search(pattern, self.written):
            assert time.monotonic() < deadline, self.written
            if select.select([self.screen], [], [], 0.2)[0]:
                try:
                    self.written += os.read(self.screen, 65536).decode(errors="replace")
                except OSError:  # the other side is closed
                    break

    def press_ctrl_c(self) -> None:
        os.write(self.screen, b"\x03")

    def end(self) -> int:
        self.read_until(None)
        os.close(self.screen)
        return self.process.wait(PATIENCE)


def _take_the_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_terminal_shows_a_live_table_without_color_if_asked_and_labels_with_brackets_as_they_are(
    tmp_path: Path, spec: Path
) -> None:
    text = toml(seeds=2, episodes=300).replace('"small"', '"g [/b]"').replace('"two learners"', '"[bold]t[/]"')
    spec.write_text(text.replace('name = "ftpl-shared"', 'label = "[red]ftpl[/red]"\nname = "ftpl-shared"'))
    words = [*AMDP, "compare", str(spec), "--out", str(tmp_path / "out"), "--workers", "1", "--no-report"]
    terminal = Terminal(words, NO_COLOR="1")
    terminal.read_until(r"rounds/s")
    assert terminal.end() == 0
    assert re.search(r"[012]/2", terminal.written)
    assert "\x1b[" in terminal.written  # it moves the cursor
    colors = re.findall(r"\x1b\[([0-9;]*)m", terminal.written)
    assert not [code for code in colors if re.search(r"(^|;)(3[0-7]|38|9[0-7])(;|$)", code)]
    assert "final regret" in terminal.written
    for label in ("g [/b]", "[red]ftpl[/red]", "[bold]t[/]"):
        assert label in terminal.written
    assert len(list(Store(tmp_path / "out").records())) == 4


def test_ctrl_c_keeps_finished_runs_and_says_how_to_go_on(tmp_path: Path, spec: Path) -> None:
    spec.write_text(toml(seeds=100, episodes=200))
    out = tmp_path / "out"
    words = [*AMDP, "compare", str(spec), "--out", str(out), "--workers", "1"]
    terminal = Terminal(words)
    terminal.read_until(r"[^0\d]([1-9]\d?)/100")
    terminal.press_ctrl_c()
    assert terminal.end() == 130
    told = re.sub(r"\s+", " ", terminal.written)
    assert f"Go on with: amdp compare {spec} --out {out} --workers 1" in told
    assert "Traceback" not in terminal.written
    records = list(Store(out).records())
    assert 0 < len(records) < 200
    assert not list(out.rglob("*.part"))
    assert not Store(out).broken


@pytest.mark.usefixtures("here")
def test_pairings_that_cannot_be_are_told_at_the_start(tmp_path: Path, spec: Path) -> None:
    spec.write_text(toml(seeds=1, more='[[games]]\ninstance = "tiny"\nlabel = "dark"\nepisodes = 9\nunknown = true'))
    done = asked("compare", spec, "--out", tmp_path / "out", "--workers", 1, "--no-report")
    assert done.exit_code == 0
    assert done.stderr.startswith("1 pairings skipped: dark/o-reps: ")


def test_ctrl_c_while_the_report_is_written_says_what_to_do(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare_command, "write_runs", interrupted)
    done = asked("compare", finished / "spec.toml", "--out", finished)
    assert done.exit_code == 130
    assert f"all runs are there; amdp report {finished} writes the page" in done.stderr


def test_the_name_of_a_file_chooses_its_format(finished: Path, tmp_path: Path) -> None:
    assert asked("results", finished, "--out", tmp_path / "a.parquet").exit_code == 0
    assert len(pd.read_parquet(tmp_path / "a.parquet")) == 20
    assert "ends in .csv" in refused("results", finished, "--format", "csv", "--out", tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet").exists()


@pytest.mark.usefixtures("few_figures")
def test_foreign_and_damaged_files_are_named_by_all_commands(tmp_path: Path, spec: Path) -> None:
    out = tmp_path / "out"
    fill(out)
    other = execute(small(seeds=3).first()[-1].settings)
    Store(out).write(other)
    damaged, foreign = Store(out).file(other.id), out / "runs" / "ab" / "notes.txt"
    damaged.write_bytes(b"cut")
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("mine")
    for words in (("compare", spec, "--out", out, "--no-report"), ("results", out), ("report", out)):
        done = asked(*words)
        assert done.exit_code == 0
        assert f"left out: {damaged}" in done.stderr
        assert f"left out: {foreign}" in done.stderr
