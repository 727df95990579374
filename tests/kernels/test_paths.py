"""Trajectories: which number leads where, the chances that follow, and luck that does not depend on the storage."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from worlds import KINDS, as_csr, few_successors, random_kernel, random_policies, random_rows, seeds, shapes

from amdp import BernsteinBox, Kernel, Pairs, Segment, SparseKernel, occupancy, one_hot
from amdp.arrays import Floats
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel

SHAPE = (4, 3, 2)
SIGMAS = 5.5  # a false alarm in 26 million draws of a normal number


def picked(chances: Floats, uniform: float) -> int:
    """The inverse of the cumulative chances, by counting."""
    cumulative = np.cumsum(chances)
    return int(np.sum(cumulative <= uniform * cumulative[-1]))


def plain_walk(kernel: SingleKernel, policy: Floats, initial: int, uniforms: Floats) -> Segment:
    p, s = kernel.dense().p, initial
    states, actions = [], []
    for h in range(len(policy)):
        a = picked(policy[h, s], uniforms[h, 0])
        states.append(s)
        actions.append(a)
        if h + 1 < len(policy):
            s = picked(p[h, s, a], uniforms[h, 1])
    return Segment(np.array(states), np.array(actions))


@given(shapes(), st.sampled_from(KINDS), seeds)
def test_walk_inverts_the_cumulative_chances(shape: Shape, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = random_kernel(kind, shape, rng)
    for deterministic in (False, True):
        policy = random_policies(1, shape, rng, deterministic=deterministic)[0]
        uniforms = rng.random((shape[0], 2))
        walked, expected = kernel.walk(policy, 0, uniforms), plain_walk(kernel, policy, 0, uniforms)
        assert_array_equal(walked.states, expected.states)
        assert_array_equal(walked.actions, expected.actions)
        assert walked.start == 0


@given(shapes(states=6), seeds, st.booleans())
def test_dense_and_sparse_kernels_share_their_luck(shape: Shape, seed: int, homogeneous: bool) -> None:
    rng = np.random.default_rng(seed)
    p = few_successors((1 if homogeneous else shape[0], *shape[1:]), rng)
    dense: SingleKernel = Kernel.homogeneous(p[0], shape[0]) if homogeneous else Kernel(p)
    sparse = SparseKernel([as_csr(step) for step in p], shape[0])
    policy = random_policies(1, shape, rng)[0]
    uniforms = rng.random((shape[0], 2))
    one, other = dense.walk(policy, 0, uniforms), sparse.walk(policy, 0, uniforms)
    assert_array_equal(one.states, other.states)
    assert_array_equal(one.actions, other.actions)
    actions = rng.integers(shape[2], size=(40, *shape[:2])).astype(np.int32)
    steps = rng.integers(shape[0], size=40)
    for luck in rng.random((3, 40, shape[0])):
        met, also = (k.meets_all(actions, 0, one, luck) for k in (dense, sparse))
        assert_array_equal(met, also)
        met, also = (k.meets(actions, 0, one, steps, luck) for k in (dense, sparse))
        assert_array_equal(met, also)


def test_dense_and_sparse_kernels_agree_on_numbers_at_the_edge_of_a_chance() -> None:
    # Sums of all rows before would round the edges of a sparse row by 1e-16 and more.
    rng = np.random.default_rng(1)
    p = few_successors((2, 40, 3), rng)
    dense, sparse = Kernel(p), SparseKernel([as_csr(step) for step in p])
    for s, a in np.ndindex(40, 3):
        policy = one_hot(np.full((2, 40), a), 3)
        for edge in np.cumsum(p[0, s, a]):
            uniforms = np.full((2, 2), min(edge, np.nextafter(1.0, 0.0)))
            assert_array_equal(dense.walk(policy, s, uniforms).states, sparse.walk(policy, s, uniforms).states)


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_extreme_numbers_never_lead_where_the_chance_is_zero(kind: str, uniform: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        kernel = random_kernel(kind, SHAPE, rng)
        p = kernel.dense().p
        policy = random_policies(1, SHAPE, rng, deterministic=True)[0]
        walked = kernel.walk(policy, 0, np.full((SHAPE[0], 2), uniform))
        assert (policy[np.arange(SHAPE[0]), walked.states, walked.actions] > 0).all()
        assert (p[np.arange(SHAPE[0] - 1), walked.states[:-1], walked.actions[:-1], walked.states[1:]] > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_visited_as_often_as_the_occupancy_says(kind: str) -> None:
    rng = np.random.default_rng(11)
    kernel = random_kernel(kind, SHAPE, rng)
    policy = random_policies(1, SHAPE, rng)[0]
    n = 2500
    counts = np.zeros(SHAPE)
    for uniforms in rng.random((n, SHAPE[0], 2)):
        walked = kernel.walk(policy, 0, uniforms)
        counts[np.arange(SHAPE[0]), walked.states, walked.actions] += 1
    exact = occupancy(kernel, policy[None], 0)[0]
    assert (counts[exact == 0] == 0).all()
    assert (np.abs(counts / n - exact) <= SIGMAS * np.sqrt(exact * (1 - exact) / n) + 1e-12).all()


def chances_to_meet(kernel: SingleKernel, actions: np.ndarray, segment: Segment) -> Floats:
    """`[n, m]`, exactly."""
    pairs = Pairs(np.arange(len(segment.states)), segment.states, segment.actions)
    return kernel.dense().greatest_visits(one_hot(actions, kernel.shape[2]), 0, pairs)


def some_segment(kernel: SingleKernel, rng: np.random.Generator) -> Segment:
    return kernel.walk(random_policies(1, kernel.shape, rng)[0], 0, rng.random((kernel.shape[0], 2)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("boxed", [False, True])
def test_policies_meet_a_segment_with_the_chance_of_its_pairs(kind: str, boxed: bool) -> None:
    rng = np.random.default_rng(5)
    kernel = random_kernel("dense" if kind == "layered" and boxed else kind, SHAPE, rng)
    dynamics = BernsteinBox.exactly(kernel) if boxed else kernel
    segment, n = some_segment(kernel, rng), 20_000
    few = rng.integers(SHAPE[2], size=(3, *SHAPE[:2])).astype(np.int32)
    for one, exact in zip(few, chances_to_meet(kernel, few, segment), strict=True):
        policies = np.repeat(one[None], n, axis=0)
        margin = SIGMAS * np.sqrt(exact * (1 - exact) / n) + 1e-12
        assert (
            np.abs(dynamics.meets_all(policies, 0, segment, rng.random((n, SHAPE[0]))).mean(axis=0) - exact) <= margin
        ).all()
        for step in range(SHAPE[0]):
            met = dynamics.meets(policies, 0, segment, np.full(n, step), rng.random((n, SHAPE[0])))
            assert abs(met.mean() - exact[step]) <= margin[step]


def test_each_policy_of_a_batch_is_asked_about_its_own_step() -> None:
    rng = np.random.default_rng(7)
    kernel = Kernel(np.eye(3)[rng.integers(3, size=SHAPE)])  # deterministic: the answers are certain
    segment = some_segment(kernel, rng)
    actions = rng.integers(SHAPE[2], size=(200, *SHAPE[:2])).astype(np.int32)
    steps = rng.integers(SHAPE[0], size=200)
    exact = chances_to_meet(kernel, actions, segment)
    luck = rng.random((200, SHAPE[0]))
    assert_array_equal(kernel.meets_all(actions, 0, segment, luck), exact == 1.0)
    assert_array_equal(kernel.meets(actions, 0, segment, steps, luck), exact[np.arange(200), steps] == 1.0)
    box = BernsteinBox.exactly(kernel)
    assert_array_equal(box.meets(actions, 0, segment, steps, luck), exact[np.arange(200), steps] == 1.0)


@settings(max_examples=15)
@given(seeds)
def test_a_box_meets_with_the_greatest_chance_that_it_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = random_kernel("dense", SHAPE, rng)
    p = kernel.dense().p
    box = BernsteinBox(np.maximum(0, p - 0.2), np.minimum(1, p + 0.2))
    segment, n = some_segment(kernel, rng), 4000
    policy = rng.integers(SHAPE[2], size=SHAPE[:2]).astype(np.int32)
    pairs = Pairs(np.arange(SHAPE[0]), segment.states, segment.actions)
    greatest = box.greatest_visits(one_hot(policy[None], SHAPE[2]), 0, pairs)[0]
    luck = rng.random((n, SHAPE[0]))
    met = box.meets_all(np.repeat(policy[None], n, axis=0), 0, segment, luck).mean(axis=0)
    assert (np.abs(met - greatest) <= SIGMAS * np.sqrt(greatest * (1 - greatest) / n) + 1e-12).all()


def test_policies_laid_out_step_by_step_are_simulated_right() -> None:
    rng = np.random.default_rng(9)
    kernel = Kernel(random_rows(SHAPE, rng))
    segment = some_segment(kernel, rng)
    actions = rng.integers(SHAPE[2], size=(SHAPE[0], 30, SHAPE[1])).astype(np.int32).swapaxes(0, 1)
    steps = np.arange(30) % SHAPE[0]
    luck = rng.random((30, SHAPE[0]))
    laid: Any
    for laid in (np.ascontiguousarray(actions), actions.astype(np.int64)):
        assert_array_equal(
            kernel.meets(actions, 0, segment, steps, luck),
            kernel.meets(laid, 0, segment, steps, luck),
        )


@pytest.mark.parametrize("boxed", [False, True])
def test_a_segment_that_starts_late_is_met_at_its_own_steps(boxed: bool) -> None:
    rng = np.random.default_rng(11)
    kernel = Kernel(random_rows(SHAPE, rng))
    dynamics = BernsteinBox.exactly(kernel) if boxed else kernel
    whole, n = some_segment(kernel, rng), 20_000
    late = Segment(whole.states[1:], whole.actions[1:], start=1)
    policy = rng.integers(SHAPE[2], size=SHAPE[:2]).astype(np.int32)
    exact = chances_to_meet(kernel, policy[None], whole)[0, 1:]
    margin = SIGMAS * np.sqrt(exact * (1 - exact) / n) + 1e-12
    policies, luck = np.repeat(policy[None], n, axis=0), rng.random((n, SHAPE[0]))
    assert (np.abs(dynamics.meets_all(policies, 0, late, luck).mean(axis=0) - exact) <= margin).all()
    for step in range(SHAPE[0] - 1):
        met = dynamics.meets(policies, 0, late, np.full(n, step), luck)
        assert abs(met.mean() - exact[step]) <= margin[step]
