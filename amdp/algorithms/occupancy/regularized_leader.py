"""Follow the regularized leader on occupancy measures: Delayed UOB-FTRL (Jin et al. 2022).

    q_k = argmin_{q in Delta(k)}  rate <q, sum of all estimates that arrived> + sum q ln q

The prior never moves, and the same projection finds the measure. Over a kernel, where the set never moves either, the
measures are those of mirror descent.
"""

from dataclasses import replace
from typing import Self

from amdp.algorithms import bounds
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration
from amdp.algorithms.occupancy.measures import MeasureLearner, TiltedMeasure
from amdp.model.domains import Domain
from amdp.oracles.projection.base import ProjectionOracle


class RegularizedLeader(MeasureLearner):
    """Each round starts from the flat measure, tilted by all estimates so far [from memory]."""

    @classmethod
    def delayed_uob_ftrl(
        cls,
        domain: Domain,
        rounds: int,
        total_delay: int = 0,
        *,
        delta: float | None = None,
        projection: str | ProjectionOracle = "newton",
        multiplier: float = 1.0,
    ) -> Self:
        """Delayed UOB-FTRL: rate and gamma `sqrt(ln(HSA / delta) / (SAK + H (SA)^2 D))` [derived]."""
        rate = multiplier * bounds.delayed_uob_ftrl_rate(domain.shape, rounds, total_delay, delta)
        return cls(rate, ImplicitExploration(rate), projection)

    def _rebased(self, distribution: TiltedMeasure) -> TiltedMeasure:
        return replace(distribution, last=distribution.projection)
