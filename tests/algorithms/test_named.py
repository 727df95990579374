"""Learners by name: each is made as its theorem says, plays, and states its bound where it has one."""

from typing import Any

import numpy as np
import pytest

from amdp import BernsteinBox, InvalidInput, MarkovPolicies, Radius, instances, losses, registry
from amdp.algorithms.bounds import Bound
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.named import GROUP, learner
from amdp.algorithms.occupancy.measures import every_round, when_doubled
from amdp.algorithms.occupancy.recipes import (
    delayed_uob_ftrl,
    delayed_uob_reps,
    o_reps,
    o_reps_full,
    uc_o_reps_bernstein,
    uob_reps,
)
from amdp.algorithms.task import Task
from amdp.experiments.building import arrange
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.game.arenas import Episodic
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.seeding import Streams
from amdp.model.l1_ball import L1Ball

K = 30
KNOWN_ONLY = {"o-reps", "o-reps-full", "hedge", "o-ssp"}
KNOWN_ONLY |= {"o-reps-aggregate", "soft-leader-aggregate", "ftpl-aggregate", "o-ssp-aggregate"}
KNOWN_ONLY |= {"bobw", "hedge-anytime", "o-reps-full-anytime", "o-reps-ix", "o-reps-ix-anytime"}
KNOWN_ONLY |= {"o-reps-fixed-share", "do-reps", "do-reps-optimistic"}
OF_STREAMS = {"ftpl-infinite", "hedge-infinite", "mdp-e", "mdp-exp3", "ct-deterministic", "ct-communicating"}
OF_STREAMS |= {
    "ftpl-infinite-scaled",
    "ct-oracle",
    "dekel-hazan",
    "fll",
    "ftpl-infinite-renewed",
    "hedge-infinite-renewed",
}
WORLD = instances.build("tiny")
BOX = MarkovPolicies(BernsteinBox.vacuous(WORLD.shape, Radius.paper(WORLD.shape, K, scale=0.05)), WORLD.initial)


OVER_BALLS = {"uc-o-reps"}
BALL = MarkovPolicies(L1Ball.vacuous(WORLD.shape, K), WORLD.initial)
NAMES = [name for name in registry.names(GROUP) if name not in OF_STREAMS | OVER_BALLS]


@pytest.mark.parametrize(
    ("name", "domain"),
    [(name, WORLD.domain) for name in NAMES]
    + [(name, BOX) for name in NAMES if name not in KNOWN_ONLY]
    + [(name, BALL) for name in OVER_BALLS],
    ids=lambda value: value if isinstance(value, str) else type(value.dynamics).__name__,
)
def test_every_learner_plays(name: str, domain: MarkovPolicies) -> None:
    player = learner(name, domain, K, total_delay=10)
    adversary = losses.named("bernoulli", WORLD.shape, K, 1, WORLD.costs)
    game = ArenaGame(Episodic(WORLD.kernel, WORLD.initial), adversary, None, player.feedback)
    for one in play_rounds(game, player, domain, Streams.from_seed(1), rounds=4):
        assert one.policy.shape == WORLD.shape
        assert np.allclose(one.policy.sum(axis=-1), 1.0)


def test_names_stand_for_the_algorithms_that_they_name() -> None:
    made: dict[str, Any] = {name: learner(name, BOX, K, 7) for name in NAMES if name not in KNOWN_ONLY}
    assert learner("o-reps", WORLD.domain, K, 7) == o_reps(Task(WORLD.domain, K))
    assert learner("o-reps-full", WORLD.domain, K, 7) == o_reps_full(Task(WORLD.domain, K))
    assert made["uob-reps"] == uob_reps(Task(BOX, K))
    assert made["uc-o-reps-bernstein"] == uc_o_reps_bernstein(Task(BOX, K))
    assert made["delayed-uob-reps"] == delayed_uob_reps(Task(BOX, K, 7))
    assert made["delayed-uob-ftrl"] == delayed_uob_ftrl(Task(BOX, K, 7))
    assert learner("hedge", WORLD.domain, K, 7) == Hedge.exact(WORLD.domain, K, 7)
    assert made["delayed-hedge"] == Hedge.tuned(WORLD.domain, K, 7)
    assert made["uob-reps"].refresh == made["uc-o-reps-bernstein"].refresh == when_doubled
    assert made["delayed-uob-reps"].refresh == made["delayed-uob-ftrl"].refresh == every_round


@pytest.mark.parametrize("name", sorted(KNOWN_ONLY))
def test_learners_of_known_transitions_refuse_a_box(name: str) -> None:
    with pytest.raises(InvalidInput, match="kernel"):
        learner(name, BOX, K)


def test_terms_reach_the_learner() -> None:
    player = learner("uob-reps", BOX, K, multiplier=2.0, projection="cvxpy")
    assert player == uob_reps(Task(BOX, K, multiplier=2.0, projection="cvxpy"))
    assert Task(BOX, K).projection_oracle == "newton"


def settings_of(name: str, *, unknown: bool = False, delay: str = "none") -> RunSettings:
    game = GameSettings(Named("tiny"), episodes=K, delay=delay, unknown=unknown)
    return RunSettings(game, LearnerSettings(name), seed=1)


@pytest.mark.parametrize("name", ["o-reps", "o-reps-full", "hedge", "delayed-hedge", "uob-reps", "delayed-uob-ftrl"])
def test_a_match_states_the_bound_of_its_learner(name: str) -> None:
    match = arrange(settings_of(name))
    bound = match.bound(K)
    assert isinstance(bound, Bound)
    player: Any = match.learner
    assert bound == player.bound(WORLD.domain, K)
    assert match.parameters["rate"] == player.rate
    assert ("gamma" in match.parameters) == (name in ("delayed-hedge", "uob-reps", "delayed-uob-ftrl"))


def test_a_match_states_no_bound_where_none_is_known() -> None:
    assert arrange(settings_of("uob-reps", unknown=True)).bound(K) is None
    assert arrange(settings_of("o-reps", delay="fixed:3")).bound(K) is None
    assert arrange(settings_of("delayed-uob-reps", unknown=True, delay="fixed:3")).bound(K) is None
