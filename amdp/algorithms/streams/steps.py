"""What learners share that choose a policy anew in each step of a stream."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from amdp import kernels
from amdp.algorithms.bounds import RegretBound
from amdp.algorithms.estimators.feedback import Feedback, FullInformation, Weights
from amdp.arrays import Floats, Policies, floats, refuse
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Segment, Step


@dataclass(frozen=True)
class StreamBound(RegretBound):
    """A bound on regret against the best stationary policy, for learners that choose anew in each step."""

    penalty: float  # the noise, or the number of experts, over the rate
    stability: float  # what the moves of the distribution cost
    catching: float  # steps on the way from one expert to the next
    prefix: float = 0.0  # steps of the best policy that no expert follows


@dataclass(frozen=True)
class RandomKey:
    """A key from which the random numbers of each step are computed: asked twice, they are the same.

    Distributions are values, which must not hold a generator that moves on.
    """

    key: int

    @classmethod
    def fresh(cls, rng: np.random.Generator) -> Self:
        """A fresh random key."""
        return cls(int(rng.integers(2**63)))

    @property
    def word(self) -> np.uint64:
        """The key as compiled steps read it."""
        return np.uint64(self.key)

    def uniforms(self, time: int, n: int) -> Floats:
        """The first `n` uniform random numbers of a step."""
        numbers = np.empty(n)
        kernels.philox.fill_step(self.word, time, numbers)
        return numbers


@dataclass(frozen=True, eq=False)
class StreamPosition(ABC):
    """The state of a learner that chooses one action at a time: the step and the state that the stream is at."""

    domain: StationaryPolicies
    time: int = field(default=0, kw_only=True)
    state: int = field(kw_only=True)

    @property
    @abstractmethod
    def action(self) -> int:
        """The action of the next step."""

    def draw(self, rng: np.random.Generator) -> Policies:
        """The policy `[s, a]` that takes the action in the present state, and action 0 elsewhere."""
        policy = np.zeros(self.domain.shape[1:])
        policy[:, 0] = 1.0
        policy[self.state] = 0.0
        policy[self.state, self.action] = 1.0
        return policy


class Unweighted:
    """A learner whose losses need no weights, such as one with full information."""

    feedback: ClassVar[type] = FullInformation

    def weigh(self, distribution: object, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.empty(0))


Position = TypeVar("Position", bound=StreamPosition)


class StepLearner(Unweighted, Generic[Position]):
    """A learner whose state moves along with the stream."""

    def observe(self, distribution: Position, segment: Segment) -> Position:
        step = step_of(segment)
        return replace(distribution, time=step.time + 1, state=step.reached)


def step_of(segment: Segment) -> Step:
    """A segment that is one step."""
    if not isinstance(segment, Step):
        raise InvalidInput(f"a {type(segment).__name__} does not say where it led; play in a Stepwise arena")
    return segment


def whole_table(feedback: Feedback) -> Floats:
    """The losses `[h, s, a]` of full information, none of them negative."""
    if not isinstance(feedback, FullInformation):
        raise InvalidInput(f"this learner understands FullInformation, not {type(feedback).__name__}")
    table = floats("losses", feedback.table, "hsa")
    refuse("losses", table, ~(table >= 0.0), "hsa", "must not be negative")
    return table


def require_now(feedback: Feedback, time: int) -> None:
    """Refuse delayed feedback: it must be of the step before `time`."""
    step = step_of(feedback.segment).time
    if step != time - 1:
        raise InvalidInput(f"the losses of step {step} came at step {time - 1}; this learner takes them without delay")


def stationary(domain: Domain) -> StationaryPolicies:
    """A domain of stationary policies, or `InvalidInput`."""
    if not isinstance(domain, StationaryPolicies):
        raise InvalidInput(f"a stream of steps is played with StationaryPolicies, not {type(domain).__name__}")
    return domain
