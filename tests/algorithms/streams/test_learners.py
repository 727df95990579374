"""FTPL and Hedge in a stream of steps: parameters, reports, learning, and the same run through every exact oracle."""

from dataclasses import dataclass, replace
from math import e, log, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from algorithms.streams.streams import TryAll, every_policy, iid_losses, parked_entry
from amdp import (
    InvalidInput,
    Kernel,
    MarkovPolicies,
    Planner,
    PlanningOracle,
    StationaryPolicies,
    UnsupportedDomain,
    evaluate,
    instances,
)
from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.estimators.resampling import GeometricResampling, SharedResampling
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.named import from_task, learner
from amdp.algorithms.streams.epochs import (
    FtplTuning,
    HedgeTuning,
    InfiniteBound,
    ReplayedResampling,
    SkipSwitchWindow,
    Tuning,
    ftpl_infinite,
    hedge_infinite,
)
from amdp.algorithms.streams.switching import PolicySwitching, RenewedSwitching
from amdp.algorithms.task import EpochSetup, Task
from amdp.arrays import Costs
from amdp.game.arenas import Continuing
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.model.domains import Domain
from amdp.oracles.stationary.automatic import Automatic
from amdp.oracles.stationary.branch_and_bound import BranchAndBound
from amdp.oracles.stationary.enumeration import Enumeration

LEARNERS = ("ftpl", "ftpl-exact", "ftpl-full", "hedge", "hedge-exact", "hedge-full")


def epoch_learner(name: str, domain: StationaryPolicies, **settings: Any) -> EpochSetup:
    of_task = {key: settings.pop(key) for key in ("oracle", "multiplier") if key in settings}
    setup = from_task(Task(domain, domain.shape[0], learner=name, **of_task), **settings)
    assert isinstance(setup, EpochSetup)
    return setup


def tuning_of(name: str, entry: PolicySwitching) -> Tuning:
    return (FtplTuning if name.startswith("ftpl") else HedgeTuning).practical(entry)


def learner_of(name: str, tuning: Any) -> Any:
    kinds = {"exact": tuning.exact_learner, "full": tuning.full_information_learner}
    make = kinds.get(name.partition("-")[2], tuning.learner)
    return make(TryAll()) if name.startswith("ftpl") else make()


def run(name: str, entry: PolicySwitching, seed: int = 1) -> tuple[ArenaGame, list[Round]]:
    tuning = tuning_of(name, entry)
    learner = learner_of(name, tuning)
    losses = iid_losses(*entry.kernel.shape, seed)
    game = ArenaGame(Continuing(entry, tuning.length), losses, feedback=learner.feedback)
    return game, list(play_rounds(game, learner, StationaryPolicies(entry.kernel), Streams.from_seed(seed)))


def regret_a_step(name: str, steps: int) -> float:
    found = []
    for seed in range(2):
        game, rounds = run(name, PolicySwitching(instances.waiting_ring(steps, 3).kernel), seed)
        found.append(measure(game, rounds, TryAll(), [game.rounds]).low[-1] / steps)
    return float(np.mean(found))


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_plays_a_whole_stream(name: str) -> None:
    game, rounds = run(name, parked_entry(300))
    assert len(rounds) == game.rounds
    assert sum(len(one.entering.states) + len(one.segment.states) for one in rounds) == 300
    if name in ("ftpl", "ftpl-exact"):
        assert sum(one.trials for one in rounds) > 0


@pytest.mark.parametrize("name", ["ftpl", "ftpl-exact", "hedge", "hedge-exact", "ftpl-full", "hedge-full"])
def test_regret_a_step_falls_with_the_steps(name: str) -> None:
    short, long = regret_a_step(name, 400), regret_a_step(name, 3200)
    assert long < 0.75 * short


@dataclass(frozen=True)
class OneByOne(TryAll):
    """Another exact oracle: every policy's value by a backward sweep of its own."""

    def bind(self, domain: Domain) -> Planner:
        planner = super().bind(domain)
        by_table = planner.minimize

        def minimize(costs: Costs) -> Any:
            plans = by_table(costs)
            steps, states, actions = domain.shape
            every = every_policy(states, actions)
            unrolled = np.repeat(every[:, None], steps, axis=1)
            for i, cost in enumerate(costs):
                paid = evaluate(domain, unrolled, np.repeat(cost[None], len(every), axis=0))
                plans.actions[i] = every[paid.argmin()]
            return plans

        planner.minimize = minimize  # type: ignore[method-assign]
        return planner


EXACT = (OneByOne(), Enumeration(), Automatic(), BranchAndBound())


@pytest.mark.parametrize("oracle", EXACT, ids=lambda one: type(one).__name__)
def test_exact_oracles_play_the_same_game(oracle: PlanningOracle) -> None:
    steps = 120
    entry = parked_entry(steps)
    tuning = FtplTuning.practical(entry, epochs=6)
    game = ArenaGame(Continuing(entry, tuning.length), iid_losses(steps, 3, 2))
    runs = [
        list(play_rounds(game, tuning.learner(one), game.arena.domain, Streams.from_seed(2)))
        for one in (TryAll(), oracle)
    ]
    for a, b in zip(*runs, strict=True):
        assert_array_equal(a.segment.states, b.segment.states)
        assert_array_equal(a.segment.actions, b.segment.actions)
        assert (a.paid, a.trials) == (b.paid, b.trials)


def test_hedge_keeps_the_weights_of_the_textbook() -> None:
    """`p ~ exp(-rate * sum of <mu, estimate>)`, with `mu` step by step."""
    entry = parked_entry(60)
    tuning = HedgeTuning.practical(entry, epochs=3)
    learner = tuning.exact_learner()
    domain, streams = StationaryPolicies(entry.kernel), Streams.from_seed(4)
    arena = Continuing(entry, tuning.length)
    game = ArenaGame(arena, iid_losses(60, 3, 2))
    distribution, place, total = learner.start(domain, streams.learner), arena.begin(), np.zeros(domain.shape)
    for k in range(3):
        visit = arena.visit(place, distribution.draw(streams.learner), streams.arena)
        weights = learner.weigh(distribution, visit.segment, streams.learner)
        distribution = learner.learn(
            learner.observe(distribution, visit.segment), Bandit.reveal(game.table(k), visit.segment, weights)
        )
        total[visit.segment.places] += weights.values * game.table(k)[visit.segment.places]
        place = visit.place
    every = distribution.listed.actions
    unrolled = np.repeat(every[:, None], 60, axis=1)
    paid = evaluate(domain, unrolled, np.repeat(total[None], len(every), axis=0))
    assert_allclose(distribution.mixture.chances, softmax(-tuning.rate * paid))


# --- parameters -------------------------------------------------------------------------------------------------------


def test_the_theorems_parameters_are_those_of_the_paper() -> None:
    entry = parked_entry(5000, 4, 3)
    t, s, a, d = 5000, 4, 3, entry.diameter.value
    found = FtplTuning.tuned(entry)
    assert found.rate == pytest.approx(s ** (1 / 3) / (d ** (2 / 3) * t ** (1 / 3)))
    assert found.length == -(-t // round(s ** (2 / 3) * a**0.5 * t ** (5 / 6) / d ** (4 / 3)))
    assert found.limit == -(-(s ** (1 / 3) * a**0.5 * t ** (1 / 6) / d ** (2 / 3)) // 1)
    hedge = HedgeTuning.tuned(entry)
    assert hedge.rate == pytest.approx(s ** (1 / 3) / (a ** (1 / 3) * (d * t) ** (2 / 3)))
    assert hedge.length == -(-t // min(t, round((s * t) ** (2 / 3) * a ** (1 / 3) / d ** (4 / 3))))
    assert FtplTuning.tuned(entry, multiplier=3.0).rate == pytest.approx(3.0 * found.rate)


def test_bounds_are_their_formulas() -> None:
    entry = RenewedSwitching(parked_entry(2000).kernel)
    t, s, a, c = 2000, 3, 2, entry.expected_length
    ftpl = FtplTuning(entry, 20, 0.1, 7, 9)
    assert ftpl.bound is not None
    assert ftpl.bound.total == pytest.approx(
        10 * s * sqrt(a * t * log(a)) / 0.1 + 3 * 0.1 * 100 * s * a * t + s * a * t / (e * 9) + 2 * 19 * c + 20 * 7
    )
    hedge = HedgeTuning(entry, 20, 0.1, 7)
    assert hedge.bound is not None
    assert hedge.bound.total == pytest.approx(s * log(a) / 0.1 + 0.1 * 100 * s * a * t + 2 * 19 * c + 20 * 7)


@pytest.mark.parametrize("kind", [FtplTuning, HedgeTuning])
def test_no_bound_is_stated_where_policies_are_kept(kind: Any) -> None:
    for made in (kind.tuned(parked_entry(5000)), kind.practical(parked_entry(5000))):
        assert made.bound is None
        assert made.is_vacuous
        assert "no bound: none is proved for a policy that stays and is not entered anew" in str(made)


def test_a_vacuous_bound_is_called_vacuous() -> None:
    tuning = FtplTuning.tuned(RenewedSwitching(parked_entry(5000).kernel))
    assert tuning.is_vacuous
    assert "is vacuous: no learner loses more than 5000 steps" in str(tuning)
    assert "give fewer epochs" in str(tuning)
    assert "give fewer epochs" not in str(FtplTuning.practical(parked_entry(5000)))


def test_a_single_epoch_is_reported() -> None:
    entry = PolicySwitching(instances.waiting_ring(20, 8).kernel)
    assert "a single epoch learns nothing: the diameter is too large" in str(HedgeTuning.practical(entry))


def test_hedges_bound_says_something_at_last() -> None:
    entry = RenewedSwitching(instances.waiting_ring(10**7, 2).kernel)
    tuning = HedgeTuning.practical(entry)
    assert not tuning.is_vacuous
    assert "vacuous" not in str(tuning)
    assert FtplTuning.practical(entry).is_vacuous


@pytest.mark.parametrize("name", ["learner", "printed_learner"])
def test_hedges_regret_is_below_its_bound(name: str) -> None:
    entry = RenewedSwitching(instances.waiting_ring(20_000, 2).kernel)
    tuning = HedgeTuning.practical(entry, multiplier=0.25)
    game = ArenaGame(Continuing(entry, tuning.length), iid_losses(20_000, 2, 2))
    played = play_rounds(game, getattr(tuning, name)(), game.arena.domain, Streams.from_seed(1))
    regret = measure(game, played, TryAll(), [game.rounds]).low[-1]
    assert tuning.bound is not None
    assert tuning.bound.total < 20_000
    assert regret < tuning.bound.total / 3  # without learning it is close to the bound


@pytest.mark.parametrize("epochs", [1, 7, 100, 333, 1000])
def test_epochs_can_be_chosen_and_cover_all_steps(epochs: int) -> None:
    entry = parked_entry(1000)
    for tuning in (FtplTuning.tuned(entry, epochs), HedgeTuning.practical(entry, epochs)):
        assert tuning.epochs <= epochs
        assert 3 * tuning.window <= tuning.length
        assert (tuning.epochs - 1) * tuning.length < 1000 <= tuning.epochs * tuning.length


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [FtplTuning, HedgeTuning])
def test_impossible_multipliers_are_refused(kind: Any, multiplier: float) -> None:
    for make in (kind.tuned, kind.practical):
        with pytest.raises(InvalidInput, match=r"rate = .*so must its multiplier"):
            make(parked_entry(1000), multiplier=multiplier)


@pytest.mark.parametrize("epochs", [0, -1, 1001, 2.5])
def test_impossible_epochs_are_refused(epochs: Any) -> None:
    with pytest.raises(InvalidInput, match="epochs = "):
        FtplTuning.tuned(parked_entry(1000), epochs)


def test_exact_and_cheap_learners_differ_in_their_estimator() -> None:
    entry = parked_entry(300)
    tuning = FtplTuning.practical(entry)
    assert tuning.learner(TryAll()).estimator == SkipSwitchWindow(SharedResampling(tuning.limit), tuning.window)
    assert tuning.exact_learner(TryAll()).estimator == ReplayedResampling(tuning.limit, entry)


# --- recipes ----------------------------------------------------------------------------------------------------------


def test_recipes_tune_for_the_whole_stream_or_for_given_epochs() -> None:
    domain = StationaryPolicies(parked_entry(400).kernel)
    ftpl = ftpl_infinite(Task(domain, 400, oracle=TryAll()), epochs=10)
    expected = FtplTuning.practical(PolicySwitching(domain.dynamics), 10)
    assert isinstance(ftpl.learner, Ftpl)
    assert ftpl.learner.perturbation.rate == expected.rate
    assert (ftpl.length, ftpl.bound) == (40, None)
    bolder = hedge_infinite(Task(domain, 400, multiplier=2.0)).learner
    assert isinstance(bolder, Hedge)
    assert bolder.rate == pytest.approx(2.0 * HedgeTuning.practical(PolicySwitching(domain.dynamics)).rate)
    assert epoch_learner("hedge-infinite", domain, multiplier=2.0).learner == bolder
    theorem = hedge_infinite(Task(domain, 400), theorem=True).learner
    assert theorem == HedgeTuning.tuned(PolicySwitching(domain.dynamics)).learner()


def test_the_printed_algorithms_have_names() -> None:
    """Policies entered in every epoch, trials of its own for each step, no step ignored, and the bound for `W = 0`."""
    domain = StationaryPolicies(parked_entry(400).kernel)
    ftpl = epoch_learner("ftpl-infinite-renewed", domain, oracle=TryAll(), epochs=10)
    hedge = epoch_learner("hedge-infinite-renewed", domain, epochs=10)
    entry = RenewedSwitching(domain.dynamics)
    wanted = replace(FtplTuning.practical(entry, 10), window=0)
    assert ftpl.learner == Ftpl(Laplace(wanted.rate), GeometricResampling(wanted.limit), TryAll())
    assert ftpl.bound == wanted.bound
    assert hedge.learner == Hedge(HedgeTuning.practical(entry, 10).rate, ImportanceWeighting())
    assert isinstance(hedge.bound, InfiniteBound)
    assert hedge.bound.blind == hedge.bound.switching == pytest.approx(9 * entry.expected_length)
    for made in (ftpl, hedge):
        assert isinstance(made.entry, RenewedSwitching)
        assert made.length == 40
        game = ArenaGame(Continuing(made.entry, made.length), iid_losses(400, 3, 2))
        rounds = list(play_rounds(game, made.learner, domain, Streams.from_seed(1)))
        assert all(len(one.entering.states) >= entry.routes.length for one in rounds[1:])
    theorem = epoch_learner("hedge-infinite-renewed", domain, theorem=True).learner
    assert isinstance(theorem, Hedge)
    assert theorem.rate == HedgeTuning.tuned(entry).rate


def test_episodic_parameters_are_refused_for_stationary_policies() -> None:
    with pytest.raises(InvalidInput, match="see FtplTuning"):
        Ftpl.tuned(StationaryPolicies(parked_entry(40).kernel), 10, oracle=TryAll())


def test_a_learner_of_epochs_is_more_than_a_learner() -> None:
    domain = StationaryPolicies(parked_entry(400).kernel)
    with pytest.raises(InvalidInput, match=r"ftpl-infinite plays a stream in epochs; build it with .*from_task"):
        learner("ftpl-infinite", domain, 400)


def test_an_oracle_that_does_not_solve_stationary_policies_is_never_replaced() -> None:
    domain = StationaryPolicies(parked_entry(400).kernel)
    for name in ("ftpl-infinite", "ftpl-infinite-renewed"):
        with pytest.raises(UnsupportedDomain, match="dp does not solve StationaryPolicies"):
            epoch_learner(name, domain, oracle="dp")


def test_recipes_refuse_episodes_and_delays() -> None:
    kernel = Kernel.homogeneous(np.ones((1, 2, 1)), 5)
    with pytest.raises(InvalidInput, match="plays one stream of steps, not episodes"):
        ftpl_infinite(Task(MarkovPolicies(kernel), 5))
    with pytest.raises(InvalidInput, match="total_delay = 3"):
        hedge_infinite(Task(StationaryPolicies(kernel), 5, total_delay=3))
