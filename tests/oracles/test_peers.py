"""Values of another package: pymdptoolbox's finite horizon, its policy iteration and its relative value iteration.

It maximizes rewards that do not depend on the step, and adds a terminal value of zero after the last step. Agreement
with QuantEcon is checked by `python -m benchmarks oracles --only single`: importing it from two processes at once, its
compiled cache still empty, can crash them both.
"""

import numpy as np
import pytest
from mdptoolbox.mdp import FiniteHorizon, PolicyIteration, RelativeValueIteration
from numpy.testing import assert_allclose
from worlds import random_rows

from amdp import AverageCostPolicies, DiscountedPolicies, Kernel, MarkovPolicies, plan
from amdp.arrays import Floats
from amdp.model.segments import Shape

AGREEMENT = 1e-10


def stationary(shape: Shape, seed: int) -> tuple[Floats, Floats]:
    """Rows `[s, a, y]` and costs `[s, a]`."""
    rng = np.random.default_rng(seed)
    _, states, actions = shape
    return random_rows((1, states, actions), rng)[0], rng.normal(size=(states, actions))


def our_values(p: Floats, cost: Floats, steps: int, name: str = "dp") -> Floats:
    domain = MarkovPolicies(Kernel.homogeneous(p, steps))
    return plan(name, domain, np.broadcast_to(cost, (steps, *cost.shape))).values


def mdptoolbox_values(p: Floats, cost: Floats, steps: int) -> Floats:
    model = FiniteHorizon(p.transpose(1, 0, 2), -cost, 1.0, steps)
    model.run()
    assert not model.V[:, steps].any()
    return np.asarray(-model.V[:, :steps].T)


@pytest.mark.parametrize("name", ["dp", "lp"])
def test_pymdptoolbox_finds_the_same_values(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, shape in enumerate([(1, 2, 2), (5, 3, 2), (8, 6, 4), (12, 9, 9)]):
        p, cost = stationary(shape, seed)
        found = our_values(p, cost, shape[0], name)
        assert_allclose(found, mdptoolbox_values(p, cost, shape[0]), rtol=0, atol=AGREEMENT)
    assert "WARNING" in capsys.readouterr().out  # it says so on the screen when nothing is discounted


def test_pymdptoolbox_chooses_the_same_actions_where_no_two_tie() -> None:
    p, cost = stationary((6, 5, 3), 3)
    model = FiniteHorizon(p.transpose(1, 0, 2), -cost, 1.0, 6)
    model.run()
    domain = MarkovPolicies(Kernel.homogeneous(p, 6))
    np.testing.assert_array_equal(plan("dp", domain, np.broadcast_to(cost, (6, 5, 3))).actions, model.policy.T)


@pytest.mark.parametrize("discount", [0.5, 0.95])
def test_policy_iteration_of_discounted_costs(discount: float) -> None:
    p, cost = stationary((1, 8, 3), 11)
    model = PolicyIteration(p.transpose(1, 0, 2), -cost, discount)
    model.run()
    ours = plan("policy-iteration", DiscountedPolicies(Kernel.homogeneous(p, 1), discount), cost)
    assert_allclose(ours.values, -np.array(model.V), atol=AGREEMENT)
    assert ours.actions.tolist() == list(model.policy)


def test_relative_value_iteration_of_average_costs() -> None:
    p, cost = stationary((1, 8, 3), 12)
    model = RelativeValueIteration(p.transpose(1, 0, 2), -cost, epsilon=1e-9)
    model.run()
    ours = plan("policy-iteration", AverageCostPolicies(Kernel.homogeneous(p, 1)), cost)
    assert_allclose(ours.objective, -model.average_reward, atol=1e-8)
    assert ours.actions.tolist() == list(model.policy)
