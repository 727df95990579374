"""Estimates from total losses: their means and second moments by enumeration, and what goes wrong without each part."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import amdp
from amdp import Kernel, MarkovPolicies
from amdp.algorithms.estimators.aggregate import AggregateResampling, AggregateWeighting, TotalLoss
from amdp.algorithms.estimators.base import WholeTable, estimated_loss
from amdp.algorithms.estimators.feedback import Aggregate, Bandit, Weights
from amdp.algorithms.ftpl.aggregate import AggregateFtpl, StepwiseLeaders
from amdp.algorithms.ftpl.perturbations import Fill, Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import PerturbedLeader
from amdp.algorithms.hedge import Hedge, Mixture, list_policies
from amdp.algorithms.named import learner
from amdp.algorithms.occupancy.measures import MirrorDescent, PlayedPolicy
from amdp.algorithms.policy_optimization.learners import PolicyOptimization, Totals
from amdp.algorithms.soft_leader import SoftLeader
from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.game.seeding import Streams
from amdp.instances import Instance, random_dense
from amdp.model.evaluation import values
from amdp.model.segments import Segment

SHAPE = (3, 2, 2)
NO_LUCK = np.random.default_rng(0)


def world(seed: int) -> tuple[MarkovPolicies, Policies, Floats]:
    """A kernel, a policy and losses."""
    rng = np.random.default_rng(seed)
    kernel = Kernel(rng.dirichlet(np.ones(SHAPE[1]), SHAPE))
    return MarkovPolicies(kernel), rng.dirichlet(np.ones(SHAPE[2]), SHAPE[:2]), rng.random(SHAPE)


def trajectories(domain: MarkovPolicies, policy: Policies) -> Iterator[tuple[float, Segment]]:
    """All of them, with their chances."""
    kernel = domain.dynamics
    assert isinstance(kernel, Kernel)
    for actions in product(range(SHAPE[2]), repeat=SHAPE[0]):
        for later in product(range(SHAPE[1]), repeat=SHAPE[0] - 1):
            states, chance = (domain.initial, *later), 1.0
            for h, (s, a) in enumerate(zip(states, actions, strict=True)):
                chance *= policy[h, s, a] * (kernel.p[h, s, a, states[h + 1]] if h + 1 < SHAPE[0] else 1.0)
            yield chance, Segment(np.array(states), np.array(actions))


def estimate(estimator: TotalLoss, weights: Weights, segment: Segment, table: Floats) -> Floats:
    return estimator.add(np.zeros(table.shape), Aggregate.reveal(table, segment, weights), None)


def mean(domain: MarkovPolicies, policy: Policies, table: Floats, estimator: AggregateWeighting) -> Floats:
    played, total = PlayedPolicy(domain, policy), np.zeros(SHAPE)
    for chance, segment in trajectories(domain, policy):
        total += chance * estimate(estimator, estimator.weigh(played, segment, NO_LUCK), segment, table)
    return total


def advantage(domain: MarkovPolicies, policy: Policies, table: Floats) -> Floats:
    """`Q - V` by backward induction."""
    value = values(domain.dynamics, policy[None], table[None])[0]
    later = np.stack([*(domain.dynamics.least_expectation(h, value[None, h + 1])[0] for h in range(SHAPE[0] - 1)),
                      np.zeros(SHAPE[1:])])  # fmt: skip
    result: Floats = table + later - value[..., None]
    return result


class WithoutBaseline(AggregateWeighting):
    """The wrong one: `L 1[s_h = s, a_h = a] / q(h, s, a)`, as if the total were the loss of each pair."""

    def weigh(self, distribution: PlayedPolicy, segment: Segment, rng: np.random.Generator) -> Weights:  # type: ignore[override]
        weights = super().weigh(distribution, segment, rng)
        return weights._replace(states=np.zeros(len(weights.values)))


# --- one policy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_is_the_advantage(seed: int) -> None:
    domain, policy, table = world(seed)
    expected = advantage(domain, policy, table)
    expected[0, 1] = 0.0  # no episode begins there
    assert_allclose(mean(domain, policy, table, AggregateWeighting()), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_tells_every_policy_its_difference_and_without_a_baseline_it_does_not(seed: int) -> None:
    domain, policy, table = world(seed)
    listed = list_policies(domain)
    paid = listed.expected_losses(table)
    own = values(domain.dynamics, policy[None], table[None])[0, 0, 0]
    assert_allclose(listed.expected_losses(mean(domain, policy, table, AggregateWeighting())), paid - own, atol=1e-12)
    wrong = listed.expected_losses(mean(domain, policy, table, WithoutBaseline()))
    assert np.ptp(wrong - paid) > 0.03  # no constant makes up for it


def test_second_moments_are_those_of_the_total_times_the_chance_of_other_actions() -> None:
    domain, policy, table = world(4)
    visits = domain.dynamics.occupancy(policy[None], 0)[0]  # type: ignore[attr-defined]
    squares = np.zeros(SHAPE[0])
    expected = np.zeros(SHAPE[0])
    for chance, segment in trajectories(domain, policy):
        found = estimate(
            AggregateWeighting(),
            AggregateWeighting().weigh(PlayedPolicy(domain, policy), segment, NO_LUCK),
            segment,
            table,
        )
        squares += chance * (visits * found**2).sum(axis=(1, 2))
        at = segment.places
        expected += chance * table[at].sum() ** 2 * (1 - policy[at]) / visits[at]
    assert_allclose(squares, expected)
    assert (squares <= SHAPE[0] ** 2 * SHAPE[1] * (SHAPE[2] - 1)).all()


def test_the_policy_that_was_played_has_no_estimated_loss() -> None:
    domain, policy, table = world(5)
    visits = domain.dynamics.occupancy(policy[None], 0)[0]  # type: ignore[attr-defined]
    for _, segment in trajectories(domain, policy):
        weights = AggregateWeighting().weigh(PlayedPolicy(domain, policy), segment, NO_LUCK)
        feedback = Aggregate.reveal(table, segment, weights)
        found = AggregateWeighting().add(np.zeros(SHAPE), feedback, None)
        assert_allclose((visits * found).sum(), estimated_loss(AggregateWeighting(), feedback), atol=1e-12)


def test_only_the_total_is_told() -> None:
    table = np.random.default_rng(1).random(SHAPE)
    segment = Segment(np.array([0, 1, 0]), np.array([1, 1, 0]))
    told = Aggregate.reveal(table, segment, Weights(np.ones(3)))
    assert told.total == pytest.approx(table[0, 0, 1] + table[1, 1, 1] + table[2, 0, 0])
    assert set(vars(told)) == {"segment", "weights", "total"}
    with pytest.raises(InvalidInput, match="have none for the states"):
        AggregateWeighting().add(np.zeros(SHAPE), told, None)
    with pytest.raises(InvalidInput, match="WholeTable understands FullInformation, not Aggregate"):
        MirrorDescent(0.1, WholeTable()).learn(
            MirrorDescent(0.1, WholeTable()).start(world(1)[0], np.random.default_rng(1)), told
        )


# --- policies that are drawn for a whole episode ---------------------------------------------------------------------


def two_levers() -> tuple[MarkovPolicies, Floats]:
    """One state, two steps, and losses such that a mixture of two policies hides what is best."""
    return MarkovPolicies(Kernel.homogeneous(np.ones((1, 2, 1)), 2)), np.array([[[0.0, 1.0]], [[1.0, 0.0]]])


def test_a_mixture_of_policies_would_be_misled_and_is_refused() -> None:
    """Half (0, 0), half (1, 1): both pay 1, so the total says nothing; yet (0, 1) pays 0 and (1, 0) pays 2."""
    domain, table = two_levers()
    listed = list_policies(domain)
    tied = (listed.actions[:, 0, 0] == listed.actions[:, 1, 0]) / 2.0
    mixture, found = Mixture(listed, tied), np.zeros(table.shape)
    for chance, actions in zip(tied, listed.actions[:, :, 0], strict=True):
        segment = Segment(np.zeros(2, int), actions)
        weights = Weights(1.0 / mixture.visits(segment.pairs), states=np.ones(2))
        found += chance * estimate(AggregateWeighting(), weights, segment, table)
    assert_allclose(found, 0.0, atol=1e-12)
    assert np.ptp(listed.expected_losses(table)) == 2.0
    with pytest.raises(InvalidInput, match="Mixture draws one policy for a whole episode"):
        AggregateWeighting().weigh(mixture, Segment(np.zeros(2, int), np.zeros(2, int)), NO_LUCK)  # type: ignore[arg-type]
    hedge = Hedge(0.1, AggregateWeighting())
    with pytest.raises(InvalidInput, match="o-reps-aggregate"):
        amdp.play(amdp.Game(Instance("levers", domain.dynamics, table), "nominal", 3), hedge)  # type: ignore[arg-type]


class OneCoin(Perturbation):
    """Noise that is one coin for all places: the leader takes action 0 everywhere, or action 1 everywhere."""

    def filler(self, rng: np.random.Generator) -> Fill:
        def fill(center: Floats, out: Floats) -> None:
            coins = rng.integers(2, size=(out.shape[1], 1))
            out[:] = coins == np.arange(out.shape[2]) % 2

        return fill


STRAIGHT = 0.8  # chance that action `a` at the first step leads to state `a`


def fork() -> MarkovPolicies:
    """Two ways to two states."""
    p = np.full((2, 2, 2, 2), 0.5)
    p[0, :, 0], p[0, :, 1] = (STRAIGHT, 1 - STRAIGHT), (1 - STRAIGHT, STRAIGHT)
    return MarkovPolicies(Kernel(p))


def leaders() -> StepwiseLeaders:
    learner = AggregateFtpl(OneCoin(1.0), AggregateResampling(1000), "dp", 40)
    return learner.start(fork(), np.random.default_rng(1))


def joint(distribution: PerturbedLeader, n: int) -> Floats:
    """The chance `[a_0, s_1, a_1]` of what policies do, over `n` draws."""
    rng, p = np.random.default_rng(2), fork().dynamics.p[0, 0]  # type: ignore[attr-defined]
    policies = np.stack([distribution.draw(rng) for _ in range(n)])
    found: Floats = np.einsum("na,as,nsb->asb", policies[:, 0, 0], p, policies[:, 1]) / n
    return found


def test_each_step_follows_a_leader_of_its_own_that_would_be_in_its_state() -> None:
    """Entries are means of 2000 numbers in [0, 1]: 0.05 is more than four standard errors.

    A leader drawn for the episode never changes its action. Stepwise leaders keep FTPL's chance of each pair, 0.4 where
    state and action are alike and 0.1 elsewhere, with actions that are independent given the state.
    """
    stepwise = leaders()
    pairs = np.array([[STRAIGHT, 1 - STRAIGHT], [1 - STRAIGHT, STRAIGHT]]) / 2
    tied = joint(PerturbedLeader(stepwise.planner, stepwise.perturbation, stepwise.total), 2000)
    assert_allclose(tied.sum(axis=0), pairs, atol=0.05)
    assert tied[0, :, 1].max() == tied[1, :, 0].max() == 0.0
    free = joint(stepwise, 2000)
    assert_allclose(free, pairs[:, :, None] * pairs[None] / 0.5, atol=0.05)


# --- counts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [3, 1000])
def test_counts_have_the_means_of_cut_geometric_ones(limit: int) -> None:
    """3000 counts of a standard deviation of at most `1/q`: five standard errors, one false alarm in a million."""
    distribution = leaders()
    segment = Segment(np.array([0, 0]), np.array([1, 1]))
    pairs, states = np.array([0.5, (1 - STRAIGHT) / 2]), np.array([1.0, 0.5])
    rng = Streams.from_seed(4).learner
    drawn = [AggregateResampling(limit).weigh(distribution, segment, rng) for _ in range(3000)]
    for found, chance in (
        (np.array([weights.values for weights in drawn]), pairs),
        (np.array([weights.states for weights in drawn]), states),
    ):
        expected = (1 - (1 - chance) ** limit) / chance
        assert_allclose(found.mean(axis=0), expected, atol=5 * max(1 / chance) / np.sqrt(3000))
        assert found.max() <= limit
    assert all((weights.values >= np.asarray(weights.states)).all() for weights in drawn)


def test_counts_need_a_kernel_and_a_trial() -> None:
    with pytest.raises(InvalidInput, match="limit"):
        AggregateResampling(0)
    box = amdp.BernsteinBox.vacuous(SHAPE, amdp.Radius.paper(SHAPE, 10))
    with pytest.raises(InvalidInput, match="needs a kernel"):
        learner("ftpl-aggregate", MarkovPolicies(box), 10)
    with pytest.raises(InvalidInput, match="leaders"):
        AggregateFtpl(Laplace(1.0), AggregateResampling(1), "dp", 0)


# --- learners -------------------------------------------------------------------------------------------------------

NAMES = ("o-reps-aggregate", "soft-leader-aggregate", "ftpl-aggregate", "o-ssp-aggregate")


def tempting() -> Instance:
    """A sure loss of 0.6 that makes a later loss of 1 less likely by 0.4: better not, but it is close.

    Without a baseline the last loss is charged at both steps, and counts twice: then the sure loss looks better.
    """
    p = np.full((2, 2, 2, 2), 0.5)
    p[0, :, 0], p[0, :, 1] = (0.85, 0.15), (0.45, 0.55)
    costs = np.zeros((2, 2, 2))
    costs[0, :, 1], costs[1, 0] = 0.6, 1.0
    return Instance("tempting", Kernel(p), costs)


def test_without_a_baseline_regret_is_linear() -> None:
    """Regret of the right one: some 30 of 800 over seeds; of the wrong one, who prefers the sure loss, some 110."""
    game = amdp.Game(tempting(), "nominal", 800)
    right = amdp.play(game, MirrorDescent(0.15, AggregateWeighting()), seed=1).regret[-1]
    wrong = amdp.play(game, MirrorDescent(0.15, WithoutBaseline()), seed=1).regret[-1]
    assert right < 60.0 < 90.0 < wrong


@pytest.mark.parametrize("name", NAMES)
def test_learners_by_name_learn_from_totals(name: str) -> None:
    """Uniform play pays about 0.5 a step more than the best: they have a third of its regret, or less."""
    table = np.zeros((2, 2, 2))
    table[..., 1] = 1.0
    world = random_dense(2, 2, 2, np.random.default_rng(5))
    game = amdp.Game(Instance("one good action", world.kernel, table), "nominal", 600)
    settings = {} if name == "soft-leader-aggregate" else {"multiplier": 4.0}
    run = amdp.play(game, name, **settings)  # type: ignore[arg-type]
    assert run.match.used["told"] == "aggregate"
    assert run.regret[-1] < 200.0


def test_bounds_are_stated_where_no_estimate_is_too_negative_and_hold() -> None:
    game = amdp.Game("tiny", "bernoulli", 2000)
    run = amdp.play(game, "o-reps-aggregate")
    assert run.bound is not None
    assert run.regret[-1] < run.bound
    assert amdp.play(amdp.Game("tiny", "bernoulli", 20), "o-reps-aggregate", multiplier=100.0).bound is None
    soft = SoftLeader(1e-3, AggregateWeighting())
    assert soft.bound(game.domain, 2000) is not None
    assert SoftLeader(1.0, AggregateWeighting()).bound(game.domain, 2000) is None


def test_policy_optimization_has_a_bound_without_a_condition_on_the_rate_and_does_not_see_the_baseline() -> None:
    game = amdp.Game("tiny", "bernoulli", 500)
    run = amdp.play(game, "o-ssp-aggregate", multiplier=4.0)
    assert run.bound is not None
    assert run.regret[-1] < run.bound
    plain = PolicyOptimization(run.match.learner.rate, Totals(WithoutBaseline()))  # type: ignore[attr-defined]
    assert_allclose(amdp.play(game, plain).regret, run.regret, rtol=1e-6)
    with pytest.raises(InvalidInput, match="is never at"):
        amdp.play(amdp.Game("grid", rounds=5), "o-ssp-aggregate")


def test_estimates_far_below_zero_are_projected() -> None:
    """In states that are seldom visited: `exp(-rate * estimate)` alone would be infinite."""
    domain = amdp.instances.build("river-swim").domain
    player, total = MirrorDescent(1.0, AggregateWeighting()), np.zeros(domain.shape)
    total[3, 2] = -2000.0, -1999.0
    tilted = replace(player.start(domain, NO_LUCK), total=total)
    flat = replace(tilted, total=total + 2000.0 * (np.arange(domain.shape[0]) == 3)[:, None, None])
    assert_allclose(tilted.occupancy, flat.occupancy, atol=1e-9)  # a constant for a step moves no measure


def test_the_game_may_ask_for_totals() -> None:
    game = amdp.Game("tiny", "bernoulli", 5, feedback="aggregate")
    amdp.play(game, "o-reps-aggregate")
    with pytest.raises(InvalidInput, match="o-reps understands bandit feedback; the game tells aggregate"):
        amdp.play(game, "o-reps")
    with pytest.raises(InvalidInput, match="'bandit', 'full' or 'aggregate'"):
        amdp.Game("tiny", feedback="sum")
    assert issubclass(learner("o-reps", game.domain, 5).feedback, Bandit)
