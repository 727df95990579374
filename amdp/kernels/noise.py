"""Noise in bulk, compiled: xoshiro256++ on many lanes side by side, and logarithms that vectorize.

The lanes `[4, LANES]` belong to the caller, who seeds them (`amdp.kernels.layout.lanes`); every call moves them on.
Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021), is the source of xoshiro256++.
"""

import numpy as np
from numba import uint64

from amdp.kernels.compiling import FUSED, entry, inner
from amdp.kernels.layout import LANES

BLOCK = 512  # numbers made at a time: their scratch stays in the first-level cache

_ONE = np.uint64(0x3FF0000000000000)  # the bits of 1.0
_FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
_TWO_TO_52 = np.uint64(0x4330000000000000)  # the bits of 2^52: an integer below it, or-ed in, is added
_LN_2 = 0.6931471805599453
_ROOT_2 = 1.4142135623730951

_entry = entry(FUSED)
_inner = inner(FUSED)


@_entry
def _advance(lanes, words):
    """Fill `words` (a multiple of LANES) with random bits, and move the lanes `[4, LANES]` on."""
    s0, s1, s2, s3 = lanes[0], lanes[1], lanes[2], lanes[3]
    for low in range(0, words.size, LANES):
        out = words[low : low + LANES]
        for i in range(LANES):
            a, b, c, d = s0[i], s1[i], s2[i], s3[i]
            mixed = a + d
            out[i] = ((mixed << uint64(23)) | (mixed >> uint64(41))) + a
            shifted = b << uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= shifted
            s0[i], s1[i], s2[i] = a, b, c
            s3[i] = (d << uint64(45)) | (d >> uint64(19))


@_entry
def _logarithms(words, exponents, logs):
    """Natural logarithms of uniform numbers in (0, 1], made from the upper 52 bits of `words`.

    `log(2^e m) = e ln 2 + 2 artanh((m-1)/(m+1))`, with `m` between sqrt(1/2) and sqrt(2), as a series of ten terms.
    """
    bits = logs.view(np.uint64)
    exponent_bits = exponents.view(np.uint64)
    for i in range(BLOCK):
        bits[i] = (words[i] >> uint64(12)) | _ONE
    for i in range(BLOCK):
        logs[i] = 2.0 - logs[i]
    for i in range(BLOCK):
        uniform = bits[i]
        exponent_bits[i] = (uniform >> uint64(52)) | _TWO_TO_52
        bits[i] = (uniform & _FRACTION) | _ONE
    for i in range(BLOCK):
        exponent = exponents[i] - 4503599627371519.0  # 2^52 + 1023
        m = logs[i]
        exponent = exponent + 1.0 if m > _ROOT_2 else exponent
        m = 0.5 * m if m > _ROOT_2 else m
        z = (m - 1.0) / (m + 1.0)
        z2 = z * z
        series = 2.0 / 21.0
        series = 2.0 / 19.0 + z2 * series
        series = 2.0 / 17.0 + z2 * series
        series = 2.0 / 15.0 + z2 * series
        series = 2.0 / 13.0 + z2 * series
        series = 2.0 / 11.0 + z2 * series
        series = 2.0 / 9.0 + z2 * series
        series = 2.0 / 7.0 + z2 * series
        series = 2.0 / 5.0 + z2 * series
        series = 2.0 / 3.0 + z2 * series
        logs[i] = exponent * _LN_2 + (2.0 * z + z * z2 * series)


@_entry
def add_laplace(lanes, scale, center, out):
    """`out[h, n, j] = center[h, j] + Laplace noise` of mean absolute value `scale`."""
    words = np.empty(BLOCK, np.uint64)
    exponents = np.empty(BLOCK)
    noise = np.empty(BLOCK)
    signs = np.empty(BLOCK)
    sign_bits = signs.view(np.uint64)
    flat = out.reshape(-1)
    for low in range(0, flat.size, BLOCK):
        _advance(lanes, words)
        _logarithms(words, exponents, noise)
        for i in range(BLOCK):
            sign_bits[i] = (words[i] << uint64(63)) | _ONE  # the lowest bit is not used by the logarithm
        count = min(BLOCK, flat.size - low)
        block = flat[low : low + count]
        for i in range(count):
            block[i] = scale * signs[i] * noise[i]
    _add(center, out)


@_entry
def add_exponential(lanes, scale, center, out):
    """`out[h, n, j] = center[h, j] + scale` times an exponential number of mean 1."""
    words = np.empty(BLOCK, np.uint64)
    exponents = np.empty(BLOCK)
    noise = np.empty(BLOCK)
    flat = out.reshape(-1)
    for low in range(0, flat.size, BLOCK):
        _advance(lanes, words)
        _logarithms(words, exponents, noise)
        count = min(BLOCK, flat.size - low)
        block = flat[low : low + count]
        for i in range(count):
            block[i] = -scale * noise[i]
    _add(center, out)


@_inner
def _add(center, out):
    steps, n, width = out.shape
    for h in range(steps):
        for i in range(n):
            row = out[h, i]
            shift = center[h]
            for j in range(width):
                row[j] += shift[j]


@_entry
def fill_uniform(lanes, out):
    """Uniform numbers in [0, 1), multiples of 2^-52; what a call leaves of a block is thrown away."""
    words = np.empty(BLOCK, np.uint64)
    ones = np.empty(BLOCK)
    bits = ones.view(np.uint64)
    flat = out.reshape(-1)
    for low in range(0, flat.size, BLOCK):
        _advance(lanes, words)
        for i in range(BLOCK):
            bits[i] = (words[i] >> uint64(12)) | _ONE
        count = min(BLOCK, flat.size - low)
        block = flat[low : low + count]
        for i in range(count):
            block[i] = ones[i] - 1.0
