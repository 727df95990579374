"""Kernels, their storage, what can be reached in them, and what they refuse to hold."""

import pickle

import numpy as np
import pytest
import scipy
from hypothesis import given
from numpy.testing import assert_array_equal
from worlds import KINDS, World, as_csr, few_successors, kernel_worlds, random_kernel, random_policies, random_rows

from amdp import (
    BernsteinBox,
    Dynamics,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    Segment,
    SparseKernel,
    StationaryPolicies,
    bind,
    occupancy,
)
from amdp.arrays import Bools, Floats
from amdp.model.transitions import SingleKernel

SHAPE = (3, 3, 2)


def rows() -> Floats:
    return random_rows(SHAPE, np.random.default_rng(0))


def sparse(p: Floats) -> SparseKernel:
    return SparseKernel([as_csr(step) for step in p])


# --- storage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_know_their_shape_and_describe_themselves(kind: str) -> None:
    kernel = random_kernel(kind, SHAPE, np.random.default_rng(0))
    assert kernel.shape == SHAPE
    assert kernel.is_homogeneous == ("homogeneous" in kind)
    assert "3 steps, 3 states, 2 actions" in repr(kernel)
    assert ("homogeneous" in repr(kernel)) == kernel.is_homogeneous
    assert isinstance(kernel, Dynamics)


@pytest.mark.parametrize("kind", ["sparse", "sparse-homogeneous"])
def test_a_sparse_kernel_and_its_dense_twin_answer_alike(kind: str) -> None:
    rng = np.random.default_rng(1)
    kernel = random_kernel(kind, (4, 6, 3), rng)
    twin = kernel.dense()
    assert twin.is_homogeneous == kernel.is_homogeneous
    for h in range(4):
        assert_array_equal(kernel.matrix(h).toarray(), twin.matrix(h))
    policies, costs = random_policies(3, kernel.shape, rng), rng.normal(size=(3, *kernel.shape))
    np.testing.assert_allclose(occupancy(kernel, policies, 2), occupancy(twin, policies, 2), rtol=0, atol=1e-14)
    assert_array_equal(kernel.reachable(2), twin.reachable(2))
    assert_array_equal(kernel.empty_rows(0), twin.empty_rows(0))
    one, other = bind("dp", MarkovPolicies(kernel)).minimize(costs), bind("dp", MarkovPolicies(twin)).minimize(costs)
    np.testing.assert_allclose(one.values, other.values, rtol=0, atol=1e-13)
    assert twin.dense() is twin


def test_a_homogeneous_kernel_is_a_view_of_one_step() -> None:
    step = random_rows((1, 20, 3), np.random.default_rng(0))[0]
    kernel = Kernel.homogeneous(step, 1000)
    assert kernel.p.strides[0] == 0
    assert np.shares_memory(kernel.p, step)
    assert kernel.rows.chances.shape == (1, 20, 60)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_pickle_with_equal_rows(kind: str) -> None:
    kernel = random_kernel(kind, SHAPE, np.random.default_rng(0))
    kernel.rows  # noqa: B018 - compiled rows are not to travel
    copy = pickle.loads(pickle.dumps(kernel))
    assert type(copy) is type(kernel)
    assert copy.shape == kernel.shape
    assert copy.is_homogeneous == kernel.is_homogeneous
    assert_array_equal(copy.dense().p, kernel.dense().p)


def test_a_homogeneous_kernel_travels_as_one_step() -> None:
    step = random_rows((1, 20, 3), np.random.default_rng(0))[0]
    kernel = Kernel.homogeneous(step, 1000)
    kernel.rows  # noqa: B018
    travelling = pickle.dumps(kernel)
    assert len(travelling) < 2 * step.nbytes
    arrived = pickle.loads(travelling)
    assert arrived.p.strides[0] == 0
    assert arrived.shape == (1000, 20, 3)


def test_a_kernel_cannot_be_written_through() -> None:
    p = rows()
    kernel = Kernel(p)
    with pytest.raises(ValueError, match="read-only"):
        kernel.p[0, 0, 0, 0] = 1.0
    assert p.flags.writeable


def test_a_kernel_may_be_given_as_lists_or_in_any_layout() -> None:
    p, costs = rows(), np.random.default_rng(1).normal(size=(2, *SHAPE))
    wanted = bind("dp", MarkovPolicies(Kernel(p))).minimize(costs).values
    for given_as in (p.tolist(), np.asfortranarray(p), p[:, ::-1][:, ::-1], np.repeat(p, 2, axis=0)[::2]):
        assert_array_equal(bind("dp", MarkovPolicies(Kernel(given_as))).minimize(costs).values, wanted)


def test_duplicate_and_unsorted_entries_of_a_sparse_matrix_add_up_and_the_caller_keeps_them() -> None:
    data, indices, starts = np.array([0.2, 0.5, 0.3, 1.0]), np.array([1, 0, 1, 0]), np.array([0, 3, 4])
    matrix = scipy.sparse.csr_array((data, indices, starts), shape=(2, 2))
    kernel = SparseKernel.homogeneous(matrix, 3)
    assert_array_equal(kernel.dense().p[0, :, 0], [[0.5, 0.5], [1.0, 0.0]])
    assert_array_equal(matrix.data, [0.2, 0.5, 0.3, 1.0])
    assert_array_equal(matrix.indices, [1, 0, 1, 0])


@pytest.mark.parametrize("make", [scipy.sparse.coo_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix, np.asarray])
def test_any_kind_of_matrix_makes_a_sparse_kernel(make) -> None:  # type: ignore[no-untyped-def]
    p = few_successors(SHAPE, np.random.default_rng(2))
    kernel = SparseKernel([make(step.reshape(-1, 3)) for step in p])
    assert_array_equal(kernel.dense().p, p)


# --- reaching -------------------------------------------------------------------------------------------------------


def slow_reach(p: Floats, initial: int) -> Bools:
    steps, states, _, _ = p.shape
    reached = np.zeros((steps, states), dtype=bool)
    reached[0, initial] = True
    for h in range(steps - 1):
        for s in np.flatnonzero(reached[h]):
            reached[h + 1] |= (p[h, s] > 0).any(axis=0)
    return reached


@given(world=kernel_worlds(steps=5, states=6, actions=2))
def test_reachable_states_are_those_with_a_path(world: World) -> None:
    kernel, initial = world.domain.dynamics, world.domain.initial
    assert isinstance(kernel, SingleKernel)
    assert_array_equal(kernel.reachable(initial), slow_reach(kernel.dense().p, initial))


def dead_end() -> Floats:
    """State 2 has no way on in step 1; state 0 leads there, state 1 does not."""
    p = np.zeros((3, 3, 1, 3))
    p[:, 0, 0, 2] = p[:, 1, 0, 1] = p[:, 2, 0, 2] = 1.0
    p[1, 2] = 0.0
    return p


@pytest.mark.parametrize("make", [Kernel, sparse])
def test_an_empty_row_is_allowed_where_the_start_does_not_lead(make) -> None:  # type: ignore[no-untyped-def]
    kernel = make(dead_end())
    assert MarkovPolicies(kernel, initial=1).shape == (3, 3, 1)
    costs = np.random.default_rng(0).random((2, 3, 3, 1))
    paid = costs[:, :, 1, 0].sum(axis=1)
    for name in ("dp", "lp", "enumeration"):
        np.testing.assert_allclose(bind(name, MarkovPolicies(kernel, 1)).minimize(costs).objective, paid)


@pytest.mark.parametrize("make", [Kernel, sparse])
@pytest.mark.parametrize("initial", [0, 2])
def test_an_empty_row_is_refused_where_the_start_leads(make, initial: int) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match=rf"p\[h=1, s=2, a=0\] is all zero, but state {initial} leads there"):
        MarkovPolicies(make(dead_end()), initial)


def test_an_empty_row_of_a_homogeneous_kernel_is_refused_where_the_start_leads() -> None:
    step = dead_end()[1]
    with pytest.raises(InvalidInput, match=r"p\[h=1, s=2, a=0\] is all zero"):
        MarkovPolicies(Kernel.homogeneous(step, 3), 0)
    assert MarkovPolicies(Kernel.homogeneous(step, 2), 0).shape == (2, 3, 1)  # nothing follows the last step


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_row_that_does_not_sum_to_one_is_named_with_its_sum() -> None:
    p = rows()
    p[1, 2, 0] *= 0.75
    with pytest.raises(InvalidInput, match=r"p\[h=1, s=2, a=0\] sums to 0.75; every row must sum to 1"):
        Kernel(p)
    with pytest.raises(InvalidInput, match=r"matrices\[1\]\[s=2, a=0\] sums to 0.75"):
        sparse(p)


@pytest.mark.parametrize(("value", "rule"), [(-0.25, "must not be negative"), (np.nan, "must be a finite probability")])
def test_a_chance_that_is_none_is_named_with_its_place(value: float, rule: str) -> None:
    p = rows()
    p[2, 1, 1, 0] = value
    with pytest.raises(InvalidInput, match=rf"p\[h=2, s=1, a=1, y=0\] = {value}; it {rule}"):
        Kernel(p)
    with pytest.raises(InvalidInput, match=rf"matrices\[2\]\[s=1, a=1, y=0\] = {value}; it {rule}"):
        sparse(p)


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (np.ones((2, 2, 2)) / 2, r"p has shape \(2, 2, 2\); expected axes \[h, s, a, y\]"),
        (np.ones((2, 3, 2, 2)) / 2, r"p has shape \(2, 3, 2, 2\); axes s and y of \[h, s, a, y\] must be equal"),
        (np.ones((2, 0, 2, 0)), "p is empty"),
        ("abc", "p is not an array of numbers"),
    ],
)
def test_arrays_that_are_no_kernel_are_refused(p: Floats, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Kernel(p)


@pytest.mark.parametrize("n_steps", [0, -3])
def test_a_horizon_below_one_step_is_refused(n_steps: int) -> None:
    with pytest.raises(InvalidInput, match=f"n_steps = {n_steps}; it must be a whole number, at least 1"):
        Kernel.homogeneous(rows()[0], n_steps)
    with pytest.raises(InvalidInput, match=f"n_steps = {n_steps}; it must be a whole number, at least 1"):
        SparseKernel.homogeneous(as_csr(rows()[0]), n_steps)


@pytest.mark.parametrize(
    ("matrices", "n_steps", "message"),
    [
        ([], None, "matrices is empty"),
        ([np.eye(2), np.eye(3)], None, r"matrices\[1\] has shape \(3, 3\); the first has \(2, 2\)"),
        ([np.eye(2), np.eye(2)], 3, "2 matrices for 3 steps; give one, or one a step"),
        ([np.ones((5, 3)) / 3], 2, r"matrices\[0\] has shape \(5, 3\); .* multiple of the states 3"),
        (np.eye(2), 2, r"matrices\[0\] has shape \(2,\); give a sequence of matrices"),
        (as_csr(np.ones((2, 2, 2)) / 2), 2, r"matrices\[0\] has shape \(2,\); give a sequence of matrices"),
        ([np.ones((2, 2, 2)) / 2], 2, r"matrices\[0\] is not a matrix"),
        (["abc"], 2, r"matrices\[0\] is not a matrix"),
    ],
)
def test_matrices_that_are_no_kernel_are_refused(matrices: object, n_steps: int | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SparseKernel(matrices, n_steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("initial", [-1, 3, 100])
@pytest.mark.parametrize("domain", [MarkovPolicies, StationaryPolicies])
def test_an_initial_state_out_of_range_is_refused(domain: type[MarkovPolicies], initial: int) -> None:
    with pytest.raises(InvalidInput, match=f"initial = {initial}; it must be between 0 and 2"):
        domain(Kernel.homogeneous(rows()[0], 3), initial)


def test_a_domain_over_a_bare_array_says_how_to_wrap_it() -> None:
    with pytest.raises(InvalidInput, match=r"ndarray is not a kernel .* wrap the array: Kernel\(p\)"):
        MarkovPolicies(rows())  # type: ignore[arg-type]


@pytest.mark.parametrize("dynamics", [Kernel(rows()), sparse(rows()), BernsteinBox.vacuous(SHAPE)])
def test_stationary_policies_need_one_kernel_for_all_steps(dynamics: SingleKernel) -> None:
    with pytest.raises(InvalidInput, match="stationary policies need a homogeneous kernel"):
        StationaryPolicies(dynamics)


def test_stationary_policies_over_a_homogeneous_kernel() -> None:
    domain = StationaryPolicies(Kernel.homogeneous(rows()[0], 50), 2)
    assert domain.shape == (50, 3, 2)
    assert pickle.loads(pickle.dumps(domain)).initial == 2


def test_compiled_sweeps_never_see_what_does_not_fit() -> None:
    kernel = Kernel(np.full((4, 3, 2, 3), 1 / 3))
    costs, slack = np.zeros((1, 4, 3, 2)), np.zeros(1)
    with pytest.raises(InvalidInput, match="actions run from"):
        kernel.follow(costs, np.full((1, 4, 3), 100_000_000, np.int32), slack)
    with pytest.raises(InvalidInput, match="2 policies"):
        kernel.follow(costs, np.zeros((2, 4, 3), np.int32), slack)
    with pytest.raises(InvalidInput, match="costs has shape"):
        kernel.cheapest(np.zeros((1, 5, 3, 2)))
    with pytest.raises(InvalidInput, match="h = 99"):
        kernel.least_expectation(99, np.zeros((1, 3)))
    with pytest.raises(InvalidInput, match="values has shape"):
        kernel.least_expectation(0, np.zeros((1, 2)))


@pytest.mark.parametrize(("states", "actions"), [([0, 1, 0], [0]), ([0.0, 1.0], [0, 0]), ([[0]], [[0]]), (["a"], [0])])
def test_segments_are_lists_of_whole_numbers_of_one_length(states: list[object], actions: list[object]) -> None:
    with pytest.raises(InvalidInput, match="whole numbers of one length"):
        Segment(states, actions)  # type: ignore[arg-type]
