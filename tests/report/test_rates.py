"""Ladders: one spec for all rungs, exact power laws found again, missing and failed runs told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from amdp.experiments.ladders import Ladder, slope, spec_of
from amdp.experiments.record import Curve, Failure, Record
from amdp.experiments.settings import RunSettings
from amdp.experiments.spec import Role
from amdp.experiments.storage import Store
from amdp.report.ladder_figure import bottom, ladder_figure
from amdp.report.rates import fit_ladders

GAME = {"instance": {"name": "tiny", "n_states": 2}, "losses": "bernoulli"}
BY_LENGTH = Ladder("by length", "episodes", (10, 20, 40), GAME, {"name": "o-reps"}, 0.5)
BY_STATES = Ladder("by states", "instance.n_states", (2, 4), GAME | {"episodes": 20}, {"name": "o-reps"})
BY_DELAY = Ladder("by delay", "delay", (1, 3), GAME | {"episodes": 20}, {"name": "ftpl"})


def record(settings: RunSettings, regret: float, seconds: float) -> Record:
    """A run with a given regret and given seconds a round."""
    rounds = settings.game.length
    parts = {"draw": [seconds * rounds], "weigh": [0.0], "learn": [0.0], "arena": [1.0]}
    curve = Curve([rounds], [regret], [0.0], [0.0], [0.0], [0], [3 * rounds], [0], [None], parts, parts)
    return Record(settings, curve, made={"versions": {"amdp": "0"}, "seconds": 1.0})


def test_all_rungs_become_one_spec() -> None:
    spec = spec_of("ladders", [BY_LENGTH, BY_STATES, BY_DELAY], seeds=2)
    planned = [run for run in spec.first() if run.role is Role.THEORY]
    assert len(planned) == (3 + 2 + 2) * 2 - 2  # 20 episodes with 2 states stand on two ladders
    games = {run.game for run in planned}
    assert {run.game for run in spec.first() if run.role is Role.BASELINE} == games
    assert {one.settings.game.episodes for one in planned} == {10, 20, 40}
    assert {one.settings.game.instance.settings["n_states"] for one in planned} == {2, 4}
    assert {one.settings.game.delay for one in planned} == {"none", "fixed:1", "fixed:3"}


def test_a_power_law_is_found_again(tmp_path: Path) -> None:
    spec = spec_of("ladders", [BY_LENGTH], seeds=4)
    with Store(tmp_path) as store:
        store.prepare(spec.text)
        for one in spec.first():
            n = one.settings.game.length
            store.write(record(one.settings, 3.0 * n**0.7, 1e-3 * n**2))
        [found] = fit_ladders(spec, store, [BY_LENGTH])
    assert found.exponent.value[0] == pytest.approx(0.7)
    assert found.seconds_exponent == pytest.approx(2.0)
    assert found.last.value[0] == pytest.approx(3.0 * 40**0.7)
    assert found.calls.tolist() == [3.0, 3.0, 3.0]
    assert found.missing == 0


def test_the_interval_holds_the_exponent_of_noisy_regrets(tmp_path: Path) -> None:
    # 95 % intervals: one fixed seed that was looked at; a fit of the single runs' logarithms would be off by 0.02.
    spec = spec_of("ladders", [BY_LENGTH], seeds=20)
    rng = np.random.default_rng(1)
    with Store(tmp_path) as store:
        store.prepare(spec.text)
        for one in spec.first():
            store.write(record(one.settings, one.settings.game.length**0.5 * rng.exponential(), 1.0))
        [found] = fit_ladders(spec, store, [BY_LENGTH])
    assert found.exponent.low[0] < 0.5 < found.exponent.high[0]
    assert found.exponent.high[0] - found.exponent.low[0] < 1.5


def test_missing_and_failed_runs_are_counted(tmp_path: Path) -> None:
    spec = spec_of("ladders", [BY_LENGTH], seeds=2)
    first, second, *_ = spec.first()
    failed = Record(first.settings, None, Failure("Oops", "it broke"), made={"versions": {"amdp": "0"}, "seconds": 1.0})
    with Store(tmp_path) as store:
        store.prepare(spec.text)
        store.write(failed)
        store.write(record(second.settings, 1.0, 1.0))
        [found] = fit_ladders(spec, store, [BY_LENGTH])
        assert found.missing == 5
        assert found.empty == [rung for rung in BY_LENGTH.rungs if rung != second.settings.game.length]
        assert np.isnan(found.exponent.value[0])
        [nothing] = fit_ladders(spec_of("others", [BY_DELAY], 1), store, [BY_DELAY])
    assert len(nothing.rungs) == 0
    assert nothing.missing == 2


@pytest.mark.parametrize(("seeds", "told"), [(2, False), (3, False), (4, True)])
def test_the_exponent_of_too_few_seeds_has_no_interval(tmp_path: Path, seeds: int, told: bool) -> None:
    spec = spec_of("ladders", [BY_LENGTH], seeds=seeds)
    rng = np.random.default_rng(1)
    with Store(tmp_path) as store:
        store.prepare(spec.text)
        for one in spec.first():
            store.write(record(one.settings, one.settings.game.length * rng.uniform(1, 2), 1.0))
        [found] = fit_ladders(spec, store, [BY_LENGTH])
    assert np.isfinite(found.exponent).all() == told
    assert np.isfinite(found.exponent.value[0])
    assert np.isfinite(found.last).all()


def test_slopes_need_positive_points() -> None:
    assert slope(np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 16.0])) == pytest.approx(2.0)
    assert np.isnan(slope(np.array([1.0, 2.0]), np.array([1.0, 0.0])))
    assert np.isnan(slope(np.array([1.0]), np.array([1.0])))


def test_the_exponent_is_that_of_the_last_decade_and_shares_are_of_uniform_play(tmp_path: Path) -> None:
    long = Ladder("long", "episodes", (10, 100, 400, 1000), GAME, {"name": "o-reps"})
    spec = spec_of("ladders", [long], seeds=4)
    with Store(tmp_path) as store:
        store.prepare(spec.text)
        for one in spec.first():
            n = one.settings.game.length
            learned = 1000.0 if n == 10 else n**0.5  # the first rung lies off the line
            store.write(record(one.settings, 2.0 * n if one.role is Role.BASELINE else learned, 1.0))
        [found] = fit_ladders(spec, store, [long])
    assert found.exponent.value[0] == pytest.approx(0.5)
    assert found.shares == pytest.approx([50.0, 0.05, 0.025, 1000**0.5 / 2000])


def test_a_tuned_learner_has_a_fit_of_its_own(tmp_path: Path) -> None:
    alone = Ladder("alone", "episodes", (10, 20), GAME, {"name": "soft-leader"})  # it tunes itself
    spec = spec_of("ladders", [BY_LENGTH, alone], seeds=2, tuned=True)
    with Store(tmp_path) as store:
        store.prepare(spec.text)
        for batch in spec.plan(store.final_paid):
            for one in batch:
                multiplier = one.settings.learner.multiplier
                store.write(record(one.settings, one.settings.game.length * (1.0 if multiplier == 4 else 2.0), 1.0))
        fits = fit_ladders(spec, store, [BY_LENGTH, alone])
    assert [fit.name for fit in fits] == ["by length", "by length, tuned", "alone"]
    assert [fit.regret[-1] for fit in fits] == [80.0, 40.0, 40.0]
    assert b"by length, tuned" in ladder_figure(fits)
    for least in (0.5, 2e-5):  # every curve is above the bottom of its panel
        assert 0.0 < bottom([replace(fits[0], shares=np.array([1.0, -0.1, np.nan, least]))]) < least
