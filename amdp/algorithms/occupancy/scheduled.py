"""The regularized leader whose regularizer depends on the round: best of both worlds over a kernel.

    q_k = argmin over the occupancy measures of  <q, sum of all estimates that arrived> + regularizer at(k) of q

Without delay `k` is the round; with delays, one more than the number of losses that arrived. `RegularizedLeader` in
`measures` is the same with relative entropy, which is a projection and goes over boxes as well.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import ClassVar, Protocol

import numpy as np

from amdp.algorithms import bounds
from amdp.algorithms.bounds import Bound
from amdp.algorithms.estimators.base import Estimator, learned
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.occupancy.measures import PlayedPolicy
from amdp.arrays import Floats, Policies, require_positive
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.segments import Segment
from amdp.oracles.regularized.base import Minimizer, RegularizedOracle, RegularizedSolver, bind_regularized
from amdp.oracles.regularized.regularizers import LogBarrier, Regularizer, Tsallis


class Schedule(Protocol):
    """The regularizer of each round."""

    def at(self, k: int) -> Regularizer:
        """That of round `k`, counted from 1."""
        ...


@dataclass(frozen=True)
class HybridSchedule:
    """`-(sqrt(k) / rate) sum sqrt(q) - barrier sum ln q` (Jin, Huang and Luo 2021); no barrier if it is 0."""

    rate: float
    barrier: float

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)
        if not 0.0 <= self.barrier < np.inf:
            raise InvalidInput(f"{self.barrier}; it must be finite and not negative", "barrier")

    def at(self, k: int) -> Regularizer:
        tsallis = Tsallis(sqrt(k) / self.rate)
        return tsallis + LogBarrier(self.barrier) if self.barrier > 0.0 else tsallis


@dataclass(frozen=True, eq=False)
class ScheduledMeasure:
    """The occupancy measure of least `<q, total> + regularizer`."""

    solver: RegularizedSolver = field(repr=False)
    schedule: Schedule
    total: Floats = field(repr=False)  # [h, s, a], the sum of loss estimates
    arrived: int = 0  # losses in this sum
    last: Minimizer | None = field(default=None, repr=False)  # an earlier measure, to start the next one from
    stands: bool = False  # nothing changed since: `last` is the measure
    played: PlayedPolicy | None = field(default=None, repr=False)  # in the round before
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        return self.solver.domain

    @cached_property
    def minimizer(self) -> Minimizer:
        """The measure, with the certificate of its optimality."""
        if self.stands and self.last is not None:
            return self.last
        return self.solver.minimize(self.total, self.schedule.at(self.arrived + 1), self.last)

    @cached_property
    def playing(self) -> PlayedPolicy:
        """The policy of the measure."""
        return PlayedPolicy(self.solver.domain, self.minimizer.policy)

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.playing.draw(rng)


@dataclass(frozen=True)
class ScheduledLeader:
    """A schedule of regularizers, an estimator, and a method of `amdp.regularized` by name or as an oracle."""

    schedule: Schedule
    estimator: Estimator = field(default_factory=ImportanceWeighting)
    method: str | RegularizedOracle = "newton"

    @property
    def feedback(self) -> type:
        return self.estimator.feedback

    @property
    def rate(self) -> float | None:
        """The rate of its schedule; None if that has none."""
        return getattr(self.schedule, "rate", None)

    def start(self, domain: Domain, rng: np.random.Generator) -> ScheduledMeasure:
        """The measure of the regularizer alone."""
        return ScheduledMeasure(bind_regularized(self.method, domain), self.schedule, np.zeros(domain.shape))

    def observe(self, distribution: ScheduledMeasure, segment: Segment) -> ScheduledMeasure:
        return replace(distribution, last=distribution.minimizer, stands=True, played=distribution.playing)

    def weigh(self, distribution: ScheduledMeasure, segment: Segment, rng: np.random.Generator) -> Weights:
        return self.estimator.weigh(distribution.playing, segment, rng)

    def learn(self, distribution: ScheduledMeasure, feedback: Feedback) -> ScheduledMeasure:
        arrived_in = distribution.played or distribution.playing
        total = learned(self.estimator, distribution.total, feedback, arrived_in)
        return replace(distribution, total=total, arrived=distribution.arrived + 1, stands=False)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | None:
        """What theory allows after `rounds` against any losses; None where no explicit bound is known."""
        if waited or not isinstance(self.schedule, HybridSchedule) or type(self.estimator) is not ImportanceWeighting:
            return None
        return bounds.best_of_both(domain.shape, rounds, self.schedule.rate, self.schedule.barrier)
