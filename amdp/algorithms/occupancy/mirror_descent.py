"""Mirror descent on occupancy measures: O-REPS, UOB-REPS, UC-O-REPS and Delayed UOB-REPS through one class.

    q_{k+1} = argmin_{q in Delta(k+1)}  rate <q, sum of the estimates that arrived> + KL(q || q_k)

Masses of the prior `q_k` below `exp(-500)` count as that. Raising a prior by `e` in each of `n` entries lowers
`KL(q || q_k)` for every `q`, up to `n e`, and so costs at most `K n e / rate` regret: nothing. Without it, logarithms
grow with the rounds, and beyond `1e7` their own rounding is more than what a projection has to resolve.

They differ in values only: the estimator, the domain (kernel or box), and when the box is refreshed.

| algorithm | estimator | domain | refresh |
|---|---|---|---|
| O-REPS (Zimin and Neu 2013), full information | the losses | kernel | - |
| O-REPS, bandit | importance weighting | kernel | - |
| UOB-REPS (Jin, Jin, Luo, Sra and Yu 2020) | implicit exploration | box | when a count doubles |
| UC-O-REPS (Rosenberg and Mansour 2019) | the losses | L1 ball | when a count doubles |
| UC-O-REPS (Bernstein) | the losses | box | when a count doubles |
| Delayed UOB-REPS (Jin, Lancewicki, Luo, Mansour and Rosenberg 2022) | delay-adapted | box | every round |
"""

from dataclasses import replace

import numpy as np

from amdp.algorithms.occupancy.measures import MeasureLearner, TiltedMeasure
from amdp.algorithms.rates import FixedRate, as_rate
from amdp.arrays import Floats
from amdp.errors import InvalidInput

FAINTEST = -500.0  # the logarithm of the least mass of a prior; the exponential of less may be lost in a round


class MirrorDescent(MeasureLearner):
    """Each round starts from the measure of the one before.

    The update and the initial point are [from memory] of the sources; the rates say where they come from.
    """

    rate: float

    def __post_init__(self) -> None:
        if not isinstance(as_rate(self.rate), FixedRate):
            raise InvalidInput("an adaptive rate needs the sum of all losses; use RegularizedLeader", "rate")

    def _rebased(self, distribution: TiltedMeasure) -> TiltedMeasure:
        played = distribution.projection
        # The next prior is this measure, which is nearest to itself at prices of zero.
        itself = replace(played, prices=np.zeros_like(played.prices), objective=0.0, gap=0.0)
        return replace(
            distribution, prior=_raised(played.log_measure), total=np.zeros_like(distribution.total), last=itself
        )


def _raised(log_measure: Floats) -> Floats:
    """Mass that is there is at least `exp(FAINTEST)`; where none can be, none is."""
    result: Floats = np.where(np.isneginf(log_measure), -np.inf, np.maximum(log_measure, FAINTEST))
    return result
