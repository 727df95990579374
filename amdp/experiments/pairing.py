"""Who plays what: the entries of a spec, expanded and labelled, and the pairings of them that work."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from amdp.errors import AmdpError, SpecError
from amdp.experiments import entries, reading
from amdp.experiments.grid import Branch, expanded
from amdp.experiments.labels import told_apart
from amdp.experiments.match import arrange
from amdp.experiments.reading import Table
from amdp.experiments.settings import GameSettings, LearnerSettings, RunSettings
from amdp.experiments.tuning import Tune
from amdp.game.match import Misfit

DEFAULTS = [*entries.GAME, "oracle", "projection", "multiplier"]
ALTERNATIVES = ("episodes", "steps")

Item = TypeVar("Item", GameSettings, LearnerSettings)


class Skipped(NamedTuple):
    """A pairing that cannot work, and that nobody asked for by label."""

    game: str
    learner: str
    reason: str


@dataclass(frozen=True)
class Entry(Generic[Item]):
    """A point of the grid of a `[[games]]` or `[[learners]]`."""

    label: str
    shared: str  # what all points of its grid are called
    settings: Item
    point: Branch
    wanted: list[str] | None  # labels of those that it is paired with; None: all

    def wants(self, other: "Entry[Any]") -> bool:
        """Whether it would be paired with the other, as far as it cares."""
        return self.wanted is None or other.is_called(self.wanted)

    def is_called(self, labels: Iterable[str]) -> bool:
        """Whether a label means this entry, alone or with the others of its grid."""
        return self.label in labels or self.shared in labels


def read_games(given: Any, usual: Table, seed: int, folder: str = "") -> list[Entry[GameSettings]]:
    """All games, labelled; their parts were tried with a seed. Names of files start in `folder`."""
    found = [
        Entry("", label or Path(settings.instance.name).stem, settings, point, wanted)
        for point, label, wanted in _points("games", given, entries.GAME, usual, "learners", "instance")
        for settings in [entries.game(point, seed, folder)]
    ]
    return _labelled(found)


def read_learners(given: Any, usual: Table) -> list[Entry[LearnerSettings]]:
    """All learners, labelled."""
    found = [
        Entry("", label or settings.name, settings, point, wanted)
        for point, label, wanted in _points("learners", given, entries.LEARNER, usual, "games", "name")
        for settings in [entries.learner(point)]
    ]
    return _labelled(found)


def pairings(
    games: list[Entry[GameSettings]], learners: list[Entry[LearnerSettings]], tune: Tune | None, seed: int
) -> tuple[list[tuple[str, str]], list[Skipped]]:
    """Labels of those that play each other, and those that cannot; each pairing is arranged once to find out."""
    _require_labels(games, learners, "learners")
    _require_labels(learners, games, "games")
    pairs, skipped = [], []
    reasons: dict[str, Exception] = {}  # the first of each label
    for game in games:
        for learner in learners:
            if not game.wants(learner) or not learner.wants(game):
                continue
            refused = _refused(game, learner, tune, seed)
            if refused is None:
                pairs.append((game.label, learner.label))
            else:
                _require_unasked(game, learner, refused)
                skipped.append(Skipped(game.label, learner.label, str(refused)))
                reasons.setdefault(f"game {game.label}", refused)
                reasons.setdefault(f"learner {learner.label}", refused)
    everyone: list[tuple[str, Entry[Any]]] = [("game", one) for one in games] + [("learner", one) for one in learners]
    for kind, one in everyone:
        _require_paired(one, pairs, skipped, reasons.get(f"{kind} {one.label}"))
    return pairs, skipped


def _points(
    kind: str, given: Any, known: Table, usual: Table, others: str, needed: str
) -> Iterable[tuple[Branch, str | None, list[str] | None]]:
    """Each point of each entry, with the entry's label and the labels of those that it wants."""
    labels: list[str] = []
    for i, table in enumerate(reading.tables(kind, given)):
        path = f"{kind}[{i}]"
        reading.table(path, table, ("label", *known, others))
        own = {key: value for key, value in table.items() if key in known}
        shared = {key: value for key, value in usual.items() if key in known}
        full = reading.merged(own, shared, ALTERNATIVES)
        reading.table(path, full, needed=[needed])
        label = reading.line(f"{path}.label", table["label"]) if "label" in table else None
        if label in labels:
            raise reading.wrong(f"{path}.label", label, "another entry has it already")
        labels += [label] if label else []
        wanted = reading.texts(f"{path}.{others}", table[others]) if others in table else None
        origins = {key: f"defaults.{key}" for key in full.keys() - own.keys()}
        for point in expanded(path, full, origins):
            yield point, label, wanted


def _labelled(found: list[Entry[Item]]) -> list[Entry[Item]]:
    """The same with labels that tell all of them apart."""
    groups: dict[str, list[Entry[Item]]] = {}
    for one in found:
        groups.setdefault(one.shared, []).append(one)
    apart = {
        id(one): f"{shared}{rest}"
        for shared, members in groups.items()
        for one, rest in zip(members, told_apart([one.settings for one in members]), strict=True)
    }
    named = [replace(one, label=apart[id(one)]) for one in found]
    for i, one in enumerate(named):
        for other in named[:i]:
            _require_apart(one, other)
    return named


def _require_apart(one: Entry[Any], other: Entry[Any]) -> None:
    if one.settings == other.settings:
        raise SpecError(f"the same as {other.label!r} of {other.point.path}", one.point.path)
    if one.label == other.label:
        raise SpecError(f"{one.label!r} would be its label and that of {other.point.path}; give labels", one.point.path)


def _require_labels(entries: Iterable[Entry[Any]], others: list[Entry[Any]], key: str) -> None:
    known = list(dict.fromkeys(label for other in others for label in (other.shared, other.label)))
    for one in entries:
        for i, label in enumerate(one.wanted or ()):
            if label not in known:
                path = f"{one.point.path}.{key}[{i}]"
                raise SpecError(f"{label!r}; {reading.meant(label, known)}known labels: {', '.join(known)}", path)


def _refused(
    game: Entry[GameSettings], learner: Entry[LearnerSettings], tune: Tune | None, seed: int
) -> Exception | None:
    """Why the pairing cannot work; a defect is no reason: it shows when the run is played, and is recorded."""
    tries = [game.settings, *([tune.shortened(game.settings)] if tune else [])]
    try:
        for settings in tries:
            arrange(RunSettings(settings, learner.settings, seed))
    except AmdpError as problem:
        return problem
    except Exception:
        return None
    return None


def _require_unasked(game: Entry[Any], learner: Entry[Any], refused: Exception) -> None:
    for one, other, key in ((game, learner, "learners"), (learner, game, "games")):
        if one.wanted is not None:
            raise SpecError(f"{other.label!r} cannot be paired with it: {refused}", f"{one.point.path}.{key}")


def _require_paired(
    one: Entry[Any], pairs: list[tuple[str, str]], skipped: list[Skipped], refused: Exception | None
) -> None:
    if any(one.label == label for pair in pairs for label in pair):
        return
    reasons = [f"{pair.game!r} with {pair.learner!r}: {pair.reason}" for pair in skipped if one.label in pair[:2]]
    cause = f"it fits nothing: {reasons[0]}" if reasons else "it is paired with nothing"
    raise SpecError(f"{one.label!r} has no runs; {cause}", _path_of(one.point, refused))


def _path_of(point: Branch, refused: Exception | None) -> str:
    """The key that is to blame for a refusal, if it is one of the entry's; else the entry."""
    key = refused.part if isinstance(refused, Misfit) else str(refused).partition(" = ")[0]
    below = point.parts.get("settings")
    parts = {**(below.parts if isinstance(below, Branch) else {}), **point.parts}
    return parts[key].path if key in parts else point.path
