"""The games and learners of a spec: each point of an entry's grid becomes settings.

The keys of an entry are the fields of `GameSettings` and `LearnerSettings`, and their annotations say what a value is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from amdp import options, own_code, registry
from amdp.algorithms.named import GROUP as LEARNERS
from amdp.algorithms.named import recipe
from amdp.errors import AmdpError, SpecError
from amdp.experiments import reading
from amdp.experiments.building import checksum, is_file
from amdp.experiments.candidates import Grid
from amdp.experiments.grid import Point, expanded
from amdp.experiments.reading import Table, below
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, identity
from amdp.game.games import LOSS_FILES, WORLD_FILES
from amdp.instances import named as worlds
from amdp.losses import by_name as adversaries
from amdp.oracles.base import GROUP as ORACLES
from amdp.oracles.base import created
from amdp.oracles.projection.base import GROUP as PROJECTIONS

GAME = options.annotations(GameSettings)
LEARNER = {
    key: kind for key, kind in options.annotations(LearnerSettings).items() if key != "source"
}  # found, not given
DEFAULTS = [*GAME, "oracle", "projection", "multiplier"]
ALTERNATIVES = {"episodes", "steps"}  # one of them given drops the other one's default
UNLABELLED = ("sha256", "source")  # settings that no label shows

INSIDE = "%s = {{ name = {name}, {setting} }}"  # how a setting of a part is written

Settings = TypeVar("Settings", GameSettings, LearnerSettings)


class Catalog(NamedTuple):
    """What the name of a part may be: a name, which takes options, or a file with one of some suffixes."""

    names: Callable[[], Iterable[str]]
    find: Callable[[str], Any]
    suffixes: tuple[str, ...] = ()


PLANNERS = {"comparator": ORACLES, "oracle": ORACLES, "projection": PROJECTIONS}
CATALOGS = {
    "instance": Catalog(worlds.every, worlds.world, WORLD_FILES),
    "losses": Catalog(adversaries.standard, adversaries.adversary, LOSS_FILES),
    **{key: Catalog(partial(registry.names, group), partial(registry.find, group)) for key, group in PLANNERS.items()},
}
RECIPES = Catalog(partial(registry.names, LEARNERS), recipe)


@dataclass(frozen=True)
class Entry(Generic[Settings]):
    """A point of the grid of a `[[games]]` or `[[learners]]`."""

    label: str
    shared: str  # the label of all points of its grid
    settings: Settings
    point: Point
    wanted: list[str] | None  # labels of those that it is paired with; None: all
    grid: Grid | None = None  # what tuning tries for this learner; None: what it tries for all

    def wants(self, other: "Entry[Any]") -> bool:
        """Whether this entry's own list of labels, if it has one, names the other entry or its grid."""
        return self.wanted is None or other.label in self.wanted or other.shared in self.wanted


def read_games(tables: list[Table], defaults: Table, folder: str = "") -> list[Entry[GameSettings]]:
    """All games, labelled; names of files start in `folder`."""
    entries = []
    for point, label, wanted, _ in _points("games", tables, GAME, defaults, "learners", "instance"):
        values = _values(point, GAME, folder)
        with point.blaming():
            settings = GameSettings(**values)
        entries.append(Entry("", label or Path(settings.instance.name).stem, settings, point, wanted))
    return _labelled(entries)


def read_learners(tables: list[Table], defaults: Table) -> list[Entry[LearnerSettings]]:
    """All learners, labelled; whether one can play a game shows only there."""
    entries = []
    own = {"tune": Grid.read}
    for point, label, wanted, more in _points("learners", tables, LEARNER, defaults, "games", "name", own):
        values = _values(point, LEARNER)
        found = _found(point, ("name",), values["name"], RECIPES)
        _require_options(point, "settings", values.get("settings", {}), found)
        with point.blaming():
            settings = LearnerSettings(**values, source=own_code.digest(values["name"]))
        entries.append(Entry("", label or settings.name, settings, point, wanted, more.get("tune")))
    return _labelled(entries)


def _points(
    kind: str,
    tables: list[Table],
    keys: Table,
    defaults: Table,
    others: str,
    required: str,
    whole: Mapping[str, reading.Reader] = MappingProxyType({}),
) -> Iterator[tuple[Point, str | None, list[str] | None, Table]]:
    """Each point of each entry, with the entry's label, the labels of those that it is paired with, and further keys.

    Those, with the readers `whole`, hold for all points of the entry: their lists are not expanded.
    """
    readers = {"label": reading.line, **dict.fromkeys(keys, reading.anything), others: reading.labels, **whole}
    seen: set[str | None] = set()
    for i, given in enumerate(tables):
        path = f"{kind}[{i}]"
        _refuse_settings_outside(path, given, readers)
        entry = reading.table(path, given, readers)
        label, wanted = entry.pop("label", None), entry.pop(others, None)
        more = {key: entry.pop(key) for key in whole if key in entry}
        dropped = ALTERNATIVES if ALTERNATIVES & entry.keys() else set()
        usual = {key: value for key, value in defaults.items() if key in keys and key not in dropped}
        reading.require_keys(path, usual | entry, [required])
        if label in seen:
            raise reading.wrong(f"{path}.label", label, "another entry has it already")
        seen |= {label} - {None}
        origins = {key: f"defaults.{key}" for key in usual.keys() - entry.keys()}
        for point in expanded(path, usual | entry, origins):
            yield point, label, wanted, more


def _refuse_settings_outside(path: str, entry: Table, keys: Mapping[str, Any]) -> None:
    """Refuse a setting that stands beside the name that it belongs to, and say where to write it."""
    for key in [key for key in entry if key not in keys]:
        for name, function, place in _takers(entry):
            if key in options.annotations(function):
                where = place.format(name=reading.shown(name), setting=f"{key} = {reading.shown(entry[key])}")
                raise SpecError(f"unknown key; it is a setting of {name!r}: write {where}", below(path, key))


def _takers(entry: Table) -> Iterator[tuple[str, Any, str]]:
    """The parts of an entry that are given by name and take settings, and how these are written."""
    for key, where in (("name", "settings = {{ {setting} }}"), *((key, INSIDE % key) for key in CATALOGS)):
        given = entry.get(key)
        for item in given if isinstance(given, list) else [given]:
            name = item.get("name") if isinstance(item, dict) else item
            function = _function(key, name) if isinstance(name, str) else None
            if function is not None:
                yield str(name), function, where


def _function(key: str, name: str) -> Any:
    """What builds the part of that name; None where nothing does, which is refused elsewhere."""
    try:
        return recipe(name) if key == "name" else CATALOGS[key].find(name)
    except AmdpError:
        return None


def _values(point: Point, annotations: Mapping[str, Any], folder: str = "") -> Table:
    """The arguments that make settings of a point."""
    for key, value in point.values.items():
        reading.require_type(point.path_of(key), value, annotations[key])
    return {key: _value(point, key, annotations[key], folder) for key in point.values}


def _value(point: Point, key: str, annotation: Any, folder: str) -> Any:
    if key in CATALOGS:
        part = _named(point, key, folder)
        if key in PLANNERS:  # once, to see whether its options are allowed
            with point.blaming(key):
                created(PLANNERS[key], part.name, dict(part.settings))
        return part
    value = point.values[key]
    if key == "settings" and not isinstance(value, dict):
        raise reading.wrong(point.path_of(key), value, "it must be a table")
    return float(value) if annotation is float else value


def _named(point: Point, key: str, folder: str) -> Named:
    """A name alone, or a table with a name and options; for a file, the options are its checksum."""
    value, catalog = point.values[key], CATALOGS[key]
    table = value if isinstance(value, dict) else {"name": value}
    reading.require_keys(point.path_of(key), table, ["name"])
    name = table["name"]
    reading.require_type(point.path_of(key, "name"), name, str)
    chosen = {option: value for option, value in table.items() if option != "name"}
    if is_file(Named(name), catalog.suffixes):
        reading.require_known(point.path_of(key), chosen, [])
        with point.blaming(key, "name"):
            return Named(name, {"sha256": checksum(Named(name, folder=folder).file)}, folder)
    function = _found(point, (key, "name"), name, catalog)
    _require_options(point, key, chosen, function)
    with point.blaming(key):
        return Named.by_name(name, chosen)


def _found(point: Point, keys: tuple[str, ...], name: str, catalog: Catalog) -> Any:
    """The function or class of a name; one with a colon, such as `my_module:Uniform`, is in no list."""
    if ":" not in name:
        reading.require_name(point.path_of(*keys), name, list(catalog.names()))
    with point.blaming(*keys):
        return catalog.find(name)


def _require_options(point: Point, key: str, chosen: Table, function: Any) -> None:
    """Refuse options that a function or class does not take, and values of the wrong type."""
    known = options.annotations(function)
    for option, value in chosen.items():
        # An option with a list of values has a path for each of them; unknown, it is named without an index.
        reading.require_known(point.path_of(key), [option], list(known))
        reading.require_type(point.path_of(key, option), value, known[option])


def _labelled(entries: Iterable[Entry[Settings]]) -> list[Entry[Settings]]:
    """The same with labels, which must tell all of them apart."""
    unlabelled = list(entries)
    groups: dict[str, list[int]] = {}
    for i, entry in enumerate(unlabelled):
        groups.setdefault(entry.shared, []).append(i)
    labels: dict[int, str] = {}
    for shared, members in groups.items():
        suffixes = _suffixes([unlabelled[i].settings for i in members])
        labels |= {i: f"{shared}{suffix}" for i, suffix in zip(members, suffixes, strict=True)}
    labelled = [replace(entry, label=labels[i]) for i, entry in enumerate(unlabelled)]
    _require_different(labelled)
    return labelled


def _require_different(entries: list[Entry[Any]]) -> None:
    """Refuse two entries with the same settings or with the same label."""
    contents: dict[bytes, Entry[Any]] = {}
    labels: dict[str, Entry[Any]] = {}
    for entry in entries:
        path, same = entry.point.path, contents.setdefault(identity(entry.settings), entry)
        if same is not entry:
            raise SpecError(f"the same as {same.label!r} of {same.point.path}", path)
        other = labels.setdefault(entry.label, entry)
        if other is not entry:
            raise SpecError(f"{entry.label!r} would be its label and that of {other.point.path}; give labels", path)


def _suffixes(items: list[Settings]) -> list[str]:
    """What to append to a label that all items share: their values of the keys in which they differ."""
    flat = [_flat(item) for item in items]
    parts = [field.name for field in fields(items[0])]
    keys = sorted({key: None for item in flat for key in item}, key=lambda key: parts.index(key.split(".")[0]))
    differing = [key for key in keys if any(item.get(key) != flat[0].get(key) for item in flat)]
    short = {key: _last(key) for key in differing}
    names = {key: word if list(short.values()).count(word) == 1 else key for key, word in short.items()}
    return [
        "".join(f" {names[key]}={_text(item[key])}" for key in differing if item.get(key) is not None) for item in flat
    ]


def short_names(learners: Mapping[str, LearnerSettings]) -> dict[str, str]:
    """A name for each label: without the settings at its end that all of these learners of one name have in common."""
    parts = {label: _parts(label, settings) for label, settings in learners.items()}
    alike: dict[str, list[list[str]]] = {}
    for stem, suffixes in parts.values():
        alike.setdefault(stem, []).append(suffixes)
    short = {
        label: "".join([stem, *(part for part in suffixes if not all(part in other for other in alike[stem]))])
        for label, (stem, suffixes) in parts.items()
    }
    names = list(short.values())
    return {label: name if names.count(name) == 1 else label for label, name in short.items()}


def _parts(label: str, settings: LearnerSettings) -> tuple[str, list[str]]:
    """What a label begins with, and the settings that `_suffixes` appended to it."""
    known = {f" {name}={_text(value)}" for key, value in _flat(settings).items() for name in (key, _last(key))}
    suffixes: list[str] = []
    while found := max((part for part in known if label.endswith(part)), key=len, default=""):
        label, suffixes = label.removesuffix(found), [found, *suffixes]
    return label, suffixes


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _flat(item: GameSettings | LearnerSettings) -> Table:
    """The values of settings by dotted keys."""
    flat: Table = {}
    for field in [field for field in fields(item) if field.name not in UNLABELLED]:
        value = getattr(item, field.name)
        below_it = value.settings if isinstance(value, Named) else value
        if not isinstance(value, Mapping):
            flat[field.name] = value.name if isinstance(value, Named) else value
        if isinstance(below_it, Mapping):
            flat |= {below(field.name, key): item for key, item in below_it.items() if key not in UNLABELLED}
    return flat


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, Mapping):
        return "(" + ",".join(f"{key}={_text(item)}" for key, item in value.items()) + ")"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
