"""Games and learners as a spec writes them: points of a grid become settings, and wrong values name their key."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from amdp import options, registry
from amdp.algorithms.named import GROUP as LEARNERS
from amdp.errors import AmdpError, SpecError
from amdp.experiments import match
from amdp.experiments.grid import Branch, Leaf, Point
from amdp.experiments.reading import below, meant, of_kind, require_known, shown, wrong
from amdp.experiments.settings import GameSettings, LearnerSettings, Named
from amdp.game.games import LOSS_FILES, WORLD_FILES
from amdp.instances import named as worlds
from amdp.losses import by_name as adversaries
from amdp.oracles.base import GROUP as ORACLES
from amdp.oracles.projection.base import GROUP as PROJECTIONS

GAME: dict[str, Any] = {
    "instance": Named,
    "losses": Named,
    "episodes": int,
    "steps": int,
    "delay": str,
    "feedback": str,
    "unknown": bool,
    "radius": str,
    "radius_scale": float,
    "comparator": Named,
}
LEARNER: dict[str, Any] = {
    "name": str,
    "oracle": Named,
    "projection": Named,
    "multiplier": float,
    "settings": Mapping,
}
NUMBERS = ("radius_scale", "multiplier")

Made = TypeVar("Made")
Finder = Callable[[str], Any]  # what a name stands for


def game(point: Branch, seed: int, folder: str = "") -> GameSettings:
    """The settings of a game, every part of which was tried with a seed; names of files start in `folder`."""
    _require_kinds(point, GAME)
    known: dict[str, tuple[list[str], Finder]] = {
        "instance": (list(worlds.standard() | worlds.continuing()), worlds.world),
        "losses": (list(adversaries.standard()), adversaries.adversary),
        "comparator": (registry.names(ORACLES), partial(registry.find, ORACLES)),
    }
    files = {"instance": WORLD_FILES, "losses": LOSS_FILES}
    given = {key: _number(key, part.plain) for key, part in point.parts.items()}
    for key in known.keys() & given.keys():
        given[key] = _named(point.parts[key], *known[key], files.get(key, ()), folder)
    if "comparator" in given:
        _create(_part(point, "comparator"), ORACLES, given["comparator"])
    settings = _tried(point, lambda: GameSettings(**given))
    try_parts(point, settings, seed)
    return settings


def try_parts(point: Branch, settings: GameSettings, seed: int) -> None:
    """Make each part of a game once; what is refused is refused at its key."""
    instance = _tried(_part(point, "instance"), lambda: match.world(settings))
    _tried(_part(point, "losses"), lambda: match.adversary_of(settings, instance, seed))
    _tried(point, lambda: match.build_delays(settings, seed), "delay")
    _tried(point, lambda: match.told(settings, instance))


def learner(point: Branch) -> LearnerSettings:
    """The settings of a learner; whether it can play a game shows only there."""
    _require_kinds(point, LEARNER)
    name = _text(point.parts["name"])
    require_name(point.parts["name"].path, name, registry.names(LEARNERS))
    recipe = _tried(point, lambda: registry.find(LEARNERS, name))
    given = {key: _number(key, part.plain) for key, part in point.parts.items()}
    for key, group in (("oracle", ORACLES), ("projection", PROJECTIONS)):
        if key in given:
            given[key] = _named(point.parts[key], registry.names(group), partial(registry.find, group))
            _create(_part(point, key), group, given[key])
    if "settings" in given:
        _require_options(_part(point, "settings"), recipe)
    return _tried(point, lambda: LearnerSettings(**given))


def require_name(path: str, name: str, known: list[str]) -> None:
    """Refuse a name that nothing has."""
    if name not in known:
        raise SpecError(f"{shown(name)}; {meant(name, known)}known names: {', '.join(known)}", path)


def _require_kinds(point: Branch, known: Mapping[str, Any]) -> None:
    for key, part in point.parts.items():
        expected = known[key]
        if expected is Mapping and isinstance(part, Leaf):
            raise wrong(part.path, part.value, "it must be a table")
        if expected not in (Named, Mapping):
            of_kind(part.path, part.plain, expected)


def _create(point: Branch, group: str, given: Named) -> None:
    """Once, to see whether its settings are allowed."""
    _tried(point, partial(registry.create, group, given.name, dict(given.settings)))


def _named(part: Point, known: list[str], find: Finder, suffixes: tuple[str, ...] = (), folder: str = "") -> Named:
    """A name alone, or a table with a name and settings; for a file, the settings are its checksum."""
    if isinstance(part, Leaf):
        part = Branch(part.path, {"name": part})
    if "name" not in part.parts:
        raise SpecError("missing; it must be given", below(part.path, "name"))
    path, name, rest = part.parts["name"].path, _text(part.parts["name"]), part.without("name")
    if match.is_file(Named(name), suffixes):
        require_known(part.path, rest.parts, [])
        content = _tried(Branch(path, {}), lambda: match.checksum(Named(name, folder=folder).file))
        return Named(name, {"sha256": content}, folder)
    require_name(path, name, known)
    _require_options(rest, _tried(part, lambda: find(name)))
    return _tried(rest, lambda: Named(name, rest.plain))


def _require_options(point: Branch, found: Any) -> None:
    kinds = options.kinds(found)
    for key, part in point.parts.items():
        if key not in kinds:
            require_known(part.path.rpartition(f".{key}")[0], [key], list(kinds))
        of_kind(part.path, part.plain, kinds[key])


def _tried(point: Branch, make: Callable[[], Made], key: str | None = None) -> Made:
    """What is made; what is refused is refused at the key of the table to which the message belongs."""
    try:
        return make()
    except SpecError as problem:
        raise SpecError(str(problem), point.path) from problem
    except (AmdpError, TypeError, ValueError, ArithmeticError, MemoryError) as problem:
        blamed = point.blamed(problem)
        if key in point.parts and blamed.path == point.path:
            blamed = SpecError(str(problem), point.parts[key].path)
        raise blamed from problem


def _part(point: Branch, key: str) -> Branch:
    part = point.parts.get(key, Branch(below(point.path, key), {}))
    return part if isinstance(part, Branch) else Branch(part.path, {})


def _text(part: Point) -> str:
    of_kind(part.path, part.plain, str)
    return str(part.plain)


def _number(key: str, value: Any) -> Any:
    return float(value) if key in NUMBERS else value
