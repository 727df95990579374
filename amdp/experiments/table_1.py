"""The standard games of the catalog's rows: small worlds in which each learner's assumptions hold."""

from collections.abc import Sequence
from typing import Any

from amdp.algorithms import paper_table
from amdp.algorithms.paper_table import TABLE, Row
from amdp.experiments.ladders import UNKNOWN, Ladder

LENGTHS = (1_000, 10_000, 30_000, 100_000)  # episodes, or steps of a stream
FEWER = (1_000, 3_000, 10_000, 30_000)
SHORTER = {
    "ftpl-infinite-renewed": (1_000, 2_000, 6_000, 10_000),  # 3SA trials a step, each followed through an epoch
    "ftpl-aggregate": FEWER,  # sqrt(HSAK) leaders a round
    "do-reps": FEWER[:3],  # some eight projections a round, without a compiled game
}
QUICK_EPISODES = (125, 250, 500, 1_000)
QUICK_STEPS = (250, 500, 1_000, 2_000)
DELAY = "fixed:20"

_SMALL = {"name": "tiny", "n_steps": 3, "n_states": 2}
_WORLDS: dict[str, dict[str, Any]] = {
    paper_table.KNOWN: _SMALL,
    paper_table.UNKNOWN: _SMALL,
    paper_table.REACHABLE: _SMALL,
    paper_table.ERGODIC: {"name": "random-ergodic", "n_states": 4, "n_actions": 2},
    paper_table.DETERMINISTIC: {"name": "waiting-ring", "n_states": 4},
    paper_table.COMMUNICATING: {"name": "random-parked", "n_states": 3, "n_actions": 2},
}
_OWN = {"ct-oracle": {"name": "random-entered", "n_states": 3, "n_actions": 2}}  # a start with mass on every state


def ladders(quick: bool = False, rows: Sequence[Row] = TABLE) -> list[Ladder]:
    """One for each row: regret along the length of the game."""
    return [_ladder(row, quick) for row in rows]


def _ladder(row: Row, quick: bool) -> Ladder:
    stream = row.setting == paper_table.STREAM
    game: dict[str, Any] = {"instance": _OWN.get(row.learner, _WORLDS[row.transitions]), "losses": "bernoulli"}
    if row.transitions == paper_table.UNKNOWN:
        game |= UNKNOWN
    if row.feedback == paper_table.DELAYED:
        game["delay"] = DELAY
    along, short = ("steps", QUICK_STEPS) if stream else ("episodes", QUICK_EPISODES)
    rungs = short if quick else SHORTER.get(row.learner, LENGTHS)
    return Ladder(row.name, along, rungs, game, {"name": row.learner}, row.exponent, row.heading)
