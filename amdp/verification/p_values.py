"""Chances of a false alarm that hold without normality: exact laws, and inequalities for bounded or symmetric samples.

Every function returns an upper bound on the p-value under the hypothesis that it names, or a limit at a given level.
"""

from math import exp, log, log1p, sqrt

import numpy as np
from scipy.stats import beta, binom

from amdp.arrays import Floats


def binomial(count: int, n: int, chance: float) -> float:
    """Two-sided, exact: `count` of `n` independent events of this chance."""
    return min(1.0, 2.0 * min(float(binom.cdf(count, n, chance)), float(binom.sf(count - 1, n, chance))))


def frequencies(counts: Floats, chances: Floats) -> Floats:
    """Two-sided, exact, for each entry: `counts[..., i]` are events of `chances[..., i]` among their sum."""
    n = np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)
    clipped = np.clip(chances, 0.0, 1.0)
    tails = np.minimum(binom.cdf(counts, n, clipped), binom.sf(counts - 1, n, clipped))
    return np.minimum(1.0, 2.0 * tails)


def chances_between(counts: Floats, n: int, level: float) -> tuple[Floats, Floats]:
    """Lower and upper limits of chances, each wrong with chance at most `level` (Clopper and Pearson 1934)."""
    lower = np.where(counts > 0, beta.ppf(level, np.maximum(counts, 1), n - counts + 1), 0.0)
    upper = np.where(counts < n, beta.isf(level, counts + 1, np.maximum(n - counts, 1)), 1.0)
    return lower, upper


def distance(largest: float, n: int) -> float:
    """Two-sided: `n` samples whose distribution function is this far from theirs (Massart 1990, after DKW)."""
    return min(1.0, 2.0 * exp(-2.0 * n * largest**2))


def symmetric(differences: Floats, unit: float) -> float:
    """Two-sided: differences that are symmetric about 0, each given those before it, however heavy their tails.

    With `S` the sum and `V` the sum of squares, `exp(x S - x^2 V / 2)` is a supermartingale for every `x` (de la Pena
    1999); mixed over a normal law of `x` with variance `1 / y`, its mean `sqrt(y / (V + y)) exp(S^2 / (2 (V + y)))` is
    at most 1. `unit` is the size of one difference that is expected, fixed beforehand: `y = 100 unit^2`.
    """
    y = 100.0 * unit**2
    total, square = float(differences.sum()), float((differences**2).sum())
    return min(1.0, exp(min(0.0, 0.5 * log1p(square / y) - total**2 / (2.0 * (square + y)))))


def exchangeable(few: Floats, many: Floats) -> float:
    """Two-sided: two samples of one law, by the mean of `few` among all orders of both samples taken together.

    Given the values, `few` is drawn from them without replacement, which is no wider than with (Hoeffding 1963,
    Theorem 4), and Bennett's inequality holds with the variance and the range of the values at hand.
    """
    pooled = np.concatenate([few, many])
    mean, variance = float(pooled.mean()), float(pooled.var())
    off, most = abs(float(few.mean()) - mean), float(np.abs(pooled - mean).max())
    if variance == 0.0:
        return 1.0
    u = off * most / variance
    return min(1.0, 2.0 * exp(-len(few) * variance / most**2 * ((1.0 + u) * log1p(u) - u)))


def lower_mean(samples: Floats, width: float, level: float) -> float:
    """The mean is below this with chance at most `level`: `n` samples within `width` (Maurer and Pontil 2009)."""
    n, doubt = len(samples), log(2.0 / level)
    spread = sqrt(2.0 * float(samples.var(ddof=1)) * doubt / n)
    return float(samples.mean()) - spread - 7.0 * width * doubt / (3.0 * (n - 1))


def mean_at_most(samples: Floats, most: float) -> float:
    """One-sided: independent samples in [0, 1] with means of `most` or less on average (Hoeffding 1963, Theorem 1)."""
    x = min(float(samples.mean()), 1.0)
    if x <= most or most <= 0.0:
        return 1.0 if x <= most else 0.0
    distance = x * log(x / most) + (0.0 if x == 1.0 else (1.0 - x) * log((1.0 - x) / (1.0 - most)))
    return exp(-len(samples) * distance)
