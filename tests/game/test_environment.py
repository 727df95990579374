"""The Gymnasium environment is the episodic arena, seen by an agent from outside."""

import math
import subprocess
import sys

import numpy as np
import pytest
from gymnasium import make as gymnasium_make
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics

import amdp
from amdp import instances, losses
from amdp.algorithms.estimators.resampling import SharedResampling
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.game import delays
from amdp.game.arenas import Continuing, Episodic
from amdp.game.environment import AdversaryEnv, make, regret_of
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.transitions import SingleKernel

SHAPE = (4, 5, 3)
ROUNDS = 40


def dense() -> amdp.Kernel:
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(SHAPE[1], 0.4), size=(*SHAPE,))
    p[0, 0, 0] = np.eye(SHAPE[1])[4]  # a sure move, with chances of 0 before and none after it
    return amdp.Kernel(p)


def sparse() -> amdp.SparseKernel:
    kernel = dense()
    return amdp.SparseKernel([kernel.matrix(h) for h in range(SHAPE[0])])


def game_of(kernel: SingleKernel, rounds: int = ROUNDS) -> ArenaGame:
    return ArenaGame(Episodic(kernel, 2), losses.uniform(rounds, kernel.shape, 7))


def policy_of(seed: int, concentration: float = 1.0) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(SHAPE[2], concentration), size=SHAPE[:2])


def acts(env: AdversaryEnv, policy: Floats, choices: Floats) -> tuple[list[int], list[int], float]:
    """Follow a policy to the end of a round; `choices[h]` decides the action. The states, the actions, the return."""
    steps, states, _ = env.kernel.shape
    observation, total, seen, done = env.game.arena.initial, 0.0, [], False
    seen_actions = []
    for h in range(steps):
        assert not done
        step, state = env.place(observation)
        assert step == h
        cumulative = np.cumsum(policy[h, state])
        action = int(np.searchsorted(cumulative, choices[h] * cumulative[-1], side="right"))
        seen.append(state)
        seen_actions.append(action)
        observation, reward, done, truncated, info = env.step(action)
        total += reward
        assert not truncated
        assert info["loss"] == -reward
        assert info["paid"] == pytest.approx(-total)
    assert done
    assert observation == steps * states
    return seen, seen_actions, total


@pytest.mark.parametrize("world", ["tiny", "inventory", "random-sparse"])
def test_gymnasium_finds_nothing_to_complain_about(world: str) -> None:
    check_env(gymnasium_make("amdp.game.environment:amdp/Adversary-v0", instance=world, rounds=20).unwrapped)


@pytest.mark.parametrize("kernel", [dense(), sparse()], ids=["dense", "sparse"])
def test_the_same_seed_is_the_luck_of_the_arena(kernel: SingleKernel) -> None:
    env, streams, uniforms = AdversaryEnv(game_of(kernel)), Streams.from_seed(5), Streams.from_seed(5).arena
    env.reset(seed=5)
    for k in range(ROUNDS):
        policy = policy_of(k)
        segment = env.game.arena.visit(env.game.arena.begin(), policy, streams.arena).segment
        states, actions, total = acts(env, policy, uniforms.random((SHAPE[0], 2))[:, 0])
        assert states == segment.states.tolist()
        assert actions == segment.actions.tolist()
        assert total == pytest.approx(-env.game.table(k)[segment.places].sum())
        env.reset()


def test_a_learner_meets_the_same_rounds_inside_and_outside() -> None:
    game = game_of(dense())
    learner = Ftpl.tuned(game.arena.domain, ROUNDS, resampling=SharedResampling)
    env = AdversaryEnv(game)
    env.reset(seed=3)
    for one in play_rounds(game, learner, game.arena.domain, Streams.from_seed(3)):
        states, _, total = acts(env, one.policy, np.full(SHAPE[0], 0.5))  # its policies are deterministic
        assert states == one.segment.states.tolist()
        assert -total == pytest.approx(one.paid)
        env.reset()


def test_a_policy_pays_and_visits_what_it_is_expected_to() -> None:
    # Hoeffding over 1 + 60 means with 1e-6 in all: the false-alarm rate. It catches moves drawn from another row,
    # another step's losses, and actions that are shifted by one.
    n, alarm = 6_000, 1e-6 / 61
    table = losses.uniform(1, SHAPE, 1)[0]
    env = AdversaryEnv(ArenaGame(Episodic(dense(), 2), losses.repeated(table, n)))
    policy, rng = policy_of(11), np.random.default_rng(12)
    env.reset(seed=1)
    visits, paid = np.zeros(SHAPE), 0.0
    for _ in range(n):
        states, actions, total = acts(env, policy, rng.random(SHAPE[0]))
        visits[np.arange(SHAPE[0]), states, actions] += 1 / n
        paid -= total / n
        env.reset()
    margin = math.sqrt(math.log(2 / alarm) / (2 * n))
    expected = amdp.occupancy(dense(), policy[None], 2)[0]
    assert np.abs(visits - expected).max() <= margin
    assert abs(paid - (expected * table).sum()) <= SHAPE[0] * margin


class Zeros(np.random.Generator):
    """The smallest luck there is."""

    def random(self, size: tuple[int, int]) -> Floats:  # type: ignore[override]
        return np.zeros(size)


def test_a_move_without_chance_is_never_made() -> None:
    env = AdversaryEnv(ArenaGame(Episodic(dense(), 0), losses.uniform(1, SHAPE, 7)))
    env.np_random = Zeros(np.random.PCG64(1))
    env.reset()
    assert env.step(0)[-1]["state"] == 4


def test_rounds_follow_one_another_and_begin_again() -> None:
    env = AdversaryEnv(game_of(dense(), rounds=3))
    assert [env.reset()[1]["round"] for _ in range(5)] == [0, 1, 2, 0, 1]
    assert env.reset(options={"round": 2})[1]["round"] == 2
    assert env.reset()[1]["round"] == 0
    assert env.reset()[1]["round"] == 1
    assert env.reset(seed=4)[1]["round"] == 0


def test_a_seed_decides_everything() -> None:
    def seen(seed: int) -> list[tuple[int, float]]:
        env = AdversaryEnv(game_of(dense()))
        observations = [(env.reset(seed=seed)[0], 0.0)]
        for _ in range(5):
            observations += [env.step(1)[:2] for _ in range(SHAPE[0])]
            observations.append((env.reset()[0], 0.0))
        return observations

    assert seen(8) == seen(8)
    assert seen(8) != seen(9)


def test_the_regret_of_paid_losses_is_the_measured_one() -> None:
    game = game_of(dense())
    learner = Ftpl.tuned(game.arena.domain, ROUNDS, resampling=SharedResampling)
    rounds = list(play_rounds(game, learner, game.arena.domain, Streams.from_seed(3)))
    inside = measure(game, rounds, checkpoints=[10, ROUNDS])
    outside = regret_of(game, [one.paid for one in rounds], checkpoints=[10, ROUNDS])
    assert np.array_equal(outside.rounds, inside.rounds)
    assert np.allclose(outside.best, inside.best)
    assert np.allclose(outside.best_bound, inside.best_bound)
    assert np.allclose(outside.paid, np.cumsum([one.paid for one in rounds])[[9, ROUNDS - 1]])
    assert (outside.trials == 0).all()


def test_the_best_policy_of_all_has_no_regret_but_luck() -> None:
    # Sums of 4000 independent episodes of [0, 4]: Hoeffding, false-alarm rate 1e-6. It catches a wrong comparator, and
    # losses that are added with the wrong sign.
    n = 4_000
    env = make("tiny", "nominal", n, seed=1)
    best = amdp.plan("dp", env.game.arena.domain, env.game.table(0))
    steps = env.kernel.shape[0]
    paid = []
    env.reset(seed=2)
    for _ in range(n):
        observation, done = env.game.arena.initial, False
        while not done:
            h, s = env.place(observation)
            observation, _, done, _, info = env.step(int(best.actions[h, s]))
        paid.append(info["paid"])
        env.reset()
    regret = regret_of(env.game, paid, checkpoints=[n])
    assert abs(regret.low[-1]) <= steps * math.sqrt(n * math.log(2 / 1e-6) / 2)
    assert regret.best[-1] == pytest.approx(n * best.objective)


def test_gymnasium_records_what_the_regret_needs() -> None:
    env = RecordEpisodeStatistics(make("tiny", rounds=10), buffer_length=10)
    paid = []
    env.reset(seed=1)
    for _ in range(10):
        done = False
        while not done:
            _, _, done, _, info = env.step(0)
        paid.append(info["paid"])
        env.reset()
    assert np.allclose(-np.array(env.return_queue), paid)


def test_what_cannot_be_played_is_refused() -> None:
    env = AdversaryEnv(game_of(dense()))
    with pytest.raises(InvalidInput, match="call reset"):
        env.step(0)
    env.reset()
    for action in (-1, SHAPE[2], 0.5):
        with pytest.raises(InvalidInput, match="action"):
            env.step(action)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="round = 40"):
        env.reset(options={"round": ROUNDS})
    with pytest.raises(InvalidInput, match="no option 'seed'"):
        env.reset(options={"seed": 1})
    with pytest.raises(InvalidInput, match="observation = 20"):
        env.place(20)
    with pytest.raises(InvalidInput, match="at once"):
        AdversaryEnv(ArenaGame(env.game.arena, env.game.losses, delays.fixed(ROUNDS, 1)))
    with pytest.raises(InvalidInput, match="give one for each round"):
        regret_of(env.game, np.zeros(ROUNDS + 1))
    with pytest.raises(InvalidInput, match="paid"):
        regret_of(env.game, [0.0, math.nan])


def test_an_unbroken_stream_has_no_episodes() -> None:
    world = instances.waiting_ring(n_steps=30, n_states=3)
    stream = ArenaGame(Continuing(PolicySwitching(world.kernel), 30), losses.uniform(30, (1, *world.shape[1:]), 1))
    with pytest.raises(InvalidInput, match="Continuing"):
        AdversaryEnv(stream)
    with pytest.raises(InvalidInput, match="Continuing"):
        regret_of(stream, [1.0])


def test_without_gymnasium_the_remedy_is_named() -> None:
    code = "import sys; sys.modules['gymnasium'] = None\nimport amdp.game.environment"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'MissingDependency: amdp.game.environment needs gymnasium: pip install "amdp[gym]"' in done.stderr
