"""Exponential weights over closed walks: the law of the draw, unbiased estimates, blocks, and the regret."""

from math import ceil, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from scipy.stats import chi2
from worlds import seeds

from algorithms.streams.stepping import (
    Seen,
    drive,
    graph_domain,
    graph_of,
    listed_walks,
    pairs_of,
    random_moves,
    walk_cost,
)
from amdp import InvalidInput, StationaryPolicies, instances, losses
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.named import learner
from amdp.algorithms.streams.dekel_hazan import DekelHazan, WalkWeights
from amdp.arrays import Floats
from amdp.game.arenas import Stepwise
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.segments import Step
from amdp.model.walk_graphs import ClosedWalk

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))


def drawn_weights(size: tuple[int, int, int], seed: int, rate: float = 0.7) -> tuple[WalkWeights, list[Any], Floats]:
    """Weights on a random graph, all its closed walks, and their chances by a plain softmax."""
    states, actions, period = size
    rng = np.random.default_rng(seed)
    following = random_moves(states, max(actions, 2 if states > period else 1), min(period, states), rng)
    graph = graph_of(following)
    closing = graph.closing()
    weights = WalkWeights.of(graph, closing, rate, rng.exponential(3.0, (closing.rows, *following.shape)))
    walks = listed_walks(following, 0, states)
    chances: Floats = softmax([-rate * walk_cost(weights.costs, walk) for walk in walks])
    return weights, walks, chances


@settings(max_examples=40)
@given(SIZES, seeds)
def test_the_chances_of_pairs_are_those_of_all_listed_walks(size: tuple[int, int, int], seed: int) -> None:
    weights, walks, chances = drawn_weights(size, seed)
    states, actions = weights.graph.following.shape
    total = 0.0
    for k in weights.closing.lengths:
        by_place = np.zeros((k, states, actions))
        for place, s, a in np.ndindex(by_place.shape):
            by_place[place, s, a] = weights.chance(int(k), place, s, a)
            passing = [len(walk) == k and walk[place] == (s, a) for walk in walks]
            assert_allclose(by_place[place, s, a], chances[passing].sum(), rtol=1e-10, atol=1e-15)
        assert_allclose(by_place.sum(axis=(1, 2)), by_place[0].sum(), rtol=1e-10)  # the same at each place
        total += by_place[0].sum()
    assert_allclose(total, 1.0)
    assert_allclose(logsumexp(weights.logs), logsumexp([-weights.rate * walk_cost(weights.costs, w) for w in walks]))


@pytest.mark.parametrize("size", [(3, 2, 1), (3, 3, 1), (2, 2, 2)])
def test_walks_are_drawn_by_their_weights(size: tuple[int, int, int]) -> None:
    # A chi-square test at level 1e-4 with a fixed seed. Catches: lengths drawn alike, or actions without what follows.
    weights, walks, chances = drawn_weights(size, 3)
    rng, draws = np.random.default_rng(1), 20_000
    counts = np.zeros(len(walks))
    for uniforms in rng.random((draws, 1 + size[0])):
        counts[walks.index(pairs_of(weights.drawn(uniforms)))] += 1
    usual = chances * draws >= 5.0
    expected = np.append(chances[usual], chances[~usual].sum() + 1e-300) * draws
    observed = np.append(counts[usual], counts[~usual].sum())
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1) > 1e-4
    by_length = np.array([len(walk) for walk in walks])
    shares = np.array([chances[by_length == k].sum() for k in np.unique(by_length)])
    assert len(shares) == 1 or np.ptp(shares) > 0.05  # or the first wrong algorithm would pass


@settings(max_examples=30)
@given(SIZES, seeds)
def test_the_estimates_of_a_block_have_the_right_mean(size: tuple[int, int, int], seed: int) -> None:
    weights, walks, chances = drawn_weights(size, seed)
    met = np.random.default_rng(seed).random(weights.costs.shape)
    mean = np.zeros_like(met)
    for walk, chance in zip(walks, chances, strict=True):
        k, (states, actions) = len(walk), np.array(walk).T
        gained = met[k * (k - 1) // 2 + np.arange(k), states, actions]
        mean += chance * (weights.learned(ClosedWalk(states, actions), gained).costs - weights.costs)
    possible = np.zeros(met.shape, dtype=bool)
    for walk in walks:
        for place, (s, a) in enumerate(walk):
            possible[len(walk) * (len(walk) - 1) // 2 + place, s, a] = True
    assert_allclose(mean, np.where(possible, met, 0.0), rtol=1e-9, atol=1e-12)


@settings(max_examples=20)
@given(SIZES, seeds)
def test_what_is_kept_of_other_lengths_is_what_would_be_found_anew(size: tuple[int, int, int], seed: int) -> None:
    weights, _, _ = drawn_weights(size, seed)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        walk = weights.drawn(rng.random(1 + size[0]))
        weights = weights.learned(walk, rng.random(len(walk)))
    anew = WalkWeights.of(weights.graph, weights.closing, weights.rate, weights.costs)
    assert_allclose(weights.logs, anew.logs, rtol=1e-12)


def test_weights_survive_costs_whose_exponentials_do_not() -> None:
    weights, walks, _ = drawn_weights((3, 2, 1), 1)
    huge = WalkWeights.of(weights.graph, weights.closing, 1.0, 1e5 * weights.costs)
    cheapest = min(walks, key=lambda walk: walk_cost(weights.costs, walk))
    assert pairs_of(huge.drawn(np.full(4, 0.5))) == cheapest
    assert_allclose(huge.chances(huge.drawn(np.full(4, 0.5))), 1.0)


def blocks_of(period: int, seed: int, block: int, steps: int = 200) -> tuple[Floats, list[Seen]]:
    """A run over a random graph: its losses and steps."""
    domain = graph_domain(random_moves(4, 2, period, np.random.default_rng(seed)), steps)
    tables = np.random.default_rng(seed).random(domain.shape)
    return tables, list(drive(DekelHazan(0.05, block), domain, tables, seed))


@pytest.mark.parametrize(("period", "seed", "block"), [(1, 1, 17), (2, 2, 12), (3, 3, 13), (4, 4, 10)])
def test_walks_change_between_blocks_only_and_are_followed_in_the_window(period: int, seed: int, block: int) -> None:
    tables, seen = blocks_of(period, seed, block)
    turns = 0
    for before, step, _, after in seen:
        graph, walk = before.weights.graph, pairs_of(before.pursuit.walk)
        assert graph.classes[step.states[0]] == step.time % graph.period
        if step.time >= (step.time // block) * block + graph.critical:
            assert (step.states[0], step.actions[0]) == walk[step.time % len(walk)]
        if (step.time + 1) % block:
            assert after.pursuit is before.pursuit
            assert after.weights is before.weights
        else:
            turns += 1
            assert after.pursuit.since == step.time + 1
            gained = gains(tables, walk, step.time + 1 - block + graph.critical, step.time + 1)
            expected = before.weights.learned(before.pursuit.walk, gained)
            assert_allclose(after.weights.costs, expected.costs)
    assert turns == len(seen) // block


def gains(tables: Floats, walk: list[tuple[int, int]], start: int, stop: int) -> Floats:
    """The losses `[k]` that a walk meets at each place."""
    found = np.zeros(len(walk))
    for t in range(start, stop):
        found[t % len(walk)] += tables[t][walk[t % len(walk)]]
    return found


def test_walks_of_one_pair_are_exp3_over_loops_in_blocks() -> None:
    steps, block, rate = 300, 6, 0.1
    following = np.array([[0, 1, 0], [1, 2, 2], [0, 0, 2]])  # loops: (0, 0), (0, 2), (1, 0), (2, 2)
    loops = [(s, a) for s, a in np.ndindex(3, 3) if following[s, a] == s]
    domain = graph_domain(following, steps)
    tables = np.random.default_rng(1).random(domain.shape)
    estimates = np.zeros(len(loops))
    for before, step, _, _ in drive(DekelHazan(rate, block, longest=1), domain, tables, 2):
        if step.time % block == 0:
            p = softmax(-rate * estimates)
            assert_allclose([before.weights.chance(1, 0, s, a) for s, a in loops], p, rtol=1e-9)
            arm = loops.index(pairs_of(before.pursuit.walk)[0])
            window = slice(step.time + before.weights.graph.critical, step.time + block)
            estimates[arm] += tables[(window, *loops[arm])].sum() / p[arm]
    assert (estimates > 0.0).all()


def test_the_bound_is_its_formula_and_at_most_that_of_long_blocks() -> None:
    world = instances.waiting_star(3000, 3)
    domain = StationaryPolicies(world.kernel)
    made = DekelHazan.tuned(domain, 3000)
    bound = made.bound(domain, 3000)
    states, actions, blocks, window = 4, 4, ceil(3000 / made.block), made.block - 2
    seconds = sum(k * k * ceil(window / k) ** 2 for k in range(1, 5))
    assert_allclose(bound.stability, made.rate * blocks * states * actions * seconds / 2.0)
    assert bound.stability <= 2.0 * made.rate * 3000 * made.block * states**2 * actions
    assert_allclose(bound.penalty, (2 * log(4) + 4 * log(4)) / made.rate)
    assert (bound.catching, bound.prefix) == (2.0 * blocks, 4.0)
    assert made.block >= max(2 * 2, states)


def regret_of(world: Any, steps: int, seed: int, multiplier: float) -> tuple[float, float]:
    """The regret of one run, and its bound."""
    made = world(steps, 3)
    arena = Stepwise(made.kernel, made.initial)
    tables = losses.named("bernoulli", (1, *made.shape[1:]), steps, seed, np.clip(made.costs[:1], 0.1, 0.9))
    player: Any = learner("dekel-hazan", arena.domain, steps, multiplier=multiplier)
    game = ArenaGame(arena, tables, None, Bandit)
    found = measure(game, play_rounds(game, player, arena.domain, Streams.from_seed(seed)), checkpoints=[steps])
    return float(found.high[-1]), player.bound(arena.domain, steps).total


@pytest.mark.parametrize("world", [instances.waiting_ring, instances.swinging_star])
def test_the_regret_stays_below_the_bound(world: Any) -> None:
    regret, bound = regret_of(world, 3000, 1, 1.0)
    assert regret <= bound
    domain = StationaryPolicies(world(10**5, 3).kernel)
    assert DekelHazan.tuned(domain, 10**5).bound(domain, 10**5).total < 10**5  # not vacuous any more


@pytest.mark.parametrize("world", [instances.waiting_ring, instances.swinging_star])
def test_the_regret_grows_slower_than_the_steps(world: Any) -> None:
    short, long = (regret_of(world, steps, 2, 20.0)[0] / steps for steps in (400, 4000))
    assert long < 0.6 * short


def test_what_it_cannot_play_is_refused() -> None:
    domain = StationaryPolicies(instances.waiting_ring(20, 4).kernel)
    rng, nothing = np.random.default_rng(1), Weights(np.empty(0))
    with pytest.raises(InvalidInput, match="block = 3; it must be above 3"):
        DekelHazan(0.1, 3).start(domain, rng)
    with pytest.raises(InvalidInput, match="block = 0"):
        DekelHazan(0.1, 0)
    with pytest.raises(InvalidInput, match="rate"):
        DekelHazan(-0.1, 5)
    made = DekelHazan(0.1, 5)
    distribution = made.start(domain, rng)
    step = Step(np.array([0]), np.array([0]), time=0, reached=0)
    with pytest.raises(InvalidInput, match="Bandit, not FullInformation"):
        made.learn(distribution, FullInformation(step, nothing, np.zeros((1, 4, 2))))
    with pytest.raises(InvalidInput, match=r"losses\[h=0\] = -1; it must not be negative"):
        made.learn(made.observe(distribution, step), Bandit(step, nothing, np.array([-1.0])))
    later = Step(np.array([0]), np.array([0]), time=1, reached=0)
    with pytest.raises(InvalidInput, match="losses of step 0 came at step 1"):
        made.learn(made.observe(distribution, later), Bandit(step, nothing, np.zeros(1)))
    with pytest.raises(InvalidInput, match="no closed walk of at most 1"):
        DekelHazan(0.1, 9, longest=1).start(graph_domain(np.array([[1, 2], [2, 2], [0, 0]]), 20), rng)
    with pytest.raises(InvalidInput, match="never leads to"):
        learner("dekel-hazan", graph_domain(np.array([[0, 1], [1, 1]]), 20), 20)
