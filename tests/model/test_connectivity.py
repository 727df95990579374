from functools import reduce
from itertools import product
from math import gcd

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amdp.arrays import Bools, Floats
from amdp.errors import InvalidInput
from amdp.model import connectivity, hitting
from amdp.model.confidence import BernsteinBox
from amdp.model.connectivity import (
    communication,
    diameter,
    is_deterministic,
    parking_pair,
    parking_pairs,
    period,
    summary,
)
from amdp.model.transitions import Kernel, SparseKernel


def homogeneous(p: Floats, n_steps: int = 3) -> Kernel:
    return Kernel.homogeneous(p, n_steps)


def as_sparse(p: Floats) -> SparseKernel:
    return SparseKernel.homogeneous(scipy.sparse.csr_array(p.reshape(-1, p.shape[2])), 3)


def moves(n_states: int, *targets: dict[int, float]) -> Floats:
    """A kernel with one action from the chances of the next state, one dict a state."""
    p = np.zeros((n_states, 1, n_states))
    for s, chances in enumerate(targets):
        for y, chance in chances.items():
            p[s, 0, y] += chance
    return p


def ring(n: int, *strides: int) -> Floats:
    p = np.zeros((n, len(strides), n))
    for s, (a, stride) in product(range(n), enumerate(strides)):
        p[s, a, (s + stride) % n] = 1.0
    return p


def river_swim(n: int, right: float = 0.35, left: float = 0.05) -> Floats:
    p = np.zeros((n, 2, n))
    for s in range(n):
        p[s, 0, max(s - 1, 0)] = 1.0
        for y, chance in ((min(s + 1, n - 1), right), (max(s - 1, 0), left), (s, 1 - right - left)):
            p[s, 1, y] += chance
    return p


def lock(n: int) -> Floats:
    """One step on or all the way back, by a fair coin."""
    return moves(n, *({0: 0.5, (s + 1) % n: 0.5} if s < n - 1 else {0: 1.0} for s in range(n)))


def few_successors(n: int, actions: int, rng: np.random.Generator) -> Floats:
    p = np.zeros((n, actions, n))
    for s, a in product(range(n), range(actions)):
        p[s, a, rng.choice(n, 2, replace=False)] = rng.dirichlet([1.0, 1.0])
    return p


def union_graph(p: Floats) -> Bools:
    return np.asarray((p > 0).any(axis=1))


def walks(graph: Bools) -> Bools:
    """Whether a walk of any length, zero included, leads from one state to another."""
    closure = graph | np.eye(len(graph), dtype=bool)
    for k in range(len(graph)):
        closure |= closure[:, [k]] & closure[[k], :]
    return closure


def policy_times(chain: Floats, y: int) -> Floats:
    """Expected steps until y in one Markov chain, infinite unless y is sure to come."""
    stopped = chain.copy()
    stopped[y] = np.eye(len(chain))[y]
    reach = walks(stopped > 0)
    sure = ~(reach & ~reach[:, y]).any(axis=1)
    inner = np.flatnonzero(sure & (np.arange(len(chain)) != y))
    times = np.where(sure, 0.0, np.inf)
    times[inner] = np.linalg.solve(np.eye(len(inner)) - chain[np.ix_(inner, inner)], np.ones(len(inner)))
    return times


def enumerated_times(p: Floats) -> Floats:
    """Least expected steps `[y, s]` over all deterministic stationary policies."""
    states, actions, _ = p.shape
    best = np.full((states, states), np.inf)
    for policy in product(range(actions), repeat=states):
        chain = p[np.arange(states), policy]
        for y in range(states):
            best[y] = np.minimum(best[y], policy_times(chain, y))
    return best


@st.composite
def small_kernels(draw: st.DrawFn) -> Floats:
    states, actions = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    weights = draw(hnp.arrays(np.int64, (states, actions, states), elements=st.sampled_from([0, 0, 0, 1, 2, 7])))
    totals = weights.sum(axis=2, keepdims=True)
    p: Floats = weights / np.maximum(totals, 1)
    return p


@given(small_kernels())
@settings(max_examples=150, deadline=None)
def test_times_are_the_least_over_all_stationary_policies(p: Floats) -> None:
    expected = enumerated_times(p)
    found = diameter(homogeneous(p))
    np.testing.assert_allclose(found.times, expected, rtol=1e-9)
    assert found.value == found.times.max()
    assert found.times[found.pair[1], found.pair[0]] == found.value


@given(small_kernels())
@settings(max_examples=100, deadline=None)
def test_actions_attain_the_times(p: Floats) -> None:
    found = diameter(homogeneous(p))
    states = np.arange(len(p))
    for y in range(len(p)):
        chain: Floats = p[states, found.actions[y]]
        np.testing.assert_allclose(found.times[y], policy_times(chain, y), rtol=1e-9)
        np.testing.assert_array_equal(found.actions[y] < 0, (states == y) | np.isinf(found.times[y]))


@given(small_kernels())
@settings(max_examples=100, deadline=None)
def test_communication_agrees_with_walks_in_the_union_graph(p: Floats) -> None:
    reach = walks(union_graph(p))
    found = communication(homogeneous(p))
    broken = np.array(found.breaking, dtype=np.int64)
    kept = np.setdiff1d(np.arange(len(p)), broken)
    assert found.communicates == reach.all() == (found.n_classes == 1)
    np.testing.assert_array_equal(found.classes[:, None] == found.classes, reach & reach.T)
    assert reach[np.ix_(kept, kept)].all()
    assert not reach[np.ix_(kept, broken)].any()
    if found.unreachable_pair is None:
        assert found.communicates
    else:
        assert not reach[found.unreachable_pair]


@given(small_kernels())
@settings(max_examples=100, deadline=None)
def test_diameter_is_finite_exactly_when_the_kernel_communicates(p: Floats) -> None:
    assert np.isfinite(diameter(homogeneous(p)).value) == communication(homogeneous(p)).communicates


@pytest.mark.parametrize("n_states", [30, 60])
def test_times_of_random_kernels_solve_the_optimality_equation(n_states: int) -> None:
    p = np.random.default_rng(n_states).dirichlet(np.full(n_states, 0.1), size=(n_states, 3))
    times = diameter(homogeneous(p)).times
    for y in range(n_states):
        ahead = 1.0 + (p @ times[y]).min(axis=1)
        ahead[y] = 0.0
        np.testing.assert_allclose(times[y], ahead, rtol=1e-11)


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_one_way_ring_takes_a_round_less_one(n: int) -> None:
    found = diameter(homogeneous(ring(n, 1)))
    assert found.value == pytest.approx(n - 1, rel=1e-13)
    assert (found.pair[0] - found.pair[1]) % n == 1
    assert period(homogeneous(ring(n, 1))) == n


@pytest.mark.parametrize("n", [5, 6, 31])
def test_two_way_ring_takes_half_a_round(n: int) -> None:
    assert diameter(homogeneous(ring(n, 1, -1))).value == pytest.approx(n // 2, rel=1e-13)
    assert period(homogeneous(ring(n, 1, -1))) == (2 if n % 2 == 0 else 1)


def test_a_loop_ends_the_rhythm_of_a_ring() -> None:
    p = np.concatenate([ring(6, 1), ring(6, 1)], axis=1)
    p[4, 1] = np.eye(6)[4]
    assert period(homogeneous(p)) == 1
    assert diameter(homogeneous(p)).value == pytest.approx(5.0, rel=1e-13)


@pytest.mark.parametrize("p", [0.5, 0.01, 1e-9, 1e-30])
def test_waiting_for_a_chance_takes_its_inverse(p: float) -> None:
    found = diameter(homogeneous(moves(2, {0: 1 - p, 1: p}, {0: 1.0})))
    assert found.value == pytest.approx(1 / p, rel=1e-13)
    assert found.pair == (0, 1)


@pytest.mark.parametrize("n", [2, 6, 50])
def test_river_swim_follows_its_recursion(n: int) -> None:
    right, left = 0.35, 0.05
    rung = 1 / right  # expected steps from a state to its right neighbor; at the left end only staying holds one back
    total = rung
    for _ in range(n - 2):
        rung = (1 + left * rung) / right
        total += rung
    found = diameter(homogeneous(river_swim(n, right, left)))
    assert found.value == pytest.approx(total, rel=1e-12)
    assert found.pair == (0, n - 1)
    assert (found.actions[n - 1, : n - 1] == 1).all()
    np.testing.assert_allclose(found.times[0], np.arange(n), rtol=1e-12)


def test_times_beyond_float_resolution_keep_their_digits() -> None:
    assert diameter(homogeneous(lock(100))).value == pytest.approx(2.0**100 - 2, rel=1e-12)


def test_sparse_factors_that_lose_all_digits_are_not_believed() -> None:
    n = hitting.SPARSE_STATES + 10
    assert diameter(as_sparse(lock(n))).value == pytest.approx(2.0**n - 2, rel=1e-12)


def test_a_chance_to_arrive_is_not_a_sure_way() -> None:
    p = moves(3, {1: 0.5, 2: 0.5}, {1: 1.0}, {2: 1.0})
    found = diameter(homogeneous(p))
    assert found.value == np.inf
    np.testing.assert_array_equal(found.times, [[0, np.inf, np.inf], [np.inf, 0, np.inf], [np.inf, np.inf, 0]])
    assert (found.actions == -1).all()


def test_a_slow_sure_way_is_taken_when_the_fast_one_is_risky() -> None:
    p = np.zeros((3, 2, 3))  # state 1 is the goal, state 2 a trap
    p[0, 0] = [0.0, 0.9, 0.1]
    p[0, 1] = [0.9, 0.1, 0.0]
    p[1, :, 0] = 1.0
    p[2, :, 2] = 1.0
    found = diameter(homogeneous(p))
    assert found.times[1, 0] == pytest.approx(10.0)
    assert found.actions[1, 0] == 1
    assert found.times[2, 0] == pytest.approx(19.0)  # the risk is the only way into the trap: t = 1 + 0.9 (1 + t)
    assert found.actions[2, 0] == 0
    assert found.times[1, 2] == np.inf
    assert found.pair in {(2, 0), (2, 1)}


def test_sure_ways_are_lost_in_a_chain_of_reasons() -> None:
    # 0 may only go to 1, 1 risks 2, and 2 is stuck: the target 3 is sure from nowhere, though all but 2 can get there.
    p = moves(4, {1: 1.0}, {3: 0.5, 2: 0.5}, {2: 1.0}, {0: 1.0})
    times = diameter(homogeneous(p)).times
    np.testing.assert_array_equal(np.isinf(times[3]), [True, True, True, False])
    assert times[1, 3] == pytest.approx(2.0)


@pytest.mark.parametrize("n", [4, 40, hitting.SPARSE_STATES])
def test_sparse_and_dense_kernels_agree(n: int) -> None:
    p = few_successors(n, 2, np.random.default_rng(n))
    dense, sparse = homogeneous(p), as_sparse(p)
    one, other = diameter(dense), diameter(sparse)
    np.testing.assert_array_equal(one.times, other.times)
    assert communication(dense).breaking == communication(sparse).breaking
    assert parking_pairs(dense) == parking_pairs(sparse)
    assert is_deterministic(dense) == is_deterministic(sparse)


def test_sparse_factors_and_elimination_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    p = few_successors(40, 3, np.random.default_rng(5))
    p[7] = np.eye(40)[7]  # a trap, so that some states have no sure way
    eliminated = diameter(homogeneous(p))
    monkeypatch.setattr(hitting, "SPARSE_STATES", 1)
    monkeypatch.delattr(hitting, "_eliminated")
    factored = diameter(homogeneous(p))
    assert np.isinf(factored.times).any()
    assert np.isfinite(factored.times).sum() > 40
    np.testing.assert_allclose(factored.times, eliminated.times, rtol=1e-10)


def test_policy_iteration_needs_no_head_start(monkeypatch: pytest.MonkeyPatch) -> None:
    p = few_successors(40, 4, np.random.default_rng(8))
    usual = diameter(homogeneous(p))
    monkeypatch.setattr(hitting, "HEAD_START", 0)
    np.testing.assert_allclose(diameter(homogeneous(p)).times, usual.times, rtol=1e-11)


@given(small_kernels())
@settings(max_examples=100, deadline=None)
def test_period_divides_exactly_the_lengths_of_closed_walks(p: Floats) -> None:
    graph = union_graph(p).astype(np.int64)
    kernel = homogeneous(p)
    lengths = [k for k in range(1, len(p) + 1) if np.trace(np.linalg.matrix_power(graph, k)) > 0]
    if not communication(kernel).communicates or not lengths:
        with pytest.raises(InvalidInput, match=r"no .*period"):
            period(kernel)
        return
    assert period(kernel) == reduce(gcd, lengths)


def test_parking_pairs_are_the_sure_loops() -> None:
    p = np.zeros((2, 3, 2))
    p[0] = [[1.0, 0.0], [1.0 - 1e-6, 1e-6], [0.0, 1.0]]
    p[1] = [[0.5, 0.5], [1.0, 0.0], [1e-14, 1.0 - 1e-14]]
    assert parking_pairs(homogeneous(p)) == [(0, 0), (1, 2)]
    assert parking_pair(homogeneous(p)) == (0, 0)
    assert parking_pair(homogeneous(ring(3, 1))) is None


def test_one_uncertain_row_ends_determinism_and_zero_rows_do_not() -> None:
    p = ring(4, 1, -1)
    p[2, 1] = 0.0
    assert is_deterministic(homogeneous(p))
    p[3, 0] = [0.5, 0.0, 0.5, 0.0]
    assert not is_deterministic(homogeneous(p))


def test_zero_rows_are_never_a_way_on() -> None:
    p = ring(4, 1, 1)
    p[:, 0] = 0.0
    found = diameter(homogeneous(p))
    assert found.value == pytest.approx(3.0)
    assert set(found.actions[~np.eye(4, dtype=bool)].tolist()) == {1}


def test_a_zero_row_does_not_hide_the_detour_that_is_faster() -> None:
    p = np.zeros((3, 3, 3))
    p[0, 0] = [0.99, 0.0, 0.01]  # straight to state 2, with patience
    p[0, 1, 1] = p[1, 0, 2] = p[2, 0, 0] = 1.0
    found = diameter(homogeneous(p))
    assert found.times[2, 0] == pytest.approx(2.0)
    assert found.actions[2, 0] == 1


def test_explicit_zeros_are_no_edges_and_stay_in_place() -> None:
    entries = np.array([1.0, 0.0, 1.0])
    matrix = scipy.sparse.csr_array((entries, np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    kernel = SparseKernel.homogeneous(matrix, 3)
    before = kernel.matrix(0).nnz
    assert communication(kernel).unreachable_pair == (0, 1)
    assert is_deterministic(kernel)
    assert kernel.matrix(0).nnz == before


def test_rows_that_sum_to_almost_one_are_scaled() -> None:
    p = lock(30)
    slightly_off = p * (1 + 5e-9 * np.where(np.arange(30) % 2, 1, -1))[:, None, None]
    assert diameter(homogeneous(slightly_off)).value == pytest.approx(2.0**30 - 2, rel=1e-12)


def test_a_single_state_is_everywhere_at_once() -> None:
    found = diameter(homogeneous(np.ones((1, 2, 1))))
    assert (found.value, found.pair) == (0.0, (0, 0))
    assert period(homogeneous(np.ones((1, 2, 1)))) == 1


def test_reachable_follows_the_kernel_and_checks_the_state() -> None:
    kernel = homogeneous(ring(5, 1), n_steps=4)
    expected: NDArray[np.bool_] = np.eye(4, 5, dtype=bool)
    np.testing.assert_array_equal(connectivity.reachable(kernel, 0), expected)
    with pytest.raises(InvalidInput, match="initial = 5"):
        connectivity.reachable(kernel, 5)


@pytest.mark.parametrize("question", [communication, diameter, parking_pairs, parking_pair, period, is_deterministic])
def test_only_a_single_homogeneous_kernel_is_diagnosed(question: object) -> None:
    assert callable(question)
    changing = Kernel(np.stack([ring(3, 1), ring(3, -1)]))
    with pytest.raises(InvalidInput, match="change from step to step"):
        question(changing)
    box = BernsteinBox(changing.p, changing.p)
    with pytest.raises(InvalidInput, match="BernsteinBox is not a single kernel"):
        question(box)


def test_period_names_the_pair_that_breaks_it() -> None:
    with pytest.raises(InvalidInput, match="state 1 never leads to state 0"):
        period(homogeneous(moves(2, {1: 1.0}, {1: 1.0})))


def test_summary_reads_like_a_finding() -> None:
    told = str(summary(homogeneous(ring(4, 1), n_steps=2), initial=1)).splitlines()
    assert told == [
        "2 steps, 4 states, 1 actions",
        "reachable      2 of 4 states from state 1",
        "communicating  yes",
        "diameter       3, from state 1 to state 0",
        "period         4",
        "deterministic  yes",
        "parking        nowhere",
    ]


def test_summary_tells_what_breaks() -> None:
    found = summary(homogeneous(moves(2, {1: 1.0}, {1: 1.0})))
    assert found.period is None
    assert "no: 2 classes; state 1 never leads to state 0" in str(found)
    assert "inf, from state 1 to state 0" in str(found)
    assert "(s, a) = (1, 0)" in str(found)
