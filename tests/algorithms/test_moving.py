"""Losses that move: the learners' invariants, their bounds against sequences, and what a wrong variant pays."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose

import amdp
from amdp import Kernel
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import FullInformation, Weights
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.named import learner
from amdp.algorithms.occupancy.measures import MirrorDescent
from amdp.algorithms.occupancy.moving import Ensemble, FixedShare, GuessingShare, WeightedMeasures
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.instances import Instance
from amdp.model.segments import NOWHERE

K = 200
WORLD = amdp.instances.build("tiny")
RNG = np.random.default_rng(0)


def told(table: Floats, weights: Weights | None = None) -> FullInformation:
    return FullInformation(NOWHERE, weights or Weights(np.empty(0)), table)


def tables(rounds: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).random((rounds, *WORLD.shape))


def switching(rounds: int, every: int) -> amdp.Game:
    """What was best becomes worst, again and again: each change is one of the best policy."""
    return amdp.Game(WORLD, {"name": "swap", "first": every, "growth": 1.0}, rounds)


# --- one rate --------------------------------------------------------------------------------------------------------


def test_a_prior_is_the_mean_of_the_last_measure_and_the_first_and_an_occupancy_measure() -> None:
    share = 0.1
    player = FixedShare(0.5, WholeTable(), share=share)
    state = player.start(WORLD.domain, RNG)
    first = np.exp(state.first)
    for table in tables(5):
        played = state.occupancy
        state = player.observe(state, NOWHERE)  # type: ignore[assignment]
        prior = np.exp(state.prior)
        assert_allclose(prior, (1 - share) * played + share * first, atol=1e-12)
        states = prior.sum(axis=-1, keepdims=True)
        policy = np.divide(prior, states, out=np.full(prior.shape, 0.5), where=states > 0.0)
        assert_allclose(WORLD.kernel.occupancy(policy[None], WORLD.initial)[0], prior, atol=1e-9)
        state = player.learn(state, told(table))  # type: ignore[assignment]


def test_without_a_share_it_is_mirror_descent() -> None:
    plain, shared = MirrorDescent(0.3, WholeTable()), FixedShare(0.3, WholeTable())
    states = [player.start(WORLD.domain, RNG) for player in (plain, shared)]
    for table in tables(6):
        assert_allclose(states[0].draw(RNG), states[1].draw(RNG), atol=1e-9)  # they start Newton from other prices
        states = [
            player.learn(player.observe(state, NOWHERE), told(table))
            for player, state in zip((plain, shared), states, strict=True)
        ]


def test_a_single_step_is_fixed_share_over_experts() -> None:
    """One state, one step: `w ~ ((1 - share) w + share / n) exp(-rate l)`, by the textbook."""
    world = Instance("arms", Kernel.homogeneous(np.ones((1, 3, 1)), 1), np.zeros((1, 1, 3)))
    player, losses = FixedShare(0.7, WholeTable(), share=0.2), np.random.default_rng(3).random((8, 3))
    state, weights = player.start(world.domain, RNG), np.full(3, 1 / 3)
    for loss in losses:
        assert_allclose(state.draw(RNG)[0, 0], weights, atol=1e-8)
        weights = (0.8 * weights + 0.2 / 3) * np.exp(-0.7 * loss)
        weights /= weights.sum()
        state = player.learn(player.observe(state, NOWHERE), told(loss.reshape(1, 1, 3)))  # type: ignore[assignment]


@pytest.mark.parametrize("changes", [0, 1, 7])
def test_regret_against_sequences_is_below_the_bound(changes: int) -> None:
    """Full information: the regret is no expectation, and the bound must hold in every game."""
    game = switching(K, K // (changes + 1))
    edges = [*range(0, K, K // (changes + 1)), K] if K % (changes + 1) else list(range(0, K + 1, K // (changes + 1)))
    for name in ("o-reps-fixed-share", "do-reps"):
        run = amdp.play(game, name)
        bound = run.match.learner.bound(game.domain, K, 0, changes)  # type: ignore[attr-defined]
        found = run.dynamic(edges).against
        assert found[min(changes, len(found) - 1)] < bound.total


def test_who_never_comes_back_fails_where_those_who_do_stay_below_the_bound() -> None:
    """Long phases: plain mirror descent needs as long to turn around as it went before, and pays for it."""
    game = switching(1200, 300)
    wrong = amdp.play(game, FixedShare(2.0, WholeTable(), share=0.0)).dynamic(4).against[3]
    right = FixedShare(2.0, WholeTable(), share=1 / 1201)
    found = amdp.play(game, right).dynamic(4).against[3]
    bound = right.bound(game.domain, 1200, 0, 3)
    assert bound is not None
    assert found < 0.2 * wrong
    assert FixedShare(2.0, WholeTable()).bound(game.domain, 1200, 0, 3).total == np.inf  # type: ignore[union-attr]
    assert found < bound.total


# --- a grid ----------------------------------------------------------------------------------------------------------


def test_the_played_policy_has_the_mean_of_the_members_occupancies() -> None:
    player = learner("do-reps", WORLD.domain, K)
    assert isinstance(player, Ensemble)
    state = player.start(WORLD.domain, RNG)
    for table in tables(6):
        weights = player.weigh(state, NOWHERE, RNG)
        played = WORLD.kernel.occupancy(state.draw(RNG)[None], WORLD.initial)[0]
        assert_allclose(played, np.tensordot(state.chances, state.occupancies, axes=1), atol=1e-8)
        state = player.learn(player.observe(state, NOWHERE), told(table, weights))
    assert isinstance(state, WeightedMeasures)
    assert_allclose(state.chances.sum(), 1.0)


def test_members_play_as_they_would_alone_and_weights_are_exponential_in_their_losses() -> None:
    player = learner("do-reps", WORLD.domain, K)
    assert isinstance(player, Ensemble)
    alone, state = player.members[3], player.start(WORLD.domain, RNG)
    own, paid = alone.start(WORLD.domain, RNG), np.zeros(len(player.members))
    for table in tables(5):
        assert_allclose(state.members[3].occupancy, own.occupancy, atol=1e-12)
        paid += [(member.occupancy * table).sum() for member in state.members]
        weights = player.weigh(state, NOWHERE, RNG)
        state = player.learn(player.observe(state, NOWHERE), told(table, weights))
        own = alone.learn(alone.observe(own, NOWHERE), told(table))  # type: ignore[assignment]
    expected = np.exp(-float(player.choosing) * paid)  # type: ignore[arg-type]
    assert_allclose(state.chances, expected / expected.sum())


def test_the_grid_reaches_from_no_change_to_a_change_in_every_round() -> None:
    player = learner("do-reps", WORLD.domain, K)
    assert isinstance(player, Ensemble)
    rates, pairs = [member.rate for member in player.members], WORLD.shape[1] * WORLD.shape[2]
    assert rates[0] == pytest.approx(np.sqrt(2 * (log(pairs) + 1) / K))
    assert_allclose(np.diff(np.log2(rates)), 1.0)
    always = np.sqrt(2 * (K * log(pairs) + (K - 1) * log(K + 1) + 1) / K)
    assert rates[-2] < always <= rates[-1]
    for changes in range(0, K, 13):  # the best of the grid costs at most 7 % more than the best rate of all
        bound = player.bound(WORLD.domain, K, 0, changes)
        assert bound is not None
        assert bound.penalty + bound.stability < 1.07 * 2 * np.sqrt(_distance(changes) * WORLD.shape[0] * K / 2)


def _distance(changes: int) -> float:
    pairs = WORLD.shape[1] * WORLD.shape[2]
    return WORLD.shape[0] * ((changes + 1) * log(pairs) + changes * log(K + 1) + K * log(1 + 1 / K))


def test_it_follows_changes_that_a_single_rate_for_none_does_not() -> None:
    game = switching(400, 50)
    runs = {name: amdp.play(game, name).dynamic(8).against[7] for name in ("do-reps", "o-reps-full")}
    assert runs["do-reps"] < 0.5 * runs["o-reps-full"]


def test_delayed_losses_are_charged_to_the_measures_of_their_round() -> None:
    player = learner("do-reps", WORLD.domain, K)
    assert isinstance(player, Ensemble)
    first, second = tables(2)
    state = player.start(WORLD.domain, RNG)
    weights = player.weigh(state, NOWHERE, RNG)
    expected = [(member.occupancy * second).sum() for member in state.members]
    later = player.learn(player.observe(state, NOWHERE), told(first, weights))
    late = player.learn(player.observe(later, NOWHERE), told(second, weights))
    assert_allclose(late.incurred - later.incurred, expected)


# --- guesses ---------------------------------------------------------------------------------------------------------


def test_a_right_guess_is_played_as_if_it_were_told() -> None:
    """Who knows the losses before the round plays what the others play after it, had they begun from the same prior."""
    losses = tables(5)
    knowing = GuessingShare(0.4, WholeTable(), share=0.1, guess=lambda k, table: losses[min(k, 4)])
    state = knowing.start(WORLD.domain, RNG)
    for table in losses:
        played = state.occupancy
        state = knowing.learn(knowing.observe(state, NOWHERE), told(table))  # type: ignore[assignment]
        settled = state.settled.measure  # from the prior that is mixed; the share makes the difference
        assert np.abs(played - settled).max() < 0.1
    exact = replace(knowing, share=0.0)
    state = exact.start(WORLD.domain, RNG)
    for table in losses:
        played = state.occupancy
        state = exact.learn(exact.observe(state, NOWHERE), told(table))  # type: ignore[assignment]
        assert_allclose(state.settled.measure, played, atol=1e-7)


def test_guesses_help_where_losses_repeat() -> None:
    game = switching(400, 50)
    plain, guessed = (amdp.play(game, name).regret[-1] for name in ("do-reps", "do-reps-optimistic"))
    assert guessed < plain


# --- refusals --------------------------------------------------------------------------------------------------------


def test_wrong_parts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="share"):
        FixedShare(0.1, WholeTable(), share=1.0)
    with pytest.raises(InvalidInput, match="full information"):
        FixedShare(0.1, ImportanceWeighting())
    with pytest.raises(InvalidInput, match="members"):
        Ensemble((), 0.1)
    with pytest.raises(InvalidInput, match="rates"):
        learner("do-reps", WORLD.domain, K, rates=0)
    player = learner("do-reps", WORLD.domain, K)
    with pytest.raises(InvalidInput, match="its `weigh` gave"):
        player.learn(player.start(WORLD.domain, RNG), told(tables(1)[0]))
    with pytest.raises(InvalidInput, match="comparators play all"):
        amdp.play(switching(20, 5), "do-reps", checkpoints=[10]).dynamic()
