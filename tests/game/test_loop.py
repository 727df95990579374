"""The loop: who is told what and when, luck that all learners share, and games that cannot be played."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from worlds import as_csr, few_successors, random_kernel, random_rows, seeds

from amdp import BernsteinBox, InvalidInput, Kernel, MarkovPolicies, Radius, Segment, SparseKernel
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, LiteralFtpl, follow_the_perturbed_leader
from amdp.arrays import Floats, Policies
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.rounds import Round, Timing
from amdp.game.seeding import Streams
from amdp.losses import CalledLosses, FixedLosses
from amdp.model.domains import Domain
from amdp.model.transitions import SingleKernel

SHAPE = (3, 3, 2)


def world(rounds: int = 40, seed: int = 1, **settings: Any) -> tuple[ArenaGame, MarkovPolicies]:
    rng = np.random.default_rng(seed)
    kernel = Kernel(random_rows(SHAPE, rng))
    losses = FixedLosses(rng.random((rounds, *SHAPE)))
    return ArenaGame(Episodic(kernel), losses, **settings), MarkovPolicies(kernel)


def same(one: list[Round], other: list[Round]) -> None:
    """All but the seconds agree, bit for bit."""
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a.policy, b.policy)
        assert_array_equal(a.segment.states, b.segment.states)
        assert_array_equal(a.segment.actions, b.segment.actions)
        assert (a.k, a.paid, a.trials, a.arrived) == (b.k, b.paid, b.trials, b.arrived)


# --- a learner that writes down what it is told -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Diary:
    """Always the first action; knows which rounds it has observed and which feedback it has seen."""

    domain: Domain
    observed: int = 0
    learned: tuple[int, ...] = ()
    drawn: list[tuple[int, ...]] = field(default_factory=list)  # what was known at each draw
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        self.drawn.append(self.learned)
        policy = np.zeros(self.domain.shape)
        policy[..., 0] = 1.0
        return policy


@dataclass(frozen=True)
class Recorder:
    """Marks each segment with its round, by the weight, and reads the mark when the feedback arrives."""

    log: list[Any] = field(default_factory=list)
    feedback: type = Bandit

    def start(self, domain: Domain, rng: np.random.Generator) -> Diary:
        self.log.append("start")
        return Diary(domain)

    def observe(self, distribution: Diary, segment: Segment) -> Diary:
        self.log.append("observe")
        return replace(distribution, observed=distribution.observed + 1)

    def weigh(self, distribution: Diary, segment: Segment, rng: np.random.Generator) -> Weights:
        self.log.append("weigh")
        return Weights(np.full(len(segment.states), float(distribution.observed)))

    def learn(self, distribution: Diary, feedback: Feedback) -> Diary:
        self.log.append(feedback)
        return replace(distribution, learned=(*distribution.learned, int(feedback.weights.values[0])))


@settings(max_examples=25)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=12))
def test_feedback_of_round_k_is_used_from_round_k_plus_its_delay_plus_one_on(late: list[int]) -> None:
    game, domain = world(len(late), delays=delays.recorded(late))
    recorder, diary = Recorder(), []

    @dataclass(frozen=True)
    class Watched(Recorder):
        def start(self, domain: Domain, rng: np.random.Generator) -> Diary:
            distribution = Recorder.start(self, domain, rng)
            diary.append(distribution.drawn)
            return distribution

    rounds = list(play_rounds(game, Watched(recorder.log), domain, Streams.from_seed(1)))
    for k, known in enumerate(diary[0]):
        assert sorted(known) == [j for j, d in enumerate(late) if j + d + 1 <= k]
    told = [entry for entry in recorder.log if isinstance(entry, Bandit)]
    arrivals = {j: j + d for j, d in enumerate(late)}
    assert len(told) == sum(when < len(late) for when in arrivals.values()), "what comes after the end is never seen"
    for one in rounds:
        assert one.arrived == sum(when == one.k for when in arrivals.values())
    for feedback in told:
        k = int(feedback.weights.values[0])
        assert feedback.segment is rounds[k].segment
        places = (np.arange(SHAPE[0]), feedback.segment.states, feedback.segment.actions)
        assert_array_equal(feedback.losses, game.losses[k][places])


def test_weights_are_drawn_before_the_dynamics_narrow_and_before_anything_is_learned() -> None:
    game, domain = world(3)
    recorder = Recorder()
    list(play_rounds(game, recorder, domain, Streams.from_seed(1)))
    kinds = [entry if isinstance(entry, str) else "learn" for entry in recorder.log]
    assert kinds == ["start", *["weigh", "observe", "learn"] * 3]


def test_paid_is_the_sum_of_the_losses_that_were_met() -> None:
    game, domain = world(20)
    for one in play_rounds(game, Ftpl.tuned(domain, 20), domain, Streams.from_seed(1)):
        table = game.losses[one.k]
        met = [table[h, s, a] for h, (s, a) in enumerate(zip(one.segment.states, one.segment.actions, strict=True))]
        assert one.paid == pytest.approx(sum(met))


# --- luck -------------------------------------------------------------------------------------------------------------


def learners(domain: MarkovPolicies) -> dict[str, Any]:
    return {
        "ftpl": Ftpl.tuned(domain, 40, multiplier=10.0),  # a rate at which a round makes a difference
        "shared": Ftpl.tuned(domain, 40, resampling=SharedResampling, multiplier=10.0),
        "literal": LiteralFtpl.tuned(domain, 40, multiplier=10.0),
    }


UNTIMED = Timing(0.0, 0.0, 0.0, 0.0)


def by_hand(game: ArenaGame, learner: Any, domain: MarkovPolicies, streams: Streams) -> Iterator[Round]:
    """The undelayed game without a post box: each feedback is learned in its own round."""
    distribution = learner.start(domain, streams.learner)
    for k in range(game.rounds):
        policy = distribution.draw(streams.learner)
        segment = game.arena.kernel.walk(policy, 0, streams.arena.random((SHAPE[0], 2)))
        weights = learner.weigh(distribution, segment, streams.learner)
        told = Bandit.reveal(game.losses[k], segment, weights)
        distribution = learner.learn(learner.observe(distribution, segment), told)
        yield Round(k, policy, segment, float(told.losses.sum()), weights.trials, UNTIMED, UNTIMED, False, 1)


@pytest.mark.parametrize("name", ["ftpl", "shared", "literal"])
def test_delays_of_zero_change_nothing(name: str) -> None:
    game, domain = world()
    undelayed = list(play_rounds(game, learners(domain)[name], domain, Streams.from_seed(3)))
    zero = replace(game, delays=delays.none(40))
    same(undelayed, list(play_rounds(zero, learners(domain)[name], domain, Streams.from_seed(3))))
    same(undelayed, list(by_hand(game, learners(domain)[name], domain, Streams.from_seed(3))))
    late = replace(game, delays=delays.fixed(40, 1))
    delayed = list(play_rounds(late, learners(domain)[name], domain, Streams.from_seed(3)))
    assert any(one.paid != other.paid for one, other in zip(undelayed, delayed, strict=True))


@pytest.mark.parametrize("name", ["ftpl", "shared", "literal"])
def test_the_same_seed_gives_the_same_game_and_another_seed_another(name: str) -> None:
    game, domain = world()
    first, again = (list(play_rounds(game, learners(domain)[name], domain, Streams.from_seed(3))) for _ in range(2))
    same(first, again)
    other = list(play_rounds(game, learners(domain)[name], domain, Streams.from_seed(4)))
    assert any(one.paid != two.paid for one, two in zip(first, other, strict=True))


def test_a_shorter_game_is_the_beginning_of_a_longer_one() -> None:
    game, domain = world(delays=delays.uniform(40, 0, 9, np.random.default_rng(2)))
    learner = Ftpl.tuned(domain, 40)
    whole = list(play_rounds(game, learner, domain, Streams.from_seed(3)))
    same(list(play_rounds(game, learner, domain, Streams.from_seed(3), rounds=25)), whole[:25])


def test_learners_that_have_acted_alike_in_a_round_are_in_the_same_state() -> None:
    game, domain = world(100)
    games = [list(play_rounds(game, one, domain, Streams.from_seed(3))) for one in learners(domain).values()]
    compared = 0
    for rounds in zip(*games, strict=True):
        for one, other in pairwise(rounds):
            alike = np.cumprod(one.segment.actions == other.segment.actions)[:-1].astype(bool)
            compared += int(alike.sum())
            assert_array_equal(one.segment.states[1:][alike], other.segment.states[1:][alike])
    assert compared > 100, "the test compared too little"


@given(seeds)
@settings(max_examples=10)
def test_dense_and_sparse_arenas_give_the_same_game(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = few_successors(SHAPE, rng)
    losses = FixedLosses(rng.random((20, *SHAPE)))
    kinds: list[SingleKernel] = [Kernel(p), SparseKernel([as_csr(step) for step in p])]
    games = []
    for kernel in kinds:
        domain = MarkovPolicies(kernel)
        games.append(
            list(play_rounds(ArenaGame(Episodic(kernel), losses), Ftpl.tuned(domain, 20), domain, Streams.from_seed(1)))
        )
    same(*games)


def test_streams_of_a_seed_are_unrelated() -> None:
    streams = Streams.from_seed(5)
    arena, learner = streams.arena.random(20_000), streams.learner.random(20_000)
    assert abs(np.corrcoef(arena, learner)[0, 1]) < 5.5 / np.sqrt(20_000)
    assert_array_equal(arena[:5], Streams.from_seed(5).arena.random(5))


# --- what the learner is told of the arena ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", [GeometricResampling, SharedResampling])
def test_a_box_that_holds_one_kernel_weighs_with_the_kernels_law(form: Any) -> None:
    # The box draws its trials otherwise, so bandit games differ in luck; the counts at one segment agree in their first
    # two moments within 5.5 standard errors. Trials that always succeed, or half as often, are caught.
    game, domain = world(12)
    box = MarkovPolicies(BernsteinBox.exactly(game.arena.kernel))
    learner, n = Ftpl(Laplace(2.0), form(60)), 1500
    luck = np.random.default_rng(0)
    drawn = learner.start(domain, luck).draw(luck)
    segment = game.arena.kernel.walk(drawn, 0, luck.random((SHAPE[0], 2)))
    moments = []
    for told in (domain, box):
        rng = np.random.default_rng(3)
        distribution = learner.start(told, rng)
        counts = np.array([learner.weigh(distribution, segment, rng).values for _ in range(n)])
        powers = np.stack([counts, counts**2])
        moments.append((powers.mean(axis=1), powers.var(axis=1) / n))
    (one, spread), (other, spread_too) = moments
    assert (one[0] > 1.2).any(), "some pair is rare enough to tell"
    assert (np.abs(one - other) <= 5.5 * np.sqrt(spread + spread_too) + 1e-12).all()


def test_with_full_information_a_box_that_holds_one_kernel_plays_as_the_kernel() -> None:
    game, domain = world(60, feedback=FullInformation)
    box = MarkovPolicies(BernsteinBox.exactly(game.arena.kernel))
    learner = follow_the_perturbed_leader(domain, 60)
    same(*(list(play_rounds(game, learner, told, Streams.from_seed(2))) for told in (domain, box)))


def test_the_box_of_the_learner_counts_every_move_once() -> None:
    game, _ = world(30, delays=delays.all_at_end(30))
    boxes: list[Any] = []

    @dataclass(frozen=True)
    class Watched(Ftpl):
        def observe(self, distribution: Any, segment: Segment) -> Any:
            after = super().observe(distribution, segment)
            boxes.append(after.domain.dynamics)
            return after

    vacuous = MarkovPolicies(BernsteinBox.vacuous(SHAPE, Radius(1.0, 1.0, 1.0)))
    watched = Watched(Laplace(1.0), SharedResampling(4))
    rounds = list(play_rounds(game, watched, vacuous, Streams.from_seed(2)))
    expected = np.zeros((*SHAPE, SHAPE[1]))
    for one, box in zip(rounds, boxes, strict=True):
        for h in range(SHAPE[0] - 1):
            expected[h, one.segment.states[h], one.segment.actions[h], one.segment.states[h + 1]] += 1
        assert_array_equal(box.visits, expected)


# --- games that cannot be played --------------------------------------------------------------------------------------


def started(rounds: Iterator[Round]) -> Round:
    return next(rounds)


def test_more_rounds_than_losses_are_refused() -> None:
    game, domain = world(5)
    for rounds in (6, 0, -1):
        with pytest.raises(InvalidInput, match=f"rounds = {rounds}; the losses have 5 rounds"):
            started(play_rounds(game, Ftpl.tuned(domain, 5), domain, Streams.from_seed(1), rounds=rounds))


def test_delays_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(InvalidInput, match="4 delays for 5 rounds of losses"):
        world(5, delays=Delays(np.zeros(4, np.int64)))


def test_losses_of_another_shape_are_refused() -> None:
    kernel = random_kernel("dense", SHAPE, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="losses have shape"):
        ArenaGame(Episodic(kernel), FixedLosses(np.zeros((5, 2, 3, 2))))


def test_a_learner_that_needs_more_than_the_game_tells_is_refused() -> None:
    game, domain = world(5)
    with pytest.raises(InvalidInput, match="Ftpl needs FullInformation; the game tells Bandit"):
        started(play_rounds(game, Ftpl(Laplace(1.0), WholeTable()), domain, Streams.from_seed(1)))
    with pytest.raises(InvalidInput, match="Ftpl needs Bandit; the game tells FullInformation"):
        started(
            play_rounds(replace(game, feedback=FullInformation), Ftpl.tuned(domain, 5), domain, Streams.from_seed(1))
        )


def test_a_learner_that_was_told_of_another_world_is_refused() -> None:
    game, domain = world(5)
    other = MarkovPolicies(random_kernel("dense", (3, 2, 2), np.random.default_rng(0)))
    with pytest.raises(InvalidInput, match="the learner's domain has shape"):
        started(play_rounds(game, Ftpl.tuned(other, 5), other, Streams.from_seed(1)))
    moved = replace(domain, initial=1)
    with pytest.raises(InvalidInput, match="the learner starts in state 1, the arena in 0"):
        started(play_rounds(game, Ftpl.tuned(moved, 5), moved, Streams.from_seed(1)))


def test_a_loss_out_of_range_stops_the_game_before_the_learner_meets_it() -> None:
    def call(k: int) -> Floats:
        table = np.full(SHAPE, 0.5)
        table[1, 2, 0] = 1.5 if k == 4 else 0.5
        return table

    game, domain = world(8)
    recorder = Recorder()
    rounds = play_rounds(replace(game, losses=CalledLosses(8, SHAPE, call)), recorder, domain, Streams.from_seed(1))
    played = [next(rounds).k for _ in range(4)]
    with pytest.raises(InvalidInput, match=r"round 4: loss\[h=1, s=2, a=0\] = 1.5"):
        next(rounds)
    assert played == [0, 1, 2, 3]
    kinds = [entry if isinstance(entry, str) else "learn" for entry in recorder.log]
    assert kinds == ["start", *["weigh", "observe", "learn"] * 4], "round 4 must leave no trace"


def test_a_game_that_is_left_early_has_told_all_its_rounds() -> None:
    game, domain = world(40)
    learner = Ftpl(Laplace(1.0), GeometricResampling(3))
    rounds = play_rounds(game, learner, domain, Streams.from_seed(1))
    first = [next(rounds) for _ in range(7)]
    rounds.close()  # type: ignore[attr-defined]
    same(first, list(play_rounds(game, learner, domain, Streams.from_seed(1), rounds=7)))


# --- games of other people ---


@dataclass(frozen=True)
class Foreign:
    """A sequence of somebody else's, wrong in round 7."""

    wrong: float
    shape: tuple[int, int, int] = SHAPE

    def __len__(self) -> int:
        return 40

    def __getitem__(self, k: int) -> Floats:
        table = np.full(SHAPE, 0.5)
        table[2, 1, 0] = self.wrong if k == 7 else 0.5
        return table

    def __iter__(self) -> Iterator[Floats]:
        return (self[k] for k in range(40))

    def batch(self, low: int, high: int) -> Floats:
        return np.stack([self[k] for k in range(low, high)])


@pytest.mark.parametrize("wrong", [-700.0, 1.5, np.nan])
def test_losses_of_somebody_else_are_refused_in_their_round_with_the_place(wrong: float) -> None:
    game, domain = world()
    foreign = replace(game, losses=Foreign(wrong))
    rounds = play_rounds(foreign, Ftpl.tuned(domain, 40), domain, Streams.from_seed(1))
    for _ in range(7):
        next(rounds)
    with pytest.raises(InvalidInput, match=r"round 7|k=7"):
        next(rounds)


def test_delays_may_be_a_list_and_games_of_the_wrong_parts_are_refused() -> None:
    game, domain = world()
    listed: Any = [2] * 40
    told = [replace(game, delays=late) for late in (delays.fixed(40, 2), listed)]
    same(*(list(play_rounds(one, Ftpl.tuned(domain, 40), domain, Streams.from_seed(3))) for one in told))
    wrong: list[Any] = [{"losses": [np.zeros(SHAPE)]}, {"delays": [-1] * 40}, {"delays": [1.5] * 40}]
    for parts in wrong:
        with pytest.raises(InvalidInput):
            replace(game, **parts)
    arenas: list[Any] = [(game.arena.kernel, 99), (np.zeros(3), 0)]
    for kernel, initial in arenas:
        with pytest.raises(InvalidInput):
            Episodic(kernel, initial)
    for learner, rounds in (("ftpl", 3), (Ftpl.tuned(domain, 40), 2.5)):
        with pytest.raises(InvalidInput):
            play_rounds(game, learner, domain, Streams.from_seed(1), rounds)  # type: ignore[arg-type]


def test_feedback_that_would_come_after_the_end_is_not_kept() -> None:
    game, domain = world()
    late = replace(game, delays=delays.fixed(40, 1000))
    rounds = play_rounds(late, Ftpl.tuned(domain, 40), domain, Streams.from_seed(1))
    for _ in range(30):
        next(rounds)
    assert not rounds.gi_frame.f_locals["waiting"]  # type: ignore[attr-defined]


def test_a_distribution_that_does_not_count_its_oracle_calls_is_refused() -> None:
    @dataclass(frozen=True, eq=False)
    class Silent:
        domain: Domain

        def draw(self, rng: np.random.Generator) -> Policies:
            return np.full(self.domain.shape, 1.0 / self.domain.shape[2])

    class Speechless:
        feedback = Bandit

        def start(self, domain: Domain, rng: np.random.Generator) -> Silent:
            return Silent(domain)

    kernel = Kernel(np.ones((1, 1, 2, 1)))
    game, learner = ArenaGame(Episodic(kernel), FixedLosses(np.zeros((1, 1, 1, 2)))), cast(Any, Speechless())
    with pytest.raises(InvalidInput, match="Silent does not count its oracle_calls"):
        list(play_rounds(game, learner, game.arena.domain, Streams.from_seed(1)))
