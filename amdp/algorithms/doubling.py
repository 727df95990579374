"""Learners that need not know the number of rounds or the total delay: guess, and start again with twice the guess.

What was learned of the dynamics is kept; loss estimates are forgotten, and feedback of an earlier life is dropped.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from amdp.algorithms.base import Draws, Learner
from amdp.arrays import Policies, require_whole
from amdp.dynamics import Segment
from amdp.errors import InvalidInput
from amdp.feedback import Bandit, Feedback, Weights
from amdp.mdp import Domain

Make = Callable[[Domain, int], Learner[Any]]  # a learner tuned for a domain and a guess


@dataclass(frozen=True, eq=False)
class Life:
    """One life of a learner that starts again: its distribution, and what decides when it ends."""

    learner: Learner[Any] = field(repr=False)
    source: Draws = field(repr=False)
    rng: np.random.Generator = field(repr=False)  # the learner's own stream, for the starts to come
    guess: int
    number: int = 0
    used: int = 0  # of the guess
    outstanding: int = 0  # rounds of this life whose feedback has not come

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from."""
        return self.source.domain

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy `[h, s, a]`."""
        return self.source.draw(rng)


@dataclass(frozen=True)
class UnknownRounds:
    """Guess the number of rounds: lives of length 1, 2, 4, and so on, each tuned for its own length."""

    make: Make
    first: int = 1
    feedback: type = Bandit

    def __post_init__(self) -> None:
        _require_guess(self.first)

    def start(self, domain: Domain, rng: np.random.Generator) -> Life:
        """The first life."""
        return _born(self.make, domain, rng, self.first, 0)

    def observe(self, life: Life, segment: Segment) -> Life:
        """One round of this life is over; the last one starts the next life."""
        older = _observed(life, segment, 1)
        if older.used < older.guess:
            return older
        return _born(self.make, older.domain, older.rng, 2 * older.guess, older.number + 1)

    def weigh(self, life: Life, segment: Segment, rng: np.random.Generator) -> Weights:
        """As the learner inside does, marked with the number of its life."""
        return life.learner.weigh(life.source, segment, rng)._replace(life=life.number)

    def learn(self, life: Life, feedback: Feedback) -> Life:
        """As the learner inside does, if the feedback belongs to this life."""
        return _learned(life, feedback)


@dataclass(frozen=True)
class UnknownDelay:
    """Guess the total delay: a life ends when the rounds spent waiting exceed the guess (Thune et al. 2019).

    After each round the feedbacks still under way are counted; the sum of these counts over a run is at most the
    total delay.
    """

    make: Make
    first: int = 1
    feedback: type = Bandit

    def __post_init__(self) -> None:
        _require_guess(self.first)

    def start(self, domain: Domain, rng: np.random.Generator) -> Life:
        """The first life."""
        return _born(self.make, domain, rng, self.first, 0)

    def observe(self, life: Life, segment: Segment) -> Life:
        """Count what is under way; too much of it starts the next life."""
        older = _observed(life, segment, life.outstanding)
        if older.used <= older.guess:
            return older
        return _born(self.make, older.domain, older.rng, 2 * older.guess, older.number + 1)

    def weigh(self, life: Life, segment: Segment, rng: np.random.Generator) -> Weights:
        """As the learner inside does, marked with the number of its life."""
        return life.learner.weigh(life.source, segment, rng)._replace(life=life.number)

    def learn(self, life: Life, feedback: Feedback) -> Life:
        """As the learner inside does, if the feedback belongs to this life."""
        return _learned(life, feedback)


def _require_guess(first: int) -> None:
    require_whole("first", first)
    # Twice nothing is nothing: such a learner would start again for ever.
    if first < 1:
        raise InvalidInput(f"first = {first}; it must be at least 1")


def _born(make: Make, domain: Domain, rng: np.random.Generator, guess: int, number: int) -> Life:
    learner = make(domain, guess)
    return Life(learner, learner.start(domain, rng), rng, guess, number)


def _observed(life: Life, segment: Segment, used: int) -> Life:
    source = life.learner.observe(life.source, segment)
    return replace(life, source=source, used=life.used + used, outstanding=life.outstanding + 1)


def _learned(life: Life, feedback: Feedback) -> Life:
    if feedback.weights.life != life.number:
        return life
    source = life.learner.learn(life.source, feedback)
    return replace(life, source=source, outstanding=life.outstanding - 1)
