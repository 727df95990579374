"""What a check is.

A check looks at pieces of the library, held in `Parts`, and says whether a statement of the paper holds for them. A
mutation is `Parts` with one piece replaced by a wrong one: a check that cannot tell the two apart proves nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from scipy.stats import norm

from amdp.algorithms.ftpl import Ftpl
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.infinite_horizon import FtplTuning, HedgeTuning, hedge_infinite_renewed
from amdp.algorithms.perturbations import Laplace, Perturbation
from amdp.algorithms.recipes import InEpochs, Terms
from amdp.algorithms.switching import PolicySwitching
from amdp.arrays import Floats
from amdp.confidence import BernsteinBox, Radius
from amdp.delays import Delays
from amdp.estimators import Estimator, GeometricResampling
from amdp.oracles.base import PlanningOracle
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.weighting import ImportanceWeighting

FALSE_ALARM = 1e-6  # the chance that a right implementation fails a test, by the normal approximation
NO_CHANCE = "none: nothing is drawn"
NORMAL = "1e-6, by the normal approximation"
WIDE = "not computed: the bound is several times what is measured"


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
    stream: Callable[[Terms], InEpochs] = hedge_infinite_renewed  # Hedge in epochs, as printed

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
    margin: float  # how far the figure is from failing, in the unit that `text` names
    figures: dict[str, float] = field(default_factory=dict)


Run = Callable[[Parts, Effort, np.random.Generator], Finding]


@dataclass(frozen=True)
class Check:
    """A statement, and how it is put to the test."""

    name: str
    statement: str  # its places in the paper, by the paper's numbers and divided by commas; a colon; what it is
    claim: str  # what it says
    exact: str  # what is computed without chance
    simulated: str  # what is not; empty if nothing
    rejects: tuple[str, ...]  # mutations that it was shown to reject
    run: Run = field(repr=False)
    false_alarm: str = NORMAL  # the chance that it fails a right implementation
    correction: str = ""  # where the printed statement is read otherwise


def finding(holds: bool, text: str, samples: int, margin: float, /, **figures: float) -> Finding:
    """Holds or fails."""
    return Finding(Verdict.HOLDS if holds else Verdict.FAILS, text, samples, float(margin), figures)


def threshold(tests: int) -> float:
    """How many standard errors one of `tests` figures may be off, with a false alarm once in a million."""
    return float(norm.isf(FALSE_ALARM / (2 * tests)))


def deviations(mean: Floats, expected: Floats, error: Floats) -> Floats:
    """How many standard errors each mean is off; where nothing scatters, any difference counts as infinitely many."""
    difference = np.abs(mean - expected)
    certain = error <= 1e-300
    scaled = np.divide(difference, error, out=np.zeros_like(difference), where=~certain)
    return np.where(certain & (difference > 1e-9), np.inf, scaled)
