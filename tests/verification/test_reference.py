"""The plain reference against sums by hand and against trying everything: it is no better than its own tests."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from amdp.verification import reference

SHAPE = (2, 3, 2)


def box(rng: np.random.Generator) -> tuple[reference.Rows, reference.Rows]:
    p = rng.dirichlet(np.ones(3), size=SHAPE)
    lower, upper = np.maximum(0.0, p - 0.2 * rng.random(p.shape)), np.minimum(1.0, p + 0.2 * rng.random(p.shape))
    return lower.tolist(), upper.tolist()


def test_the_least_expectation_is_that_of_a_linear_program() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        lower, upper = (ends[0][0][0] for ends in box(rng))
        values = rng.normal(size=3).tolist()
        solution = linprog(values, A_eq=np.ones((1, 3)), b_eq=[1.0], bounds=list(zip(lower, upper, strict=True)))
        assert reference.least_expectation(lower, upper, values) == pytest.approx(solution.fun)


@pytest.mark.parametrize("seed", range(5))
def test_the_leader_is_the_best_of_all_policies_and_extreme_kernels(seed: int) -> None:
    rng = np.random.default_rng([2, seed])
    lower, upper = box(rng)
    costs = rng.normal(size=SHAPE).tolist()

    def pays(policy: reference.Policy) -> float:
        first = policy[0][1]
        ahead = [costs[1][s][policy[1][s]] for s in range(3)]
        return float(costs[0][1][first]) + reference.least_expectation(lower[0][1][first], upper[0][1][first], ahead)

    every = ([list(actions[:3]), list(actions[3:])] for actions in product(range(2), repeat=6))
    assert pays(reference.leader(lower, upper, costs)) == pytest.approx(min(pays(policy) for policy in every))


def test_values_and_greatest_chances_of_a_known_kernel_are_sums_over_paths() -> None:
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(3), size=SHAPE).tolist()
    table, policy = rng.random(SHAPE).tolist(), rng.integers(2, size=(2, 3)).tolist()
    move = rows[0][2][policy[0][2]]
    by_hand = table[0][2][policy[0][2]] + sum(move[y] * table[1][y][policy[1][y]] for y in range(3))
    assert reference.value(rows, policy, 2, table) == pytest.approx(by_hand)
    chances = [reference.greatest_chance(rows, rows, policy, 2, 1, y) for y in range(3)]
    assert_allclose(chances, move)


def test_paths_and_noise_have_their_laws() -> None:
    # 20,000 draws each; limits of six standard errors: a false alarm once in 1e8.
    rng = np.random.default_rng(4)
    rows = rng.dirichlet(np.ones(3), size=SHAPE).tolist()
    policy = [[1, 0, 1], [0, 0, 0]]
    ends = [reference.walked(rows, policy, 2, rng)[1][0] for _ in range(20_000)]
    shares = np.bincount(ends, minlength=3) / len(ends)
    assert_allclose(shares, rows[0][2][1], atol=6 * 0.5 / np.sqrt(20_000))
    noise = np.array([reference.perturbed([[[2.0]]], 4.0, rng)[0][0][0] for _ in range(20_000)]) - 2.0
    assert abs(np.abs(noise).mean() - 0.25) < 6 * 0.25 / np.sqrt(20_000)
    assert abs(noise.mean()) < 6 * np.sqrt(2.0) * 0.25 / np.sqrt(20_000)


def test_intervals_narrow_by_hand_and_start_again_when_nothing_is_left() -> None:
    plain = reference.over_sets((2, 2, 1), 0, 1.0, 1, 10, 0.5, 0.002)
    log_term = np.log(10 * 2 * 2 * 1 * 10 / 0.5)
    plain.observe([(0, 0), (1, 0)])
    width = 0.002 * (4.0 * np.sqrt(log_term) + 10.0 * log_term)
    assert_allclose(plain.lower[0][0][0], [0.0, 1.0 - width])
    assert_allclose(plain.upper[0][0][0], [0.002 * 10.0 * log_term, 1.0])
    plain.observe([(0, 0), (0, 0)])  # both were met once: the two intervals of each have nothing in common
    half = 0.002 * (4.0 * np.sqrt(0.5 * log_term / 2.0) + 10.0 * log_term / 2.0)
    assert_allclose(plain.lower[0][0][0], [0.5 - half] * 2)
    assert_allclose(plain.upper[0][0][0], [0.5 + half] * 2)


def test_counts_of_trials_are_truncated_geometric() -> None:
    # A bandit: q = 1/2. 4,000 counts; limits of six standard errors: a false alarm once in 1e8.
    plain = reference.Episodes([[[[1.0], [1.0]]]], [[[[1.0], [1.0]]]], 0, 1.0, 3)
    rng = np.random.default_rng(5)
    counts = np.bincount([plain.counted([(0, 0)], 0, rng) for _ in range(4_000)], minlength=4)[1:] / 4_000
    assert_allclose(counts, [0.5, 0.25, 0.25], atol=6 * 0.5 / np.sqrt(4_000))
