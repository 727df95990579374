from pathlib import Path

import numpy as np
import pytest

import amdp
from amdp.arrays import Floats
from amdp.errors import AmdpError, InvalidInput
from amdp.instances import EnteredInstance, Instance, from_gymnasium, load, random_layered, river_swim, save, with_start
from amdp.losses.by_name import standard
from amdp.model.evaluation import values
from amdp.model.transitions import Kernel, SparseKernel

SWIM = river_swim(n_states=4, n_steps=5)


def changing() -> Instance:
    """A world whose kernel and costs differ from step to step."""
    rng = np.random.default_rng(5)
    return Instance("changing", Kernel(rng.dirichlet(np.ones(3), size=(4, 3, 2))), rng.random((4, 3, 2)))


def sparse(world: Instance) -> Instance:
    matrices = [world.kernel.matrix(h) for h in range(world.shape[0])]
    return Instance("sparse", SparseKernel(matrices), world.costs, world.initial)


WORLDS = [SWIM, changing(), sparse(changing()), from_gymnasium("CliffWalking-v1", 6), random_layered()]


def law_of(world: Instance) -> Floats:
    """Half of the mass on the initial state, which leads on in every world."""
    n_states = world.shape[1]
    uniform = np.full(n_states, 1 / n_states) if world.name != "random-layered" else np.eye(n_states)[world.initial]
    law: Floats = (np.eye(n_states)[world.initial] + uniform) / 2
    return law


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_any_policy_costs_its_mean_over_the_start(world: Instance) -> None:
    law, (steps, states, actions) = law_of(world), world.shape
    entered = with_start(world, law)
    assert entered.shape == (steps + 1, states + 1, actions)
    policy = np.random.default_rng(1).dirichlet(np.ones(actions), size=(1, steps + 1, states + 1))
    inside = values(world.kernel, policy[:, 1:, :-1], world.costs[None])[0, 0]
    outside = values(entered.kernel, policy, entered.costs[None])[0, 0, entered.initial]
    assert outside == pytest.approx(law @ inside, abs=1e-12)
    assert entered.kernel.is_homogeneous == world.kernel.is_homogeneous
    assert entered.scale == world.scale


@pytest.mark.parametrize("oracle", ["dp", "lp", "cvxpy"])
def test_oracles_plan_from_a_distribution(oracle: str) -> None:
    law = np.array([0.5, 0.2, 0.3, 0.0])
    least = law @ amdp.plan("dp", SWIM, SWIM.costs).values[0]
    entered = with_start(SWIM, law)
    assert amdp.plan(oracle, entered, entered.costs).objective == pytest.approx(least, abs=1e-7)


@pytest.mark.parametrize("name", standard())
def test_the_entrance_is_free_and_the_losses_inside_are_those_without_it(name: str) -> None:
    plain = amdp.Game(SWIM, losses=name, rounds=12)
    game = amdp.Game(with_start(SWIM, [0.25] * 4), losses=name, rounds=12)
    block = game.losses.batch(0, 12)
    np.testing.assert_array_equal(block[:, 1:, :-1], plain.losses.batch(0, 12))
    assert not block[:, 0].any()
    assert not block[:, :, -1].any()
    np.testing.assert_array_equal(game.losses[7], block[7])


def test_regret_is_that_of_the_world_inside_on_average_over_the_start() -> None:
    """Of a learner that never learns: its loss and the best one are means over the start, round by round."""
    law, rounds = np.array([0.5, 0.0, 0.2, 0.3]), 40
    run = amdp.play(amdp.Game(with_start(SWIM, law), losses="uniform", rounds=rounds), "uniform")
    losses = amdp.Game(SWIM, losses="uniform", rounds=rounds).losses.batch(0, rounds)
    policy = np.full((rounds, *SWIM.shape), 1 / SWIM.shape[2])
    paid = values(SWIM.kernel, policy, losses)[:, 0] @ law
    best = law @ amdp.plan("dp", SWIM, losses.sum(axis=0)).values[0]
    assert run.loss[-1] == pytest.approx(paid.sum())
    assert run.regret[-1] == pytest.approx(paid.sum() - best)


@pytest.mark.parametrize("learner", ["ftpl-shared", "o-reps", "soft-leader"])
@pytest.mark.parametrize("unknown", [False, True])
def test_learners_play_behind_an_entrance(learner: str, unknown: bool) -> None:
    game = amdp.Game(with_start(SWIM, [0.25] * 4), rounds=20, unknown=unknown)
    try:
        rounds = list(amdp.rounds(game, learner))
    except AmdpError:
        assert unknown  # some learners know the transitions
        return
    assert all(record.segment.states[0] == game.world.initial for record in rounds)
    assert len({int(record.segment.states[1]) for record in rounds}) > 1


def test_own_losses_may_be_those_inside_or_those_of_all_places() -> None:
    world, tables = with_start(SWIM, [0.25] * 4), np.random.default_rng(2).random((3, *SWIM.shape))
    inside = amdp.Game(world, losses=tables)
    everywhere = amdp.Game(world, losses=np.ones((3, *world.shape)))
    np.testing.assert_array_equal(inside.losses.batch(0, 3)[:, 1:, :-1], tables)
    assert everywhere.losses.batch(0, 3).all()


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("world", WORLDS[:3], ids=lambda world: world.name)
def test_files_keep_the_distribution(world: Instance, suffix: str, tmp_path: Path) -> None:
    entered = with_start(world, law_of(world))
    save(tmp_path / f"world{suffix}", entered)
    found = load(tmp_path / f"world{suffix}")
    assert isinstance(found, EnteredInstance)
    np.testing.assert_array_equal(found.start, entered.start)
    np.testing.assert_array_equal(found.costs, entered.costs)
    assert amdp.plan("dp", found, found.costs).objective == amdp.plan("dp", entered, entered.costs).objective


def test_a_file_begins_in_one_way(tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", costs=SWIM.costs, p=SWIM.kernel.dense().p, initial=0, start=np.full(4, 0.25))
    with pytest.raises(AmdpError, match="together with initial"):
        load(tmp_path / "both.npz")


@pytest.mark.parametrize(
    ("start", "reason"),
    [([1.0], "4 states"), ([0.5, 0.5, 0.5, 0.0], "sum"), ([0.0] * 4, "all zero"), ([2.0, -1.0, 0.0, 0.0], "negative")],
)
def test_what_is_no_distribution_is_refused(start: list[float], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        with_start(SWIM, start)


def test_one_entrance_is_enough() -> None:
    with pytest.raises(InvalidInput, match="already"):
        with_start(with_start(SWIM, [0.25] * 4), [0.2] * 5)
