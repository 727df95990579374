"""Differences between games of the library and of the plain reference, and whether chance explains them.

The reference gets what was played, and draws again, from the same history, what the library drew: the policy, the
path of the policy that was played, and the weight of one of its pairs. Given the history, both draws have one law if
the library is right, so their difference is symmetric about 0, whatever that law is. What is not drawn (confidence
sets, sums of estimates, what was paid, what the best policy pays) must be the same.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amdp.algorithms.estimators.feedback import Weights
from amdp.arrays import Floats
from amdp.game.seeding import Streams
from amdp.model.segments import Segment
from amdp.verification import p_values
from amdp.verification.base import Finding, equality_margin, judged, p_value_margin
from amdp.verification.reference import Path

MAX_WIDTH = 0.7  # of the intervals of rows that were visited, on average, at the end of a game
STAGES = "draw", "play", "weigh"
SYMMETRIC = "differences of two draws from one law are symmetric (de la Pena 1999)"


class RecordingLearner:
    """A learner that passes every call on to another one, and keeps the last distributions and what they learned."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.distribution: Any = None  # that played the last round
        self.narrowed: Any = None  # the same after `observe`
        self.weights = Weights(np.empty(0))
        self.added: list[Floats] = []  # the estimate of each feedback, in the order of arrival

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def observe(self, distribution: Any, segment: Segment) -> Any:
        self.narrowed = self.learner.observe(distribution, segment)
        return self.narrowed

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        self.distribution, self.weights = distribution, self.learner.weigh(distribution, segment, rng)
        return self.weights

    def learn(self, distribution: Any, feedback: Any) -> Any:
        after = self.learner.learn(distribution, feedback)
        self.added.append(after.total - distribution.total)
        return after


@dataclass
class Comparison:
    """Differences between games of the library and of the reference."""

    pairs: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    largest: dict[str, float] = field(default_factory=dict)  # difference of what is not drawn
    widths: list[float] = field(default_factory=list)  # of confidence intervals at the end of games

    def add_draws(self, stage: str, what: str, library: float, plain: float) -> None:
        """Record two draws that have one law if the library is right."""
        self.pairs[stage, what].append((library, plain))

    def add_equals(self, what: str, library: Any, plain: Any) -> None:
        """Record two arrays that are equal if the library is right."""
        difference = np.abs(np.asarray(library, dtype=np.float64) - np.asarray(plain, dtype=np.float64)).max()
        self.largest[what] = max(self.largest.get(what, 0.0), float(difference))

    def finding(self) -> Finding:
        """Judge the least p-value of each stage of a round, and the largest difference of what is not drawn."""
        tests, rounds = 2 * len(self.pairs), len(self.pairs["draw", "losses"])
        chances = dict.fromkeys(STAGES, 1.0)
        for (stage, _), pairs in self.pairs.items():
            values = np.array(pairs)
            for moment, unit in ((values, 1.0), (values**2, 4.0)):
                chances[stage] = min(chances[stage], p_values.symmetric(moment[:, 0] - moment[:, 1], unit))
        margins = {stage: p_value_margin(chance, tests) for stage, chance in chances.items()}
        margins |= {what: equality_margin(off) for what, off in self.largest.items()}
        sets = ""
        if self.widths:
            margins["narrowed"] = MAX_WIDTH - float(np.mean(self.widths))
            sets = f"; intervals are {np.mean(self.widths):.2f} wide at the end"
        text = (
            ", ".join(f"{stage} p = {chance:.2g}" for stage, chance in chances.items())
            + f" (least of {tests}); "
            + ", ".join(f"{what} off by {off:.0e}" for what, off in self.largest.items())
            + sets
        )
        return judged(text, rounds, margins, **{f"p_{stage}": chance for stage, chance in chances.items()})


def random_streams(rng: np.random.Generator) -> Streams:
    """The generators of a game, from a random seed."""
    return Streams.from_seed(int(rng.integers(2**32)))


def path_of(segment: Segment) -> Path:
    """The pairs `(s, a)` of a segment."""
    return list(zip(segment.states.tolist(), segment.actions.tolist(), strict=True))
