"""Games within budgets: who keeps them, what is measured, and who is refused."""

from dataclasses import replace

import numpy as np
import pytest

import amdp
from amdp import Budgets, Game, Kernel, instances
from amdp.algorithms.estimators.resampling import GeometricResampling, Resampling, SharedScaledResampling
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.game.dynamic_regret import measure_dynamic
from amdp.game.match import enter
from amdp.instances import EnteredInstance, Instance, with_start
from amdp.model.domains import BudgetedPolicies
from amdp.model.segments import Segment

KEEPERS = ["ftpl", "ftpl-shared", "ftpl-scaled", "ftpl-adaptive", "ftpl-delay-adapted", "fpl", "o-reps", "o-reps-full"]


def machine(**settings: float) -> Instance:
    return instances.build("maintenance", n_steps=5, n_levels=3, **settings)


@pytest.mark.parametrize("name", [*KEEPERS, "o-reps-adaptive", "ftpl-unknown-delay", "delayed-uob-reps"])
def test_every_policy_that_is_played_keeps_the_budget(name: str) -> None:
    world = machine(hours=0.4)
    game = Game(world, losses="bernoulli", rounds=12)
    domain = world.domain
    assert isinstance(domain, BudgetedPolicies)
    for played in amdp.rounds(game, name):
        use = domain.budgets.use(world.kernel.occupancy(played.policy[None], world.initial))
        assert use[0, 0] <= 0.4 + 1e-8


def test_use_and_regret_are_those_of_the_played_policies() -> None:
    world = machine(hours=0.4)
    game = Game(world, losses="bernoulli", rounds=20)
    run = amdp.play(game, "ftpl-scaled", checkpoints=[10, 20])
    domain = world.domain
    assert isinstance(domain, BudgetedPolicies)
    played = [each.policy for each in amdp.rounds(game, "ftpl-scaled")]
    measures = world.kernel.occupancy(np.stack(played), world.initial)
    use = domain.budgets.use(measures)[:, 0].cumsum()
    np.testing.assert_allclose(run.spending["hours"], use[[9, 19]])
    tables = game.losses.batch(0, 20)
    np.testing.assert_allclose(run.loss, (measures * tables).sum(axis=(1, 2, 3)).cumsum()[[9, 19]])
    best = [amdp.plan("lp", world, tables[:k].sum(axis=0)).objective for k in (10, 20)]
    np.testing.assert_allclose(run.best, best, atol=1e-8)
    assert run.bound is not None


def test_the_same_game_is_won_by_the_same_policies_whichever_oracle_plans() -> None:
    game = Game(machine(hours=0.4), losses="bernoulli", rounds=10, comparator="lp")
    runs = [amdp.play(game, "ftpl-shared", oracle=name, checkpoints=[10]) for name in ("lagrangian", "lp")]
    np.testing.assert_allclose(runs[0].loss, runs[1].loss, atol=1e-7)
    ours, theirs = (amdp.play(game, "o-reps", projection=name, checkpoints=[10]) for name in ("newton", "cvxpy"))
    np.testing.assert_allclose(ours.loss, theirs.loss, atol=1e-4)


def test_a_limit_that_binds_nobody_leaves_the_game_of_backward_induction() -> None:
    free, plain = machine(hours=100.0), instances.Instance("plain", machine().kernel, machine().costs)
    for name in ("fpl", "o-reps"):
        within, without = (amdp.play(Game(world, rounds=15), name, checkpoints=[15]) for world in (free, plain))
        np.testing.assert_allclose(within.loss, without.loss, atol=1e-6)
        np.testing.assert_allclose(within.best, without.best, atol=1e-9)


@pytest.mark.parametrize("kind", [GeometricResampling, SharedScaledResampling])
def test_mean_weights_of_trials_are_one_over_the_chance_of_a_visit(kind: type[Resampling]) -> None:
    """The leader wants action 1 with little noise, and may take it with chance 1/4: its mean weight is 4.

    300 weights, within five standard errors: a false alarm has a chance below 1e-6. Trials that played the likeliest
    action of the plan would never meet action 1, and weigh it by the limit.
    """
    domain = BudgetedPolicies(Kernel(np.ones((1, 1, 2, 1))), Budgets.of(work=([[0.0, 1.0]], 0.25)))
    learner, rng = Ftpl(Laplace(10.0), kind(200), "lagrangian"), np.random.default_rng(3)
    leader = replace(learner.start(domain, rng), total=np.array([[[10.0, 0.0]]]))
    np.testing.assert_allclose(leader.draw(rng), [[[0.75, 0.25]]])
    segment = Segment(np.array([0]), np.array([1]))
    weights = np.array([learner.weigh(leader, segment, rng).values[0] for _ in range(300)])
    assert abs(weights.mean() - 4.0) <= 5.0 * np.sqrt(12.0 / 300)


@pytest.mark.parametrize("name", ["hedge", "delayed-oppo", "soft-leader", "dilated-bonus"])
def test_learners_that_do_not_keep_budgets_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} does not keep budgets; learners that do: ftpl and its kin"):
        amdp.play(Game(machine(), rounds=5), name)


def test_uniform_play_is_measured_though_it_exceeds_the_budget() -> None:
    run = amdp.play(Game(machine(), rounds=5), "uniform", checkpoints=[5])
    assert run.spending["hours"][0] > 5 * 3.0


def test_wrong_solvers_streams_and_unknown_transitions_are_refused() -> None:
    world = machine()
    with pytest.raises(UnsupportedDomain, match="dp does not solve BudgetedPolicies"):
        amdp.play(Game(world, rounds=5), "ftpl", oracle="dp")
    with pytest.raises(UnsupportedDomain, match="dp does not solve BudgetedPolicies"):
        amdp.play(Game(world, rounds=5, comparator="dp"), "ftpl")
    with pytest.raises(InvalidInput, match="unknown = true; budgets are kept by learners that know the transitions"):
        Game(world, rounds=5, unknown=True)
    with pytest.raises(InvalidInput, match="a stream of steps has none"):
        Game(instances.maintenance(n_steps=50), steps=50)


def test_dynamic_regret_is_refused_rather_than_measured_against_policies_without_budgets() -> None:
    match = enter(Game(machine(), rounds=4), "fpl")
    with pytest.raises(InvalidInput, match="not held to budgets"):
        measure_dynamic(match.played, match.play(1), [0, 2, 4])


def test_a_start_distribution_keeps_the_budgets() -> None:
    world = machine(hours=0.4)
    entered = with_start(world, [0.5, 0.25, 0.25])
    assert isinstance(entered, EnteredInstance)
    first = [
        Instance("at", world.kernel, world.costs, s, budgets=Budgets.of(none=(np.zeros((3, 3)), 0.0))) for s in range(3)
    ]
    unlimited = [amdp.plan("lagrangian", each, each.costs).objective for each in first]
    free = entered.with_budgets(Budgets.of(none=(np.zeros((4, 3)), 0.0)))
    expected = np.dot([0.5, 0.25, 0.25], unlimited)
    assert amdp.plan("lp", free, free.costs).objective == pytest.approx(expected)
    assert amdp.plan("lp", entered, entered.costs).objective >= expected
    run = amdp.play(Game(entered, rounds=6), "fpl", checkpoints=[6])
    assert run.spending["hours"][0] <= 6 * 0.4 + 1e-8
