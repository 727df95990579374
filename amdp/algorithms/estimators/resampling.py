"""Geometric resampling: how many fresh policies it takes until one visits the pair again."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from amdp.algorithms.base import DistributionWithTrials
from amdp.algorithms.estimators.base import WeightTimesLoss
from amdp.algorithms.estimators.feedback import Weights
from amdp.arrays import require_whole
from amdp.errors import InvalidInput
from amdp.model.segments import Segment


@dataclass(frozen=True)
class _Resampling(WeightTimesLoss, ABC):
    """Count fresh trials until one visits the same pair, at most `limit`.

    A trial draws a policy as the learner does, and asks whether it is at the pair: simulated over a kernel, drawn
    with the greatest visit chance over a box. With `q` the chance of success, the count `M` has
    `E[M] = (1 - (1-q)^limit) / q` and `E[M^2] <= 2/q^2`.
    """

    limit: int

    def __post_init__(self) -> None:
        require_limit(self.limit)

    @abstractmethod
    def weigh(self, distribution: DistributionWithTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        """The count of trials at each step of the segment."""


class GeometricResampling(_Resampling):
    """The paper's estimator: each step has trials of its own, so that the counts of different steps are independent."""

    def weigh(self, distribution: DistributionWithTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        """A count for each step."""
        return distribution.trials.per_step(segment, self.limit, rng)


class SharedResampling(_Resampling):
    """Geometric resampling whose trials serve all steps of a segment at once.

    Each count keeps its law; counts of different steps become dependent. The regret bound stands: see
    docs/shared-trials.md. Up to H times fewer policies are sampled.
    """

    def weigh(self, distribution: DistributionWithTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        """A count for each step."""
        return distribution.trials.shared(segment, self.limit, rng)


def require_limit(limit: int) -> None:
    """Refuse fewer than one trial."""
    require_whole("limit", limit)
    if limit < 1:
        raise InvalidInput(f"{limit}; it must be at least 1", "limit")
