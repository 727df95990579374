"""Geometric resampling: how many fresh policies it takes until one visits the pair again."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from amdp.algorithms.base import DistributionWithScaledTrials, DistributionWithTrials
from amdp.algorithms.estimators.base import WeightTimesLoss
from amdp.algorithms.estimators.feedback import Weights
from amdp.arrays import require_whole
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.reach import Reach, reach_of
from amdp.model.segments import Segment


@dataclass(frozen=True)
class Resampling(WeightTimesLoss, ABC):
    """Count fresh trials until one visits the same pair, at most `limit`.

    A trial draws a policy as the learner does, and asks whether it is at the pair: simulated over a kernel, drawn
    with the greatest visit chance over a box. With `q` the chance of success, the count `M` has
    `E[M] = (1 - (1-q)^limit) / q` and `E[M^2] <= 2/q^2`.
    """

    limit: int

    def __post_init__(self) -> None:
        require_limit(self.limit)

    @abstractmethod
    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """A weight for each step of the segment."""


class GeometricResampling(Resampling):
    """The paper's estimator: each step has trials of its own, so that the counts of different steps are independent."""

    def weigh(self, distribution: DistributionWithTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        """A count for each step."""
        return distribution.trials.per_step(segment, self.limit, rng)


class SharedResampling(Resampling):
    """Geometric resampling whose trials serve all steps of a segment at once.

    Each count keeps its law; counts of different steps become dependent. The regret bound stands: see
    docs/resampling.md. Up to H times fewer policies are sampled.
    """

    def weigh(self, distribution: DistributionWithTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        """A count for each step."""
        return distribution.trials.shared(segment, self.limit, rng)


class _ScaledResampling(Resampling):
    """Resampling in which a trial gives the chance `x <= c` of the visit instead of a coin, scaled by its bound `c`.

    With `y = x / c` and `N = c L` trials at most, for the limit `L` and `c` rounded up to a multiple of `1/L`,

        W = (1/c) sum_{n=0}^{N-1} prod_{i<=n} (1 - y_i),    E[W] = (1 - (1 - q/c)^N) / q,    E[W^2] <= 2/q^2,

    `q (1/q - E[W]) <= exp(-L q)` and `W <= L`: all that the regret bounds use of the plain count, which is the case
    `c = 1` with coins for `y`. A step takes at most `A` times the sum of `c` over all states on average, and what is
    left of a batch; `c` is the reach of a state or a little more (see `amdp.model.reach`). Plain counts take up to `A`
    times the states within reach. The proof is in docs/resampling.md.
    """

    def reach(self, domain: Domain) -> Reach:
        return reach_of(domain)


class ScaledResampling(_ScaledResampling):
    """Reach-scaled resampling with trials of its own for each step."""

    def weigh(self, distribution: DistributionWithScaledTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        return distribution.scaled_trials.per_step(segment, self.limit, rng)


class SharedScaledResampling(_ScaledResampling):
    """Reach-scaled resampling whose trials serve all steps of a segment at once."""

    def weigh(self, distribution: DistributionWithScaledTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        return distribution.scaled_trials.shared(segment, self.limit, rng)


def require_limit(limit: int) -> None:
    """Refuse fewer than one trial."""
    require_whole("limit", limit)
    if limit < 1:
        raise InvalidInput(f"{limit}; it must be at least 1", "limit")
