"""The conformance checks pass our learners, and each of them rejects a learner that is wrong in its way."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from amdp import registry, testing
from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.named import GROUP
from amdp.algorithms.task import Task
from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel
from amdp.testing import LearnerCheck, learner_checks


@pytest.mark.parametrize("name", registry.names(GROUP))
def test_our_learners_conform(name: str) -> None:
    for check in learner_checks():
        check(registry.find(GROUP, name))


@dataclass(frozen=True, eq=False)
class Softly:
    """Prefers the actions that cost little so far, step by step."""

    domain: Domain
    total: Floats
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        weights = np.exp(-self.total + 0.1 * rng.random(self.total.shape))
        policy: Policies = weights / weights.sum(axis=-1, keepdims=True)
        return policy


@dataclass(frozen=True)
class Soft:
    """An honest learner of this file's own."""

    feedback: ClassVar[type[Feedback]] = Bandit

    def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
        if not isinstance(domain, MarkovPolicies):
            raise InvalidInput("episodes only")
        return Softly(domain, np.zeros(domain.shape))

    def observe(self, distribution: Softly, segment: Segment) -> Softly:
        return replace(
            distribution,
            domain=MarkovPolicies(distribution.domain.dynamics.narrow(segment), distribution.domain.initial),
        )

    def weigh(self, distribution: Softly, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.ones(len(segment.states)))

    def learn(self, distribution: Softly, feedback: Any) -> Softly:
        total = distribution.total.copy()
        total[feedback.segment.places] += feedback.losses
        return replace(distribution, total=total)


class Greedy(Softly):
    def draw(self, rng: np.random.Generator) -> Policies:
        return 2.0 * super().draw(rng)


class Global(Softly):
    def draw(self, rng: np.random.Generator) -> Policies:
        return super().draw(np.random.default_rng())


class NotNormal(Soft):
    def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
        return Greedy(domain, super().start(domain, rng).total)


class Overdrawn(Softly):
    def draw(self, rng: np.random.Generator) -> Policies:
        policy = np.zeros(self.total.shape)
        policy[..., 0], policy[..., -1] = 1.5, -0.5
        return policy


class Negative(Soft):
    def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
        return Overdrawn(domain, super().start(domain, rng).total)


class Stationary(Soft):
    def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
        return replace(super().start(domain, rng), total=np.zeros(domain.shape[1:]))


class Unseeded(Soft):
    def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
        return Global(domain, super().start(domain, rng).total)


@dataclass(frozen=True)
class Counting(Soft):
    """Counts its feedbacks outside of its distribution, and expects one a round."""

    counter: list[int] = field(default_factory=lambda: [0], compare=False)

    def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
        self.counter[0] = 0
        return super().start(domain, rng)

    def weigh(self, distribution: Softly, segment: Segment, rng: np.random.Generator) -> Weights:
        self.counter[0] += 1
        assert self.counter[0] == 1, "no feedback came for the round before"
        return super().weigh(distribution, segment, rng)

    def learn(self, distribution: Softly, feedback: Any) -> Softly:
        self.counter[0] -= 1
        return super().learn(distribution, feedback)


@dataclass(frozen=True)
class Remembering(Soft):
    """Begins where its last game ended."""

    losses: list[float] = field(default_factory=list, compare=False)

    def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
        total = super().start(domain, rng).total
        total[..., 0] = sum(self.losses)
        return Softly(domain, total)

    def learn(self, distribution: Softly, feedback: Any) -> Softly:
        self.losses.append(float(feedback.losses.sum()))
        return super().learn(distribution, feedback)


class InPlace(Soft):
    def learn(self, distribution: Softly, feedback: Any) -> Softly:
        distribution.total[feedback.segment.places] += feedback.losses
        return distribution


class TooManyWeights(Soft):
    def weigh(self, distribution: Softly, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.ones(len(segment.states) + 1))


class Endless(Soft):
    def weigh(self, distribution: Softly, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.full(len(segment.states), np.inf))


class Forgetful(Soft):
    def observe(self, distribution: Softly, segment: Segment) -> Softly:
        return replace(distribution, domain=MarkovPolicies(Kernel(np.ones((1, 1, 1, 1)))))


@dataclass(frozen=True)
class AtHome(Soft):
    rule: Callable[[float], float] = lambda x: x  # what pickle cannot carry


@pytest.mark.parametrize("check", learner_checks(), ids=lambda check: check.__name__)
def test_an_honest_learner_passes(check: LearnerCheck) -> None:
    check(lambda task: Soft())


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (NotNormal(), testing.check_it_plays_policies),
        (Negative(), testing.check_it_plays_policies),
        (Stationary(), testing.check_it_plays_policies),
        (Unseeded(), testing.check_seeds_reproduce_a_run),
        (Remembering(), testing.check_seeds_reproduce_a_run),
        (Counting(), testing.check_late_feedback_is_taken),
        (InPlace(), testing.check_distributions_are_values),
        (TooManyWeights(), testing.check_weights_fit_the_segment),
        (Endless(), testing.check_weights_fit_the_segment),
        (Forgetful(), testing.check_weights_fit_the_segment),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_a_wrong_learner_is_rejected(wrong: Learner[Any], check: LearnerCheck) -> None:
    with pytest.raises(AssertionError):
        check(lambda task: type(wrong)())


def test_a_learner_that_cannot_travel_is_rejected() -> None:
    with pytest.raises(Exception, match="pickle"):
        testing.check_learners_travel(lambda task: AtHome())


def test_a_recipe_that_refuses_everything_is_rejected() -> None:
    def refuses(task: Task) -> Learner[Any]:
        raise InvalidInput("not this one")

    with pytest.raises(AssertionError, match="refuses all"):
        testing.check_it_plays_policies(refuses)


def test_a_learner_of_unknown_feedback_is_rejected() -> None:
    class Told(FullInformation):
        pass

    class Odd(Soft):
        feedback: ClassVar[type[Feedback]] = Told

    with pytest.raises(AssertionError, match="feedback is"):
        testing.check_it_plays_policies(lambda task: Odd())


def test_a_distribution_without_a_domain_is_rejected() -> None:
    @dataclass(frozen=True)
    class Homeless(Soft):
        def start(self, domain: Domain, rng: np.random.Generator) -> Softly:
            super().start(domain, rng)
            return object()  # type: ignore[return-value]

    with pytest.raises(AssertionError, match="has no 'domain'"):
        testing.check_it_plays_policies(lambda task: Homeless())
