"""Measured regret against the explicit bound of the theorems: all worlds of the catalog, and a small one of each kind.

The catalog's worlds are too large for short games: there the bound exceeds `HK`, which no learner can pay, and only a
slip in the units would show. So each kind of world is played again in a small form, with enough rounds that the bound
is below `HK`, and once with so many that learners which learn nothing, or the wrong way round, exceed it.

The bound is on the expectation, and a test sees one game. In the small forms regrets come to a fifth of the bound at
most, and differ between seeds by less than a fiftieth of it: an alarm is a defect.
"""

from collections.abc import Callable
from math import ceil, log

import numpy as np
import pytest

from amdp import instances, losses
from amdp.algorithms.bounds import ftpl_bound
from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
    ScaledResampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.arrays import Floats
from amdp.game import delays
from amdp.game.arenas import Episodic
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame, play_blocks
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.instances import Instance
from amdp.losses import LossSequence
from amdp.model.segments import Shape

# --- worlds, losses, delays -----------------------------------------------------------------------------------------


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


SMALL: dict[str, Callable[[], Instance]] = {
    "tiny": lambda: instances.random_dense(2, 2, 2, rng()),
    "river-swim": lambda: instances.river_swim(2, 2),
    "grid": lambda: instances.grid(2, 1, n_steps=2),
    "lock": lambda: instances.lock((1,), n_steps=3),
    "forest": lambda: instances.forest(2, 2),
    "random-dense": lambda: instances.random_dense(3, 2, 2, rng()),
    "random-sparse": lambda: instances.random_sparse(2, 3, 2, rng(), n_successors=2),
    "random-layered": lambda: instances.random_layered(2, 2, 2, rng()),
    "inventory": lambda: instances.inventory(2, capacity=1, max_order=1, mean_demand=0.5),
    "queue": lambda: instances.queue(2, capacity=1),
}


def test_every_world_of_the_catalog_has_a_small_form() -> None:
    assert set(SMALL) == set(instances.standard())


def rounds_until_bound_is(share: float, shape: Shape) -> int:
    """Rounds after which the tuned bound, about `H sqrt(HSAK) (5.4 + 2 ln SA)`, is that share of `HK`."""
    steps, states, actions = shape
    return ceil(steps * states * actions * ((5.4 + 2.0 * log(states * actions)) / share) ** 2)


def one_good_action(world: Instance, rounds: int) -> LossSequence:
    """As far apart as policies can be: `HK` between the best and the worst."""
    table = np.ones(world.shape)
    table[:, :, 0] = 0.0
    return losses.repeated(table, rounds)


def by_name(name: str, world: Instance, rounds: int) -> LossSequence:
    return losses.named(name, world.shape, rounds, 3, world.costs)


def late(rounds: int) -> Delays:
    """Of eight feedbacks two are late; `K + D` is a third more than `K`."""
    return delays.bursts(rounds, 8, 3)


# --- learners and their bound ---------------------------------------------------------------------------------------


FORMS = (GeometricResampling, SharedResampling, ScaledResampling, SharedScaledResampling)
Form = type[GeometricResampling | SharedResampling | ScaledResampling | SharedScaledResampling]


def tuned(world: Instance, told: Delays, form: Form) -> Ftpl:
    return Ftpl.tuned(world.domain, len(told), told.total_within, resampling=form)


def bound_of(learner: Ftpl, world: Instance, told: Delays) -> float:
    assert isinstance(learner.perturbation, Laplace)
    assert isinstance(learner.estimator, Resampling)
    rate, limit = learner.perturbation.rate, learner.estimator.limit
    return ftpl_bound(world.shape, len(told), rate, limit, told.total_within).total


def regret_of(learner: Ftpl, world: Instance, adversary: LossSequence, told: Delays) -> float:
    game = ArenaGame(Episodic(world.kernel, world.initial), adversary, told)
    blocks = play_blocks(game, learner, world.domain, Streams.from_seed(4))
    return float(measure(game, blocks, checkpoints=[len(told)]).high[0])


# --- the bound holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", instances.standard())
def test_regret_is_below_the_bound_on_every_world_of_the_catalog(name: str, form: Form) -> None:
    world = instances.build(name)
    rounds = 8 if name == "random-sparse" else 32
    for told in (delays.none(rounds), late(rounds)):
        learner = tuned(world, told, form)
        for adversary in ("bernoulli", "swap", "switching", "sinusoid", "spikes"):
            regret = regret_of(learner, world, by_name(adversary, world, rounds), told)
            assert regret < bound_of(learner, world, told), (adversary, told)


@pytest.mark.parametrize(
    ("delayed", "form"),
    [(False, SharedResampling), (True, GeometricResampling), (False, ScaledResampling), (True, SharedScaledResampling)],
)
@pytest.mark.parametrize("name", SMALL)
def test_regret_is_below_a_bound_that_says_something(name: str, form: Form, delayed: bool) -> None:
    world = SMALL[name]()
    rounds = rounds_until_bound_is(0.8, world.shape)
    told = late(rounds) if delayed else delays.none(rounds)
    learner = tuned(world, told, form)
    bound = bound_of(learner, world, told)
    assert bound < 0.97 * world.shape[0] * rounds
    for adversary in (one_good_action(world, rounds), by_name("bernoulli", world, rounds)):
        assert regret_of(learner, world, adversary, told) < bound


# --- and it can be exceeded -----------------------------------------------------------------------------------------


class Forgetful(SharedResampling):
    """Learns nothing."""

    def add(self, total: Floats, feedback: Bandit, distribution: object) -> Floats:
        return total


class Backwards(SharedResampling):
    """Takes what was dear for cheap."""

    def add(self, total: Floats, feedback: Bandit, distribution: object) -> Floats:
        return 2.0 * total - super().add(total, feedback, distribution)


@pytest.fixture(scope="module")
def demanding() -> tuple[Instance, Delays]:
    """A world, and rounds enough that to learn nothing, which costs `HK/2` against one good action, is too much."""
    world = SMALL["tiny"]()
    return world, delays.none(rounds_until_bound_is(0.45, world.shape))


@pytest.mark.parametrize("form", FORMS)
def test_right_learners_meet_a_bound_that_those_who_learn_nothing_exceed(
    demanding: tuple[Instance, Delays], form: Form
) -> None:
    world, told = demanding
    learner = tuned(world, told, form)
    assert regret_of(learner, world, one_good_action(world, len(told)), told) < bound_of(learner, world, told)


@pytest.mark.parametrize("wrong", [Forgetful, Backwards])
def test_wrong_learners_exceed_that_bound(demanding: tuple[Instance, Delays], wrong: type[SharedResampling]) -> None:
    world, told = demanding
    right = tuned(world, told, SharedResampling)
    assert isinstance(right.estimator, SharedResampling)
    learner = Ftpl(right.perturbation, wrong(right.estimator.limit))
    assert regret_of(learner, world, one_good_action(world, len(told)), told) > bound_of(right, world, told)
