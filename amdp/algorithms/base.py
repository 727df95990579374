"""The contract of a learner, and the distributions over policies that it plays.

A learner is a frozen recipe. Its state is the distribution over policies that it would play from now, a value that
goes in and comes out: no reset, no clone, no hidden counter.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.arrays import Actions, Floats, Policies
from amdp.model.domains import Domain
from amdp.model.segments import Pairs, Segment

PolicyStream = Callable[[int], Actions]  # the next `n` of independent deterministic policies, `[n, h, s]` or `[n, s]`


class PolicyDistribution(Protocol):
    """A distribution over policies: the state of a learner."""

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from, and what is known of their dynamics."""
        ...

    @property
    def oracle_calls(self) -> int:
        """How many questions the learner has put to a planning oracle so far, those of `Weights` not included.

        A learner without a planning oracle writes `oracle_calls = 0`.
        """
        ...

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy, `[h, s, a]`, or `[s, a]` if it is stationary."""
        ...


class DistributionWithVisits(PolicyDistribution, Protocol):
    """A distribution over policies that knows its visit chances, as importance weighting needs them."""

    def visits(self, pairs: Pairs) -> Floats:
        """The greatest chance `[m]`, over the kernels not ruled out, of being at each pair."""
        ...


class OnePolicy(DistributionWithVisits, Protocol):
    """A distribution without randomness: one policy is played, and its actions are drawn step by step.

    An estimate from the total loss of an episode asks for this. A policy that is drawn for the whole episode would tie
    its action in one step to those in others, and nobody could say which of them the total speaks of.
    """

    @property
    def policy(self) -> Policies:
        """The policy `[h, s, a]`."""
        ...


class DistributionWithTrials(PolicyDistribution, Protocol):
    """A distribution over deterministic policies that can be sampled at will, as geometric resampling needs it."""

    def policies(self, rng: np.random.Generator) -> PolicyStream:
        """A stream of independent policies."""
        ...

    @property
    def trials(self) -> "Trials":
        """Resampling trials of policies drawn like the one that was played."""
        ...


class DistributionWithScaledTrials(PolicyDistribution, Protocol):
    """The same with trials that are scaled by the reach of the states."""

    @property
    def scaled_trials(self) -> "Trials":
        """Resampling trials of policies drawn like the one that was played."""
        ...


class Trials(Protocol):
    """Resampling trials that weigh each pair of a segment: by their number until one visits it, at most `limit`."""

    def shared(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Weights by trials that serve all pairs."""
        ...

    def per_step(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Weights by trials that serve one pair each."""
        ...


Distribution = TypeVar("Distribution", bound=PolicyDistribution)


class Learner(Protocol[Distribution]):
    """How one distribution over policies becomes the next."""

    @property
    def feedback(self) -> type:
        """The kind of feedback that it learns from: `Bandit`, `FullInformation` or `Aggregate`."""
        ...

    def start(self, domain: Domain, rng: np.random.Generator) -> Distribution:
        """The distribution before the first round."""
        ...

    def observe(self, distribution: Distribution, segment: Segment) -> Distribution:
        """The distribution after a segment was played from it, whose transitions are seen at once."""
        ...

    def weigh(self, distribution: Distribution, segment: Segment, rng: np.random.Generator) -> Weights:
        """What a unit of loss stands for in the loss estimate, fixed at once after a segment was played."""
        ...

    def learn(self, distribution: Distribution, feedback: Feedback) -> Distribution:
        """The distribution after the feedback of a segment arrived, which may be many rounds later."""
        ...
