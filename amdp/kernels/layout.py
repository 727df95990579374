"""Sizes that compiled code and those who call it share.

They are part of the machine code, so they stand among the sources that it is kept under: see `compiling`.
"""

import numpy as np
from numpy.typing import NDArray

LANES = 64  # generators that `noise` runs side by side
WIDTH = 16  # perturbed leaders that a sweep carries side by side


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
