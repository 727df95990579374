"""The table as software: every row plays its standard game, and refuses a world where its assumption does not hold."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from amdp import BernsteinBox, MarkovPolicies, Radius, StationaryPolicies, instances, registry
from amdp.algorithms.catalog import LOWER_BOUNDS, TABLE, Feedback, Row, Setting, Transitions
from amdp.algorithms.recipes import GROUP
from amdp.cli import app
from amdp.experiments import growth
from amdp.experiments.execution import execute
from amdp.experiments.ladders import Ladder, spec_of
from amdp.experiments.match import arrange
from amdp.experiments.table_1 import ladders
from amdp.mdp import Domain

RUNNER = CliRunner()
ROWS = {row.name: row for row in TABLE}


def stream(name: str, **settings: int) -> StationaryPolicies:
    world = instances.build(name, n_steps=300, **settings)
    return StationaryPolicies(world.kernel, world.initial)


def episodes(name: str) -> MarkovPolicies:
    return instances.build(name).domain


def box(name: str) -> MarkovPolicies:
    shape = instances.build(name).shape
    return MarkovPolicies(BernsteinBox.vacuous(shape, Radius.paper(shape, 100)))


WRONG: dict[str, tuple[Domain, str]] = {
    "O-REPS": (box("tiny"), "kernel"),
    "Bandit O-SSP": (episodes("grid"), "never at"),
    "O-REPS, full information": (box("tiny"), "kernel"),
    "MDP-E": (stream("waiting-ring"), "overlap"),
    "MDP-Exp3": (stream("random-parked"), r"avoid|never|overlap"),
    "FPL over closed walks": (stream("random-parked"), "certain moves"),
    "Dekel-Hazan": (stream("random-parked"), "certain moves"),
    "FPL, noise for each policy": (stream("swinging-ring", n_states=4), "parking"),
    "FPL with start mass": (stream("random-parked"), "no mass"),
    "FTPL, infinite horizon": (stream("swinging-ring", n_states=4), "parking"),
    "Hedge, infinite horizon": (stream("swinging-ring", n_states=4), "parking"),
}


@pytest.mark.parametrize("ladder", ladders(quick=True), ids=lambda ladder: ladder.name)
def test_every_row_plays_its_standard_game(ladder: Ladder) -> None:
    shorter = Ladder(ladder.name, ladder.along, (60,), ladder.game, ladder.learner)
    [planned] = spec_of("one", [shorter], 1).first()
    record = execute(planned.settings)
    assert record.failure is None
    assert record.curve is not None
    assert record.curve.paid[-1] > 0.0


@pytest.mark.parametrize("name", WRONG)
def test_a_row_refuses_a_world_outside_its_assumption(name: str) -> None:
    domain, reason = WRONG[name]
    refusal = ROWS[name].refusal(domain)
    assert refusal is not None
    assert re.search(reason, refusal), refusal


def test_every_row_that_assumes_something_has_a_world_that_it_refuses() -> None:
    asking = {row.name for row in TABLE if row.transitions not in (Transitions.KNOWN, Transitions.UNKNOWN)}
    assert asking <= set(WRONG)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_row_accepts_a_world_inside_its_assumption(row: Row) -> None:
    ladder = next(one for one in ladders(quick=True) if one.name == row.name)
    planned = spec_of("one", [ladder], 1).first()[0]
    assert row.refusal(arrange(planned.settings).domain) is None


def test_names_are_unique_and_learners_exist() -> None:
    assert len(ROWS) == len(TABLE)
    assert {row.learner for row in TABLE} <= set(registry.names(GROUP))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_exponent_is_that_of_the_bound(row: Row) -> None:
    if "^(5/6)" in row.regret:
        power = 5 / 6
    elif re.search(r"[KT]\)?\^\(2/3\)|D\)\^\(2/3\)", row.regret):
        power = 2 / 3
    else:
        assert re.search(r"sqrt\([^)]*[KT]", row.regret)
        power = 1 / 2
    assert row.exponent == pytest.approx(power)


def test_the_printed_rows_are_those_of_the_paper() -> None:
    printed = [row for row in TABLE if row.printed]
    assert len(printed) == 15  # eight for episodes, seven upper bounds for streams
    assert sum(row.setting is Setting.EPISODES for row in printed) == 8
    assert sum(row.feedback is Feedback.DELAYED for row in printed) == 4
    assert len(LOWER_BOUNDS) == 3


def test_the_command_prints_the_table_and_json() -> None:
    shown = RUNNER.invoke(app, ["table", "--all"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert all(row.learner in shown.stdout for row in TABLE)
    rows = json.loads(RUNNER.invoke(app, ["table", "--json"]).stdout)
    assert [row["name"] for row in rows] == [row.name for row in TABLE if row.printed]


def test_running_needs_a_folder() -> None:
    answer = RUNNER.invoke(app, ["table", "--run"])
    assert answer.exit_code == 1
    assert "--out" in answer.stderr


def test_rates_are_played_fitted_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = growth.ladders(growth.TRIAL)[:2]
    monkeypatch.setattr("amdp.commands.rates.ladders", lambda sizes: few)
    page = tmp_path / "rates.md"
    arguments = ["rates", "--trial", "--out", str(tmp_path / "runs"), "--workers", "1", "--page", str(page), "--json"]
    answer = RUNNER.invoke(app, arguments)
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert [one["name"] for one in found] == [one.name for one in few]
    assert all(one["missing_runs"] == 0 and len(one["regret"]) == 2 for one in found)
    assert few[0].name in page.read_text(encoding="utf-8")
