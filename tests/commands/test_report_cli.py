"""`amdp report` on folders that hold all, some or none of their runs."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from amdp.cli import app
from amdp.comparison import Results
from amdp.experiments.execution import execute
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.report import Look, figures
from amdp.report.figures import KINDS

runner = CliRunner()
TEXT = """
title = "Two on a tiny world"
seeds = 2
checkpoints = 12

[[games]]
label = "tiny"
instance = "tiny"
episodes = 30

[[learners]]
label = "shared trials"
name = "ftpl-shared"

[[learners]]
label = "mirror descent"
name = "o-reps"

[tune]
multipliers = [0.5, 1.0]
seeds = 1
"""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "KINDS", {kind: KINDS[kind] for kind in ("regret", "pace")})


def prepared(folder: Path) -> tuple[Spec, Store]:
    spec, store = Spec.parse(TEXT), Store(folder)
    store.prepare(TEXT)
    return spec, store


def reported(*arguments: Any) -> str:
    result = runner.invoke(app, ["report", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_whole_folder(tmp_path: Path) -> None:
    spec, store = prepared(tmp_path)
    for one in spec.first():
        store.write(execute(one.settings))
    second = spec.second(store.final_paid)
    assert second
    for one in second:
        store.write(execute(one.settings))
    told = reported(tmp_path, "--formats", "svg, png", "--raw")
    runs = len({one.id for one in spec.first() + second})
    assert told.startswith(f"{runs} of {runs} runs\n")
    page = (tmp_path / "report" / "index.html").read_text()
    for text in (
        "Two on a tiny world",
        "shared trials (tuned)",
        "mirror descent",
        ">bandit</td>",
        "Every run that was asked for is shown",
    ):
        assert text in page
    names = {file.name for file in (tmp_path / "report" / "figures").iterdir()}
    stems = ("summary", "tiny-regret", "tiny-pace")
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("svg", "png")}
    before = page
    reported(tmp_path, "--formats", "svg, png", "--raw")
    assert (tmp_path / "report" / "index.html").read_text() == before
    elsewhere = tmp_path / "median"
    reported(tmp_path, "--band", "median", "--out", elsewhere, "--formats", "pdf")
    assert "Median over seeds" in (elsewhere / "index.html").read_text()


def test_a_folder_that_is_not_finished_says_so(tmp_path: Path) -> None:
    spec, store = prepared(tmp_path)
    for one in spec.first()[-3:]:
        store.write(execute(one.settings))
    told = reported(tmp_path, "--formats", "svg")
    assert told.startswith("3 of 10 runs; 7 missing; the runs with tuned settings follow when tuning is finished")
    assert "Not complete" in (tmp_path / "report" / "index.html").read_text()


def test_a_folder_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    for arguments in (["nowhere"], [str(tmp_path), "--formats", "gif"]):
        prepared(tmp_path)
        result = runner.invoke(app, ["report", *arguments])
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1


def test_the_page_is_opened_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    reported(tmp_path, "--open")
    assert opened == [(tmp_path / "report" / "index.html").resolve().as_uri()]


@pytest.mark.parametrize(("width", "inches"), [("column", 3.3), ("page", 6.9)])
def test_figures_for_papers_are_as_wide_as_their_columns(tmp_path: Path, width: str, inches: float) -> None:
    spec, store = prepared(tmp_path)
    store.write(execute(next(one for one in spec.first() if one.role is Role.THEORY).settings))
    reported(tmp_path, "--width", width, "--formats", "svg")
    drawn = (tmp_path / "report" / "figures" / "tiny-regret.svg").read_text()
    assert f'width="{72 * inches:g}pt"' in drawn
    look = Look(formats=("svg",))
    Results.open(tmp_path).report(tmp_path / "again", look, width=width)
    assert (tmp_path / "again" / "figures" / "tiny-regret.svg").read_text() == drawn
