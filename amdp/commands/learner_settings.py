"""The settings of one learner, with theory's values for a game: `amdp learners NAME [WORLD]`."""

from collections.abc import Iterator
from dataclasses import replace
from inspect import getdoc
from typing import Any

from rich.table import Column, Table

from amdp import options
from amdp.algorithms.named import recipe
from amdp.algorithms.settings import WHAT
from amdp.commands.play import EPISODES
from amdp.commands.screen import Screen
from amdp.errors import AmdpError
from amdp.experiments.building import arrange
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings, plain
from amdp.game.games import radius_of

# Without a world: the first of these games that the learner plays, as many episodes or steps as `amdp play` has.
EPISODIC: tuple[dict[str, Any], ...] = ({}, {"unknown": True})
STREAMS = ("waiting-ring", "random-parked", "random-ergodic", "random-entered")


def explained(player: LearnerSettings, games: list[GameSettings]) -> dict[str, Any]:
    """What a learner is, and its settings with their values in the first of the games that it plays."""
    build = recipe(player.name)  # a wrong name is refused before any world is built
    game = _played(player, games)
    match = arrange(RunSettings(game, player, seed=1))
    usual = options.defaults(build)
    return {
        "name": player.name,
        "what": getdoc(build) or "",
        "game": plain(game),
        "multiplier": player.multiplier,
        "settings": [
            {"name": name, "what": WHAT.get(name, ""), "default": usual[name], "value": value}
            for name, value in match.settings.items()
        ],
        "tuned_without_delay": match.tuned_without_delay,
    }


def usual_games(
    episodes: int | None, steps: int | None, delay: str, unknown: bool, radius: str
) -> Iterator[GameSettings]:
    """Small games, for a learner whose world was not given."""
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


def show(found: dict[str, Any]) -> None:
    """Print what `explained` has found, as a text and a table."""
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
    screen.print(f"This game: {_words(found['game'], found['name'])}; multiplier {found['multiplier']:g}.")
    if found["tuned_without_delay"]:
        screen.print("Theory's rate is for feedback that comes at once: it does not know of the delay.")


def _default(row: dict[str, Any]) -> str:
    """A default of None stands for theory's value, but where the learner has none: see the value."""
    has_theory = isinstance(row["value"], float | int) and row["default"] is None
    return "theory" if has_theory else _number(row["value"] if row["default"] is None else row["default"])


def _number(value: Any) -> str:
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _words(game: dict[str, Any], learner: str) -> str:
    length = f"{game['episodes']} episodes" if game["episodes"] is not None else f"{game['steps']} steps of one stream"
    known = (
        f"unknown transitions, radius {radius_of(game['radius'], learner)}" if game["unknown"] else "known transitions"
    )
    late = "no delay" if game["delay"] == "none" else f"delay {game['delay']}"
    return f"{Named.from_json(game['instance'])}, {length}, {known}, {late}"
