"""`amdp learners`: the learners by name, grouped by the games that they play, or the settings of one."""

from enum import StrEnum
from itertools import product
from typing import Annotated, Any

import typer

from amdp import options, registry
from amdp.algorithms.named import GROUP, recipe
from amdp.commands import completion, listing
from amdp.commands.completion import option
from amdp.commands.learner_settings import explained, show, usual_games
from amdp.commands.listing import Entry, summary
from amdp.commands.play import DELAY, EPISODES
from amdp.commands.screen import AsJson, WorldSettings, clear_errors, print_json, settings
from amdp.errors import InvalidInput
from amdp.experiments.settings import GameSettings, LearnerSettings, Named
from amdp.game.games import OWN, Game
from amdp.game.match import Match, enter

# Small games: those that a learner enters say what it can play.
UNKNOWN: tuple[dict[str, Any], ...] = ({}, {"unknown": True})
EPISODIC = [{"world": "tiny", "rounds": 4, "delay": delay, **p} for delay, p in product(("none", "fixed:1"), UNKNOWN)]
STREAMS = [
    {"world": world, "steps": 200} for world in ("waiting-ring", "random-parked", "random-ergodic", "random-entered")
]
KINDS = ("episodes", "stream", "known_transitions", "unknown_transitions", "delays")  # of games
HINT = "amdp learners NAME: its settings, given by --set KEY=VALUE, in a spec under `settings`."


class FeedbackName(StrEnum):
    """What a learner is told of the losses: those on its way, all, or the sum of those on its way."""

    BANDIT = "bandit"
    FULL = "full"
    AGGREGATE = "aggregate"


class Kind(StrEnum):
    """The kind of a game."""

    EPISODES = "episodes"
    STREAM = "stream"


def learners(
    name: Annotated[
        str | None, typer.Argument(help="Explain the settings of this learner.", autocompletion=completion.learners)
    ] = None,
    instance: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORLD]", help="With NAME: the world that it is tuned for.", autocompletion=completion.instances
        ),
    ] = None,
    feedback: Annotated[FeedbackName | None, typer.Option(help="Only learners with this feedback.")] = None,
    plays: Annotated[Kind | None, typer.Option(help="Only learners for such games.")] = None,
    delays: Annotated[bool, typer.Option("--delays", help="Only learners for delayed feedback.")] = False,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Only learners for unknown transitions; with NAME, in such a game.")
    ] = False,
    episodes: Annotated[int | None, typer.Option(help=f"With NAME: episodes; {EPISODES} if not given.")] = None,
    steps: Annotated[int | None, typer.Option(help="With NAME: instead of episodes, steps of one stream.")] = None,
    delay: Annotated[str, option(completion.delays, f"With NAME. {DELAY}")] = "none",
    radius: Annotated[str, typer.Option(help="With NAME, --unknown: confidence sets, as in `amdp play`.")] = OWN,
    multiplier: Annotated[float, typer.Option(help="With NAME: factor of the learning rate.")] = 1.0,
    given: Annotated[list[str] | None, typer.Option("--set", help="With NAME: KEY=VALUE; repeatable.")] = None,
    world: WorldSettings = None,
    as_json: AsJson = False,
) -> None:
    """List the learners, grouped by the games that they play; with NAME, explain the settings of one.

    Example: amdp learners --feedback bandit --unknown

    Example: amdp learners uob-reps river-swim --episodes 2000 --unknown
    """
    with clear_errors():
        if name is None:
            _refuse("goes with NAME", episodes=episodes, steps=steps, delay=delay != "none", set=given, world=world)
            wanted: dict[str, Any] = {} if feedback is None else {"feedback": feedback}
            asked = {"unknown_transitions": unknown, "delays": delays} | ({plays: True} if plays else {})
            rows = _rows(wanted | {key: True for key, value in asked.items() if value})
        else:
            _refuse("narrows the list; leave out NAME", feedback=feedback, plays=plays, delays=delays)
            player = LearnerSettings(name, multiplier=multiplier, settings=settings("--set", given or ()))
            found = explained(player, _games(instance, world, episodes, steps, delay, unknown, radius))
    if as_json:
        print_json(rows if name is None else found)
    elif name is None:
        groups = listing.by_heading((_heading(row), _entry(row)) for row in sorted(rows, key=_place))
        listing.show(groups, whole=False, hint=HINT)
    else:
        show(found)


def _refuse(reason: str, **given: Any) -> None:
    """Refuse options that belong to the other form of the command."""
    for name, value in given.items():
        if value:
            raise InvalidInput(f"--{name} {reason}")


def _games(
    instance: str | None,
    world: list[str] | None,
    episodes: int | None,
    steps: int | None,
    delay: str,
    unknown: bool,
    radius: str,
) -> list[GameSettings]:
    if instance is None:
        if world:
            raise InvalidInput("--world: its settings are for a WORLD, which is not given")
        return list(usual_games(episodes, steps, delay, unknown, radius))
    length = EPISODES if episodes is None and steps is None else episodes
    where = Named.by_name(instance, settings("--world", world or ()))
    return [GameSettings(where, episodes=length, steps=steps, delay=delay, unknown=unknown, radius=radius)]


def _rows(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """The learners that play a game with all that is wanted: one for delays or a stream need not be for both."""
    games = [Game(**game) for game in EPISODIC + STREAMS]
    names = registry.names(GROUP)
    played = {name: [_facts(match) for game in games if (match := _entered(game, name))] for name in names}
    return [_row(name, facts) for name, facts in played.items() if _fits(facts, wanted)]


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
    """Whether one of the games that a learner plays is as wanted."""
    return not wanted or any(wanted.items() <= facts.items() for facts in played)


def _row(name: str, played: list[dict[str, Any]]) -> dict[str, Any]:
    build = recipe(name)
    return {
        "name": name,
        "what": summary(build),
        **{key: any(facts[key] for facts in played) for key in KINDS},
        "feedback": played[0]["feedback"] if played else None,
        "settings": options.defaults(build),
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
    return Entry(row["name"], row["what"])
