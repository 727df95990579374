"""From the losses of the pairs that were visited to estimates of all losses.

A weight says what a unit of loss at a visited pair stands for: about one over the chance of the visit. It does not
depend on the loss, so it is fixed when the segment is played; delayed feedback keeps its `m` weights.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from amdp import kernels
from amdp.algorithms.estimators.feedback import Aggregate, Bandit, Feedback, FullInformation, Weights
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.reach import Reach
from amdp.model.segments import Segment


class Estimator(Protocol):
    """How a learner turns feedback into loss estimates; `feedback` is the one kind that it understands."""

    feedback: ClassVar[type]

    def reach(self, domain: Domain) -> Reach | None:
        """What it keeps of the dynamics from round to round: None, unless its trials are scaled."""
        ...

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of a segment that was played with a policy from `distribution`."""
        ...

    def add(self, total: Floats, feedback: Any, distribution: Any) -> Floats:
        """`total` `[h, s, a]` plus the estimate, as a new array; `distribution` plays the round of its arrival."""
        ...


class WeightTimesLoss:
    """Estimates of weight times loss at the visited pairs, and zero elsewhere."""

    feedback: ClassVar[type] = Bandit

    def reach(self, domain: Domain) -> Reach | None:
        return None

    def add(self, total: Floats, feedback: Bandit, distribution: Any) -> Floats:
        """Weight times loss, at the pairs that were visited."""
        return added(total, feedback)


@dataclass(frozen=True)
class WholeTable:
    """Full information needs no estimate: the losses themselves."""

    feedback: ClassVar[type] = FullInformation

    def reach(self, domain: Domain) -> None:
        return None

    def weigh(self, distribution: object, segment: Segment, rng: np.random.Generator) -> Weights:
        """No weights: full information needs none."""
        return Weights(np.empty(0))

    def add(self, total: Floats, feedback: FullInformation, distribution: object) -> Floats:
        """The losses of all pairs."""
        return total + feedback.table


def learned(estimator: Estimator, total: Floats, feedback: Feedback, distribution: object) -> Floats:
    """`total` plus the estimate of feedback that arrives in the round that `distribution` played."""
    if not isinstance(feedback, estimator.feedback):
        raise InvalidInput(
            f"{type(estimator).__name__} understands {estimator.feedback.__name__}, not {type(feedback).__name__}"
        )
    return estimator.add(total, feedback, distribution)


def estimated_loss(estimator: Estimator, feedback: Feedback) -> float:
    """What the policy of the feedback's round pays under the estimate, `<q, estimate>`: an adaptive rate asks for it.

    A pair that was met has the estimate `loss w`, with `w = 1 / (q + gamma)`, so that `q loss w = loss (1 - gamma w)`.
    """
    if isinstance(feedback, Aggregate):  # an advantage, of which the policy that was played has none on average
        return 0.0
    if isinstance(feedback, FullInformation):
        if feedback.weights.occupancy is None:
            raise InvalidInput("the feedback's weights carry no occupancy measure; give it the weights of `weigh`")
        return float(kernels.soft.paid(feedback.weights.occupancy, feedback.table))
    gamma: float = getattr(estimator, "gamma", 0.0)
    return float(kernels.soft.estimated_loss(feedback.losses, feedback.weights.values, gamma))


def added(total: Floats, feedback: Bandit) -> Floats:
    """`total` plus weight times loss at the pairs of a segment."""
    result = total.copy()
    result[feedback.segment.places] += feedback.weights.values * feedback.losses
    return result
