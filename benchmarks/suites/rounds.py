"""Rounds of whole games, measured: compiled blocks against the loop of rounds, and against their compiled calls alone.

Every time includes the losses, the play, the exact regret at thirty checkpoints, and what is left of Python.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np

from amdp.experiments.building import arrange
from amdp.experiments.ladders import spec_of
from amdp.experiments.table_1 import ladders
from amdp.game.blocks import Block, CompiledBlock
from amdp.game.games import Game
from amdp.game.match import Match, enter
from amdp.game.regret import Regret, log_checkpoints
from amdp.instances.base import Instance
from benchmarks import worlds
from benchmarks.processes import run_fresh
from benchmarks.results import Goal, Row, at_least, at_most, faster
from benchmarks.timing import Effort, side_by_side

Rows = Iterator[Row]

SEED = 20_263
ROUNDS = 2_000
STREAM_STEPS = 10_000
GOALS = {  # against the loop of rounds
    "ftpl-shared": 12.0,
    "ftpl": 12.0,
    "ftpl-scaled": 12.0,
    "ftpl-adaptive": None,
    "fpl": None,
    "o-reps": 8.0,
    "hedge": 8.0,
    "soft-leader": 100.0,
    "soft-leader-full": 100.0,
}
IN_BOXES = (
    *("ftpl", "ftpl-scaled", "fpl", "soft-leader", "pomd", "delayed-oppo", "dilated-bonus", "delayed-hedge"),
    *("uob-reps", "uc-o-reps-bernstein", "delayed-uob-reps", "delayed-uob-ftrl", "o-reps-adaptive"),
)
RADIUS_SCALE = 0.05  # of the confidence sets, which narrow within the game
LONG = """
import json, resource, sys, time
import amdp
from amdp.game.match import enter
from amdp.game.regret import log_checkpoints

def played(rounds):
    match = enter(amdp.Game("tiny", rounds=rounds), "ftpl-shared")
    began = time.process_time()
    match.measure(match.blocks(1), log_checkpoints(rounds, 50))
    return time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

played(1_000)
print(json.dumps([played({few}), played({many})]))
"""


def tiny(effort: Effort) -> Rows:
    """Every learner with a compiled form, in the smallest world."""
    game = Game("tiny", rounds=ROUNDS if effort.seconds else 100)
    for name, goal in GOALS.items():
        yield _against_rounds("game", enter(game, name), name, None if goal is None else at_least(goal), effort)


def unknown(effort: Effort) -> Rows:
    """The same with unknown transitions, for learners that are compiled over boxes."""
    game = Game("tiny", rounds=ROUNDS if effort.seconds else 100, unknown=True, radius_scale=RADIUS_SCALE)
    for name in IN_BOXES:
        yield _against_rounds("unknown", enter(game, name), name, None, effort)


def streams(effort: Effort) -> Rows:
    """The learners of Table 1 that choose anew in each step of a stream, in their standard worlds."""
    steps = STREAM_STEPS if effort.seconds else 300
    for ladder in ladders():
        if ladder.along == "steps":
            game = spec_of(ladder.name, [replace(ladder, rungs=(steps,))], 1).first()[0]
            match = arrange(game.settings)
            if match.epochs is None:
                yield _against_rounds("stream", match, str(ladder.learner["name"]), None, effort)


def _against_rounds(what: str, match: Match, name: str, goal: Goal | None, effort: Effort) -> Row:
    times = side_by_side({"blocks": partial(_blocks, match), "rounds": partial(_rounds, match)}, _few(effort))
    each = f"{times.median('blocks') / match.rounds * 1e6:.3g} us a round"
    return faster(f"{what}, {name}", _sizes(match), times, "blocks", "rounds", goal, each)


def overhead(effort: Effort) -> Rows:
    """How much a game takes beyond the compiled calls that it is made of."""
    kernel = worlds.kernel((10, 10, 4), np.random.default_rng(SEED))
    cases = (("tiny", "ftpl-shared", 1.2), (Instance("dense", kernel, np.zeros(kernel.shape)), "ftpl-scaled", 1.1))
    for world, name, goal in cases:
        match = enter(Game(world, rounds=ROUNDS if effort.seconds else 100), name)
        _blocks(match)
        shares = [_overhead(match) for _ in range(effort.rounds)]
        median = float(np.median(shares))
        yield Row(
            f"game, {name}", "its compiled calls", median, 1.0, "", _sizes(match), median, "ours / theirs",
            (min(shares), max(shares)), at_most(goal), "by the clock; least and most of all rounds",
        )  # fmt: skip


def long(effort: Effort) -> Rows:
    """A million rounds: processor seconds, and the peak of memory beside that of a tenth of them."""
    few, many = (100_000, 1_000_000) if effort.seconds else (1_000, 2_000)
    _, printed = run_fresh(LONG.format(few=few, many=many))
    (_, less), (seconds, more) = json.loads(printed)
    sizes = {"S": 3, "A": 2, "H": 3, "K": many}
    yield Row(
        "game, ftpl-shared", "", seconds, 0.0, "s", sizes, goal=Goal("at most", 20.0, " s"), note="processor time"
    )
    yield Row(
        "peak of memory", f"K = {few:,}", more, less, "B", sizes, more / less, "ours / theirs", goal=at_most(1.05)
    )


def _blocks(match: Match) -> Regret:
    return match.measure(match.blocks(1), log_checkpoints(match.rounds, 30))


def _rounds(match: Match) -> Regret:
    return match.measure(match.play(1), log_checkpoints(match.rounds, 30))


def _overhead(match: Match) -> float:
    """The seconds of a measured game over those that its compiled calls count."""
    inside = 0.0

    def counted() -> Iterator[Block]:
        nonlocal inside
        for block in match.blocks(1):
            assert isinstance(block, CompiledBlock)
            inside += float(block.result.played.spent.sum()) * 1e-9
            yield block

    began = perf_counter()
    match.measure(counted(), log_checkpoints(match.rounds, 30))
    return (perf_counter() - began) / inside


def _few(effort: Effort) -> Effort:
    return Effort(min(effort.rounds, 5), 0.0, effort.sample)


def _sizes(match: Match) -> dict[str, int]:
    steps, states, actions = match.domain.shape
    return {"S": states, "A": actions, "H": steps, "K": match.rounds}


CASES = {"tiny": tiny, "unknown": unknown, "streams": streams, "overhead": overhead, "long": long}
