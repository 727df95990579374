"""The row of a box that is nearest to given weights: their multiple, clipped to the bounds."""

import numpy as np

from amdp.kernels.entropy.common import LOG_BAND, ROUNDING, inner

LARGEST_FACTOR = 1e280  # of weights; beyond it their scale is changed


@inner
def tilt(weights, lower, upper, h, row, factor):
    """The factor `c` for which `clip(c weights, lower, upper)` sums to 1: Newton steps within a closing bracket.

    `LARGEST_FACTOR` where even this is too little: the remaining weights are too small for the scale.
    """
    below, above = 0.0, LARGEST_FACTOR
    for _ in range(200):
        fixed = 0.0
        loose = 0.0
        for y in range(weights.size):
            wanted = factor * weights[y]
            low = lower[h, row, y]
            high = upper[h, row, y]
            is_low = wanted <= low
            is_high = wanted >= high
            fixed += low if is_low else (high if is_high else 0.0)
            loose += 0.0 if is_low or is_high else weights[y]
        excess = fixed + factor * loose - 1.0
        if abs(excess) <= ROUNDING:
            wanted = (1.0 - fixed) / loose if loose > 0.0 else factor
            if abs(wanted - factor) <= 1e-9 * factor:
                return wanted
            # What is left for the free entries is rounding only: they get no more than where a bound is just met.
            turn = _next_bound(weights, lower, upper, h, row, factor, True) * (1.0 + 1e-12)
            return min(factor, turn) if turn > 0.0 else factor
        if excess > 0.0:
            above = min(above, factor)
        else:
            below = max(below, factor)
        if loose > 0.0:
            wanted = (1.0 - fixed) / loose
        else:
            wanted = _next_bound(weights, lower, upper, h, row, factor, fixed > 1.0)
            if wanted >= LARGEST_FACTOR:
                return LARGEST_FACTOR
        if not below < wanted < above:
            wanted = np.sqrt(below) * np.sqrt(above) if below > 0.0 else above / 16.0
            if above <= below * (1.0 + 4e-16):
                break
        factor = wanted
    return factor if above < LARGEST_FACTOR else LARGEST_FACTOR


@inner
def _next_bound(weights, lower, upper, h, row, factor, down):
    """The nearest factor, below or above, at which an entry leaves its bound."""
    turn = 0.0 if down else np.inf
    for y in range(weights.size):
        if weights[y] > 0.0:
            if down and factor * weights[y] >= upper[h, row, y]:
                turn = max(turn, upper[h, row, y] / weights[y] * (1.0 - 1e-12))
            elif not down and factor * weights[y] <= lower[h, row, y]:
                turn = min(turn, lower[h, row, y] / weights[y] * (1.0 + 1e-12))
    return turn


@inner
def scale_in_bands(log_weights, lower, upper, h, row, later, scaled):
    """Scale weights that no single scale can hold: the scale follows the solution; its logarithm.

    If the weights down to `LOG_BAND` below a scale do not suffice at any factor, all of them are at their upper bounds,
    and the largest of the others sets the next scale.
    """
    base = np.inf
    following = -np.inf
    for y in range(later.size):
        following = max(following, log_weights[h, row, y] - later[y])
    while following > -np.inf:
        base = following
        following = -np.inf
        for y in range(later.size):
            value = log_weights[h, row, y] - later[y]
            scaled[y] = np.exp(min(LOG_BAND, value - base))
            if value < base - LOG_BAND:
                following = max(following, value)
        if tilt(scaled, lower, upper, h, row, 1.0) < LARGEST_FACTOR:
            break
    return base


@inner
def sum_of(values):
    """The sum of an array."""
    total = 0.0
    for k in range(values.size):
        total += values[k]
    return total
