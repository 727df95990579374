"""Mixing, least visits and the long run: against brute force over policies, and by their identities."""

from itertools import product
from math import exp, inf

import numpy as np
import pytest
from algorithms.streams.streams import every_policy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import connected_components
from worlds import as_csr, seeds

from amdp import InvalidInput, Kernel, SparseKernel, instances
from amdp.arrays import Floats
from amdp.model.mixing import (
    Chain,
    least_arrival,
    least_visits,
    long_run,
    mixing,
    require_mixing,
    require_visits,
)


@st.composite
def rows_that_mix(draw: st.DrawFn, states: int = 4, actions: int = 3) -> Floats:
    """Rows `[s, a, y]`, any two of which overlap a little or much."""
    n, m = draw(st.integers(1, states)), draw(st.integers(1, actions))
    share = draw(st.sampled_from((0.02, 0.3, 0.9)))
    rng = np.random.default_rng(draw(seeds))
    rows: Floats = (1.0 - share) * rng.dirichlet(np.full(n, 0.4), size=(n, m)) + share / n
    return rows


@st.composite
def sparse_rows(draw: st.DrawFn, states: int = 4, actions: int = 2) -> Floats:
    """Rows `[s, a, y]` with one or two successors each."""
    n, m = draw(st.integers(1, states)), draw(st.integers(1, actions))
    rng = np.random.default_rng(draw(seeds))
    here, there = np.eye(n)[rng.integers(n, size=(2, n, m))]
    rows: Floats = 0.25 * here + 0.75 * there
    return rows


def forever(rows: Floats) -> Kernel:
    return Kernel.homogeneous(rows, 5)


def random_policy(rows: Floats, rng: np.random.Generator) -> Floats:
    return rng.dirichlet(np.full(rows.shape[1], 0.5), size=len(rows))


def chain_of(rows: Floats, policy: Floats) -> Floats:
    return np.array([sum(policy[s, a] * rows[s, a] for a in range(rows.shape[1])) for s in range(len(rows))])


def closed_laws(moves: Floats) -> list[Floats]:
    """The stationary law of each closed class of a chain, by least squares."""
    count, classes = connected_components(moves > 0, connection="strong")
    laws = []
    for c in range(count):
        inside = np.flatnonzero(classes == c)
        part = moves[np.ix_(inside, inside)]
        if not np.isclose(part.sum(axis=1), 1.0).all():
            continue
        system = np.vstack([part.T - np.eye(len(inside)), np.ones(len(inside))])
        law = np.zeros(len(moves))
        law[inside] = np.linalg.lstsq(system, np.append(np.zeros(len(inside)), 1.0), rcond=None)[0]
        laws.append(law)
    return laws


# --- mixing -----------------------------------------------------------------------------------------------------------


@given(rows_that_mix(), seeds)
def test_no_policy_keeps_two_laws_further_apart_and_one_keeps_them_so(rows: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = len(rows)
    found = mixing(forever(rows))
    x, y = rng.dirichlet(np.full(states, 0.5), size=2)
    moves = chain_of(rows, random_policy(rows, rng))
    assert np.abs(x @ moves - y @ moves).sum() <= found.contraction * np.abs(x - y).sum() + 1e-12
    if found.apart is None:
        assert states == 1
        return
    (s, a), (z, b) = found.apart
    assert s != z
    assert np.abs(rows[s, a] - rows[z, b]).sum() / 2 == pytest.approx(found.contraction, abs=1e-12)
    assert found.influence == pytest.approx(
        max(
            np.abs(rows[s, a] - rows[s, b]).sum() / 2 for s, a, b in product(range(states), *[range(rows.shape[1])] * 2)
        )
    )


@given(rows_that_mix())
def test_time_and_memory_belong_to_the_contraction(rows: Floats) -> None:
    found = mixing(forever(rows))
    if found.time > 0:
        assert exp(-1.0 / found.time) == pytest.approx(found.contraction)
    assert found.memory == pytest.approx(sum(found.contraction**n for n in range(5000)), rel=1e-6)
    assert found.memory <= found.time + 1.0 + 1e-12


def test_one_state_forgets_at_once() -> None:
    found = require_mixing(forever(np.ones((1, 3, 1))))
    assert (found.contraction, found.time, found.memory, found.influence) == (0.0, 0.0, 1.0, 0.0)


def test_sparse_kernels_mix_as_dense_ones() -> None:
    rows = 0.2 + 0.4 * np.eye(3)[np.random.default_rng(1).integers(3, size=(3, 2))]
    dense, sparse = (mixing(kernel) for kernel in (forever(rows), SparseKernel.homogeneous(as_csr(rows), 5)))
    assert (dense.contraction, dense.apart) == (sparse.contraction, sparse.apart)


def test_rows_that_do_not_overlap_are_named() -> None:
    rows = np.full((3, 2, 3), 1 / 3)
    rows[0, 1], rows[2, 0] = [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]
    assert mixing(forever(rows)).time == inf
    with pytest.raises(InvalidInput, match=r"p\[s=0, a=1\] and p\[s=2, a=0\] do not overlap.*ftpl-infinite"):
        require_mixing(forever(rows))


@pytest.mark.parametrize(
    "world",
    [instances.swinging_ring(10, 4), instances.swinging_star(10, 3), instances.waiting_ring(10, 3)],
    ids=["periodic", "star", "multichain"],
)
def test_periodic_and_multichain_worlds_are_refused(world: instances.Instance) -> None:
    with pytest.raises(InvalidInput, match="do not overlap"):
        require_mixing(world.kernel)


@pytest.mark.parametrize("seed", range(4))
def test_the_ergodic_world_is_as_ergodic_as_it_says(seed: int) -> None:
    world = instances.random_ergodic(20, 4, 3, np.random.default_rng(seed))
    assert 0.3 < require_mixing(world.kernel).contraction <= 0.7
    require_visits(world.kernel)
    assert least_visits(world.kernel).value >= 0.3 / 4
    assert ((world.costs >= 0) & (world.costs <= 1)).all()


def test_a_world_without_contraction_forgets_at_once() -> None:
    world = instances.random_ergodic(20, 4, 2, np.random.default_rng(1), contraction=0.0)
    assert mixing(world.kernel).contraction == pytest.approx(0.0, abs=1e-15)


def test_bad_ergodic_worlds_are_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(InvalidInput, match="contraction"):
        instances.random_ergodic(10, 3, 2, rng, contraction=1.5)
    with pytest.raises(InvalidInput, match="concentration"):
        instances.random_ergodic(10, 3, 2, rng, concentration=0.0)
    with pytest.raises(InvalidInput, match="n_states"):
        instances.random_ergodic(10, 0, 2, rng)


# --- least visits -----------------------------------------------------------------------------------------------------


def least_by_listing(rows: Floats) -> Floats:
    """The least share `[s]` over all deterministic policies and all their closed classes."""
    states, actions, _ = rows.shape
    least = np.ones(states)
    for policy in every_policy(states, actions):
        for law in closed_laws(rows[np.arange(states), policy]):
            least = np.minimum(least, law)
    return least


@given(rows_that_mix())
def test_least_visits_are_those_of_the_worst_policy(rows: Floats) -> None:
    found = least_visits(forever(rows))
    listed = least_by_listing(rows)
    assert_allclose(found.each, listed, rtol=1e-8)
    assert found.value == found.each.min() == found.each[found.state]
    assert found.home is None
    (law,) = closed_laws(rows[np.arange(len(rows)), found.actions])
    assert law[found.state] == pytest.approx(found.value, rel=1e-8)


@given(sparse_rows())
def test_states_that_some_policy_avoids_are_found(rows: Floats) -> None:
    found = least_visits(forever(rows))
    listed = least_by_listing(rows)
    assert_allclose(found.each, np.where(listed < 1e-12, 0.0, listed), rtol=1e-8)
    if found.home is None:
        assert found.value > 0
        return
    assert found.value == 0.0
    ever = np.linalg.matrix_power(np.eye(len(rows)) + rows[np.arange(len(rows)), found.actions], len(rows))
    assert ever[found.home, found.state] == 0.0


@given(rows_that_mix(), seeds)
def test_no_policy_that_mixes_actions_visits_less(rows: Floats, seed: int) -> None:
    policy = random_policy(rows, np.random.default_rng(seed))
    (law,) = closed_laws(chain_of(rows, policy))
    assert (law >= least_visits(forever(rows)).each - 1e-10).all()


def test_factors_and_eliminations_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = instances.random_ergodic(5, 12, 3, np.random.default_rng(2), concentration=0.2).kernel
    by_factors = least_visits(kernel)
    monkeypatch.setattr("amdp.model.mixing.SOLVE_TOLERANCE", 0.0)
    eliminated = least_visits(kernel)
    assert_allclose(by_factors.each, eliminated.each, rtol=1e-12)
    assert by_factors.actions.tolist() == eliminated.actions.tolist()


@pytest.mark.parametrize("tiny", [1e-6, 1e-13, 1e-20])
def test_rare_visits_keep_their_digits(tiny: float) -> None:
    rows = np.array([[[1 - tiny, tiny], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
    found = least_visits(forever(rows))
    assert (found.state, found.actions.tolist()) == (1, [0, 0])
    assert found.value == pytest.approx(tiny / (tiny + 0.5), rel=1e-9)


def test_a_long_climb_keeps_its_digits() -> None:
    # From each step of the ladder one goes up with a tiny chance and falls to the ground otherwise.
    tiny, rows = 3e-9, np.zeros((4, 1, 4))
    rows[:, 0, 0] = 1 - tiny
    rows[[0, 1, 2], 0, [1, 2, 3]] = tiny
    rows[3, 0, 0] = 1.0
    assert_allclose(least_visits(forever(rows)).each, tiny ** np.arange(4) / sum(tiny**k for k in range(4)), rtol=1e-12)


def test_the_state_that_can_be_avoided_is_named() -> None:
    rows = np.full((3, 2, 3), 1 / 3)
    rows[:, 1] = [0.5, 0.5, 0.0]  # all rows overlap, and action 1 keeps away from state 2
    require_mixing(forever(rows))
    with pytest.raises(InvalidInput, match=r"state 2 can be avoided: from state 0 the policy \[1, 1, \d\] never"):
        require_visits(forever(rows))


@given(rows_that_mix(states=3, actions=2), st.integers(1, 3))
def test_least_arrival_is_that_of_the_worst_policy_of_all_steps(rows: Floats, steps: int) -> None:
    states, actions, _ = rows.shape
    moves = [rows[np.arange(states), policy] for policy in every_policy(states, actions)]
    least = 1.0
    for walk in product(moves, repeat=steps):
        law = np.eye(states)
        for move in walk:
            law = law @ move
        least = min(least, law.min())
    assert least_arrival(forever(rows), steps) == pytest.approx(least, rel=1e-9)


@given(rows_that_mix())
def test_arrivals_grow_with_the_steps_and_stay_below_the_least_visits(rows: Floats) -> None:
    chances = [least_arrival(forever(rows), n) for n in (1, 2, 4, 8)]
    assert np.diff(chances).min() >= -1e-12
    assert chances[-1] <= least_visits(forever(rows)).value + 1e-12


# --- the long run -----------------------------------------------------------------------------------------------------


@given(rows_that_mix(), seeds)
def test_the_long_run_solves_its_equations(rows: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy, losses = random_policy(rows, rng), rng.random(rows.shape[:2])
    chain, moves = Chain(rows, policy), chain_of(rows, policy)
    found = chain.long_run(losses)
    assert_allclose(chain.moves, moves, atol=1e-14)
    assert_allclose(chain.law, closed_laws(moves)[0], atol=1e-9)
    assert found.mean == pytest.approx(chain.law @ (policy * losses).sum(axis=1), abs=1e-12)
    assert chain.law @ found.bias == pytest.approx(0.0, abs=1e-10)
    assert_allclose(found.bias + found.mean, (policy * losses).sum(axis=1) + moves @ found.bias, atol=1e-9)
    assert_allclose(found.ahead, losses - found.mean + rows @ found.bias, atol=1e-12)
    assert_allclose((policy * found.ahead).sum(axis=1), found.bias, atol=1e-9)


@given(rows_that_mix(), seeds)
def test_the_bias_is_all_that_a_start_costs(rows: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy, losses = random_policy(rows, rng), rng.random(rows.shape[:2])
    found = long_run(forever(rows), policy, losses)
    moves, paid = chain_of(rows, policy), (policy * losses).sum(axis=1)
    total, law = np.zeros(len(rows)), np.eye(len(rows))
    for _ in range(4000):
        total += law @ paid - found.mean
        law = law @ moves
    assert_allclose(found.bias, total, atol=1e-8)


@given(rows_that_mix(), seeds)
def test_the_performance_difference(rows: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.random(rows.shape[:2])
    here, there = (Chain(rows, random_policy(rows, rng)) for _ in range(2))
    mine, theirs = here.long_run(losses), there.long_run(losses)
    gain = there.law @ (there.policy * (mine.ahead - mine.bias[:, None])).sum(axis=1)
    assert theirs.mean - mine.mean == pytest.approx(gain, abs=1e-10)


@given(rows_that_mix(), seeds)
def test_long_run_costs_are_bounded_by_the_memory(rows: Floats, seed: int) -> None:
    # What the tuning and the bounds of the learners rest on; 2 tau + 3 is the bound of the literature.
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 2, size=rows.shape[:2]).astype(float)
    found, run = mixing(forever(rows)), Chain(rows, random_policy(rows, rng)).long_run(losses)
    assert np.abs(run.ahead).max() <= 1.0 + found.memory + 1e-9
    assert np.ptp(run.bias) <= found.memory + 1e-9
    assert np.ptp(run.ahead, axis=1).max() <= 1.0 + found.influence * found.memory + 1e-9
    assert 1.0 + found.memory <= 2.0 * found.time + 3.0


@given(rows_that_mix(), seeds, st.floats(-5, 5))
def test_a_constant_changes_only_the_mean(rows: Floats, seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    chain, losses = Chain(rows, random_policy(rows, rng)), rng.random(rows.shape[:2])
    one, other = chain.long_run(losses), chain.long_run(losses + shift)
    assert other.mean == pytest.approx(one.mean + shift)
    assert_allclose(other.ahead, one.ahead, atol=1e-9)


def test_a_chain_with_a_rhythm_has_a_long_run_too() -> None:
    swing = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    found = long_run(forever(swing), np.ones((2, 1)), np.array([[0.0], [1.0]]))
    assert found.mean == pytest.approx(0.5)
    assert_allclose(found.bias, [-0.25, 0.25])


def test_a_chain_that_cannot_leave_two_classes_is_refused() -> None:
    rng = np.random.default_rng(3)
    blocks = np.zeros((6, 1, 6))
    blocks[:3, 0, :3], blocks[3:, 0, 3:] = rng.dirichlet(np.ones(3), size=(2, 3))
    with pytest.raises(InvalidInput, match="no single stationary law"):
        long_run(forever(blocks), np.ones((6, 1)), np.zeros((6, 1)))
    with pytest.raises(InvalidInput, match="no single stationary law"):
        long_run(forever(np.eye(2)[:, None]), np.ones((2, 1)), np.zeros((2, 1)))


def test_slow_chains_keep_their_law() -> None:
    tiny = 1e-9
    rows = np.array([[[1 - tiny, tiny]], [[3 * tiny, 1 - 3 * tiny]]])
    assert_allclose(Chain(rows, np.ones((2, 1))).law, [0.75, 0.25], rtol=1e-6)


def test_wrong_questions_are_refused() -> None:
    rows = np.full((2, 2, 2), 0.5)
    changing = Kernel(np.stack([rows, rows]))
    empty = rows.copy()
    empty[1, 0] = 0.0
    for make, message in (
        (lambda: mixing(changing), "not a homogeneous kernel"),
        (lambda: least_visits(forever(empty)), r"p\[s=1, a=0\] is all zero"),
        (lambda: least_arrival(forever(rows), 0), "steps = 0"),
        (lambda: long_run(forever(rows), np.ones((2, 1)), np.zeros((2, 2))), r"policy has shape \(2, 1\)"),
        (lambda: long_run(forever(rows), np.full((2, 2), 0.5), np.zeros((3, 2))), r"losses has shape \(3, 2\)"),
        (lambda: long_run(forever(rows), np.full((2, 2), 0.7), np.zeros((2, 2))), "sums to 1.4"),
        (lambda: long_run(forever(rows), np.eye(2)[[0, 0]] * [[1], [0]], np.zeros((2, 2))), "begins a row of zeros"),
    ):
        with pytest.raises(InvalidInput, match=message):
            make()


def test_findings_print_themselves() -> None:
    kernel = forever(np.full((2, 1, 2), 0.5))
    assert str(mixing(kernel)) == "contraction 0 a step, mixing time 0"
    assert str(least_visits(kernel)) == "every policy is in state 0 for 0.5 of the steps or more"
