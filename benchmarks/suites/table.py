"""The rows of Table 1: seconds a round, what they grow like, and how far they are from the operations stated.

A row is played by the real loop on its standard game, then with more states and with more actions. What the catalog
states of a round is counted here in multiplications and additions, at the rate of a plain compiled loop: the ratio is
what Python, calls, searches that repeat, and memory add. Rows since then, and those that ask an oracle of unstated
cost, have no ratio.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from math import nan
from typing import Any

import numpy as np
from numba import njit

from amdp.algorithms.paper_table import DETERMINISTIC, EPISODES, POLYNOMIAL, TABLE, UNKNOWN
from amdp.algorithms.paper_table import Row as Stated
from amdp.experiments.building import arrange
from amdp.experiments.ladders import Ladder, slope, spec_of
from amdp.experiments.table_1 import ladders
from amdp.game.match import Match
from amdp.game.rounds import Round
from benchmarks.results import Row, at_most
from benchmarks.timing import Effort, side_by_side

LENGTH = 4096  # numbers of the plain loop: they stay in the cache
OVERHEAD = 10.0  # times the operations stated, above which a row is marked
FEW, MANY = (0, 1, 2), (1, 4, 16)  # more of them, or so many times as many
SOME = (1, 2, 4)  # where walks of all lengths are listed
SIZES = {"S": "n_states", "A": "n_actions"}


@dataclass(frozen=True)
class Played:
    """What the operations of a round depend on."""

    steps: int  # of a round: of an episode, or of an epoch of a stream
    states: int
    actions: int
    trials: float  # a round
    unknown: bool
    match: Match

    @property
    def plan(self) -> float:
        """Backward induction."""
        return 2.0 * self.steps * self.states**2 * self.actions

    @property
    def visit(self) -> float:
        """One upper occupancy bound, at a middle step."""
        return self.plan / 2.0

    @property
    def projection(self) -> float:
        """A single step of Newton's method: curvature of all pairs, and factors of its blocks."""
        return self.plan * self.states + 2.0 * self.steps * self.states**3

    @property
    def walks(self) -> float:
        """The best closed walks of all lengths."""
        return 2.0 * self.states**4 * self.actions

    def policies(self, places: int) -> float:
        """How many choose at so many places."""
        return float(self.actions) ** places


FLOPS: dict[str, Callable[[Played], float]] = {
    "o-reps": lambda one: one.projection,
    "o-reps-full": lambda one: one.projection,
    "ftpl": lambda one: (1.0 + one.trials) * one.plan + one.unknown * one.trials * one.visit,
    "fpl": lambda one: one.plan,
    "uob-reps": lambda one: one.projection + one.steps * one.visit,
    "delayed-uob-ftrl": lambda one: one.projection,
    "delayed-uob-reps": lambda one: one.projection + 2.0 * one.steps * one.visit,
    "uc-o-reps-bernstein": lambda one: one.projection,
    "delayed-hedge": lambda one: one.policies(1 + (one.steps - 1) * one.states) * one.plan / one.actions,
    "hedge-infinite-renewed": lambda one: one.policies(one.states) * one.plan / one.actions,
    "ct-communicating": lambda one: 2.0 * one.policies(one.states) * one.states**2,
    "mdp-e": lambda one: 2.0 * (one.states**3 + one.states**2 * one.actions),
    "mdp-exp3": lambda one: 2.0 * (one.states**3 + one.match.learner.lookback * one.states**2),  # type: ignore[attr-defined]
    "ct-deterministic": lambda one: one.walks,
    "dekel-hazan": lambda one: one.walks / one.match.learner.block,  # type: ignore[attr-defined]
    "o-ssp": lambda one: one.plan,
    "pomd": lambda one: one.steps * one.plan,
    "dilated-bonus": lambda one: one.steps * one.states * one.plan,
    "delayed-oppo": lambda one: one.steps * one.plan,
}


@dataclass(frozen=True)
class Measured:
    """Of one size."""

    played: Played
    seconds: float  # a round
    flops: float  # stated; NaN where they are not

    @property
    def least(self) -> float:
        """The seconds of a loop that does nothing else."""
        return self.flops / flop_rate()


def timed(stated: Stated, ladder: Ladder, effort: Effort) -> Iterator[Row]:
    """The row at its standard size, and at the largest number of states."""
    wanted = {letter: islice(_sized(stated, ladder, letter), None if effort.seconds else 2) for letter in SIZES}
    grown = {letter: [_measure(stated, one, effort) for one in sized] for letter, sized in wanted.items()}
    growth = ", ".join(_growth(letter, found) for letter, found in grown.items() if found)
    yield _row(stated.name, grown["S"][0], f"{growth}; stated: {stated.cost}")
    yield _row(f"{stated.name}, more states", grown["S"][-1], "")


@cache
def flop_rate() -> float:
    """Multiplications and additions a second of a plain compiled loop, one number after the other."""
    a, b = np.random.default_rng(1).random((2, LENGTH))
    return 2.0 * LENGTH / side_by_side({"loop": lambda: _dot(a, b)}, Effort(9, 0.0, 5e-3)).median("loop")


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _dot(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


def _sized(stated: Stated, ladder: Ladder, letter: str) -> Iterator[Ladder]:
    """The ladder's game with more and more states, or actions where the world has a choice of them."""
    key, world = SIZES[letter], dict(ladder.game["instance"])
    if letter == "A" and stated.transitions == DETERMINISTIC:
        return
    first = world.get(key, 2)
    for size in _sizes(stated, first):
        yield replace(ladder, game={**ladder.game, "instance": world | {key: size}})


def _sizes(stated: Stated, first: int) -> Sequence[int]:
    if stated.efficiency != POLYNOMIAL:
        return [first + more for more in FEW]
    return [first * times for times in (SOME if stated.transitions == DETERMINISTIC else MANY)]


def _measure(stated: Stated, ladder: Ladder, effort: Effort) -> Measured:
    """Rounds in mid-game; when a game is over, the next one begins."""
    match = arrange(spec_of(ladder.name, [replace(ladder, rungs=ladder.rungs[:1])], 1).first()[0].settings)
    rounds, trials = _endless(match), list[int]()
    times = side_by_side({"round": lambda: trials.append(next(rounds).trials)}, replace(effort, seconds=0.0))
    steps, states, actions = match.domain.shape
    length = steps if stated.setting == EPISODES else match.epoch or 1
    played = Played(length, states, actions, float(np.mean(trials)), stated.transitions == UNKNOWN, match)
    count = FLOPS.get(stated.learner)
    return Measured(played, times.median("round"), count(played) if count else nan)


def _endless(match: Match) -> Iterator[Round]:
    while True:
        yield from match.play(1)


def _growth(letter: str, found: Sequence[Measured]) -> str:
    sizes = np.array([{"S": one.played.states, "A": one.played.actions}[letter] for one in found], dtype=float)
    seconds, flops = (np.array([getattr(one, part) for one in found]) for part in ("seconds", "flops"))
    stated = "unstated" if np.isnan(flops).any() else f"stated {slope(sizes, flops):.1f}"
    return f"{letter}^{slope(sizes, seconds):.1f} ({stated})"


def _row(name: str, one: Measured, note: str) -> Row:
    played = one.played
    sizes = {"S": played.states, "A": played.actions, "H": played.steps}
    if np.isnan(one.flops):
        return Row(name, "a step", one.seconds, one.seconds / played.steps, sizes=sizes, note=note)
    ratio = one.seconds / one.least
    goal = at_most(OVERHEAD)
    return Row(name, "flops stated", one.seconds, one.least, "s", sizes, ratio, "ours / theirs", goal=goal, note=note)


def _case(stated: Stated) -> str:
    return re.sub(r"[^a-z0-9]+", "-", stated.name.lower()).strip("-")


CASES = {_case(row): partial(timed, row, ladder) for row, ladder in zip(TABLE, ladders(), strict=True)}
