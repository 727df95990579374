"""Noise in bulk, compiled: xoshiro256++ on many lanes side by side, and logarithms that vectorize.

The lanes `[4, LANES]` belong to the caller, who seeds them (`amdp.kernels.layout.lanes`); every call moves them on.
Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021), is the source of xoshiro256++.
"""

import numpy as np
from numba import uint64, uintp

from amdp.kernels.compiling import FUSED, entry, inner, merged
from amdp.kernels.layout import LANES

BLOCK = 1024  # numbers made at a time: their scratch stays in the first-level cache

_ONE = np.uint64(0x3FF0000000000000)  # the bits of 1.0
_FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
_TWO_TO_52 = np.uint64(0x4330000000000000)  # the bits of 2^52: an integer below it, or-ed in, is added
_LN_2 = 0.6931471805599453
_ROOT_2 = 1.4142135623730951

_entry = entry(FUSED)
_inner = inner(FUSED)
_merged = merged(FUSED)


@_merged
def advance(lanes, words, count):
    """Fill the first `count` (a multiple of LANES) of `words` with random bits, and move the lanes `[4, LANES]` on."""
    s0, s1, s2, s3 = lanes[0], lanes[1], lanes[2], lanes[3]
    for low in range(0, count, LANES):
        for i in range(LANES):
            a, b, c, d = s0[i], s1[i], s2[i], s3[i]
            mixed = a + d
            words[uintp(low) + uintp(i)] = ((mixed << uint64(23)) | (mixed >> uint64(41))) + a
            shifted = b << uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= shifted
            s0[i], s1[i], s2[i] = a, b, c
            s3[i] = (d << uint64(45)) | (d >> uint64(19))


@_inner
def rounded_up(count):
    """To a multiple of LANES."""
    return (count + LANES - 1) // LANES * LANES


@_merged
def _logarithm(word):
    """The natural logarithm of a uniform number in (0, 1], made from the upper 52 bits of a random word.

    `log(2^e m) = e ln 2 + 2 artanh(z)` with `z = (m-1)/(m+1)` and `m` between sqrt(1/2) and sqrt(2). The polynomial in
    `z^2` is that of `(2 artanh(z) - 2z) / z^3` at Chebyshev's points, which changes the logarithm by 5e-18 of itself.
    """
    uniform = 2.0 - np.uint64((word >> uint64(12)) | _ONE).view(np.float64)
    bits = np.float64(uniform).view(np.uint64)
    exponent = np.uint64((bits >> uint64(52)) | _TWO_TO_52).view(np.float64) - 4503599627371519.0  # 2^52 + 1023
    m = np.uint64((bits & _FRACTION) | _ONE).view(np.float64)
    exponent = exponent + 1.0 if m > _ROOT_2 else exponent
    m = 0.5 * m if m > _ROOT_2 else m
    z = (m - 1.0) / (m + 1.0)
    z2 = z * z
    series = 0.14616449685043406
    series = 0.15331721600556042 + z2 * series
    series = 0.18182889125261723 + z2 * series
    series = 0.2222221113479508 + z2 * series
    series = 0.28571428625975487 + z2 * series
    series = 0.39999999999899505 + z2 * series
    series = 0.666666666666667 + z2 * series
    return exponent * _LN_2 + (2.0 * z + z * z2 * series)


@_entry
def logarithms(words, out):
    """`_logarithm` of each word."""
    for i in range(out.size):
        out[i] = _logarithm(words[i])


@_merged
def laplace(word):
    """A Laplace number of mean absolute value 1; its sign is the lowest bit, which the logarithm does not use."""
    log = np.float64(_logarithm(word))
    return np.uint64(log.view(np.uint64) ^ (word << uint64(63))).view(np.float64)


@_entry
def add_laplace(lanes, scale, center, out):
    """`out[h, n, j] = center[h, j] + Laplace noise` of mean absolute value `scale`."""
    words, flat = np.empty(BLOCK, np.uint64), out.reshape(-1)
    for low in range(0, flat.size, BLOCK):
        count = min(BLOCK, flat.size - low)
        advance(lanes, words, rounded_up(count))
        for i in range(count):
            flat[uintp(low) + uintp(i)] = scale * laplace(words[i])
    _add(center, out)


@_entry
def add_exponential(lanes, scale, center, out):
    """`out[h, n, j] = center[h, j] + scale` times an exponential number of mean 1."""
    words, flat = np.empty(BLOCK, np.uint64), out.reshape(-1)
    for low in range(0, flat.size, BLOCK):
        count = min(BLOCK, flat.size - low)
        advance(lanes, words, rounded_up(count))
        for i in range(count):
            flat[uintp(low) + uintp(i)] = -scale * _logarithm(words[i])
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
    """Uniform numbers in [0, 1), multiples of 2^-52; they are made LANES at a time."""
    words, flat = np.empty(BLOCK, np.uint64), out.reshape(-1)
    for low in range(0, flat.size, BLOCK):
        count = min(BLOCK, flat.size - low)
        advance(lanes, words, rounded_up(count))
        for i in range(count):
            flat[uintp(low) + uintp(i)] = np.uint64((words[i] >> uint64(12)) | _ONE).view(np.float64) - 1.0
