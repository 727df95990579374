"""`amdp verify` at the terminal: a line for each check, JSON, a list, unknown names, and an exit code that tells."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from amdp.cli import app
from amdp.verification import Finding, Verdict, checks
from amdp.verification import runs as verification_runs

RUNNER = CliRunner()


def test_a_line_for_each_check_and_the_counts() -> None:
    answer = RUNNER.invoke(app, ["verify", "nestedness", "noise-maximum", "--quick"])
    assert answer.exit_code == 0
    first, second, counts = answer.stdout.strip().splitlines()
    assert first.startswith("holds")
    assert "nestedness" in first
    assert "noise-maximum" in second
    assert counts == "2 holds; chance of a false alarm: at most 1e-06"


def test_seeds_in_a_row_are_counted_together() -> None:
    answer = RUNNER.invoke(app, ["verify", "nestedness", "noise-maximum", "--quick", "--seed", "4", "--seeds", "3"])
    assert answer.exit_code == 0
    assert answer.stdout.strip().splitlines()[2:] == [
        "seed 5: 2 holds",
        "seed 6: 2 holds",
        "6 holds; chance of a false alarm: at most 3e-06",
    ]


def test_json_states_what_was_done_and_found() -> None:
    answer = RUNNER.invoke(app, ["verify", "importance-weighting", "--quick", "--json"])
    [found] = json.loads(answer.stdout)
    assert found["verdict"] == "holds"
    assert found["samples"] == 0
    assert found["false_alarm"].startswith("none")
    assert found["false_alarm_rate"] == 0.0
    assert found["rejects"] == ["exploring-weights"]
    assert found["margins"] == {"moments": found["margin"]}
    assert set(found) >= {"statement", "claim", "exact", "simulated", "margin", "text", "seconds"}


def test_the_list_checks_nothing() -> None:
    answer = RUNNER.invoke(app, ["verify", "--list", "--json"])
    assert [one["name"] for one in json.loads(answer.stdout)] == [check.name for check in checks()]


def test_the_list_shows_claims_with_their_brackets() -> None:
    answer = RUNNER.invoke(app, ["verify", "importance-weighting", "--list"], env={"COLUMNS": "200"})
    assert "E[estimate] = loss" in answer.stdout


def test_a_page_is_of_all_checks_and_in_a_folder_that_is_there(tmp_path: Path) -> None:
    for arguments in (
        ["nestedness", "--page", str(tmp_path / "a.md")],
        ["--page", str(tmp_path)],
        ["--page", "no/a.md"],
    ):
        answer = RUNNER.invoke(app, ["verify", *arguments])
        assert answer.exit_code == 1
        assert "--page" in answer.stderr or "cannot be written" in answer.stderr


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    answer = RUNNER.invoke(app, ["verify", "nestednes"])
    assert answer.exit_code == 1
    assert "did you mean 'nestedness'" in answer.stderr


def test_a_statement_that_fails_ends_in_exit_code_3(monkeypatch: pytest.MonkeyPatch) -> None:
    [check] = verification_runs.chosen(["nestedness"])
    failing = replace(check, run=lambda *_: Finding(Verdict.FAILS, "it does not hold", 0, {"nested": -1.0}))
    monkeypatch.setattr("amdp.commands.verify.chosen", lambda names: [failing])
    answer = RUNNER.invoke(app, ["verify", "nestedness"])
    assert answer.exit_code == 3
    assert "fails" in answer.stdout
