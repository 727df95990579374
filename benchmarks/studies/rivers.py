"""A short river whose current changes, and learners that are not told: static and dynamic regret."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from amdp import losses
from amdp.algorithms.estimators.resampling import SharedResampling
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.arrays import Floats
from amdp.errors import EmptyConfidenceSet
from amdp.game.arenas import Evolving
from amdp.game.dynamic_regret import DynamicRegret, measure_dynamic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.domains import MarkovPolicies
from amdp.model.transitions import Kernel

STEPS, STATES = 4, 3
CALM, STRONG = 0.1, 0.9  # chance that a swimmer against the current does not advance
STAYING = 0.35  # reward for resting at the lower end; at the upper end it is 1
EDGES = 16  # places at which a comparator may change its policy
RADIUS_SCALE = 0.03


def river(current: float) -> Kernel:
    """Action 0 rests at the lower end or drifts down, action 1 swims up and is carried back with the current."""
    p = np.zeros((STATES, 2, STATES))
    for s in range(STATES):
        p[s, 0, max(s - 1, 0)] = 1.0
        p[s, 1, min(s + 1, STATES - 1)] += 1.0 - current
        p[s, 1, max(s - 1, 0)] += current
    return Kernel.homogeneous(p, STEPS)


def rewards() -> Floats:
    """`[h, s, a]`."""
    result = np.zeros((STEPS, STATES, 2))
    result[:, 0, 0], result[:, -1, 1] = STAYING, 1.0
    return result


def _still(rounds: int) -> Floats:
    return np.full(rounds, CALM)


def _blocks(count: int) -> Callable[[int], Floats]:
    return lambda rounds: np.where(np.arange(rounds) * count // rounds % 2 == 0, CALM, STRONG)


def _drift(rounds: int) -> Floats:
    """One slow wave, in steps of a twentieth."""
    wave = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(rounds) / rounds)
    drifted: Floats = np.round(20.0 * (CALM + (STRONG - CALM) * wave)) / 20.0
    return drifted


CURRENTS: dict[str, Callable[[int], Floats]] = {  # the current of each round
    "still": _still,
    "one change": _blocks(2),
    "slow wave": _drift,
    "seven changes": _blocks(8),
}
LEARNERS = ("told the first kernel", "told the mean", "told the mean, 8 restarts", "told nothing", "told each kernel")
RESTARTS = 8


@dataclass(frozen=True)
class Swim:
    """One game."""

    current: str
    learner: str
    rounds: int
    seed: int
    multiplier: float = 8.0  # of the theorem's rate

    @property
    def file(self) -> str:
        """Of its result."""
        words = f"{self.current} {self.learner}".replace(",", "").replace(" ", "-")
        return f"swim_{words}_{self.rounds}_{self.seed}_x{self.multiplier:g}.json"

    def measured(self) -> dict[str, float]:
        """What was paid, and the regret against comparators of ever more changes; `empty` is 1 if the box gave up."""
        game, speeds = self.game(), CURRENTS[self.current](self.rounds)
        edges = np.unique(np.linspace(0, self.rounds, EDGES + 1).round().astype(np.int64))
        try:
            found = measure_dynamic(game, self._played(game, speeds), edges.tolist())
        except EmptyConfidenceSet:
            return {"empty": 1.0}
        return {"empty": 0.0, "paid": found.paid, "dynamic": found.dynamic} | _against(found)

    def game(self) -> ArenaGame:
        """Zeros and ones with the costs as means."""
        means = losses.repeated(1.0 - rewards(), self.rounds)
        return ArenaGame(arena(CURRENTS[self.current](self.rounds)), losses.bernoulli(means, self.seed))

    def _played(self, game: ArenaGame, speeds: Floats) -> Iterator[Round]:
        """In parts, with a new learner in each: usually one part is the whole game."""
        streams = Streams.from_seed(self.seed)
        for first, last in pairwise(_parts(self.learner, speeds)):
            tables = FixedLosses(np.stack([game.table(k) for k in range(first, last)]))
            domain = _told(self.learner, speeds, first)
            learner = Ftpl.tuned(domain, last - first, resampling=SharedResampling, multiplier=self.multiplier)
            for one in play_rounds(ArenaGame(arena(speeds[first:last]), tables), learner, domain, streams):
                yield replace(one, k=first + one.k)


def arena(speeds: Floats) -> Evolving:
    """A kernel for each current that there is."""
    known, schedule = np.unique(speeds, return_inverse=True)
    return Evolving(tuple(river(float(one)) for one in known), schedule)


def _told(learner: str, speeds: Floats, first: int) -> MarkovPolicies:
    """What a learner that begins in round `first` is told."""
    if learner == "told nothing":
        shape = (STEPS, STATES, 2)
        return MarkovPolicies(BernsteinBox.vacuous(shape, Radius.jin_2020(shape, len(speeds), scale=RADIUS_SCALE)))
    return MarkovPolicies(river(float(speeds.mean() if learner.startswith("told the mean") else speeds[first])))


def _parts(learner: str, speeds: Floats) -> NDArray[np.int64]:
    """The rounds in which a new learner begins, and the end; who is told each kernel begins anew with each."""
    if learner == "told each kernel":
        return np.concatenate([[0], 1 + np.flatnonzero(np.diff(speeds)), [len(speeds)]])
    count = RESTARTS if learner.endswith("restarts") else 1
    return np.linspace(0, len(speeds), count + 1).round().astype(np.int64)


def _against(found: DynamicRegret) -> dict[str, float]:
    return {f"changes {m}": float(regret) for m, regret in enumerate(found.against)}
