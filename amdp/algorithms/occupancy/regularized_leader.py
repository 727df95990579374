"""Follow the regularized leader on occupancy measures: Delayed UOB-FTRL (Jin et al. 2022).

    q_k = argmin_{q in Delta(k)}  rate <q, sum of all estimates that arrived> + sum q ln q

The prior never moves, and the same projection finds the measure. Over a kernel, where the set never moves either, the
measures are those of mirror descent.
"""

from dataclasses import replace

from amdp.algorithms.occupancy.measures import MeasureLearner, TiltedMeasure


class RegularizedLeader(MeasureLearner):
    """Each round starts from the flat measure, tilted by all estimates so far [from memory]."""

    def _rebased(self, distribution: TiltedMeasure) -> TiltedMeasure:
        return replace(distribution, last=distribution.projection)
