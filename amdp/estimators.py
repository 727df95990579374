"""From losses met to estimates of all losses.

A weight says what a unit of loss met at a pair stands for: about one over the chance of being there. It does not
depend on the loss, so it is drawn when the segment is played; feedback that is still under way keeps `m` numbers.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from amdp.arrays import Actions, Floats, require_whole
from amdp.dynamics import Segment
from amdp.errors import InvalidInput
from amdp.feedback import Bandit, FullInformation, Weights
from amdp.mdp import Domain

FIRST_BATCH = 32
LARGEST_BATCH = 256


class Sampler(Protocol):
    """A distribution over deterministic policies that can be sampled at will."""

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> Actions:
        """`n` independent policies `[n, h, s]`."""
        ...


class Estimator(Protocol):
    """How a learner turns feedback into loss estimates; `feedback` is the one kind that it understands."""

    feedback: ClassVar[type]

    def weigh(self, source: Sampler, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of a segment that was played with a policy from `source`."""
        ...

    def add(self, total: Floats, feedback: Any) -> Floats:
        """`total` `[h, s, a]` plus the estimate, as a new array."""
        ...


@dataclass(frozen=True)
class GeometricResampling:
    """The paper's estimator: for each step, count fresh trials until one visits the same pair, at most `limit`.

    A trial draws a policy as the learner does, and asks whether it is at the pair of its step: simulated over a
    kernel, drawn with the greatest visit chance over a box. With `q` the chance of success, the count `M` has
    `E[M] = (1 - (1-q)^limit) / q` and `E[M^2] <= 2/q^2`. The counts of different steps are independent.
    """

    limit: int
    feedback: ClassVar[type] = Bandit

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def weigh(self, source: Sampler, segment: Segment, rng: np.random.Generator) -> Weights:
        """Trials come in batches: all steps that still wait get the same number of them."""
        dynamics, initial = source.domain.dynamics, source.domain.initial
        counts = np.zeros(len(segment.states))
        waiting = np.arange(len(segment.states))
        done, size, trials = 0, FIRST_BATCH, 0
        while len(waiting):
            each = min(-(-size // len(waiting)), self.limit - done)
            steps = np.repeat(waiting, each)
            policies = source.sample(len(steps), rng)
            met = dynamics.meets(policies, initial, segment, steps, rng).reshape(-1, each)
            counts[waiting] = done + np.where(met.any(axis=1), met.argmax(axis=1) + 1, each)
            trials += len(steps)
            done += each
            waiting = waiting[~met.any(axis=1)] if done < self.limit else waiting[:0]
            size = min(2 * size, LARGEST_BATCH)
        return Weights(counts, trials)

    def add(self, total: Floats, feedback: Bandit) -> Floats:
        """Weight times loss, at the pairs that were visited."""
        return added(total, feedback)


@dataclass(frozen=True)
class SharedResampling:
    """Geometric resampling whose trials serve all steps of a segment at once.

    Each count keeps its law; counts of different steps become dependent. The regret bound stands: see
    docs/shared-trials.md. Up to H times fewer policies are sampled.
    """

    limit: int
    feedback: ClassVar[type] = Bandit

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def weigh(self, source: Sampler, segment: Segment, rng: np.random.Generator) -> Weights:
        """Trials come in growing batches until every step was met, or the limit is reached."""
        dynamics, initial = source.domain.dynamics, source.domain.initial
        counts = np.zeros(len(segment.states))
        done, size = 0, FIRST_BATCH
        while done < self.limit and not counts.all():
            each = min(size, self.limit - done)
            met = dynamics.meets_all(source.sample(each, rng), initial, segment, rng)
            first = np.where(met.any(axis=0), done + met.argmax(axis=0) + 1, 0)
            counts = np.where(counts == 0, first, counts)
            done += each
            size = min(2 * size, LARGEST_BATCH)
        return Weights(np.where(counts == 0, self.limit, counts).astype(np.float64), done)

    def add(self, total: Floats, feedback: Bandit) -> Floats:
        """Weight times loss, at the pairs that were visited."""
        return added(total, feedback)


@dataclass(frozen=True)
class WholeTable:
    """Full information needs no estimate: the losses themselves."""

    feedback: ClassVar[type] = FullInformation

    def weigh(self, source: Sampler, segment: Segment, rng: np.random.Generator) -> Weights:
        """Nothing to weigh."""
        return Weights(np.empty(0))

    def add(self, total: Floats, feedback: FullInformation) -> Floats:
        """The losses of all pairs."""
        return total + feedback.table


def added(total: Floats, feedback: Bandit) -> Floats:
    """`total` plus weight times loss at the pairs of a segment."""
    segment = feedback.segment
    at = segment.start + np.arange(len(segment.states))
    result = total.copy()
    result[at, segment.states, segment.actions] += feedback.weights.values * feedback.losses
    return result


def require_limit(limit: int) -> None:
    """Refuse fewer than one trial."""
    require_whole("limit", limit)
    if limit < 1:
        raise InvalidInput(f"limit = {limit}; it must be at least 1")
