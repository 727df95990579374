"""Learners whose rate falls as `1/sqrt(k)`: what they play, and that no round knows how many there are."""

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import amdp
from amdp import InvalidInput, MarkovPolicies
from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.importance_weighting import FallingExploration, ImportanceWeighting
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.named import learner as named
from amdp.algorithms.occupancy.measures import MirrorDescent, RegularizedLeader
from amdp.algorithms.policy_optimization.learners import Evaluation, PolicyOptimization
from amdp.algorithms.rates import AdaptiveRate, Rate, RootRate
from amdp.arrays import Floats
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses

SHAPE = (2, 2, 2)
KNOWN = ("o-reps-full-anytime", "o-reps-ix-anytime", "hedge-anytime", "oppo-full-anytime")
IN_BOXES = ("uob-reps-anytime", "uc-o-reps-bernstein-anytime", "oppo-full-anytime")
Make = Callable[[Rate | float], RegularizedLeader | Hedge | PolicyOptimization]
MAKERS: dict[str, Make] = {
    "leader, full": lambda rate: RegularizedLeader(rate, WholeTable()),
    "leader, bandit": lambda rate: RegularizedLeader(rate, ImportanceWeighting()),
    "hedge": lambda rate: Hedge(rate, WholeTable()),
    "policy optimization": lambda rate: PolicyOptimization(rate, Evaluation(WholeTable())),
}


def domain_of() -> MarkovPolicies:
    return MarkovPolicies(amdp.Kernel(np.random.default_rng(1).dirichlet(np.ones(2), size=SHAPE)))


def played(learner: Learner[Any], rounds: int) -> list[Floats]:
    tables = FixedLosses(np.random.default_rng(3).random((rounds, *SHAPE)))
    game = ArenaGame(Episodic(domain_of().dynamics), tables, None, learner.feedback)  # type: ignore[arg-type]
    return [one.policy for one in play_rounds(game, learner, domain_of(), Streams.from_seed(1))]


def test_the_rate_counts_what_arrived() -> None:
    rate: Rate = RootRate(3.0)
    for k in range(1, 6):
        assert rate.value == pytest.approx(3.0 / sqrt(k))
        rate = rate.after(lambda: pytest.fail("it needs no gap"))
    for wrong in (-1.0, np.nan):
        with pytest.raises(InvalidInput, match="rate"):
            RootRate(wrong)


@pytest.mark.parametrize("kind", ["leader, full", "hedge"])
def test_round_k_plays_what_a_fixed_rate_of_that_size_would(kind: str) -> None:
    """With full information these leaders depend on the sum of losses and the present rate alone."""
    falling = played(MAKERS[kind](RootRate(0.8)), 9)
    for k in (1, 4, 9):
        fixed = played(MAKERS[kind](0.8 / sqrt(k)), 9)
        assert_allclose(falling[k - 1], fixed[k - 1], atol=1e-8)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_rate_that_falls_is_not_a_fixed_one(kind: str) -> None:
    falling, fixed = (played(MAKERS[kind](rate), 6) for rate in (RootRate(2.0), 2.0))
    assert_array_equal(falling[0], fixed[0])
    assert any((one != other).any() for one, other in zip(falling, fixed, strict=True))


@pytest.mark.parametrize("name", KNOWN)
def test_no_round_knows_how_many_there_are(name: str) -> None:
    short, long = (played(named(name, domain_of(), rounds), 5) for rounds in (10, 10**6))
    assert_array_equal(short, long)


@pytest.mark.parametrize("name", IN_BOXES)
def test_over_boxes(name: str) -> None:
    run = amdp.play(amdp.Game("tiny", rounds=30, unknown=True, radius_scale=0.05), name, seed=1)
    assert run.rounds[-1] == 30
    assert run.bound is None


@pytest.mark.parametrize("name", KNOWN)
def test_regret_is_below_the_bound_and_uniform_play(name: str) -> None:
    """Regrets are a quarter of the bound or less, and a ninth of uniform play's: an alarm is a defect."""
    game = amdp.Game(amdp.instances.random_dense(3, 2, 2, np.random.default_rng(5)), losses="bernoulli", rounds=3000)
    run, uniform = amdp.play(game, name, seed=1), amdp.play(game, "uniform", seed=1)
    assert run.bound is not None
    assert run.regret[-1] < 0.5 * run.bound
    assert run.regret[-1] < 0.3 * uniform.regret[-1]


def test_the_bounds_are_least_at_the_rates_of_theory() -> None:
    domain, rounds = domain_of(), 900
    for name in ("o-reps-full-anytime", "hedge-anytime"):
        low, theory, high = (bound_of(name, domain, rounds, multiplier) for multiplier in (0.5, 1.0, 2.0))
        assert theory < min(low, high)
    steps, states, actions = SHAPE
    expected = 2 * steps * sqrt(rounds * log(states * actions))
    assert bound_of("o-reps-full-anytime", domain, rounds, 1.0) == pytest.approx(expected)


def bound_of(name: str, domain: MarkovPolicies, rounds: int, multiplier: float) -> float:
    player: Any = named(name, domain, rounds, multiplier=multiplier)
    return float(player.bound(domain, rounds).total)


def test_gamma_falls_with_the_rate_and_the_multiplier_leaves_it() -> None:
    domain = domain_of()
    for multiplier in (1.0, 5.0):
        player = named("o-reps-ix-anytime", domain, 10, multiplier=multiplier)
        assert isinstance(player, RegularizedLeader)
        assert isinstance(player.rate, RootRate)
        assert isinstance(player.estimator, FallingExploration)
        gamma = player.estimator.ratio * player.rate.scale
        assert gamma == pytest.approx(0.5 * sqrt(log(2 * 2 * 16 / 0.01) / 4))


def test_who_cannot_restate_its_losses_refuses_a_rate_that_falls() -> None:
    with pytest.raises(InvalidInput, match="RegularizedLeader"):
        MirrorDescent(RootRate(1.0), WholeTable())
    for make in (MAKERS["hedge"], MAKERS["policy optimization"]):
        with pytest.raises(InvalidInput, match="gaps"):
            make(AdaptiveRate(1.0))
