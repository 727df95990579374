"""What a check is.

A check looks at pieces of the library, held in `Parts`, and says whether a statement of the paper holds for them. A
mutation is `Parts` with one piece replaced by a wrong one: a check that cannot tell the two apart proves nothing, and a
figure that no mutation brings below its margin is not judged, only told.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import log10
from typing import Any

import numpy as np

from amdp.algorithms.estimators.base import Estimator
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.estimators.resampling import GeometricResampling
from amdp.algorithms.ftpl.perturbations import Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.streams.epochs import FtplTuning, HedgeTuning, hedge_infinite_renewed
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.algorithms.task import EpochSetup, Task
from amdp.game.delays import Delays
from amdp.game.loop import play
from amdp.game.regret import Regret, measure
from amdp.model.confidence import BernsteinBox, Radius
from amdp.oracles.base import PlanningOracle
from amdp.oracles.markov.dynamic_programming import BackwardInduction

FALSE_ALARM = 1e-6  # the chance, at most, that a check that draws samples fails a right implementation
LEAST = 1e-300  # p-values below it are not told apart


@dataclass(frozen=True)
class FalseAlarm:
    """The chance, at most, that a check fails a right implementation, and why it is not larger."""

    rate: float
    reason: str

    def __str__(self) -> str:
        return f"{self.rate:g}: {self.reason}" if self.rate else f"none: {self.reason}"


NO_CHANCE = FalseAlarm(0.0, "what is judged holds on every path")


def at_most(reason: str) -> FalseAlarm:
    """`FALSE_ALARM`, all tests of a check together."""
    return FalseAlarm(FALSE_ALARM, reason)


@dataclass(frozen=True)
class Parts:
    """The pieces that the checks look at."""

    laplace: Callable[[float], Perturbation] = Laplace  # noise of a given rate
    leader: type[Ftpl] = Ftpl
    resampling: Callable[[int], Estimator] = GeometricResampling  # with at most so many trials
    weighting: Callable[[], Estimator] = ImportanceWeighting
    oracle: PlanningOracle = field(default_factory=BackwardInduction)
    box: type[BernsteinBox] = BernsteinBox
    radius: Callable[..., Radius] = Radius.paper
    delays: type[Delays] = Delays
    switching: type[PolicySwitching] = PolicySwitching
    hedge: type[Hedge] = Hedge
    ftpl_stream: type[FtplTuning] = FtplTuning
    hedge_stream: type[HedgeTuning] = HedgeTuning
    stream: Callable[[Task], EpochSetup] = hedge_infinite_renewed  # Hedge in epochs, as printed
    play: Callable[..., Any] = play  # an iterator over `Round`
    measure: Callable[..., Regret] = measure

    def ftpl(self, rate: float, limit: int) -> Ftpl:
        """The paper's learner, made of these pieces."""
        return self.leader(self.laplace(rate), self.resampling(limit), self.oracle)


class Effort(StrEnum):
    """How long a check may take: all of them about a minute, or several."""

    QUICK = "quick"
    FULL = "full"

    def samples(self, quick: int) -> int:
        """As many as `quick`, or ten times more."""
        return quick if self is Effort.QUICK else 10 * quick


class Verdict(StrEnum):
    """What came of a check."""

    HOLDS = "holds"
    FAILS = "fails"
    OUT_OF_REACH = "out of reach"  # true, and it says nothing at sizes that can be played


@dataclass(frozen=True)
class Finding:
    """A verdict and the figures behind it."""

    verdict: Verdict
    text: str  # one line: what was measured, against what
    samples: int  # simulated runs, draws or paths; 0 if everything is exact
    margins: Mapping[str, float]  # how far each judged figure is from failing; below 0 it fails
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def margin(self) -> float:
        """The least one."""
        return min(self.margins.values())


Run = Callable[[Parts, Effort, np.random.Generator], Finding]


@dataclass(frozen=True)
class Check:
    """A statement, and how it is put to the test."""

    name: str
    statement: str  # its places in the paper, by the paper's numbers and divided by commas; a colon; what it is
    claim: str  # what it says
    exact: str  # what is computed without chance
    simulated: str  # what is not; empty if nothing
    rejects: Mapping[str, tuple[str, ...]]  # mistakes that it was shown to reject, and the margins that each exhausts
    run: Run = field(repr=False)
    false_alarm: FalseAlarm
    correction: str = ""  # where the printed statement is read otherwise


def judged(text: str, samples: int, margins: Mapping[str, float], /, **figures: float) -> Finding:
    """It holds if no margin is below 0."""
    plain = {name: float(margin) for name, margin in margins.items()}
    holds = all(margin >= 0.0 for margin in plain.values())  # not a number: it fails
    return Finding(Verdict.HOLDS if holds else Verdict.FAILS, text, samples, plain, figures)


def unsurprising(chance: float, tests: int) -> float:
    """The margin of a p-value, one of `tests`, in powers of ten: below 0 if false alarms are rarer than allowed."""
    return log10(max(chance, LEAST) * tests / FALSE_ALARM)


def agreement(difference: float, tolerance: float = 1e-9) -> float:
    """The margin of two figures that should be equal, up to rounding."""
    return tolerance - difference
