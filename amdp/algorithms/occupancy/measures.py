"""Learners whose state is an occupancy measure: what mirror descent and the regularized leader share.

The measure is the one nearest, in relative entropy, to `prior * exp(-rate * total)`; one projection finds it, when a
policy is asked for. Feedback that arrives in one round is summed before it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from amdp.algorithms import bounds
from amdp.algorithms.bounds import AdaptiveBound, Bound
from amdp.algorithms.estimators.base import Estimator, WholeTable, learned
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.rates import FixedRate, Rate, as_rate
from amdp.arrays import Floats, Policies
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import Dynamics
from amdp.model.segments import Pairs, Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.projection.base import Projection, ProjectionOracle, Projector, bind_projection


class Refresh(Protocol):
    """When a learner takes up what it has gathered about the dynamics."""

    def refreshed(self, used: Dynamics, gathered: Dynamics) -> Dynamics:
        """The dynamics to use from now; `used` itself if nothing changes."""
        ...


@dataclass(frozen=True)
class EveryRound:
    """At once: the box is the intersection of all intervals so far (Jin et al. 2022)."""

    def refreshed(self, used: Dynamics, gathered: Dynamics) -> Dynamics:
        """The dynamics with all that was observed."""
        return gathered


@dataclass(frozen=True)
class WhenDoubled:
    """In epochs: when some pair has twice the visits of the last time, the set of the counts alone (Jin et al. 2020).

    Pairs of the last step do not count, as nothing follows them. There are at most `1 + (H-1)SA (log2(K) + 1)` epochs.
    """

    def refreshed(self, used: Dynamics, gathered: Dynamics) -> Dynamics:
        """The set in use, until the visits of some pair have doubled."""
        before, now = (getattr(each, "visits", None) for each in (used, gathered))
        if gathered is used or before is None or now is None:
            return gathered
        if not (now.sum(axis=-1) >= np.maximum(1, 2 * before.sum(axis=-1))).any():
            return used
        if isinstance(gathered, BernsteinBox) and gathered.radius is not None:
            return BernsteinBox.from_counts(now, gathered.radius)
        return gathered  # an L1 ball is never intersected


@dataclass(frozen=True, eq=False)
class PlayedPolicy:
    """One policy, and what was known of the dynamics when it was played: a distribution without randomness."""

    domain: Domain
    policy: Policies = field(repr=False)  # [h, s, a]
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        """The policy; it is stochastic itself, and no random number is needed to choose it."""
        return self.policy

    def visits(self, pairs: Pairs) -> Floats:
        """The greatest chance `[m]` of being at each pair."""
        chances: Floats = self.domain.dynamics.greatest_visits(self.policy[None], self.domain.initial, pairs)[0]
        return chances


@dataclass(frozen=True, eq=False)
class TiltedMeasure:
    """The occupancy measure nearest to `prior * exp(-rate * total)`."""

    projector: Projector = field(repr=False)
    rate: Rate
    prior: Floats = field(repr=False)  # logarithms, [h, s, a] over a kernel, [h, s, a, y] over a box
    total: Floats = field(repr=False)  # [h, s, a], the sum of loss estimates that tilts the prior
    gathered: Dynamics = field(repr=False)  # with all observations; those of the projector may be older
    last: Projection | None = field(default=None, repr=False)  # an earlier projection, to start the next one from
    stands: bool = False  # nothing changed since: `last` is the projection
    played: PlayedPolicy | None = field(default=None, repr=False)  # in the round before
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from, and all that is known of their dynamics."""
        used = self.projector.domain
        return used if self.gathered is used.dynamics else MarkovPolicies(self.gathered, used.initial)

    @cached_property
    def projection(self) -> Projection:
        """The projected occupancy measure, with the certificate of its optimality."""
        if self.stands and self.last is not None:
            return self.last
        tilt = (self.rate.value * self.total).reshape(*self.total.shape, *(1,) * (self.prior.ndim - 3))
        return self.projector.project(self.prior - tilt, self.last)

    @cached_property
    def playing(self) -> PlayedPolicy:
        """The policy of the measure."""
        return PlayedPolicy(self.projector.domain, self.projection.policy)

    @property
    def potential(self) -> float:
        """`<q, total> + (1/rate) sum q ln q`, the least over the measures `q`, for a flat prior and a rate above 0."""
        pairs = self.occupancy
        return float(np.vdot(pairs, self.total)) - entropy(self.projection) / self.rate.value

    @property
    def occupancy(self) -> Floats:
        """The chance `[h, s, a]` of each pair."""
        measure = self.projection.measure
        return measure if measure.ndim == 3 else measure.sum(axis=-1)

    def draw(self, rng: np.random.Generator) -> Policies:
        """The policy of the measure."""
        return self.playing.draw(rng)


@dataclass(frozen=True)
class MeasureLearner(ABC):
    """A rate, an estimator, a projection by name or as an oracle, and when new dynamics are taken up."""

    rate: float | Rate
    estimator: Estimator
    projection: str | ProjectionOracle = "newton"
    refresh: Refresh = field(default_factory=EveryRound)

    def __post_init__(self) -> None:
        as_rate(self.rate)

    @property
    def feedback(self) -> type:
        """The kind of feedback that its estimator understands."""
        return self.estimator.feedback

    def start(self, domain: Domain, rng: np.random.Generator) -> TiltedMeasure:
        """The measure of greatest entropy; over the box of all kernels it is uniform in each step."""
        projector = bind_projection(self.projection, domain)
        flat = np.zeros(projector.point_shape)
        return TiltedMeasure(projector, as_rate(self.rate), flat, np.zeros(domain.shape), domain.dynamics)

    def observe(self, distribution: TiltedMeasure, segment: Segment) -> TiltedMeasure:
        """Keep the policy that was played, and narrow the dynamics; the next measure starts from the last one."""
        gathered, used = distribution.gathered.narrow(segment), distribution.projector.domain
        taken = self.refresh.refreshed(used.dynamics, gathered)
        stands = taken is used.dynamics
        projector = distribution.projector if stands else self._bound_again(distribution.projector, taken)
        return replace(
            self._rebased(distribution),
            projector=projector,
            gathered=gathered,
            stands=stands,
            played=distribution.playing,
        )

    def weigh(self, distribution: TiltedMeasure, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of its estimator."""
        return self.estimator.weigh(distribution.playing, segment, rng)

    def learn(self, distribution: TiltedMeasure, feedback: Feedback) -> TiltedMeasure:
        """Add the loss estimate to the sum that tilts the prior."""
        arrived_in = distribution.played or distribution.playing
        total = learned(self.estimator, distribution.total, feedback, arrived_in)
        return replace(distribution, total=total, stands=False)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | AdaptiveBound | None:
        """What theory allows after `rounds`; None where no explicit bound is known: boxes, delays."""
        rate = as_rate(self.rate)
        if waited or not isinstance(domain.dynamics, SingleKernel) or not isinstance(rate, FixedRate):
            return None
        if isinstance(self.estimator, WholeTable):
            return bounds.o_reps_full(domain.shape, rounds, rate.value)
        if isinstance(self.estimator, ImportanceWeighting | ImplicitExploration):
            return bounds.o_reps(domain.shape, rounds, rate.value, getattr(self.estimator, "gamma", 0.0))
        return None

    @abstractmethod
    def _rebased(self, distribution: TiltedMeasure) -> TiltedMeasure:
        """The prior, the total and the last projection with which the next round begins."""

    def _bound_again(self, projector: Projector, dynamics: Dynamics) -> Projector:
        return projector.oracle.bind(MarkovPolicies(dynamics, projector.domain.initial))


def entropy(projection: Projection) -> float:
    """`-sum q ln q` of a projected measure; at least 0."""
    logs = projection.log_measure
    return -float((projection.measure * np.where(np.isneginf(logs), 0.0, logs)).sum())
