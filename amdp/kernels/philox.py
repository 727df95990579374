"""Uniform numbers of many rounds at once, compiled: those that numpy's Philox generator has under a key for each round.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), is the source of Philox4x64-10.
"""

import numpy as np
from numba import uint64

from amdp.kernels.compiling import entry, inner

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW = np.uint64(0xFFFFFFFF)
_ROUNDS = 10

_entry = entry()
_inner = inner()


@_entry
def fill_uniform(key, first, out):
    """Row `i` of `out` gets the first numbers of `Generator(Philox(key=(key, first + i)))`, in [0, 1)."""
    for i in range(out.shape[0]):
        row = out[i]
        for low in range(0, row.size, 4):
            words = _block(uint64(low // 4 + 1), uint64(0), uint64(key), uint64(first + i))
            for j in range(min(4, row.size - low)):
                row[low + j] = (words[j] >> uint64(11)) * (1.0 / 9007199254740992.0)


@_entry
def fill_words(key, second_key, out):
    """The first words of `Philox(key=(key, second_key))`."""
    for low in range(0, out.size, 4):
        words = _block(uint64(low // 4 + 1), uint64(0), uint64(key), uint64(second_key))
        for j in range(min(4, out.size - low)):
            out[low + j] = words[j]


@_entry
def fill_step(key, time, out):
    """The first numbers of `Generator(Philox(key=key, counter=(0, 0, 0, time)))`, in [0, 1)."""
    for low in range(0, out.size, 4):
        words = _block(uint64(low // 4 + 1), uint64(time), uint64(key), uint64(0))
        for j in range(min(4, out.size - low)):
            out[low + j] = (words[j] >> uint64(11)) * (1.0 / 9007199254740992.0)


@_inner
def _block(counter, last_counter, key_0, key_1):
    """The four random words that Philox makes of the first and last word of a counter and a key of two words."""
    c0, c1, c2, c3 = counter, uint64(0), uint64(0), last_counter
    for _ in range(_ROUNDS):
        high_0, high_1 = _upper_product(_MULTIPLIER_0, c0), _upper_product(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ key_0, _MULTIPLIER_1 * c2, high_0 ^ c3 ^ key_1, _MULTIPLIER_0 * c0
        key_0 += _WEYL_0
        key_1 += _WEYL_1
    return c0, c1, c2, c3


@_inner
def _upper_product(a, b):
    """The upper 64 bits of a product of 128."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> uint64(32), b & _LOW, b >> uint64(32)
    middle = a_high * b_low + ((a_low * b_low) >> uint64(32))
    other = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> uint64(32)) + (other >> uint64(32))
