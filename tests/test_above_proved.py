"""The study of exponents above the proved ones: what each of its games changes, and its quick form."""

from pathlib import Path

import pytest

from amdp.experiments import table_1
from amdp.experiments.spec import Role
from benchmarks.studies import above_proved
from benchmarks.studies.above_proved import FULL, FULL_INFORMATION, ROWS, WITHOUT_BLOCKS, variants


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


def test_the_quick_form_has_a_line_for_each_row_and_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(above_proved, "ROWS", ("Bandit O-SSP",))
    monkeypatch.setattr(above_proved, "FULL_INFORMATION", ("FPL with start mass",))
    above_proved.main([str(tmp_path), "--quick"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[:3] for line in lines[2:]] == [
        [f"| {name}", "0.50", what]
        for name in ("Bandit O-SSP", "FPL with start mass")
        for what in ("longer game", "other world", "tuned")
    ]
