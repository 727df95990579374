"""MDP-E and MDP-Exp3: invariants, exact unbiasedness, the lag, their ancestors with one state, and regret."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from worlds import seeds

from algorithms.streams.streams import TryAll, every_policy, random_losses
from amdp import InvalidInput, Kernel, MarkovPolicies, Segment, StationaryPolicies, instances, losses
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.named import learner
from amdp.algorithms.streams.ergodic import DelayedLocalExperts, LocalExperts, MdpE, MdpExp3
from amdp.arrays import Floats
from amdp.game.arenas import Stepwise
from amdp.game.delays import recorded
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.losses import FixedLosses, LossSequence
from amdp.model.mixing import Chain, least_visits, mixing

NOBODY = np.random.default_rng(0)  # where a generator is asked for and not used


def rows_of(states: int, actions: int, seed: int = 1, contraction: float = 0.7) -> Floats:
    rng = np.random.default_rng(seed)
    return (1 - contraction) / states + contraction * rng.dirichlet(np.full(states, 0.5), size=(states, actions))


def domain_of(rows: Floats, steps: int = 100) -> StationaryPolicies:
    return StationaryPolicies(Kernel.homogeneous(rows, steps))


def rounds_of(who: Any, rows: Floats, sequence: LossSequence, seed: int = 1) -> list[Round]:
    game = ArenaGame(Stepwise(Kernel.homogeneous(rows, len(sequence))), sequence, feedback=who.feedback)
    return list(play_rounds(game, who, game.arena.domain, Streams.from_seed(seed)))


def softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    share: Floats = weights / weights.sum(axis=1, keepdims=True)
    return share


def plain_ahead(rows: Floats, policy: Floats, table: Floats) -> Floats:
    """`Q` by the textbook: least squares for the law, then the singular system with `<d, V> = 0` beside it."""
    states = len(rows)
    moves = np.einsum("sa,say->sy", policy, rows)
    balance = np.vstack([moves.T - np.eye(states), np.ones(states)])
    law = np.linalg.lstsq(balance, np.append(np.zeros(states), 1.0), rcond=None)[0]
    paid = (policy * table).sum(axis=1)
    mean = law @ paid
    bellman = np.vstack([np.eye(states) - moves, law])
    bias = np.linalg.lstsq(bellman, np.append(paid - mean, 0.0), rcond=None)[0]
    ahead: Floats = table - mean + rows @ bias
    return ahead


def expected_regret(rows: Floats, policies: list[Floats], tables: Floats) -> float:
    """The exact expected regret of policies `[s, a]` that do not depend on the luck, against losses `[t, s, a]`."""
    every = np.eye(rows.shape[1])[every_policy(*rows.shape[:2])]
    law, laws = np.eye(len(rows))[0], np.tile(np.eye(len(rows))[0], (len(every), 1))
    moves = np.einsum("nsa,say->nsy", every, rows)
    paid, theirs = 0.0, np.zeros(len(every))
    for policy, table in zip(policies, tables, strict=True):
        paid += law @ (policy * table).sum(axis=1)
        theirs += np.einsum("ns,nsa,sa->n", laws, every, table)
        law = law @ np.einsum("sa,say->sy", policy, rows)
        laws = np.einsum("ns,nsy->ny", laws, moves)
    return float(paid - theirs.min())


# --- MDP-E ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("states", "actions"), [(1, 3), (2, 2), (4, 3)])
def test_mdp_e_is_hedge_over_long_run_costs_in_every_state(states: int, actions: int) -> None:
    rows, sequence = rows_of(states, actions), random_losses(40, states, actions)
    scores = np.zeros((states, actions))
    for one, table in zip(rounds_of(MdpE(0.3), rows, sequence), sequence, strict=True):
        policy = softmax(scores)
        assert_allclose(one.policy, policy, atol=1e-9)
        scores -= 0.3 * plain_ahead(rows, policy, table[0])


def test_states_that_were_never_visited_learn_too() -> None:
    rows, sequence = rows_of(4, 2), random_losses(1, 4, 2)
    who = MdpE(0.5)
    distribution = who.start(domain_of(rows), NOBODY)
    step = Segment(np.array([0]), np.array([1]))
    told = FullInformation.reveal(sequence[0], step, Weights(np.empty(0)))
    after = who.learn(who.observe(distribution, step), told)
    assert (np.abs(after.draw(NOBODY) - 0.5).max(axis=1) > 1e-3).all()


def test_a_constant_on_all_losses_leaves_the_run_as_it_is() -> None:
    rows = rows_of(4, 3)
    low = np.random.default_rng(2).random((60, 1, 4, 3)) / 2
    one, other = (rounds_of(MdpE(0.5), rows, FixedLosses(array)) for array in (low, low + 0.5))
    for a, b in zip(one, other, strict=True):
        assert_allclose(a.policy, b.policy, atol=1e-10)
        assert_array_equal(a.segment.states, b.segment.states)
        assert_array_equal(a.segment.actions, b.segment.actions)


def test_with_one_state_mdp_e_is_hedge_at_its_classic_rate() -> None:
    steps, rows = 50, np.ones((1, 3, 1))
    sequence = random_losses(steps, 1, 3)
    who = MdpE.tuned(domain_of(rows), steps)
    assert who.rate == pytest.approx(sqrt(8 * log(3) / steps))
    bound = who.bound(domain_of(rows), steps)
    assert bound is not None
    assert bound.total == pytest.approx(sqrt(steps * log(3) / 2))
    total = np.zeros((1, 3))
    for one, table in zip(rounds_of(who, rows, sequence), sequence, strict=True):
        assert_allclose(one.policy, softmax(-who.rate * total), atol=1e-12)
        total += table[0]


@given(seeds, st.sampled_from((0.05, 0.5, 3.0)), st.sampled_from((0.2, 0.7, 0.95)))
def test_policies_of_mdp_e_change_slowly(seed: int, rate: float, contraction: float) -> None:
    rows = rows_of(3, 3, seed, contraction)
    rng = np.random.default_rng(seed)
    harsh = FixedLosses(rng.integers(0, 2, size=(8, 1, 3, 3)).astype(float))
    found = mixing(Kernel.homogeneous(rows, 8))
    policies = [one.policy for one in rounds_of(MdpE(rate), rows, harsh)]
    for here, there in pairwise(policies):
        moved = np.abs(here - there).sum(axis=1).max() / 2
        assert moved <= np.tanh(rate * (1 + found.influence * found.memory) / 4) + 1e-12


# A world in which what is cheap now is dear in the long run: action 0 saves 0.2 and leads to the dear state 3.
TEMPTING = 0.075 + 0.7 * np.stack([np.tile(np.eye(4)[3], (4, 1)), np.tile(np.eye(4)[0], (4, 1))], axis=1)
TEMPTATION = np.array([0.3, 0.4, 0.5, 0.9])[:, None] + np.array([-0.1, 0.1])


def tempting_losses(steps: int, seed: int) -> FixedLosses:
    rng = np.random.default_rng(seed)
    return FixedLosses((rng.random((steps, 1, 4, 2)) < TEMPTATION).astype(float))


@dataclass(frozen=True)
class Myopic(MdpE):
    """A mutation: it looks at the losses of the step alone."""

    def learn(self, distribution: LocalExperts, feedback: Feedback) -> LocalExperts:
        assert isinstance(feedback, FullInformation)
        return replace(distribution, rule=distribution.rule.moved(-self.rate * feedback.table[0]))


def test_regret_of_mdp_e_grows_like_a_root() -> None:
    # The policies do not depend on the path, so the regret is exact; the losses have a fixed seed. At four times the
    # tuned rate it was 13.5 .. 14 and 26.7 .. 27.2 over three seeds. With four times the steps a root doubles. Caught:
    # Hedge on the losses of a step, whose regret is linear, and any error in sign or in the linear system.
    found: dict[str, list[float]] = {"mdp-e": [], "myopic": []}
    for steps in (500, 2000):
        sequence = tempting_losses(steps, 3)
        tuned = MdpE.tuned(domain_of(TEMPTING), steps, multiplier=4.0)
        for name, who in (("mdp-e", tuned), ("myopic", Myopic(tuned.rate))):
            policies = [one.policy for one in rounds_of(who, TEMPTING, sequence)]
            found[name].append(expected_regret(TEMPTING, policies, sequence.batch(0, steps)[:, 0]))
    few, many = found["mdp-e"]
    assert 0 < many < 2.3 * few
    few, many = found["myopic"]
    assert many > 3.5 * few
    assert many > 4 * found["mdp-e"][1]


@pytest.mark.parametrize("kind", ["bernoulli", "swap", "walk", "uniform", "switching"])
@pytest.mark.parametrize("rate", [None, 0.2])
def test_the_bound_of_mdp_e_holds(kind: str, rate: float | None) -> None:
    steps, world = 400, instances.random_ergodic(400, 4, 3, np.random.default_rng(7))
    sequence = losses.named(kind, (1, 4, 3), steps, seed=2, costs=world.costs[:1])
    domain = StationaryPolicies(world.kernel)
    who = MdpE.tuned(domain, steps) if rate is None else MdpE(rate)
    rows: Floats = np.array(world.kernel.dense().p[0])
    policies = [one.policy for one in rounds_of(who, rows, sequence)]
    bound = who.bound(domain, steps)
    assert bound is not None
    assert expected_regret(rows, policies, sequence.batch(0, steps)[:, 0]) <= bound.total


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_tuned_rate_of_mdp_e_balances_its_bound(factor: float) -> None:
    domain = domain_of(rows_of(4, 3))
    who = MdpE.tuned(domain, 1000)
    best, other = who.bound(domain, 1000), MdpE(factor * who.rate).bound(domain, 1000)
    assert best is not None
    assert other is not None
    assert best.total < other.total
    assert best.penalty == pytest.approx(best.stability + best.tracking)


# --- MDP-Exp3 ---------------------------------------------------------------------------------------------------------


Shown = tuple[DelayedLocalExperts, Segment, Weights]


def followed(who: Any, rows: Floats, sequence: LossSequence, seed: int = 1) -> Iterator[Shown]:
    """Play MDP-Exp3 step by step, and show its state before each step, the step, and its weight."""
    arena = Stepwise(Kernel.homogeneous(rows, len(sequence)))
    distribution, place = who.start(arena.domain, NOBODY), arena.begin()
    rng = np.random.default_rng(seed)
    for table in sequence:
        _, step, place = arena.visit(place, distribution.draw(NOBODY), rng)
        weights = who.weigh(distribution, step, NOBODY)
        yield distribution, step, weights
        distribution = who.learn(who.observe(distribution, step), Bandit.reveal(table, step, weights))


@pytest.mark.parametrize("lookback", [1, 2, 5])
def test_the_law_looking_back_is_a_product_of_the_policies_since(lookback: int) -> None:
    rows = rows_of(3, 2)
    seen: list[tuple[int, int, Floats]] = []
    for t, (distribution, step, weights) in enumerate(
        followed(MdpExp3(0.3, 0.1, lookback), rows, random_losses(30, 3, 2))
    ):
        policy, (s, a) = distribution.draw(NOBODY), (int(step.states[0]), int(step.actions[0]))
        if t < lookback:
            assert_array_equal(weights.values, [0.0])
        else:
            then_s, then_a, _ = seen[t - lookback]
            law = rows[then_s, then_a]
            for _, _, between in seen[t - lookback + 1 :]:
                law = law @ np.einsum("sa,say->sy", between, rows)
            assert_allclose(distribution.laws[0], law, atol=1e-12)
            assert_allclose(distribution.laws.sum(axis=1), 1.0, atol=1e-12)
            assert weights.values[0] == pytest.approx(1.0 / (law[s] * policy[s, a]))
        seen.append((s, a, policy))


@dataclass(frozen=True)
class Hasty(MdpExp3):
    """A mutation: estimates are used at once."""

    def learn(self, distribution: DelayedLocalExperts, feedback: Feedback) -> DelayedLocalExperts:
        queued = super().learn(replace(distribution, waiting=()), feedback)
        return replace(queued, rule=queued.rule.moved(-self.rate * queued.waiting[0]), waiting=())


Past = tuple[tuple[int, int], ...]


def worst_bias(who: MdpExp3, rows: Floats, tables: Floats) -> tuple[float, float]:
    """How far `E[. | steps up to t - N]` is from 0, at most: of the estimate less the losses, and of `Q` of both."""
    steps, (states, actions) = len(tables), rows.shape[:2]
    means: dict[tuple[int, Past], Floats] = {}
    chances: dict[tuple[int, Past], float] = {}

    def follow(distribution: DelayedLocalExperts, past: Past, state: int, chance: float) -> None:
        t = len(past)
        if t == steps:
            return
        policy = distribution.draw(NOBODY)
        for a in range(actions):
            step = Segment(np.array([state]), np.array([a]))
            weights = who.weigh(distribution, step, NOBODY)
            here, now = chance * policy[state, a], (*past, (state, a))
            if t >= who.lookback:
                known = t, now[: t - who.lookback + 1]
                error = -tables[t, 0]
                error[state, a] += weights.values[0] * tables[t, 0, state, a]
                both = np.stack([error, Chain(rows, policy).long_run(error).ahead])
                means[known] = means.get(known, 0.0) + here * both
                chances[known] = chances.get(known, 0.0) + here
            after = who.learn(who.observe(distribution, step), Bandit.reveal(tables[t], step, weights))
            for y in range(states):
                follow(after, now, y, here * rows[state, a, y])

    follow(who.start(domain_of(rows), NOBODY), (), 0, 1.0)
    worst = np.max([np.abs(mean / chances[known]).max(axis=(1, 2)) for known, mean in means.items()], axis=0)
    return float(worst[0]), float(worst[1])


def test_estimates_are_unbiased_given_what_was_known_and_only_because_they_are_late() -> None:
    # Every path of 6 steps is followed: no luck. Used at once, they make `pi_t` depend on the last steps, and so does
    # where one is; the estimate of the losses stays right for N = 2, but not what it says about the long run.
    rows, tables = rows_of(2, 2, 3), random_losses(6, 2, 2, 5).array
    assert max(worst_bias(MdpExp3(0.5, 0.2, 2), rows, tables)) < 1e-11
    assert worst_bias(Hasty(0.5, 0.2, 2), rows, tables)[1] > 1e-2


def test_looking_back_three_steps_estimates_of_losses_must_be_late_too() -> None:
    rows, tables = rows_of(2, 1, 3), random_losses(7, 2, 1, 5).array
    assert max(worst_bias(MdpExp3(0.5, 0.2, 3), rows, tables)) < 1e-11


@pytest.mark.parametrize("lookback", [1, 2, 4])
@pytest.mark.parametrize("when", [4, 6])
def test_an_estimate_moves_the_policy_exactly_so_many_steps_later(lookback: int, when: int) -> None:
    array = np.zeros((14, 1, 3, 2))
    array[when] = 1.0
    policies = [
        distribution.draw(NOBODY)
        for distribution, _, _ in followed(MdpExp3(0.4, 0.1, lookback), rows_of(3, 2), FixedLosses(array))
    ]
    for t, policy in enumerate(policies):
        assert (np.abs(policy - 0.5).max() > 1e-6) == (t >= when + lookback)


@pytest.mark.parametrize("lookback", [1, 3])
def test_mdp_exp3_is_the_plain_recursion(lookback: int) -> None:
    rows, sequence = rows_of(3, 2), random_losses(30, 3, 2)
    scores, queue = np.zeros((3, 2)), [np.zeros((3, 2))] * 30
    for t, (distribution, step, weights) in enumerate(followed(MdpExp3(0.2, 0.3, lookback), rows, sequence)):
        if t >= lookback:
            scores -= 0.2 * queue[t - lookback]
        policy = 0.7 * softmax(scores) + 0.15
        assert_allclose(distribution.draw(NOBODY), policy, atol=1e-9)
        estimate = np.zeros((3, 2))
        place = int(step.states[0]), int(step.actions[0])
        estimate[place] = weights.values[0] * sequence[t][0][place]
        queue[t] = plain_ahead(rows, policy, estimate)


def test_with_one_state_mdp_exp3_is_exp3() -> None:
    sequence, rows = random_losses(40, 1, 3), np.ones((1, 3, 1))
    who = MdpExp3.tuned(domain_of(rows), 40)
    assert who.lookback == 1
    total = np.zeros((1, 3))
    for t, (distribution, step, _) in enumerate(followed(who, rows, sequence)):
        policy = (1 - who.exploration) * softmax(-who.rate * total) + who.exploration / 3
        assert_allclose(distribution.draw(NOBODY), policy, atol=1e-12)
        a = int(step.actions[0])
        if t >= 1:
            total[0, a] += sequence[t][0, 0, a] / policy[0, a]


def test_a_step_of_the_weights_is_at_most_one() -> None:
    steps, rows = 3000, rows_of(4, 2, 2, 0.5)
    domain = domain_of(rows, steps)
    who, beta = MdpExp3.tuned(domain, steps), least_visits(domain.dynamics).value
    assert who.exploration < 0.5
    largest = 0.0
    for distribution, step, weights in followed(who, rows, random_losses(steps, 4, 2)):
        if weights.values[0] > 0:
            assert distribution.laws[0, step.states[0]] >= beta / 2
        if distribution.waiting:
            largest = max(largest, who.rate * float(np.abs(distribution.waiting[-1]).max()))
        assert distribution.unlikely == 0
    assert 0 < largest <= 1


def test_steps_in_unlikely_states_are_counted() -> None:
    rows = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.1, 0.9], [0.2, 0.8]]])  # after one step it is mostly where it was
    half = least_visits(domain_of(rows).dynamics).value / 2
    seen = 0
    for distribution, step, _ in followed(MdpExp3(0.3, 0.1, 1), rows, random_losses(200, 2, 2)):
        assert distribution.unlikely == seen
        seen += int(len(distribution.laws) == 1 and distribution.laws[0, step.states[0]] < half)
    assert seen > 0


@dataclass(frozen=True)
class Shortsighted(MdpExp3):
    """A mutation: it takes the estimate of the losses for that of the long run."""

    def learn(self, distribution: DelayedLocalExperts, feedback: Feedback) -> DelayedLocalExperts:
        assert isinstance(feedback, Bandit)
        estimate = np.zeros(distribution.rule.scores.shape)
        estimate[feedback.segment.states, feedback.segment.actions] = feedback.losses * feedback.weights.values
        queued = super().learn(distribution, feedback)
        return replace(queued, rule=distribution.rule.moved(-self.rate * estimate))


def quarters(kind: type[MdpExp3]) -> Floats:
    """The regret in each quarter of 6000 steps with a fixed gap."""
    steps = 6000
    arena = Stepwise(Kernel.homogeneous(TEMPTING, steps))
    game = ArenaGame(arena, tempting_losses(steps, 12))
    tuned = MdpExp3.balanced(arena.domain, steps, multiplier=10.0)
    who = kind(tuned.rate, tuned.exploration, tuned.lookback)
    regret = measure(
        game, play_rounds(game, who, arena.domain, Streams.from_seed(2)), TryAll(), [1500, 3000, 4500, 6000]
    )
    return np.diff(regret.low, prepend=0.0)


def test_regret_of_mdp_exp3_levels_off() -> None:
    # Over six other seeds the first quarter cost 131 .. 188 and the last 59 on average with deviation 19, so that it is
    # above 110 for one seed in about 300; ours is fixed. Without the long run the last one cost 216 .. 305.
    first, *_, last = quarters(MdpExp3)
    assert first > 110 > last
    assert quarters(Shortsighted)[-1] > 180


@pytest.mark.parametrize("kind", ["bernoulli", "swap"])
def test_the_bound_of_mdp_exp3_holds(kind: str) -> None:
    # In expectation; one run of 1500 steps scatters by 40, and the bound is far above.
    steps, world = 1500, instances.random_ergodic(1500, 3, 2, np.random.default_rng(7), contraction=0.3)
    sequence = losses.named(kind, (1, 3, 2), steps, seed=2, costs=world.costs[:1])
    arena = Stepwise(world.kernel)
    game = ArenaGame(arena, sequence)
    for who in (MdpExp3.tuned(arena.domain, steps), MdpExp3.balanced(arena.domain, steps)):
        regret = measure(game, play_rounds(game, who, arena.domain, Streams.from_seed(1)), TryAll(), [steps])
        bound = who.bound(arena.domain, steps)
        assert bound is not None
        assert regret.high[0] <= bound.total


def test_the_balanced_bound_says_something_and_no_other_rate_is_better() -> None:
    steps = 100_000
    domain = domain_of(rows_of(4, 2, 1, 0.3), steps)
    who = MdpExp3.balanced(domain, steps)
    best = who.bound(domain, steps)
    assert best is not None
    assert best.total < steps / 4
    for factor in (0.5, 2.0):
        other = replace(who, rate=factor * who.rate).bound(domain, steps)
        assert other is not None
        assert best.total < other.total


def test_the_tuned_parameters_are_those_of_the_theory() -> None:
    domain = domain_of(rows_of(4, 2), 10**6)
    tau, beta = mixing(domain.dynamics).time, least_visits(domain.dynamics).value
    who = MdpExp3.tuned(domain, 10**6)
    assert who.lookback == int(np.ceil(1 + tau * log(10**6)))
    assert who.rate == pytest.approx(sqrt(beta * log(2) / (tau**3 * 2 * 10**6)))
    assert who.exploration == pytest.approx(2 * (2 * tau + 3) * 2 * who.rate / beta)
    assert who.exploration < 0.5
    assert MdpExp3.tuned(domain, 100).exploration == 0.5
    assert MdpExp3.tuned(domain, 100).rate == pytest.approx(0.5 * beta / (2 * (2 * tau + 3) * 2))
    bold = MdpExp3.tuned(domain, 10**6, multiplier=1e6)
    assert bold == replace(who, rate=1e6 * who.rate)


def test_the_bounds_are_those_of_the_page() -> None:
    # Rows (0.9, 0.1) and (0.4, 0.6) for the two actions of both states: c = w = 1/2, m = 2, r = 1, R = 2.
    rows = np.array([[[0.9, 0.1], [0.4, 0.6]]] * 2)
    domain, steps = domain_of(rows), 1000
    full = MdpE(0.01).bound(domain, steps)
    assert full is not None
    hedge, moving, starts = log(2) / 0.01, 10 * (4 / 8 + 2 * 0.5 * 4 / 4), 2 * 2
    assert full.total == pytest.approx(hedge + moving + starts)
    # Least arrival 0.1: one can choose in the last step. u = (min(10, 11), min(10, 6)), v = (min(10, 12), min(10, 7)).
    bandit = MdpExp3(0.01, 0.1, 3).bound(domain, steps)
    assert bandit is not None
    noise = (2 + 2 + 2) / 0.1 + 2 * (10 + 10) * (6 + 7)
    assert bandit.penalty == pytest.approx(hedge)
    assert bandit.stability == pytest.approx(10 * noise)
    assert bandit.exploration == pytest.approx(100 * 2)
    assert bandit.tracking == pytest.approx(10 * 2 * 0.5 * 4 * 1.25 + 1000 * 0.25)
    assert bandit.start == pytest.approx(3 + 2)
    assert bandit.total == pytest.approx(hedge + 10 * noise + 200 + 50 + 250 + 5)


# --- both -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mdp-e", "mdp-exp3"])
def test_they_are_found_by_name_and_runs_repeat_themselves(name: str) -> None:
    rows, sequence = rows_of(3, 2), random_losses(50, 3, 2)
    who = learner(name, domain_of(rows, 50), 50)
    one, other = (rounds_of(who, rows, sequence, seed=4) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a.policy, b.policy)
        assert a.paid == b.paid


@pytest.mark.parametrize("name", ["mdp-e", "mdp-exp3"])
def test_one_action_is_nothing_to_learn(name: str) -> None:
    rows, sequence = rows_of(3, 1), random_losses(20, 3, 1)
    who: Any = learner(name, domain_of(rows, 20), 20)
    assert who.rate == 0.0
    for one in rounds_of(who, rows, sequence):
        assert_array_equal(one.policy, np.ones((3, 1)))
    assert who.bound(domain_of(rows, 20), 20).penalty == 0.0


@pytest.mark.parametrize("name", ["mdp-e", "mdp-exp3"])
@pytest.mark.parametrize(
    "world", [instances.swinging_ring(20, 4), instances.waiting_ring(20, 3)], ids=["periodic", "multichain"]
)
def test_worlds_that_do_not_forget_are_refused(name: str, world: instances.Instance) -> None:
    domain = StationaryPolicies(world.kernel)
    with pytest.raises(InvalidInput, match="do not overlap"):
        learner(name, domain, 20)
    who: Any = MdpE(0.1) if name == "mdp-e" else MdpExp3(0.1, 0.1, 2)
    with pytest.raises(InvalidInput, match="do not overlap"):
        who.start(domain, NOBODY)


def test_only_the_bandit_asks_that_no_state_is_avoided() -> None:
    rows = np.full((3, 2, 3), 1 / 3)
    rows[:, 1] = [0.5, 0.5, 0.0]
    domain = domain_of(rows)
    learner("mdp-e", domain, 100)
    for make in (
        lambda: learner("mdp-exp3", domain, 100),
        lambda: MdpExp3(0.1, 0.1, 2).start(domain, NOBODY),
        lambda: MdpExp3.balanced(domain, 100),
    ):
        with pytest.raises(InvalidInput, match="state 2 can be avoided"):
            make()


@pytest.mark.parametrize("name", ["mdp-e", "mdp-exp3"])
def test_episodes_and_delays_are_refused(name: str) -> None:
    kernel = Kernel.homogeneous(rows_of(3, 2), 20)
    with pytest.raises(InvalidInput, match="plays one stream of steps, not episodes"):
        learner(name, MarkovPolicies(kernel), 20)
    with pytest.raises(InvalidInput, match="total_delay = 3"):
        learner(name, StationaryPolicies(kernel), 20, total_delay=3)
    who: Any = learner(name, StationaryPolicies(kernel), 20)
    assert who.bound(StationaryPolicies(kernel), 20, 3) is None
    game = ArenaGame(Stepwise(kernel), random_losses(20, 3, 2), recorded(np.ones(20, dtype=int)), who.feedback)
    with pytest.raises(InvalidInput, match="feedback came late"):
        list(play_rounds(game, who, game.arena.domain, Streams.from_seed(1)))


def test_bad_settings_are_refused() -> None:
    for make, message in (
        (lambda: MdpE(-1.0), "rate = -1"),
        (lambda: MdpE.tuned(domain_of(rows_of(2, 2)), 0), "rounds = 0"),
        (lambda: MdpExp3(np.inf, 0.1, 2), "rate = inf"),
        (lambda: MdpExp3(0.1, 1.5, 2), "exploration = 1.5"),
        (lambda: MdpExp3(0.1, 0.1, 0), "lookback = 0"),
        (lambda: MdpExp3(0.1, 0.1, 1.5), "lookback = 1.5"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match=message):
            make()


def test_the_bound_is_unknown_where_a_state_can_be_missed_for_sure() -> None:
    # Every stationary policy comes to state 2, but who counts the steps can be elsewhere for sure 1 or 2 steps later.
    rows = np.array([[[0.5, 0.5, 0.0]] * 2, [[0.5, 0.0, 0.5], [0.5, 0.25, 0.25]], [[1.0, 0.0, 0.0]] * 2])
    domain = domain_of(rows)
    assert least_visits(domain.dynamics).value > 0.0
    assert MdpExp3(0.1, 0.1, 1).bound(domain, 100) is None
    assert MdpExp3(0.1, 0.1, 2).bound(domain, 100) is None
    assert MdpExp3(0.1, 0.1, 3).bound(domain, 100) is not None
