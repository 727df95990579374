"""The leader with Tsallis entropy and log-barrier, and mirror descent with implicit exploration."""

from math import log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose

import amdp
from amdp import InvalidInput, LogBarrier, MarkovPolicies, Regularizer, Segment, Tsallis, instances, losses
from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.estimators.importance_weighting import FallingExploration, ImplicitExploration
from amdp.algorithms.named import learner as named
from amdp.algorithms.occupancy.measures import MirrorDescent
from amdp.algorithms.occupancy.scheduled import HybridSchedule, ScheduledLeader, ScheduledMeasure
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams

SHAPE = (3, 3, 2)


def domain_of(seed: int = 1) -> MarkovPolicies:
    kernel = amdp.Kernel(np.random.default_rng(seed).dirichlet(np.ones(3), size=SHAPE))
    return MarkovPolicies(kernel, 1)


def told(distribution: ScheduledMeasure, learner: ScheduledLeader, seed: int) -> ScheduledMeasure:
    """After a round with losses of 1 at what was met."""
    rng = np.random.default_rng(seed)
    kernel = distribution.domain.dynamics
    segment = kernel.walk(distribution.draw(rng), 1, rng.random((SHAPE[0], 2)))  # type: ignore[attr-defined]
    weights = learner.weigh(distribution, segment, rng)
    return learner.learn(learner.observe(distribution, segment), Bandit(segment, weights, np.ones(SHAPE[0])))


def test_each_round_plays_the_minimizer_of_its_own_regularizer() -> None:
    domain, learner = domain_of(), ScheduledLeader(HybridSchedule(0.5, 0.2))
    distribution = learner.start(domain, np.random.default_rng(0))
    for k in range(1, 6):
        regularizer = Tsallis(sqrt(k) / 0.5) + LogBarrier(0.2)
        expected = amdp.minimize_regularized("cvxpy", domain, distribution.total, regularizer)
        assert_allclose(distribution.minimizer.measure, expected.measure, atol=1e-6)
        # A leader that forgets to let its regularizer grow plays something else.
        if k > 1:
            first = amdp.minimize_regularized("cvxpy", domain, distribution.total, Tsallis(2.0) + LogBarrier(0.2))
            assert np.abs(first.measure - expected.measure).max() > 1e-3
        distribution = told(distribution, learner, k)


def test_its_weights_are_one_over_the_masses_of_its_measure() -> None:
    domain, learner, rng = domain_of(), ScheduledLeader(HybridSchedule(1.0, 0.1)), np.random.default_rng(0)
    distribution = learner.start(domain, rng)
    segment = Segment(np.array([1, 0, 2]), np.array([0, 1, 1]))
    weights = learner.weigh(distribution, segment, rng)
    assert_allclose(weights.values, 1.0 / distribution.minimizer.measure[segment.places])


def test_the_measure_stands_while_nothing_arrives() -> None:
    domain, learner, rng = domain_of(), ScheduledLeader(HybridSchedule(1.0, 0.1)), np.random.default_rng(0)
    first = learner.start(domain, rng)
    waiting = learner.observe(first, Segment(np.array([1, 0, 2]), np.array([0, 1, 1])))
    assert waiting.minimizer is first.minimizer
    assert waiting.arrived == 0


def test_both_methods_play_alike_with_delays() -> None:
    domain = domain_of()
    tables = losses.uniform(20, SHAPE, 3)
    policies = []
    for method in ("newton", "cvxpy"):
        game = ArenaGame(Episodic(domain.dynamics, 1), tables, delays.fixed(20, 3))  # type: ignore[arg-type]
        player = ScheduledLeader(HybridSchedule(1.0, 0.1), method=method)
        policies.append([one.policy for one in play_rounds(game, player, domain, Streams.from_seed(1))])
    assert_allclose(policies[0], policies[1], atol=1e-4)


def test_any_schedule_will_do() -> None:
    class Steady:
        def at(self, k: int) -> Regularizer:
            return Tsallis(3.0)

    learner = ScheduledLeader(Steady())
    distribution = told(learner.start(domain_of(), np.random.default_rng(0)), learner, 1)
    assert distribution.minimizer.gap < 1e-12
    assert learner.rate is None
    assert learner.bound(domain_of(), 100) is None


def test_the_parameters_of_the_paper() -> None:
    game = amdp.Game("tiny", rounds=100)
    steps = game.world.shape[0]
    assert amdp.settings(game, "bobw") == {"rate": 1.0, "barrier": 128.0 * steps**4}
    assert amdp.settings(game, "bobw", multiplier=3.0, barrier=2.0) == {"rate": 3.0, "barrier": 2.0}
    for wrong in ({"barrier": -1.0}, {"barrier": np.inf}, {"rate": 0.0}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            amdp.settings(game, "bobw", **wrong)
    with pytest.raises(InvalidInput, match="kernel"):
        amdp.play(amdp.Game("tiny", rounds=5, unknown=True), "bobw")


def test_its_bound_has_the_terms_of_its_proof() -> None:
    steps, states, actions = SHAPE
    bound = ScheduledLeader(HybridSchedule(2.0, 0.3)).bound(domain_of(), 400)
    assert bound is not None
    root = steps * sqrt(states * actions * 400)
    assert bound.penalty == pytest.approx(root / 2.0 + steps + 0.3 * steps * states * actions * log(400))
    assert bound.stability == pytest.approx(8.0 * root)
    assert ScheduledLeader(HybridSchedule(2.0, 0.3)).bound(domain_of(), 400, waited=1) is None


@pytest.mark.parametrize("adversary", ["bernoulli", "swap"])
def test_regret_stays_far_below_the_bound_and_uniform_play(adversary: str) -> None:
    """Regrets are below a tenth of the bound and a fifth of uniform play's: an alarm is a defect."""
    game = amdp.Game("tiny", losses=adversary, rounds=600)
    run, uniform = amdp.play(game, "bobw", seed=1, barrier=0.1), amdp.play(game, "uniform", seed=1)
    assert run.bound is not None
    assert run.regret[-1] < 0.5 * run.bound
    if adversary == "bernoulli":
        assert run.regret[-1] < 0.5 * uniform.regret[-1]


def test_stochastic_losses_with_a_gap_cost_less_and_less() -> None:
    """A bandit of two arms, 0.2 and 0.8: the second half of 2000 rounds costs 0.14 of the first, over eight seeds.

    Regret that grows as `sqrt(K)` would make it 0.41, and a log-barrier that outweighs the losses makes it 0.44.
    """
    world = instances.Instance("two arms", amdp.Kernel.homogeneous(np.ones((1, 2, 1)), 1), np.array([[[0.2, 0.8]]]))
    game = amdp.Game(world, losses="bernoulli", rounds=2000)
    halves = np.zeros(2)
    for seed in range(8):
        policies = np.array([one.policy[0, 0, 1] for one in amdp.rounds(game, "bobw", seed=seed, barrier=0.1)])
        halves += 0.6 * policies.reshape(2, -1).sum(axis=1)
    assert halves[1] < 0.33 * halves[0]


def test_implicit_exploration_over_a_kernel() -> None:
    domain = domain_of()
    steps, states, actions = SHAPE
    player = named("o-reps-ix", domain, 1000, delta=0.05)
    assert isinstance(player, MirrorDescent)
    theory = sqrt(log(2 * steps * (states * actions) ** 2 / 0.05) / (states * actions * 1000))
    assert player.rate == pytest.approx(theory)
    assert isinstance(player.estimator, ImplicitExploration)
    assert player.estimator.gamma == pytest.approx(theory / 2)
    with pytest.raises(InvalidInput, match="delta"):
        named("o-reps-ix", domain, 1000, delta=2.0)


def test_the_promise_of_implicit_exploration_holds_in_every_one_of_many_games() -> None:
    """The losses met have the chance 0.95 to stay within 379; the largest of twenty regrets, in expectation, is 43."""
    rounds, delta = 300, 0.05
    game = amdp.Game(instances.random_dense(2, 2, 2, np.random.default_rng(5)), losses="bernoulli", rounds=rounds)
    steps, states, actions = game.world.shape
    doubt = log(2 * steps * (states * actions) ** 2 / delta)
    promise = 2 * steps * sqrt(states * actions * rounds * doubt) + steps * log(2 * steps / delta)
    worst = max(amdp.play(game, "o-reps-ix", seed=seed, delta=delta).regret[-1] for seed in range(20))
    assert worst < 0.3 * promise


def test_exploration_that_falls_needs_a_rate() -> None:
    falling, distribution = FallingExploration(0.5), ScheduledLeader(HybridSchedule(1.0, 0.1))
    assert falling.at(0.2) == ImplicitExploration(0.1)
    with pytest.raises(InvalidInput, match="rate"):
        falling.weigh(distribution, Segment(np.zeros(3, int), np.zeros(3, int)), np.random.default_rng(0))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="ratio"):
        FallingExploration(-1.0)
