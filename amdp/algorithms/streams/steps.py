"""What learners share that choose a policy anew in each step of a stream."""

from dataclasses import dataclass
from typing import Protocol, Self, cast

import numpy as np

from amdp.algorithms.bounds import RegretBound
from amdp.algorithms.estimators.feedback import Feedback, FullInformation
from amdp.algorithms.task import Task
from amdp.arrays import Floats, Policies, floats, refuse
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Segment


class Stepped(Protocol):
    """A segment of one step that says when it was and where it led, such as `amdp.model.segments.Step`."""

    @property
    def time(self) -> int:
        """The step of the stream that it is."""
        ...

    @property
    def reached(self) -> int:
        """The state after it."""
        ...


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

    def uniforms(self, time: int, n: int) -> Floats:
        """The first `n` uniform random numbers of a step."""
        return np.random.Generator(np.random.Philox(key=self.key, counter=[0, 0, 0, time])).random(n)


def step_of(segment: Segment) -> Stepped:
    """A segment that is one step."""
    if not hasattr(segment, "reached"):  # ten times as fast as isinstance with a protocol
        raise InvalidInput(f"a {type(segment).__name__} does not say where it led; play in a Stepwise arena")
    return cast(Stepped, segment)


def choice(states: int, actions: int, state: int, action: int) -> Policies:
    """The policy `[s, a]` that takes `action` in `state`, and action 0 elsewhere."""
    policy = np.zeros((states, actions))
    policy[:, 0] = 1.0
    policy[state, 0] = 0.0
    policy[state, action] = 1.0
    return policy


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


def stream(task: Task) -> StationaryPolicies:
    """The domain of a task that is a stream of stationary policies without delays."""
    if task.total_delay:
        raise InvalidInput(f"total_delay = {task.total_delay}; this learner takes losses without delay")
    return stationary(task.domain)


def stationary(domain: Domain) -> StationaryPolicies:
    """A domain of stationary policies, or `InvalidInput`."""
    if not isinstance(domain, StationaryPolicies):
        raise InvalidInput(
            f"an unbroken stream is played with StationaryPolicies, as in a Stepwise arena, not "
            f"{type(domain).__name__}: give steps instead of episodes (--steps)"
        )
    return domain
