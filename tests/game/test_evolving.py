"""Kernels that change: each round is played and charged under its own, and under one kernel nothing is new."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import plain_values, random_rows

from amdp import InvalidInput, Kernel, MarkovPolicies
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.game.arenas import Arena, Episodic, Evolving
from amdp.game.blocks import RoundList
from amdp.game.delays import fixed
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses

SHAPE = (3, 3, 2)
ROUNDS = 30


def kernels(count: int, seed: int = 1) -> tuple[Kernel, ...]:
    rng = np.random.default_rng(seed)
    return tuple(Kernel(random_rows(SHAPE, rng)) for _ in range(count))


def tables(seed: int = 2) -> FixedLosses:
    return FixedLosses(np.random.default_rng(seed).random((ROUNDS, *SHAPE)))


def rounds(arena: Arena) -> list[Round]:
    domain = MarkovPolicies(arena.kernel, arena.initial)
    return list(play_rounds(ArenaGame(arena, tables()), Ftpl.tuned(domain, ROUNDS), domain, Streams.from_seed(3)))


def test_one_kernel_all_the_time_is_the_episodic_arena() -> None:
    (kernel,) = kernels(1)
    for arena in (
        Evolving((kernel,), np.zeros(ROUNDS, np.int64), 1),
        Evolving((kernel,) * 2, np.arange(ROUNDS) % 2, 1),
    ):
        for one, other in zip(rounds(arena), rounds(Episodic(kernel, 1)), strict=True):
            assert_array_equal(one.policy, other.policy)
            assert_array_equal(one.segment.states, other.segment.states)
            assert one.paid == other.paid


def test_each_round_is_played_under_its_kernel() -> None:
    # Kernel i moves every state by i, whatever is done: the path tells which one it was.
    moves = tuple(Kernel.homogeneous(np.stack([np.roll(np.eye(3), i, axis=1)] * 2, axis=1), 3) for i in range(3))
    schedule = np.random.default_rng(5).integers(3, size=ROUNDS)
    for one, kernel in zip(rounds(Evolving(moves, schedule)), schedule, strict=True):
        assert_array_equal(one.segment.states, np.arange(3) * kernel % 3)


def test_each_round_is_charged_under_its_kernel() -> None:
    several, schedule = kernels(3), np.random.default_rng(6).integers(3, size=ROUNDS)
    arena, losses = Evolving(several, schedule, 2), tables()
    played = rounds(arena)
    paid = arena.charged(RoundList(played[4:]), losses)
    for one, charge in zip(played[4:], paid, strict=True):
        domain = MarkovPolicies(several[schedule[one.k]], 2)
        assert_allclose(charge, plain_values(domain, losses[one.k], one.policy.argmax(axis=2))[0, 2])


def test_the_first_kernel_is_the_arenas() -> None:
    several = kernels(2)
    arena = Evolving(several, np.array([1, 0]))
    assert arena.kernel is several[1]
    assert arena.domain.dynamics is several[1]


def test_sums_of_losses_are_refused_where_kernels_change() -> None:
    arena = Evolving(kernels(2), np.arange(ROUNDS) % 2)
    game, domain = ArenaGame(arena, tables()), arena.domain
    with pytest.raises(InvalidInput, match=r"measure with amdp\.game\.dynamic_regret"):
        measure(game, play_rounds(game, Ftpl.tuned(domain, ROUNDS), domain, Streams.from_seed(1)))


def test_what_does_not_fit_is_refused() -> None:
    (kernel,) = kernels(1)
    with pytest.raises(InvalidInput, match=r"schedule\[1\] = 2; there are 1 kernels"):
        Evolving((kernel,), np.array([0, 2]))
    with pytest.raises(InvalidInput, match="schedule must be a list of whole numbers"):
        Evolving((kernel,), np.array([0.0, 0.0]))
    with pytest.raises(InvalidInput, match="an arena has one"):
        Evolving((kernel, Kernel(random_rows((2, 3, 2), np.random.default_rng(1)))), np.array([0, 1]))
    with pytest.raises(InvalidInput, match="schedule has 5 rounds; the losses have 30"):
        ArenaGame(Evolving((kernel,), np.zeros(5, np.int64)), tables())
    with pytest.raises(InvalidInput, match="29 delays for 30 rounds"):
        ArenaGame(Evolving((kernel,), np.zeros(ROUNDS, np.int64)), tables(), fixed(29, 1))
    with pytest.raises(InvalidInput, match="initial"):
        Evolving((kernel,), np.zeros(ROUNDS, np.int64), 3)


def test_the_schedule_is_kept_from_change() -> None:
    schedule = np.zeros(ROUNDS, np.int64)
    arena = Evolving(kernels(2), schedule)
    schedule[0] = 1
    assert arena.schedule[0] == 0
    assert not arena.schedule.flags.writeable
