"""From losses met to estimates of all losses.

A weight says what a unit of loss met at a pair stands for: about one over the chance of being there. It does not
depend on the loss, so it is drawn when the segment is played; feedback that is still under way keeps `m` numbers.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from amdp.arrays import Floats, require_whole
from amdp.dynamics import Segment
from amdp.errors import InvalidInput
from amdp.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.trials import Trials


class Resampled(Protocol):
    """A distribution over policies from which trials can be drawn."""

    @property
    def trials(self) -> Trials:
        """Trials of policies drawn like the one that was played."""
        ...


class Estimator(Protocol):
    """How a learner turns feedback into loss estimates; `feedback` is the one kind that it understands."""

    feedback: ClassVar[type]

    def weigh(self, source: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of a segment that was played with a policy from `source`."""
        ...

    def add(self, total: Floats, feedback: Any, source: Any) -> Floats:
        """`total` `[h, s, a]` plus the estimate, as a new array; `source` played the round in which it arrives."""
        ...


class WeightTimesLoss:
    """Estimates that are zero where nothing was met."""

    feedback: ClassVar[type] = Bandit

    def add(self, total: Floats, feedback: Bandit, source: Any) -> Floats:
        """Weight times loss, at the pairs that were visited."""
        return added(total, feedback)


@dataclass(frozen=True)
class _Resampling(WeightTimesLoss, ABC):
    """Count fresh trials until one visits the same pair, at most `limit`.

    A trial draws a policy as the learner does, and asks whether it is at the pair: simulated over a kernel, drawn
    with the greatest visit chance over a box. With `q` the chance of success, the count `M` has
    `E[M] = (1 - (1-q)^limit) / q` and `E[M^2] <= 2/q^2`.
    """

    limit: int

    def __post_init__(self) -> None:
        require_limit(self.limit)

    @abstractmethod
    def weigh(self, source: Resampled, segment: Segment, rng: np.random.Generator) -> Weights:
        """The counts."""


class GeometricResampling(_Resampling):
    """The paper's estimator: each step has trials of its own, so that the counts of different steps are independent."""

    def weigh(self, source: Resampled, segment: Segment, rng: np.random.Generator) -> Weights:
        """A count for each step."""
        return source.trials.apart(segment, self.limit, rng)


class SharedResampling(_Resampling):
    """Geometric resampling whose trials serve all steps of a segment at once.

    Each count keeps its law; counts of different steps become dependent. The regret bound stands: see
    docs/shared-trials.md. Up to H times fewer policies are sampled.
    """

    def weigh(self, source: Resampled, segment: Segment, rng: np.random.Generator) -> Weights:
        """A count for each step."""
        return source.trials.together(segment, self.limit, rng)


@dataclass(frozen=True)
class WholeTable:
    """Full information needs no estimate: the losses themselves."""

    feedback: ClassVar[type] = FullInformation

    def weigh(self, source: object, segment: Segment, rng: np.random.Generator) -> Weights:
        """Nothing to weigh."""
        return Weights(np.empty(0))

    def add(self, total: Floats, feedback: FullInformation, source: object) -> Floats:
        """The losses of all pairs."""
        return total + feedback.table


def learned(estimator: Estimator, total: Floats, feedback: Feedback, source: object) -> Floats:
    """`total` plus the estimate of feedback that arrives in the round that `source` played."""
    if not isinstance(feedback, estimator.feedback):
        raise InvalidInput(
            f"{type(estimator).__name__} understands {estimator.feedback.__name__}, not {type(feedback).__name__}"
        )
    return estimator.add(total, feedback, source)


def added(total: Floats, feedback: Bandit) -> Floats:
    """`total` plus weight times loss at the pairs of a segment."""
    result = total.copy()
    result[feedback.segment.places] += feedback.weights.values * feedback.losses
    return result


def require_limit(limit: int) -> None:
    """Refuse fewer than one trial."""
    require_whole("limit", limit)
    if limit < 1:
        raise InvalidInput(f"limit = {limit}; it must be at least 1")
