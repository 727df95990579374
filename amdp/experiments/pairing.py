"""Which learners of a spec play which games, and which pairings cannot work."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from amdp.errors import AmdpError, InvalidInput, SpecError
from amdp.experiments.building import entered, game_of
from amdp.experiments.candidates import Candidate, Grid
from amdp.experiments.entries import Entry
from amdp.experiments.settings import GameSettings, LearnerSettings
from amdp.experiments.tuning import Tune
from amdp.game.games import Game
from amdp.text import suggestion

BASELINE = LearnerSettings("uniform")


class Skipped(NamedTuple):
    """A pairing that cannot work, and that nobody asked for by label."""

    game: str
    learner: str
    reason: str


def pairings(
    games: list[Entry[GameSettings]], learners: list[Entry[LearnerSettings]], tune: Tune | None, seed: int
) -> tuple[list[tuple[str, str]], list[Skipped]]:
    """Labels of those that play each other, and those that cannot; each pairing is arranged once to find out.

    Where a game is tuned in shorter ones, the pairing must work there, too.
    """
    _require_labels(games, learners, "learners")
    _require_labels(learners, games, "games")
    pairs, skipped = [], []
    paired: set[int] = set()  # ids of the entries that have a run
    refusals: dict[int, tuple[Skipped, AmdpError]] = {}  # the first of each entry
    for game in games:
        built = {game.settings.length: game_of(game.settings, seed, game.point.blaming)}
        for learner in learners:
            if not game.wants(learner) or not learner.wants(game):
                continue
            shortest = tune.shortest(learner.label, game.settings) if tune else game.settings
            if shortest.length not in built:
                built[shortest.length] = game_of(shortest, seed, game.point.blaming)
            refusal = _refusal([built[game.settings.length], built[shortest.length]], learner)
            if refusal is None:
                if tune and id(learner) not in paired and learner.label in tune.grids:
                    _require_values(built[shortest.length], learner, tune.grids[learner.label])
                pairs.append((game.label, learner.label))
                paired |= {id(game), id(learner)}
                continue
            _require_unasked(game, learner, refusal)
            skipped.append(Skipped(game.label, learner.label, str(refusal)))
            refusals.setdefault(id(game), (skipped[-1], refusal))
            refusals.setdefault(id(learner), (skipped[-1], refusal))
    everyone: list[Entry[Any]] = [*games, *learners]
    for entry in everyone:
        if id(entry) not in paired:
            raise _without_runs(entry, refusals.get(id(entry)))
    return pairs, skipped


def baselines(games: list[Entry[GameSettings]], seed: int) -> Iterator[str]:
    """Labels of the games that uniform play can be a baseline of."""
    for game in games:
        try:
            entered(game_of(heard_by_all(game.settings), seed), BASELINE)
        except AmdpError:
            continue
        yield game.label


def heard_by_all(game: GameSettings) -> GameSettings:
    """The same game for uniform play, which does not listen: what others are told is no reason to refuse it."""
    return replace(game, feedback=None) if game.feedback in ("full", "aggregate") else game


def _require_values(game: Game, learner: Entry[LearnerSettings], grid: Grid) -> None:
    """Refuse a value to try that the learner itself refuses: each one is tried alone, in one game."""
    for axis in grid.axes:
        for i, value in enumerate(axis.values):
            try:
                entered(game, Candidate(((axis.name, value),)).applied(learner.settings))
            except AmdpError as problem:
                if problem.field == axis.name:
                    detail = problem.detail if isinstance(problem, InvalidInput) else str(problem)
                    raise SpecError(f"{learner.label!r} refuses it: {detail}", f"{axis.path}[{i}]") from problem
            except Exception:  # a defect of somebody's recipe: it shows when the try is played
                continue


def _require_labels(entries: Iterable[Entry[Any]], others: Iterable[Entry[Any]], key: str) -> None:
    """Refuse a wanted label that no entry has."""
    known = dict.fromkeys(label for other in others for label in (other.shared, other.label))
    for entry in entries:
        for i, label in enumerate(entry.wanted or ()):
            if label not in known:
                message = f"{label!r}; {suggestion(label, known)}known labels: {', '.join(known)}"
                raise SpecError(message, f"{entry.point.path}.{key}[{i}]")


def _refusal(games: list[Game], learner: Entry[LearnerSettings]) -> AmdpError | None:
    """Why the pairing cannot work; a defect is no reason: it shows when the run is played, and is recorded."""
    try:
        for game in games:
            entered(game, learner.settings).require_used(_own_options(learner))
    except AmdpError as problem:
        return problem
    except Exception:
        return None
    return None


def _own_options(learner: Entry[LearnerSettings]) -> list[str]:
    """The options of this very learner: none from the defaults, and none of an entry that lists several names."""
    point = learner.point
    if point.path_of("name") != f"{point.path}.name":
        return []
    return [key for key in point.values if point.path_of(key).startswith(point.path)]


def _require_unasked(game: Entry[Any], learner: Entry[Any], refusal: AmdpError) -> None:
    """Refuse a pairing that somebody asked for by label."""
    for entry, other, key in ((game, learner, "learners"), (learner, game, "games")):
        if entry.wanted is not None:
            raise SpecError(f"{other.label!r} cannot be paired with it: {refusal}", f"{entry.point.path}.{key}")


def _without_runs(entry: Entry[Any], refused: tuple[Skipped, AmdpError] | None) -> SpecError:
    """The refusal of an entry that is paired with nothing, at the key to blame if it is one of the entry's."""
    if refused is None:
        return SpecError(f"{entry.label!r} has no runs; it is paired with nothing", entry.point.path)
    pair, problem = refused
    cause = f"it fits nothing: {pair.game!r} with {pair.learner!r}: {pair.reason}"
    path = entry.point.locate(problem.field, "settings") or entry.point.path
    return SpecError(f"{entry.label!r} has no runs; {cause}", path)
