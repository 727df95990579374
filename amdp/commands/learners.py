"""`amdp learners`: the list of all learners, or the settings of one, with theory's values for a game."""

from collections.abc import Iterator
from dataclasses import replace
from inspect import getdoc
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from amdp import options, registry
from amdp.algorithms.named import GROUP
from amdp.algorithms.settings import WHAT
from amdp.commands import completion, lists
from amdp.commands.completion import option
from amdp.commands.play import DELAY, EPISODES
from amdp.commands.screen import AsJson, Screen, WorldSettings, clear_errors, print_json, settings
from amdp.errors import AmdpError, InvalidInput
from amdp.experiments.building import arrange
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings, plain

# Without a WORLD: the first of these games that the learner plays, as many episodes or steps as `amdp play` has.
EPISODIC: tuple[dict[str, Any], ...] = ({}, {"unknown": True}, {"unknown": True, "radius": "l1"})
STREAMS = ("waiting-ring", "random-parked", "random-ergodic", "random-entered")


def learners(
    name: Annotated[
        str | None,
        typer.Argument(help="Show the settings of this learner instead.", autocompletion=completion.learners),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORLD]", help="With NAME: the world that it is tuned for.", autocompletion=completion.instances
        ),
    ] = None,
    episodes: Annotated[int | None, typer.Option(help=f"With NAME: episodes; {EPISODES} if not given.")] = None,
    steps: Annotated[int | None, typer.Option(help="With NAME: instead of episodes, steps of one stream.")] = None,
    delay: Annotated[str, option(completion.delays, f"With NAME. {DELAY}")] = "none",
    unknown: Annotated[bool, typer.Option("--unknown", help="With NAME: the transitions are not known.")] = False,
    radius: Annotated[str, typer.Option(help="With --unknown: the confidence sets, as in `amdp play`.")] = "paper",
    multiplier: Annotated[float, typer.Option(help="With NAME: factor of the learning rate.")] = 1.0,
    given: Annotated[list[str] | None, typer.Option("--set", help="With NAME: KEY=VALUE; repeatable.")] = None,
    world: WorldSettings = None,
    as_json: AsJson = False,
) -> None:
    """List the learners, the games that each can play, and their settings; with NAME, explain the settings of one.

    Example: amdp learners

    Example: amdp learners uob-reps river-swim --episodes 2000 --unknown
    """
    if name is None:
        lists.learners(as_json)
        return
    with clear_errors():
        player = LearnerSettings(name, multiplier=multiplier, settings=settings("--set", given or ()))
        if instance is None:
            if world:
                raise InvalidInput("--world: its settings are for a WORLD, which is not given")
            games = list(_usual_games(episodes, steps, delay, unknown, radius))
        else:
            length = EPISODES if episodes is None and steps is None else episodes
            where = Named(instance, settings("--world", world or ()))
            games = [GameSettings(where, episodes=length, steps=steps, delay=delay, unknown=unknown, radius=radius)]
        found = _explained(player, _played(player, games))
    if as_json:
        print_json(found)
    else:
        _show(found)


def _usual_games(
    episodes: int | None, steps: int | None, delay: str, unknown: bool, radius: str
) -> Iterator[GameSettings]:
    if steps is None:
        asked = [{"unknown": True, "radius": radius}] if unknown else EPISODIC
        for known in asked:
            yield GameSettings(Named("tiny"), episodes=episodes or EPISODES, delay=delay, **known)
    if episodes is None and not unknown:
        for name in STREAMS:
            yield GameSettings(Named(name), steps=steps or EPISODES, delay=delay)


def _played(player: LearnerSettings, games: list[GameSettings]) -> GameSettings:
    """The first of the games that the learner plays when nothing is set by hand; the only one is taken as it is."""
    plainly, refusals = replace(player, multiplier=1.0, settings={}), []
    for game in games if len(games) > 1 else ():
        try:
            arrange(RunSettings(game, plainly, seed=1))
        except AmdpError as refusal:
            refusals.append(refusal)
        else:
            return game
    if refusals:
        raise refusals[0]
    return games[0]


def _explained(player: LearnerSettings, game: GameSettings) -> dict[str, Any]:
    recipe, match = registry.find(GROUP, player.name), arrange(RunSettings(game, player, seed=1))
    usual = options.defaults(recipe)
    return {
        "name": player.name,
        "what": getdoc(recipe) or "",
        "game": plain(game),
        "multiplier": player.multiplier,
        "settings": [
            {"name": name, "what": WHAT.get(name, ""), "default": usual[name], "value": value}
            for name, value in match.settings.items()
        ],
        "tuned_without_delay": match.tuned_without_delay,
    }


def _show(found: dict[str, Any]) -> None:
    screen = Screen()
    paragraphs = (" ".join(lines.split()) for lines in found["what"].split("\n\n"))
    screen.print(f"{found['name']}: " + "\n\n".join(paragraphs) + "\n")
    if not found["settings"]:
        screen.print("It has no settings.")
        return
    table = Table(Column("setting", no_wrap=True), "default", Column("in this game", no_wrap=True), "what it is")
    for row in found["settings"]:
        table.add_row(row["name"], _default(row), _number(row["value"]), row["what"])
    screen.print(table)
    screen.print(f"This game: {_words(found['game'])}; multiplier {found['multiplier']:g}.")
    if found["tuned_without_delay"]:
        screen.print("Theory's rate is for feedback that comes at once: it does not know of the delay.")


def _default(row: dict[str, Any]) -> str:
    """A default of None stands for theory's value, but where the learner has none: see the value."""
    has_theory = isinstance(row["value"], float | int) and row["default"] is None
    return "theory" if has_theory else _number(row["value"] if row["default"] is None else row["default"])


def _number(value: Any) -> str:
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _words(game: dict[str, Any]) -> str:
    length = f"{game['episodes']} episodes" if game["episodes"] is not None else f"{game['steps']} steps of one stream"
    known = f"unknown transitions, radius {game['radius']}" if game["unknown"] else "known transitions"
    late = "no delay" if game["delay"] == "none" else f"delay {game['delay']}"
    return f"{Named.from_json(game['instance'])}, {length}, {known}, {late}"
