"""`amdp learners`: the learners by name, grouped by the games that they play."""

from enum import StrEnum
from itertools import product
from typing import Annotated, Any

import typer

from amdp import options, registry
from amdp.algorithms.named import GROUP
from amdp.commands import completion, listing
from amdp.commands.listing import Entry, settings_text, summary
from amdp.commands.screen import AsJson, clear_errors, print_json
from amdp.game.games import Game
from amdp.game.match import Match, enter

# Small games: those that a learner enters say what it can play.
UNKNOWN: tuple[dict[str, Any], ...] = ({}, {"unknown": True}, {"unknown": True, "radius": "l1"})
EPISODIC = [{"world": "tiny", "rounds": 4, "delay": delay, **p} for delay, p in product(("none", "fixed:1"), UNKNOWN)]
STREAMS = [
    {"world": world, "steps": 200} for world in ("waiting-ring", "random-parked", "random-ergodic", "random-entered")
]
KINDS = ("episodes", "stream", "known_transitions", "unknown_transitions", "delays")  # of games
HINT = "amdp learners NAME: its settings, given by --set KEY=VALUE, in a spec under `settings`."


class FeedbackName(StrEnum):
    """What a learner is told of the losses: those on its way, or all."""

    BANDIT = "bandit"
    FULL = "full"


def learners(
    names: Annotated[list[str] | None, listing.names_of(completion.learners)] = None,
    feedback: Annotated[FeedbackName | None, typer.Option(help="Only learners with this feedback.")] = None,
    unknown: Annotated[bool, typer.Option("--unknown", help="Only learners for unknown transitions.")] = False,
    episodes: Annotated[bool, typer.Option("--episodes", help="Only learners for episodes.")] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Only learners for one stream of steps.")] = False,
    delays: Annotated[bool, typer.Option("--delays", help="Only learners for delayed feedback.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the learners, grouped by the games that they play; by name, all about one of them and its settings.

    Example: amdp learners --feedback bandit --unknown

    Example: amdp learners ftpl
    """
    wanted = {
        "feedback": feedback,
        "unknown_transitions": unknown,
        "episodes": episodes,
        "stream": stream,
        "delays": delays,
    }
    with clear_errors():
        found = listing.chosen("learner", names, registry.names(GROUP))
        games = [Game(**settings) for settings in EPISODIC + STREAMS]
        played = {name: [_facts(match) for game in games if (match := _entered(game, name))] for name in found}
        rows = [_row(name, facts) for name, facts in played.items() if _fits(facts, wanted)]
    if as_json:
        print_json(rows)
        return
    listing.show(
        listing.by_heading((_heading(row), _entry(row)) for row in sorted(rows, key=_place)),
        whole=bool(names),
        hint=HINT,
    )


def _facts(match: Match) -> dict[str, Any]:
    """What there is in a game: the keys of a row."""
    knows = match.domain.dynamics is match.game.world.kernel
    return {
        "episodes": not match.game.is_stream,
        "stream": match.game.is_stream,
        "known_transitions": knows,
        "unknown_transitions": not knows,
        "feedback": match.used["told"],
        "delays": match.game.total_delay > 0,
    }


def _fits(played: list[dict[str, Any]], wanted: dict[str, Any]) -> bool:
    """Whether one of the games has all that is wanted: a learner for delays or a stream need not be for both."""
    asked = {key: value for key, value in wanted.items() if value}
    return not asked or any(all(facts[key] == value for key, value in asked.items()) for facts in played)


def _row(name: str, played: list[dict[str, Any]]) -> dict[str, Any]:
    recipe = registry.find(GROUP, name)
    return {
        "name": name,
        "what": summary(recipe),
        **{key: any(facts[key] for facts in played) for key in KINDS},
        "feedback": played[0]["feedback"] if played else None,
        "settings": options.defaults(recipe),
    }


def _entered(game: Game, learner: str) -> Match | None:
    try:
        return enter(game, learner)
    except Exception:  # a refusal, or a defect of somebody's learner: it does not play this game
        return None


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    """Episodes before streams, known before unknown transitions, then by feedback; names stay in their order."""
    return row["stream"], not row["episodes"], row["unknown_transitions"], str(row["feedback"])


def _heading(row: dict[str, Any]) -> str:
    """What somebody has for whom these learners are."""
    lengths = {"episodes": row["episodes"], "one stream of steps": row["stream"]}
    transitions = {"known": row["known_transitions"], "unknown": row["unknown_transitions"]}
    if not any(lengths.values()):
        return "Plays none of the games that were tried"
    games = " or ".join(word for word, holds in lengths.items() if holds)
    known = " or ".join(word for word, holds in transitions.items() if holds)
    text = f"{games}; transitions {known}; {row['feedback']} feedback"
    return text[0].upper() + text[1:] + ("" if row["delays"] else ", no delays")


def _entry(row: dict[str, Any]) -> Entry:
    settings = {"settings": settings_text(row["settings"]) or "none"}
    return Entry(row["name"], row["what"], settings)
