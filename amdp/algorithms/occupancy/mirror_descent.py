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
from typing import Self

import numpy as np

from amdp.algorithms import bounds
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import MeasureLearner, TiltedMeasure, WhenDoubled
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe
from amdp.oracles.projection.base import ProjectionOracle

FAINTEST = -500.0  # the logarithm of the least mass of a prior; the exponential of less may be lost in a round


class MirrorDescent(MeasureLearner):
    """Each round starts from the measure of the one before.

    The update and the initial point are [from memory] of the sources; the rates say where they come from.
    """

    @classmethod
    def o_reps_full(
        cls, domain: Domain, rounds: int, *, projection: str | ProjectionOracle = "newton", multiplier: float = 1.0
    ) -> Self:
        """O-REPS with full information: rate `sqrt(ln(SA) / K)` [derived], regret `2 H sqrt(K ln SA)` [confirmed]."""
        _require_known("O-REPS", domain)
        return cls(multiplier * bounds.o_reps_full_rate(domain.shape, rounds), WholeTable(), projection)

    @classmethod
    def o_reps(
        cls, domain: Domain, rounds: int, *, projection: str | ProjectionOracle = "newton", multiplier: float = 1.0
    ) -> Self:
        """O-REPS with bandit feedback: rate `sqrt(ln(SA) / (SAK))` [derived], `2 H sqrt(SAK ln SA)` [confirmed]."""
        _require_known("O-REPS", domain)
        return cls(multiplier * bounds.o_reps_rate(domain.shape, rounds), ImportanceWeighting(), projection)

    @classmethod
    def uob_reps(
        cls,
        domain: Domain,
        rounds: int,
        *,
        delta: float | None = None,
        projection: str | ProjectionOracle = "newton",
        multiplier: float = 1.0,
    ) -> Self:
        """UOB-REPS: rate and gamma `sqrt(ln(H^2 SA / delta) / (SAK))` [from memory], `delta = 1/K` [derived].

        Estimator and epochs are [confirmed] by public code. Its radius is `Radius.jin_2020`; the domain says which.
        """
        rate = multiplier * bounds.uob_reps_rate(domain.shape, rounds, delta)
        return cls(rate, ImplicitExploration(rate), projection, WhenDoubled())

    @classmethod
    def uc_o_reps(
        cls, domain: Domain, rounds: int, *, projection: str | ProjectionOracle = "l1", multiplier: float = 1.0
    ) -> Self:
        """UC-O-REPS, told an `L1Ball`: rate `sqrt(ln(S^2 A) / K)` [derived]; its sets are [from memory]."""
        rate = multiplier * bounds.uc_o_reps_rate(domain.shape, rounds)
        return cls(rate, WholeTable(), projection, WhenDoubled())

    @classmethod
    def uc_o_reps_bernstein(
        cls, domain: Domain, rounds: int, *, projection: str | ProjectionOracle = "newton", multiplier: float = 1.0
    ) -> Self:
        """UC-O-REPS with a Bernstein box instead of its L1 sets: rate `sqrt(ln(S^2 A) / K)` [derived].

        The order of its regret is that of the L1 form [derived].
        """
        return cls.uc_o_reps(domain, rounds, projection=projection, multiplier=multiplier)

    @classmethod
    def delayed_uob_reps(
        cls,
        domain: Domain,
        rounds: int,
        total_delay: int = 0,
        *,
        delta: float | None = None,
        projection: str | ProjectionOracle = "newton",
        multiplier: float = 1.0,
    ) -> Self:
        """Delayed UOB-REPS: rate and gamma `sqrt(ln(HSA / delta) / max(SAK, sqrt(HSA) D))` [derived]."""
        rate = multiplier * bounds.delayed_uob_reps_rate(domain.shape, rounds, total_delay, delta)
        return cls(rate, DelayAdapted(rate), projection)

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


def _require_known(name: str, domain: Domain) -> None:
    if not isinstance(domain.dynamics, SingleKernel):
        raise InvalidInput(f"{name} needs a kernel, not {describe(domain)}; over a box use UOB-REPS or UC-O-REPS")
