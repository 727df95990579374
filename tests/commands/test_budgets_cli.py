"""Worlds with budgets from the terminal."""

import json
from pathlib import Path

import numpy as np
import pytest
from experiments.specs import Here
from typer.testing import CliRunner

from amdp import Budgets, compare, instances
from amdp.cli import app
from amdp.errors import InvalidInput, SpecError
from amdp.experiments.record import Record

SMALL = ["--world", "n_steps=5", "--world", "n_levels=3", "--world", "hours=0.4"]


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("oracle", [None, "lp", "pulp"])
def test_solve_says_what_is_used_and_that_actions_are_drawn(oracle: str | None) -> None:
    chosen = [] if oracle is None else ["--oracle", oracle]
    text = run("solve", "maintenance", *SMALL, *chosen)
    assert "uses 0.4 of 0.4; a unit more would save" in text
    assert "(a dot: actions are drawn, at 1 of all places" in text
    answer = json.loads(run("solve", "maintenance", *SMALL, *chosen, "--json"))
    assert answer["status"] == "optimal"
    assert answer["budgets"]["hours"]["use"] == pytest.approx(0.4)
    assert np.allclose(np.sum(answer["policy"], axis=-1), 1.0)
    assert "actions" not in answer


def test_solve_refuses_who_does_not_know_budgets() -> None:
    for words in (["--oracle", "dp"], ["--domain", "stationary"]):
        result = CliRunner().invoke(app, ["solve", "maintenance", *words])
        assert result.exit_code == 1
        assert "budgets" in result.stderr


def test_sequences_are_refused_before_the_game() -> None:
    result = CliRunner().invoke(app, ["play", "maintenance", "o-reps", "--episodes", "5", "--changes", "2", *SMALL])
    assert result.exit_code == 1
    assert "not held to budgets" in result.stderr


def test_play_reports_the_use_of_a_round() -> None:
    words = ["play", "maintenance", "o-reps", "--episodes", "5", *SMALL]
    assert "of 0.4 a round, in expectation" in run(*words)
    answer = json.loads(run(*words, "--json"))
    assert answer["budgets"]["hours"]["use_a_round"] <= 0.4 + 1e-8
    assert "exceeded" in run("play", "maintenance", "uniform", "--episodes", "5", *SMALL)


def test_a_comparison_records_the_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.comparison.LocalPool", Here)
    spec = tmp_path / "spec.toml"
    world = 'instance = { name = "maintenance", n_steps = 5, n_levels = 3, hours = 0.4 }'
    spec.write_text(f'seeds = 1\n[[games]]\n{world}\nepisodes = 6\n[[learners]]\nname = "o-reps"\n', encoding="utf-8")
    compare(spec, out=tmp_path / "results")
    records = [Record.from_bytes(file.read_bytes()) for file in (tmp_path / "results").glob("runs/**/*.json")]
    curves = {record.settings.learner.name: record.curve for record in records}
    curve = curves["o-reps"]
    assert curve is not None
    assert curve.used["hours"][-1] <= 6 * 0.4 + 1e-8


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_files_keep_budgets(tmp_path: Path, suffix: str) -> None:
    world, file = instances.maintenance(n_steps=5), tmp_path / f"machine{suffix}"
    for saved in (world, instances.with_start(world, np.full(5, 0.2))):
        instances.save(file, saved)
        read = instances.load(file)
        assert read.budgets is not None
        assert saved.budgets is not None
        assert read.budgets.names == ("hours",)
        np.testing.assert_array_equal(read.budgets.usage, saved.budgets.usage)
        np.testing.assert_array_equal(read.budgets.limits, saved.budgets.limits)
    assert "uses" in run("solve", str(file))


def test_files_with_half_a_budget_are_refused(tmp_path: Path) -> None:
    fields = {"costs": [[[0.0, 1.0]]], "p": [[[1.0], [1.0]]], "usage": [[[0.0, 1.0]]]}
    file = tmp_path / "world.json"
    file.write_text(json.dumps(fields), encoding="utf-8")
    with pytest.raises(SpecError, match="limits: is missing; budgets need usage and limits"):
        instances.load(file)
    file.write_text(json.dumps(fields | {"limits": [-1.0]}), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"limits\[0\] = -1 for 'budget 0'; every policy uses at least 0"):
        instances.load(file)


def test_budgets_are_told_by_a_world() -> None:
    world = instances.tiny().with_budgets(Budgets(np.ones((1, 3, 2)), np.array([100.0])))
    assert "budget 0 <= 100" in repr(world)
    assert "budgets" not in repr(instances.tiny())
