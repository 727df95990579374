"""FLL*: the noise keeps its law, the leader seldom changes, and the oracle is asked only then."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest, laplace

from amdp import BernsteinBox, InvalidInput, MarkovPolicies, Radius, StationaryPolicies, instances, losses
from amdp.algorithms.doubling import UnknownRounds
from amdp.algorithms.estimators.feedback import FullInformation, Weights
from amdp.algorithms.named import learner
from amdp.algorithms.streams.lazy_leader import LazyLeader, LazySum
from amdp.arrays import Floats
from amdp.game.arenas import Episodic, Stepwise
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.segments import Segment
from amdp.oracles.base import Planner, bind

RATE = 0.4
TABLES = np.random.default_rng(1).random((5, 1, 1, 2))
WORLD = instances.build("tiny")


def check_round(before: LazySum, after: LazySum, table: Floats, stays: bool) -> None:
    """The losses are added; the noise takes them back, or turns around."""
    assert_allclose(after.total, before.total + table)
    if stays:
        assert_allclose(after.total + after.noise, before.total + before.noise)
    else:
        assert_array_equal(after.noise, -before.noise)


def runs(n: int, uniforms: Any) -> tuple[Floats, Floats]:
    """The noise `[n, 2]` after five rounds, and how often the sum changed in each round `[5]`."""
    rng, noise, changes = np.random.default_rng(2), np.empty((n, 2)), np.zeros(5)
    for i in range(n):
        told = LazySum.drawn(RATE, (1, 1, 2), rng)
        for k, table in enumerate(TABLES):
            before = told
            told, stays = told.update(table, 0, uniforms(rng))
            if i < 50:
                check_round(before, told, table, stays)
            changes[k] += not stays
        noise[i] = told.noise[0, 0]
    return noise, changes / n


def test_the_noise_keeps_its_law_and_the_sum_seldom_changes() -> None:
    # Kolmogorov and Smirnov at level 1e-4, frequencies within 4 deviations (3e-5 each), fixed seeds.
    # Catches: noise that follows the losses always, and noise that is reflected always.
    n = 3000
    noise, changes = runs(n, lambda rng: rng.random())
    assert kstest(noise.reshape(-1), laplace(scale=1.0 / RATE).cdf).pvalue > 1e-4
    allowed = RATE * TABLES.sum(axis=(1, 2, 3))
    assert (changes <= allowed + 4.0 * np.sqrt(changes * (1.0 - changes) / n)).all()
    assert (changes > 0.2 * allowed).all()
    shifted, _ = runs(1000, lambda rng: 0.0)
    assert kstest(shifted.reshape(-1), laplace(scale=1.0 / RATE).cdf).pvalue < 1e-8
    _, always = runs(200, lambda rng: np.inf)
    assert (always == 1.0).all()
    assert (always > allowed).any()


def test_only_the_steps_that_were_heard_of_change() -> None:
    told = LazySum.drawn(RATE, (6, 2, 2), np.random.default_rng(1))
    after, stays = told.update(np.ones((1, 2, 2)), 3, 0.0)
    assert stays
    assert_array_equal(np.flatnonzero((after.total != told.total).any(axis=(1, 2))), [3])
    assert_array_equal(np.flatnonzero((after.noise != told.noise).any(axis=(1, 2))), [3])


def test_the_leader_is_always_what_the_oracle_would_say_and_asks_it_seldom() -> None:
    made = LazyLeader(0.05)
    domain = WORLD.domain
    asked, planner = 0, bind("dp", domain)
    distribution = made.start(domain, np.random.default_rng(1))
    tables = losses.named("bernoulli", WORLD.shape, 60, 1, WORLD.costs)
    nothing = Segment(np.empty(0, np.int64), np.empty(0, np.int64))
    for k in range(60):
        before = distribution
        distribution = made.learn(distribution, FullInformation(nothing, Weights(np.empty(0)), tables[k]))
        asked += distribution.actions is not before.actions
        best = planner.minimize((distribution.sum.total + distribution.sum.noise)[None])
        assert_array_equal(distribution.actions, best.actions[0])
    assert 0 < asked < 40
    assert distribution.updates == 60


def test_in_episodes_the_regret_is_below_the_bound() -> None:
    rounds = 1500
    player: Any = learner("fll", WORLD.domain, rounds)
    game = ArenaGame(
        Episodic(WORLD.kernel, WORLD.initial),
        losses.named("bernoulli", WORLD.shape, rounds, 1, WORLD.costs),
        None,
        FullInformation,
    )
    found = measure(game, play_rounds(game, player, WORLD.domain, Streams.from_seed(1)), checkpoints=[150, rounds])
    assert found.high[-1] <= player.bound(WORLD.domain, rounds).total
    assert found.high[-1] / rounds < 0.7 * found.high[0] / 150


def test_over_a_box_it_plans_again_when_the_box_narrows() -> None:
    box = MarkovPolicies(BernsteinBox.vacuous(WORLD.shape, Radius.paper(WORLD.shape, 40, scale=0.01)), WORLD.initial)
    player: Any = learner("fll", box, 40)
    assert player.bound(box, 40) is None
    game = ArenaGame(
        Episodic(WORLD.kernel, WORLD.initial), losses.named("bernoulli", WORLD.shape, 40, 1), None, FullInformation
    )
    assert any(one.rebuilt for one in play_rounds(game, player, box, Streams.from_seed(1)))


def calls(kind: type[Planner], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number that grows with every question to planners of the kind."""
    asked, minimize = [0], kind.minimize

    def counted(self: Planner, costs: Any) -> Any:
        asked[0] += 1
        return minimize(self, costs)

    monkeypatch.setattr(kind, "minimize", counted)
    return asked


@pytest.mark.parametrize("doubled", [False, True])
def test_plans_are_counted_when_the_oracle_is_asked(doubled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = calls(type(bind("dp", WORLD.domain)), monkeypatch)
    player = UnknownRounds(LazyLeader.tuned, 8, FullInformation) if doubled else learner("fll", WORLD.domain, 60)
    table = losses.named("bernoulli", WORLD.shape, 60, 1)
    game = ArenaGame(Episodic(WORLD.kernel, WORLD.initial), table, None, FullInformation)
    plans = [one.plans for one in play_rounds(game, player, WORLD.domain, Streams.from_seed(1))]
    assert sum(plans) == asked[0] > 1
    assert min(plans) == 0


@pytest.mark.parametrize("oracle", ["auto", "branch-and-bound"])
def test_plans_in_a_stream_are_counted_when_the_oracle_is_asked(oracle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lists its policies is asked only when it is in doubt who leads."""
    world = instances.build("random-entered", n_states=3, n_actions=2, n_steps=60)
    domain = StationaryPolicies(world.kernel, world.initial)
    player = learner("ct-oracle", domain, 60, rate=1.0, oracle=oracle)
    asked = calls(type(bind(oracle, domain)), monkeypatch)
    steps = losses.named("bernoulli", (1, *world.shape[1:]), 60, 1)
    game = ArenaGame(Stepwise(world.kernel, world.initial), steps, None, FullInformation)
    plans = [one.plans for one in play_rounds(game, player, domain, Streams.from_seed(1))]
    assert sum(plans) == asked[0] > 1
    assert (sum(plans) < 30) == (oracle == "auto")


def test_the_tuned_rate_balances_the_bound_and_delays_count_as_rounds() -> None:
    bound: Any = LazyLeader.tuned(WORLD.domain, 700).bound(WORLD.domain, 700)
    assert_allclose(bound.penalty, bound.stability)
    assert learner("fll", WORLD.domain, 500, 200) == LazyLeader.tuned(WORLD.domain, 700)


def test_what_it_cannot_learn_from_is_refused() -> None:
    made = LazyLeader(0.1)
    distribution = made.start(WORLD.domain, np.random.default_rng(1))
    nothing, empty = Segment(np.empty(0, np.int64), np.empty(0, np.int64)), Weights(np.empty(0))
    with pytest.raises(InvalidInput, match="must not be negative"):
        made.learn(distribution, FullInformation(nothing, empty, -np.ones(WORLD.shape)))
    with pytest.raises(InvalidInput, match="see LazyPolicies"):
        made.learn(distribution, FullInformation(nothing, empty, np.ones((1, *WORLD.shape[1:]))))
    with pytest.raises(InvalidInput, match="rate"):
        LazyLeader(0.0)
