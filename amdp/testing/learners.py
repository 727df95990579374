"""Checks of learners, by short games: episodes with known and with unknown transitions, and streams without episodes.

A learner turns a distribution over policies into the next one: `start`, then in each round `draw`, `weigh` and
`observe`, and `learn` when the feedback of a round arrives.
"""

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.task import EpochSetup, Recipe, Task
from amdp.arrays import Policies
from amdp.errors import AmdpError
from amdp.game import delays
from amdp.game.arenas import Arena, Continuing, Episodic, Stepwise
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.instances import waiting_ring
from amdp.losses import uniform
from amdp.model.chains import entrance
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
from amdp.model.l1_ball import L1Ball
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel
from amdp.oracles.base import describe
from amdp.testing.samples import ROUNDING_TOLERANCE, SHAPE, sample_kernel

LearnerCheck = Callable[[Recipe], None]

EPISODES, STREAM_STEPS = 12, 240  # of the sample games


def learner_checks() -> list[LearnerCheck]:
    """Every check of a learner; call each with its recipe, the function that makes it from a `Task`."""
    return [
        check_it_plays_policies,
        check_seeds_reproduce_a_run,
        check_late_feedback_is_taken,
        check_distributions_are_values,
        check_weights_fit_the_segment,
        check_learners_travel,
    ]


def check_it_plays_policies(recipe: Recipe) -> None:
    """The learner names its feedback; its policies, `[h, s, a]` or `[s, a]`, have `pi >= 0` and `sum_a pi = 1`."""
    for sample in _samples(recipe):
        assert sample.learner.feedback in (Bandit, FullInformation), f"{sample}: feedback is {sample.learner.feedback}"
        rng = Streams.from_seed(2).learner
        _require_policy(sample, sample.learner.start(sample.domain, rng).draw(rng))  # the arena trusts its shape
        for policy in _policies(sample):
            _require_policy(sample, policy)


def check_seeds_reproduce_a_run(recipe: Recipe) -> None:
    """The same seed gives the same policies, to the bit: all randomness comes from the generator that is handed in."""
    for sample, again in zip(_samples(recipe), _samples(recipe), strict=True):
        first = _policies(sample)
        assert np.array_equal(first, _policies(sample)), f"{sample}: a second run of one seed went another way"
        assert np.array_equal(first, _policies(again)), f"{sample}: made anew, it went another way"


def check_late_feedback_is_taken(recipe: Recipe) -> None:
    """The learner plays on when feedback is delayed, out of order, several rounds at once, or never arrives."""
    late = delays.recorded([3, 0, 1, 0, EPISODES, 5, 0, 2, 1, 0, 0, 0])
    for sample in _samples(recipe):
        if isinstance(sample.game.arena, Episodic):
            delayed = replace(sample, game=replace(sample.game, delays=late))
            assert len(_policies(delayed)) == EPISODES, f"{sample}: it stopped"


def check_distributions_are_values(recipe: Recipe) -> None:
    """`weigh`, `observe` and `learn` change neither an earlier distribution nor the losses.

    With a copy of one generator, the earlier distribution draws the same policy before and after.
    """
    for sample in _samples(recipe):
        rng = Streams.from_seed(4).learner
        distribution = sample.learner.start(sample.domain, rng)
        for k in range(3):
            policy = distribution.draw(deepcopy(rng))
            segment = _segment(sample, policy)
            weights = sample.learner.weigh(distribution, segment, deepcopy(rng))
            losses = sample.game.table(k)
            feedback = sample.game.feedback.reveal(losses, segment, weights)
            updated = sample.learner.learn(sample.learner.observe(distribution, segment), feedback)
            unchanged = np.array_equal(distribution.draw(deepcopy(rng)), policy)
            assert unchanged, f"{sample}: learning changed what was there"
            assert np.array_equal(sample.game.table(k), losses), f"{sample}: it wrote to the losses"
            distribution = updated


def check_weights_fit_the_segment(recipe: Recipe) -> None:
    """`weigh` gives a finite weight for each step of the segment, or none; `observe` keeps the domain's shape."""
    for sample in _samples(recipe):
        rng = Streams.from_seed(5).learner
        distribution = sample.learner.start(sample.domain, rng)
        segment = _segment(sample, distribution.draw(rng))
        weights = sample.learner.weigh(distribution, segment, rng)
        assert isinstance(weights, Weights), f"{sample}: weigh gave {type(weights).__name__}, not Weights"
        assert len(weights.values) in (0, len(segment.states)), f"{sample}: {len(weights.values)} weights"
        assert np.isfinite(weights.values).all(), f"{sample}: a weight that is not finite"
        assert weights.trials >= 0, f"{sample}: {weights.trials} trials"
        observed = sample.learner.observe(distribution, segment).domain
        assert isinstance(observed, type(sample.domain)), f"{sample}: observe left {describe(observed)}"
        assert observed.shape == sample.domain.shape, f"{sample}: observe left a domain of shape {observed.shape}"


def check_learners_travel(recipe: Recipe) -> None:
    """A pickled learner plays the policies of the original, to the bit: runs go to other processes."""
    for sample in _samples(recipe):
        copy = replace(sample, learner=pickle.loads(pickle.dumps(sample.learner)))
        assert np.array_equal(_policies(copy), _policies(sample)), f"{sample}: pickling changed it"


@dataclass(frozen=True, eq=False)
class _Sample:
    """A short game, the learner that a recipe makes for it, and what the learner knows of the dynamics."""

    game: ArenaGame
    learner: Learner[Any]
    domain: Domain

    def __str__(self) -> str:
        return f"{type(self.learner).__name__} on {describe(self.domain)}"


def _samples(recipe: Recipe) -> list[_Sample]:
    """The sample games that the learner accepts; at least one."""
    kernel = sample_kernel()
    box = BernsteinBox.vacuous(SHAPE, Radius.paper(SHAPE, EPISODES, scale=0.05))
    communicating = waiting_ring(STREAM_STEPS, 3).kernel
    ergodic = Kernel.homogeneous(kernel.p[0], STREAM_STEPS)
    entered = entrance(communicating, np.full(3, 1 / 3))
    candidates = [
        _sample(recipe, Episodic(kernel), MarkovPolicies(kernel), EPISODES),
        _sample(recipe, Episodic(kernel), MarkovPolicies(box), EPISODES),
        _sample(recipe, Episodic(kernel), MarkovPolicies(L1Ball.vacuous(SHAPE, EPISODES)), EPISODES),
        _sample(recipe, Stepwise(communicating), StationaryPolicies(communicating), STREAM_STEPS),
        _sample(recipe, Stepwise(ergodic), StationaryPolicies(ergodic), STREAM_STEPS),
        _sample(recipe, Stepwise(entered, 3), StationaryPolicies(entered, 3), STREAM_STEPS),
    ]
    accepted = [sample for sample in candidates if sample]
    assert accepted, "the recipe refuses all sample games"
    return accepted


def _sample(recipe: Recipe, arena: Arena, domain: Domain, rounds: int) -> _Sample | None:
    """The game and its learner; None if the recipe or the learner refuses the domain."""
    try:
        learner = recipe(Task(domain, rounds))
        if isinstance(learner, EpochSetup):
            arena, learner = Continuing(learner.entry, learner.length), learner.learner
        learner.start(domain, Streams.from_seed(1).learner)
    except AmdpError:
        return None
    shape = domain.shape if isinstance(domain, MarkovPolicies) else (1, *domain.shape[1:])
    return _Sample(ArenaGame(arena, uniform(rounds, shape, 1), feedback=learner.feedback), learner, domain)


def _require_policy(sample: _Sample, policy: Policies) -> None:
    shape = sample.domain.shape if isinstance(sample.domain, MarkovPolicies) else sample.domain.shape[1:]
    assert policy.shape == shape, f"{sample}: a policy of shape {policy.shape}; it must be {shape}"
    assert np.isfinite(policy).all(), f"{sample}: a policy with chances that are not finite"
    assert (policy >= 0.0).all(), f"{sample}: a policy with negative chances"
    normalized = np.allclose(policy.sum(axis=-1), 1.0, rtol=0, atol=ROUNDING_TOLERANCE)
    assert normalized, f"{sample}: chances do not sum to 1"


def _policies(sample: _Sample) -> Policies:
    """The policies `[k, ...]` of the first rounds of a run."""
    rounds = min(sample.game.rounds, EPISODES)
    played = play_rounds(sample.game, sample.learner, sample.domain, Streams.from_seed(3), rounds)
    return np.stack([round_played.policy for round_played in played])


def _segment(sample: _Sample, policy: Policies) -> Segment:
    """A path of the policy through one round."""
    return sample.game.arena.visit(sample.game.arena.begin(), policy, Streams.from_seed(6).arena).segment
