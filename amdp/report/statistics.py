"""Statistics of a few seeds: intervals, fitted exponents, and tests of paired differences.

Samples are `[i, c]`: run, checkpoint. Statistics that resample are handed the generator.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
import scipy

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.kernels.threads import multiply

MAX_EXACT_SIGNS = 12  # differences, up to which the permutation test tries all signs
SIGN_DRAWS = 20_000  # random signs of the test, above that
FEWEST_POINTS = 3  # of a line that is fitted
FEWEST_RUNS = 4  # whose resampling says something of a statistic that is not their mean
MANY_RUNS = 10  # from which on percentiles of resampled runs are wide enough


class Estimate(NamedTuple):
    """Values with the ends of their intervals, all of one shape; the ends are NaN where one run says nothing."""

    value: Floats
    low: Floats
    high: Floats


class Band(Protocol):
    """The statistic that summarizes many runs: a line, and a band around it."""

    @property
    def words(self) -> str:
        """The description in captions."""
        ...

    def of(self, samples: Floats, rng: np.random.Generator) -> Estimate:
        """The estimate `[c]` from samples `[i, c]`."""
        ...

    def __hash__(self) -> int:
        """Bands are frozen settings: estimates are cached by them."""
        ...


@dataclass(frozen=True)
class MeanBand:
    """The mean, and an interval in which the true mean lies.

    Below `MANY_RUNS` it is Student's `-+ t s / sqrt(n)`: means of resampled runs never leave the range of the runs, in
    which the truth lies half the time if they are two. From there on its ends are percentiles of the means of resampled
    runs, at the levels `Phi(-+ t sqrt(n / (n - 1)))`: those at (1 -+ level) / 2 are too near (Hesterberg 2015).
    """

    level: float = 0.95
    resamples: int = 2000

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise InvalidInput(f"level = {self.level}; a level lies between 0 and 1")

    @property
    def words(self) -> str:
        return f"mean over seeds with its {self.interval}"

    @property
    def interval(self) -> str:
        """The name of the interval in captions."""
        return f"{self.level:.0%} interval (t interval below {MANY_RUNS} seeds, bootstrap interval from there on)"

    def of(self, samples: Floats, rng: np.random.Generator) -> Estimate:
        value, runs = samples.mean(axis=0), len(samples)
        if runs < 2:
            return _without_interval(value)
        if runs < MANY_RUNS:
            return self._student(value, samples.std(axis=0, ddof=1) / np.sqrt(runs), runs)
        return self.between(value, resampled_means(samples, self.resamples, rng), runs)

    def between(self, value: Floats, resampled: Floats, runs: int) -> Estimate:
        """The interval that statistics of resampled runs, `[b, c]`, give to that of all `runs`.

        None below `FEWEST_RUNS`; below `MANY_RUNS` as Student's, with the spread of the resampled as standard error.
        """
        value = np.asarray(value)
        if runs < FEWEST_RUNS:
            return _without_interval(value)
        if runs < MANY_RUNS:
            # Resampled runs spread by n - 1 over n of their variance.
            return self._student(value, resampled.std(axis=0) * np.sqrt(runs / (runs - 1)), runs)
        below = scipy.special.ndtr(-self._quantile(runs) * np.sqrt(runs / (runs - 1)))
        low, high = np.quantile(resampled, [below, 1 - below], axis=0)
        return Estimate(value, low, high)

    def _student(self, value: Floats, error: Floats, runs: int) -> Estimate:
        half = self._quantile(runs) * error
        return Estimate(value, value - half, value + half)

    def _quantile(self, runs: int) -> float:
        return float(scipy.special.stdtrit(runs - 1, (1 + self.level) / 2))


def _without_interval(value: Floats) -> Estimate:
    nothing = np.full(np.shape(value), np.nan)
    return Estimate(value, nothing, nothing)


@dataclass(frozen=True)
class MedianBand:
    """The median of the runs, and two quantiles around it."""

    below: float = 0.25
    above: float = 0.75

    def __post_init__(self) -> None:
        if not 0.0 <= self.below <= 0.5 <= self.above <= 1.0:
            raise InvalidInput(f"quantiles {self.below}, {self.above}; they must enclose 0.5, within 0 and 1")

    @property
    def words(self) -> str:
        return f"median over seeds, with the {self.below:.0%} and {self.above:.0%} quantiles"

    def of(self, samples: Floats, rng: np.random.Generator) -> Estimate:
        low, value, high = np.quantile(samples, [self.below, 0.5, self.above], axis=0)
        return Estimate(value, low, high)


def resampled_means(samples: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Means `[b, c]` of as many runs as there are, drawn with replacement."""
    count = len(samples)
    drawn = rng.integers(count, size=(resamples, count)) + count * np.arange(resamples)[:, None]
    shares = np.bincount(drawn.ravel(), minlength=resamples * count).reshape(resamples, count) / count
    means: Floats = multiply(shares, samples)
    return means


def exponents(rounds: Floats, curves: Floats) -> Floats:
    """Slopes `[b]` of least squares through the logarithms of the later half of the checkpoints of `curves [b, c]`.

    NaN where a curve is not positive there, or has too few points.
    """
    later = slice(len(rounds) // 2, None)
    x, wanted = np.log(np.asarray(rounds, dtype=np.float64)[later]), curves[:, later]
    if len(x) < FEWEST_POINTS:
        return np.full(len(curves), np.nan)
    positive = wanted.min(axis=1) > 0
    y = np.log(np.where(wanted > 0, wanted, 1.0))
    centered = x - x.mean()
    slopes: Floats = np.where(positive, multiply(y, centered) / (centered @ centered), np.nan)
    return slopes


def fitted_exponent(rounds: Floats, samples: Floats, band: MeanBand, rng: np.random.Generator) -> Estimate:
    """The exponent of the mean curve; NaN where it has no interval.

    It has none if the runs are too few, or if some resampled mean is not positive.
    """
    value = exponents(rounds, samples.mean(axis=0)[None])[0]
    resampled = exponents(rounds, resampled_means(samples, band.resamples, rng))
    estimate = band.between(value, resampled, len(samples))
    return estimate._replace(value=np.where(np.isfinite(estimate.low), value, np.nan))


class SignTest(NamedTuple):
    """The p-value of the hypothesis that paired differences are symmetric about 0."""

    p: float
    exact: bool  # all signs were tried


def sign_flips(differences: Floats, rng: np.random.Generator) -> SignTest:
    """The two-sided permutation test: how often random signs make the sum of the differences at least as large."""
    count = len(differences)
    if count == 0:
        return SignTest(np.nan, True)
    exact = count <= MAX_EXACT_SIGNS
    signs = _all_signs(count) if exact else rng.choice((-1.0, 1.0), size=(SIGN_DRAWS, count))
    # The sums of equal numbers in another order differ in their last digits.
    enough = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    reached = int((np.abs(multiply(signs, differences)) >= enough).sum())
    p = reached / len(signs) if exact else (reached + 1) / (len(signs) + 1)
    return SignTest(p, exact)


@lru_cache(maxsize=MAX_EXACT_SIGNS)
def _all_signs(count: int) -> Floats:
    return np.array(list(product((-1.0, 1.0), repeat=count)))


def holm(p: Floats) -> Floats:
    """Holm's adjustment: refuse where it is below alpha, and no true hypothesis is refused with chance above alpha."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
