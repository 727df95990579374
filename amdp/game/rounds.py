"""What happened in one round of a game, and how long it took."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from amdp.arrays import Policies
from amdp.model.segments import NOWHERE, Segment


class Timing(NamedTuple):
    """Seconds of a round, by who spent them: the oracle works in the first three, each learner's where it asks it."""

    draw: float  # the policy that is played: FTPL plans here
    weigh: float  # what a loss stands for: FTPL plans once for every trial
    learn: float  # from one distribution to the next: mirror descent projects here
    arena: float  # the play, and the losses of the round

    @classmethod
    def between(cls, marks: Sequence[float]) -> Self:
        """From readings of a clock at the begin of a round, and after its draw, play, weighing and learning."""
        begin, drawn, played, weighed, learned = marks
        return cls(drawn - begin, weighed - played, learned - weighed, played - drawn)


@dataclass(frozen=True, eq=False)
class Round:
    """What happened in one round."""

    k: int
    policy: Policies = field(repr=False)  # [h, s, a], as it was drawn; [s, a] if it is stationary
    segment: Segment = field(repr=False)  # the steps in which the policy was followed
    paid: float  # incurred loss: the sum of the losses met
    trials: int  # policies sampled for the estimates
    spent: Timing = field(repr=False)  # on the clock
    cpu: Timing = field(repr=False)  # of the processor, this thread only
    rebuilt: bool  # what is known of the dynamics changed
    arrived: int  # feedbacks that arrived at its end
    entering: Segment = field(default=NOWHERE, repr=False)  # the steps before the segment, spent on a switch
    paid_entering: float = 0.0  # the part of `paid` that was met in them
    plans: int = 0  # questions to a planning oracle; none of a learner that has no planner

    @property
    def seconds(self) -> float:
        """The seconds that the learner took in this round, by the clock."""
        return self.spent.draw + self.spent.weigh + self.spent.learn
