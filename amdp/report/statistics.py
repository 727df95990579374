"""What a few seeds say: intervals, exponents, and tests of differences.

Samples are `[i, c]`: run, checkpoint. Statistics that resample are handed the generator.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
from scipy import stats

from amdp.arrays import Floats
from amdp.errors import InvalidInput

EXACT = 12  # differences, up to which all signs are tried
DRAWS = 20_000  # of signs, above that
FEWEST = 3  # points of a line that is fitted


class Estimate(NamedTuple):
    """Values with the ends of their intervals, all of one shape; the ends are NaN where one run says nothing."""

    value: Floats
    low: Floats
    high: Floats


class Band(Protocol):
    """How many runs become a line and a strip around it."""

    @property
    def words(self) -> str:
        """For captions."""
        ...

    def of(self, samples: Floats, rng: np.random.Generator) -> Estimate:
        """`[i, c]` to `[c]`."""
        ...


@dataclass(frozen=True)
class MeanBand:
    """The mean, and a bootstrap interval in which the true mean lies.

    Ends are percentiles of the means of resampled runs, at the levels `Phi(-+ t sqrt(n / (n - 1)))` with Student's
    quantile t: those at (1 -+ level) / 2 would make the interval of a few runs too narrow (Hesterberg 2015).
    """

    level: float = 0.95
    resamples: int = 2000

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise InvalidInput(f"level = {self.level}; a level lies between 0 and 1")

    @property
    def words(self) -> str:
        """For captions."""
        return f"mean over seeds with its {self.level:.0%} bootstrap interval"

    def of(self, samples: Floats, rng: np.random.Generator) -> Estimate:
        """`[i, c]` to `[c]`."""
        return self.between(samples.mean(axis=0), resampled_means(samples, self.resamples, rng), len(samples))

    def between(self, value: Floats, resampled: Floats, runs: int) -> Estimate:
        """The interval that statistics of resampled runs, `[b, c]`, give to that of all `runs`."""
        value = np.asarray(value)
        if runs < 2:
            nothing = np.full(value.shape, np.nan)
            return Estimate(value, nothing, nothing)
        below = stats.norm.cdf(-stats.t.ppf((1 + self.level) / 2, runs - 1) * np.sqrt(runs / (runs - 1)))
        low, high = np.quantile(resampled, [below, 1 - below], axis=0)
        return Estimate(value, low, high)


@dataclass(frozen=True)
class MedianBand:
    """The median, and quantiles between which single runs lie."""

    below: float = 0.25
    above: float = 0.75

    def __post_init__(self) -> None:
        if not 0.0 <= self.below <= 0.5 <= self.above <= 1.0:
            raise InvalidInput(f"quantiles {self.below}, {self.above}; they must enclose 0.5, within 0 and 1")

    @property
    def words(self) -> str:
        """For captions."""
        return f"median over seeds, with the {self.below:.0%} and {self.above:.0%} quantiles"

    def of(self, samples: Floats, rng: np.random.Generator) -> Estimate:
        """`[i, c]` to `[c]`; nothing is drawn."""
        low, value, high = np.quantile(samples, [self.below, 0.5, self.above], axis=0)
        return Estimate(value, low, high)


def resampled_means(samples: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Means `[b, c]` of as many runs as there are, drawn with replacement."""
    count = len(samples)
    drawn = rng.integers(count, size=(resamples, count)) + count * np.arange(resamples)[:, None]
    shares = np.bincount(drawn.ravel(), minlength=resamples * count).reshape(resamples, count) / count
    means: Floats = shares @ samples
    return means


def exponents(rounds: Floats, curves: Floats) -> Floats:
    """Slopes `[b]` of least squares through the logarithms of the later half of the checkpoints of `curves [b, c]`.

    NaN where a curve is not positive there, or has too few points.
    """
    later = slice(len(rounds) // 2, None)
    x, wanted = np.log(np.asarray(rounds, dtype=np.float64)[later]), curves[:, later]
    if len(x) < FEWEST:
        return np.full(len(curves), np.nan)
    positive = wanted.min(axis=1) > 0
    y = np.log(np.where(wanted > 0, wanted, 1.0))
    centered = x - x.mean()
    slopes: Floats = np.where(positive, y @ centered / (centered @ centered), np.nan)
    return slopes


def fitted_exponent(rounds: Floats, samples: Floats, band: MeanBand, rng: np.random.Generator) -> Estimate:
    """The exponent of the mean curve; no interval if some resampled mean is not positive."""
    value = exponents(rounds, samples.mean(axis=0)[None])[0]
    resampled = exponents(rounds, resampled_means(samples, band.resamples, rng))
    return band.between(value, resampled, len(samples))


class Verdict(NamedTuple):
    """Of the hypothesis that a paired difference is as likely to have either sign."""

    p: float
    exact: bool  # all signs were tried


def sign_flips(differences: Floats, rng: np.random.Generator) -> Verdict:
    """How often random signs make the sum of the differences at least as large, two-sided."""
    count = len(differences)
    if count == 0:
        return Verdict(np.nan, True)
    exact = count <= EXACT
    signs = _all_signs(count) if exact else rng.choice((-1.0, 1.0), size=(DRAWS, count))
    # The sums of equal numbers in another order differ in their last digits.
    enough = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    reached = int((np.abs(signs @ differences) >= enough).sum())
    p = reached / len(signs) if exact else (reached + 1) / (len(signs) + 1)
    return Verdict(p, exact)


@lru_cache(maxsize=EXACT)
def _all_signs(count: int) -> Floats:
    return np.array(list(product((-1.0, 1.0), repeat=count)))


def holm(p: Floats) -> Floats:
    """Holm's adjustment: refuse where it is below alpha, and no true hypothesis is refused with chance above alpha."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
