"""The contract of a learner.

A learner is a frozen recipe. Its state is the distribution over policies that it would play from now, a value that
goes in and comes out: no reset, no clone, no hidden counter.
"""

from typing import Protocol, TypeVar

import numpy as np

from amdp.arrays import Policies
from amdp.dynamics import Segment
from amdp.feedback import Feedback, Weights
from amdp.mdp import Domain


class Draws(Protocol):
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


Source = TypeVar("Source", bound=Draws)


class Learner(Protocol[Source]):
    """How one distribution becomes the next."""

    @property
    def feedback(self) -> type:
        """The kind of feedback that it understands."""
        ...

    def start(self, domain: Domain, rng: np.random.Generator) -> Source:
        """The distribution before anything was seen."""
        ...

    def observe(self, source: Source, segment: Segment) -> Source:
        """At once after a segment was played: the dynamics narrow."""
        ...

    def weigh(self, source: Source, segment: Segment, rng: np.random.Generator) -> Weights:
        """At once after a segment was played from `source`: what a unit of loss met there stands for."""
        ...

    def learn(self, source: Source, feedback: Feedback) -> Source:
        """When the feedback of a segment arrives, which may be much later."""
        ...
