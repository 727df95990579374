"""The compiled noise: its bits, its logarithms, and lanes that keep apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import stats

from amdp.arrays import Floats
from amdp.kernels import noise
from amdp.kernels.layout import LANES
from amdp.kernels.noise import BLOCK

Words = NDArray[np.uint64]
MASK = 2**64 - 1


def fresh_lanes(seed: int = 1) -> Words:
    return np.random.default_rng(seed).integers(0, 2**64, size=(4, LANES), dtype=np.uint64)


def bits(lanes: Words, blocks: int) -> Words:
    """The words that a call for `blocks` blocks of noise consumes."""
    words = np.empty(blocks * BLOCK, np.uint64)
    noise.advance(lanes.copy(), words, words.size)
    return words


def laplace(lanes: Words, count: int, scale: float = 1.0) -> Floats:
    out = np.empty((1, 1, count))
    noise.add_laplace(lanes.copy(), scale, np.zeros((1, count)), out)
    return out.reshape(-1)


def exponential(lanes: Words, count: int, scale: float = 1.0) -> Floats:
    out = np.empty((1, 1, count))
    noise.add_exponential(lanes.copy(), scale, np.zeros((1, count)), out)
    return out.reshape(-1)


def rotated(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & MASK


def plain_xoshiro(state: list[int], count: int) -> list[int]:
    """xoshiro256++ as Blackman and Vigna print it, in whole numbers of Python."""
    s, words = list(state), []
    for _ in range(count):
        words.append((rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK)
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)
    return words


def test_every_lane_is_the_published_generator() -> None:
    lanes = fresh_lanes()
    words = bits(lanes, 3).reshape(-1, LANES)
    for i in range(LANES):
        assert words[:, i].tolist() == plain_xoshiro(lanes[:, i].tolist(), len(words))


def test_lanes_move_on_so_that_the_next_block_goes_on_where_the_last_ended() -> None:
    lanes, whole = fresh_lanes(), bits(fresh_lanes(), 2)
    halves = np.empty((2, BLOCK), np.uint64)
    for half in halves:
        noise.advance(lanes, half, BLOCK)
    assert_array_equal(halves.reshape(-1), whole)


def uniforms(words: Words) -> Floats:
    """In (0, 1], from the upper 52 bits."""
    return 1.0 - (words >> np.uint64(12)).astype(np.float64) * 2.0**-52


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_logarithms_are_those_of_numpy_for_the_same_bits(seed: int) -> None:
    lanes = fresh_lanes(seed)
    expected = np.log(uniforms(bits(lanes, 200)))
    assert_allclose(exponential(lanes, 200 * BLOCK), -expected, rtol=3e-15, atol=3e-16)


def test_logarithms_hold_at_the_ends_of_their_range() -> None:
    fractions = np.array([0, 1, 2, 3, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 2, 2**52 - 1], dtype=np.uint64)
    near_root_half = np.array([int((1 - 0.5**0.5) * 2**52) + i for i in range(-3, 4)], dtype=np.uint64)
    words = np.zeros(BLOCK, np.uint64)
    chosen = np.concatenate([fractions, near_root_half]) << np.uint64(12)
    words[: len(chosen)] = chosen
    logs = np.empty(BLOCK)
    noise.logarithms(words, logs)
    assert_allclose(logs, np.log(uniforms(words)), rtol=3e-15, atol=3e-16)
    assert np.isfinite(logs).all()


def test_laplace_is_the_same_logarithm_with_the_lowest_bit_as_its_sign() -> None:
    lanes = fresh_lanes()
    words = bits(lanes, 20)
    signs = np.where(words & np.uint64(1), -1.0, 1.0)
    expected = signs * np.log(uniforms(words))
    assert_allclose(laplace(lanes, 20 * BLOCK, 2.5), 2.5 * expected, rtol=3e-15, atol=1e-15)


@pytest.mark.parametrize("count", [1, 7, LANES, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_a_short_block_is_the_beginning_of_a_long_one(count: int) -> None:
    lanes = fresh_lanes()
    assert_array_equal(laplace(lanes, count), laplace(lanes, 4 * BLOCK)[:count])
    assert_array_equal(exponential(lanes, count), exponential(lanes, 4 * BLOCK)[:count])


def test_no_number_comes_twice() -> None:
    # 2^20 numbers of 52 bits and a sign: a pair among them agrees with chance 2^-14.
    count = 2**20
    assert len(np.unique(laplace(fresh_lanes(), count))) == count


def test_signs_and_sizes_are_uncorrelated_at_every_lag_near_the_lanes_and_the_block() -> None:
    # Five standard errors for each of 22 lags and 3 kinds: a false alarm in 26,000 seeds.
    count = 2**19
    noisy = laplace(fresh_lanes(), count)
    kinds = {"sign": np.sign(noisy), "value": noisy, "size": np.abs(noisy) - 1.0}
    near = [size + i for size in (LANES, 2 * LANES, BLOCK, 2 * BLOCK) for i in (-1, 0, 1)]
    lags = [*range(1, 9), *near, 4096, 9999]
    for name, numbers in kinds.items():
        for lag in lags:
            correlation = np.mean(numbers[lag:] * numbers[:-lag]) / np.mean(numbers**2)
            assert abs(correlation) < 5.0 / np.sqrt(count - lag), (name, lag)


def test_sign_does_not_tell_the_size() -> None:
    noisy = laplace(fresh_lanes(), 2**19)
    assert abs(np.corrcoef(np.sign(noisy), np.abs(noisy))[0, 1]) < 5.0 / np.sqrt(noisy.size)


def test_center_is_added_to_every_copy_at_its_own_step() -> None:
    lanes, center = fresh_lanes(), np.arange(6.0).reshape(2, 3)
    for add in (noise.add_laplace, noise.add_exponential):
        plain, moved = np.empty((2, 5, 3)), np.empty((2, 5, 3))
        add(lanes.copy(), 1.0, np.zeros((2, 3)), plain)
        add(lanes.copy(), 1.0, center, moved)
        assert_array_equal(moved, plain + center[:, None])


def test_uniform_numbers_are_uniform_and_depend_on_the_lanes_alone() -> None:
    lanes, again = fresh_lanes(), fresh_lanes()
    numbers, same = np.empty((400, 250)), np.empty((400, 250))
    noise.fill_uniform(lanes, numbers)
    noise.fill_uniform(again, same)
    assert_array_equal(numbers, same)
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    assert stats.kstest(numbers.reshape(-1), "uniform").pvalue > 1e-4, "a false alarm in 10,000 seeds"
    following = np.empty(1000)
    noise.fill_uniform(lanes, following)
    assert not np.isin(following, numbers).any(), "the lanes have moved on"
