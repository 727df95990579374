"""The doubling trick: learners that need not know the number of rounds, or the total delay, in advance.

They guess it, and start again with twice the guess when it proves too small. What was learned of the dynamics is kept;
loss estimates are forgotten, and feedback of an earlier life, as a run between two starts is called, is dropped.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from amdp.algorithms.base import Learner, PolicyDistribution
from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.estimators.resampling import SharedResampling, require_limit
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, laplace_rate, resampling_limit
from amdp.algorithms.task import Task
from amdp.arrays import Policies, require_whole
from amdp.model.domains import Domain
from amdp.model.segments import Segment

Make = Callable[[Domain, int], Learner[Any]]  # a learner tuned for a domain and a guess


@dataclass(frozen=True, eq=False)
class Life:
    """One life of a learner that starts again: its distribution, and what decides when it ends."""

    learner: Learner[Any] = field(repr=False)
    distribution: PolicyDistribution = field(repr=False)
    rng: np.random.Generator = field(repr=False)  # the learner's own stream, for the starts to come
    guess: int
    number: int = 0
    used: int = 0  # of the guess
    outstanding: int = 0  # rounds of this life whose feedback has not come
    earlier_calls: int = 0  # questions to a planning oracle in the lives before

    @property
    def oracle_calls(self) -> int:
        return self.earlier_calls + self.distribution.oracle_calls

    @property
    def domain(self) -> Domain:
        return self.distribution.domain

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.distribution.draw(rng)


@dataclass(frozen=True)
class Doubling(ABC):
    """A learner of many lives, each made for a guess; what uses a guess up is the subclass's to say."""

    make: Make
    first: int = 1
    feedback: type = Bandit

    def __post_init__(self) -> None:
        require_whole("first", self.first, 1)  # twice nothing is nothing: it would start again for ever

    @abstractmethod
    def used(self, life: Life) -> int:
        """How much of its guess the round that ends now uses."""

    @abstractmethod
    def is_over(self, life: Life) -> bool:
        """Whether the guess proved too small."""

    def start(self, domain: Domain, rng: np.random.Generator) -> Life:
        return self._born(domain, rng, self.first)

    def observe(self, life: Life, segment: Segment) -> Life:
        distribution = life.learner.observe(life.distribution, segment)
        used = life.used + self.used(life)
        older = replace(life, distribution=distribution, used=used, outstanding=life.outstanding + 1)
        if not self.is_over(older):
            return older
        return self._born(older.domain, older.rng, 2 * older.guess, older.number + 1, older.oracle_calls)

    def weigh(self, life: Life, segment: Segment, rng: np.random.Generator) -> Weights:
        return life.learner.weigh(life.distribution, segment, rng)._replace(life=life.number)

    def learn(self, life: Life, feedback: Feedback) -> Life:
        """As the learner inside does, if the feedback belongs to this life."""
        if feedback.weights.life != life.number:
            return life
        distribution = life.learner.learn(life.distribution, feedback)
        return replace(life, distribution=distribution, outstanding=life.outstanding - 1)

    def _born(self, domain: Domain, rng: np.random.Generator, guess: int, number: int = 0, calls: int = 0) -> Life:
        learner = self.make(domain, guess)
        return Life(learner, learner.start(domain, rng), rng, guess, number, earlier_calls=calls)


class UnknownRounds(Doubling):
    """Guess the number of rounds: lives of length 1, 2, 4, and so on, each tuned for its own length."""

    def used(self, life: Life) -> int:
        return 1

    def is_over(self, life: Life) -> bool:
        return life.used >= life.guess


class UnknownDelay(Doubling):
    """Guess the total delay: a life ends when the rounds spent waiting exceed the guess [derived].

    After each round the feedbacks still under way are counted; the sum of these counts over a run is at most the
    total delay. Give `first = K`: a life that expects less delay than rounds pays for the rounds again.
    """

    def used(self, life: Life) -> int:
        """One round of waiting for each feedback under way."""
        return life.outstanding

    def is_over(self, life: Life) -> bool:
        return life.used > life.guess


# --- recipes ----------------------------------------------------------------------------------------------------------


def ftpl_unknown_rounds(
    task: Task, *, rate: float | None = None, limit: int | None = None, guess: int = 1
) -> UnknownRounds:
    """FTPL with shared trials that does not know the number of rounds: it doubles its guess of it.

    The theory of a life is that of its guess; a rate or a limit by hand is that of all lives.
    """
    require_whole("guess", guess, 1)
    return UnknownRounds(_tuning(task, rate, limit, guess, 0), first=guess)


def ftpl_unknown_delay(
    task: Task, *, rate: float | None = None, limit: int | None = None, guess: int | None = None
) -> UnknownDelay:
    """FTPL with shared trials that does not know the total delay: it doubles its guess of it.

    The first guess is the number of rounds. A rate by hand is that of all lives.
    """
    if guess is not None:
        require_whole("guess", guess, 1)
    first = task.setting("guess", guess, task.rounds)
    return UnknownDelay(partial(_for_delay, _tuning(task, rate, limit, task.rounds, first), task.rounds), first=first)


def _tuning(task: Task, rate: float | None, limit: int | None, rounds: int, delay: int) -> Callable[..., Ftpl]:
    """FTPL for a domain, a number of rounds and a total delay; those of the first life decide what is noted."""
    domain = task.solved_episodes("ftpl-infinite")
    task.rate(rate, laplace_rate(domain, rounds, delay))
    require_limit(task.setting("limit", limit, resampling_limit(domain, rounds)))
    settings: dict[str, Any] = {"rate": rate, "limit": limit, "multiplier": task.multiplier}
    return partial(Ftpl.tuned, oracle=task.planning_oracle, resampling=SharedResampling, **settings)


def _for_delay(tuned: Callable[..., Ftpl], rounds: int, domain: Domain, guess: int) -> Ftpl:
    return tuned(domain, rounds, guess)
