"""The plain laws that the checks compare with, against sums by hand."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from amdp import evaluate, one_hot
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.arrays import Floats
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Pairs
from amdp.oracles.base import bind
from amdp.verification.known_transitions import first_leads, strong_ratio
from amdp.verification.worlds import (
    DOMAIN,
    INITIAL,
    SHAPE,
    TRANSITIONS,
    extended_value_iteration,
    greatest_chances,
    laplace,
    leaders,
    occupancies,
    optimistic_occupancies,
    paths,
    sums_of_products,
)


def truncated_moment(q: Floats, limit: int, power: int) -> Floats:
    """`E[min(Geo(q), L)^power]`."""
    n = np.arange(1, limit + 1)
    miss = 1.0 - q[..., None]
    chances = np.where(n < limit, q[..., None] * miss ** (n - 1), miss ** (n - 1))
    return np.array((n**power * chances).sum(axis=-1))


@pytest.mark.parametrize("q", [0.03, 0.4, 1.0])
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_moments_of_the_truncated_geometric_law(q: float, limit: int) -> None:
    n = np.arange(1, 4000)
    chances = (1 - q) ** (n - 1) * q
    cut = np.minimum(n, limit)
    for power in (1, 2, 4):
        assert_allclose(truncated_moment(np.array(q), limit, power), chances @ cut**power, rtol=1e-9)
    assert_allclose(truncated_moment(np.array(q), limit, 1), (1 - (1 - q) ** limit) / q, rtol=1e-9)


def test_plain_backward_induction_and_occupancies_are_those_of_the_library() -> None:
    rng = np.random.default_rng(1)
    costs = rng.normal(size=(50, *SHAPE))
    plans = bind("dp", DOMAIN).minimize(costs)
    actions = leaders(TRANSITIONS, costs)
    assert_allclose((occupancies(TRANSITIONS, actions) * costs).sum(axis=(1, 2, 3)), plans.objective)
    assert_allclose(evaluate(DOMAIN, actions, costs), plans.objective)


def test_plain_extended_value_iteration_is_that_of_the_library() -> None:
    rng = np.random.default_rng(2)
    lower, upper = np.maximum(0.0, TRANSITIONS - 0.1), np.minimum(1.0, TRANSITIONS + 0.1)
    box = BernsteinBox(lower, upper)
    costs = rng.normal(size=(40, *SHAPE))
    domain = MarkovPolicies(box, INITIAL)
    plans = bind("dp", domain).minimize(costs)
    actions, values = extended_value_iteration(lower, upper, costs)
    assert_allclose(values, plans.objective)
    assert_allclose(evaluate(domain, actions, costs), plans.objective)
    visits = box.greatest_visits(one_hot(actions, 2), INITIAL, Pairs.all(SHAPE))
    assert_allclose(greatest_chances(lower, upper, actions).reshape(40, -1), visits)


def test_occupancies_of_leaders_are_those_under_the_kernels_of_the_library() -> None:
    rng = np.random.default_rng(7)
    box = BernsteinBox(np.maximum(0.0, TRANSITIONS - 0.1), np.minimum(1.0, TRANSITIONS + 0.1))
    sweep = box.cheapest(rng.normal(size=(20, *SHAPE)))
    found = optimistic_occupancies(box.lower, box.upper, sweep.actions, sweep.values)
    kernels = [box.optimistic_kernel(values).p for values in sweep.values]
    expected = [occupancies(p, policy[None])[0] for p, policy in zip(kernels, sweep.actions, strict=True)]
    assert_allclose(found, np.array(expected), atol=1e-12)


def test_sums_of_products_are_sums_over_all_paths() -> None:
    rng = np.random.default_rng(8)
    policy, first, second = rng.integers(2, size=SHAPE[:2]).astype(np.int32), *rng.random((2, *SHAPE))
    expected = 0.0
    for path in product(range(SHAPE[1]), repeat=SHAPE[0]):
        pairs = [(h, s, policy[h, s]) for h, s in enumerate(path)]
        chance = (path[0] == INITIAL) * np.prod(
            [TRANSITIONS[pair][s] for pair, s in zip(pairs, path[1:], strict=False)]
        )
        expected += chance * sum(first[x] * second[y] for x, y in product(pairs, pairs) if x[0] != y[0])
    assert sums_of_products(TRANSITIONS, policy[None], first, second)[0] == pytest.approx(expected)


def test_plain_paths_are_where_their_policies_are() -> None:
    # 20,000 paths; six standard errors: a false alarm once in 5e8 for each of 18 pairs.
    rng = np.random.default_rng(6)
    actions = np.repeat(rng.integers(2, size=(1, *SHAPE[:2])).astype(np.int32), 20_000, axis=0)
    share = paths(TRANSITIONS, actions, rng).mean(axis=0)
    assert_allclose(share, occupancies(TRANSITIONS, actions[:1])[0], atol=6 * 0.5 / np.sqrt(20_000))


def test_the_counterexample_has_the_printed_figures() -> None:
    total, step, rate = np.array([0.75, 0.2, 0.6]), np.array([0.1, 0.0, 0.0]), 3.0
    first, second = np.array([0.1, 0.1, 0.2]), np.array([0.2, 0.1, 0.1])
    before, after = (first_leads(float((second - first) @ losses) / 0.1, rate) for losses in (total, total + step))
    assert before == pytest.approx(0.609453, abs=1e-6)
    assert after == pytest.approx(0.675248, abs=1e-6)
    decrease = (after - before) * 0.1 * 0.1
    strong = rate * 0.1**2 * (before * 0.1**2 + (1.0 - before) * 0.2**2)
    weak = rate * 0.1**2 * (before * 0.1 + (1.0 - before) * 0.2)
    assert strong < decrease < weak


@pytest.mark.parametrize("q", [1e-6, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("limit", [1, 5, 200])
def test_the_second_moment_of_resampling_and_the_error_that_it_leaves_are_bounded(q: float, limit: int) -> None:
    assert truncated_moment(np.array(q), limit, 2) <= 2.0 / q**2 + 1e-12
    assert q * (1.0 - q) ** limit <= 1.0 / (np.e * limit)


def test_the_chance_that_the_first_of_two_leads() -> None:
    # 400,000 draws; six standard errors: a false alarm once in 5e8.
    z = np.random.default_rng(3).laplace(scale=0.5, size=(400_000, 2))
    for margin in (-0.7, 0.0, 0.3, 2.0):
        share = (z[:, 0] - z[:, 1] > -margin).mean()
        assert abs(share - first_leads(margin, 2.0)) < 6 * 0.5 / np.sqrt(400_000)


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.001])
def test_the_strong_form_fails_by_one_over_the_visit_chance(chance: float) -> None:
    assert strong_ratio(0.0, chance, 1.0, 1e-6, 1.0) == pytest.approx(1.0 / chance, rel=1e-4)


def test_the_strong_form_fails_in_a_real_world_too() -> None:
    """Two steps; the second state is reached with chance 0.1, and one of its actions met a loss."""
    p = np.zeros((2, 2, 2, 2))
    p[0, 0, :] = (0.9, 0.1)
    p[0, 1, :] = p[1, :, :] = (1.0, 0.0)
    rate, draws = 1.0, 200_000
    noise = Laplace(rate).perturbed(np.zeros((2, 2, 2)), draws, np.random.default_rng(4))
    losses = np.zeros((2, 2, 2))
    losses[1, 1, 0] = 0.05
    before, after = (
        (occupancies(p, leaders(p, noise + more), 0) * losses).sum(axis=(1, 2, 3))
        for more in (np.zeros_like(losses), losses)
    )
    strong, weak = rate * (before**2).mean(), rate * losses.sum() * before.mean()
    decrease = before.mean() - after.mean()
    # Differences of the same draws: the decrease is known to a twentieth of itself or better.
    assert decrease > 4.0 * strong
    assert decrease < weak


def test_noise_of_numpy_has_the_rate_that_the_name_says() -> None:
    assert np.abs(laplace(20_000, 4.0, np.random.default_rng(5))).mean() == pytest.approx(0.25, rel=0.02)
