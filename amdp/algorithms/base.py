"""The contract of a learner.

A learner is a frozen recipe. Its state is the distribution over policies that it would play from now, a value that
goes in and comes out: no reset, no clone, no hidden counter.
"""

from typing import Protocol, TypeVar

import numpy as np

from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.arrays import Policies
from amdp.model.domains import Domain
from amdp.model.segments import Segment


class PolicyDistribution(Protocol):
    """A distribution over policies.

    One that asks a planning oracle for each policy has a `planner`; one that asks it at other times has `planned`, how
    often it did so far. Others are counted without plans.
    """

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from, and what is known of their dynamics."""
        ...

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy, `[h, s, a]`."""
        ...


Distribution = TypeVar("Distribution", bound=PolicyDistribution)


class Learner(Protocol[Distribution]):
    """How one distribution becomes the next."""

    @property
    def feedback(self) -> type:
        """The kind of feedback that it understands."""
        ...

    def start(self, domain: Domain, rng: np.random.Generator) -> Distribution:
        """The distribution before anything was seen."""
        ...

    def observe(self, distribution: Distribution, segment: Segment) -> Distribution:
        """At once after a segment was played: the dynamics narrow."""
        ...

    def weigh(self, distribution: Distribution, segment: Segment, rng: np.random.Generator) -> Weights:
        """At once after a segment was played from `distribution`: what a unit of loss met there stands for."""
        ...

    def learn(self, distribution: Distribution, feedback: Feedback) -> Distribution:
        """When the feedback of a segment arrives, which may be much later."""
        ...
