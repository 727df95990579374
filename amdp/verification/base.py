"""Checks of the paper's statements: the implementation that they run, their verdicts and their margins.

A check runs an implementation, the pieces of the library held in `Parts`, and says whether a statement of the paper
holds for it. The tests replace one piece at a time by a wrong one: a check that passes a wrong piece proves nothing,
and a figure whose margin no wrong piece exhausts is reported, not judged.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import partial
from math import log10
from typing import Any

import numpy as np

from amdp.algorithms.estimators.base import Estimator
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.estimators.resampling import GeometricResampling
from amdp.algorithms.ftpl.adaptive import AdaptiveFtpl
from amdp.algorithms.ftpl.perturbations import Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.rates import AdaptiveRate
from amdp.algorithms.soft_leader import SoftLeader
from amdp.algorithms.streams.epochs import FtplTuning, HedgeTuning, hedge_infinite_renewed
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.algorithms.task import EpochSetup, Task
from amdp.game.delays import Delays
from amdp.game.loop import play_rounds
from amdp.game.regret import Regret, measure
from amdp.model.confidence import BernsteinBox, Radius
from amdp.oracles.base import PlanningOracle
from amdp.oracles.markov.dynamic_programming import BackwardInduction

FALSE_ALARM = 1e-6  # the chance, at most, that a check that draws samples fails a right implementation
SMALLEST_P_VALUE = 1e-300  # smaller ones count as this one: their logarithm stays finite


@dataclass(frozen=True)
class Parts:
    """The implementation under test: the classes and functions of the library that the checks call."""

    laplace: Callable[[float], Perturbation] = Laplace  # noise of density rate/2 exp(-rate |z|)
    leader: type[Ftpl] = Ftpl
    resampling: Callable[[int], Estimator] = GeometricResampling  # by the limit of the trials
    weighting: Callable[[], Estimator] = ImportanceWeighting
    oracle: PlanningOracle = field(default_factory=BackwardInduction)
    box: type[BernsteinBox] = BernsteinBox
    radius: Callable[..., Radius] = Radius.paper
    delays: type[Delays] = Delays
    switching: type[PolicySwitching] = PolicySwitching
    hedge: type[Hedge] = Hedge
    soft: type[SoftLeader] = SoftLeader
    adaptive: type[AdaptiveRate] = AdaptiveRate
    adaptive_ftpl: type[AdaptiveFtpl] = AdaptiveFtpl
    ftpl_stream: type[FtplTuning] = FtplTuning
    hedge_stream: type[HedgeTuning] = HedgeTuning
    stream: Callable[[Task], EpochSetup] = hedge_infinite_renewed  # Hedge in epochs of an infinite horizon, as printed
    play: Callable[..., Any] = play_rounds  # an iterator over `Round`
    measure: Callable[..., Regret] = measure

    def ftpl(self, rate: float, limit: int) -> Ftpl:
        """FTPL with Laplace noise and geometric resampling, made of these pieces."""
        return self.leader(self.laplace(rate), self.resampling(limit), self.oracle)


class Effort(StrEnum):
    """How many samples the checks draw: all checks take about twenty seconds of a processor, or four times that."""

    QUICK = "quick"
    FULL = "full"

    def samples(self, quick: int) -> int:
        """The number of samples: `quick`, or five times as many."""
        return quick if self is Effort.QUICK else 5 * quick


class Verdict(StrEnum):
    """Whether a statement holds for the implementation."""

    HOLDS = "holds"
    FAILS = "fails"
    OUT_OF_REACH = "out of reach"  # it holds, but its bound is trivial at sizes that can be played


@dataclass(frozen=True)
class Finding:
    """The verdict of a check, and the figures behind it."""

    verdict: Verdict
    text: str  # one line: what was measured, against what
    samples: int  # simulated runs, draws or paths; 0 if everything is exact
    margins: Mapping[str, float]  # how far each judged figure is from failing; below 0 it fails
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def margin(self) -> float:
        """The least margin: how far the check is from failing."""
        return min(self.margins.values())


Run = Callable[[Parts, Effort, np.random.Generator], Finding]


@dataclass(frozen=True)
class Check:
    """A statement of the paper, and the test of it."""

    run: Run = field(repr=False)
    _: KW_ONLY
    statement: str  # its places in the paper, by the paper's numbers and divided by commas; a colon; what it is
    claim: str  # the statement in formulas
    exact: str  # what is computed exactly
    simulated: str = ""  # what is estimated from samples; empty if nothing
    inequality: str = ""  # bounds the chance of failing a right implementation by `FALSE_ALARM`; empty: it never fails
    rejects: Mapping[str, tuple[str, ...]]  # mistakes that the tests show it to reject: the margins that each exhausts
    correction: str = ""  # how the statement differs from the printed one

    @property
    def name(self) -> str:
        """The name of the function, `_switch_law`, as it is typed: `switch-law`."""
        return self.run.__name__.strip("_").replace("_", "-")

    @property
    def false_alarm_rate(self) -> float:
        """An upper bound on the chance that the check fails a right implementation."""
        return FALSE_ALARM if self.inequality else 0.0

    @property
    def false_alarm(self) -> str:
        """The bound, and the inequality behind it."""
        return f"{FALSE_ALARM:g}: {self.inequality}" if self.inequality else "none: what is judged holds on every path"


def check(**details: Any) -> Callable[[Run], Check]:
    """Make the function that follows a check, with these details; the name of the check is that of the function."""
    return partial(Check, **details)


def judged(text: str, samples: int, margins: Mapping[str, float], /, **figures: float) -> Finding:
    """The finding: the statement holds if no margin is below 0."""
    plain = {name: float(margin) for name, margin in margins.items()}
    holds = all(margin >= 0.0 for margin in plain.values())  # NaN fails
    return Finding(Verdict.HOLDS if holds else Verdict.FAILS, text, samples, plain, figures)


def p_value_margin(chance: float, tests: int) -> float:
    """`log10(p tests / FALSE_ALARM)`, the margin of the least p-value of `tests`: the Bonferroni correction."""
    return log10(max(chance, SMALLEST_P_VALUE) * tests / FALSE_ALARM)


def equality_margin(difference: float, tolerance: float = 1e-9) -> float:
    """The margin of two figures that must be equal: the rounding allowed, less their difference."""
    return tolerance - difference
