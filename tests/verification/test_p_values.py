"""False alarms are as rare as stated, for laws that are far from normal; real differences are found."""

import numpy as np
import pytest

from amdp.verification import p_values

RUNS, LEVEL = 2_000, 0.05
# Of 2,000 runs at a rate of at most 0.05, more than 160 are rejected with a chance below 1e-8 (binomial law).
MOST = 160


def heavy(rng: np.random.Generator, size: int) -> np.ndarray:
    """Mostly 0, rarely large: as products of losses and weights are."""
    return np.where(rng.random(size) < 0.03, rng.pareto(1.2, size), 0.0)


def rejected(chances: list[float]) -> int:
    return sum(chance <= LEVEL for chance in chances)


def test_symmetric_differences_of_a_law_without_a_variance() -> None:
    rng = np.random.default_rng(1)
    chances = [p_values.symmetric(heavy(rng, 40) - heavy(rng, 40), 1.0) for _ in range(RUNS)]
    assert rejected(chances) <= MOST


def test_symmetric_differences_whose_size_depends_on_the_past() -> None:
    rng = np.random.default_rng(2)
    chances = []
    for _ in range(RUNS):
        sums, path = 0.0, []
        for _ in range(60):  # bets more after losses: no fixed sample is as normal as it looks
            step = rng.choice((-1.0, 1.0)) * (4.0 if sums < 0.0 else 1.0)
            sums += step
            path.append(step)
        chances.append(p_values.symmetric(np.array(path), 1.0))
    assert rejected(chances) <= MOST


def test_samples_of_one_heavy_law_are_exchangeable() -> None:
    rng = np.random.default_rng(3)
    chances = [p_values.exchangeable(heavy(rng, 50), heavy(rng, 400)) for _ in range(RUNS)]
    assert rejected(chances) <= MOST


def test_the_lower_limit_of_a_mean_holds_for_a_bounded_law_with_rare_large_values() -> None:
    rng = np.random.default_rng(4)
    wrong = sum(
        p_values.lower_mean(np.where(rng.random(200) < 0.02, 10.0, 0.0), 10.0, LEVEL) > 0.2 for _ in range(RUNS)
    )
    assert wrong <= MOST


def test_the_mean_of_bounded_variables_of_different_laws() -> None:
    rng = np.random.default_rng(8)
    rare = np.linspace(0.1, 0.5, 20)
    chances = [p_values.mean_at_most((rng.random(20) < rare).astype(float), float(rare.mean())) for _ in range(RUNS)]
    assert rejected(chances) <= MOST
    assert p_values.mean_at_most(np.full(100, 0.5), 0.3) < 1e-3


def test_exact_limits_and_frequencies_of_binomial_chances() -> None:
    rng = np.random.default_rng(5)
    counts = rng.binomial(30, 0.07, RUNS).astype(float)
    lower, upper = p_values.chances_between(counts, 30, LEVEL)
    assert (lower > 0.07).sum() <= MOST
    assert (upper < 0.07).sum() <= MOST
    chances = p_values.frequencies(np.column_stack([counts, 30.0 - counts]), np.array([0.07, 0.93]))
    assert rejected(chances[:, 0].tolist()) <= MOST


def test_the_distance_of_an_empirical_distribution_function() -> None:
    rng = np.random.default_rng(6)
    seen = np.arange(1, 41) / 40
    chances = []
    for _ in range(RUNS):
        sample = np.sort(rng.random(40))
        chances.append(p_values.distance(float(max((seen - sample).max(), (sample - seen + 1 / 40).max())), 40))
    assert rejected(chances) <= MOST


@pytest.mark.parametrize("shift", [0.3, -0.3])
def test_real_differences_are_found(shift: float) -> None:
    rng = np.random.default_rng(7)
    x, y = rng.random(2_000), rng.random(2_000) + shift
    assert p_values.symmetric(x - y, 0.3) < 1e-12
    assert p_values.exchangeable(x, y) < 1e-12
    assert p_values.lower_mean(x, 1.0, 1e-6) > 0.4
    assert p_values.binomial(900, 2_000, 0.6) < 1e-12
