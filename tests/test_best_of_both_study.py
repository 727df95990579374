"""The study of both worlds: its exponents, its files, and its quick form."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import amdp
from amdp.arrays import one_hot
from benchmarks.studies.best_of_both import FULL, GROWTH, QUICK, Run, growth_runs, main, slope, tail_entries, tail_runs


def test_the_second_best_policy_of_the_small_world_is_as_close_as_the_tables_say() -> None:
    world = amdp.instances.build("tiny")
    steps, states, actions = world.shape
    policies = np.array(list(product(range(actions), repeat=steps * states)), dtype=np.int32)
    visits = world.kernel.occupancy(one_hot(policies.reshape(-1, steps, states), actions), world.initial)
    costs = np.unique((visits * world.costs).sum(axis=(1, 2, 3)).round(9))
    assert (costs[1:3] - costs[0]).round(3).tolist() == [0.003, 0.044]
    assert "a gap of 0.003" in next(kind.words for kind in FULL.kinds if kind.world == "tiny")


def test_the_exponent_of_a_power_law_is_found() -> None:
    lengths = (100, 1_000, 10_000)
    assert slope(lengths, [3.0 * length**0.5 for length in lengths]) == "0.50"
    assert slope(lengths, [1.0, -1.0, 2.0]) == "none"


def test_every_run_has_a_file_of_its_own() -> None:
    runs = [*growth_runs(FULL), *tail_runs(FULL)]
    assert len({run.file for run in runs}) == len(set(runs))


def test_the_tails_are_compared_at_one_rate_too() -> None:
    game = amdp.Game("tiny", rounds=100)
    played = [amdp.settings(game, each.learner, **dict(each.settings))["rate"] for each in tail_entries("tiny", 100)]
    assert played[1::2] == pytest.approx(played[2::2])
    assert played[0] == pytest.approx(amdp.settings(game, "o-reps")["rate"])


def test_a_run_can_be_repeated() -> None:
    run = Run("tiny", "bernoulli", 20, GROWTH[0], 1)
    assert run.measured()["regret"] == pytest.approx(run.measured()["regret"])


def test_its_quick_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path), "--quick"])
    page = (tmp_path / "best-of-both.md").read_text()
    assert (tmp_path / "best-of-both.svg").stat().st_size > 1000
    assert page in capsys.readouterr().out
    assert all(entry.title in page for entry in GROWTH)
    assert f"{QUICK.tail_seeds} seeds" in page
