"""The benchmarks run and report what they promise; how fast anything is, is not tested here."""

import json
from functools import partial
from math import isclose
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest

from benchmarks import suites
from benchmarks.__main__ import main, run, usual
from benchmarks.page import require_places
from benchmarks.processes import run_fresh
from benchmarks.results import Goal, Row, as_json, as_long, at_least, at_most, faster
from benchmarks.speed_figure import draw, times_as_fast
from benchmarks.speed_page import README, SPEED, with_chosen
from benchmarks.suites import oracles, stationary
from benchmarks.suites.oracles import CASES
from benchmarks.timing import Effort, Times, side_by_side

TIMES = Times({"ours": [1.0, 2.0, 3.0], "peer": [8.0, 10.0, 27.0]})


@pytest.fixture(autouse=True)
def _leave_the_threads_of_other_tests_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.__main__.one_thread", lambda: None)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return run(CASES, ["visits", "box"], Effort.quick())


def test_the_command_loads_no_numpy_before_it_limits_its_threads() -> None:
    """Those that wait for work take processor time, which would count as that of whoever is timed next."""
    run_fresh("import benchmarks.__main__, sys; assert 'numpy' not in sys.modules")


def test_a_suite_that_dies_does_not_stop_the_others_and_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def died(suite: str, asked: object) -> int:
        ran.append(suite)
        return -9 if suite == "ftpl" else 0

    monkeypatch.setattr("benchmarks.__main__.PEERS", {})  # tests do without them
    monkeypatch.setattr("benchmarks.__main__._in_a_process", died)
    assert main(["all", "--quick"]) == 1
    assert len(ran) == len(list(iter_modules(suites.__path__)))


def test_contestants_take_turns_after_a_trial_call() -> None:
    called: list[str] = []
    times = side_by_side({name: partial(called.append, name) for name in "ab"}, Effort(3, 0.0, 0.0))
    assert called == list("ab" + "ab" * 3)
    assert [len(times.rounds[name]) for name in "ab"] == [3, 3]


def test_quick_calls_are_repeated_within_a_round() -> None:
    called: list[int] = []
    side_by_side({"a": partial(called.append, 0)}, Effort(1, 0.0, 0.05))
    assert len(called) > 10


def test_ratios_are_of_medians_and_their_spread_is_within_rounds() -> None:
    assert TIMES.median("peer") == 10.0
    assert TIMES.ratio("peer", "ours") == 5.0
    assert TIMES.spread("peer", "ours") == (6.5, 8.5)


@pytest.mark.parametrize(
    ("row", "ratio", "met"),
    [
        (faster("x", {}, TIMES, "ours", "peer", at_least(4.0)), 5.0, True),
        (faster("x", {}, TIMES, "ours", "peer", at_least(6.0)), 5.0, False),
        (as_long("x", {}, TIMES, "ours", "peer", at_most(0.3)), 0.2, True),
        (as_long("x", {}, TIMES, "ours", "peer", at_most(0.1)), 0.2, False),
        (faster("x", {}, TIMES, "ours", "peer"), 5.0, None),
    ],
)
def test_a_goal_is_a_floor_on_speed_or_a_ceiling_on_time(row: Row, ratio: float, met: bool | None) -> None:
    assert row.ratio is not None
    assert isclose(row.ratio, ratio)
    assert row.met is met


def test_without_a_ratio_the_goal_is_about_our_own_amount() -> None:
    assert Row("import", "bare", 0.3, 0.1, goal=Goal("at most", 0.4, " s")).met
    assert not Row("import", "bare", 0.5, 0.1, goal=Goal("at most", 0.4, " s")).met


def test_every_row_has_positive_medians_and_a_ratio_that_fits_them(rows: list[Row]) -> None:
    assert {row.name for row in rows} == {"greatest visits, one pair", "greatest visits, all pairs", "dp over a box"}
    for row in rows:
        assert set(row.sizes) == {"S", "A", "H"}
        assert row.ours > 0
        assert row.ratio is not None
        slow, fast = (row.theirs, row.ours) if row.ratio_of == "theirs / ours" else (row.ours, row.theirs)
        assert isclose(row.ratio, slow / fast)
        assert (row.goal is None) == (row.met is None)


def test_the_json_form_is_plain_and_tells_the_machine(rows: list[Row]) -> None:
    written = json.loads(json.dumps(as_json("oracles", rows)))
    assert {"numpy", "scipy", "numba", "highspy", "cvxpy", "pulp"} <= set(written["machine"]["packages"])
    assert set(written["machine"]) == {"processor", "cores", "system", "python", "packages"}
    assert [row["ratio"] for row in written["rows"]] == [row.ratio for row in rows]
    assert {row["goal"] for row in written["rows"]} == {
        None,
        "at most 5x",
        "at least 20x",
        "at least 8x",
        "at least 300x",
    }


def test_the_command_prints_a_table_writes_the_rows_and_puts_the_table_in_its_place_on_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "rows.json", tmp_path / "speed.md"
    page.write_text("before\n<!-- figures of oracles visits -->\nold\n<!-- end of figures -->\nafter\n")
    assert main(["oracles", "--quick", "--only", "visits", "--json", str(file), "--page", str(page)]) == 0
    assert "greatest visits, one pair" in capsys.readouterr().out
    assert len(json.loads(file.read_text())["rows"]) == 4
    written = page.read_text()
    assert written.startswith(
        "before\n<!-- figures of oracles visits -->\n`python -m benchmarks oracles --only visits --quick`,"
    )
    assert written.endswith("|\n<!-- end of figures -->\nafter\n")
    assert "old" not in written
    assert "| greatest visits, one pair |" in written
    with pytest.raises(SystemExit, match="no place for these figures"):
        main(["ftpl", "--page", str(page)])


def test_a_figure_shows_ratios_as_multiples_of_the_speed_of_the_peer(tmp_path: Path) -> None:
    faster_row, slower_row = (kind("x", {"S": 2}, TIMES, "ours", "peer") for kind in (faster, as_long))
    assert times_as_fast(faster_row) == (6.5, 5.0, 8.5)
    assert slower_row.spread is not None
    low, high = slower_row.spread
    assert np.allclose(times_as_fast(slower_row), (1 / high, 5.0, 1 / low))
    file = tmp_path / "figure.svg"
    other_row = Row("y", "another", 1.0, 3.0, ratio=3.0, ratio_of="theirs / ours")
    draw([faster_row, Row("no ratio", "peer", 1.0, 1.0), other_row], file)
    drawn = file.read_text()
    assert "x, S=2, against peer" in drawn
    assert "against another" in drawn
    assert "no ratio" not in drawn
    with pytest.raises(SystemExit, match="nothing to draw"):
        draw([Row("no ratio", "peer", 1.0, 1.0)], file)


def test_the_page_of_speeds_has_a_place_for_every_suite() -> None:
    require_places(SPEED, [found.name for found in iter_modules(suites.__path__)])
    with pytest.raises(SystemExit, match="no place for these figures: write <!-- figures of swimming -->"):
        require_places(SPEED, ["oracles", "swimming"])


def test_the_readme_shows_rows_of_the_page_of_speeds() -> None:
    page, readme = (file.read_text(encoding="utf-8") for file in (SPEED, README))
    assert with_chosen(readme, page) == readme
    shown = [line for line in readme.splitlines() if line.startswith("| newton, box |")]
    assert shown
    ratio = shown[0].split(" | ")[-1].strip(" |")
    assert ratio.endswith("x faster")
    assert shown[0] not in with_chosen(readme, page.replace(ratio, "0x faster"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["oracles", "--only", "speed"], "no case speed in oracles; cases: batched, single, sparse, hot-lp"),
        (["orcales"], "no suite 'orcales'; did you mean 'oracles'?"),
        (["oracles", "--page", "nowhere.md"], "nowhere.md: there is no such page"),
        (["oracles", "--json", "nowhere/rows.json"], "there is no folder nowhere"),
        (["oracles", "--figure", "nowhere/rows.svg"], "there is no folder nowhere"),
        (["oracles", "--figure", "rows.txt"], "rows.txt: a figure is one of .svg, .pdf, .png"),
        (["all", "--only", "dp"], "--only, --json and --figure are for one suite"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert said in capsys.readouterr().err


def test_cases_that_take_long_run_by_name_only() -> None:
    assert "frontier" in stationary.CASES
    assert "frontier" not in usual(stationary)
    assert usual(oracles) == list(CASES)


def test_a_fresh_process_reports_its_seconds_and_its_output() -> None:
    seconds, printed = run_fresh("import os; print(os.environ['COLOR'])", {"COLOR": "blue"})
    assert seconds > 0
    assert printed == "blue"


@pytest.mark.parametrize(
    ("suite", "case"),
    [
        ("ftpl", "noise"),
        ("ftpl", "overhead"),
        ("ftpl", "weights"),
        ("ftpl", "long-run"),
        ("projections", "grid"),
        ("projections", "regularized"),
        ("projections", "do-reps"),
        ("stationary", "deterministic"),
        ("table", "o-reps"),
        ("table", "fpl-with-start-mass"),
        ("threads", "small"),
    ],
)
def test_the_other_suites_run(suite: str, case: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    assert main([suite, "--quick", "--only", case, "--json", str(file)]) == 0
    assert json.loads(file.read_text())["rows"]
