"""What the losses of a segment reveal to a learner: one type for each kind of feedback."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from amdp.arrays import Floats
from amdp.model.segments import Segment


class Weights(NamedTuple):
    """What a unit of loss at each step of a segment stands for in the loss estimate; fixed when it was played."""

    values: Floats  # [m]; empty where losses need no weights
    trials: int = 0  # resampling trials that it took to find them
    life: int = 0  # of a learner that starts again: which of its lives played the segment
    played_at: int = 0  # how far the learner was when it played the segment, in units of its own
    oracle_calls: int = 0  # questions to a planning oracle that it took to find them
    occupancy: Floats | None = None  # [h, s, a], of the policy that was played, or of several; only where it is needed
    states: Floats | None = None  # [m], the same for the states, whatever the action; only where a total is told


@dataclass(frozen=True, eq=False)
class Bandit:
    """Bandit feedback: the losses of the pairs that were visited."""

    segment: Segment
    weights: Weights
    losses: Floats  # [m]

    @classmethod
    def reveal(cls, table: Floats, segment: Segment, weights: Weights) -> Self:
        """What this kind of feedback reveals of a loss table `[h, s, a]`."""
        return cls(segment, weights, table[segment.places])


@dataclass(frozen=True, eq=False)
class FullInformation:
    """Full information: the whole loss table `[h, s, a]`."""

    segment: Segment
    weights: Weights
    table: Floats

    @classmethod
    def reveal(cls, table: Floats, segment: Segment, weights: Weights) -> Self:
        """What this kind of feedback reveals of a loss table `[h, s, a]`: a copy of all of it."""
        return cls(segment, weights, table.copy())  # a view would give access to the losses of other rounds


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Aggregate bandit feedback: the trajectory, and the sum of its losses. No loss of a single step is told."""

    segment: Segment
    weights: Weights
    total: float

    @classmethod
    def reveal(cls, table: Floats, segment: Segment, weights: Weights) -> Self:
        """What this kind of feedback reveals of a loss table `[h, s, a]`."""
        return cls(segment, weights, float(table[segment.places].sum()))


Feedback = Bandit | FullInformation | Aggregate
