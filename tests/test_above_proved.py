"""The study of exponents above the proved ones: what each of its games changes, and its quick form."""

import re
from pathlib import Path

import pytest

from amdp.experiments import table_1
from amdp.experiments.spec import Role
from benchmarks.page import DOCS
from benchmarks.studies import above_proved
from benchmarks.studies.above_proved import FULL, FULL_INFORMATION, QUICK, ROWS, WITHOUT_BLOCKS, further, variants


def test_each_game_changes_one_thing_of_the_table() -> None:
    table = {ladder.name: ladder for ladder in table_1.ladders()}
    found = {(ladder.name, one.what): (ladder, one.role) for one in variants(FULL) for ladder in one.ladders}
    assert {name for name, _ in found} == {*ROWS, *FULL_INFORMATION}
    for (name, what), (ladder, role) in found.items():
        first = table[name]
        assert ladder.learner == first.learner
        assert (ladder.game == first.game) == (what != "other world")
        assert (role is Role.TUNED) == (what == "tuned")
        longest = FULL.slow if name in WITHOUT_BLOCKS else first.rungs[-1]
        assert ladder.rungs[-1] == longest * (FULL.times if what == "longer game" else 1)


def test_the_rows_are_those_of_the_table_with_exponents_far_above_the_proved_ones() -> None:
    cells = [line.strip("| ").split(" | ") for line in (DOCS / "table-1.md").read_text(encoding="utf-8").splitlines()]
    measured = [row for row in cells if len(row) > 4 and re.match("(episodes|steps) [0-9]", row[1])]
    far = {row[0] for row in measured if float(row[3].split(" ")[0]) - float(row[4]) >= 0.0695}  # 0.07, rounded
    assert len(measured) > len(ROWS)
    assert {name for name in far if not name.endswith(", tuned")} == {*ROWS, *FULL_INFORMATION}


def test_further_games_are_those_of_the_table_longer_tuned_or_with_one_setting() -> None:
    table = {ladder.name: ladder for ladder in table_1.ladders()}
    for one in further(FULL):
        (ladder,) = one.ladders
        first = table[ladder.name]
        assert ladder.game == first.game
        settings = ladder.learner["settings"]
        assert {**ladder.learner, "settings": {}} == {**first.learner, "settings": {}}
        assert all(f"{value:g}" in one.what for value in settings.values())
        assert (one.role is Role.TUNED) == ("tuned" in one.what)
        assert len(settings) <= 1
        if "longer" in one.what:
            assert ladder.rungs[-1] > first.rungs[-1]
        else:
            assert settings


def test_the_quick_form_has_a_line_for_each_row_and_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(above_proved, "ROWS", ("Bandit O-SSP",))
    monkeypatch.setattr(above_proved, "FULL_INFORMATION", ("FPL with start mass",))
    above_proved.main([str(tmp_path), "--quick"])
    rows = [line.split(" | ")[:3] for line in capsys.readouterr().out.splitlines()]
    assert rows[2:8] == [
        [f"| {name}", "0.50", what]
        for name in ("Bandit O-SSP", "FPL with start mass")
        for what in ("longer game", "other world", "tuned")
    ]
    assert rows[10:] == [
        [f"| {one.ladders[0].name}", f"{one.ladders[0].proved:.2f}", one.what] for one in further(QUICK)
    ]
