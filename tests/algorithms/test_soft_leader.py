"""The soft leader: the inequalities of its proof by enumeration, whole games, delays, boxes and full information."""

from dataclasses import dataclass
from itertools import product
from math import log, sqrt
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from worlds import box_around, random_kernel, seeds

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Radius, StationaryPolicies, instances, losses
from amdp.algorithms import bounds
from amdp.algorithms.bounds import AdaptiveBound, Bound
from amdp.algorithms.estimators.base import Estimator, WholeTable
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.rates import AdaptiveRate, FixedRate
from amdp.algorithms.soft_leader import SoftLeader, SoftPolicy, adaptive_rate, soft_leader, soft_leader_full
from amdp.algorithms.task import Task
from amdp.algorithms.uniform import UniformPlay
from amdp.arrays import Floats
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.instances import Instance
from amdp.model.domains import Domain
from amdp.model.l1_ball import L1Ball
from amdp.model.segments import Segment
from amdp.model.transitions import SingleKernel
from amdp.testing import learner_checks

SHAPE = (3, 2, 2)
RNG = np.random.default_rng(0)

# --- the proof, by enumeration ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trajectory:
    """Pairs one after another, and the chance of it."""

    segment: Segment
    chance: float

    def sum(self, table: Floats) -> float:
        return float(table[self.segment.places].sum())


def trajectories(kernel: SingleKernel, policy: Floats, initial: int) -> list[Trajectory]:
    steps, states, actions = policy.shape
    p = kernel.dense().p
    listed = []
    for path in product(range(states), repeat=steps):
        for chosen in product(range(actions), repeat=steps):
            chance = float(path[0] == initial)
            for h in range(steps):
                chance *= policy[h, path[h], chosen[h]]
                chance *= p[h, path[h], chosen[h], path[h + 1]] if h < steps - 1 else 1.0
            if chance > 0.0:
                listed.append(Trajectory(Segment(np.array(path), np.array(chosen)), chance))
    return listed


@dataclass(frozen=True)
class Case:
    """A leader in a random world, and the losses of its round."""

    kernel: SingleKernel
    state: SoftPolicy
    table: Floats

    @classmethod
    def of(cls, seed: int, rate: float = 0.7) -> "Case":
        rng = np.random.default_rng(seed)
        kernel = random_kernel("dense", SHAPE, rng)
        domain = MarkovPolicies(kernel, int(rng.integers(SHAPE[1])))
        return cls(kernel, SoftPolicy(domain, FixedRate(rate), 3.0 * rng.random(SHAPE)), rng.random(SHAPE))

    @property
    def trajectories(self) -> list[Trajectory]:
        return trajectories(self.kernel, self.state.swept.policy, self.state.domain.initial)

    def estimates(self) -> list[tuple[float, Floats]]:
        """Each estimate of the round that the learner may see, with its chance."""
        learner = SoftLeader(self.state.rate)
        return [
            (each.chance, learner.learn(self.state, told(learner, self.state, each.segment, self.table)).total)
            for each in self.trajectories
        ]

    def growth(self, total: Floats) -> float:
        return self.state.potential(total) - self.state.potential(self.state.total)


def told(learner: SoftLeader, state: SoftPolicy, segment: Segment, table: Floats) -> Bandit:
    return Bandit.reveal(table, segment, learner.weigh(state, segment, RNG))


@given(seed=seeds, rate=st.sampled_from((0.01, 0.7, 5.0)))
@settings(max_examples=20, deadline=None)
def test_the_estimate_has_the_mean_of_the_losses_where_the_policy_goes(seed: int, rate: float) -> None:
    case = Case.of(seed, rate)
    mean = sum((chance * (total - case.state.total) for chance, total in case.estimates()), np.zeros(SHAPE))
    met = case.state.occupancy > 0
    assert_allclose(mean[met], case.table[met], atol=1e-9)
    assert_allclose(mean[~met], 0.0, atol=1e-9)


@given(seed=seeds, rate=st.sampled_from((0.01, 0.7, 5.0)))
@settings(max_examples=20, deadline=None)
def test_the_soft_value_grows_by_the_losses_less_half_their_second_moment(seed: int, rate: float) -> None:
    case, rng = Case.of(seed, rate), np.random.default_rng(seed)
    for extra in (case.table, 10.0 * rng.random(SHAPE) * (rng.random(SHAPE) < 0.3)):
        growth = case.growth(case.state.total + extra)
        sums = np.array([each.sum(extra) for each in case.trajectories])
        chances = np.array([each.chance for each in case.trajectories])
        assert np.exp(-rate * growth) <= (chances * np.exp(-rate * sums)).sum() * (1 + 1e-9)
        mean = float((case.state.occupancy * extra).sum())
        assert mean == pytest.approx(float(chances @ sums))
        assert mean - rate / 2.0 * float(chances @ sums**2) <= growth + 1e-9
        assert growth <= mean + 1e-9  # so that the gap is at least 0


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_the_second_moment_of_an_estimate_along_a_trajectory_is_at_most_h_squared_sa(seed: int) -> None:
    case = Case.of(seed)
    case = Case(case.kernel, case.state, np.ones(SHAPE))
    steps, states, actions = SHAPE
    moment = sum(
        chance * each.chance * each.sum(total - case.state.total) ** 2
        for chance, total in case.estimates()
        for each in case.trajectories
    )
    assert moment <= steps**2 * states * actions + 1e-6


@given(seed=seeds, rate=st.sampled_from((0.01, 0.3, 2.0)))
@settings(max_examples=15, deadline=None)
def test_what_is_under_way_costs_at_most_the_cross_term(seed: int, rate: float) -> None:
    """With `O` under way: growth of `l` at `L + O` >= <q, l> - (rate/2) E Y^2 - rate E[Y_l sum_h Q_O]."""
    case, rng = Case.of(seed, rate), np.random.default_rng(seed)
    state, policy = case.state, case.state.swept.policy
    extra, waiting = (5.0 * rng.random(SHAPE) * (rng.random(SHAPE) < 0.5) for _ in range(2))
    growth = state.potential(state.total + waiting + extra) - state.potential(state.total + waiting)
    ahead = np.array(waiting)  # what the waiting estimate costs from each pair on, under the policy played
    for h in reversed(range(SHAPE[0] - 1)):
        ahead[h] += case.kernel.dense().p[h] @ (policy[h + 1] * ahead[h + 1]).sum(axis=-1)
    self_term = cross = mean = 0.0
    for each in case.trajectories:
        mean += each.chance * each.sum(extra)
        self_term += each.chance * each.sum(extra) ** 2
        cross += each.chance * each.sum(extra) * each.sum(ahead)
    assert growth >= mean - rate / 2.0 * self_term - rate * cross - 1e-9


# --- the learner ------------------------------------------------------------------------------------------------------


@given(seed=seeds, gamma=st.sampled_from((0.0, 0.2)))
@settings(max_examples=20, deadline=None)
def test_the_gap_is_the_loss_of_the_policy_under_the_estimate_less_the_growth(seed: int, gamma: float) -> None:
    case = Case.of(seed)
    learner = SoftLeader(adaptive_rate(SHAPE), ImplicitExploration(gamma) if gamma else ImportanceWeighting())
    state = SoftPolicy(case.state.domain, adaptive_rate(SHAPE), case.state.total)
    segment = case.trajectories[0].segment
    after = learner.learn(state, told(learner, state, segment, case.table))
    estimate = after.total - state.total
    gap = float((state.occupancy * estimate).sum()) - (state.potential(after.total) - state.potential(state.total))
    assert isinstance(after.rate, AdaptiveRate)
    assert after.rate.total == pytest.approx(gap, abs=1e-8)
    assert gap >= -1e-9


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_regret_on_the_estimates_is_at_most_twice_the_gaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = random_kernel("dense", SHAPE, rng)
    domain, learner = MarkovPolicies(kernel, 1), SoftLeader(adaptive_rate(SHAPE))
    state, paid = learner.start(domain, rng), 0.0
    for _ in range(40):
        policy = state.draw(rng)
        segment = kernel.walk(policy, 1, rng.random((SHAPE[0], 2)))
        feedback = told(learner, state, segment, rng.random(SHAPE))
        after = learner.learn(learner.observe(state, segment), feedback)
        paid += float((state.occupancy * (after.total - state.total)).sum())
        assert after.rate.value <= state.rate.value
        state = after
    least = kernel.cheapest(state.total[None]).values[0, 0, 1]
    assert isinstance(state.rate, AdaptiveRate)
    assert state.rate.gaps == pytest.approx(state.rate.total)
    assert paid - least <= 2.0 * state.rate.gaps + state.rate.first + 1e-6


def test_a_fixed_rate_makes_no_second_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> float:
        raise AssertionError("a potential was computed")

    monkeypatch.setattr(SoftPolicy, "potential", refused)
    rounds = played(instances.build("tiny"), 5, SoftLeader(0.1))
    assert len(rounds) == 5
    with pytest.raises(AssertionError, match="potential"):
        played(instances.build("tiny"), 5, SoftLeader(AdaptiveRate(1.0)))


@pytest.mark.parametrize("recipe", [soft_leader, soft_leader_full])
@pytest.mark.parametrize("check", learner_checks(), ids=lambda check: check.__name__)
def test_it_conforms(recipe: object, check: object) -> None:
    check(recipe)  # type: ignore[operator]


# --- games ------------------------------------------------------------------------------------------------------------


def played(
    world: Instance, rounds: int, learner: SoftLeader | UniformPlay, seed: int = 1, late: Delays | None = None
) -> list[Round]:
    game = game_of(world, rounds, learner, seed, late)
    return list(play_rounds(game, learner, world.domain, Streams.from_seed(seed)))  # type: ignore[misc]


def game_of(
    world: Instance, rounds: int, learner: SoftLeader | UniformPlay, seed: int = 1, late: Delays | None = None
) -> ArenaGame:
    adversary = losses.named("bernoulli", world.shape, rounds, seed, world.costs)
    return ArenaGame(Episodic(world.kernel, world.initial), adversary, late, learner.feedback)


def regret(
    world: Instance,
    rounds: int,
    learner: SoftLeader | UniformPlay,
    seed: int = 1,
    late: Delays | None = None,
    domain: Domain | None = None,
) -> float:
    game = game_of(world, rounds, learner, seed, late)
    rounds_played = play_rounds(game, learner, domain or world.domain, Streams.from_seed(seed))  # type: ignore[misc]
    return float(measure(game, rounds_played, checkpoints=[rounds]).high[0])


def test_it_pays_less_than_half_of_uniform_play() -> None:
    # Over seeds the adaptive one pays 27 to 58, full information 2 to 3, uniform play 1,389 to 1,438.
    world, rounds = instances.build("tiny"), 2000
    aimless = regret(world, rounds, UniformPlay())
    for learner in (SoftLeader(adaptive_rate(world.shape)), soft_leader_full(Task(world.domain, rounds))):
        assert regret(world, rounds, learner) < aimless / 2.0


@pytest.mark.parametrize("rate", ["adaptive", "theory"])
@pytest.mark.parametrize("full", [False, True])
def test_regret_is_below_its_bound_on_average(rate: Literal["adaptive", "theory"], full: bool) -> None:
    # A game pays at most half of the bound on average, here, with a standard deviation below a thirtieth of it: the
    # mean of six would have to be off by more than 30 of its own deviations.
    world, rounds = instances.build("tiny"), 600
    learner = (soft_leader_full if full else soft_leader)(Task(world.domain, rounds), rate=rate)
    bound = learner.bound(world.domain, rounds)
    assert bound is not None
    assert np.mean([regret(world, rounds, learner, seed) for seed in range(6)]) < bound.total


@pytest.mark.parametrize("late", [delays.fixed(600, 20), delays.bursts(600, 30, 20)], ids=["fixed", "bursts"])
@pytest.mark.parametrize("rate", ["adaptive", "theory"])
def test_it_plays_on_with_delays(late: Delays, rate: Literal["adaptive", "theory"]) -> None:
    world = instances.build("tiny")
    learner = soft_leader(Task(world.domain, 600, late.total_within), rate=rate)
    bound = learner.bound(world.domain, 600, late.total_within)
    assert (bound is None) == (rate == "adaptive")
    found = np.mean([regret(world, 600, learner, seed, late) for seed in range(3)])
    assert found < (bound.total if bound else regret(world, 600, UniformPlay()) / 2.0)


@pytest.mark.parametrize("full", [False, True])
def test_it_learns_over_a_box_that_narrows(full: bool) -> None:
    world, rounds = instances.build("tiny"), 2000
    box = BernsteinBox.vacuous(world.shape, Radius.paper(world.shape, rounds, scale=0.02))
    domain = MarkovPolicies(box, world.initial)
    learner = (soft_leader_full if full else soft_leader)(Task(domain, rounds))
    assert learner.bound(domain, rounds) is None
    assert regret(world, rounds, learner, domain=domain) < regret(world, rounds, UniformPlay()) / 2.0


@pytest.mark.parametrize("estimator", [ImportanceWeighting(), WholeTable()], ids=["bandit", "full"])
def test_over_the_box_of_one_kernel_it_plays_as_over_the_kernel(estimator: Estimator) -> None:
    rng = np.random.default_rng(9)
    kernel = random_kernel("dense", SHAPE, rng)
    learner = SoftLeader(adaptive_rate(SHAPE), estimator)
    game = ArenaGame(Episodic(kernel, 1), losses.uniform(30, SHAPE, 1), None, learner.feedback)
    known, exact, narrow = (
        [each.policy for each in play_rounds(game, learner, MarkovPolicies(dynamics, 1), Streams.from_seed(1))]
        for dynamics in (kernel, BernsteinBox.exactly(kernel), box_around(kernel, 1e-12, rng))
    )
    assert_allclose(exact, known, atol=1e-9)
    assert_allclose(narrow, known, atol=1e-5)


def test_the_greatest_chances_of_a_box_are_at_least_the_true_ones() -> None:
    rng = np.random.default_rng(10)
    kernel = random_kernel("dense", SHAPE, rng)
    state = SoftPolicy(MarkovPolicies(box_around(kernel, 0.3, rng)), FixedRate(1.0), rng.random(SHAPE))
    segment = Segment(np.array([0, 1, 0]), np.array([1, 0, 1]))
    true = kernel.occupancy(state.swept.policy[None], 0)[0][segment.places]
    assert (state.visits(segment.pairs) >= true - 1e-12).all()
    assert (
        state.potential(state.total)
        <= SoftPolicy(MarkovPolicies(kernel), FixedRate(1.0), state.total).potential(state.total) + 1e-12
    )


def test_runs_are_the_same_to_the_bit() -> None:
    world = instances.build("random-dense")
    first, again = (played(world, 40, SoftLeader(adaptive_rate(world.shape))) for _ in range(2))
    assert all(np.array_equal(one.policy, other.policy) for one, other in zip(first, again, strict=True))


def test_one_action_has_no_regret() -> None:
    world = instances.random_dense(3, 4, 1, np.random.default_rng(1))
    for recipe in (soft_leader, soft_leader_full):
        for rate in ("adaptive", "theory"):
            learner = recipe(Task(world.domain, 20), rate=rate)
            assert regret(world, 20, learner) == pytest.approx(0.0, abs=1e-9)
            bound = learner.bound(world.domain, 20)
            assert bound is not None
            assert np.isfinite(bound.total)


# --- rates, bounds, refusals ------------------------------------------------------------------------------------------

KNOWN = MarkovPolicies(random_kernel("dense", SHAPE, np.random.default_rng(11)))


def test_rates_by_name() -> None:
    assert soft_leader(Task(KNOWN, 50)).rate == AdaptiveRate(3 * log(2))
    assert soft_leader(Task(KNOWN, 50), rate="adaptive") == soft_leader(Task(KNOWN, 50))
    assert soft_leader(Task(KNOWN, 50), rate=0.25) == SoftLeader(0.25)
    assert soft_leader(Task(KNOWN, 50), gamma=0.1).estimator == ImplicitExploration(0.1)
    tuned = soft_leader(Task(KNOWN, 50, 7, multiplier=3.0), rate="theory").rate
    assert tuned == pytest.approx(3 * sqrt(2 * log(2) / (3 * (4 * 50 + 4 * 7))))
    full = soft_leader_full(Task(KNOWN, 50, 7), rate="theory").rate
    assert full == pytest.approx(sqrt(2 * log(2) / (3 * (50 + 4 * 7))))


def test_the_tuned_rate_balances_the_bound() -> None:
    for waited in (0, 13):
        rate = bounds.soft_leader_rate(SHAPE, 50, waited)
        least = bounds.soft_leader(SHAPE, 50, rate, 0.0, waited)
        assert least.total == pytest.approx(sqrt(2 * 27 * log(2) * (4 * 50 + 4 * waited)))
        full_rate = bounds.soft_leader_full_rate(SHAPE, 50, waited)
        full = bounds.soft_leader_full(SHAPE, 50, full_rate, waited)
        assert full.total == pytest.approx(sqrt(2 * 27 * log(2) * (50 + 4 * waited)))
        for factor in (0.8, 1.25):
            assert bounds.soft_leader(SHAPE, 50, factor * rate, 0.0, waited).total > least.total
    assert bounds.adaptive_soft_leader(SHAPE, 50, 1.0).total == pytest.approx(7 + 2 * sqrt(27 * 4 * 50 * log(2)))
    assert bounds.adaptive_soft_leader_full(SHAPE, 50, 1.0).total == pytest.approx(7 + 2 * sqrt(27 * 50 * log(2)))


def test_implicit_exploration_adds_its_bias() -> None:
    bound = SoftLeader(0.1, ImplicitExploration(0.02)).bound(KNOWN, 50)
    assert isinstance(bound, Bound)
    assert bound.bias == pytest.approx(0.02 * 3 * 4 * 50)
    adaptive = SoftLeader(AdaptiveRate(2.0, first=0.5), ImplicitExploration(0.02)).bound(KNOWN, 50)
    assert isinstance(adaptive, AdaptiveBound)
    assert adaptive.bias == bound.bias
    assert adaptive.first == 0.5


def test_what_it_cannot_play_is_refused() -> None:
    kernel = Kernel.homogeneous(np.full((2, 2, 2), 0.5), 10)
    with pytest.raises(InvalidInput, match="episodes"):
        soft_leader(Task(StationaryPolicies(kernel), 10))
    with pytest.raises(InvalidInput, match="episodes"):
        SoftLeader(0.1).start(StationaryPolicies(kernel), RNG)
    with pytest.raises(InvalidInput, match="BernsteinBox"):
        soft_leader(Task(MarkovPolicies(L1Ball.vacuous(SHAPE, 10)), 10))
    with pytest.raises(InvalidInput, match="tunes its rate itself"):
        soft_leader(Task(KNOWN, 10, multiplier=2.0))
    with pytest.raises(InvalidInput, match="'adaptive' or 'theory'"):
        soft_leader(Task(KNOWN, 10), rate="tuned")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="rate"):
        soft_leader(Task(KNOWN, 10), rate=-1.0)
    with pytest.raises(InvalidInput, match="estimator"):
        SoftLeader(0.1, DelayAdapted(0.1))


def test_full_information_without_its_occupancy_is_refused() -> None:
    learner = SoftLeader(adaptive_rate(SHAPE), WholeTable())
    state, nowhere = learner.start(KNOWN, RNG), Segment(np.zeros(3, int), np.zeros(3, int))
    told_all = learner.feedback.reveal(np.zeros(SHAPE), nowhere, Weights(np.empty(0)))  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="occupancy"):
        learner.learn(state, told_all)
