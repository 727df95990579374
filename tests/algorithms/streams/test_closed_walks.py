"""The perturbed leader over closed walks: it leads, it is caught, it seldom changes, and its regret is bounded."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from algorithms.streams.stepping import Seen, drive, graph_domain, listed_walks, pairs_of, random_moves, walk_cost
from amdp import InvalidInput, MarkovPolicies, StationaryPolicies, instances, losses
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.named import learner
from amdp.algorithms.streams.closed_walks import LeadingWalk, WalkingLeader
from amdp.arrays import Floats
from amdp.game.arenas import Stepwise
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.segments import Segment, Step

T = 120


def losses_of(shape: tuple[int, int, int], seed: int) -> Floats:
    """Losses `[t, s, a]`, a third of them zero, with a drift that makes leaders change."""
    rng = np.random.default_rng(seed)
    tables: Floats = rng.random(shape) * (rng.random(shape) < 2 / 3)
    tables[shape[0] // 2 :, ::2] *= 0.2
    return tables


def played(period: int, seed: int, states: int = 4, rate: float = 0.3) -> tuple[Any, list[Seen]]:
    """A random graph of that period, and all steps of a run on it."""
    following = random_moves(states, 2, period, np.random.default_rng(seed))
    domain = graph_domain(following, T)
    return following, list(drive(WalkingLeader(rate), domain, losses_of(domain.shape, seed), seed))


@pytest.mark.parametrize(("period", "seed"), [(1, 1), (1, 2), (2, 3), (3, 4)])
def test_the_walker_is_on_the_leader_from_when_it_was_caught(period: int, seed: int) -> None:
    following, seen = played(period, seed)
    on_walk = 0
    for before, step, _, _ in seen:
        graph, walk, pursuit = before.graph, pairs_of(before.leader), before.pursuit
        for place, (s, a) in enumerate(walk):
            assert following[s, a] == walk[(place + 1) % len(walk)][0]
        assert graph.classes[step.states[0]] == step.time % graph.period  # (v)
        assert len(pursuit.route) <= graph.critical  # (iii)
        if step.time >= pursuit.caught:  # (i)
            assert (step.states[0], step.actions[0]) == walk[step.time % len(walk)]
            on_walk += 1
    assert on_walk > T // 2


@pytest.mark.parametrize(("period", "seed"), [(1, 1), (2, 3), (3, 4)])
def test_the_leader_is_the_cheapest_of_all_listed_walks_in_every_step(period: int, seed: int) -> None:
    following, seen = played(period, seed)
    walks = listed_walks(following, 0, len(following))
    sums, changes = seen[0].before.perturbed.copy(), 0
    for before, step, _, after in seen:
        table = losses_of((T, *following.shape), seed)[step.time]
        for k in before.closing.lengths:
            sums[k * (k - 1) // 2 + step.time % k] += table
        costs = [walk_cost(sums, walk) for walk in walks]
        assert walk_cost(sums, pairs_of(after.leader)) <= min(costs) + 1e-12
        assert_allclose(after.perturbed[after.closing.places(step.time)], sums[after.closing.places(step.time)])
        changes += not before.leader.same_as(after.leader)
    assert changes >= 3


def test_a_new_leader_is_turned_to_at_once_even_on_the_way() -> None:
    on_the_way = 0
    for seed in range(6):
        _, seen = played(1, seed, states=6, rate=1.0)
        for before, step, _, after in seen:
            if not before.leader.same_as(after.leader):
                assert after.pursuit.since == step.time + 1
                on_the_way += step.time + 1 < before.pursuit.caught
            else:
                assert after.pursuit is before.pursuit
    assert on_the_way > 0


def changes_of(made: Any, domain: StationaryPolicies, tables: Floats, runs: int) -> Floats:
    """How often the leader changed in each run."""
    return np.array(
        [
            sum(not one.before.leader.same_as(one.after.leader) for one in drive(made, domain, tables, seed))
            for seed in range(runs)
        ],
        dtype=np.float64,
    )


class RedrawnNoise(WalkingLeader):
    """The wrong algorithm: new noise in every step."""

    def learn(self, distribution: LeadingWalk, feedback: Feedback) -> LeadingWalk:
        fresh = np.random.default_rng(distribution.time).exponential(1.0 / self.rate, distribution.perturbed.shape)
        again = replace(
            distribution, perturbed=distribution.perturbed - fresh, bounds=np.full_like(distribution.bounds, -np.inf)
        ).led()
        return replace(super().learn(again, feedback), perturbed=distribution.perturbed)


def test_the_mean_number_of_changes_is_at_most_rate_times_steps() -> None:
    # The mean of 200 runs exceeds its expectation by 4 deviations with chance 3e-5. Catches: noise that is drawn anew.
    steps, rate, runs = 40, 0.1, 200
    domain = graph_domain(random_moves(3, 2, 1, np.random.default_rng(5)), steps)
    tables = np.ones(domain.shape)
    tables[np.arange(steps), np.arange(steps) % 3] = 0.0
    allowed = rate * steps
    changes = changes_of(WalkingLeader(rate), domain, tables, runs)
    assert changes.mean() <= allowed + 4.0 * changes.std() / np.sqrt(runs)
    assert changes.mean() > 0.1 * allowed
    wrong = changes_of(RedrawnNoise(rate), domain, tables, 20)
    assert wrong.mean() > allowed + 4.0 * wrong.std() / np.sqrt(20)


def test_one_state_is_the_perturbed_leader_over_actions() -> None:
    domain = graph_domain(np.zeros((1, 4), dtype=np.int64), 60)
    tables = losses_of(domain.shape, 7)
    for before, step, _, _ in drive(WalkingLeader(0.5), domain, tables, 7):
        noise = -(before.perturbed[0, 0] - tables[: step.time, 0].sum(axis=0))
        assert step.actions[0] == (tables[: step.time, 0].sum(axis=0) - noise).argmin()
        assert before.graph.critical == 0


WORLDS = {
    "ring of period 1": instances.waiting_ring,
    "ring of period 2": instances.swinging_ring,
    "star of period 1": instances.waiting_star,
    "star of period 2": instances.swinging_star,
}


def regret_of(world: Any, steps: int, seed: int, adversary: str = "bernoulli") -> tuple[float, float]:
    """The regret of one run, and its bound."""
    made = world(steps, 4)
    arena = Stepwise(made.kernel, made.initial)
    tables = losses.named(adversary, (1, *made.shape[1:]), steps, seed, np.clip(made.costs[:1], 0.2, 0.8))
    player: Any = learner("ct-deterministic", arena.domain, steps)
    game = ArenaGame(arena, tables, None, FullInformation)
    found = measure(game, play_rounds(game, player, arena.domain, Streams.from_seed(seed)), checkpoints=[steps])
    return float(found.high[-1]), player.bound(arena.domain, steps).total


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_regret_stays_below_the_bound(world: Any) -> None:
    regrets, bounds = np.array([regret_of(world, 1000, seed) for seed in range(2)]).T
    assert regrets.mean() <= bounds[0] < 1000


@pytest.mark.parametrize("world", [instances.waiting_ring, instances.swinging_star])
def test_the_regret_grows_slower_than_the_steps(world: Any) -> None:
    short, long = (np.mean([regret_of(world, steps, seed)[0] for seed in range(2)]) for steps in (300, 2400))
    assert long / 2400 < 0.6 * short / 300


def test_the_tuned_rate_balances_the_bound() -> None:
    world = instances.waiting_ring(1000, 5)
    tuned = WalkingLeader.tuned(world_domain(world), 1000)
    bound = tuned.bound(world_domain(world), 1000)
    assert_allclose(bound.penalty, bound.stability + bound.catching - 4.0)  # d = 4 to catch the first
    assert bound.total == bound.penalty + bound.stability + bound.catching + bound.prefix
    for multiplier in (0.5, 2.0):
        other = WalkingLeader.tuned(world_domain(world), 1000, multiplier=multiplier)
        assert other.bound(world_domain(world), 1000).total > bound.total


def world_domain(world: instances.Instance) -> StationaryPolicies:
    """All stationary policies of a world."""
    return StationaryPolicies(world.kernel, world.initial)


def test_late_losses_still_count_for_their_own_step() -> None:
    domain = graph_domain(random_moves(3, 2, 1, np.random.default_rng(5)), 20)
    made, nothing = WalkingLeader(0.5), Weights(np.empty(0))
    distribution = made.start(domain, np.random.default_rng(1))
    steps = []
    for time in range(4):
        action = int(distribution.draw(np.random.default_rng(1))[distribution.state].argmax())
        reached = int(distribution.graph.following[distribution.state, action])
        steps.append(Step(np.array([distribution.state]), np.array([action]), time=time, reached=reached))
        distribution = made.observe(distribution, steps[-1])
    late = made.learn(distribution, FullInformation(steps[1], nothing, np.ones((1, 3, 2))))
    added = late.perturbed - distribution.perturbed
    assert_allclose(np.flatnonzero(added.any(axis=(1, 2))), distribution.closing.places(1))


def test_what_it_cannot_play_is_refused() -> None:
    domain = graph_domain(np.array([[0, 1], [0, 1]]), 10)
    made = WalkingLeader(0.5)
    distribution = made.start(domain, np.random.default_rng(1))
    step = Step(np.array([0]), np.array([0]), time=0, reached=0)
    nothing = Weights(np.empty(0))
    with pytest.raises(InvalidInput, match=r"losses\[h=0, s=1, a=0\] = -1; it must not be negative"):
        made.learn(distribution, FullInformation(step, nothing, np.array([[[0.0, 0.0], [-1.0, 0.0]]])))
    with pytest.raises(InvalidInput, match="FullInformation, not Bandit"):
        made.learn(distribution, Bandit(step, nothing, np.zeros(1)))
    with pytest.raises(InvalidInput, match="Stepwise arena"):
        made.observe(distribution, Segment(np.array([0]), np.array([0])))
    with pytest.raises(InvalidInput, match="plays one stream of steps, not episodes"):
        learner("ct-deterministic", MarkovPolicies(domain.dynamics), 10)
    with pytest.raises(InvalidInput, match="without delay"):
        learner("ct-deterministic", domain, 10, total_delay=3)
    with pytest.raises(InvalidInput, match="rate"):
        WalkingLeader(0.0)
    with pytest.raises(InvalidInput, match=r"pair \(s=0, a=1\)"):
        learner("ct-deterministic", world_domain(instances.random_parked(10, 3, 2, np.random.default_rng(1))), 10)
