"""The continuing arena in the only loop: every step is accounted for, nobody is told more than is theirs, bad games."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from algorithms.streams.streams import TryAll, every_policy, parked_entry, plain_law, random_losses
from numpy.testing import assert_allclose, assert_array_equal

from amdp import InvalidInput, Kernel, MarkovPolicies, Segment, StationaryPolicies, one_hot
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.streams.switching import Epoch, PolicySwitching
from amdp.arrays import Policies
from amdp.game import delays
from amdp.game.arenas import Continuing, Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses
from amdp.model.domains import Domain

STEPS = 103


def game_of(length: int = 20, steps: int = STEPS, **settings: Any) -> tuple[ArenaGame, StationaryPolicies]:
    entry = parked_entry(steps)
    arena = Continuing(entry, length)
    return ArenaGame(arena, random_losses(steps, 3, 2), **settings), arena.domain


def rounds_of(game: ArenaGame, domain: Domain, learner: Any, seed: int = 1) -> list[Round]:
    return list(play_rounds(game, learner, domain, Streams.from_seed(seed)))


@dataclass(frozen=True, eq=False)
class Random:
    """Any policy, each time."""

    domain: Domain
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        return one_hot(rng.integers(2, size=3), 2)


@dataclass(frozen=True)
class Listener:
    """Learns nothing and keeps what it is told."""

    heard: list[Feedback] = field(default_factory=list)
    feedback: type = Bandit

    def start(self, domain: Domain, rng: np.random.Generator) -> Random:
        return Random(domain)

    def observe(self, distribution: Random, segment: Segment) -> Random:
        return distribution

    def weigh(self, distribution: Random, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.ones(len(segment.states)))

    def learn(self, distribution: Random, feedback: Feedback) -> Random:
        self.heard.append(feedback)
        return distribution


@pytest.mark.parametrize("length", [5, 20, 50, 102, 103, 500])
def test_all_steps_are_either_entering_or_in_a_segment(length: int) -> None:
    game, domain = game_of(length)
    rounds = rounds_of(game, domain, Listener())
    assert len(rounds) == game.rounds == -(-STEPS // length)
    at = 0
    for k, one in enumerate(rounds):
        assert one.k == k
        assert (one.entering.start, one.entering.stop) == (at, one.segment.start)
        at = min(at + length, STEPS)
        assert one.segment.stop == at
    assert at == STEPS
    assert len(rounds[0].entering.states) == 0


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("length", [2, 9])
def test_the_shortest_streams_of_a_single_state(steps: int, length: int) -> None:
    entry = PolicySwitching(Kernel.homogeneous(np.ones((1, 2, 1)), steps))
    game = ArenaGame(Continuing(entry, length), random_losses(steps, 1, 2))
    learner = Ftpl(Laplace(0.5), SharedResampling(2), TryAll())
    rounds = rounds_of(game, game.arena.domain, learner)
    assert len(rounds) == -(-steps // length)
    assert measure(game, rounds, TryAll()).rounds[-1] == len(rounds)


def test_what_is_paid_is_what_was_met_and_switches_are_kept_apart() -> None:
    game, domain = game_of()
    losses = game.losses.batch(0, STEPS)[:, 0]
    for one in rounds_of(game, domain, Listener()):
        entering, following = losses[one.entering.places].sum(), losses[one.segment.places].sum()
        assert one.paid == pytest.approx(entering + following)
        assert one.paid_entering == pytest.approx(entering)
        followed = one.policy[one.segment.states, one.segment.actions]
        assert_array_equal(followed, np.ones(len(followed)))


def test_bandits_hear_the_losses_of_their_segment_only() -> None:
    game, domain = game_of()
    listener = Listener()
    rounds = rounds_of(game, domain, listener)
    losses = game.losses.batch(0, STEPS)[:, 0]
    for one, told in zip(rounds, listener.heard, strict=True):
        assert isinstance(told, Bandit)
        assert_array_equal(told.losses, losses[one.segment.places])
        assert isinstance(told.segment, Epoch)


def test_full_information_is_the_table_of_the_epoch_and_no_other_step() -> None:
    game, domain = game_of(feedback=FullInformation)
    listener = Listener(feedback=FullInformation)
    rounds_of(game, domain, listener)
    losses = game.losses.batch(0, STEPS)[:, 0]
    for k, told in enumerate(listener.heard):
        assert isinstance(told, FullInformation)
        epoch = np.zeros_like(losses)
        epoch[20 * k : 20 * (k + 1)] = losses[20 * k : 20 * (k + 1)]
        assert_array_equal(told.table, epoch)


def test_the_arena_draws_the_same_luck_for_everyone() -> None:
    game, domain = game_of()
    streams = Streams.from_seed(5), Streams.from_seed(5)
    list(play_rounds(game, Listener(), domain, streams[0]))
    learner = Ftpl(Laplace(0.5), SharedResampling(4), TryAll())
    list(play_rounds(game, learner, domain, streams[1]))
    assert streams[0].arena.random() == streams[1].arena.random()


def test_a_run_can_stop_early_and_repeats_itself() -> None:
    game, domain = game_of()
    learner = Ftpl(Laplace(0.5), SharedResampling(4), TryAll())
    whole = rounds_of(game, domain, learner)
    part = list(play_rounds(game, learner, domain, Streams.from_seed(1), rounds=2))
    for a, b in zip(whole, part, strict=False):
        assert_array_equal(a.policy, b.policy)
        assert_array_equal(a.segment.states, b.segment.states)
    assert len(part) == 2


@pytest.mark.parametrize("estimator", [SharedResampling(5), GeometricResampling(5)], ids=["shared", "apart"])
def test_ftpl_keeps_estimates_at_the_steps_it_saw(estimator: Any) -> None:
    game, domain = game_of()
    learner = Ftpl(Laplace(0.5), estimator, TryAll())
    streams = Streams.from_seed(3)
    distribution = learner.start(domain, streams.learner)
    visit = game.arena.visit(game.arena.begin(), distribution.draw(streams.learner), streams.arena)
    weights = learner.weigh(distribution, visit.segment, streams.learner)
    distribution = learner.learn(distribution, Bandit.reveal(game.table(0), visit.segment, weights))
    expected = np.zeros(domain.shape)
    expected[visit.segment.places] = weights.values * game.table(0)[visit.segment.places]
    assert_allclose(distribution.total, expected)
    assert ((weights.values >= 1.0) & (weights.values <= 5.0)).all()


def test_ftpl_with_full_information_sums_the_losses_of_the_past() -> None:
    game, domain = game_of(feedback=FullInformation)
    learner = Ftpl(Laplace(0.5), WholeTable(), TryAll())
    streams = Streams.from_seed(3)
    distribution = learner.start(domain, streams.learner)
    for k in range(3):
        feedback = FullInformation.reveal(game.table(k), Segment(*np.zeros((2, 0), int)), Weights(np.empty(0)))
        distribution = learner.learn(distribution, feedback)
    losses = game.losses.batch(0, 60)[:, 0]
    assert_allclose(distribution.total[:60], losses)
    assert not distribution.total[60:].any()


# --- regret -----------------------------------------------------------------------------------------------------------


def test_regret_is_that_of_brute_force_switches_included() -> None:
    game, domain = game_of()
    rounds = rounds_of(game, domain, Listener())
    regret = measure(game, rounds, TryAll())
    rows, losses = domain.dynamics.dense().p[0], game.losses.batch(0, STEPS)[:, 0]
    met = np.zeros(STEPS)
    for one in rounds:
        for part in (one.entering, one.segment):
            met[part.start : part.stop] = losses[part.places]
    for j, one in enumerate(rounds):
        stop = one.segment.stop
        best = np.inf
        for actions in every_policy(3, 2):
            law = plain_law(rows, one_hot(actions, 2), 0, stop)
            best = min(best, float((law * losses[:stop, np.arange(3), actions]).sum()))
        assert regret.paid[j] == pytest.approx(met[:stop].sum())
        assert regret.best[j] == pytest.approx(best)
        assert regret.low[j] == regret.high[j]
    assert regret.paid_entering[-1] == pytest.approx(sum(one.paid_entering for one in rounds))


def test_an_open_bound_makes_the_regret_an_interval() -> None:
    @dataclass(frozen=True)
    class Unsure(TryAll):
        def bind(self, domain: Domain) -> Any:
            planner = super().bind(domain)
            sure = planner.minimize
            planner.minimize = lambda costs: replace(sure(costs), bound=sure(costs).bound - 2.0)  # type: ignore[method-assign]
            return planner

    game, domain = game_of()
    regret = measure(game, rounds_of(game, domain, Listener()), Unsure(), checkpoints=[3, 6])
    assert_allclose(regret.high - regret.low, 2.0)
    assert_array_equal(regret.rounds, [3, 6])


# --- games that cannot be played --------------------------------------------------------------------------------------


def test_delays_are_refused() -> None:
    with pytest.raises(InvalidInput, match="without delay"):
        game_of(delays=delays.fixed(6, 1))
    game, domain = game_of(delays=delays.none(6))
    assert len(rounds_of(game, domain, Listener())) == 6


def test_losses_must_have_a_table_for_each_step() -> None:
    arena = Continuing(parked_entry(10), 10)
    with pytest.raises(InvalidInput, match=r"losses have shape \(1, 2, 2\)"):
        ArenaGame(arena, random_losses(10, 2, 2))
    with pytest.raises(InvalidInput, match="9 tables of losses for 10 steps"):
        ArenaGame(arena, random_losses(9, 3, 2))


def test_the_learner_must_be_told_stationary_policies() -> None:
    game, domain = game_of()
    with pytest.raises(InvalidInput, match="Continuing plays StationaryPolicies; the learner is told MarkovPolicies"):
        play_rounds(game, Listener(), MarkovPolicies(domain.dynamics), Streams.from_seed(1))
    episodes = ArenaGame(Episodic(domain.dynamics), FixedLosses(np.zeros((2, *domain.shape))))
    with pytest.raises(InvalidInput, match="Episodic plays MarkovPolicies; the learner is told StationaryPolicies"):
        play_rounds(episodes, Listener(), domain, Streams.from_seed(1))


@pytest.mark.parametrize("length", [0, -3, 2.5])
def test_an_epoch_has_at_least_one_step(length: Any) -> None:
    with pytest.raises(InvalidInput, match="length"):
        Continuing(parked_entry(30), length)


def test_an_epoch_must_be_longer_than_an_attempt() -> None:
    entry = parked_entry(30)
    with pytest.raises(InvalidInput, match="no switch could end within an epoch"):
        Continuing(entry, entry.routes.length)
    assert isinstance(Continuing(entry, entry.routes.length + 1).entry, PolicySwitching)


def test_what_is_no_kernel_or_no_entry_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="kernel is NoneType; it must be a Kernel or a SparseKernel"):
        PolicySwitching(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"entry is Kernel; it must be PolicySwitching\(kernel\)"):
        Continuing(parked_entry(10).kernel, 10)  # type: ignore[arg-type]
