"""Learners that guess: when they start again, what they keep, and what they drop."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from worlds import random_rows

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Radius, Segment
from amdp.algorithms.base import Learner
from amdp.algorithms.doubling import Life, UnknownDelay, UnknownRounds, ftpl_unknown_delay, ftpl_unknown_rounds
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.estimators.resampling import SharedResampling
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, PerturbedLeader, follow_the_perturbed_leader
from amdp.algorithms.task import Recipe
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.domains import Domain
from amdp.testing import learner_checks

SHAPE = (3, 2, 2)


@dataclass(frozen=True)
class Maker:
    """Makes learners and writes down for which guesses."""

    guesses: list[int] = field(default_factory=list)

    def __call__(self, domain: Domain, guess: int) -> Learner[Any]:
        self.guesses.append(guess)
        return Ftpl(Laplace(1.0 / guess), SharedResampling(4))


def world(rounds: int, told: Delays | None = None) -> tuple[ArenaGame, MarkovPolicies]:
    rng = np.random.default_rng(1)
    kernel = Kernel(random_rows(SHAPE, rng))
    return ArenaGame(Episodic(kernel), FixedLosses(rng.random((rounds, *SHAPE))), told), MarkovPolicies(kernel)


def lives(wrapper: Any, game: ArenaGame, domain: MarkovPolicies) -> list[Life]:
    """The state of a wrapper at the start of each round, and after the last."""
    seen: list[Life] = []

    class Watched:
        feedback = wrapper.feedback

        def start(self, domain: Domain, rng: np.random.Generator) -> Life:
            seen.append(wrapper.start(domain, rng))
            return seen[-1]

        def weigh(self, life: Life, segment: Segment, rng: np.random.Generator) -> Weights:
            seen[-1] = life
            weights: Weights = wrapper.weigh(life, segment, rng)
            return weights

        def observe(self, life: Life, segment: Segment) -> Life:
            seen.append(wrapper.observe(life, segment))
            return seen[-1]

        def learn(self, life: Life, feedback: Feedback) -> Life:
            seen[-1] = wrapper.learn(life, feedback)
            return seen[-1]

    list(play_rounds(game, Watched(), domain, Streams.from_seed(1)))
    return seen


@pytest.mark.parametrize(("first", "rounds"), [(1, 31), (1, 20), (3, 45)])
def test_lives_have_the_lengths_of_their_guesses_and_each_guess_is_twice_the_last(first: int, rounds: int) -> None:
    game, domain = world(rounds)
    maker = Maker()
    seen = lives(UnknownRounds(maker, first), game, domain)
    expected: list[int] = []
    while len(expected) < rounds:
        guess = first * 2 ** len(set(expected))
        expected += [guess] * guess
    assert [life.guess for life in seen[:-1]] == expected[:rounds]
    assert maker.guesses == sorted(set(maker.guesses))
    assert maker.guesses[:3] == [first, 2 * first, 4 * first]


def test_each_life_starts_with_no_estimates_and_its_own_noise() -> None:
    game, domain = world(31)
    for before, after in zip(seen := lives(UnknownRounds(Maker()), game, domain), seen[1:], strict=False):
        if after.number == before.number:
            continue
        assert isinstance(after.distribution, PerturbedLeader)
        assert after.distribution.perturbation == Laplace(1.0 / after.guess)
        assert not after.distribution.total.any()
        assert after.outstanding == after.used == 0


def test_feedback_of_an_earlier_life_is_dropped_and_that_of_this_life_is_used() -> None:
    game, domain = world(30, delays.fixed(30, 2))
    for k, life in enumerate(lives(UnknownRounds(Maker()), game, domain)):
        assert isinstance(life.distribution, PerturbedLeader)
        # Life n began with round 2^n - 1; at the start of round k the feedback of the rounds up to k - 3 is there.
        begun = 2**life.number - 1
        known = max(0, k - 2 - begun)
        assert life.outstanding == k - begun - known
        assert bool(life.distribution.total.any()) == (known > 0)


def test_dropped_feedback_leaves_a_life_as_it_was() -> None:
    _, domain = world(1)
    wrapper = UnknownRounds(Maker())
    life = wrapper.start(domain, np.random.default_rng(0))
    segment = Segment(np.zeros(3, np.int64), np.zeros(3, np.int64))
    stale = Bandit(segment, Weights(np.ones(3), 1, life=7), np.ones(3))
    assert wrapper.learn(life, stale) is life


def test_what_was_learned_of_the_dynamics_is_kept() -> None:
    game, _ = world(20)
    told = MarkovPolicies(BernsteinBox.vacuous(SHAPE, Radius(1.0, 1.0, 1.0)))
    seen = lives(UnknownRounds(Maker()), game, told)
    for k, life in enumerate(seen):
        box = life.domain.dynamics
        assert isinstance(box, BernsteinBox)
        assert box.visits is not None
        assert box.visits.sum() == k * (SHAPE[0] - 1)


def plain_delay_guesses(values: list[int], first: int) -> list[int]:
    """The guess at the start of each round, from the definition: waiting rounds of a life beyond its guess end it."""
    guess, spent, begun, guesses = first, 0, 0, []
    for k in range(len(values)):
        guesses.append(guess)
        spent += sum(j + values[j] >= k for j in range(begun, k))  # of this life, not there when round k began
        if spent > guess:
            guess, spent, begun = 2 * guess, 0, k + 1
    return guesses


@pytest.mark.parametrize(
    "values", [[0] * 30, [1] * 30, [5] * 40, list(np.random.default_rng(2).integers(0, 15, size=60)), [50] + [0] * 40]
)
@pytest.mark.parametrize("first", [1, 4])
def test_a_life_ends_when_the_rounds_spent_waiting_exceed_its_guess(values: list[int], first: int) -> None:
    game, domain = world(len(values), delays.recorded(values))
    seen = lives(UnknownDelay(Maker(), first), game, domain)
    assert [life.guess for life in seen[:-1]] == plain_delay_guesses(values, first)
    # Each life but the last has spent more than its guess, and all of them together at most the total delay.
    ended = {life.guess for life in seen} - {seen[-1].guess}
    assert sum(ended) <= game.delays.total  # type: ignore[union-attr]


def test_without_delay_the_first_life_never_ends_and_plays_as_the_learner_inside() -> None:
    game, domain = world(25)
    seen = lives(UnknownDelay(Maker()), game, domain)
    assert {life.number for life in seen} == {0}
    wrapped = list(play_rounds(game, UnknownDelay(Maker()), domain, Streams.from_seed(1)))
    plain = list(play_rounds(game, Maker()(domain, 1), domain, Streams.from_seed(1)))
    for one, other in zip(wrapped, plain, strict=True):
        assert_array_equal(one.policy, other.policy)
        assert one.paid == other.paid


def test_full_information_can_be_doubled_too() -> None:
    game, domain = world(15)
    wrapper = UnknownRounds(follow_the_perturbed_leader, feedback=FullInformation)
    full = ArenaGame(game.arena, game.losses, feedback=FullInformation)
    assert len(list(play_rounds(full, wrapper, domain, Streams.from_seed(1)))) == 15


@pytest.mark.parametrize("kind", [UnknownRounds, UnknownDelay])
def test_a_first_guess_that_is_no_whole_number_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidInput, match=r"first = 1.5; it must be a whole number"):
        kind(Maker(), 1.5)


@pytest.mark.parametrize("kind", [UnknownRounds, UnknownDelay])
@pytest.mark.parametrize("first", [0, -2])
def test_a_first_guess_below_one_is_refused(kind: Any, first: int) -> None:
    with pytest.raises(InvalidInput, match=f"first = {first}; it must be a whole number, at least 1"):
        kind(Maker(), first)


@pytest.mark.parametrize("recipe", [ftpl_unknown_rounds, ftpl_unknown_delay])
def test_the_recipes_conform(recipe: Recipe) -> None:
    for check in learner_checks():
        check(recipe)
