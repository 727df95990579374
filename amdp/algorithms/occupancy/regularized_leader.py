"""Follow the regularized leader on occupancy measures: Delayed UOB-FTRL (Jin et al. 2022), adaptive O-REPS.

    q_k = argmin_{q in Delta(k)}  rate <q, sum of all estimates that arrived> + sum q ln q

The prior never moves, and the same projection finds the measure. Over a kernel, where the set never moves either, the
measures are those of mirror descent, as long as the rate is fixed. The rate may be adaptive: the leader restates all
losses so far at the new rate, which mirror descent cannot.
"""

from dataclasses import replace

import numpy as np

from amdp.algorithms import bounds
from amdp.algorithms.bounds import AdaptiveBound, Bound
from amdp.algorithms.estimators.base import WholeTable, estimated_loss
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import MeasureLearner, TiltedMeasure
from amdp.algorithms.rates import AdaptiveRate
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.segments import Segment
from amdp.model.transitions import SingleKernel


class RegularizedLeader(MeasureLearner):
    """Each round starts from the flat measure, tilted by all estimates so far [from memory].

    An adaptive rate takes one more projection a round, which is also where the next one starts. Its gaps are those of
    a kernel; over a box it is an experiment.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        proper = isinstance(self.estimator, ImportanceWeighting | ImplicitExploration | WholeTable)
        if isinstance(self.rate, AdaptiveRate) and not proper:
            raise InvalidInput(f"{type(self.estimator).__name__} has no gaps that a rate could follow", "estimator")

    def weigh(self, distribution: TiltedMeasure, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of its estimator; with full information the occupancy measure, if the rate will need it."""
        weights = super().weigh(distribution, segment, rng)
        if isinstance(self.estimator, WholeTable) and isinstance(self.rate, AdaptiveRate):
            return weights._replace(occupancy=distribution.occupancy)
        return weights

    def learn(self, distribution: TiltedMeasure, feedback: Feedback) -> TiltedMeasure:
        """Add the loss estimate to the sum that tilts the prior, and its gap to those that the rate follows."""
        ahead = super().learn(distribution, feedback)
        rate = distribution.rate.after(
            lambda: estimated_loss(self.estimator, feedback) - (ahead.potential - distribution.potential)
        )
        return ahead if rate is distribution.rate else replace(ahead, rate=rate, last=ahead.projection)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | AdaptiveBound | None:
        """That of mirror descent; for an adaptive rate twice the sum of its gaps. None over boxes, with delays."""
        if not isinstance(self.rate, AdaptiveRate):
            return super().bound(domain, rounds, waited)
        if waited or not isinstance(domain.dynamics, SingleKernel):
            return None
        if isinstance(self.estimator, WholeTable):
            return bounds.adaptive_o_reps_full(domain.shape, rounds, self.rate.first)
        gamma = getattr(self.estimator, "gamma", 0.0)
        return bounds.adaptive_o_reps(domain.shape, rounds, self.rate.first, gamma)

    def _rebased(self, distribution: TiltedMeasure) -> TiltedMeasure:
        return replace(distribution, last=distribution.projection)
