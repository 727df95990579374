"""The begin of a report: who is best in each game, and how figures and notes are shown for all games alike."""

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from runs import Asked, Kept, finished, planned

from amdp.errors import InvalidInput
from amdp.experiments.entries import short_names
from amdp.experiments.record import Record
from amdp.experiments.settings import LearnerSettings, Named
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.report import Look, MedianBand, StoredRuns, write
from amdp.report import figures as drawn
from amdp.report.drawing import SIZES, style
from amdp.report.figures import BASELINE, KINDS, picture_of_all
from amdp.report.markup import latex, markdown
from amdp.report.summary import Verdict, summary

SEEDS = range(1, 9)
Run = tuple[Planned, Record]


def played(game: str, learner: str, seeds: Any = SEEDS, role: Role = Role.THEORY, **shape: Any) -> list[Run]:
    return [(one, finished(one, **shape)) for one in (planned(game, learner, seed, role) for seed in seeds)]


def noisy(game: str, learner: str, seeds: Any = SEEDS) -> list[Run]:
    """As the best of the test below in the mean of the seeds, but with luck of its own: better and worse by turns."""
    return [run for seed in seeds for run in played(game, learner, [seed], scale=1.0 + 0.4 * (-1) ** seed, noise=0.0)]


def gathered(*runs: list[Run]) -> StoredRuns:
    every = [run for part in runs for run in part]
    spec, store = Asked([one for one, _ in every]), Kept([record for _, record in every])
    return StoredRuns.gather(cast(Spec, spec), cast(Store, store))


def page_of(folder: Path, *runs: list[Run], look: Look | None = None) -> str:
    every = [run for part in runs for run in part]
    spec, store = Asked([one for one, _ in every]), Kept([record for _, record in every])
    look = look or Look(formats=("svg",))
    return write(cast(Spec, spec), cast(Store, store), folder, look).page.read_text(encoding="utf-8")


def verdicts_of(results: StoredRuns, look: Look | None = None) -> dict[str, str]:
    (table,) = summary(results, look or Look())
    return {f"{row[0]}/{row[1]}": row[table.columns.index("verdict")] for row in table.rows}


# Who is best


@pytest.fixture(scope="module")
def results() -> StoredRuns:
    """In `swim` one is best, one is tied and one is worse; in `maze` it is the other way round."""
    swim = played("swim", "a", scale=0.99, noise=0.0) + noisy("swim", "b") + played("swim", "c", scale=3.0)
    maze = played("maze", "a", scale=3.0) + played("maze", "c", scale=1.0)
    return gathered(swim, maze, played("swim", "uniform", role=Role.BASELINE, scale=9.0))


def test_the_best_the_tied_and_the_worse_are_told(results: StoredRuns) -> None:
    assert verdicts_of(results) == {
        "swim/a": "best",
        "swim/b": "tied",
        "swim/c": "worse",
        "swim/uniform (baseline)": "baseline",
        "maze/a": "worse",
        "maze/c": "best",
    }


def test_the_best_is_in_bold_in_every_form(results: StoredRuns) -> None:
    (table,) = summary(results, Look())
    rows = {table.rows[row][:2] for row, _ in table.strong}
    assert rows == {("swim", "a"), ("maze", "c")}
    assert "**a**" in markdown(table)
    assert "**b**" not in markdown(table)
    assert r"\textbf{a}" in latex(table)
    assert r"\textbf{b}" not in latex(table)


def test_the_summary_has_regret_share_seconds_and_calls(results: StoredRuns) -> None:
    (table,) = summary(results, Look())
    row = dict(zip(table.columns, table.rows[0], strict=True))
    series = results.contests[0].series[0]
    assert float(row["final regret"].split()[0]) == pytest.approx(series.final.mean(), rel=1e-2)
    assert float(row["share of uniform"].split()[0]) == pytest.approx(0.11, abs=0.02)
    assert float(row["seconds"]) == pytest.approx(series.seconds[:, -1].mean(), rel=1e-2)
    assert row["oracle calls"] == "10,000"


def test_few_seeds_find_nobody_worse_and_say_so() -> None:
    """With four seeds the least p is 1/8, whatever the difference."""
    few = gathered(played("swim", "a", range(4)), played("swim", "b", range(4), scale=50.0))
    assert verdicts_of(few) == {"swim/a": "best", "swim/b": "too few seeds"}
    (table,) = summary(few, Look())
    assert "2 / 2^n" in table.note
    six = gathered(played("swim", "a", range(6)), played("swim", "b", range(6), scale=50.0))
    assert verdicts_of(six)["swim/b"] == "worse"


def test_learners_without_a_common_seed_are_not_judged() -> None:
    apart = gathered(played("swim", "a", range(8)), played("swim", "b", range(8, 16), scale=5.0))
    assert verdicts_of(apart)["swim/b"] == Verdict.UNKNOWN


def test_learners_that_played_alike_are_both_the_best() -> None:
    twins = gathered(played("swim", "dp"), played("swim", "lp"), played("swim", "c", scale=5.0))
    assert list(verdicts_of(twins).values()) == ["best", "best", "worse"]


def test_each_kind_of_feedback_has_its_best() -> None:
    def told(kind: str, runs: list[Run]) -> list[Run]:
        return [(one, Record(record.settings, record.curve, None, {"told": kind}, record.made)) for one, record in runs]

    mixed = gathered(told("bandit", played("swim", "ftpl", scale=5.0)), told("full", played("swim", "hedge")))
    assert list(verdicts_of(mixed).values()) == ["best", "best"]
    (table,) = summary(mixed, Look())
    assert "told different things" in table.note


def test_the_least_that_is_shown_is_the_best() -> None:
    """One bad seed decides the mean, not the median."""
    unlucky = played("swim", "a", range(1, 8), scale=1.0) + played("swim", "a", [8], scale=90.0)
    both = gathered(unlucky, played("swim", "b", scale=2.0))
    assert verdicts_of(both)["swim/b"] == "best"
    assert verdicts_of(both, Look(MedianBand()))["swim/a"] == "best"


# The page


@pytest.fixture
def two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are the cost of a report."""
    monkeypatch.setattr(drawn, "KINDS", {kind: KINDS[kind] for kind in ("regret", "pace")})


@pytest.mark.usefixtures("two_kinds")
def test_the_summary_stands_before_the_games_and_notes_stand_once(tmp_path: Path) -> None:
    runs = [played(game, name, scale=s) for game in ("swim", "maze") for s, name in ((1.0, "a"), (3.0, "b"))]
    page = page_of(tmp_path, *runs)
    order = [page.index(f'<section id="{name}">') for name in ("summary", "game-1", "game-2", "reading")]
    assert order == sorted(order)
    assert page.index("<table>") < page.index("<img") < order[1]
    text = re.sub(r'"data:[^"]*"', "", page)
    for said in (
        *(KINDS[kind].caption for kind in ("regret", "pace")),
        "two-sided sign-flip permutation test",
        "Exponent: slope of the mean regret",
        "the learner is draw, weigh and learn",
    ):
        assert text.count(said) == 1, said
        assert text.index(said) > text.index('<section id="reading">')
    assert "<strong>a</strong>" in text
    assert text.count('class="hint"') == 1


@pytest.mark.usefixtures("two_kinds")
def test_a_game_names_the_learners_that_played_alike(tmp_path: Path) -> None:
    page = page_of(tmp_path, played("swim", "dp"), played("swim", "lp"), played("swim", "c", scale=3.0))
    assert "Played alike with every seed: dp, lp." in page


# Figures


def figure(kind: str, *runs: list[Run], look: Look | None = None) -> Any:
    look = look or Look()
    with style(look.size):
        return KINDS[kind].make(gathered(*runs).contests[0], look)


def small_multiples(results: StoredRuns, look: Look) -> Any:
    with style(look.size):
        return drawn._small_multiples(results.contests, look)


def test_every_game_has_a_panel_with_all_learners_and_uniform_play(results: StoredRuns) -> None:
    made = small_multiples(results, Look())
    assert [axes.get_title() for axes in made.axes] == ["swim", "maze"]
    swim, maze = ({line.get_color() for line in axes.get_lines() if len(line.get_xdata()) > 2} for axes in made.axes)
    assert BASELINE["color"] in swim
    assert maze < swim  # a learner has its color in all games
    (legend,) = [axes.get_legend() for axes in made.axes if axes.get_legend()]
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["a", "b", "c", "uniform (baseline)", "best fixed policy in hindsight"]


def test_the_figure_of_all_games_says_its_numbers(results: StoredRuns) -> None:
    (picture,) = picture_of_all(results.contests, Look(formats=("svg",)))
    assert "swim: a " in picture.words
    assert "maze: a " in picture.words


def test_a_learner_keeps_its_color_where_others_are_absent() -> None:
    made = gathered(played("swim", "a"), played("swim", "b"), played("maze", "b"))
    with style():
        colors = [
            {line.get_color() for line in KINDS["regret"].make(contest, Look()).axes[0].get_lines()}
            for contest in made.contests
        ]
    assert colors[1] < colors[0]


def test_learners_that_played_alike_are_both_seen() -> None:
    """The first line is wider than the one over it, which has gaps; another learner is drawn as ever."""
    first, over, other = (
        figure("regret", played("s", "dp"), played("s", "lp"), played("s", "c", scale=3.0)).axes[0].get_lines()[:3]
    )
    assert first.get_linewidth() > over.get_linewidth() == other.get_linewidth()
    assert over.is_dashed()
    assert not first.is_dashed()
    assert not other.is_dashed()


@pytest.mark.parametrize("kind", ["loglog", "theory"])
def test_regret_below_zero_is_drawn_on_a_logarithmic_axis(kind: str) -> None:
    (axes,) = figure(kind, played("s", "a", scale=-3.0), played("s", "b")).axes
    assert axes.get_yscale() == "symlog"
    assert "linear within" in axes.get_ylabel()
    low, high = axes.get_ylim()
    lines = np.concatenate([line.get_ydata() for line in axes.get_lines()[:2]])
    assert low < lines.min() < 0.0 < lines.max() < high
    ticks = axes.get_yticks()
    assert 0.0 in ticks
    assert ticks.min() < 0.0 < ticks.max()
    assert figure(kind, played("s", "b")).axes[0].get_yscale() == "log"


def test_powers_are_straight_beyond_the_linear_part() -> None:
    """So that slopes may be read where some regret is below zero."""
    (axes,) = figure("loglog", played("s", "a", scale=-3.0), played("s", "b", noise=0.0)).axes
    points = axes.transData.transform(np.column_stack(axes.get_lines()[2].get_data()))
    straight = np.polyval(np.polyfit(points[:, 0], points[:, 1], 1), points[:, 0])
    np.testing.assert_allclose(points[:, 1], straight, atol=1e-6 * np.ptp(points))


def test_calls_that_begin_with_none_are_drawn() -> None:
    (one, record), *others = played("s", "a")
    assert record.curve
    record.curve.oracle_calls[0] = 0
    (axes,) = figure("calls", [(one, record)]).axes
    assert axes.get_yscale() == "symlog"
    assert others


@pytest.mark.parametrize(("width", "inches"), [("screen", 5.6), ("column", 3.3), ("page", 6.9)])
def test_figures_are_as_wide_as_asked_and_nothing_leaves_them(width: str, inches: float, results: StoredRuns) -> None:
    look = Look(width=width)
    long = played("s", "a learner with a very long label indeed oracle=lp multiplier=8", scale=3.0) + played("s", "b")
    made = [figure(kind, long, look=look) for kind in KINDS] + [small_multiples(results, look)]
    for each in made:
        assert each.get_figwidth() == inches
        with style(look.size):
            each.draw_without_rendering()
            legends = [axes.get_legend() for axes in each.axes if axes.get_legend()]
            labels = [axes.xaxis.label for axes in each.axes]
            boxes = [box.get_window_extent() for box in legends + labels]
        for box in boxes:
            assert box.x0 >= 0.0
            assert box.x1 <= each.bbox.x1
            assert box.y0 >= -1.0


@pytest.mark.parametrize("width", ["column", "page"])
def test_letters_for_papers_have_8_or_9_points(width: str) -> None:
    look = Look(width=width)
    for kind in ("loglog", "pace"):
        (axes,) = figure(kind, played("s", "a"), look=look).axes
        legend = axes.get_legend().get_texts() if axes.get_legend() else []
        texts = [axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels(), *axes.texts, *legend]
        assert {text.get_fontsize() for text in texts} <= {8.0, 9.0}


def test_a_width_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no width 'wide'; known: screen, column, page"):
        Look(width="wide")
    assert Look().size is SIZES["screen"]


# Names


def test_names_have_the_settings_in_which_learners_differ() -> None:
    def ftpl(oracle: str, multiplier: float = 1.0, **settings: Any) -> LearnerSettings:
        return LearnerSettings("ftpl", Named(oracle), multiplier=multiplier, settings=settings)

    both = {"ftpl oracle=dp limit=3": ftpl("dp", limit=3), "ftpl oracle=lp limit=3": ftpl("lp", limit=3)}
    assert list(short_names(both).values()) == ["ftpl oracle=dp", "ftpl oracle=lp"]
    assert short_names({"ftpl oracle=dp multiplier=8": ftpl("dp", 8.0)}) == {"ftpl oracle=dp multiplier=8": "ftpl"}
    assert short_names({"ftpl oracle=lp": ftpl("lp"), "ftpl": ftpl("dp")})["ftpl oracle=lp"] == "ftpl oracle=lp"


def test_a_label_of_ones_own_stays_as_it_is() -> None:
    own = {"my oracle=best": LearnerSettings("ftpl", Named("lp")), "ftpl": LearnerSettings("ftpl")}
    assert short_names(own) == {label: label for label in own}


def test_no_two_learners_get_one_name() -> None:
    """One label is what another would be without its settings, but of another kind of learner."""
    learners = {"x oracle=lp": LearnerSettings("ftpl", Named("lp")), "x": LearnerSettings("o-reps")}
    assert len(set(short_names(learners).values())) == 2
