"""Sizes and numbers that compiled code and those who call it share.

They are part of the machine code, so they stand among the sources that it is kept under: see `compiling`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

LANES = 64  # generators that `noise` runs side by side
WIDTH = 16  # perturbed leaders that a sweep carries side by side
EMPTY_TOLERANCE = 1e-11  # of sums of bounds: above their rounding, below what makes a linear program infeasible


class Weights(NamedTuple):
    """What the three regularizers of `amdp.kernels.regularized` count in a sum of them."""

    entropy: float = 0.0  # of q ln q
    tsallis: float = 0.0  # of -sqrt q
    barrier: float = 0.0  # of -ln q


def lanes(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Seeds `[4, LANES]` for random numbers in bulk: see `amdp.kernels.noise`."""
    seeds: NDArray[np.uint64] = many_lanes(rng, 1)[0]
    return seeds


def many_lanes(rng: np.random.Generator, n: int) -> NDArray[np.uint64]:
    """Seeds `[n, 4, LANES]` for `n` independent streams."""
    if isinstance(rng.bit_generator, np.random.MT19937):  # its raw words have 32 bits only
        return rng.integers(0, 2**64, size=(n, 4, LANES), dtype=np.uint64)
    words = rng.bit_generator.random_raw(n * 4 * LANES)
    return np.asarray(words, dtype=np.uint64).reshape(n, 4, -1)


class _Key(ISeedSequence):
    """Hands Philox its key as it is; numpy would collect entropy first, even where the key is given."""

    def __init__(self, key: NDArray[np.uint64]) -> None:
        self.key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return self.key


def keyed_rng(key: int, count: int) -> np.random.Generator:
    """A fresh generator: Philox under the key `(key, count)`; compiled code has the same (`amdp.kernels.philox`)."""
    # Philox is made for keys that count up: the streams of neighboring counts are unrelated.
    both: Any = _Key(np.array((key, count), dtype=np.uint64))
    return np.random.Generator(np.random.Philox(both))
