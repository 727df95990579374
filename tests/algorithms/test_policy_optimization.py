"""Policy optimization: each algorithm against its pseudo-code in plain loops, and the ladder between them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from plain_policies import plain_costs_to_go, plain_reach, plain_softmax, plain_visits
from typer.testing import CliRunner
from worlds import box_around, random_kernel, seeds

from amdp import (
    BernsteinBox,
    InvalidInput,
    Kernel,
    MarkovPolicies,
    Radius,
    Segment,
    StationaryPolicies,
    instances,
    losses,
    registry,
)
from amdp.algorithms import bounds
from amdp.algorithms.doubling import UnknownDelay, UnknownRounds
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, FullInformation, Weights
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.named import learner as named_learner
from amdp.algorithms.occupancy.measures import Refresh, every_round, when_doubled
from amdp.algorithms.policy_optimization.learners import (
    Critic,
    DilatedBonus,
    Evaluation,
    KeptWeights,
    LocalWeights,
    LossToGo,
    PolicyOptimization,
)
from amdp.algorithms.policy_optimization.recipes import delayed_oppo, delayed_oppo_full, dilated_bonus, o_ssp, pomd
from amdp.algorithms.rates import as_rate
from amdp.algorithms.task import Task
from amdp.arrays import Floats
from amdp.cli import app
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.domains import Domain
from amdp.model.l1_ball import L1Ball
from amdp.model.segments import Shape

SHAPE = (3, 3, 2)
NAMES = ("pomd", "dilated-bonus", "delayed-oppo", "delayed-oppo-full", "o-ssp")
BOXED = NAMES[:-1]


def kernel_of(shape: Shape = SHAPE, seed: int = 1) -> Kernel:
    return random_kernel("dense", shape, np.random.default_rng(seed)).dense()


def narrowing(shape: Shape = SHAPE, rounds: int = 200, scale: float = 0.05) -> MarkovPolicies:
    return MarkovPolicies(BernsteinBox.vacuous(shape, Radius.luo_2021(shape, rounds, scale=scale)))


def recipe(name: str, domain: Domain, rounds: int, total_delay: int = 0, multiplier: float = 1.0) -> PolicyOptimization:
    learner = named_learner(name, domain, rounds, total_delay, multiplier=multiplier)
    assert isinstance(learner, PolicyOptimization)
    return learner


def tables_of(shape: Shape, rounds: int, seed: int = 3) -> Floats:
    return np.random.default_rng(seed).random((rounds, *shape))


def some_delays(rounds: int) -> Delays:
    """Now and then several at once, and out of order."""
    return delays.recorded(np.random.default_rng(8).integers(0, 5, size=rounds))


def walked(
    learner: PolicyOptimization, domain: Domain, kernel: Kernel, tables: Floats, late: Delays | None = None
) -> Iterator[LocalWeights]:
    """The states from which each round is played; the loop of `play`, with the states in sight."""
    streams = Streams.from_seed(1)
    distribution = learner.start(domain, streams.learner)
    arena, when = Episodic(kernel, domain.initial), late or delays.none(len(tables))
    waiting, kind = {}, cast("type[Bandit]", learner.feedback)
    for k in range(len(tables)):
        yield distribution
        segment = arena.play(distribution.draw(streams.learner), streams.arena)
        waiting[k] = (segment, learner.weigh(distribution, segment, streams.learner))
        distribution = learner.observe(distribution, segment)
        for j in when.arrivals(k):
            distribution = learner.learn(distribution, kind.reveal(tables[j], *waiting.pop(int(j))))


def policies(states: Iterator[LocalWeights]) -> Floats:
    return np.array([distribution.playing.policy for distribution in states])


@dataclass
class Plain:
    """A round of each algorithm, from its pseudo-code: keep what must be kept, and later add to the total."""

    rate: float
    gamma: float
    box: Any
    exploration: float = 0.0
    epochs: bool = False

    def run(self, judge: "Judge", kernel: Kernel, tables: Floats, late: Delays | None = None) -> Floats:
        streams, when = Streams.from_seed(1), late or delays.none(len(tables))
        total, kept, played = np.zeros(kernel.shape), {}, []
        for k in range(len(tables)):
            pi = (1 - self.exploration) * plain_softmax(-self.rate * total) + self.exploration / kernel.shape[2]
            played.append(pi)
            segment = kernel.walk(pi, 0, streams.arena.random((kernel.shape[0], 2)))
            kept[k] = judge(self, pi, segment, tables[k])
            self.see(segment)
            total = total + sum(kept[int(j)](self.box) for j in when.arrivals(k))
        return np.array(played)

    def see(self, segment: Segment) -> None:
        """Narrow the box: every round, or when some count has doubled."""
        if not isinstance(self.box, BernsteinBox):
            return
        if not self.epochs:
            self.box = self.box.narrow(segment)
            return
        assert self.box.radius is not None
        self.counts = getattr(self, "counts", np.zeros(self.box.lower.shape, int))
        np.add.at(self.counts, (*(axis[:-1] for axis in segment.places), segment.states[1:]), 1)
        frozen, now = self.box.visits, self.counts.sum(axis=-1)
        assert frozen is not None
        if (now >= np.maximum(1, 2 * frozen.sum(axis=-1))).any():
            self.box = BernsteinBox.from_counts(self.counts.copy(), self.box.radius)


Judge = Callable[[Plain, Floats, Segment, Floats], Callable[[Any], Floats]]


def optimistic(plain: Plain, pi: Floats, segment: Segment, table: Floats) -> Callable[[Any], Floats]:
    """POMD, Delayed OPPO with bandit feedback, and O-SSP: weights at once, evaluation with the box of the arrival."""
    estimate = np.zeros(pi.shape)
    for h, s, a in zip(*segment.places, strict=True):
        u = plain_reach(plain.box, pi, int(h), int(s), -1.0) * pi[h, s, a]
        estimate[h, s, a] = table[h, s, a] / (u + plain.gamma)
    return lambda box: plain_costs_to_go(box, pi, estimate)


def told_all(plain: Plain, pi: Floats, segment: Segment, table: Floats) -> Callable[[Any], Floats]:
    """Delayed OPPO with full information."""
    return lambda box: plain_costs_to_go(box, pi, table)


def dilated(plain: Plain, pi: Floats, segment: Segment, table: Floats) -> Callable[[Any], Floats]:
    """Dilated bonuses."""
    steps, _, actions = pi.shape
    u, w = (plain_visits(plain.box, pi, sense) for sense in (-1.0, 1.0))
    scores = np.zeros(pi.shape)
    for h, s, a in zip(*segment.places, strict=True):
        to_go = table[segment.places][h:].sum()
        scores[h, s, a] = to_go / (u[h, s, a] + plain.gamma)
    b = (pi * (3 * plain.gamma * steps + steps * (u - w)) / (u + plain.gamma)).sum(axis=-1)
    wide = np.repeat(b[:, :, None], actions, axis=2)
    scores -= plain_costs_to_go(plain.box, pi, wide, 1 + 1 / steps, sense=-1.0)
    return lambda box: scores


# --- each algorithm is its pseudo-code --------------------------------------------------------------------------------


@pytest.mark.parametrize("refresh", [every_round, when_doubled])
def test_pomd_is_its_pseudo_code(refresh: Refresh) -> None:
    """With the box of every round, as in the source, and with that of epochs."""
    told, kernel, tables = narrowing(), kernel_of(), tables_of(SHAPE, 40)
    learner = PolicyOptimization(0.2, Evaluation(ImplicitExploration(0.1)), refresh)
    expected = Plain(0.2, 0.1, told.dynamics, epochs=refresh == when_doubled).run(optimistic, kernel, tables)
    assert_allclose(policies(walked(learner, told, kernel, tables)), expected, rtol=1e-9)
    assert expected.max() > 0.75, "it has learned something"


def test_delayed_oppo_is_its_pseudo_code() -> None:
    """The policy of the round that was played, its weights, and the box of the arrival."""
    told, kernel, tables, late = narrowing(), kernel_of(), tables_of(SHAPE, 40), some_delays(40)
    learner = PolicyOptimization(0.2, Evaluation(ImplicitExploration(0.1)))
    expected = Plain(0.2, 0.1, told.dynamics).run(optimistic, kernel, tables, late)
    assert_allclose(policies(walked(learner, told, kernel, tables, late)), expected, rtol=1e-9)


def test_delayed_oppo_with_full_information_is_its_pseudo_code() -> None:
    told, kernel, tables, late = narrowing(), kernel_of(), tables_of(SHAPE, 40), some_delays(40)
    learner = PolicyOptimization(0.2, Evaluation(WholeTable()))
    expected = Plain(0.2, 0.0, told.dynamics).run(told_all, kernel, tables, late)
    assert_allclose(policies(walked(learner, told, kernel, tables, late)), expected, rtol=1e-9)


def test_dilated_bonuses_are_their_pseudo_code() -> None:
    told, kernel, tables = narrowing(), kernel_of(), tables_of(SHAPE, 25)
    learner = PolicyOptimization(0.05, DilatedBonus(0.1), when_doubled)
    plain = Plain(0.05, 0.1, told.dynamics, epochs=True)
    expected = plain.run(dilated, kernel, tables)
    assert_allclose(policies(walked(learner, told, kernel, tables)), expected, rtol=1e-9)
    assert 0 < plain.box.visits.sum() < plain.counts.sum(), "the last box lags behind"


def test_o_ssp_is_its_pseudo_code() -> None:
    kernel, tables = kernel_of(), tables_of(SHAPE, 40)
    learner = PolicyOptimization(0.05, Evaluation(ImportanceWeighting()), exploration=0.2)
    expected = Plain(0.05, 0.0, kernel, exploration=0.2).run(optimistic, kernel, tables)
    assert_allclose(policies(walked(learner, MarkovPolicies(kernel), kernel, tables)), expected, rtol=1e-9)


# --- the ladder -------------------------------------------------------------------------------------------------------


def test_without_delay_delayed_oppo_is_pomd_but_for_its_parameters() -> None:
    told = narrowing()
    plain, oppo = pomd(Task(told, 200)), delayed_oppo(Task(told, 200))
    assert oppo != plain
    assert replace(oppo, rate=plain.rate, critic=plain.critic) == plain
    assert type(oppo.estimator) is type(plain.estimator)


@pytest.mark.parametrize("arms", [2, 5])
def test_one_step_of_o_ssp_is_exp3(arms: int) -> None:
    rate, even = 0.1, 0.2
    learner = PolicyOptimization(rate, Evaluation(ImportanceWeighting()), exploration=even)
    rng, sums = np.random.default_rng(2), np.zeros(arms)
    distribution = learner.start(MarkovPolicies(Kernel(np.ones((1, 1, arms, 1)))), rng)
    for _ in range(50):
        chances = (1 - even) * plain_softmax(-rate * sums) + even / arms
        assert_allclose(distribution.draw(rng)[0, 0], chances, rtol=1e-10)
        arm, loss = int(rng.choice(arms, p=chances)), rng.random()
        segment = Segment(np.array([0]), np.array([arm]))
        weights = learner.weigh(distribution, segment, rng)
        sums[arm] += loss / chances[arm]
        distribution = learner.learn(learner.observe(distribution, segment), Bandit(segment, weights, np.array([loss])))


def test_a_box_of_one_kernel_makes_every_algorithm_that_of_known_transitions() -> None:
    kernel, tables = kernel_of(), tables_of(SHAPE, 30)
    critics: tuple[Critic, ...] = (
        Evaluation(ImplicitExploration(0.1)),
        Evaluation(WholeTable()),
        DilatedBonus(0.1),
        Evaluation(ImportanceWeighting()),
    )
    for critic in critics:
        learner = PolicyOptimization(0.1, critic)
        known, boxed = (
            policies(walked(learner, MarkovPolicies(each), kernel, tables))
            for each in (kernel, BernsteinBox.exactly(kernel))
        )
        assert_allclose(known, boxed, rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_states_do_not_matter(name: str) -> None:
    """The same world with its states renamed, so that it starts elsewhere."""
    kernel, tables, renamed = kernel_of(), tables_of(SHAPE, 30), [1, 2, 0]  # what was state 0 is now state 2
    other = Kernel(np.ascontiguousarray(kernel.p[:, renamed][..., renamed]))
    boxes = narrowing().dynamics
    learner = recipe(name, MarkovPolicies(kernel), 200)
    first = MarkovPolicies(kernel if name == "o-ssp" else boxes)
    second = MarkovPolicies(other if name == "o-ssp" else boxes, 2)
    if name == "o-ssp":
        assert recipe(name, second, 200).rate == pytest.approx(learner.rate)
    # The luck of a walk follows the numbers of the states: segments are renamed by hand.
    rng = np.random.default_rng(0)
    here, there = learner.start(first, rng), learner.start(second, rng)
    for table in tables:
        segment = kernel.walk(here.draw(rng), 0, rng.random((3, 2)))
        twin = Segment(np.argsort(renamed)[segment.states], segment.actions)
        here = told_of(learner, here, segment, table)
        there = told_of(learner, there, twin, table[:, renamed])
        assert_allclose(there.playing.policy, here.playing.policy[:, renamed], rtol=1e-9)


def told_of(learner: PolicyOptimization, distribution: LocalWeights, segment: Segment, table: Floats) -> LocalWeights:
    """The state after one more round."""
    weights = learner.weigh(distribution, segment, np.random.default_rng(0))
    kind = cast("type[Bandit]", learner.feedback)
    return learner.learn(learner.observe(distribution, segment), kind.reveal(table, segment, weights))


# --- invariants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_policies_are_positive_distributions(name: str) -> None:
    kernel = kernel_of()
    told: MarkovPolicies = MarkovPolicies(kernel) if name == "o-ssp" else narrowing()
    learner = recipe(name, told, 200, multiplier=3.0)
    found = policies(walked(learner, told, kernel, tables_of(SHAPE, 60), some_delays(60)))
    assert_allclose(found.sum(axis=-1), 1.0, atol=1e-12)
    assert (found > 0).all()
    assert_allclose(found[0], 0.5)
    assert np.abs(found[-1] - 0.5).max() > 1e-3


@pytest.mark.parametrize("name", ["pomd", "delayed-oppo", "delayed-oppo-full", "o-ssp"])
def test_rounds_without_losses_change_nothing(name: str) -> None:
    kernel = kernel_of()
    told: MarkovPolicies = MarkovPolicies(kernel) if name == "o-ssp" else narrowing()
    tables = tables_of(SHAPE, 30)
    tables[10:] = 0.0
    found = policies(walked(recipe(name, told, 200), told, kernel, tables))
    assert np.abs(found[10] - found[0]).max() > 0
    assert_array_equal(found[10:], np.broadcast_to(found[10], found[10:].shape))


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_evaluated_losses_are_optimistic(seed: int) -> None:
    """`Q_j <= Q^{pi_j}` under a true kernel inside the box, with full information."""
    rng = np.random.default_rng(seed)
    kernel = kernel_of(seed=seed)
    told, table = MarkovPolicies(box_around(kernel, 0.3, rng)), rng.random(SHAPE)
    learner = PolicyOptimization(1.0, Evaluation(WholeTable()))
    distribution = replace(learner.start(told, rng), total=rng.normal(size=SHAPE))
    segment = Segment(np.zeros(3, int), np.zeros(3, int))
    feedback = FullInformation(segment, learner.weigh(distribution, segment, rng), table)
    scores = learner.learn(distribution, feedback).total - distribution.total
    true = plain_costs_to_go(kernel, distribution.playing.policy, table)
    assert (scores <= true + 1e-12).all()
    assert (scores < true - 1e-6).any()


@given(order=st.permutations(range(6)))
@settings(max_examples=15, deadline=None)
def test_the_order_of_arrivals_does_not_matter(order: list[int]) -> None:
    for critic in (Evaluation(ImplicitExploration(0.1)), DilatedBonus(0.1)):
        learner, rng = PolicyOptimization(0.3, critic), np.random.default_rng(4)
        distribution, feedbacks = learner.start(narrowing(), rng), []
        for _ in order:
            segment = Segment(np.array([0, *rng.integers(3, size=2)]), rng.integers(2, size=3))
            feedbacks.append(Bandit(segment, learner.weigh(distribution, segment, rng), rng.random(3)))
            distribution = learner.observe(distribution, segment)
        straight = shuffled = distribution
        for i, j in enumerate(order):
            straight, shuffled = learner.learn(straight, feedbacks[i]), learner.learn(shuffled, feedbacks[j])
        assert_allclose(shuffled.total, straight.total, rtol=1e-13)


@given(seed=seeds, rounds=st.integers(1, 10**6), multiplier=st.sampled_from([0.5, 1.0]))
@settings(max_examples=20, deadline=None)
def test_o_ssp_keeps_its_floor_and_moves_no_weight_by_more_than_e(seed: int, rounds: int, multiplier: float) -> None:
    rng = np.random.default_rng(seed)
    kernel = kernel_of(seed=seed)
    domain = MarkovPolicies(kernel)
    learner = o_ssp(Task(domain, rounds, multiplier=multiplier))
    distribution = replace(learner.start(domain, rng), total=100 * rng.normal(size=SHAPE) / as_rate(learner.rate).value)
    policy = distribution.playing.policy
    assert (policy >= learner.exploration / SHAPE[2] * (1 - 1e-12)).all()
    assert learner.exploration <= 0.5
    segment = kernel.walk(policy, 0, rng.random((3, 2)))
    told = Bandit.reveal(np.ones(SHAPE), segment, learner.weigh(distribution, segment, rng))
    moved = learner.learn(distribution, told).total - distribution.total
    assert learner.rate * moved.max() <= 1.0 + 1e-9


def test_sums_of_any_size_make_a_policy() -> None:
    learner = PolicyOptimization(1.0, Evaluation(WholeTable()))
    total = np.zeros(SHAPE)
    total[0, 1], total[1, 2], total[2, 0] = [1e6, 1e6 + 1], [-1e9, 0.0], [3e4, 3e4]
    distribution = replace(learner.start(narrowing(), np.random.default_rng(0)), total=total)
    policy = distribution.playing.policy
    assert_allclose(policy[0, 1], [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))], rtol=1e-9)
    assert_array_equal(policy[1, 2], [1.0, 0.0])
    assert_array_equal(policy[2, 0], [0.5, 0.5])


def test_boxes_are_taken_up_as_the_refresh_says() -> None:
    kernel, told, tables = kernel_of(), narrowing(), tables_of(SHAPE, 30)
    for refresh in (every_round, when_doubled):
        learner = PolicyOptimization(0.1, Evaluation(ImplicitExploration(0.1)), refresh)
        states = list(walked(learner, told, kernel, tables))
        lags = [state.used.dynamics is not state.gathered for state in states]
        assert any(lags) == (refresh == when_doubled)
        for state in states:
            assert state.domain.dynamics is state.gathered
            assert state.gathered.visits.sum() == 2 * states.index(state)  # type: ignore[attr-defined]


def test_learning_makes_a_new_state() -> None:
    kernel = kernel_of()
    learner = PolicyOptimization(0.2, Evaluation(ImportanceWeighting()))
    rng = np.random.default_rng(0)
    distribution = learner.start(MarkovPolicies(kernel), rng)
    segment = kernel.walk(distribution.draw(rng), 0, rng.random((3, 2)))
    told = Bandit.reveal(np.ones(SHAPE), segment, learner.weigh(distribution, segment, rng))
    after = learner.learn(learner.observe(distribution, segment), told)
    assert (distribution.total == 0).all()
    assert distribution.played is None
    assert after.played is distribution.playing


# --- games ------------------------------------------------------------------------------------------------------------


def bandit_game(rounds: int, feedback: type, gap: float = 0.5) -> ArenaGame:
    """One state, two actions; the second is worse by `gap` on average."""
    rng = np.random.default_rng(5)
    means = np.array([0.5 - gap / 2, 0.5 + gap / 2])
    tables = (rng.random((rounds, 1, 1, 2)) < means).astype(float)
    return ArenaGame(Episodic(Kernel(np.ones((1, 1, 2, 1)))), FixedLosses(tables), None, feedback)


def regret_of(learner: PolicyOptimization, game: ArenaGame, domain: Domain, seed: int = 1) -> float:
    played = play_rounds(game, learner, domain, Streams.from_seed(seed))
    return float(measure(game, played, checkpoints=[game.rounds]).low[-1])


@pytest.mark.parametrize("name", NAMES)
def test_regret_of_a_bandit_grows_more_slowly_than_its_rounds(name: str) -> None:
    """Seeds are fixed. A learner that never moves has slope 1; theory says 1/2 or 2/3."""
    found = []
    for rounds in (400, 3200):
        learner = recipe(name, bandit_game(1, Bandit).arena.domain, rounds)
        game = bandit_game(rounds, learner.feedback)
        found.append(regret_of(learner, game, game.arena.domain))
    idle = replace(learner, rate=0.0)
    assert regret_of(idle, game, game.arena.domain) > 2 * found[1]
    assert log(found[1] / found[0]) / log(8) < 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "power"),
    [("pomd", 2 / 3), ("delayed-oppo", 2 / 3), ("dilated-bonus", 0.5), ("delayed-oppo-full", 0.5), ("o-ssp", 0.5)],
)
def test_regret_of_a_bandit_grows_with_the_power_that_theory_says(name: str, power: float) -> None:
    """Seeds are fixed. A learner that never moves has slope 1."""
    found, counts = [], (1000, 4000, 16000)
    for rounds in counts:
        learner = recipe(name, bandit_game(1, Bandit).arena.domain, rounds)
        game = bandit_game(rounds, learner.feedback)
        found.append(np.mean([regret_of(learner, game, game.arena.domain, seed) for seed in range(2)]))
    slope = np.polyfit(np.log(counts), np.log(found), 1)[0]
    assert abs(slope - power) < 0.15


@pytest.mark.parametrize(
    ("name", "rounds"), [("delayed-oppo-full", 400), ("o-ssp", 400), ("pomd", 3000), ("delayed-oppo", 3000)]
)
def test_regret_stays_below_its_bound_where_an_idle_learner_does_not(name: str, rounds: int) -> None:
    game = bandit_game(rounds, Bandit, gap=1.0)
    domain = game.arena.domain
    learner = recipe(name, domain, rounds)
    game = bandit_game(rounds, learner.feedback, gap=1.0)
    bound = learner.bound(domain, rounds)
    assert bound is not None
    assert regret_of(learner, game, domain) < bound.total
    assert regret_of(replace(learner, rate=0.0), game, domain) > bound.total


@pytest.mark.parametrize(
    ("name", "share"), [("pomd", 0.7), ("delayed-oppo", 0.7), ("delayed-oppo-full", 0.7), ("dilated-bonus", 0.9)]
)
def test_learners_of_unknown_transitions_do_better_than_their_start(name: str, share: float) -> None:
    """Seeds are fixed. The bonus costs most of what a short run could gain."""
    rounds, world = 600, instances.build("tiny")
    told = MarkovPolicies(BernsteinBox.vacuous(world.shape, Radius.luo_2021(world.shape, rounds, scale=0.02)))
    adversary = losses.named("bernoulli", world.shape, rounds, 1, world.costs)
    found = []
    for multiplier in (0.0, 6.0):
        learner = recipe(name, told, rounds, 3 * rounds, multiplier=multiplier)
        game = ArenaGame(Episodic(world.kernel, world.initial), adversary, delays.fixed(rounds, 3), learner.feedback)
        found.append(regret_of(learner, game, told))
    assert found[1] < share * found[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_plays_the_same_game_to_the_last_bit(name: str) -> None:
    world = instances.build("tiny")
    told = world.domain if name == "o-ssp" else narrowing(world.shape)
    learner = recipe(name, told, 40)
    adversary = losses.named("bernoulli", world.shape, 40, 1, world.costs)
    game = ArenaGame(Episodic(world.kernel, world.initial), adversary, delays.fixed(40, 2), learner.feedback)
    runs = [list(play_rounds(game, learner, told, Streams.from_seed(7))) for _ in range(2)]
    for one, other in zip(*runs, strict=True):
        assert_array_equal(one.policy, other.policy)
        assert_array_equal(one.segment.states, other.segment.states)


@pytest.mark.parametrize("wrapper", [UnknownRounds, UnknownDelay])
def test_learners_that_start_again_keep_what_the_critic_kept(wrapper: Any) -> None:
    told, kernel = narrowing(), kernel_of()
    wrapped = wrapper(lambda domain, guess: delayed_oppo(Task(domain, guess, guess)), first=4)
    game = ArenaGame(Episodic(kernel), FixedLosses(tables_of(SHAPE, 20)), delays.fixed(20, 2))
    assert len(list(play_rounds(game, wrapped, told, Streams.from_seed(1)))) == 20
    life = wrapped.start(told, np.random.default_rng(0))
    segment = Segment(np.zeros(3, int), np.zeros(3, int))
    assert isinstance(wrapped.weigh(life, segment, np.random.default_rng(0)), KeptWeights)


@pytest.mark.parametrize("name", NAMES)
def test_amdp_play_knows_them(name: str) -> None:
    known = [] if name == "o-ssp" else ["--unknown"]
    words = ["play", "tiny", "--learner", name, "--episodes", "20", "--json", *known]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rounds"] == 20


# --- parameters, bounds, refusals -------------------------------------------------------------------------------------


def test_names_stand_for_the_algorithms_that_they_name() -> None:
    told, known = narrowing(), MarkovPolicies(kernel_of())
    assert set(NAMES) <= set(registry.names("amdp.learners"))
    assert recipe("pomd", told, 100, 7, multiplier=2.0) == pomd(Task(told, 100, multiplier=2.0))
    assert recipe("dilated-bonus", told, 100, 7) == dilated_bonus(Task(told, 100))
    assert recipe("delayed-oppo", told, 100, 7) == delayed_oppo(Task(told, 100, 7))
    assert recipe("delayed-oppo-full", told, 100, 7) == delayed_oppo_full(Task(told, 100, 7))
    assert recipe("o-ssp", known, 100, 7) == o_ssp(Task(known, 100))


def gamma_of(learner: PolicyOptimization) -> float:
    assert isinstance(learner.estimator, ImplicitExploration)
    return learner.estimator.gamma


def test_parameters_are_those_of_the_formulas() -> None:
    told, rounds, late = narrowing(), 8000, 1000
    steps, states, actions = SHAPE
    plain = pomd(Task(told, rounds))
    assert plain.rate == pytest.approx(1 / (steps * 400))
    assert gamma_of(plain) == pytest.approx(1 / (sqrt(actions) * 20))
    oppo = delayed_oppo(Task(told, rounds, late))
    gamma = (steps * sqrt(9000) / (states * actions * rounds)) ** (2 / 3)
    assert gamma_of(oppo) == pytest.approx(gamma)
    assert oppo.rate == pytest.approx(sqrt(gamma * log(actions) / (steps**2 * 9000)))
    assert gamma_of(delayed_oppo(Task(told, 1))) == pytest.approx((steps / (states * actions)) ** (2 / 3))
    assert gamma_of(delayed_oppo(Task(told, 1, 10**6))) == 1.0
    full = delayed_oppo_full(Task(told, rounds, late))
    assert full.rate == pytest.approx(sqrt(log(actions) / (steps**2 * 9000)))
    assert full.estimator == WholeTable()
    bonus = dilated_bonus(Task(told, rounds))
    assert bonus.rate == pytest.approx(1 / (steps * sqrt(states * actions * rounds)))
    assert bonus.critic == DilatedBonus(2 * as_rate(bonus.rate).value * steps)
    assert bonus.refresh == when_doubled
    assert dilated_bonus(Task(told, 1)).rate == pytest.approx(1 / (24 * 27))
    assert dilated_bonus(Task(told, 1, multiplier=2.0)).rate == pytest.approx(2 / (24 * 27))


def test_parameters_of_o_ssp_follow_the_least_visit_chance() -> None:
    p = np.full((3, 2, 4, 2), 0.5)
    p[1, 0, 2] = [0.9, 0.1]
    p[1, 1, 1] = [0.7, 0.3]
    alpha, rounds = 0.5 * 0.1 + 0.5 * 0.3, 10**6
    learner = o_ssp(Task(MarkovPolicies(Kernel(p)), rounds))
    assert learner.rate == pytest.approx(sqrt(alpha * log(4) / (9 * 4 * rounds)))
    assert learner.exploration == pytest.approx(as_rate(learner.rate).value * 3 * 4 / alpha)
    short = o_ssp(Task(MarkovPolicies(Kernel(p)), 1))
    assert short.exploration == 0.5
    assert short.rate == pytest.approx(0.5 * alpha / 12)
    bold = o_ssp(Task(MarkovPolicies(Kernel(p)), rounds, multiplier=1000.0))
    assert bold.rate == pytest.approx(1000.0 * as_rate(learner.rate).value)
    assert bold.exploration == learner.exploration


def test_bounds_are_those_of_the_formulas() -> None:
    known, rounds, rate = MarkovPolicies(kernel_of()), 1000, 0.01
    steps, states, actions = SHAPE
    full = PolicyOptimization(rate, Evaluation(WholeTable())).bound(known, rounds, 500)
    assert full is not None
    assert full.penalty == pytest.approx(steps * log(actions) / rate)
    assert full.stability == pytest.approx(rate * rounds * (1 + 4 + 9) / 2)
    assert full.waiting == pytest.approx(rate * 500 * (1 + 4 + 9))
    assert full.bias == 0
    implicit = PolicyOptimization(rate, Evaluation(ImplicitExploration(0.1))).bound(known, rounds, 500)
    assert implicit is not None
    assert (implicit.penalty, implicit.waiting) == (full.penalty, full.waiting)
    assert implicit.stability == pytest.approx(full.stability / 0.1)
    assert implicit.bias == pytest.approx(0.1 * steps * states * actions * rounds)
    exact = PolicyOptimization(rate, Evaluation(ImportanceWeighting()), exploration=0.2).bound(known, rounds)
    assert exact is not None
    assert exact.bias == pytest.approx(0.2 * rounds * (1 + 2 + 3))
    moments = sum(n * (actions + n - 1) for n in (1, 2, 3))
    least = bounds.policy_importance(SHAPE, rounds, rate, 0.5)
    assert least is not None
    assert least.stability == pytest.approx(rate * rounds * moments)


def test_no_bound_is_stated_where_none_is_known() -> None:
    box, known = narrowing(), MarkovPolicies(kernel_of())
    avoidable = MarkovPolicies(Kernel(np.broadcast_to(np.eye(2)[None, None], (3, 2, 2, 2))))
    exact = PolicyOptimization(0.1, Evaluation(ImportanceWeighting()))
    assert pomd(Task(box, 100)).bound(box, 100) is None
    assert dilated_bonus(Task(known, 100)).bound(known, 100) is None
    assert exact.bound(known, 100, waited=1) is None
    assert exact.bound(avoidable, 100) is None
    assert PolicyOptimization(0.1, Evaluation(ImplicitExploration(0.0))).bound(known, 100) is None
    assert PolicyOptimization(0.0, Evaluation(WholeTable())).bound(known, 100).penalty == np.inf  # type: ignore[union-attr]
    for other in (DelayAdapted(0.1), LossToGo(0.1)):
        assert PolicyOptimization(0.1, Evaluation(other)).bound(known, 100) is None


def test_o_ssp_refuses_a_world_that_a_policy_can_avoid() -> None:
    p = np.full((4, 3, 2, 3), 1 / 3)
    p[2, :, 1] = [0.5, 0.5, 0.0]
    message = r"some policy is never at \[h=3, s=2\]; use o-reps or pomd"
    with pytest.raises(InvalidInput, match=message):
        o_ssp(Task(MarkovPolicies(Kernel(p)), 100))
    with pytest.raises(InvalidInput, match="needs a kernel, not MarkovPolicies over BernsteinBox"):
        o_ssp(Task(narrowing(), 100))


@pytest.mark.parametrize("name", NAMES)
def test_they_refuse_stationary_policies(name: str) -> None:
    domain = StationaryPolicies(Kernel.homogeneous(np.ones((1, 2, 1)), 5))
    with pytest.raises(InvalidInput, match=f"{name} plays episodes, not one stream of steps: use Game"):
        recipe(name, domain, 10)
    with pytest.raises(InvalidInput, match="plays MarkovPolicies"):
        PolicyOptimization(0.1, Evaluation(WholeTable())).start(domain, np.random.default_rng(0))


def test_they_refuse_sets_without_compiled_rows() -> None:
    domain = MarkovPolicies(L1Ball.vacuous(SHAPE, 100))
    with pytest.raises(InvalidInput, match="needs a kernel or a BernsteinBox, not L1Ball"):
        PolicyOptimization(0.1, Evaluation(WholeTable())).start(domain, np.random.default_rng(0))


def test_feedback_of_another_kind_is_refused() -> None:
    learner = PolicyOptimization(0.1, Evaluation(ImplicitExploration(0.1)))
    distribution = learner.start(MarkovPolicies(kernel_of()), np.random.default_rng(0))
    segment = Segment(np.zeros(3, int), np.zeros(3, int))
    with pytest.raises(InvalidInput, match="ImplicitExploration understands Bandit, not FullInformation"):
        learner.learn(distribution, FullInformation(segment, Weights(np.empty(0)), np.ones(SHAPE)))
    told = MarkovPolicies(kernel_of())
    game = ArenaGame(Episodic(kernel_of()), FixedLosses(tables_of(SHAPE, 5)))
    with pytest.raises(InvalidInput, match="needs FullInformation"):
        play_rounds(game, delayed_oppo_full(Task(told, 5)), told, Streams.from_seed(1))


@pytest.mark.parametrize("rate", [-1.0, np.nan, np.inf])
def test_a_rate_that_means_nothing_is_refused(rate: float) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        PolicyOptimization(rate, Evaluation(WholeTable()))


def test_parameters_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidInput, match="exploration = 2"):
        PolicyOptimization(0.1, Evaluation(WholeTable()), exploration=2.0)
    with pytest.raises(InvalidInput, match="gamma = -1"):
        DilatedBonus(-1.0)
    for name in BOXED:
        with pytest.raises(InvalidInput, match="rounds = 0"):
            recipe(name, narrowing(), 0)
    for name in ("delayed-oppo", "delayed-oppo-full"):
        with pytest.raises(InvalidInput, match="total_delay = -1"):
            recipe(name, narrowing(), 10, -1)


def test_one_action_leaves_nothing_to_learn() -> None:
    shape = (3, 2, 1)
    kernel = kernel_of(shape)
    for name in NAMES:
        told = MarkovPolicies(kernel)
        learner = recipe(name, told, 10)
        found = policies(walked(learner, told, kernel, tables_of(shape, 10)))
        assert_allclose(found, 1.0)
    bound = PolicyOptimization(0.0, Evaluation(WholeTable())).bound(MarkovPolicies(kernel), 10)
    assert bound is not None
    assert bound.total == 0.0
