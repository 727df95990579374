"""The table as software: every row plays its standard game, and refuses a world where its assumption does not hold."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from experiments.specs import Here
from typer.testing import CliRunner

from amdp import BernsteinBox, MarkovPolicies, Radius, StationaryPolicies, instances, registry
from amdp.algorithms.named import GROUP
from amdp.algorithms.paper_table import DELAYED, EPISODES, KNOWN, LOWER_BOUNDS, TABLE, UNKNOWN, Row
from amdp.cli import app
from amdp.experiments import growth
from amdp.experiments.building import arrange
from amdp.experiments.execution import execute
from amdp.experiments.ladders import Ladder, spec_of
from amdp.experiments.runner import Outcome, run
from amdp.experiments.table_1 import ladders
from amdp.model.domains import Domain

RUNNER = CliRunner()
PLAY: Callable[..., Outcome] = run
ROWS = {row.name: row for row in TABLE}


TINY = {"instance": {"name": "tiny", "n_states": 2}, "losses": "bernoulli"}


def stopped_at_once(*given: Any, stop: Event, **more: Any) -> Outcome:
    """A run that Ctrl-C ended before it began."""
    stop.set()
    return PLAY(*given, stop=stop, **more)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a command, where it does not matter that other processes play them."""
    monkeypatch.setattr("amdp.commands.ladder_rates.LocalPool", Here)


def stream(name: str, **settings: int) -> StationaryPolicies:
    world = instances.build(name, n_steps=300, **settings)
    return StationaryPolicies(world.kernel, world.initial)


def episodes(name: str) -> MarkovPolicies:
    world = instances.build(name)
    return MarkovPolicies(world.kernel, world.initial)


def box(name: str) -> MarkovPolicies:
    shape = instances.build(name).shape
    return MarkovPolicies(BernsteinBox.vacuous(shape, Radius.paper(shape, 100)))


WRONG: dict[str, tuple[Domain, str]] = {
    "O-REPS": (box("tiny"), "kernel"),
    "Bandit O-SSP": (episodes("grid"), "never at"),
    "O-SSP, total losses": (episodes("grid"), "never at"),
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
    played, *_ = spec_of("one", [shorter], 1).first()  # then uniform play
    record = execute(played.settings)
    assert record.settings.learner.name == ladder.learner["name"]
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
    asking = {row.name for row in TABLE if row.transitions not in (KNOWN, UNKNOWN)}
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
    assert sum(row.setting == EPISODES for row in printed) == 8
    assert sum(row.feedback == DELAYED for row in printed) == 4
    assert len(LOWER_BOUNDS) == 3


def test_the_command_prints_the_table_and_json() -> None:
    shown = RUNNER.invoke(app, ["table", "--all"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    before, _, since = shown.stdout.partition("Since then: ")
    assert "bobw" in since
    assert "bobw" not in before
    assert "dilated-bonus" in before
    assert all(row.learner in shown.stdout for row in TABLE)
    rows = json.loads(RUNNER.invoke(app, ["table", "--json"]).stdout)
    assert [row["name"] for row in rows] == [row.name for row in TABLE if row.printed]


def test_running_needs_a_folder() -> None:
    answer = RUNNER.invoke(app, ["table", "--run"])
    assert answer.exit_code == 1
    assert "--out" in answer.stderr


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_bounds_and_names_are_whole_at_any_width(columns: int) -> None:
    shown = RUNNER.invoke(app, ["table", "--all"], env={"COLUMNS": str(columns)}).stdout
    assert "\u2026" not in shown
    assert all(row.learner in shown for row in TABLE)
    assert max(map(len, shown.splitlines())) <= columns
    assert "OMD, polynomial; Zimin and Neu 2013" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "--out", "runs"], "--out without --run"),
        (["table", "--quick", "--page", "page.md"], "--quick, --page without --run"),
        (["rates", "--long", "--trial", "--out", "runs"], "--long and --trial"),
        (["rates", "--out", "runs", "--page", "nowhere/page.md"], "there is no folder"),
        (["rates", "--out", "runs", "--page", "."], "is a folder"),
        (["table", "--run", "--out", "runs", "--page", "nowhere/page.md"], "there is no folder"),
    ],
)
def test_what_would_be_ignored_or_lost_is_refused_before_anything_is_played(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = RUNNER.invoke(app, arguments)
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("flags", [[], ["--all"]])
def test_only_the_rows_that_are_asked_for_are_played(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def some(quick: bool, rows: list[Row]) -> list[Ladder]:
        asked.extend(row.name for row in rows)
        return [Ladder("one", "episodes", (5, 10), TINY, {"name": "o-reps"})]

    monkeypatch.setattr("amdp.commands.table.ladders", some)
    page = tmp_path / "table.md"
    arguments = ["table", "--run", "--quick", *flags, "--out", str(tmp_path / "runs"), "--workers", "1"]
    answer = RUNNER.invoke(app, [*arguments, "--page", str(page)])
    assert answer.exit_code == 0, answer.stderr
    assert asked == [row.name for row in TABLE if row.printed or flags]
    written = page.read_text(encoding="utf-8")
    assert ("paper's rows only" in written) == (not flags)
    assert ("Dilated bonuses" in written) == bool(flags)
    assert "(figures/table.svg)" in written
    assert b"<svg" in (tmp_path / "figures" / "table.svg").read_bytes()


@pytest.mark.usefixtures("in_this_process")
def test_missing_runs_are_shown_and_an_interrupted_page_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Ladder("half", "episodes", (5, 10), TINY, {"name": "o-reps"})
    monkeypatch.setattr("amdp.commands.rates.ladders", lambda sizes: [steps])
    page = tmp_path / "rates.md"
    page.write_text("before", encoding="utf-8")
    arguments = ["rates", "--trial", "--out", str(tmp_path / "runs"), "--workers", "1", "--page", str(page)]
    with monkeypatch.context() as patch:
        patch.setattr("amdp.commands.ladder_rates.run", stopped_at_once)
        answer = RUNNER.invoke(app, arguments, env={"COLUMNS": "200"})
    assert answer.exit_code == 130
    assert "4 runs missing, none at 5, 10" in answer.stdout
    assert "left as it was" in answer.stderr
    assert page.read_text(encoding="utf-8") == "before"
    assert RUNNER.invoke(app, arguments).exit_code == 0
    assert "half" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("in_this_process")
def test_a_page_that_cannot_be_written_is_told_after_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Ladder("half", "episodes", (5, 10), TINY, {"name": "o-reps"})
    monkeypatch.setattr("amdp.commands.rates.ladders", lambda sizes: [steps])

    def full(*_: Any, **__: Any) -> int:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", full)
    arguments = [
        "rates",
        "--trial",
        "--out",
        str(tmp_path / "runs"),
        "--workers",
        "1",
        "--page",
        str(tmp_path / "page"),
    ]
    answer = RUNNER.invoke(app, arguments)
    assert answer.exit_code == 1
    assert "half" in answer.stdout
    assert "cannot be written: no space left" in answer.stderr


def test_along_the_delay_the_proved_exponent_is_that_of_the_whole_bound() -> None:
    found = {one.name: one.proved for one in growth.ladders(growth.SHORT) if one.along == "delay"}
    delays = np.array([40, 160])  # within a decade of the last one; 10 is not
    # H = 3, S = A = 2, K = 1000
    bound = 9 * 2 * np.sqrt(2 * 1000) + 3**1.5 * np.sqrt(4 * 1000 * delays)
    assert found["FTPL, late, random"] == pytest.approx(np.polyfit(np.log(delays), np.log(bound), 1)[0])
    assert all(0.2 < power < 0.4 for power in found.values() if power is not None)


def test_a_letter_means_one_thing() -> None:
    for row in TABLE:
        assert ("D" in row.regret) == (row.feedback == DELAYED), row.name


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
