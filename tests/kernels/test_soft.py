"""The soft backward sweep: its closed form, its optimality, its gradient, and numbers of every size."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp
from worlds import World, box_worlds, kernel_worlds, least_row_value, random_kernel, random_policies, seeds

from amdp import BernsteinBox, MarkovPolicies
from amdp.algorithms.rates import FixedRate
from amdp.algorithms.soft_leader import SoftPolicy, soft_sweep
from amdp.arrays import Floats
from amdp.model.confidence import BernsteinBox as Box
from amdp.model.dynamics import CompiledDynamics
from amdp.model.segments import Pairs
from amdp.model.transitions import SingleKernel

rates = st.sampled_from((1e-9, 1e-3, 0.3, 1.0, 20.0, 1e6))


def plain(domain: MarkovPolicies, total: Floats, rate: float) -> tuple[Floats, Floats]:
    """Policy and values by the formulas, in plain loops."""
    steps, states, actions = domain.shape
    values, policy = np.zeros((steps + 1, states)), np.empty(domain.shape)
    for h, s in product(reversed(range(steps)), range(states)):
        q = np.array([total[h, s, a] + expected(domain, h, s, a, values[h + 1]) for a in range(actions)])
        x = -rate * (q - q.min())
        values[h, s] = q.min() - (logsumexp(x) - np.log(actions)) / rate
        policy[h, s] = np.exp(x - logsumexp(x))
    return policy, values[:-1]


def expected(domain: MarkovPolicies, h: int, s: int, a: int, later: Floats) -> float:
    if h == domain.shape[0] - 1:
        return 0.0
    if isinstance(domain.dynamics, BernsteinBox):
        return least_row_value(domain.dynamics.lower[h, s, a], domain.dynamics.upper[h, s, a], later)
    assert isinstance(domain.dynamics, SingleKernel)
    return float(domain.dynamics.dense().p[h, s, a] @ later)


def swept(domain: MarkovPolicies, total: Floats, rate: float) -> tuple[Floats, Floats]:
    assert isinstance(domain.dynamics, CompiledDynamics)
    return soft_sweep(domain.dynamics, total, rate)


@given(world=st.one_of(kernel_worlds(n=1), box_worlds(n=1)), rate=rates)
@settings(max_examples=60, deadline=None)
def test_it_is_the_closed_form(world: World, rate: float) -> None:
    total = world.costs[0]
    policy, values = swept(world.domain, total, rate)
    expected_policy, expected_values = plain(world.domain, total, rate)
    size = float(world.size[0])
    assert_allclose(values, expected_values, rtol=0, atol=1e-11 * size + 1e-14 / rate)
    # An exponent is right up to the rounding of what is above it, which is as large as the costs are.
    assert_allclose(policy, expected_policy, rtol=1e-9 + 1e-13 * rate * size, atol=1e-12 + min(1, 1e-13 * rate * size))
    assert_allclose(policy.sum(axis=-1), 1.0, rtol=1e-13)


def kl_to_uniform(kernel: SingleKernel, initial: int, policy: Floats) -> float:
    """The relative entropy of the trajectory's actions to uniform ones."""
    occupancy = kernel.occupancy(policy[None], initial)[0]
    logs = np.log(np.where(policy > 0, policy, 1.0) * policy.shape[-1])
    return float((occupancy * logs).sum())


@given(seed=seeds, rate=st.floats(0.05, 2.0))
@settings(max_examples=20, deadline=None)
def test_its_value_is_the_least_of_losses_and_relative_entropy(seed: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    shape, initial = (2, 2, 2), 1
    kernel = random_kernel("dense", shape, rng)
    total = rng.normal(size=shape)

    def objective(policy: Floats) -> float:
        paid = float((kernel.occupancy(policy[None], initial)[0] * total).sum())
        return paid + kl_to_uniform(kernel, initial, policy) / rate

    def of_logits(x: Floats) -> float:
        first = 1.0 / (1.0 + np.exp(-x.reshape(2, 2)))
        return objective(np.stack([first, 1.0 - first], axis=-1))

    policy, values = swept(MarkovPolicies(kernel, initial), total, rate)
    assert objective(policy) == pytest.approx(values[0, initial], abs=1e-9)
    found = minimize(of_logits, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert found.fun == pytest.approx(values[0, initial], abs=1e-5)
    for other in random_policies(20, shape, rng):
        assert objective(other) >= values[0, initial] - 1e-9


@given(world=st.one_of(kernel_worlds(n=1, kinds=("dense", "sparse", "layered")), box_worlds(n=1)), seed=seeds)
@settings(max_examples=25, deadline=None)
def test_its_gradient_is_the_occupancy_measure(world: World, seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain, total, way = world.domain, rng.random(world.domain.shape), rng.normal(size=world.domain.shape)
    state = SoftPolicy(domain, FixedRate(0.7), total)
    step = 1e-5
    slope = (state.potential(total + step * way) - state.potential(total - step * way)) / (2 * step)
    if not isinstance(domain.dynamics, Box):
        assert slope == pytest.approx(float((state.occupancy * way).sum()), abs=1e-6)
    # Over a box it is one of the supergradients: a tie of two kernels has several.
    assert state.potential(total + way) <= state.potential(total) + float((state.occupancy * way).sum()) + 1e-9


@given(world=kernel_worlds(n=1))
@settings(max_examples=40, deadline=None)
def test_visit_chances_are_those_of_the_occupancy_measure(world: World) -> None:
    state = SoftPolicy(world.domain, FixedRate(1.0), world.costs[0])
    every = Pairs.all(world.domain.shape)
    assert_allclose(state.visits(every), state.occupancy.reshape(-1), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("rate", [0.0, 1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("size", [0.0, 1e-300, 1.0, 1e15, 1e300])
@pytest.mark.parametrize("kind", ["dense", "sparse", "box"])
def test_numbers_of_every_size_are_finite(rate: float, size: float, kind: str) -> None:
    rng = np.random.default_rng(1)
    kernel = random_kernel("dense" if kind == "box" else kind, (4, 3, 3), rng)
    dynamics = BernsteinBox.exactly(kernel) if kind == "box" else kernel
    total = size * rng.random((4, 3, 3))
    policy, values = soft_sweep(dynamics, total, rate)
    assert np.isfinite(policy).all()
    assert np.isfinite(values).all()
    assert_allclose(policy.sum(axis=-1), 1.0)
    least, uniform = kernel.cheapest(total[None]).values[0], soft_sweep(dynamics, total, 0.0).values
    slack = 1e-12 * 4 * size
    assert (values >= least - slack).all()
    assert (values <= uniform + slack).all()  # the soft minimum falls as the rate grows


def test_at_rate_zero_the_policy_is_uniform_and_at_a_huge_rate_the_cheapest() -> None:
    rng = np.random.default_rng(2)
    kernel, total = random_kernel("dense", (3, 3, 2), rng), rng.random((3, 3, 2))
    assert_allclose(soft_sweep(kernel, total, 0.0).policy, 0.5)
    cheapest = kernel.cheapest(total[None])
    policy, values = soft_sweep(kernel, total, 1e9)
    assert_allclose(values, cheapest.values[0], atol=1e-8)
    assert (policy.argmax(axis=-1) == cheapest.actions[0]).all()


@pytest.mark.parametrize("rate", [0.0, 1.0, 1e9])
def test_one_action_pays_what_it_must(rate: float) -> None:
    rng = np.random.default_rng(3)
    kernel, total = random_kernel("dense", (4, 3, 1), rng), rng.random((4, 3, 1))
    policy, values = soft_sweep(kernel, total, rate)
    assert (policy == 1.0).all()
    assert_allclose(values, kernel.cheapest(total[None]).values[0], rtol=1e-12)


def test_small_rates_keep_their_digits() -> None:
    total = np.array([[[1.0, 3.0]]])
    kernel = random_kernel("dense", (1, 1, 2), np.random.default_rng(0))
    for rate in (1e-4, 1e-8, 1e-12):
        # mean - rate variance / 2, up to rate^3
        assert soft_sweep(kernel, total, rate).values[0, 0] == pytest.approx(2.0 - rate / 2.0, rel=1e-12)
