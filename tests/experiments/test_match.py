"""From settings to a game: worlds, losses and what the learner is told, in episodes and in streams."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from amdp import InvalidInput, UnsupportedDomain, instances, losses
from amdp.algorithms.named import GROUP
from amdp.experiments.building import arrange
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.game.arenas import Continuing, Stepwise
from amdp.game.regret import log_checkpoints
from amdp.instances import build, continuing, standard
from amdp.model.domains import MarkovPolicies, StationaryPolicies
from amdp.options import defaults
from amdp.oracles.base import bind
from amdp.oracles.stationary.enumeration import Enumeration
from amdp.registry import names

STREAM = GameSettings(Named("random-parked", {"n_states": 3, "n_actions": 2}), Named("nominal"), steps=90)
EPISODES = GameSettings(Named("tiny"), episodes=30)


def run(game: GameSettings, learner: str = "ftpl-shared", seed: int = 1, **settings: object) -> RunSettings:
    return RunSettings(game, LearnerSettings(learner, settings=settings), seed)


def test_a_stream_is_played_in_epochs_by_those_who_ask_for_it() -> None:
    match = arrange(run(STREAM, "ftpl-infinite", epochs=6))
    assert isinstance(match.played.arena, Continuing)
    assert isinstance(match.domain, StationaryPolicies)
    assert (match.rounds, match.epoch) == (6, 15)
    assert match.domain.shape == (90, 3, 2)
    assert match.used["epoch"] == 15


@pytest.mark.parametrize("name", ["ftpl-infinite", "hedge-infinite"])
def test_a_stream_has_a_bound_where_policies_are_entered_in_every_epoch(name: str) -> None:
    """It is stated for the whole stream; where there is none, the match says why."""
    kept, renewed = arrange(run(STREAM, name, epochs=6)), arrange(run(STREAM, f"{name}-renewed", epochs=6))
    assert kept.bound(6) is None
    assert f"none is proved for a policy that stays and is not entered anew; {name}-renewed has one" in kept.unproved(6)
    assert renewed.bound(6).total > 0
    assert renewed.bound(5) is None
    assert "stated for the whole stream" in renewed.unproved(5)
    exact = arrange(run(STREAM, name, epochs=6, exact=True))
    assert exact.bound(6) is None
    assert "exact chances" in exact.unproved(6)


@pytest.mark.parametrize("name", ["mdp-e", "mdp-exp3"])
def test_others_choose_anew_in_each_step_of_a_stream(name: str) -> None:
    if name not in names(GROUP):
        pytest.skip("not installed")
    world = Named("random-ergodic", {"n_states": 3, "n_actions": 2})
    match = arrange(run(replace(STREAM, instance=world, steps=200), name))
    assert isinstance(match.played.arena, Stepwise)
    assert match.rounds == 200


def test_an_episodic_learner_does_not_play_a_stream() -> None:
    for name in ("ftpl", "fpl", "o-reps", "uob-reps", "hedge", "delayed-hedge", "delayed-uob-ftrl"):
        with pytest.raises((InvalidInput, UnsupportedDomain)):
            arrange(run(STREAM, name))


def test_nominal_losses_of_a_stream_are_those_of_each_step() -> None:
    game = GameSettings(Named("server-farm", {"n_servers": 2, "day": 7}), Named("nominal"), steps=40)
    match = arrange(run(game, "hedge-infinite", epochs=8))
    world = instances.server_farm(40, 2, day=7)
    assert not np.array_equal(world.costs[0], world.costs[3])
    for k in range(8):
        table = match.played.table(k)
        assert_array_equal(table[5 * k : 5 * k + 5], world.costs[5 * k : 5 * k + 5])
        assert table.sum() == pytest.approx(world.costs[5 * k : 5 * k + 5].sum())


@pytest.mark.parametrize("name", ["bernoulli", "beta", "corrupted", "spikes"])
def test_random_losses_of_a_stream_follow_the_costs_of_each_step(name: str) -> None:
    costs = np.zeros((6000, 1, 2))
    costs[::2, 0, 0] = 1.0
    settings = {"corrupted": {"budget": 0}, "spikes": {"places": 0}}.get(name, {})
    made = losses.named(name, (1, 1, 2), 6000, 3, costs, **settings)
    assert_array_equal(made.batch(0, 6000)[:, 0], costs)


@pytest.mark.parametrize("name", ["seasonal", "sinusoid", "swap", "congestion", "walk", "hidden-walk"])
def test_drifting_losses_of_a_stream_start_from_the_mean_of_its_costs(name: str) -> None:
    costs = np.random.default_rng(0).random((50, 4, 2))
    expected = losses.named(name, (1, 4, 2), 50, 3, costs.mean(axis=0, keepdims=True))
    assert_array_equal(losses.named(name, (1, 4, 2), 50, 3, costs).batch(0, 50), expected.batch(0, 50))


def test_costs_of_a_wrong_number_of_steps_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"costs has shape \(4, 2, 2\); the world has \(3, 2, 2\)"):
        losses.named("nominal", (3, 2, 2), 4, 1, np.zeros((4, 2, 2)))
    with pytest.raises(InvalidInput, match=r"costs has shape \(5, 2, 2\); the world has \(1, 2, 2\)"):
        losses.named("nominal", (1, 2, 2), 4, 1, np.zeros((5, 2, 2)))


def test_the_hidden_walk_is_the_hard_case_of_switching() -> None:
    world = build("switching-bandit", n_steps=64, n_arms=3, corridor=2)
    made = losses.named("hidden-walk", (1, *world.shape[1:]), 64, 5, world.costs)
    tables, nominal = made.batch(0, 64)[:, 0], world.costs[0]
    arms = np.arange(3)
    staying = tables[:, arms, arms]
    moved = staying - nominal[arms, arms]
    assert_allclose(moved, moved[:, :1] * np.ones(3), atol=1e-12)
    assert np.ptp(moved[:, 0]) > 0.01
    others = np.ones_like(nominal, dtype=bool)
    others[arms, arms] = False
    assert np.all(tables[:, others] == 1.0)
    assert np.ptp(staying, axis=1) == pytest.approx((6 / 64) ** (1 / 3) / (9 * 6))


def test_the_comparator_finds_the_best_policy_in_hindsight() -> None:
    game = replace(STREAM, comparator=Named("enumeration", {"limit": 100}))
    match = arrange(run(game, "hedge-infinite", epochs=5))
    assert match.game.comparator == Enumeration(limit=100)
    found = match.measure(match.play(1), log_checkpoints(match.rounds))
    exact = bind("enumeration", match.played.arena.domain).minimize(match.game.world.costs[None])
    assert found.best[-1] == pytest.approx(float(exact.objective[0]))


def test_a_comparator_is_asked_about_the_arena_and_not_about_what_the_learner_is_told() -> None:
    game = replace(EPISODES, unknown=True, comparator=Named("enumeration"))
    assert not isinstance(arrange(run(game)).domain, StationaryPolicies)
    with pytest.raises(UnsupportedDomain, match="milp does not solve MarkovPolicies over Kernel"):
        arrange(run(replace(game, comparator=Named("milp"))))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (RunSettings(EPISODES, LearnerSettings("ftpl", Named("milp")), 1), "milp does not solve"),
        (run(replace(EPISODES, feedback="full"), "ftpl"), "ftpl understands bandit feedback; the game tells full"),
        (run(replace(EPISODES, feedback="bandit"), "fpl"), "fpl understands full feedback; the game tells bandit"),
        (run(replace(EPISODES, instance=Named("river-swim")), "hedge"), "more than its limit of"),
        (run(replace(STREAM, unknown=True), "ftpl-infinite"), "with known transitions"),
        (run(replace(STREAM, delay="fixed:1"), "ftpl-infinite"), "without delays"),
        (run(replace(STREAM, instance=Named("tiny")), "ftpl-infinite"), "homogeneous"),
        (run(EPISODES, "ftpl", speed=3), "'ftpl' has no option 'speed'; its options: rate, limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_could_not_be_played_is_refused_before_the_game(settings: RunSettings, message: str) -> None:
    with pytest.raises((InvalidInput, UnsupportedDomain), match=message):
        arrange(settings)


def test_a_world_from_a_file_has_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "tiny.npz"
    instances.save(path, build("tiny"))
    game = replace(EPISODES, instance=Named(str(path)))
    assert isinstance(arrange(run(game)).domain, MarkovPolicies)
    with pytest.raises(InvalidInput, match="has no settings"):
        arrange(run(replace(game, instance=Named(str(path), {"n_states": 3}))))


# --- the catalogues ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", continuing())
def test_worlds_without_end_have_as_many_steps_as_asked(name: str) -> None:
    world = build(name, n_steps=17)
    assert world.shape[0] == 17
    assert world.kernel.is_homogeneous
    assert world.costs.min() >= 0.0
    assert world.costs.max() <= 1.0


@pytest.mark.parametrize(
    "name", [name for name, make in (standard() | continuing()).items() if "seed" in defaults(make)]
)
def test_a_seed_decides_a_random_world(name: str) -> None:
    small = {"n_states": 6} if "n_states" in defaults((standard() | continuing())[name]) else {}
    first, again, other = build(name, seed=3, **small), build(name, seed=3, **small), build(name, seed=4, **small)
    assert_array_equal(first.costs, again.costs)
    assert_array_equal(first.kernel.dense().p, again.kernel.dense().p)
    if not name.startswith("switching"):  # there it only hides one arm among a few
        assert not np.array_equal(first.costs, other.costs)


def test_settings_by_keyword_are_those_of_the_functions() -> None:
    assert_array_equal(build("grid", width=3, height=2, slip=0).kernel.dense().p, _dense(instances.grid(3, 2, 0.0)))
    drawn = instances.random_dense(2, 4, 3, np.random.default_rng(8), concentration=0.5)
    made = build("random-dense", seed=8, n_steps=2, n_states=4, n_actions=3, concentration=0.5)
    assert_array_equal(_dense(made), _dense(drawn))
    assert_array_equal(made.costs, drawn.costs)
    assert build("lock", code=[0, 1]).shape == (20, 3, 2)
    assert build("inventory", n_steps=2, prices=[1.0, 2.0]).shape[0] == 2


def _dense(world: instances.Instance) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return world.kernel.dense().p


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "tiny",
            {"states": 3},
            "'tiny' has no option 'states'; did you mean 'n_states'? its options: n_steps, ",
        ),
        ("tiny", {"rng": 3}, "'tiny' has no option 'rng'"),
        ("tiny", {"n_states": "3"}, "'tiny': n_states = '3'; it must be a whole number"),
        ("tiny", {"n_states": True}, "'tiny': n_states = True; it must be a whole number"),
        ("tiny", {"seed": -1}, "seed = -1; it must be a whole number, at least 0"),
        ("grid", {"slip": "much"}, "'grid': slip = 'much'; it must be a number"),
        ("lock", {"code": 3}, "'lock': code = 3; it must be a list"),
        ("waiting-ring", {"n_states": 1}, "n_states = 1; it must be a whole number, at least 2"),
    ],
)
def test_wrong_settings_of_a_world_are_refused(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        build(name, **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("swap", {"last": 3}, "'swap' has no option 'last'; its options: first, growth"),
        ("uniform", {"first": 3}, "'uniform' has no option 'first'; it has no options"),
        ("swap", {"first": 2.5}, "'swap': first = 2.5; it must be a whole number"),
        ("corrupted", {"budget": 11}, "budget = 11; it must be at most 10, the number of rounds"),
        ("congestion", {"width": 4}, "a grid of 4 x 1 cells does not fit 6 states"),
        ("beta", {"concentration": 0}, "concentration = 0; it must be finite and above 0"),
    ],
)
def test_wrong_settings_of_losses_are_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        losses.named(name, (2, 6, 2), 10, 1, **settings)
    assert message in str(caught.value)


def test_settings_of_losses_reach_the_adversary() -> None:
    costs = np.random.default_rng(1).random((2, 6, 2))
    made = losses.named("swap", (2, 6, 2), 10, 1, costs, first=3, growth=1.0)
    assert_array_equal(made.batch(0, 10), losses.swap(costs, 10, 3, 1.0).batch(0, 10))
    crowd = losses.named("congestion", (2, 6, 2), 10, 1, costs, width=6, period=5, radius=0.5, weight=0.2)
    assert_array_equal(crowd.batch(0, 10), losses.congestion(costs, 10, 6, 1, 5, 0.5, 0.2).batch(0, 10))
    walked = losses.named("switching", (2, 6, 2), 10, 1, costs, every=2, tables=3)
    assert_array_equal(walked[0], walked[6])
