"""The studies behind the figures: runs that can be repeated and resumed, honest fits, and their quick form."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from amdp import instances
from amdp.game import delays
from benchmarks.page import put
from benchmarks.studies import delay_rates, regret_rates, runs, tuned_rivals, unknown_transitions
from benchmarks.studies.choosing import APART, Choice, choice, chosen
from benchmarks.studies.curves import Curve, Panel, Point, Study, fitted, over_rounds, points, tables
from benchmarks.studies.runs import Result, Run, adversary, collected, executed

RUN = Run("two-arms", "nominal", 40, 1)
MAINS: dict[str, Callable[[Sequence[str]], None]] = {
    "regret-rates": regret_rates.main,
    "delay-rates": delay_rates.main,
    "unknown-transitions": unknown_transitions.main,
}
STUDIES: tuple[Callable[[bool, Choice], Study], ...] = (
    regret_rates.study,
    delay_rates.study,
    unknown_transitions.study,
)


def as_theory_says(run: Run) -> Run:
    return run


def reported() -> set[Run]:
    """The runs of the full studies."""
    panels = (panel for study in STUDIES for panel in study(False, as_theory_says).panels)
    return {run for panel in panels for curve in panel.curves for run in curve.runs}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ProcessPoolExecutor", lambda workers, context: ThreadPoolExecutor(1))


def forget_time(result: Result) -> Result:
    return result._replace(seconds=0.0)


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_can_be_repeated_and_its_seed_matters() -> None:
    assert forget_time(executed(RUN)) == forget_time(executed(RUN))
    assert executed(RUN).regret != executed(RUN._replace(seed=2)).regret


def test_runs_that_differ_anywhere_have_files_of_their_own() -> None:
    every = {
        run
        for study in STUDIES
        for panel in study(False, as_theory_says).panels
        for curve in panel.curves
        for run in curve.runs
    }
    assert len({run.file for run in every}) == len(every)


def test_results_come_from_other_processes_and_are_read_again_without_playing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = collected([RUN], tmp_path)
    assert forget_time(first[RUN]) == forget_time(executed(RUN))
    monkeypatch.setattr(runs, "executed", lambda run: pytest.fail("it was played again"))
    assert collected([RUN, RUN], tmp_path) == first


@pytest.mark.usefixtures("in_this_process")
def test_a_stopped_study_plays_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Run] = []

    def counted(run: Run) -> Result:
        played.append(run)
        return executed(run)

    monkeypatch.setattr(runs, "executed", counted)
    later = RUN._replace(seed=2)
    collected([RUN], tmp_path)
    (tmp_path / (later.file + ".part")).write_text('{"run": ')  # it was stopped while this was written
    assert set(collected([later, RUN], tmp_path)) == {RUN, later}
    assert played == [RUN, later]


def test_what_a_learner_is_told_shows_in_the_rows_that_are_cut() -> None:
    world = Run("tiny", "bernoulli", 30, 1)
    assert executed(world).cut == 1.0
    assert executed(world._replace(radius_scale=1.0)).cut == 0.0
    assert executed(world._replace(radius_scale=0.03)).cut > 0.2


@pytest.mark.parametrize("form", ["none", "fixed:4", "bursts:5:5"])
def test_coins_are_thrown_again_when_the_feedback_on_them_is_there(form: str) -> None:
    run = Run("tiny", "coins", 60, 1, delay=form)
    late = delays.parse(form, 60, np.random.default_rng(0))
    coins = adversary(run, instances.build("tiny"), late)
    tables = np.stack([coins[k] for k in range(60)])
    assert set(np.unique(tables)) == {0.0, 1.0}
    thrown = np.flatnonzero([k == 0 or bool((tables[k] != tables[k - 1]).any()) for k in range(60)])
    assert_array_equal(thrown, np.arange(0, 60, 1 if form == "none" else 5))
    block = np.searchsorted(thrown, np.arange(60), side="right")
    for k in range(59):
        assert (block[late.arrivals(k)] < block[k + 1]).all()  # what has arrived says nothing of the next round


# --- curves ---------------------------------------------------------------------------------------------------------


def test_the_exponent_of_a_power_law_is_found_with_the_error_of_its_points() -> None:
    xs = [1e3, 1e4, 1e5]
    fit = fitted([Point(x, 7.0 * x**0.55, 0.1 * 7.0 * x**0.55, 9, 1.0) for x in xs])
    assert fit.slope == pytest.approx(0.55)
    # Of three points a decade apart only the outer ones pull, each with 1 / (2 ln 10).
    assert fit.error == pytest.approx(0.1 * np.sqrt(2.0) / (2.0 * np.log(10.0)))
    rng = np.random.default_rng(0)
    slopes = [
        fitted([Point(x, x**0.5 * (1.0 + 0.1 * rng.standard_normal()), 0.1 * x**0.5, 9, 1.0) for x in xs]).slope
        for _ in range(2000)
    ]
    assert np.std(slopes) == pytest.approx(fit.error, rel=0.1)


def test_no_exponent_is_made_up_where_regret_is_negative() -> None:
    found = fitted([Point(1.0, 2.0, 0.1, 2, 1.0), Point(2.0, -1.0, 0.1, 2, 1.0)])
    assert isnan(found.slope)
    assert str(found) == "none"


def test_points_are_means_over_seeds_from_left_to_right() -> None:
    results = [Result(RUN._replace(rounds=k), regret, 0, 1.0, 0.0) for k, regret in ((9, 4.0), (3, 1.0), (3, 3.0))]
    left, right = points(results, lambda result: result.run.rounds)
    assert (left.x, left.mean, left.seeds) == (3, 2.0, 2)
    assert left.error == pytest.approx(1.0)
    assert (right.x, right.mean, right.seeds) == (9, 4.0, 1)


def test_curves_over_the_same_places_share_a_table_and_others_have_their_own() -> None:
    short, long, elsewhere = (
        [Point(x, 3.0 * x**0.5, 0.1, 4, 1.0) for x in places] for places in ((10, 20), (10, 20, 40), (10, 30))
    )
    lines = tables(Panel("a world", ()), "K", {"short": short, "long": long, "elsewhere": elsewhere})
    assert [line.split(" | ")[0].rstrip("-|") for line in lines] == [
        "| a world", "", "| long", "| short", "", "| a world", "", "| elsewhere", "",
    ]  # fmt: skip
    assert "K = 40" in lines[0]
    assert lines[3].split(" | ")[1:4] == ["9.5 ± 0.1", "13.4 ± 0.1", ""]
    assert lines[3].split(" | ")[4].startswith("0.50 ± ")


def test_a_table_is_put_in_its_place_on_a_page(tmp_path: Path) -> None:
    page, before = tmp_path / "page.md", "before\n<!-- figures of one -->\nold\n<!-- end of figures -->\nafter\n"
    page.write_text(before)
    put(page, "one", ["new", "lines"])
    assert page.read_text() == before.replace("old", "new\nlines")
    with pytest.raises(SystemExit, match="no place"):
        put(page, "two", ["new"])


def test_every_number_of_rounds_is_a_game_of_its_own() -> None:
    assert [(run.rounds, run.seed) for run in over_rounds(RUN, {5: 2, 9: 1})] == [(5, 0), (5, 1), (9, 0)]


# --- choices --------------------------------------------------------------------------------------------------------


def test_a_rate_is_chosen_by_its_regret_on_seeds_that_are_not_reported() -> None:
    asked: list[Run] = []

    def play(wanted: list[Run]) -> dict[Run, Result]:
        asked.extend(wanted)
        # The distance from 4, and noise that is the same for all: the seed.
        return {one: Result(one, abs(one.multiplier - 4.0) + one.seed, 0, 1.0, 0.0) for one in wanted}

    best = chosen(RUN, (1.0, 4.0, 16.0), range(APART, APART + 3), play)
    assert best == RUN._replace(multiplier=4.0)
    assert len(asked) == 9
    assert max(run.seed for run in reported()) < APART <= min(run.seed for run in asked)


# --- the whole ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", MAINS)
def test_the_quick_form_prints_every_curve_and_draws_into_its_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    MAINS[name]([str(tmp_path), "--quick"])
    printed = capsys.readouterr().out
    again = choice(tmp_path, quick=True)
    (study,) = (one for made in STUDIES if (one := made(True, again)).name == name)
    curves: list[Curve] = [curve for panel in study.panels for curve in panel.curves]
    assert printed.count(" ± ") > 3 * len(curves)  # at least two means and two exponents
    for curve in curves:
        assert f"| {curve.label} |" in printed
        assert all((tmp_path / run.file).exists() for run in curve.runs)
    assert (tmp_path / f"{name}.svg").read_text().count("<svg") == 1


def test_rivals_are_tuned_on_other_seeds_and_their_quick_form_prints_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned_rivals.main([str(tmp_path), "--quick"])
    *_, row = capsys.readouterr().out.splitlines()
    cells = row.strip("| ").split(" | ")
    assert cells[0] == tuned_rivals.QUICK.worlds[0]
    assert all(cell.endswith(("(x1)", "(x16)")) for cell in cells[1:4])
    asked = tuned_rivals.spec(tuned_rivals.FULL)
    assert asked.tune is not None
    assert max(asked.seeds) < min(asked.tune.seeds)
