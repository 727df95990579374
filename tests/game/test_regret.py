"""Regret against brute force, its checkpoints, and the bound of the theorems."""

from itertools import product
from math import e, log, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import plain_values, random_kernel, random_rows

from amdp import InvalidInput, Kernel, MarkovPolicies
from amdp.algorithms.bounds import ftpl_bound
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, LiteralFtpl
from amdp.arrays import Floats
from amdp.game.arenas import Episodic
from amdp.game.blocks import BLOCK
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import log_checkpoints, measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses

SHAPE = (3, 2, 2)


def world(rounds: int, seed: int = 1) -> tuple[ArenaGame, MarkovPolicies]:
    rng = np.random.default_rng(seed)
    kernel = Kernel(random_rows(SHAPE, rng))
    return ArenaGame(Episodic(kernel), FixedLosses(rng.random((rounds, *SHAPE)))), MarkovPolicies(kernel)


def rounds_of(game: ArenaGame, domain: MarkovPolicies, seed: int = 1) -> list[Round]:
    return list(play_rounds(game, Ftpl.tuned(domain, len(game.losses)), domain, Streams.from_seed(seed)))


def expected_loss(domain: MarkovPolicies, policy: Floats, table: Floats) -> float:
    return float(plain_values(domain, table, policy.argmax(axis=-1))[0, domain.initial])


def cheapest(domain: MarkovPolicies, table: Floats) -> float:
    """By trying all policies."""
    steps, states, actions = domain.shape
    every = product(range(actions), repeat=steps * states)
    return min(
        float(plain_values(domain, table, np.array(one).reshape(steps, states))[0, domain.initial]) for one in every
    )


def test_regret_is_that_of_brute_force_after_every_round() -> None:
    game, domain = world(8)
    rounds = rounds_of(game, domain)
    regret = measure(game, rounds)
    paid, total = 0.0, np.zeros(SHAPE)
    for k, one in enumerate(rounds):
        paid += expected_loss(domain, one.policy, game.losses[k])
        total += game.losses[k]
        assert regret.paid[k] == pytest.approx(paid)
        assert regret.best[k] == pytest.approx(cheapest(domain, total))
        assert regret.low[k] == pytest.approx(paid - cheapest(domain, total))
    assert_array_equal(regret.rounds, np.arange(1, 9))
    assert_array_equal(regret.trials, np.cumsum([one.trials for one in rounds]))
    assert all(one.plans == one.trials + 1 for one in rounds)
    assert_array_equal(regret.oracle_calls, np.cumsum([one.plans for one in rounds]))
    assert_allclose(regret.learner_seconds, np.cumsum([one.seconds for one in rounds]))
    assert (regret.high >= regret.low - 1e-9).all()
    assert_allclose(regret.high, regret.low, atol=1e-9)


def test_what_is_paid_is_the_expected_loss_and_not_the_luck_of_the_path() -> None:
    game, domain = world(300)
    rounds = rounds_of(game, domain)
    regret = measure(game, rounds)
    realized = np.cumsum([one.paid for one in rounds])
    assert not np.allclose(regret.paid, realized)
    # The difference is a sum of 300 independent centered numbers in [-3, 3]; Hoeffding at 1e-9.
    assert abs(regret.paid[-1] - realized[-1]) < sqrt(2 * 300 * 9 * log(2e9))


@pytest.mark.parametrize("rounds", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_checkpoints_are_rows_of_the_whole_curve_across_blocks(rounds: int) -> None:
    game, domain = world(rounds)
    played = rounds_of(game, domain)
    whole = measure(game, played)
    chosen = log_checkpoints(rounds, 9)
    some = measure(game, iter(played), checkpoints=chosen)
    assert len(whole.rounds) == rounds
    assert_array_equal(some.rounds, chosen)
    for name in ("paid", "best", "best_bound", "trials", "oracle_calls", "learner_seconds"):
        assert_allclose(getattr(some, name), getattr(whole, name)[chosen - 1], rtol=1e-12)
    total = np.sum([game.losses[k] for k in range(rounds)], axis=0)
    assert whole.best[-1] == pytest.approx(cheapest(domain, total))


@pytest.mark.parametrize("oracle", ["lp", "enumeration"])
def test_regret_does_not_depend_on_the_oracle(oracle: str) -> None:
    game, domain = world(20)
    played = rounds_of(game, domain)
    assert_allclose(measure(game, played, oracle).low, measure(game, played).low, atol=1e-9)


def test_spaced_checkpoints_go_from_the_first_round_to_the_last() -> None:
    for rounds in (1, 2, 50, 100_000):
        points = log_checkpoints(rounds)
        assert points[0] == 1
        assert points[-1] == rounds
        assert (np.diff(points) > 0).all()
        assert len(points) <= 50


@pytest.mark.parametrize("checkpoints", [[], [0, 1], [3, 2], [2, 2], [9], [1.5, 2.0], [[1, 2]]])
def test_checkpoints_that_are_not_increasing_rounds_are_refused(checkpoints: Any) -> None:
    game, domain = world(4)
    with pytest.raises(InvalidInput, match=r"checkpoints must (increase, within 1 .. 4|be a list of whole numbers)"):
        measure(game, rounds_of(game, domain), checkpoints=checkpoints)


def test_a_game_without_a_round_at_a_checkpoint_is_refused() -> None:
    game, domain = world(4)
    with pytest.raises(InvalidInput, match="no round was played"):
        measure(game, [])
    with pytest.raises(InvalidInput, match="no round was played at a checkpoint"):
        measure(game, rounds_of(game, domain)[:2], checkpoints=[4])


@pytest.mark.parametrize("order", [[0, 0, 1], [1, 2, 3], [0, 2, 1], [0, 1, 3]])
def test_rounds_that_are_missing_or_given_twice_are_refused(order: list[int]) -> None:
    game, domain = world(4)
    played = rounds_of(game, domain)
    with pytest.raises(InvalidInput, match="give all, once"):
        measure(game, [played[k] for k in order])


# --- the bound --------------------------------------------------------------------------------------------------------


def test_bound_with_the_theorems_parameters_is_the_theorems_bound() -> None:
    # H^{3/2} sqrt(SAK) (1/e + 2 (1 + ln SA) + 3), but for the rounding of the limit.
    steps, states, actions, rounds = 4, 5, 3, 60_000
    domain = MarkovPolicies(random_kernel("dense", (steps, states, actions), np.random.default_rng(0)))
    tuned = Ftpl.tuned(domain, rounds)
    assert isinstance(tuned.perturbation, Laplace)
    assert isinstance(tuned.estimator, GeometricResampling)
    bound = ftpl_bound(domain.shape, rounds, tuned.perturbation.rate, tuned.estimator.limit)
    unit = steps**1.5 * sqrt(states * actions * rounds)
    assert bound.resampling == pytest.approx(unit / e, rel=0.01)
    assert bound.error == pytest.approx(2 * unit * (1 + log(states * actions)))
    assert bound.stability == pytest.approx(3 * unit)
    assert bound.total == bound.resampling + bound.error + bound.stability
    late = ftpl_bound(domain.shape, rounds, tuned.perturbation.rate, tuned.estimator.limit, rounds)
    assert late.stability == pytest.approx(4 * unit)  # 3K + D with D = K
    assert (late.resampling, late.error) == (bound.resampling, bound.error)
    with pytest.raises(InvalidInput, match="rate must be above 0"):
        ftpl_bound(domain.shape, rounds, 0.0, 1)


def bandit_regret(kind: type[Ftpl], rounds: int, seed: int) -> Floats:
    """Two arms that always cost 0.6 and 0.4: the regret after half of the rounds, and after all."""
    kernel = Kernel(np.ones((1, 1, 2, 1)))
    domain = MarkovPolicies(kernel)
    losses = FixedLosses(np.broadcast_to(np.array([0.6, 0.4]), (rounds, 1, 1, 2)))
    game = ArenaGame(Episodic(kernel), losses)
    tuned = kind.tuned(domain, rounds, resampling=SharedResampling)
    return measure(
        game, play_rounds(game, tuned, domain, Streams.from_seed(seed)), checkpoints=[rounds // 2, rounds]
    ).low


def test_fresh_noise_settles_on_the_better_arm_and_literal_noise_goes_on_paying() -> None:
    # Second half over first half: about 0.2 with fresh noise and 1 with the literal one, each with a standard error
    # of about 0.05 over six seeds.
    ratio = {}
    for kind in (Ftpl, LiteralFtpl):
        half, whole = np.sum([bandit_regret(kind, 1500, seed) for seed in range(6)], axis=0)
        ratio[kind] = (whole - half) / half
    assert ratio[Ftpl] < 0.5
    assert ratio[LiteralFtpl] > 0.75


def test_regret_grows_more_slowly_than_the_rounds() -> None:
    # The slope between the two is about 0.6, with a standard error of 0.05 over four seeds.
    short, long = (np.mean([bandit_regret(Ftpl, rounds, seed)[1] for seed in range(4)]) for rounds in (200, 2000))
    assert log(long / short) / log(10) < 0.85
