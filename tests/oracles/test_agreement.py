"""All oracles give the same answers, and these are the right ones."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis.strategies import SearchStrategy
from numpy.testing import assert_allclose
from worlds import ORACLES, SOLVERS, World, box_around, box_worlds, kernel_worlds, plain_values, random_kernel

from amdp import MarkovPolicies, Plans, Status, UnsupportedDomain, bind
from amdp.arrays import Floats
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.solving import SolverPlanner

AGREEMENT = 1e-9  # relative to steps times the largest cost
EXAMPLES = {"dp": 150, "lp": 150, "enumeration": 80, "pulp-highs": 30, "cvxpy-highs": 25, "cvxpy-clarabel": 25}
FEW = 15

each_oracle = pytest.mark.parametrize("name", ORACLES)


def for_all(worlds: SearchStrategy[World], examples: int, check: Callable[[World], None]) -> None:
    """Run a check on examples, as many as its oracle can afford."""

    @settings(max_examples=examples)
    @given(world=worlds)
    def checked(world: World) -> None:
        check(world)

    checked()


def solved(name: str, world: World) -> Plans:
    """The oracle's answers; examples that enumeration refuses for their size are passed over."""
    try:
        planner = bind(ORACLES[name], world.domain)
    except UnsupportedDomain:
        assume(name != "enumeration")
        raise
    return planner.minimize(world.costs)


def require_equal(world: World, found: Floats, wanted: Floats) -> None:
    assert_allclose(found / world.size, wanted / world.size, rtol=0, atol=AGREEMENT)


def require_right_answers(name: str, world: World) -> None:
    plans = solved(name, world)
    start = world.domain.initial
    best = np.array([plain_values(world.domain, cost)[0, start] for cost in world.costs])
    answers = zip(world.costs, plans.actions, strict=True)
    paid = np.array([plain_values(world.domain, cost, actions)[0, start] for cost, actions in answers])
    assert plans.status is Status.OPTIMAL
    assert (plans.bound <= plans.objective).all()
    require_equal(world, plans.objective, best)
    require_equal(world, plans.bound, best)
    require_equal(world, paid, plans.objective)


@each_oracle
def test_answers_over_a_kernel_are_those_of_the_textbook_recursion(name: str) -> None:
    for_all(kernel_worlds(), EXAMPLES.get(name, FEW), lambda world: require_right_answers(name, world))


@each_oracle
def test_answers_over_a_box_are_those_of_its_best_vertices(name: str) -> None:
    small = box_worlds(steps=3, states=3, actions=2)
    for_all(small, EXAMPLES.get(name, FEW) // 2, lambda world: require_right_answers(name, world))


@each_oracle
@pytest.mark.parametrize("n_actions", [8, 9, 12])
def test_more_actions_than_the_unrolled_loops_hold(name: str, n_actions: int) -> None:
    rng = np.random.default_rng(n_actions)
    shape = (2, 2, n_actions)
    domain = MarkovPolicies(random_kernel("dense", shape, rng), 1)
    require_right_answers(name, World(domain, rng.normal(size=(2, *shape))))


@each_oracle
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 3), (1, 4, 1), (3, 1, 1), (3, 1, 2), (3, 3, 1), (1, 3, 3)])
@pytest.mark.parametrize("kind", ["dense", "sparse-homogeneous", "box"])
def test_smallest_worlds(name: str, shape: Shape, kind: str) -> None:
    rng = np.random.default_rng(7)
    kernel = random_kernel("dense" if kind == "box" else kind, shape, rng)
    domain = MarkovPolicies(box_around(kernel, 0.3, rng) if kind == "box" else kernel, shape[1] - 1)
    require_right_answers(name, World(domain, rng.normal(size=(2, *shape))))


def require_same_as_sweep(world: World) -> None:
    exact, linear = bind("dp", world.domain).minimize(world.costs), bind("lp", world.domain).minimize(world.costs)
    assert linear.status is Status.OPTIMAL
    assert (linear.bound <= linear.objective).all()
    require_equal(world, linear.objective, exact.objective)


def test_linear_program_agrees_with_backward_induction_on_larger_kernels() -> None:
    for_all(kernel_worlds(steps=7, states=8, actions=10), 120, require_same_as_sweep)


def test_linear_program_agrees_with_backward_induction_on_larger_boxes() -> None:
    for_all(box_worlds(steps=4, states=6, actions=4), 50, require_same_as_sweep)


@pytest.mark.parametrize("name", SOLVERS)
def test_the_solver_alone_returns_a_cheapest_occupancy_measure(name: str) -> None:
    """The sweep behind a solver would repair a bad policy; here its raw answer is looked at."""

    def check(world: World) -> None:
        planner = bind(ORACLES[name], world.domain)
        assert isinstance(planner, SolverPlanner)
        cost = world.costs[0] / (np.abs(world.costs[0]).max() or 1.0)
        mass = planner.solver.solve(cost).mass
        assert mass is not None
        best = plain_values(world.domain, cost)[0, world.domain.initial]
        assert_allclose((mass * cost).sum(), best, rtol=0, atol=1e-7 * len(cost))
        require_flow(world.domain, mass)

    for_all(kernel_worlds(n=1), 10, check)


def require_flow(domain: MarkovPolicies, mass: Floats) -> None:
    assert isinstance(domain.dynamics, SingleKernel)
    p = domain.dynamics.dense().p
    assert mass.min() >= -1e-7
    assert_allclose(mass[0].sum(axis=1), np.eye(domain.shape[1])[domain.initial], rtol=0, atol=1e-7)
    for h in range(len(mass) - 1):
        assert_allclose(mass[h + 1].sum(axis=1), np.einsum("sa,say->y", mass[h], p[h]), rtol=0, atol=1e-7)
