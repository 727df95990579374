"""Figures, tables and the page of runs of which everything is known."""

import base64
import csv
import io
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import numpy as np
import pytest
from runs import Asked, Kept, broken_off, curve, finished, planned

from amdp.errors import InvalidInput, MissingDependency
from amdp.experiments.record import Curve, Record
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.report import Look, MeanBand, MedianBand, StoredRuns, Written, write
from amdp.report import figures as drawn
from amdp.report.drawing import MAX_LABEL, SIZES, style
from amdp.report.figures import FORMATS, KINDS, pictures_of
from amdp.report.markup import Table, comma_separated, latex, markdown
from amdp.report.page import progress
from amdp.report.results import Series
from amdp.report.statistics import Band, Estimate
from amdp.report.tables import comparisons, costs, final, gaps, interval, number, settings, theory_or_tuned, tries

SEEDS = range(1, 6)


def gathered(spec: Asked, runs: list[Record], **store: Any) -> StoredRuns:
    return StoredRuns.gather(cast(Spec, spec), cast(Store, Kept(runs, **store)))


def written(spec: Asked, runs: list[Record], folder: Path, look: Look | None = None) -> Written:
    return write(cast(Spec, spec), cast(Store, Kept(runs)), folder, look)


def played(game: str, learner: str, role: Role = Role.THEORY, multiplier: float = 1.0, **shape: Any) -> list[Any]:
    plans = [planned(game, learner, seed, role, multiplier) for seed in SEEDS]
    return [(one, finished(one, **shape)) for one in plans]


def split(runs: list[Any]) -> tuple[list[Planned], list[Record]]:
    return [one for one, _ in runs], [record for _, record in runs]


@pytest.fixture(scope="module")
def duel() -> StoredRuns:
    plans, records = split(played("swim", "ftpl") + played("swim", "o-reps", scale=3.0, trials=0, pace=1e-2))
    return gathered(Asked(plans), records)


# What is shown


def test_arrays_hold_what_the_records_say(duel: StoredRuns) -> None:
    one = duel.contests[0].series[0]
    for run, record in enumerate(one.records):
        assert record.curve
        assert record.settings.seed == one.seeds[run]
        np.testing.assert_array_equal(one.paid[run], record.curve.paid)
        np.testing.assert_array_equal(one.low[run], np.array(record.curve.paid) - record.curve.best)
        assert one.final[run] == record.final_regret
        spent = record.curve.spent
        learner = np.sum([spent[part] for part in ("draw", "weigh", "learn")], axis=0)
        np.testing.assert_allclose(one.seconds[run], learner - learner[0])
    assert not one.open
    np.testing.assert_array_equal(one.played, one.records[0].curve.rounds if one.records[0].curve else [])


def test_seconds_of_an_episode_leave_out_what_came_before_the_first_checkpoint(duel: StoredRuns) -> None:
    """One second before it for each part, as compiling takes."""
    fast, slow = duel.contests[0].series
    ratio = slow.each(slow.spent) / fast.each(fast.spent)
    np.testing.assert_allclose(ratio, 10.0)
    assert (fast.each(fast.spent) < 1e-3).all()


@pytest.mark.usefixtures("few")
def test_nothing_that_was_asked_for_is_dropped(tmp_path: Path) -> None:
    plans, records = split(played("swim", "ftpl"))
    lost = [planned("swim", "ftpl", seed) for seed in (7, 8)]
    failed = planned("swim", "o-reps", 1)
    stranger = finished(planned("elsewhere", "ftpl", 1))
    spec = Asked([*plans, *lost, failed], None, [("swim", "hedge", "needs full feedback")])
    broken = {Path("/nowhere/runs/ab/x.json"): "damaged"}
    results = gathered(spec, [*records, broken_off(failed), stranger], broken=broken)
    assert [len(part) for part in (results.finished, results.failed, results.missing)] == [5, 1, 2]
    assert results.asked == len(spec.plans)
    assert results.waiting
    assert results.unasked == 1
    tables = {table.name: table.rows for table in gaps(results)}
    assert tables["failures"] == (("swim", "o-reps", "theory", "1", "Unsolved", "nothing to eat"),)
    assert tables["missing"] == (("swim", "ftpl", "theory", "7, 8"),)
    assert tables["skipped"] == (("swim", "hedge", "needs full feedback"),)
    assert tables["broken"] == (("runs/ab/x.json",),)
    page = written(spec, [*records, broken_off(failed), stranger], tmp_path).page.read_text()
    assert "5 of 8 runs; 1 failed; 2 missing; the runs with tuned settings follow" in page
    for text in ("nothing to eat", "7, 8", "needs full feedback", "1 stored run of another spec"):
        assert text in page


@pytest.mark.usefixtures("few")
def test_every_file_is_read_once(tmp_path: Path) -> None:
    plans, records = split(played("swim", "ftpl"))
    kept = Kept(records)
    write(cast(Spec, Asked(plans)), cast(Store, kept), tmp_path, Look(formats=("svg",)))
    assert kept.reads == 1


def test_a_folder_without_any_run_has_a_page(tmp_path: Path) -> None:
    made = written(Asked([planned("swim", "ftpl", 1)]), [], tmp_path)
    assert "0 of 1 runs; 1 missing" in made.page.read_text()
    assert "No run of this game is finished." in made.page.read_text()
    assert made.figures == []


def test_a_run_that_has_two_names_is_shown_under_both() -> None:
    """Theory's multiplier may be the best one: the tuned run is the same run."""
    theory, tuned = planned("swim", "ftpl", 1), planned("swim", "ftpl", 1, Role.TUNED)
    results = gathered(Asked([theory], [tuned]), [finished(theory)])
    assert [one.name for one in results.contests[0].series] == ["ftpl", "ftpl (tuned)"]


def test_steps_are_counted_where_a_round_is_an_epoch() -> None:
    """The last epoch is cut where the stream ends."""
    game = GameSettings(Named("tiny"), steps=60)
    one = Planned(RunSettings(game, LearnerSettings("ftpl-infinite"), 1), "stream", "ftpl-infinite", Role.THEORY)
    results = gathered(Asked([one]), [replace(finished(one, rounds=7), used={"epoch": 9})])
    series = results.contests[0].series[0]
    assert series.played.tolist() == [9.0, 18.0, 27.0, 36.0, 45.0, 54.0, 60.0]
    assert results.contests[0].unit == "step"


# Tables


def rows_of(table: Table) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_the_final_regret_is_the_mean_over_seeds(duel: StoredRuns) -> None:
    series = duel.contests[0].series[0]
    row = rows_of(final(duel.contests[0], Look()))["ftpl"]
    assert float(row["final regret"].split()[0]) == pytest.approx(series.final.mean(), abs=0.06)
    assert row["exponent"].startswith("0.5000 [")
    assert row["runs"] == "5"
    assert row["tuned by"] == "theory"
    assert row["theory allows"] == number(40 * 1000**0.5)
    median = rows_of(final(duel.contests[0], Look(MedianBand())))["ftpl"]
    assert float(median["final regret"].split()[0]) == pytest.approx(np.median(series.final), abs=0.06)


def test_differences_are_paired_by_seed_and_free_of_the_comparator() -> None:
    """The second learner lacks a seed, and its comparator found a worse best policy."""
    mine, theirs = played("swim", "ftpl"), played("swim", "o-reps", scale=3.0)[1:]
    plans, records = split(mine + theirs)
    results = gathered(Asked(plans), records)
    a, b = results.contests[0].series
    object.__setattr__(b, "low", b.low - 1000.0)
    (table,) = comparisons(results.contests[0])
    row = rows_of(table)["ftpl"]
    expected = (a.paid[1:, -1] - b.paid[:, -1]).mean()
    assert row["seeds"] == "4"
    assert float(row[table.columns[3]].split()[0].replace("\N{MINUS SIGN}", "-")) == pytest.approx(expected, abs=0.06)
    assert float(row["p"]) == 2 / 2**4
    assert row["p"] == row["p, Holm"]


def test_all_pairs_tuned_alike_are_corrected_together() -> None:
    runs = [run for place, name in enumerate("abc") for run in played("swim", name, scale=1.0 + place)]
    runs += played("swim", "a", Role.TUNED, 0.5, scale=0.5)
    plans, records = split(runs)
    (table,) = comparisons(gathered(Asked(plans), records).contests[0])
    assert [row[:2] for row in table.rows] == [("a", "a (tuned)"), ("a", "b"), ("a", "c"), ("b", "c")]
    assert [float(row[5]) for row in table.rows] == [4 * 2 / 2**5] * 4


def test_theory_and_grid_stand_side_by_side() -> None:
    plans, records = split(played("swim", "ftpl", scale=2.0, noise=0.0) + played("swim", "hedge"))
    tuned, more = split(played("swim", "ftpl", Role.TUNED, 0.25, scale=1.0, noise=0.0))
    results = gathered(Asked(plans, tuned), records + more)
    table = theory_or_tuned(results.contests[0], Look())
    row = rows_of(table)["ftpl"]
    assert row["regret, theory"].startswith(number(2 * 1000**0.5))
    assert row["regret, tuned"].startswith(number(1000**0.5))
    assert row["multiplier"] == "0.25"
    assert rows_of(table)["hedge"]["regret, tuned"] == "\N{EN DASH}"
    assert {name: row["tuned by"] for name, row in rows_of(final(results.contests[0], Look())).items()} == {
        "ftpl": "theory",
        "ftpl (tuned)": "grid, \N{MULTIPLICATION SIGN} 0.25",
        "hedge": "theory",
    }


@pytest.fixture
def theory_chosen() -> StoredRuns:
    """Tuning chose theory's multiplier for a and b, and another for c."""
    theory = [run for place, name in enumerate("abc") for run in played("swim", name, scale=1.0 + place)]
    plans, records = split(theory)
    twins = [replace(one, role=Role.TUNED) for one in plans if one.learner != "c"]
    tuned, more = split(played("swim", "c", Role.TUNED, 0.5, scale=0.5))
    return gathered(Asked(plans, twins + tuned), records + more)


def test_the_same_runs_are_compared_once(theory_chosen: StoredRuns) -> None:
    """Not a with a, nor a with b again as tuned; Holm counts the rest."""
    (table,) = comparisons(theory_chosen.contests[0])
    assert [row[:2] for row in table.rows] == [
        ("a", "b"),
        ("a", "c"),
        ("a (tuned)", "c (tuned)"),
        ("b", "c"),
        ("b (tuned)", "c (tuned)"),
        ("c", "c (tuned)"),
    ]
    assert "as many as the table has rows" in table.note
    assert max(float(row[5]) for row in table.rows) == 6 * 2 / 2**5


def test_rates_that_do_not_know_of_the_delay_are_marked_and_explained(duel: StoredRuns) -> None:
    told, untold = played("swim", "ftpl"), played("swim", "o-reps")
    untold = [(one, replace(record, used={**record.used, "tuned_without_delay": True})) for one, record in untold]
    plans, records = split(told + untold)
    table = final(gathered(Asked(plans), records).contests[0], Look())
    assert [row[-1] for row in table.rows] == ["theory", "theory \N{DAGGER}"]
    assert "\N{DAGGER}: theory's rate for feedback that comes at once" in table.note
    assert "\N{DAGGER}" not in final(duel.contests[0], Look()).note


def test_a_tuned_learner_that_is_theorys_is_told_so(theory_chosen: StoredRuns) -> None:
    contest = theory_chosen.contests[0]
    rows = rows_of(final(contest, Look()))
    assert [rows[f"{name} (tuned)"]["tuned by"] for name in "abc"] == ["tuned = theory"] * 2 + [
        "grid, \N{MULTIPLICATION SIGN} 0.5"
    ]
    gained = [row[-1] for row in theory_or_tuned(contest, Look()).rows]
    assert gained[:2] == ["tuned = theory"] * 2
    assert gained[2].startswith("\N{MINUS SIGN}")


def test_a_run_of_two_roles_counts_once(theory_chosen: StoredRuns) -> None:
    """Three learners as theory tunes them, and one tuned otherwise."""
    assert theory_chosen.asked == 4 * len(SEEDS)
    assert progress(theory_chosen) == "20 of 20 runs"
    lost = planned("swim", "d", 1)
    results = gathered(Asked([lost], [replace(lost, role=Role.TUNED)]), [])
    assert progress(results) == "0 of 1 runs; 1 missing"


def heard(kind: str, *runs: Any) -> list[Any]:
    return [(one, replace(record, used={"told": kind})) for one, record in runs]


def test_learners_that_are_told_different_things_are_not_compared() -> None:
    runs = heard("bandit", *played("swim", "ftpl"), *played("swim", "o-reps"))
    runs += heard("full", *played("swim", "hedge"), *played("swim", "o-reps-full", scale=1.0))
    plans, records = split(runs)
    results = gathered(Asked(plans), records)
    (table,) = comparisons(results.contests[0])
    assert [row[:2] for row in table.rows] == [("ftpl", "o-reps"), ("hedge", "o-reps-full")]
    for table in (final(results.contests[0], Look()), settings(results)):
        told = {name: row["told"] for name, row in rows_of(table).items()}
        assert told == dict.fromkeys(("ftpl", "o-reps"), "bandit") | dict.fromkeys(
            ("hedge", "o-reps-full"), "full information"
        )


def test_no_exponent_is_printed_without_its_interval() -> None:
    runs = played("swim", "few")[:3] + played("swim", "better", scale=-1.0) + played("swim", "well")
    plans, records = split(runs)
    rows = rows_of(final(gathered(Asked(plans), records).contests[0], Look()))
    assert rows["few"]["exponent"] == rows["better"]["exponent"] == "\N{EN DASH}"
    assert "[" in rows["well"]["exponent"]


def test_the_final_regret_stands_beside_the_learner(duel: StoredRuns) -> None:
    """On a phone only the first columns are seen."""
    assert final(duel.contests[0], Look()).columns[:2] == ("learner", "final regret")


def test_tries_are_listed_with_the_chosen_one() -> None:
    runs = [run for m in (0.5, 2.0) for run in played("swim", "ftpl", Role.TUNING, m, scale=m)]
    plans, records = split(runs)
    results = gathered(Asked(plans, [planned("swim", "ftpl", 9, Role.TUNED, 0.5)]), records)
    (table,) = tries(results)
    assert [row[:5] for row in table.rows] == [
        ("swim", "ftpl", "chosen", "0.5", "5"),
        ("swim", "ftpl", "", "2", "5"),
    ]
    assert results.contests[0].series == []


def test_an_open_comparator_gives_two_ends() -> None:
    plans, records = split(played("swim", "ftpl", gap=0.05) + played("swim", "hedge", gap=None))
    results = gathered(Asked(plans), records)
    first, second = results.contests[0].series
    assert first.open
    assert second.open
    np.testing.assert_allclose(first.high - first.low, np.tile(0.05 * first.played, (5, 1)))
    rows = rows_of(final(results.contests[0], Look()))
    assert rows["ftpl"]["at most"] == number(first.high[:, -1].mean())
    assert rows["hedge"]["at most"] == "∞"


def test_costs_are_those_of_one_episode(duel: StoredRuns) -> None:
    row = rows_of(costs(duel.contests[0], Look()))["ftpl"]
    assert row["oracle calls"] == "10.0"
    assert row["trials"] == "9.00"
    parts = [float(row[f"ms, {part}"]) for part in ("draw", "weigh", "learn")]
    assert float(row["ms"].split()[0]) == pytest.approx(sum(parts), rel=0.01)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234567.0, "1,234,567"), (12.345, "12.3"), (0.00123, "0.00123"), (nan, "\N{EN DASH}"), (inf, "∞")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text
    if value > 0:
        assert number(-value) == "\N{MINUS SIGN}" + text


def test_an_interval_decides_the_digits() -> None:
    assert interval(estimate(30.384, 25.11, 35.29)) == "30.4 [25.1, 35.3]"
    assert interval(estimate(30384.2, 25111.0, 35290.0)) == "30,384 [25,111, 35,290]"
    assert interval(estimate(0.5, 0.5, 0.5)) == "0.5000 [0.5000, 0.5000]"
    assert interval(estimate(-0.0001, -0.2, 0.2)) == "0.00 [\N{MINUS SIGN}0.20, 0.20]"
    assert interval(estimate(7.0, nan, nan)) == "7.00"


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(np.array([value]), np.array([low]), np.array([high]))


NASTY = "a_b & 50% #1 {x} $y$ ~z^ \\cmd <i> |pipe| `tick` \"q\" 'r'\nnext *star* [link](x)"


def test_labels_survive_latex_and_markdown() -> None:
    table = Table("t", NASTY, (NASTY, "n"), ((NASTY, "\N{MINUS SIGN}1 ∞"),), (NASTY,))
    tex = latex(table).split(r"\midrule")[1].split(r"\bottomrule")[0]
    plain = re.sub(r"\\(text\w+|char34|dots)\{\}|\\[&%$#_{}]|\{[\[*]\}|\$(-|\\infty)\$", "", tex).replace(r"\\", "")
    assert not set('%$#_~^\\{}<>|"[*') & set(plain)
    assert plain.count("&") == 1
    lines = markdown(table).split("\n")
    row = next(line for line in lines if "next" in line and line.startswith("| "))
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert "<i>" not in row


def test_a_table_as_csv_is_read_back() -> None:
    table = Table("t", "T", ("a", "b"), ((NASTY, "1"), ('x,"y"', "2")))
    assert [tuple(row) for row in csv.reader(io.StringIO(comma_separated(table)))] == [table.columns, *table.rows]


# Figures


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are the cost of a report."""
    monkeypatch.setattr(drawn, "KINDS", {"regret": KINDS["regret"]})


@pytest.mark.usefixtures("few")
def test_files_stay_in_the_folder_and_no_two_have_one_name(tmp_path: Path) -> None:
    plans, records = split(
        played("swim", "ftpl") + played("../swim", "ftpl") + played("SWIM", "ftpl") + played("漢", "ftpl")
    )
    made = written(Asked(plans), records, tmp_path, Look(formats=("svg",)))
    names = {f"{name}-regret.svg" for name in ("swim", "swim-2", "swim-3", "game")}
    assert {file.name for file in made.figures} == names | {"summary.svg"}
    files = [made.page, *made.figures, *made.tables]
    assert len(set(files)) == len(files)
    assert all(file.resolve().is_relative_to(tmp_path) and file.exists() for file in files)


def test_the_same_runs_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in another order, at another time, on another day."""
    monkeypatch.setattr(drawn, "KINDS", {kind: KINDS[kind] for kind in ("regret", "loglog")})
    plans, records = split(played("swim", "ftpl", gap=0.1) + played("swim", "o-reps"))
    first = written(Asked(plans), records, tmp_path / "a")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    second = written(Asked(plans), records[::-1], tmp_path / "b")
    files = [made.figures + made.tables + [made.page] for made in (first, second)]
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


def look_at(kind: str, runs: list[Any], look: Look | None = None) -> Any:
    plans, records = split(runs)
    contest = gathered(Asked(plans), records).contests[0]
    with style():
        return KINDS[kind].make(contest, look or Look()) if KINDS[kind].suits(contest) else None


def labels_of(figure: Any) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]


def test_curves_are_means_over_seeds() -> None:
    runs = played("swim", "ftpl")
    (axes,) = look_at("regret", runs).axes
    expected = np.mean([np.array(record.curve.paid) - record.curve.best for _, record in runs], axis=0)
    line = axes.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), expected)
    np.testing.assert_array_equal(line.get_xdata(), runs[0][1].curve.rounds)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("episodes", "regret")


def test_raw_curves_are_drawn_on_request() -> None:
    plain, raw = (look_at("regret", played("swim", "ftpl"), Look(raw=wanted)).axes[0] for wanted in (False, True))
    assert len(raw.get_lines()) - len(plain.get_lines()) == len(SEEDS)


def test_open_comparators_are_drawn_in_marks_of_their_own() -> None:
    figure = look_at("regret", played("s", "a", gap=0.05) + played("s", "b", gap=None) + played("s", "c"))
    assert labels_of(figure) == [
        "a",
        "b",
        "c",
        "regret in the strip: comparator bounded",
        "regret at or above: nothing proved",
        "best fixed policy in hindsight",
    ]
    hatched = [strip for strip in figure.axes[0].collections if strip.get_hatch()]
    assert len(hatched) == 1
    top = hatched[0].get_paths()[0].vertices[:, 1].max()
    runs = played("s", "a", gap=0.05)
    assert top == pytest.approx(np.mean([record.curve.paid[-1] - record.curve.best_bound[-1] for _, record in runs]))


def test_slopes_are_in_the_legend_and_beside_their_references() -> None:
    figure = look_at("loglog", played("s", "a", power=2 / 3))
    assert labels_of(figure)[0] == "a: 0.67 [0.67, 0.67]"
    fan = {text.get_text() for text in figure.axes[0].texts}
    assert fan == {"1/2", "2/3", "5/6"}
    ends = {}
    for line in figure.axes[0].get_lines():
        x, y = line.get_data()
        if len(x) == 2:
            ends[round(float(np.log(y[1] / y[0]) / np.log(x[1] / x[0])), 6)] = line
    assert list(ends) == [0.5, 0.666667, 0.833333]


def test_theory_is_dashed_above_its_learner_and_absent_where_it_does_not_speak() -> None:
    figure = look_at("theory", played("s", "a") + played("s", "b", scale=3.0, bound=None))
    lines = figure.axes[0].get_lines()
    dashed = [line for line in lines if line.is_dashed() and len(line.get_xdata())]
    drawn_bounds = [line for line in dashed if np.isfinite(line.get_ydata()).any()]
    assert len(drawn_bounds) == 1
    assert drawn_bounds[0].get_color() == lines[0].get_color()
    np.testing.assert_allclose(drawn_bounds[0].get_ydata(), 40.0 * np.array(lines[0].get_xdata()) ** 0.5)
    assert look_at("theory", played("s", "b", bound=None)) is None


def test_tuned_learners_keep_their_color_and_change_their_line() -> None:
    runs = played("s", "a") + played("s", "a", Role.TUNED, 0.5) + played("s", "b")
    theory, tuned, other = look_at("regret", runs).axes[0].get_lines()[:3]
    assert theory.get_color() == tuned.get_color() != other.get_color()
    assert not theory.is_dashed()
    assert tuned.is_dashed()
    assert theory.get_marker() == tuned.get_marker() != other.get_marker()


def test_more_learners_than_colors_get_more_panels() -> None:
    figure = look_at("regret", [run for i in range(10) for run in played("s", f"learner {i}")])
    assert [len(axes.get_legend().get_texts()) for axes in figure.axes] == [8 + 1, 2 + 1]
    for axes in figure.axes:
        looks = [(line.get_color(), line.get_marker()) for line in axes.get_lines() if len(line.get_xdata()) > 2]
        assert len(set(looks)) == len(looks)
    inches = [axes.get_position().height * figure.get_figheight() for axes in figure.axes]
    assert inches[0] == pytest.approx(inches[1])


STRANGE = ("$x_1$", "$\\broken$", "_hidden", "<script>", "", "x" * 300, "日本\x00\n--")


def test_any_label_is_drawn_as_it_is() -> None:
    runs = [run for label in STRANGE for run in played("game", label)[:2]]
    for kind in ("regret", "pace"):
        ElementTree.fromstring(drawn_svg(look_at(kind, runs)))
    shown = labels_of(look_at("regret", runs))
    assert shown[:5] == list(STRANGE[:5])
    assert shown[5] == "x" * 21 + "…" + "x" * 22
    assert shown[6] == "日本  --"


def drawn_svg(figure: Any) -> bytes:
    with style():
        return drawn._rendered(figure, ("svg",))["svg"]


def test_regret_that_is_never_positive_has_no_logarithm() -> None:
    kinds = [picture.name for picture in pictures(played("s", "a", scale=-1.0))]
    assert kinds == ["regret", "seconds", "pace", "calls"]


def test_regret_of_mixed_signs_and_a_single_seed_are_drawn() -> None:
    runs = [played("s", "a", scale=-1.0)[0], *played("s", "b")[:1], *played("s", "c", scale=1e-12)]
    assert [picture.name for picture in pictures(runs)] == list(KINDS)


def pictures(runs: list[Any]) -> list[drawn.Picture]:
    plans, records = split(runs)
    return list(pictures_of(gathered(Asked(plans), records).contests[0], Look(formats=("svg",))))


def test_a_format_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no format 'gif'; known: svg, pdf, png"):
        Look(formats=("gif",))


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.registry.missing", lambda packages: list(packages))
    with pytest.raises(MissingDependency, match="matplotlib"):
        pictures(played("s", "a"))


@pytest.mark.usefixtures("few")
def test_habits_of_the_reader_do_not_change_a_figure(tmp_path: Path) -> None:
    import matplotlib as mpl

    first = pictures(played("s", "a"))[0].svg
    with mpl.rc_context({"font.size": 20.0, "lines.linewidth": 9.0}):
        assert pictures(played("s", "a"))[0].svg == first
        assert mpl.rcParams["font.size"] == 20.0


# The page


class Reader(HTMLParser):
    """Tags with their attributes, and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Written:
    plans, records = split(played('<b onclick="x">', "<script>alert(1)</script>"))
    spec = Asked(plans, title="<i>title</i>", text='title = "</pre><script>alert(2)</script>"\n')
    return written(spec, records, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def page(made: Written) -> Reader:
    return Reader(made.page.read_text())


def test_figures_come_in_all_kinds_and_formats(made: Written) -> None:
    names = ["summary", *(f"b-onclick-x-{kind}" for kind in KINDS)]
    assert {file.name for file in made.figures} == {f"{name}.{ending}" for name in names for ending in FORMATS}
    begins = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}
    assert all(file.read_bytes().startswith(begins[file.suffix]) for file in made.figures)


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(page: Reader) -> None:
    assert page.open == []
    assert page.all("script") == []
    for tag, attributes in page.tags:
        for name in ("src", "href"):
            target = attributes.get(name)
            assert target is None or target.startswith(("data:", "#")), (tag, target)
    assert all(
        target["href"] in {f"#{one['id']}" for one in page.all("section")}
        for target in page.all("a")
        if (target["href"] or "").startswith("#")
    )
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_labels_show_as_text(page: Reader) -> None:
    for text in ("<script>alert(1)</script>", '<b onclick="x">', "<i>title</i>", "</pre><script>alert(2)</script>"):
        assert text in page.text
    assert page.all("i") == page.all("b") == page.all("script") == []


def test_every_figure_has_words_and_the_page_a_language(page: Reader) -> None:
    images = page.all("img")
    assert len(images) == len(KINDS) + 1  # that of all games
    for image in images:
        assert "Final regret" in (image["alt"] or "")
        assert base64.b64decode((image["src"] or "").partition(",")[2]).startswith(b"<?xml")
    assert page.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")
    heads = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert heads[0] == 1
    assert heads.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(heads))


def test_downloads_hold_the_numbers(page: Reader) -> None:
    files = {link["download"]: link["href"] for link in page.all("a") if "download" in link}
    text = base64.b64decode((files["runs.csv"] or "").partition(",")[2]).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(SEEDS)
    for row in rows:
        assert float(row["regret"]) == float(row["paid"]) - float(row["best"])
    assert "curves.csv" in files


def test_settings_versions_and_spec_are_told(page: Reader) -> None:
    for text in ("tiny", "1,000", "rate = 0.100", "numpy", "2.4.6", "alert(2)"):
        assert text in page.text


@pytest.mark.usefixtures("few")
def test_bands_are_a_choice(tmp_path: Path) -> None:
    plans, records = split(played("swim", "ftpl"))
    bands: list[Band] = [MeanBand(), MedianBand()]
    pages = [
        written(Asked(plans), records, tmp_path / str(i), Look(band, formats=("svg",))).page.read_text()
        for i, band in enumerate(bands)
    ]
    assert "bootstrap interval" in pages[0]
    assert "Median over seeds, with the 25% and 75% quantiles" in pages[1]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        written(Asked([planned("swim", "ftpl", 1)]), [], tmp_path / "file" / "report")


def test_series_of_runs_with_other_checkpoints_keep_the_common_ones() -> None:
    one, two = planned("s", "a", 1), planned("s", "a", 2)
    series = Series.of([(one, finished(one)), (two, shortened(finished(two)))])
    assert series.played.tolist() == curve(1).rounds[1::2]


def shortened(record: Record) -> Record:
    assert record.curve
    kept = slice(1, None, 2)

    def part(value: Any) -> Any:
        return {key: one[kept] for key, one in value.items()} if isinstance(value, dict) else value[kept]

    return replace(record, curve=Curve(**{name: part(value) for name, value in asdict(record.curve).items()}))


def test_long_names_of_one_grid_keep_their_ends() -> None:
    names = [f"a learner with a very long label indeed oracle=lp multiplier={n}" for n in (1, 2)]
    short = [SIZES["screen"].label(name) for name in names]
    assert short[0] != short[1]
    assert all(len(name) == MAX_LABEL for name in short)
    assert short[0].endswith("multiplier=1")
