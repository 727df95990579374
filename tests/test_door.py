"""The front door: what a user types after `import amdp`, and what stands behind it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.specs import Here
from numpy.testing import assert_array_equal

import amdp
from amdp.algorithms.estimators.resampling import SharedResampling
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.match import enter
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.confidence import Radius
from amdp.model.l1_ball import L1Ball


def script() -> None:
    """What a user writes: `make check` looks at its types, and a test runs it."""
    world = amdp.instances.river_swim(n_states=4)
    for oracle in ("dp", "lp", amdp.oracle("pulp", solver="CBC")):
        plan: amdp.Plan = amdp.plan(oracle, world, world.costs)
        assert plan.gap <= 1e-6

    game = amdp.Game(world, losses="bernoulli", rounds=20, seed=1, delay="fixed:5", unknown=True)
    for learner in ("uniform", "ftpl", "uob-reps"):
        run: amdp.Run = amdp.play(game, learner, seed=1, multiplier=4)
        last: float = run.regret[-1]
        calls, seconds, bound = int(run.oracle_calls[-1]), run.seconds + 1.0, run.bound or 0.0
        assert np.isfinite([last, calls, seconds, bound]).all()
    first = next(amdp.rounds(game, "ftpl", seed=1))
    losses: float = first.paid
    assert losses >= 0.0


def test_the_door_is_typed_for_those_who_install_it() -> None:
    assert (Path(amdp.__file__).parent / "py.typed").is_file()


def test_the_script_of_the_door_runs() -> None:
    script()


def test_completion_shows_what_a_user_types() -> None:
    assert {"Game", "play", "rounds", "compare", "plan", "instances", "losses", "algorithms"} <= set(dir(amdp))
    with pytest.raises(AttributeError, match="no attribute 'gmae'"):
        amdp.gmae  # type: ignore[attr-defined]  # noqa: B018


def test_a_world_is_accepted_where_a_domain_is() -> None:
    world = amdp.instances.river_swim(n_states=4)
    assert amdp.plan("dp", world, world.costs).objective == amdp.plan("lp", world.domain, world.costs).objective
    point = np.full(world.shape, 0.1)
    of_world, of_domain = amdp.project("newton", world, point), amdp.project("newton", world.domain, point)
    assert_array_equal(of_world.measure, of_domain.measure)


def test_a_plan_prints_its_proof() -> None:
    world = amdp.instances.river_swim(n_states=4)
    plan = amdp.plan("dp", world, world.costs)
    assert str(plan) == f"dp: optimal, objective {plan.objective:.6g}, bound {plan.bound:.6g}, gap 0"


def test_play_is_the_loop_and_the_measure() -> None:
    """The door adds nothing: the same numbers as arena, loop and measure put together by hand."""
    world = amdp.instances.river_swim(n_states=4)
    game = amdp.Game(world, rounds=60, seed=3)
    run = amdp.play(game, "ftpl-shared", seed=5, multiplier=2.0, checkpoints=[10, 60])
    sequence = amdp.losses.named("bernoulli", world.shape, 60, 3, world.costs)
    by_hand = ArenaGame(Episodic(world.kernel, world.initial), sequence)
    learner = Ftpl.tuned(world.domain, 60, resampling=SharedResampling, multiplier=2.0)
    curve = measure(by_hand, play_rounds(by_hand, learner, world.domain, Streams.from_seed(5)), checkpoints=[10, 60])
    assert_array_equal(run.regret, curve.paid - curve.best)
    assert_array_equal(run.oracle_calls, curve.oracle_calls)
    assert_array_equal(run.regret, amdp.play(game, learner, seed=5, checkpoints=[10, 60]).regret)
    bound = learner.bound(world.domain, 60)
    assert bound is not None
    assert run.bound == bound.total
    assert run.parameters["rate"] == learner.perturbation.rate


def test_rounds_are_those_of_play() -> None:
    game = amdp.Game("tiny", rounds=10)
    met = sum(one.paid for one in amdp.rounds(game, "o-reps", seed=2))
    again = sum(one.paid for one in amdp.rounds(game, "o-reps", seed=2))
    assert met == again
    assert 0.0 <= met <= 30.0


def test_uniform_play_pays_what_the_uniform_policy_costs() -> None:
    world = amdp.instances.river_swim(n_states=4)
    game = amdp.Game(world, losses="nominal", rounds=7)
    run = amdp.play(game, "uniform")
    even = np.full((1, *world.shape), 1.0 / world.shape[2])
    assert run.loss[-1] == pytest.approx(7 * amdp.values(world.kernel, even, world.costs[None])[0, 0, world.initial])
    assert run.oracle_calls[-1] == 0
    assert run.bound is None


def test_a_stream_is_played_with_steps() -> None:
    ring = amdp.instances.waiting_ring(n_steps=60, n_states=3)
    for world in (ring, "waiting-ring"):
        run = amdp.play(amdp.Game(world, steps=60), "ct-deterministic", seed=1)
        assert run.rounds[-1] == 60
        assert (run.regret_high >= run.regret).all()


def test_losses_of_ones_own_are_played_as_they_are() -> None:
    world = amdp.instances.river_swim(n_states=4)
    tables = np.random.default_rng(1).random((9, *world.shape))
    game = amdp.Game(world, losses=tables)
    assert game.rounds == 9
    assert_array_equal(game.losses.batch(0, 9), tables)
    assert amdp.Game(world, losses=tables, rounds=4).rounds == 4
    swapped = amdp.Game(world, losses={"name": "swap", "first": 3}, rounds=9).losses
    named = amdp.losses.named("swap", world.shape, 9, 1, world.costs, first=3)
    assert_array_equal(swapped.batch(0, 9), named.batch(0, 9))


def test_losses_of_ones_own_in_a_stream_have_one_table_a_step() -> None:
    tables = np.random.default_rng(1).random((30, 5, 2))
    games = [amdp.Game("waiting-ring", losses=losses, steps=30) for losses in (tables, tables[:, None])]
    for game in games:
        assert_array_equal(game.losses.batch(0, 30)[:, 0], tables)


def test_uc_o_reps_plays_over_l1_balls_and_nothing_else() -> None:
    run = amdp.play(amdp.Game("tiny", rounds=6, unknown=True, radius="l1", radius_scale=0.5), "uc-o-reps")
    assert run.rounds[-1] == 6
    with pytest.raises(amdp.InvalidInput, match=r"over an L1 ball: use Game.*radius='l1'"):
        amdp.play(amdp.Game("tiny", rounds=6, unknown=True, radius="paper"), "uc-o-reps")


def test_each_learner_has_the_confidence_sets_of_its_own_paper() -> None:
    game, shape = amdp.Game("tiny", rounds=40, unknown=True, radius_scale=0.5), (3, 3, 2)
    sets = {name: enter(game, name).domain.dynamics for name in ("ftpl", "uob-reps", "dilated-bonus", "uc-o-reps")}
    assert isinstance(sets["uc-o-reps"], L1Ball)
    for name, radius in (("ftpl", Radius.paper), ("uob-reps", Radius.jin_2020), ("dilated-bonus", Radius.luo_2021)):
        box = sets[name]
        assert isinstance(box, amdp.BernsteinBox)
        assert box.radius == radius(shape, 40, scale=0.5)
    all_alike = amdp.Game("tiny", rounds=40, unknown=True, radius="luo-2021")
    assert enter(all_alike, "uob-reps").domain is enter(all_alike, "ftpl").domain


def test_losses_of_a_file_last_as_long_as_the_file(tmp_path: Path) -> None:
    tables = np.random.default_rng(1).random((7, 3, 3, 2))
    np.savez(tmp_path / "losses.npz", losses=tables)
    for file in (tmp_path / "losses.npz", str(tmp_path / "losses.npz")):
        assert_array_equal(amdp.Game("tiny", losses=file).losses.batch(0, 7), tables)


@pytest.mark.parametrize("name", ["fll", "pomd", "ftpl-unknown-rounds"])
def test_what_a_learner_cannot_play_is_refused_before_the_game(name: str) -> None:
    assert amdp.play(amdp.Game("tiny", rounds=3, unknown=name == "pomd"), name).rounds[-1] == 3
    stream = amdp.Game("waiting-ring", steps=30)
    if name != "fll":
        with pytest.raises(amdp.InvalidInput, match=r"stream|episodes instead of steps"):
            amdp.play(stream, name)
    if name == "pomd":
        with pytest.raises(amdp.InvalidInput, match="BernsteinBox"):
            amdp.play(amdp.Game("tiny", rounds=3, unknown=True, radius="l1"), name)


def test_delays_are_a_text_or_numbers() -> None:
    text, numbers = amdp.Game("tiny", rounds=8, delay="fixed:3"), amdp.Game("tiny", rounds=8, delay=[3] * 8)
    assert text.total_delay == numbers.total_delay == sum(min(3, 7 - k) for k in range(8))


WRONG = [
    ({"world": 3}, "world is int; give a name"),
    ({"world": "tinny"}, "no instance 'tinny'"),
    ({"world": "tiny", "rounds": 0}, "rounds = 0"),
    ({"world": "tiny", "rounds": 5, "steps": 5}, "give either rounds or steps"),
    ({"world": "tiny", "losses": "bernouli"}, "no losses 'bernouli'"),
    ({"world": "tiny", "losses": {"first": 3}}, "adversary is missing"),
    ({"world": "tiny", "losses": np.zeros((3, 3, 3, 2)), "rounds": 4}, "4 rounds; the sequence of losses has 3"),
    ({"world": "tiny", "losses": np.zeros((3, 2, 2, 2))}, "a round of this game has"),
    ({"world": "tiny", "delay": "fixd:3"}, "fixd:3"),
    ({"world": "tiny", "rounds": 5, "delay": [1, 2]}, "2 delays for 5 rounds"),
    ({"world": "tiny", "unknown": "yes"}, "unknown = 'yes'; give True or False"),
    ({"world": "tiny", "radius_scale": "x"}, "radius_scale = 'x'"),
    ({"world": "tiny", "feedback": "semi"}, "feedback = 'semi'"),
    ({"world": "tiny", "radius": "wide"}, "radius = 'wide'; known names: own, paper"),
    ({"world": "tiny", "radius_scale": 0.0}, "radius_scale = 0"),
    ({"world": "tiny", "radius": "l1"}, "radius = 'l1'; the transitions are known: use Game"),
    ({"world": "tiny", "radius_scale": 0.1}, "radius_scale = 0.1; the transitions are known"),
    ({"world": "tiny", "seed": -1}, "seed = -1"),
    ({"world": "waiting-ring", "steps": 20, "delay": "fixed:2"}, "played without delays"),
    ({"world": "waiting-ring", "steps": 20, "unknown": True}, "known transitions"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_game_is_refused_in_a_line(given: dict[str, object], message: str) -> None:
    with pytest.raises(amdp.InvalidInput, match=message):
        amdp.Game(**given)  # type: ignore[arg-type]


def test_a_wrong_learner_is_refused_before_the_game_begins() -> None:
    game = amdp.Game("tiny", rounds=5)
    with pytest.raises(amdp.InvalidInput, match="no 'ftlp' in"):
        amdp.play(game, "ftlp")
    with pytest.raises(amdp.InvalidInput, match="did you mean 'ftpl'"):
        amdp.play(game, "ftlp")
    with pytest.raises(amdp.InvalidInput, match="game is Instance"):
        amdp.play(game.world, "ftpl")  # type: ignore[arg-type]
    with pytest.raises(amdp.InvalidInput, match="learner is int"):
        amdp.play(game, 3)  # type: ignore[arg-type]
    with pytest.raises(amdp.InvalidInput, match="checkpoints = 0"):
        amdp.play(game, "ftpl", checkpoints=0)
    with pytest.raises(amdp.InvalidInput, match="has no option 'ratte'"):
        amdp.play(game, "ftpl", ratte=1.0)
    with pytest.raises(amdp.InvalidInput, match="settings are for learners by name"):
        amdp.play(game, Ftpl.tuned(game.domain, 5), multiplier=2.0)
    with pytest.raises(amdp.InvalidInput, match="multiplier = 0"):
        amdp.play(game, "ftpl", multiplier=0.0)
    with pytest.raises(amdp.InvalidInput, match="understands full feedback"):
        amdp.play(amdp.Game("tiny", rounds=5, feedback="bandit"), "fpl")
    with pytest.raises(amdp.UnsupportedDomain, match="does not solve"):
        amdp.play(game, "ftpl", oracle="milp")


SMALL: dict[str, Any] = {
    "games": [{"instance": "tiny", "episodes": 8}],
    "learners": [{"name": "ftpl-shared"}, {"name": "uniform"}],
}


@pytest.mark.usefixtures("few_figures")
def test_a_comparison_is_a_dictionary_lists_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amdp.comparison.LocalPool", Here)
    by_dict = amdp.compare({**SMALL, "seeds": 2}, out=tmp_path / "dict", workers=1)
    frame = by_dict.frame()
    assert len(set(frame["id"])) == 4
    by_lists = amdp.compare(
        out=tmp_path / "lists", games=SMALL["games"], learners=["ftpl-shared", "uniform"], seeds=2, workers=1
    )
    assert by_lists.frame().equals(frame)
    spec = tmp_path / "spec.toml"
    spec.write_text(
        'seeds = 2\n[[games]]\ninstance = "tiny"\nepisodes = 8\n'
        '[[learners]]\nname = "ftpl-shared"\n[[learners]]\nname = "uniform"\n'
    )
    opened = amdp.Results.open(tmp_path / "dict")
    assert repr(opened) == repr(by_dict)
    assert opened.frame().equals(by_dict.frame())
    with pytest.raises(amdp.InvalidInput, match=r"has no spec\.toml"):
        amdp.Results.open(tmp_path / "nowhere")
    again = amdp.compare(spec, out=tmp_path / "dict", workers=1)
    assert (again.outcome.found, again.outcome.played) == (4, 0)
    named = amdp.compare(out=tmp_path / "named", games=["tiny"], learners=["uniform"], seeds=[3], rounds=5, workers=1)
    assert list(named.frame()["seed"].unique()) == [3]
    assert named.frame()["rounds"].max() == 5
    assert by_dict.report().page.exists()
    assert "4 runs" in repr(by_dict)


def test_a_comparison_needs_a_spec_or_games_and_learners(tmp_path: Path) -> None:
    with pytest.raises(amdp.InvalidInput, match="give either a spec, or games and learners"):
        amdp.compare(out=tmp_path)
    with pytest.raises(amdp.InvalidInput, match="give either it or them"):
        amdp.compare(SMALL, out=tmp_path, seeds=3)
    with pytest.raises(amdp.InvalidInput, match="games and learners are lists"):
        amdp.compare(out=tmp_path, games="tiny", learners=["ftpl"])
    with pytest.raises(amdp.SpecError, match=r"games\[0\].instance"):
        amdp.compare(out=tmp_path, games=["tinny"], learners=["ftpl"])


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("o-reps", {"oracle": "lp"}, "oracle = .*; o-reps does not use it; its options: projection, multiplier"),
        ("uob-reps", {"oracle": "lp"}, "its options: projection, multiplier, rate, gamma, delta"),
        (
            "ftpl",
            {"projection": "cvxpy"},
            "ftpl does not use it; its options: oracle, multiplier, rate",
        ),
        ("ftpl-unknown-rounds", {"projection": "cvxpy"}, "its options: oracle, multiplier"),
        ("pomd", {"oracle": "dp"}, "its options: multiplier"),
    ],
)
def test_a_solver_that_a_learner_does_not_use_is_refused(name: str, option: dict[str, str], message: str) -> None:
    game = amdp.Game("tiny", rounds=5)
    for door in (amdp.play, amdp.rounds):
        with pytest.raises(amdp.InvalidInput, match=message) as caught:
            door(game, name, **option)  # type: ignore[arg-type]
        assert caught.value.field == next(iter(option))


def test_solvers_that_learners_use_are_accepted() -> None:
    game = amdp.Game("tiny", rounds=5)
    assert amdp.play(game, "o-reps", projection="cvxpy").rounds[-1] == 5
    for name in ("ftpl", "ftpl-unknown-delay", "fpl", "fll"):
        assert amdp.play(game, name, oracle="lp").rounds[-1] == 5
