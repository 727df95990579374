"""The study of the learners beyond Table 1: fair tuning, differences seed by seed, its quick form and its page."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amdp.algorithms.named import recipe
from amdp.experiments.spec import Role, Spec
from benchmarks.studies.beyond_table_1 import MULTIPLIERS, PARTS, SEEDS, TUNING_SEEDS, Played, main, verdict
from benchmarks.studies.no_tuning import Mean


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_learner_and_rival_meets_every_world_on_seeds_that_nothing_was_tuned_on(part: Any) -> None:
    spec: Spec = part.spec(16, SEEDS, TUNING_SEEDS)
    players = {*part.rivals, *part.rivals.values()}
    assert set(spec.pairs) == {(world, learner) for world in part.worlds for learner in players}
    assert set(spec.baselines) == set(part.worlds)
    assert len(spec.seeds) == SEEDS
    assert spec.tune is not None
    assert not set(spec.tune.seeds) & set(spec.seeds)
    assert all(len(grid) == len(MULTIPLIERS) for grid in spec.tune.grids.values())
    for learner in players - set(spec.tune.grids):
        assert learner in spec.self_tuned
    assert all(callable(recipe(settings.name)) for settings in spec.learners.values())


def test_every_rate_says_where_it_comes_from() -> None:
    names = {part.settings.get(label, {"name": label})["name"] for part in PARTS for label in part.rivals}
    for name in sorted(names):
        assert re.search(r"\[(derived|confirmed|from memory)", recipe(name).__doc__ or ""), name


def test_a_difference_is_that_of_the_same_seeds_and_of_the_tuned_runs() -> None:
    (part,) = (each for each in PARTS if each.name == "few-policies")
    mine, theirs = np.array([1.0, 11.0, 21.0]), np.array([3.0, 13.0, 23.0])
    regrets = {
        (world, learner, role): values
        for world in part.worlds
        for learner, role, values in (
            ("uniform", Role.BASELINE, np.full(3, 22.0)),
            ("hedge-anytime", Role.THEORY, np.full(3, 30.0)),
            ("hedge-anytime", Role.TUNED, mine),
            ("hedge", Role.THEORY, theirs),
        )
    }
    row = Played(part, 16, regrets, {}).lines()[4]
    assert "| 30.0 ± 0.0 | own | 11.0 ± 5.8 | 0.50 | hedge own | 13.0 ± 5.8 | -2.0 ± 0.0 | better |" in row


def test_differences_within_two_standard_errors_are_not_spoken_of() -> None:
    assert [verdict(Mean(value, 1.0)) for value in (-2.5, -1.5, 0.0, 1.5, 2.5)] == [
        "better",
        "alike",
        "alike",
        "alike",
        "worse",
    ]


def test_its_quick_form_goes_to_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- figures of beyond-table-1 -->\nold\n<!-- end of figures -->\nbelow\n")
    main([str(tmp_path / "runs"), "--quick", "--only", "few-policies", "moving", "--page", str(page)])
    text = (tmp_path / "runs" / "beyond-table-1.md").read_text()
    assert text in capsys.readouterr().out
    assert text.count("| hedge-anytime |") == text.count("| do-reps-optimistic |") == 3
    written = page.read_text()
    assert text in written
    assert "old" not in written
    with pytest.raises(SystemExit, match="no place"):
        main([str(tmp_path / "runs"), "--quick", "--page", str(tmp_path / "runs" / "beyond-table-1.md")])
