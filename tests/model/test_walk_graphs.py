"""Graphs of certain moves: periods, classes, critical lengths, ways and cheapest walks, all against listing."""

from itertools import product

import numpy as np
import pytest
from algorithms.streams.stepping import (
    cycle_gcd,
    graph_kernel,
    graph_of,
    listed_walks,
    pairs_of,
    random_moves,
    walk_cost,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from worlds import seeds

from amdp import InvalidInput, Kernel, SparseKernel, instances
from amdp.arrays import Bools, Floats
from amdp.model.connectivity import period
from amdp.model.walk_graphs import ClosedWalk, WalkGraph

SIZES = st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(1, 4))


def drawn_moves(size: tuple[int, int, int], seed: int) -> NDArray[np.int64]:
    """Random moves of a drawn size; graphs of one way out of each state that are not a ring never communicate."""
    states, actions, rhythm = size
    return random_moves(
        states, max(actions, 2 if states > rhythm else 1), min(rhythm, states), np.random.default_rng(seed)
    )


def exact_reach(following: NDArray[np.int64], length: int) -> Bools:
    """Whether `u` reaches `v` in exactly so many steps, `[u, v]`."""
    states = len(following)
    moves = np.eye(states)[following].sum(axis=1) > 0
    reached: Bools = np.eye(states, dtype=bool)
    for _ in range(length):
        reached = (reached.astype(int) @ moves) > 0
    return reached


@settings(max_examples=60)
@given(SIZES, seeds)
def test_the_period_divides_all_closed_walks_and_classes_follow_each_other(
    size: tuple[int, int, int], seed: int
) -> None:
    following = drawn_moves(size, seed)
    graph = graph_of(following)
    assert graph.period == cycle_gcd(following) == period(graph_kernel(following))
    assert graph.classes[0] == 0
    for s, a in np.ndindex(following.shape):
        assert graph.classes[following[s, a]] == (graph.classes[s] + 1) % graph.period


@settings(max_examples=60)
@given(SIZES, seeds)
def test_the_critical_length_is_the_least_from_which_on_all_fitting_states_are_reached(
    size: tuple[int, int, int], seed: int
) -> None:
    following = drawn_moves(size, seed)
    graph = graph_of(following)
    states = len(following)
    later = np.subtract.outer(-graph.classes, -graph.classes)  # class of v minus class of u

    def full(length: int) -> bool:
        return bool((exact_reach(following, length) == ((later - length) % graph.period == 0)).all())

    most = states**2 + 2 * graph.period
    assert graph.critical == next(d for d in range(most) if all(full(length) for length in range(d, most)))
    assert graph.critical <= ((states - 1) ** 2 + 1 if graph.period == 1 else states**2)


@pytest.mark.parametrize("states", [2, 3, 5, 8, 12])
def test_the_graph_of_wielandt_attains_his_bound(states: int) -> None:
    ring = np.roll(np.arange(states), -1)
    following = np.stack([ring, ring], axis=1)
    following[-1, 1] = 1 % states if states > 2 else 1
    assert graph_of(following).critical == (states - 1) ** 2 + 1


@settings(max_examples=40)
@given(SIZES, seeds, st.integers(0, 50))
def test_ways_onto_a_walk_are_the_shortest(size: tuple[int, int, int], seed: int, time: int) -> None:
    following = drawn_moves(size, seed)
    graph, rng = graph_of(following), np.random.default_rng(seed)
    walks = listed_walks(following, 0, min(4, len(following)))
    if not walks:
        return
    walk = walks[rng.integers(len(walks))]
    chased = ClosedWalk(*np.array(walk).T)
    for state in np.flatnonzero(graph.classes == time % graph.period):
        pursuit = graph.pursue(chased, time, int(state))
        here = int(state)
        for t in range(time, pursuit.caught + 2 * len(walk)):
            if t >= pursuit.caught:
                assert here == walk[t % len(walk)][0]
            here = int(following[here, pursuit.action(t)])
        lengths = range(graph.critical + 1)
        shortest = next(i for i in lengths if exact_reach(following, i)[state, walk[(time + i) % len(walk)][0]])
        assert len(pursuit.route) == shortest <= graph.critical


@settings(max_examples=40)
@given(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)), seeds)
def test_the_cheapest_walk_is_that_of_listing_all_even_from_old_bounds(size: tuple[int, int, int], seed: int) -> None:
    following = drawn_moves(size, seed)
    graph, rng = graph_of(following), np.random.default_rng(seed)
    closing = graph.closing()
    walks = listed_walks(following, 0, len(following))
    costs: Floats = rng.normal(size=(closing.rows, *following.shape))
    bounds = np.full((len(closing.lengths), len(closing.starts)), -np.inf)
    for _ in range(5):
        found, bounds = graph.cheapest(costs, closing, bounds)
        listed = [walk_cost(costs, walk) for walk in walks]
        assert pairs_of(found) == walks[int(np.argmin(listed))]
        for (i, k), (c, s) in product(enumerate(closing.lengths), enumerate(closing.starts)):
            same = [cost for cost, walk in zip(listed, walks, strict=True) if len(walk) == k and walk[0][0] == s]
            assert bounds[i, c] <= min(same, default=np.inf) + 1e-12
        costs = costs + rng.random(costs.shape) * (rng.random(costs.shape) < 0.3)


@pytest.mark.parametrize(
    ("world", "rhythm", "critical"),
    [
        (instances.waiting_ring(10, 5), 1, 4),
        (instances.swinging_ring(10, 5), 1, 4),
        (instances.swinging_ring(10, 6), 2, 2),
        (instances.waiting_star(10, 3), 1, 2),
        (instances.swinging_star(10, 3), 2, 1),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_rings_and_stars(world: instances.Instance, rhythm: int, critical: int) -> None:
    graph = WalkGraph.of(world.kernel)
    assert (graph.period, graph.critical) == (rhythm, critical)
    assert (graph.closing().lengths % rhythm == 0).all()


def test_sparse_kernels_have_the_same_graph() -> None:
    world = instances.swinging_star(10, 3)
    sparse = SparseKernel.homogeneous(world.kernel.matrix(0), 10)
    assert_array_equal(WalkGraph.of(sparse).following, WalkGraph.of(world.kernel).following)


def test_uncertain_moves_are_refused_with_the_pair() -> None:
    rows = np.eye(2)[np.array([[0, 1], [1, 0]])]
    rows[1, 0] = 0.5
    with pytest.raises(InvalidInput, match=r"certain moves: pair \(s=1, a=0\) leads to 2 states"):
        WalkGraph.of(Kernel.homogeneous(rows, 5))


def test_states_out_of_reach_are_refused_with_the_pair_of_states() -> None:
    with pytest.raises(InvalidInput, match="state 1 never leads to state 0"):
        graph_of(np.array([[0, 1], [1, 1]]))


def test_walks_shorter_than_the_period_or_than_any_cycle_are_refused() -> None:
    graph = WalkGraph.of(instances.swinging_star(10, 3).kernel)
    with pytest.raises(InvalidInput, match="multiples of the period, 2"):
        graph.closing(1)
    with pytest.raises(InvalidInput, match="longest = 9"):
        graph.closing(9)
    loopless = graph_of(np.array([[1, 2], [2, 2], [0, 0]]))
    closing = loopless.closing(1)
    with pytest.raises(InvalidInput, match="no closed walk of at most 1"):
        loopless.cheapest(np.zeros((1, 3, 2)), closing, np.full((1, 3), -np.inf))
