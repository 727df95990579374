"""Games lead to points that random ones do not: chances of 1e-12 in states whose prices are wrong by 30."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log, sqrt
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from amdp import BernsteinBox, Status, instances
from amdp.algorithms.occupancy.measures import MeasureLearner
from amdp.arrays import Floats
from amdp.experiments.building import arrange
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.game.loop import play_rounds
from amdp.game.seeding import Streams
from amdp.model.domains import Domain, MarkovPolicies
from amdp.oracles.projection.base import Projection, Projector
from amdp.oracles.projection.certificate import certified, prices_for, state_chances, supported
from amdp.oracles.projection.newton import NewtonProjection
from benchmarks import games
from oracles.projection.points import bound

Answer = tuple[MarkovPolicies, Floats, Projection]


@dataclass(frozen=True)
class Watched:
    """Newton's method, with its questions and answers kept."""

    answers: list[Answer] = field(default_factory=list)
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return NewtonProjection().supports(domain)

    def bind(self, domain: Domain) -> Projector:
        return WatchedProjector(self, domain)


class WatchedProjector(Projector):
    oracle: Watched
    domain: MarkovPolicies

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        found = NewtonProjection().bind(self.domain).project(log_point, near)
        self.oracle.answers.append((self.domain, log_point, found))
        return found


def answers(
    learner: str, multiplier: float, world: str, losses: str, episodes: int, rounds: int, scale: float | None
) -> list[Answer]:
    """The projections of the first rounds of a game; over the kernel, or over a box of scaled radius."""
    game = GameSettings(Named(world), Named(losses), episodes, unknown=scale is not None, radius_scale=scale or 1.0)
    match = arrange(RunSettings(game, LearnerSettings(learner, multiplier=multiplier), 1))
    watched = Watched()
    assert isinstance(match.learner, MeasureLearner)
    player = replace(match.learner, projection=watched)
    for _ in play_rounds(match.played, player, match.domain, Streams.from_seed(1), rounds):
        pass
    return watched.answers


# Each of these games had ended in its last round here, as no step lowered a gap between 0.001 and 4.
@pytest.mark.parametrize(
    ("learner", "multiplier", "world", "losses", "episodes", "rounds", "scale"),
    [
        ("o-reps-full", 3.0, "lock", "bernoulli", 300, 119, None),
        ("o-reps-full", 100.0, "lock", "bernoulli", 500, 6, None),
        ("o-reps", 30.0, "lock", "bernoulli", 2_000, 1_209, None),
        ("o-reps", 1000.0, "lock", "bernoulli", 500, 68, None),
        ("uc-o-reps-bernstein", 20.0, "lock", "swap", 500, 127, 0.001),
        ("uc-o-reps-bernstein", 100.0, "river-swim", "bernoulli", 500, 67, 0.03),
        ("uc-o-reps-bernstein", 100.0, "river-swim", "bernoulli", 500, 52, 0.001),
    ],
)
def test_games_at_large_rates_come_to_their_end(
    learner: str, multiplier: float, world: str, losses: str, episodes: int, rounds: int, scale: float | None
) -> None:
    played = answers(learner, multiplier, world, losses, episodes, rounds, scale)
    assert len(played) == rounds
    for domain, point, found in played[-3:]:
        plain = certified(domain, point, found.prices, found.report)
        assert plain.gap <= 1e-18  # so each step of the measure is right to 2e-9 in L1
        np.testing.assert_allclose(np.exp(plain.log_measure), found.measure, atol=1e-9)


@pytest.mark.parametrize("wrong", [3.0, 30.0, 300.0])
def test_prices_that_are_wrong_everywhere_lead_to_the_same_answer(wrong: float) -> None:
    """A lock is opened by few paths: most of its states are rare, and a policy meets them by their prices."""
    rng = np.random.default_rng(1)
    world = instances.build("lock")
    domain = MarkovPolicies(world.kernel, world.initial)
    projector = bound("newton", domain)
    point = -10.0 * rng.random(domain.shape)
    alone = projector.project(point)
    for _ in range(20):
        prices = alone.prices + wrong * rng.normal(size=alone.prices.shape)
        found = projector.project(point, replace(alone, prices=prices))
        np.testing.assert_allclose(found.measure, alone.measure, atol=1e-9)


def test_the_command_plays_counts_and_says_what_died(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = games.ProjectedGame("tiny", "narrow-box", "uob-reps", 10.0, "swap", rounds=5)
    result = small.measured()
    assert result["played"] == result["solves"] == 5
    assert games.report({small: result}) == 0
    assert games.report({small: result | {"played": 4}}) == 1
    assert str(small) in capsys.readouterr().out


def test_every_learner_that_projects_is_found() -> None:
    known = {name: games.projecting(games.told(name, games.worlds()["tiny"], 10)) for name in games.TOLD}
    over_boxes = {"delayed-uob-ftrl", "delayed-uob-reps", "uc-o-reps-bernstein", "uob-reps"}
    assert over_boxes <= set(known["thin-box"])
    assert {*known["thin-box"], "o-reps", "o-reps-full"} <= set(known["kernel"])
    assert not {"o-reps", "ftpl", "hedge"} & set(known["thin-box"])


def test_an_answer_of_dual_steps_says_so() -> None:
    *_, (_, _, found) = answers("o-reps-full", 100.0, "lock", "bernoulli", 500, 6, None)
    assert found.status is Status.OPTIMAL
    assert found.report.note.endswith("dual steps")


def test_rare_states_have_the_prices_of_their_chances() -> None:
    """`v = log d - L` also where chances are no numbers: an error there would grow from round to round of a game."""
    rng = np.random.default_rng(2)
    world = instances.build("lock")
    domain = MarkovPolicies(BernsteinBox.vacuous(world.shape))
    projector = bound("newton", domain)
    found = projector.project(np.zeros(projector.point_shape))
    for _ in range(4):
        loss = (rng.random(world.shape) < world.costs).astype(np.float64)
        point = found.log_measure - 731.0 * loss[..., None]
        found = projector.project(point)
        chances = state_chances(found.log_measure)
        np.testing.assert_allclose(prices_for(domain, supported(domain, point), chances), found.prices, atol=1e-5)
    assert chances.min() < -1000.0


def test_the_prior_of_mirror_descent_keeps_masses_that_a_round_can_resolve() -> None:
    """At a million times the rate of theory, too: no mass below `exp(-500)`, and none where none can be."""
    played = answers("o-reps-full", 1e6, "lock", "bernoulli", 500, 5, None)
    _, states, actions = played[0][0].shape
    largest = 1e6 * sqrt(log(states * actions) / 500)  # that a round takes from a logarithm
    for (_, _, before), (_, point, _) in pairwise(played):
        there = before.log_measure > -np.inf
        assert np.array_equal(point > -np.inf, there)
        assert point[there].min() >= -500.0 - largest - 1e-6
        kept = before.log_measure > -500.0
        assert (before.log_measure[kept] - point[kept]).max() <= largest + 1e-6


@pytest.mark.parametrize("name", ["x100", "x1000"])
def test_points_at_which_games_of_many_states_died_are_projected(name: str) -> None:
    """Rounds 1,239 and 1,441 of UC-O-REPS on `random-sparse`: there conjugate gradients missed the raised diagonal.

    Dual steps of a linear model were then 7e13 long, and the line search gave up with a gap of 0.06.
    """
    hundredths = np.load(Path(__file__).with_name("games_that_died.npz"))[name]
    point = np.where(hundredths > np.iinfo(np.int32).min, hundredths / 100.0, -np.inf)
    found = NewtonProjection().bind(instances.build("random-sparse").domain).project(point)
    assert found.gap <= 1e-10
    assert found.report.iterations < 30
