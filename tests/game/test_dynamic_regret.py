"""Comparators that change their policy: by trying all policies, all cuts, and all sequences."""

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from worlds import all_policies, plain_values, random_rows, seeds

import amdp
from amdp import InvalidInput, Kernel, MarkovPolicies
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.arrays import Floats
from amdp.game.arenas import Episodic, Evolving, Stepwise
from amdp.game.dynamic_regret import best_each_round, best_sequences, even_edges, interval_costs, measure_dynamic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses

SHAPE = (2, 2, 2)
ROUNDS = 12
EDGES = [0, 2, 3, 7, 12]


def game(kernels: int, seed: int = 1, initial: int = 1) -> ArenaGame:
    """Episodes under so many kernels."""
    rng = np.random.default_rng(seed)
    made = tuple(Kernel(random_rows(SHAPE, rng)) for _ in range(kernels))
    losses = FixedLosses(rng.random((ROUNDS, *SHAPE)))
    if kernels == 1:
        return ArenaGame(Episodic(made[0], initial), losses)
    return ArenaGame(Evolving(made, rng.integers(kernels, size=ROUNDS), initial), losses)


def all_costs(played: ArenaGame) -> Floats:
    """What every policy pays in every round, `[n, k]`, by the textbook recursion."""
    arena = played.arena
    of_round = [arena.kernels[i] for i in arena.schedule] if isinstance(arena, Evolving) else [arena.kernel] * ROUNDS
    return np.array(
        [
            [
                plain_values(MarkovPolicies(kernel), played.table(k), policy)[0, arena.initial]
                for k, kernel in enumerate(of_round)
            ]
            for policy in all_policies(SHAPE)
        ]
    )


@pytest.mark.parametrize("kernels", [1, 2, 3])
def test_an_interval_costs_what_its_best_policy_pays(kernels: int) -> None:
    played = game(kernels)
    costs, found = all_costs(played), interval_costs(played, EDGES)
    for (i, first), (j, last) in combinations(enumerate(EDGES), 2):
        assert_allclose(found[i, j], costs[:, first:last].sum(axis=1).min())
    assert np.isinf(found[np.tril_indices(len(EDGES))]).all()


def test_a_run_has_the_dynamic_regret_that_measuring_its_rounds_gives() -> None:
    run = amdp.play(amdp.Game("tiny", {"name": "switching", "every": 10}, 60), "o-reps-full")
    match, edges = run.match, [0, 10, 30, 60]
    measured = measure_dynamic(match.played, match.play(run.seed), edges)
    found = run.dynamic(edges)
    assert_allclose(found.against, measured.against)
    assert_allclose(found.dynamic, measured.dynamic)
    assert_allclose(found.static, run.regret[-1])
    assert_allclose(run.dynamic(3).against, run.dynamic([0, 20, 40, 60]).against)


def test_edges_are_even_and_no_more_than_the_rounds() -> None:
    assert even_edges(10, 3) == [0, 3, 7, 10]
    assert even_edges(3, 64) == [0, 1, 2, 3]
    with pytest.raises(InvalidInput, match="intervals"):
        even_edges(10, 0)


@pytest.mark.parametrize("kernels", [1, 3])
def test_the_best_of_each_round_is_that_of_all_edges(kernels: int) -> None:
    played = game(kernels, seed=2)
    found = best_each_round(played)
    assert_allclose(found, all_costs(played).min(axis=0).sum())
    assert_allclose(found, best_sequences(interval_costs(played, range(ROUNDS + 1)))[-1])


@settings(max_examples=50)
@given(seed=seeds, blocks=st.integers(1, 6))
def test_the_best_sequence_is_that_of_trying_all_cuts(seed: int, blocks: int) -> None:
    costs = np.full((blocks + 1, blocks + 1), np.inf)
    first, last = np.triu_indices(blocks + 1, 1)
    costs[first, last] = np.random.default_rng(seed).normal(size=len(first))
    tried = [
        min(
            sum(costs[i, j] for i, j in pairwise((0, *cuts, blocks)))
            for count in range(changes + 1)
            for cuts in combinations(range(1, blocks), count)
        )
        for changes in range(blocks)
    ]
    assert_allclose(best_sequences(costs), tried)


def test_planning_and_enumeration_agree_where_all_kernels_are_the_same() -> None:
    one = game(1, seed=4)
    arena = one.arena
    assert isinstance(arena, Episodic)
    twins = ArenaGame(Evolving((arena.kernel,) * 2, np.arange(ROUNDS) % 2, arena.initial), one.losses)
    assert_allclose(interval_costs(one, EDGES), interval_costs(twins, EDGES))


def test_static_regret_is_that_of_measure_and_more_changes_cost_the_learner() -> None:
    played = game(1, seed=3)
    domain = played.arena.domain

    def rounds() -> Iterator[Round]:
        return play_rounds(played, Ftpl.tuned(domain, ROUNDS), domain, Streams.from_seed(1))

    found = measure_dynamic(played, rounds(), EDGES)
    assert_allclose(found.static, measure(played, rounds(), checkpoints=[ROUNDS]).low[-1])
    assert len(found.against) == len(EDGES) - 1
    assert (np.diff(found.against) >= -1e-12).all()
    assert found.dynamic >= found.against[-1] - 1e-12
    assert found.against[0] == found.static


def test_the_learner_is_charged_under_the_kernel_of_each_round() -> None:
    played, domain = game(3, seed=5), game(3, seed=5).arena.domain
    rounds = list(play_rounds(played, Ftpl.tuned(domain, ROUNDS), domain, Streams.from_seed(1)))
    every, costs = all_policies(SHAPE), all_costs(played)
    which = [int((every == one.policy.argmax(axis=2)).all(axis=(1, 2)).argmax()) for one in rounds]
    assert_allclose(measure_dynamic(played, rounds, EDGES).paid, costs[which, np.arange(ROUNDS)].sum())


def test_what_cannot_be_measured_is_refused() -> None:
    played, domain = game(2), game(2).arena.domain
    learner = Ftpl.tuned(domain, ROUNDS)
    with pytest.raises(InvalidInput, match="3 rounds were played; the comparators play all 12"):
        measure_dynamic(played, play_rounds(played, learner, domain, Streams.from_seed(1), rounds=3), EDGES)
    for edges in ([0, 5], [1, ROUNDS], [0, 3, 3, ROUNDS]):
        with pytest.raises(InvalidInput, match="edges must increase from 0 to 12"):
            interval_costs(played, edges)
    with pytest.raises(InvalidInput, match="edges must be a list of 2 to"):
        interval_costs(played, [0])
    rng = np.random.default_rng(1)
    wide = tuple(Kernel(random_rows((5, 4, 2), rng)) for _ in range(2))
    with pytest.raises(InvalidInput, match=r"1.05e\+06 policies, at most 65536"):
        interval_costs(ArenaGame(Evolving(wide, np.array([0, 1])), FixedLosses(rng.random((2, 5, 4, 2)))), [0, 2])
    stream = Stepwise(Kernel.homogeneous(random_rows((1, 2, 2), rng)[0], 4))
    with pytest.raises(InvalidInput, match="Stepwise is one stream of steps"):
        best_each_round(ArenaGame(stream, FixedLosses(rng.random((4, 1, 2, 2)))))
