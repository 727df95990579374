"""What a learner is told about the losses of a segment: a type for each kind of feedback, nothing more inside it."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from amdp.arrays import Floats
from amdp.model.segments import Segment


class Weights(NamedTuple):
    """What a unit of loss met at each step of a segment stands for; fixed when the segment was played."""

    values: Floats  # [m]; empty where nothing needs weighing
    trials: int = 0  # policies that were sampled to find them
    life: int = 0  # of a learner that starts again: which of its lives played the segment


@dataclass(frozen=True, eq=False)
class Bandit:
    """The losses that were met, and nothing else."""

    segment: Segment
    weights: Weights
    losses: Floats  # [m]

    @classmethod
    def reveal(cls, table: Floats, segment: Segment, weights: Weights) -> Self:
        """What this kind of feedback reveals of a loss table `[h, s, a]`."""
        return cls(segment, weights, table[segment.places])


@dataclass(frozen=True, eq=False)
class FullInformation:
    """The whole loss table `[h, s, a]`."""

    segment: Segment
    weights: Weights
    table: Floats

    @classmethod
    def reveal(cls, table: Floats, segment: Segment, weights: Weights) -> Self:
        """What this kind of feedback reveals of a loss table `[h, s, a]`: all of it, in memory of its own."""
        return cls(segment, weights, table.copy())  # a view would lead to the other rounds


Feedback = Bandit | FullInformation
