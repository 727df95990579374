"""`amdp instances`, `amdp learners`, `amdp oracles`: the names that commands and specs know, with their settings."""

from inspect import getdoc
from itertools import product
from math import inf
from typing import Any

from rich.table import Column, Table

from amdp import options, registry
from amdp.algorithms.named import GROUP as LEARNERS
from amdp.commands.screen import AsJson, Screen, clear_errors, print_json
from amdp.errors import MissingDependency
from amdp.game.games import Game
from amdp.game.match import Match, enter
from amdp.instances import continuing, standard
from amdp.oracles.base import GROUP as ORACLES
from amdp.oracles.base import PlanningOracle, describe, oracle
from amdp.testing import sample_domains

SIZES = ("name", "steps", "states", "actions")
# Small games: those that a learner enters say what it can play.
UNKNOWN: tuple[dict[str, Any], ...] = ({}, {"unknown": True}, {"unknown": True, "radius": "l1"})
EPISODIC = [{"world": "tiny", "rounds": 4, "delay": delay, **p} for delay, p in product(("none", "fixed:1"), UNKNOWN)]
STREAMS = [
    {"world": world, "steps": 200} for world in ("waiting-ring", "random-parked", "random-ergodic", "random-entered")
]


def instances(as_json: AsJson = False) -> None:
    """List the built-in worlds, their sizes and their settings; infinite-horizon worlds come last.

    Example: amdp instances
    """
    rows: list[dict[str, Any]] = [
        dict(zip(SIZES, (name, *make().shape), strict=True)) | {"settings": options.defaults(make)}
        for name, make in (standard() | continuing()).items()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(Column("instance", no_wrap=True), *SIZES[1:], "settings")
    for row in rows:
        table.add_row(*(str(row[key]) for key in SIZES), _text(row["settings"]))
    Screen().print(table)


def learners(as_json: AsJson = False) -> None:
    """List the learners, the games that each can play, and their settings.

    Example: amdp learners
    """
    with clear_errors():
        games = [Game(**settings) for settings in EPISODIC + STREAMS]
        rows = [_learner(name, games) for name in registry.names(LEARNERS)]
    if as_json:
        print_json(rows)
        return
    table = Table(Column("learner", no_wrap=True), Column("plays", no_wrap=True), "description and settings")
    for row in rows:
        settings = f"\nsettings: {_text(row['settings'])}" if row["settings"] else ""
        table.add_row(row["name"], _plays(row), row["what"] + settings, end_section=True)
    Screen().print(table)


def _learner(name: str, games: list[Game]) -> dict[str, Any]:
    recipe = registry.find(LEARNERS, name)
    matches = [match for game in games if (match := _entered(game, name))]
    return {
        "name": name,
        "what": (getdoc(recipe) or "").split("\n")[0],
        "episodes": any(not match.game.is_stream for match in matches),
        "stream": any(match.game.is_stream for match in matches),
        "unknown_transitions": any(match.domain.dynamics is not match.game.world.kernel for match in matches),
        "feedback": matches[0].used["told"] if matches else None,
        "delays": any(match.game.total_delay for match in matches),
        "settings": options.defaults(recipe),
    }


def _entered(game: Game, learner: str) -> Match | None:
    try:
        return enter(game, learner)
    except Exception:  # a refusal, or a defect of somebody's learner: it does not play this game
        return None


def _plays(row: dict[str, Any]) -> str:
    lengths = [word for word in ("episodes", "stream") if row[word]]
    transitions = "unknown" if row["unknown_transitions"] else "known"
    delays = "delays" if row["delays"] else "no delays"
    return f"{' or '.join(lengths)}\n{transitions} transitions\n{row['feedback']} feedback\n{delays}"


def oracles(as_json: AsJson = False) -> None:
    """List the planning oracles: the domains that each one solves, its options, and packages that it lacks.

    Example: amdp oracles
    """
    with clear_errors():
        rows = [_oracle(name) for name in registry.names(ORACLES)]
    if as_json:
        print_json(rows)
        return
    classes = list(dict.fromkeys(type(domain).__name__ for domain in sample_domains()))
    over = (f"{policies.removesuffix('Policies')}\npolicies over" for policies in classes)
    table = Table(Column("oracle", no_wrap=True), *over, "options")
    for row in rows:
        solves = [_after(f"{policies} over ", row["solves"]) for policies in classes]
        lines = [name if value is None else f"{name}={value}" for name, value in row["options"].items()]
        lines += [f"not installed: {row['missing']}"] if row["missing"] else []
        table.add_row(row["name"], *solves, "\n".join(lines), end_section=True)
    Screen().print(table)


def _oracle(name: str) -> dict[str, Any]:
    try:
        chosen: PlanningOracle = oracle(name)
    except MissingDependency as problem:
        return {"name": name, "solves": [], "options": {}, "missing": problem.remedy}
    values = {option: getattr(chosen, option) for option in registry.known_options(type(chosen))}
    return {
        "name": name,
        "solves": list(dict.fromkeys(describe(domain) for domain in sample_domains() if chosen.supports(domain))),
        "options": {option: None if value == inf else value for option, value in values.items()},
        "missing": registry.remedy(registry.missing(chosen.requires)),
    }


def _after(prefix: str, texts: list[str]) -> str:
    return "\n".join(text.removeprefix(prefix) for text in texts if text.startswith(prefix))


def _text(settings: dict[str, Any]) -> str:
    return ", ".join(name if usual is None else f"{name}={usual}" for name, usual in settings.items())
