"""Estimates by visit chances, for learners that know how often they are where: `1 / chance` instead of trials.

Over a box the chance is not known, and the greatest one takes its place: the estimates are then too small rather than
too large. All of them weigh when the segment is played; only `DelayAdapted` looks again when the feedback arrives.
"""

from dataclasses import dataclass

import numpy as np

from amdp.algorithms.base import DistributionWithVisits
from amdp.algorithms.estimators.base import Estimator, WeightTimesLoss, WholeTable, added
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.segments import Segment


@dataclass(frozen=True)
class ImportanceWeighting(WeightTimesLoss):
    """`l 1[visited] / u`: without bias where `u` is the chance of the visit, so over a kernel."""

    def weigh(self, distribution: DistributionWithVisits, segment: Segment, rng: np.random.Generator) -> Weights:
        """One over the chance of each visit."""
        return Weights(_weights(distribution, segment, 0.0))


@dataclass(frozen=True)
class ImplicitExploration(WeightTimesLoss):
    """`l 1[visited] / (u + gamma)`, as in UOB-REPS (Jin et al. 2020): at most `1 / gamma`, too small on average."""

    gamma: float

    def __post_init__(self) -> None:
        require_gamma(self.gamma)

    def weigh(self, distribution: DistributionWithVisits, segment: Segment, rng: np.random.Generator) -> Weights:
        """One over the chance of each visit plus `gamma`."""
        return Weights(_weights(distribution, segment, self.gamma))


@dataclass(frozen=True)
class FallingExploration(WeightTimesLoss):
    """Implicit exploration for a learner whose rate falls: in each round `gamma` is `ratio` times the rate."""

    ratio: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.ratio < np.inf:
            raise InvalidInput(f"{self.ratio}; it must be finite and not negative", "ratio")

    def at(self, rate: float) -> ImplicitExploration:
        """What it is in a round with this rate."""
        return ImplicitExploration(self.ratio * rate)

    def weigh(self, distribution: DistributionWithVisits, segment: Segment, rng: np.random.Generator) -> Weights:
        raise InvalidInput("FallingExploration weighs by the rate of a round; use it in a learner that has one")


def of_round(estimator: Estimator, rate: float) -> Estimator:
    """The estimator that weighs a round with this rate: itself, unless it follows the rate."""
    return estimator.at(rate) if isinstance(estimator, FallingExploration) else estimator


@dataclass(frozen=True)
class DelayAdapted(WeightTimesLoss):
    """`l 1[visited] / (max(u_j, u_k) + gamma)`: played in round `j`, arrived in round `k` (Jin et al. 2022).

    `u_k` is the greatest chance that the policy of round `k`, with the box of that round, visits the pair of round
    `j`. The `max` is [from memory]; that `u_k` takes the box of round `k` is an assumption [from memory, unsure].
    """

    gamma: float

    def __post_init__(self) -> None:
        require_gamma(self.gamma)

    def weigh(self, distribution: DistributionWithVisits, segment: Segment, rng: np.random.Generator) -> Weights:
        """What the estimate would be if it arrived at once."""
        return Weights(_weights(distribution, segment, self.gamma))

    def add(self, total: Floats, feedback: Bandit, distribution: DistributionWithVisits) -> Floats:
        """Weight times loss; the smaller of two weights is the one with the greater chance."""
        then, chances = feedback.weights, _chances(distribution, feedback.segment) + self.gamma
        now = np.divide(1.0, chances, out=np.full_like(chances, np.inf), where=chances > 0.0)
        adapted = then._replace(values=np.minimum(then.values, now))
        return added(total, Bandit(feedback.segment, adapted, feedback.losses))


# Estimators whose weights the compiled games know; of these types and of no subclass, which may do something else.
COMPILED: tuple[type, ...] = (ImportanceWeighting, ImplicitExploration, WholeTable)


def require_gamma(gamma: float) -> None:
    """Refuse what cannot be added to a chance."""
    if not 0.0 <= gamma < np.inf:
        raise InvalidInput(f"{gamma}; it must be finite and not negative", "gamma")


def _weights(distribution: DistributionWithVisits, segment: Segment, gamma: float) -> Floats:
    """One over `gamma` plus the chance of each pair of a segment, `[m]`; a visit without a chance is refused."""
    chances = _chances(distribution, segment) + gamma
    if not (chances > 0.0).all():
        m = int(np.argmin(chances))
        place = f"h={segment.start + m}, s={segment.states[m]}, a={segment.actions[m]}"
        raise InvalidInput(
            f"the pair [{place}] was visited, but its chance is {chances[m]:g}; only a gamma above 0 can weigh it"
        )
    return 1.0 / chances


def _chances(distribution: DistributionWithVisits, segment: Segment) -> Floats:
    if not hasattr(distribution, "visits"):
        raise InvalidInput(f"{type(distribution).__name__} does not know its visit chances; use GeometricResampling")
    return distribution.visits(segment.pairs)
