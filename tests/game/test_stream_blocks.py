"""Streams of steps in blocks: the compiled forms play the rounds of the learners' methods, to the last bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from amdp import InvalidInput, StationaryPolicies, instances, losses
from amdp.algorithms.blocks import block_form
from amdp.algorithms.named import learner as named
from amdp.algorithms.streams.closed_walks import WalkingLeader
from amdp.algorithms.streams.communicating import PastLosses
from amdp.algorithms.streams.ergodic import MdpE, MdpExp3
from amdp.game import delays
from amdp.game.arenas import Stepwise
from amdp.game.blocks import BLOCK, StepBlock
from amdp.game.loop import ArenaGame, play_blocks, play_rounds
from amdp.game.regret import measure
from amdp.game.seeding import Streams
from amdp.model.segments import Step
from amdp.oracles.base import bind
from game.test_blocks import ROUNDS, require_resumed, require_same

ERGODIC, RING = {"name": "random-ergodic", "n_states": 4}, {"name": "waiting-ring", "n_states": 4}
PARKED, ENTERED = {"name": "random-parked", "n_states": 3}, {"name": "random-entered", "n_states": 3}
# Rates far above theory's, so that leaders change within few steps.
PLAYERS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "mdp-e": (ERGODIC, "mdp-e", {"rate": 0.5}),
    "mdp-exp3": (ERGODIC, "mdp-exp3", {"rate": 0.05, "exploration": 0.1, "lookback": 5}),
    "mdp-exp3, looking back beyond a block": (ERGODIC, "mdp-exp3", {"rate": 0.05, "exploration": 0.1, "lookback": 23}),
    "ct-deterministic": (RING, "ct-deterministic", {"rate": 2.0}),
    "ct-deterministic, short walks": (RING, "ct-deterministic", {"rate": 2.0, "longest": 2}),
    "dekel-hazan": (RING, "dekel-hazan", {"rate": 0.3, "block": 13}),
    "ct-communicating": (PARKED, "ct-communicating", {"rate": 2.0}),
    "ct-oracle": (ENTERED, "ct-oracle", {"rate": 2.0}),
}


def stream(
    world: dict[str, Any], name: str, settings: dict[str, Any], steps: int = ROUNDS, *, adversary: str = "uniform"
) -> tuple[ArenaGame, Any, Any]:
    built = instances.build(world["name"], n_states=world["n_states"], n_steps=steps)
    domain = StationaryPolicies(built.kernel, built.initial)
    player: Any = named(name, domain, steps, **settings)
    tables = losses.named(adversary, (1, *domain.shape[1:]), steps, 3)
    return ArenaGame(Stepwise(built.kernel, built.initial), tables, None, player.feedback), player, domain


@pytest.mark.parametrize("adversary", ["uniform", "bernoulli"])
@pytest.mark.parametrize("case", PLAYERS.values(), ids=PLAYERS)
def test_blocks_of_steps_are_the_rounds_to_the_last_bit(
    case: Any, adversary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, player, domain = stream(*case, adversary=adversary)
    require_same(game, player, domain, monkeypatch)
    one_by_one = [record.segment for record in play_rounds(game, player, domain, Streams.from_seed(2))]
    together = [record.segment for block in play_blocks(game, player, domain, Streams.from_seed(2)) for record in block]
    for one, other in zip(one_by_one, together, strict=True):
        assert isinstance(one, Step)
        assert isinstance(other, Step)
        assert (one.time, one.reached) == (other.time, other.reached)


@pytest.mark.parametrize("case", PLAYERS.values(), ids=PLAYERS)
def test_a_stream_goes_on_from_its_state_to_the_last_bit(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    require_resumed(*stream(*case), monkeypatch)


@pytest.mark.parametrize("adversary", ["uniform", "bernoulli"])
def test_a_leader_that_is_watched_is_the_one_that_an_oracle_names(adversary: str) -> None:
    """An oracle that lists its policies is asked in doubt, another one after every step that the leader paid for."""
    played = []
    for oracle in ("auto", "branch-and-bound"):
        game, player, domain = stream(ENTERED, "ct-oracle", {"rate": 0.3, "oracle": oracle}, 150, adversary=adversary)
        assert (bind(oracle, domain).listed is None) == (block_form(player, domain) is None) == (oracle != "auto")
        rounds = [record for block in play_blocks(game, player, domain, Streams.from_seed(5)) for record in block]
        played.append([(record.segment.states[0], record.segment.actions[0]) for record in rounds])
        plans = sum(record.plans for record in rounds)
        assert 1 < plans < 40 if oracle == "auto" else plans > 50
    assert played[0] == played[1]


def test_a_planner_lists_every_policy_that_it_may_answer_with() -> None:
    domain = StationaryPolicies(instances.build("random-parked", n_states=3, n_steps=12).kernel)
    planner = bind("auto", domain)
    assert planner.listed is not None
    listed = {tuple(policy) for policy in planner.listed.policies.tolist()}
    assert len(listed) == len(planner.listed.policies) <= 3**3
    costs = np.random.default_rng(1).random((40, *domain.shape))
    assert {tuple(policy) for policy in planner.minimize(costs).actions.tolist()} <= listed


def test_losses_that_grow_from_one_another_do_not_change_each_other() -> None:
    first, second, third = np.random.default_rng(1).random((3, 2, 3, 2))
    past = PastLosses.none((6, 3, 2)).plus(first)
    one, other = past.plus(second), past.plus(third)
    longer = one.plus(third[:1])
    assert_array_equal(one.whole, np.concatenate([first, second, np.zeros((2, 3, 2))]))
    assert_array_equal(other.whole, np.concatenate([first, third, np.zeros((2, 3, 2))]))
    assert_array_equal(longer.whole, np.concatenate([first, second, third[:1], np.zeros((1, 3, 2))]))
    assert_array_equal(past.whole, np.concatenate([first, np.zeros((4, 3, 2))]))


def test_blocks_of_a_stream_are_as_long_as_their_steps_allow() -> None:
    steps = 2 * BLOCK + 3
    game, player, domain = stream(ERGODIC, "mdp-e", {}, steps)
    blocks = list(play_blocks(game, player, domain, Streams.from_seed(1)))
    assert [len(block) for block in blocks] == [BLOCK, BLOCK, 3]
    every = measure(game, blocks)
    some = measure(game, play_rounds(game, player, domain, Streams.from_seed(1)), checkpoints=[1, BLOCK + 1, steps])
    for column in ("paid", "best", "best_bound"):
        assert_array_equal(getattr(every, column)[some.rounds - 1], getattr(some, column))


def test_every_checkpoint_of_a_long_stream_is_measured_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    game, player, domain = stream(ERGODIC, "mdp-e", {})
    whole = measure(game, play_blocks(game, player, domain, Streams.from_seed(1)))
    monkeypatch.setattr("amdp.game.regret.BLOCK_NUMBERS", 7 * ROUNDS * 8)
    parts = measure(game, play_blocks(game, player, domain, Streams.from_seed(1)))
    assert_array_equal(whole.best, parts.best)


class OwnExperts(MdpE):
    """Might do anything."""


class OwnExp3(MdpExp3):
    """Might do anything."""


class OwnWalks(WalkingLeader):
    """Might do anything."""


class OwnStream(Stepwise):
    """Another arena."""


def test_what_the_compiled_loops_do_not_do_is_played_in_python() -> None:
    game, player, domain = stream(ERGODIC, "mdp-e", {})
    for own in (OwnExperts(0.1), OwnExp3(0.1, 0.1, 3), OwnWalks(0.1)):
        assert block_form(own, domain) is None
    assert block_form(named("fll", stream(PARKED, "fll", {})[2], 10), domain) is None
    elsewhere = replace(game, arena=OwnStream(domain.dynamics, domain.initial))
    [block] = play_blocks(elsewhere, player, domain, Streams.from_seed(1))
    assert not isinstance(block, StepBlock)
    game, player, domain = stream(RING, "ct-deterministic", {})
    late = replace(game, delays=delays.fixed(ROUNDS, 3))
    [block] = play_blocks(late, player, domain, Streams.from_seed(1))
    assert not isinstance(block, StepBlock)
    game, player, domain = stream(ERGODIC, "mdp-e", {})
    with pytest.raises(InvalidInput, match="feedback came late"):
        list(play_blocks(replace(game, delays=delays.fixed(ROUNDS, 1)), player, domain, Streams.from_seed(1)))
