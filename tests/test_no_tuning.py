"""The study of adaptive rates against fixed ones: its means and ratios, its files, and its quick form."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies import no_tuning
from benchmarks.studies.no_tuning import (
    QUICK,
    Cell,
    Mean,
    Run,
    Setting,
    full_sizes,
    main,
    ratio,
    report,
    runs,
    statement,
)
from benchmarks.studies.tasks import gathered

SETTING = Setting("tiny", "bernoulli", 20, 2)
RUN = Run(SETTING, "soft-leader", 4.0, 1)


def cell(best: float, adaptive: float) -> Cell:
    """A cell with a spread of one over two seeds, in which multiplier 16 is the best."""
    around = np.array([-0.5, 0.5])
    fixed = {1.0: 9.0 * best + around, 16.0: best + around, 64.0: 2.0 * best + around}
    return Cell(SETTING, fixed, adaptive + around, 100.0 + around)


def test_a_mean_has_the_standard_error_of_its_seeds() -> None:
    mean = Mean.of(np.array([1.0, 2.0, 6.0]))
    assert mean.value == 3.0
    assert mean.error == pytest.approx(np.sqrt(7.0 / 3.0))
    assert np.isnan(Mean.of(np.array([1.0])).error)


def test_the_error_of_a_ratio_is_that_of_repeated_studies() -> None:
    rng = np.random.default_rng(0)
    below = 10.0 + rng.standard_normal((4_000, 40))
    above = 2.0 * below + rng.standard_normal((4_000, 40))
    means = [ratio(*pair) for pair in zip(above, below, strict=True)]
    # The deviation of 4,000 ratios is within 5 % of its expectation but for 4 of its own errors.
    assert np.std([mean.value for mean in means]) == pytest.approx(np.mean([mean.error for mean in means]), rel=0.05)


def test_the_best_multiplier_and_the_ratio() -> None:
    found = cell(best=50.0, adaptive=60.0)
    assert found.best == 16.0
    assert found.ratio.value == pytest.approx(1.2)
    assert found.is_remarkable
    assert not cell(best=50.0, adaptive=54.0).is_remarkable
    assert "1.20 ± 0.00 times the regret of x16" in statement(found)
    assert "x1 9.00, x64 2.00" in statement(found)


def test_where_the_best_regret_is_not_positive_differences_stand_for_ratios() -> None:
    found = Cell(SETTING, {1.0: np.array([-9.0, -11.0])}, np.array([5.0, 3.0]), np.array([40.0, 40.0]))
    assert not found.has_ratio
    assert found.is_remarkable
    page = report({no_tuning.FAMILIES[0]: [found]})
    assert "none; difference 14.0 ± 0.0" in page
    assert "**tiny, bernoulli, K = 20**: 14.0 ± 0.0 more" in page


def test_runs_that_differ_anywhere_have_files_of_their_own_and_more_seeds_keep_the_old_ones() -> None:
    games = list(runs(full_sizes(20)))
    assert len({run.file for run in games}) == len(games) == len(set(games))
    assert {run.file for run in runs(full_sizes(5))} < {run.file for run in games}


def test_all_learners_of_a_seed_meet_the_same_losses() -> None:
    # The regret of the uniform policy has no randomness of its own.
    uniform = Run(SETTING, "uniform", None, 1)
    assert uniform.measured()["regret"] == uniform.measured()["regret"] != replace(uniform, seed=2).measured()["regret"]


def test_a_run_that_has_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / RUN.file).write_text('{"regret": -7.0}')
    with ThreadPoolExecutor(1) as executor:
        assert gathered([RUN], tmp_path, executor) == {RUN: {"regret": -7.0}}


def test_the_quick_form_prints_and_writes_its_tables_and_draws_into_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(tmp_path), "--quick"])
    page = (tmp_path / "no-tuning.md").read_text()
    assert page in capsys.readouterr().out
    for family in no_tuning.FAMILIES:
        assert f"`{family.adaptive}` against `{family.fixed}`" in page
    assert page.count("| tiny | switching:20 | 40 | 2 |") == len(no_tuning.FAMILIES)
    assert all((tmp_path / run.file).exists() for run in runs(QUICK))
    assert (tmp_path / "no-tuning.svg").read_text().count("<svg") == 1
