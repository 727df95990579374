"""Where several policies are cheapest, all oracles return the same one: the first action, also off the path."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from worlds import ORACLES, as_csr, box_around, random_kernel, random_rows, seeds

from amdp import BernsteinBox, Dynamics, Kernel, MarkovPolicies, SparseKernel, bind
from amdp.arrays import Actions

SHAPE = (3, 3, 3)


def tied_dynamics(kind: str, rng: np.random.Generator) -> Dynamics:
    """Dynamics in which all actions of a state do the same."""
    steps, states, actions = SHAPE
    p = np.repeat(random_rows((steps, states, 1), rng), actions, axis=2)
    if kind == "dense":
        return Kernel(p)
    if kind == "sparse":
        return SparseKernel([as_csr(step) for step in p])
    return BernsteinBox(0.5 * p, np.minimum(1.0, 1.5 * p))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("kind", ["dense", "sparse", "box"])
@pytest.mark.parametrize("n", [1, 3])
def test_among_identical_actions_the_first_is_chosen_everywhere(name: str, kind: str, n: int) -> None:
    rng = np.random.default_rng(11)
    costs = np.repeat(rng.normal(size=(n, *SHAPE[:2], 1)), SHAPE[2], axis=3)
    plans = bind(ORACLES[name], MarkovPolicies(tied_dynamics(kind, rng), 1)).minimize(costs)
    assert not plans.actions.any()


@pytest.mark.parametrize("n_states", [5, 16, 17, 33, 64])
@pytest.mark.parametrize("n_actions", [2, 5, 9])
@pytest.mark.parametrize("n", [1, 5, 20])
def test_rounding_does_not_part_identical_actions(n_states: int, n_actions: int, n: int) -> None:
    rng = np.random.default_rng(n_states)
    p = np.repeat(random_rows((3, n_states, 1), rng), n_actions, axis=2)
    costs = np.repeat(rng.normal(size=(n, 3, n_states, 1)), n_actions, axis=3)
    for kernel in (Kernel(p), SparseKernel([as_csr(step) for step in p])):
        assert not bind("dp", MarkovPolicies(kernel)).minimize(costs).actions.any()


@pytest.mark.parametrize("name", ORACLES)
def test_free_choices_all_go_to_the_first_action(name: str) -> None:
    kernel = random_kernel("deterministic", SHAPE, np.random.default_rng(1))
    assert not bind(ORACLES[name], MarkovPolicies(kernel)).minimize(np.zeros((2, *SHAPE))).actions.any()


@pytest.mark.parametrize("name", [name for name in ORACLES if name != "dp"])
@pytest.mark.parametrize("kind", ["deterministic", "layered", "dense", "box"])
def test_whole_costs_with_many_ties_are_settled_like_backward_induction(name: str, kind: str) -> None:
    few = {"lp": 40, "enumeration": 10}.get(name, 5)

    @settings(max_examples=few)
    @given(seed=seeds)
    def check(seed: int) -> None:
        rng = np.random.default_rng(seed)
        around = random_kernel("deterministic" if kind == "box" else kind, SHAPE, rng)
        domain = MarkovPolicies(box_around(around, 0.2, rng) if kind == "box" else around)
        low = -1 if kind == "deterministic" else 1  # sums of whole numbers are exact, averages of them are not
        costs = rng.integers(low, low + 3, size=(3, *SHAPE)).astype(np.float64)
        assert_array_equal(
            bind(ORACLES[name], domain).minimize(costs).actions, bind("dp", domain).minimize(costs).actions
        )

    check()


def actions_that_all_end_up_costing(total: float, seed: int) -> list[Actions]:
    """Answers where all actions of a step are equal on paper, but not in the last bit.

    Each costs, in the last step but one, what the expectation of the last step leaves of `total`.
    """
    rng = np.random.default_rng(seed)
    steps, states, actions = 3, 4, 3
    p = random_rows((steps, states, actions), rng)
    last = rng.integers(0, 10, size=states) / 10.0
    costs = np.zeros((5, steps, states, actions))
    costs[:, -1] = last[:, None]
    costs[:, -2] = total - p[-2] @ last
    costs *= (10.0 ** rng.integers(-3, 4, size=5))[:, None, None, None]
    return [
        bind(name, MarkovPolicies(kernel)).minimize(batch).actions
        for name in ("dp", "lp")
        for kernel in (Kernel(p), SparseKernel([as_csr(step) for step in p]), BernsteinBox(p, p))
        for batch in (costs, costs[:1])
    ]


@settings(max_examples=60)
@given(seed=seeds)
def test_ties_that_rounding_blurs_go_to_the_first_action_in_every_layout_and_storage(seed: int) -> None:
    for actions in actions_that_all_end_up_costing(1.0, seed):
        assert not actions.any()


@pytest.mark.parametrize("name", ["dp", "lp", "pulp", "cvxpy", "enumeration"])
@pytest.mark.parametrize("costs", [[1e9, 1.00005, 1.0], [1e13, 2.0, 1.5], [1e8, 1e-6, 5e-7], [3.0, 3.0, 1e12]])
def test_one_forbidding_cost_does_not_blur_the_others(name: str, costs: list[float]) -> None:
    world = MarkovPolicies(Kernel(np.ones((1, 1, 3, 1))))
    found = bind(name, world).minimize(np.array([[[costs]]]))
    assert found.objective[0] == min(costs)
    assert found.actions[0, 0, 0] == int(np.argmin(costs))
