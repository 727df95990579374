"""Mirror descent: what each algorithm promises of its measures, and the ladder from one algorithm to the next."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from worlds import all_policies, random_kernel, random_policies, seeds

from amdp import (
    BernsteinBox,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    Pairs,
    Radius,
    Segment,
    Unsolved,
    instances,
    losses,
    one_hot,
    values,
)
from amdp.algorithms import bounds
from amdp.algorithms.base import Learner
from amdp.algorithms.doubling import UnknownRounds
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.named import learner as recipe
from amdp.algorithms.occupancy.measures import MirrorDescent, TiltedMeasure, every_round, when_doubled
from amdp.algorithms.occupancy.recipes import delayed_uob_reps, o_reps, o_reps_full, uc_o_reps_bernstein, uob_reps
from amdp.algorithms.task import Task
from amdp.arrays import Floats
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.domains import Domain
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.projection.base import Projection, ProjectionOracle, Projector, projection

FAST = "newton"
SHAPE = (3, 3, 2)
NOWHERE = Segment(np.zeros(SHAPE[0], int), np.zeros(SHAPE[0], int))


def domain_of(shape: Shape = SHAPE, seed: int = 1, kind: str = "dense") -> MarkovPolicies:
    return MarkovPolicies(random_kernel(kind, shape, np.random.default_rng(seed)))


def narrowing(shape: Shape = SHAPE, rounds: int = 200, scale: float = 0.05) -> MarkovPolicies:
    return MarkovPolicies(BernsteinBox.vacuous(shape, Radius.jin_2020(shape, rounds, scale=scale)))


def started(learner: MirrorDescent, domain: Domain) -> TiltedMeasure:
    return learner.start(domain, np.random.default_rng(0))


def told(table: Floats) -> FullInformation:
    return FullInformation(NOWHERE, Weights(np.empty(0)), table)


def after(learner: MirrorDescent, distribution: TiltedMeasure, table: Floats) -> TiltedMeasure:
    """The state after one more round with full information."""
    return learner.learn(learner.observe(distribution, NOWHERE), told(table))


def walked(
    learner: MirrorDescent, domain: Domain, kernel: SingleKernel, tables: Floats, late: delays.Delays | None = None
) -> Iterator[TiltedMeasure]:
    """The states from which each round is played; the loop of `play`, with the states in sight."""
    streams = Streams.from_seed(1)
    distribution = learner.start(domain, streams.learner)
    arena = Episodic(kernel, domain.initial)
    when = late or delays.none(len(tables))
    waiting = {}
    for k in range(len(tables)):
        yield distribution
        segment = arena.play(distribution.draw(streams.learner), streams.arena)
        waiting[k] = (segment, learner.weigh(distribution, segment, streams.learner))
        distribution = learner.observe(distribution, segment)
        for j in when.arrivals(k):
            distribution = learner.learn(distribution, Bandit.reveal(tables[j], *waiting.pop(int(j))))


def tables_of(shape: Shape, rounds: int, seed: int = 3) -> Floats:
    return np.random.default_rng(seed).random((rounds, *shape))


def measures(states: Iterator[TiltedMeasure]) -> Floats:
    return np.array([distribution.projection.measure for distribution in states])


def policies(states: Iterator[TiltedMeasure]) -> Floats:
    return np.array([distribution.playing.policy for distribution in states])


# --- O-REPS -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse", "layered", "deterministic"])
def test_measures_of_a_run_are_occupancies_of_their_policies(kind: str) -> None:
    domain = domain_of(kind=kind)
    learner = MirrorDescent(0.3, ImportanceWeighting(), FAST)
    assert isinstance(domain.dynamics, SingleKernel)
    for distribution in walked(learner, domain, domain.dynamics, tables_of(SHAPE, 25)):
        mu, policy = distribution.projection.measure, distribution.playing.policy
        assert_allclose(mu.sum(axis=(1, 2)), 1.0, atol=1e-9)
        assert_allclose(mu, domain.dynamics.occupancy(policy[None], 0)[0], atol=1e-8)
        cost = np.random.default_rng(1).random(SHAPE)
        assert values(domain.dynamics, policy[None], cost[None])[0, 0, 0] == pytest.approx((mu * cost).sum())


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_no_feasible_direction_improves_the_update(seed: int) -> None:
    domain, rng = domain_of(seed=seed), np.random.default_rng(seed)
    learner = MirrorDescent(0.5, WholeTable(), FAST)
    before = after(learner, started(learner, domain), rng.random(SHAPE))
    table = 3 * rng.random(SHAPE)
    now, then = after(learner, before, table).projection, before.projection
    met = then.measure > 0
    slope = 0.5 * table[met] + now.log_measure[met] - then.log_measure[met]
    assert isinstance(domain.dynamics, Kernel)
    others = domain.dynamics.occupancy(random_policies(100, SHAPE, rng), 0)
    gains = (others - now.measure)[:, met] @ slope
    assert (gains >= -1e-7).all()


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_the_start_is_within_h_log_sa_of_every_policy(seed: int) -> None:
    shape = (2, 2, 2)
    domain = domain_of(shape, seed)
    start = started(MirrorDescent(0.1, WholeTable(), FAST), domain).projection
    assert isinstance(domain.dynamics, Kernel)
    for mu in domain.dynamics.occupancy(one_hot(all_policies(shape), 2), 0):
        met = mu > 0
        assert (mu[met] * (np.log(mu[met]) - start.log_measure[met])).sum() <= 2 * log(4) + 1e-9


def test_a_rate_of_zero_leaves_the_measure_as_it_is() -> None:
    learner = MirrorDescent(0.0, WholeTable(), FAST)
    distribution = started(learner, domain_of())
    moved = after(learner, distribution, np.random.default_rng(1).random(SHAPE))
    assert_allclose(moved.projection.measure, distribution.projection.measure, atol=1e-12)


def test_one_step_is_exp3() -> None:
    arms, rate = 4, 0.2
    domain = MarkovPolicies(Kernel(np.ones((1, 1, arms, 1))))
    learner = MirrorDescent(rate, ImportanceWeighting(), FAST)
    distribution, rng, sums = started(learner, domain), np.random.default_rng(2), np.zeros(arms)
    for _ in range(50):
        chances = np.exp(-rate * (sums - sums.min()))
        chances /= chances.sum()
        assert_allclose(distribution.draw(rng)[0, 0], chances, rtol=1e-7)
        arm, loss = int(rng.choice(arms, p=chances)), rng.random()
        segment = Segment(np.array([0]), np.array([arm]))
        weights = learner.weigh(distribution, segment, rng)
        sums[arm] += loss / chances[arm]
        distribution = learner.learn(learner.observe(distribution, segment), Bandit(segment, weights, np.array([loss])))


def test_o_reps_needs_a_kernel() -> None:
    with pytest.raises(InvalidInput, match="needs a kernel, not MarkovPolicies over BernsteinBox"):
        o_reps(Task(narrowing(), 10))


# --- UOB-REPS ---------------------------------------------------------------------------------------------------------


def test_the_first_episode_is_uniform_in_every_step() -> None:
    distribution = started(uob_reps(Task(narrowing(), 100, projection=FAST)), narrowing())
    q, (steps, states, actions) = distribution.projection.measure, SHAPE
    expected = np.full(q.shape, 1.0 / (states * actions * states))
    expected[0] = 0.0
    expected[0, 0] = 1.0 / (actions * states)
    expected[-1] = 0.0
    expected[-1, :, :, 0] = 1.0 / (states * actions)
    assert_allclose(q, expected, rtol=1e-7)
    assert_allclose(distribution.playing.policy, 0.5, rtol=1e-7)
    assert steps == 3


def test_a_box_that_holds_one_kernel_makes_it_o_reps_with_implicit_exploration() -> None:
    """From a prior `mu P` the distance over moves is the distance over pairs."""
    domain, tables = domain_of(), tables_of(SHAPE, 30)
    assert isinstance(domain.dynamics, Kernel)
    learner = MirrorDescent(0.2, ImplicitExploration(0.1), FAST, when_doubled)
    known = list(walked(learner, domain, domain.dynamics, tables))
    box = MarkovPolicies(BernsteinBox.exactly(domain.dynamics))
    mu = known[0].projection.log_measure
    with np.errstate(divide="ignore"):
        prior = mu[..., None] + np.log(domain.dynamics.p)
    prior[-1, ..., 0] = mu[-1]

    @dataclass(frozen=True)
    class FromPrior(MirrorDescent):
        def start(self, domain: Domain, rng: np.random.Generator) -> TiltedMeasure:
            return replace(super().start(domain, rng), prior=prior)

    boxed = walked(FromPrior(0.2, ImplicitExploration(0.1), FAST, when_doubled), box, domain.dynamics, tables)
    assert_allclose(policies(boxed), policies(iter(known)), atol=1e-6)


def visits_of(dynamics: object) -> Floats:
    assert isinstance(dynamics, BernsteinBox)
    assert dynamics.visits is not None
    counts: Floats = dynamics.visits.sum(axis=-1).astype(np.float64)
    return counts


def test_epochs_begin_when_a_count_doubles_and_not_otherwise() -> None:
    domain, world = narrowing(rounds=100), domain_of()
    learner = uob_reps(Task(domain, 100, projection=FAST))
    assert isinstance(world.dynamics, SingleKernel)
    counts, frozen, epochs = np.zeros(SHAPE), np.zeros(SHAPE), 0
    before: TiltedMeasure | None = None
    for distribution in walked(learner, domain, world.dynamics, tables_of(SHAPE, 100)):
        used = distribution.projector.domain.dynamics
        if before is not None:
            counts = visits_of(distribution.gathered)
            due = (counts >= np.maximum(1, 2 * frozen)).any()
            assert due == (used is not before.projector.domain.dynamics)
            frozen, epochs = (counts, epochs + 1) if due else (frozen, epochs)
        assert_array_equal(visits_of(used), frozen)
        before = distribution
    steps, states, actions = SHAPE
    assert 3 < epochs <= 1 + (steps - 1) * states * actions * (log(100, 2) + 1)


def test_a_new_box_is_that_of_the_counts_alone_and_the_measure_lies_in_it() -> None:
    domain, world = narrowing(), domain_of()
    learner = uob_reps(Task(domain, 200, projection=FAST))
    assert isinstance(world.dynamics, SingleKernel)
    for distribution in walked(learner, domain, world.dynamics, tables_of(SHAPE, 60)):
        used = distribution.projector.domain.dynamics
        assert isinstance(used, BernsteinBox)
        assert used.radius is not None
        assert used.visits is not None
        assert_array_equal(used.upper, BernsteinBox.from_counts(used.visits, used.radius).upper)
        q = distribution.projection.measure[:-1]
        pairs = q.sum(axis=-1, keepdims=True)
        assert (q <= used.upper[:-1] * pairs + 1e-9).all(), "never the old box in the round that changed it"
        assert (q >= used.lower[:-1] * pairs - 1e-9).all()


def test_a_box_without_a_radius_is_never_refreshed() -> None:
    box = BernsteinBox.exactly(domain_of().dynamics)  # type: ignore[arg-type]
    assert when_doubled(box, box) is box
    assert every_round(box, box) is box


def test_exact_transitions_make_uc_o_reps_o_reps() -> None:
    """From the same start; over a box of one kernel only the start differs."""
    domain = domain_of()
    assert isinstance(domain.dynamics, Kernel)
    learner = uc_o_reps_bernstein(Task(domain, 100, projection=FAST))
    full = MirrorDescent(learner.rate, WholeTable(), FAST)
    boxed = started(learner, MarkovPolicies(BernsteinBox.exactly(domain.dynamics)))
    q = boxed.projection
    with np.errstate(divide="ignore"):
        pairs = np.log(q.measure.sum(axis=-1))
    known = replace(started(full, domain), prior=pairs)
    for table in tables_of(SHAPE, 10):
        assert_allclose(boxed.playing.policy, known.playing.policy, atol=1e-6)
        boxed, known = after(learner, boxed, table), after(full, known, table)


# --- delays -----------------------------------------------------------------------------------------------------------


def test_without_delay_delayed_uob_reps_is_uob_reps_with_every_box() -> None:
    domain, world = narrowing(), domain_of()
    assert isinstance(world.dynamics, SingleKernel)
    delayed = delayed_uob_reps(Task(domain, 200, projection=FAST))
    plain = MirrorDescent(delayed.rate, ImplicitExploration(delayed.rate), FAST, every_round)
    runs = [measures(walked(each, domain, world.dynamics, tables_of(SHAPE, 40))) for each in (delayed, plain)]
    assert_array_equal(runs[0], runs[1])


def test_with_delay_the_round_of_arrival_is_asked_for_its_chances() -> None:
    """Against the formula, with the policies and boxes of a run kept aside."""
    domain, world = narrowing(), domain_of()
    assert isinstance(world.dynamics, SingleKernel)
    learner, gamma = MirrorDescent(0.3, DelayAdapted(0.1), FAST), 0.1
    tables, late = tables_of(SHAPE, 12), delays.fixed(12, 3)
    states = list(walked(learner, domain, world.dynamics, tables, late))
    streams = Streams.from_seed(1)
    arena = Episodic(world.dynamics)
    segments = [arena.play(distribution.draw(streams.learner), streams.arena) for distribution in states]
    for k in range(3, 11):
        j = k - 3
        places = segments[j].places
        chances = [
            states[i].projector.domain.dynamics.greatest_visits(states[i].playing.policy[None], 0, Pairs(*places))
            for i in (j, k)
        ]
        expected = np.zeros(SHAPE)
        expected[places] = tables[j][places] / (np.maximum(*chances)[0] + gamma)
        assert_allclose(states[k + 1].total, expected, rtol=1e-12)


def test_the_order_of_arrivals_does_not_matter() -> None:
    learner = MirrorDescent(0.3, ImplicitExploration(0.1), FAST)
    distribution, rng = started(learner, narrowing()), np.random.default_rng(4)
    feedbacks = []
    for _ in range(5):
        segment = Segment(np.array([0, *rng.integers(3, size=2)]), rng.integers(2, size=3))
        feedbacks.append(Bandit(segment, learner.weigh(distribution, segment, rng), rng.random(3)))
        distribution = learner.observe(distribution, segment)
    forwards = backwards = distribution
    for one, other in zip(feedbacks, reversed(feedbacks), strict=True):
        forwards, backwards = learner.learn(forwards, one), learner.learn(backwards, other)
    assert_allclose(forwards.projection.measure, backwards.projection.measure, atol=1e-8)


def test_a_learner_that_starts_again_keeps_all_counts() -> None:
    """Also those that no epoch has taken up."""
    domain, rng = narrowing(), np.random.default_rng(5)
    restarting = UnknownRounds(lambda told, guess: uob_reps(Task(told, guess, projection=FAST)))
    life = restarting.start(domain, rng)
    for _ in range(11):
        life = restarting.observe(life, Segment(np.array([0, *rng.integers(3, size=2)]), rng.integers(2, size=3)))
    assert life.number == 3
    assert visits_of(life.domain.dynamics).sum() == 22


# --- when it projects, and what if it cannot --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Watched:
    """A projection oracle that counts, and fails when it is told to."""

    inner: ProjectionOracle = field(default_factory=lambda: projection(FAST))
    answered: list[Projection] = field(default_factory=list)
    fails: list[bool] = field(default_factory=list)  # one entry makes it fail until it is taken away
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return self.inner.supports(domain)

    def bind(self, domain: Domain) -> Projector:
        return _WatchedProjector(self, domain)


class _WatchedProjector(Projector):
    oracle: Watched

    def __init__(self, oracle: Watched, domain: Domain) -> None:
        super().__init__(oracle, domain)
        self._inner = oracle.inner.bind(domain)

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        if self.oracle.fails:
            raise Unsolved("told to fail")
        found = self._inner.project(log_point, near)
        self.oracle.answered.append(found)
        return found


def test_feedback_of_one_round_is_projected_once_and_only_when_a_policy_is_drawn() -> None:
    oracle, tables = Watched(), tables_of(SHAPE, 12)
    domain = domain_of()
    assert isinstance(domain.dynamics, SingleKernel)
    learner = MirrorDescent(0.2, ImportanceWeighting(), oracle)
    late = delays.recorded(np.array([3, 2, 1, 0, *[9] * 8]))  # four at once after round 3, then nothing
    states = list(walked(learner, domain, domain.dynamics, tables, late))
    assert len(oracle.answered) == 2, "the start, and the four together"
    assert_array_equal(states[3].playing.policy, states[0].playing.policy)
    assert np.abs(states[4].playing.policy - states[0].playing.policy).max() > 1e-3
    assert_array_equal(states[11].playing.policy, states[4].playing.policy)


def test_a_narrower_box_is_projected_onto_even_if_nothing_arrived() -> None:
    oracle = Watched()
    domain, world = narrowing(scale=0.01), domain_of()
    assert isinstance(world.dynamics, SingleKernel)
    never = delays.fixed(10, 100)
    list(walked(MirrorDescent(0.2, ImportanceWeighting(), oracle), domain, world.dynamics, tables_of(SHAPE, 10), never))
    assert len(oracle.answered) == 10


def test_a_projection_that_fails_leaves_the_state_as_it_was() -> None:
    oracle = Watched()
    learner = MirrorDescent(0.2, WholeTable(), oracle)
    distribution = after(learner, started(learner, domain_of()), np.random.default_rng(1).random(SHAPE))
    oracle.fails.append(True)
    before = {name: np.copy(getattr(distribution, name)) for name in ("prior", "total")}
    for attempt in (
        lambda: distribution.draw(np.random.default_rng(0)),
        lambda: learner.observe(distribution, NOWHERE),
    ):
        with pytest.raises(Unsolved):
            attempt()
    for name, array in before.items():
        assert_array_equal(getattr(distribution, name), array)
    oracle.fails.clear()
    fresh = MirrorDescent(0.2, WholeTable(), FAST)
    expected = after(fresh, started(fresh, domain_of()), np.random.default_rng(1).random(SHAPE))
    assert_array_equal(distribution.draw(np.random.default_rng(0)), expected.draw(np.random.default_rng(0)))


def test_a_run_keeps_its_rounds_up_to_the_failure() -> None:
    oracle = Watched()
    domain = domain_of()
    assert isinstance(domain.dynamics, SingleKernel)
    game = ArenaGame(Episodic(domain.dynamics), FixedLosses(tables_of(SHAPE, 20)))
    rounds: list[Round] = []

    def playing() -> None:
        for one in play_rounds(game, MirrorDescent(0.2, ImportanceWeighting(), oracle), domain, Streams.from_seed(1)):
            rounds.append(one)
            oracle.fails.extend([True] if one.k == 6 else [])

    with pytest.raises(Unsolved):
        playing()
    assert [one.k for one in rounds] == list(range(7))


def test_learning_makes_a_new_state() -> None:
    learner = MirrorDescent(0.2, WholeTable(), FAST)
    distribution = started(learner, domain_of())
    measure_before = distribution.projection.measure.copy()
    after(learner, distribution, np.ones(SHAPE))
    assert (distribution.total == 0).all()
    assert distribution.played is None
    assert_array_equal(distribution.projection.measure, measure_before)


# --- whole games ------------------------------------------------------------------------------------------------------


def tiny_game(rounds: int, learner: Learner[Any]) -> tuple[ArenaGame, instances.Instance]:
    world = instances.build("tiny")
    adversary = losses.named("bernoulli", world.shape, rounds, 1, world.costs)
    return ArenaGame(Episodic(world.kernel, world.initial), adversary, None, learner.feedback), world


@pytest.mark.parametrize("rounds", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_newton_and_cvxpy_play_the_same_game(rounds: int) -> None:
    domain = instances.build("tiny").domain
    played = []
    for name in ("newton", "cvxpy"):
        learner = o_reps(Task(domain, rounds, projection=name))
        game, _ = tiny_game(rounds, learner)
        played.append(list(play_rounds(game, learner, domain, Streams.from_seed(1))))
    for one, other in zip(*played, strict=True):
        assert_allclose(one.policy, other.policy, atol=1e-4)
        assert_array_equal(one.segment.states, other.segment.states)


@pytest.mark.parametrize("name", ["o-reps", "o-reps-full"])
def test_regret_stays_below_its_bound(name: str) -> None:
    rounds = 2500  # enough that a learner which stays at its start exceeds it
    domain = instances.build("tiny").domain
    learner = recipe(name, domain, rounds)
    assert isinstance(learner, MirrorDescent)
    game, _ = tiny_game(rounds, learner)
    regret = measure(game, play_rounds(game, learner, domain, Streams.from_seed(1)), checkpoints=[rounds])
    bound = learner.bound(domain, rounds)
    assert bound is not None
    assert regret.low[-1] < bound.total
    idle = replace(learner, rate=1e-12)
    lazy = measure(game, play_rounds(game, idle, domain, Streams.from_seed(1)), checkpoints=[rounds])
    assert lazy.low[-1] > bound.total


@pytest.mark.parametrize("name", ["uob-reps", "uc-o-reps-bernstein", "delayed-uob-reps", "delayed-uob-ftrl"])
def test_learners_of_unknown_transitions_do_better_than_their_start(name: str) -> None:
    rounds = 400
    world = instances.build("tiny")
    domain = MarkovPolicies(BernsteinBox.vacuous(world.shape, Radius.jin_2020(world.shape, rounds, scale=0.03)))
    regrets = []
    for multiplier in (0.0, 4.0):
        learner = recipe(name, domain, rounds, multiplier=multiplier)
        game, _ = tiny_game(rounds, learner)
        run = play_rounds(game, learner, domain, Streams.from_seed(1))
        regrets.append(measure(game, run, checkpoints=[rounds]).low[-1])
    assert regrets[1] < 0.7 * regrets[0]


@pytest.mark.slow
def test_regret_grows_like_the_square_root_of_the_rounds() -> None:
    domain = instances.build("tiny").domain
    counts, means = [500, 2000, 8000], []
    for rounds in counts:
        learner = o_reps(Task(domain, rounds))
        game, _ = tiny_game(rounds, learner)
        runs = [play_rounds(game, learner, domain, Streams.from_seed(seed)) for seed in range(4)]
        means.append(np.mean([measure(game, run, checkpoints=[rounds]).low[-1] for run in runs]))
    slope = np.polyfit(np.log(counts), np.log(means), 1)[0]
    assert 0.35 < slope < 0.65


# --- theory -----------------------------------------------------------------------------------------------------------


def test_the_tuned_rates_give_the_published_bounds() -> None:
    domain, (steps, states, actions), rounds = domain_of(), SHAPE, 1000
    pairs = states * actions
    full, bandit = o_reps_full(Task(domain, rounds)), o_reps(Task(domain, rounds))
    for learner, published in (
        (full, 2 * steps * sqrt(rounds * log(pairs))),
        (bandit, 2 * steps * sqrt(pairs * rounds * log(pairs))),
    ):
        bound = learner.bound(domain, rounds)
        assert bound is not None
        assert bound.total == pytest.approx(published)


def test_rates_are_those_of_the_formulas() -> None:
    box, rounds, late = narrowing(), 1000, 5000
    steps, states, actions = SHAPE
    pairs = states * actions
    uob = uob_reps(Task(box, rounds), delta=0.1)
    assert uob.rate == pytest.approx(sqrt(log(steps**2 * pairs / 0.1) / (pairs * rounds)))
    assert uob.estimator == ImplicitExploration(uob.rate)
    assert uc_o_reps_bernstein(Task(box, rounds)).rate == pytest.approx(sqrt(log(18) / rounds))
    doubt = log(steps * pairs * rounds)
    for delay, worse in ((0, pairs * rounds), (late, sqrt(steps * pairs) * late)):
        delayed = delayed_uob_reps(Task(box, rounds, delay))
        assert delayed.rate == pytest.approx(sqrt(doubt / worse))
        assert delayed.estimator == DelayAdapted(delayed.rate)
    assert delayed_uob_reps(Task(box, rounds, late, multiplier=3.0)).rate == pytest.approx(3 * delayed.rate)


def test_no_bound_is_stated_where_none_is_known() -> None:
    box, known = narrowing(), domain_of()
    assert uob_reps(Task(box, 100)).bound(box, 100) is None
    assert o_reps(Task(known, 100)).bound(known, 100, waited=5) is None
    assert MirrorDescent(0.1, DelayAdapted(0.1)).bound(known, 100) is None
    biased = MirrorDescent(0.1, ImplicitExploration(0.2)).bound(known, 100)
    assert biased is not None
    assert biased.bias == pytest.approx(0.2 * 18 * 100)


def test_orders_grow_as_they_should() -> None:
    for order in (bounds.delayed_ftpl_order, bounds.delayed_uob_reps_order):
        alone = order(SHAPE, 400, 0)
        assert alone == pytest.approx(9 * 3 * sqrt(2 * 400))
        assert order(SHAPE, 400, 400) - alone == pytest.approx((order(SHAPE, 400, 1600) - alone) / 2)


@pytest.mark.parametrize("rate", [-1.0, np.nan, np.inf])
def test_a_rate_that_means_nothing_is_refused(rate: float) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        MirrorDescent(rate, WholeTable())


@pytest.mark.parametrize(("rounds", "delta", "message"), [(0, None, "rounds"), (10, 0.0, "delta"), (10, 2.0, "delta")])
def test_terms_that_mean_nothing_are_refused(rounds: int, delta: float | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        uob_reps(Task(narrowing(), rounds), delta=delta)
    with pytest.raises(InvalidInput, match="total_delay"):
        delayed_uob_reps(Task(narrowing(), 10, -1))


def test_an_unknown_projection_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidInput, match="no 'simplex' in"):
        started(MirrorDescent(0.1, WholeTable(), "simplex"), domain_of())
