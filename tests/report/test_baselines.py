"""Uniform play beside all learners, and what a report says of the tuning."""

from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from runs import Asked, Kept, finished, planned

from amdp.experiments.execution import execute, lost
from amdp.experiments.record import Record
from amdp.experiments.settings import LearnerSettings
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.report import Look, StoredRuns, write
from amdp.report.drawing import style
from amdp.report.figures import BASELINE, KINDS
from amdp.report.markup import Table
from amdp.report.results import Contest
from amdp.report.tables import SHARE, choices, comparisons, final, settings, tries

SEEDS = range(1, 6)
GAME = '[[games]]\nlabel = "g"\ninstance = "tiny"\nepisodes = 12\n'


def contest(*learners: tuple[str, Role, float]) -> Contest:
    """Learners with a regret of `scale` times what a seed makes of it."""
    plans, records = [], []
    for name, role, scale in learners:
        runs = [planned("swim", name, seed, role) for seed in SEEDS]
        plans += runs
        records += [finished(one, scale=scale) for one in runs]
    (made,) = StoredRuns.gather(cast(Spec, Asked(plans)), cast(Store, Kept(records))).contests
    return made


def column(table: Table, name: str) -> dict[str, str]:
    return {row[0]: row[table.columns.index(name)] for row in table.rows}


# Uniform play


@pytest.fixture(scope="module")
def beside() -> Contest:
    return contest(("ftpl", Role.THEORY, 1.0), ("o-reps", Role.THEORY, 0.5), ("uniform", Role.BASELINE, 4.0))


def test_the_share_of_uniform_is_taken_seed_by_seed(beside: Contest) -> None:
    """The luck of a seed scales all regrets alike, and leaves the shares as they are."""
    assert beside.baseline
    assert np.ptp(beside.baseline.final) > 0.0
    np.testing.assert_allclose(beside.shares(beside.series[0]), 0.25)
    np.testing.assert_array_equal(beside.shares(beside.baseline), 1.0)
    shares = column(final(beside, Look()), SHARE)
    assert [shares[name].split()[0] for name in ("ftpl", "o-reps", "uniform (baseline)")] == [
        "0.2500",
        "0.1250",
        "1.000",
    ]


def test_only_common_seeds_count() -> None:
    made = contest(("ftpl", Role.THEORY, 1.0), ("uniform", Role.BASELINE, 4.0))
    assert made.baseline
    part = replace(made.baseline, seeds=made.baseline.seeds[2:], low=made.baseline.low[2:])
    assert len(replace(made, baseline=part).shares(made.series[0])) == 3


def test_the_baseline_is_last_and_not_ranked(beside: Contest) -> None:
    assert [row[0] for row in final(beside, Look()).rows][-1] == "uniform (baseline)"
    assert column(final(beside, Look()), "tuned by")["uniform (baseline)"] == "baseline"
    (table,) = comparisons(beside)
    assert [row[:2] for row in table.rows] == [("ftpl", "o-reps")]


def test_runs_of_before_there_was_a_baseline_have_no_share() -> None:
    old = contest(("ftpl", Role.THEORY, 1.0))
    assert SHARE not in final(old, Look()).columns
    assert old.shown == old.series


def test_uniform_play_without_regret_is_no_measure() -> None:
    flat = contest(("ftpl", Role.THEORY, 1.0), ("uniform", Role.BASELINE, 0.0))
    assert column(final(flat, Look()), SHARE)["ftpl"] == "\N{EN DASH}"


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("kind", ["regret", "loglog", "theory", "seconds"])
def test_figures_have_a_dotted_line_of_uniform_play(beside: Contest, kind: str) -> None:
    with style():
        (axes,) = KINDS[kind].make(beside, Look()).axes
        labels = legend(axes)
        without = legend(KINDS[kind].make(replace(beside, baseline=None), Look()).axes[0])
    (name,) = [label for label in labels if label.startswith("uniform (baseline)")]
    assert len(labels) == len(without) + 1
    assert beside.baseline
    dotted = [
        line
        for line in axes.get_lines()
        if line.get_linestyle() == "--" and line.get_linewidth() == BASELINE["linewidth"]
    ]
    ends = [float(np.asarray(line.get_ydata())[-1]) for line in dotted if line.get_color() == BASELINE["color"]]
    assert beside.baseline.final.mean() in [pytest.approx(end) for end in ends]
    assert ("at the end" in name) == (kind == "seconds")


def stored(spec: Spec) -> list[Record]:
    return [execute(one.settings) for one in {one.id: one for one in spec.first()}.values()]


def test_a_wide_figure_of_regret_has_an_axis_of_shares(beside: Contest) -> None:
    assert beside.baseline
    draw = KINDS["regret"].make
    with style():
        (axes,) = draw(beside, Look()).axes
        (right,) = axes.child_axes
        alone, narrow = draw(replace(beside, baseline=None), Look()), draw(beside, Look(width="column"))
    assert "share of uniform" in right.get_ylabel()
    low, high = axes.get_ylim()
    whole = float(Look().of(beside.baseline.low).value[-1])
    there: Any = right
    np.testing.assert_allclose(there._functions[0](np.array([low, high])), [low / whole, high / whole])
    assert not alone.axes[0].child_axes
    assert not narrow.axes[0].child_axes


def test_every_game_has_a_baseline_also_where_all_losses_are_told_or_their_sum() -> None:
    spec = Spec.parse(
        f'{GAME}[[games]]\nlabel = "told"\ninstance = "tiny"\nepisodes = 9\nfeedback = "full"\n'
        '[[games]]\nlabel = "sum"\ninstance = "tiny"\nepisodes = 9\nfeedback = "aggregate"\n'
        '[[games]]\nlabel = "stream"\ninstance = { name = "random-parked", n_states = 2, n_actions = 2 }\nsteps = 30\n'
        '[[games]]\nlabel = "unknown"\ninstance = "tiny"\nepisodes = 9\nunknown = true\n'
        '[[learners]]\nname = "fpl"\n[[learners]]\nname = "hedge-infinite"\n'
        '[[learners]]\nname = "o-reps-aggregate"\n'
    )
    assert spec.baselines == ("g", "told", "sum", "stream", "unknown")
    baselines = [one for one in spec.first() if one.role is Role.BASELINE]
    records = {one.game: execute(one.settings) for one in baselines}
    assert not [record.failure for record in records.values() if record.failure]


def test_uniform_that_is_listed_as_a_learner_has_the_share_one_and_is_played_once() -> None:
    spec = Spec.parse(f'seeds = 2\n{GAME}[[learners]]\nname = "uniform"\n[[learners]]\nname = "o-reps"\n')
    assert len({one.id for one in spec.first()}) == 4
    made = StoredRuns.gather(spec, cast(Store, Kept(stored(spec)))).contests[0]
    assert [series.name for series in made.shown] == ["uniform", "o-reps", "uniform (baseline)"]
    np.testing.assert_array_equal(made.shares(made.series[0]), 1.0)


# Tuning

TUNED = (
    f'seeds = 2\nbaseline = false\n{GAME}[[learners]]\nname = "ftpl-shared"\n[[learners]]\nname = "soft-leader"\n'
    "[tune]\ngrid = { multiplier = [1, 4, 16], limit = [3, 9, 27] }\nseeds = 2\n"
)


def tuned(scale: Any, failing: Any = lambda learner: False, text: str = TUNED) -> StoredRuns:
    """All runs of a spec, with a regret that the settings decide."""
    spec, records = Spec.parse(text), dict[str, Record]()
    paid: dict[str, float] = {}

    def record(one: Planned) -> Record:
        if failing(one.settings.learner):
            return lost(one.settings, "Unsolved", "nothing to eat")
        return finished(one, scale=scale(one.settings.learner), noise=0.0, rounds=one.settings.game.length)

    for batch in spec.plan(paid.get):
        records |= {one.id: record(one) for one in batch}
        paid |= {id: each.final_paid for id, each in records.items()}
    return StoredRuns.gather(spec, cast(Store, Kept(list(records.values()))))


def near(multiplier: float, limit: int) -> Any:
    """The nearest settings are best; of the grid no two are as far."""

    def scale(learner: LearnerSettings) -> float:
        far = abs(log(learner.multiplier / multiplier))
        return 1.0 + far + abs(log(learner.settings.get("limit", 1) / limit))

    return scale


def test_choices_are_told_with_the_number_of_tries() -> None:
    results = tuned(near(5, 10))
    (table,) = choices(results)
    assert table.rows == (
        ("g", "ftpl-shared", "multiplier = 4, limit = 9", "", "9", "18", "0"),
        ("g", "soft-leader", "not tuned", "", "0", "0", "0"),
    )
    (listed,) = tries(results)
    assert listed.columns[2:5] == ("chosen", "multiplier", "limit")
    assert [row[3:5] for row in listed.rows if row[2]] == [("4", "9")]
    assert column(settings(results), "tuned by")["ftpl-shared"] == "grid, \N{MULTIPLICATION SIGN} 4, limit = 9"


def test_warnings_stand_in_the_table_and_at_the_top_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amdp.report.figures.KINDS", {"pace": KINDS["pace"]})
    results = tuned(near(16, 9), lambda learner: learner.settings.get("limit") == 27)
    (table,) = choices(results)
    assert column(table, "warnings")["g"] == ""  # of the last learner, which is not tuned
    assert table.rows[0][3:] == (
        "6 of 18 tries failed; multiplier = 16 is at the edge of the grid (1, 4, 16): a value beyond it may be better",
        *("9", "18", "6"),
    )
    records = [
        *(record for _, record in results.finished),
        *(lost(one.settings, "A", "b") for one, _ in results.failed),
    ]
    store = cast(Store, Kept(records))
    page = write(results.spec, store, tmp_path, Look(formats=("svg",))).page.read_text()
    assert "1 of 1 choices of the tuning have warnings" in page
    assert "multiplier = 16 is at the edge" in page


def test_a_page_without_doubts_has_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.report.figures.KINDS", {"pace": KINDS["pace"]})
    results = tuned(near(5, 10))
    store = cast(Store, Kept([record for _, record in results.finished]))
    page = write(results.spec, store, tmp_path, Look(formats=("svg",))).page.read_text()
    assert "have warnings" not in page
    assert "What tuning chose" in page


def test_tries_of_all_lengths_are_listed_in_their_order() -> None:
    results = tuned(near(5, 10), text=f'{TUNED}search = {{ name = "halving", factor = 3 }}\n')
    (table,) = tries(results)
    assert [row[-2] for row in table.rows] == ["4"] * 9 + ["12"] * 3
    assert choices(results).__next__().rows[0][5] == "24"
