"""From settings to the game, the learner and their match."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from hashlib import file_digest
from pathlib import Path
from typing import Any

from amdp import losses, own_code
from amdp.errors import InvalidInput
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.game.games import LOSS_FILES, WORLD_FILES, Game, chosen_shape, find_delays, find_losses, shortened
from amdp.game.match import Match, enter
from amdp.instances import Instance, build, load
from amdp.losses import LossSequence
from amdp.oracles.base import oracle
from amdp.oracles.projection.base import projection
from amdp.regular_files import open_binary


def arrange(settings: RunSettings) -> Match:
    """The match that the settings describe."""
    with own_code.looking_in(settings.folder):
        return entered(game_of(settings.game, settings.seed), settings.learner)


def game_of(settings: GameSettings, seed: int, part: Callable[..., AbstractContextManager[None]] = nullcontext) -> Game:
    """The game that the settings describe, with the adversary of a seed.

    Each part is made in the context `part(key)`, where a spec catches errors to name the key.
    """
    with part("instance"):
        world = _world(settings)
    with part("losses"):
        adversary = _adversary(settings, world, seed)
    with part("delay"):
        delays = find_delays(settings.delay, settings.length, seed, stream=settings.steps is not None)
    # A radius may be shared by games, some of which have known transitions and no use for it.
    sets: dict[str, Any] = {"radius": settings.radius, "radius_scale": settings.radius_scale}
    with part():
        return Game(
            world,
            adversary,
            settings.episodes,
            steps=settings.steps,
            seed=seed,
            delay=delays or "none",
            feedback=settings.feedback,
            unknown=settings.unknown,
            comparator=_made(oracle, settings.comparator),
            **(sets if settings.unknown else {}),
        )


def entered(game: Game, learner: LearnerSettings) -> Match:
    """The match of a learner, as its settings describe it, in a game."""
    own_code.require_unchanged(learner.name, learner.source)
    return enter(
        game,
        learner.name,
        oracle=_made(oracle, learner.oracle),
        projection=_made(projection, learner.projection),
        multiplier=learner.multiplier,
        **learner.settings,
    )


def _world(game: GameSettings) -> Instance:
    if is_file(game.instance, WORLD_FILES):
        return load(_verified_path(game.instance))
    options = dict(game.instance.settings)
    if game.steps is not None and options.setdefault("n_steps", game.steps) != game.steps:
        raise InvalidInput(
            f"{options['n_steps']}; a stream of steps has as many as its game, {game.steps}: leave it out", "n_steps"
        )
    own_code.require_unchanged(game.instance.name, game.instance.source)
    return build(game.instance.name, **options)


def _adversary(game: GameSettings, world: Instance, seed: int) -> LossSequence:
    stream = game.steps is not None
    if not is_file(game.losses, LOSS_FILES):
        own_code.require_unchanged(game.losses.name, game.losses.source)
        table = {"name": game.losses.name, **game.losses.settings}
        return find_losses(table, world, game.length, seed, stream=stream)
    written = losses.load(_verified_path(game.losses), chosen_shape(world, stream=stream))
    return find_losses(shortened(written, game.length, game.losses.name), world, game.length, seed, stream=stream)


def is_file(part: Named, suffixes: tuple[str, ...]) -> bool:
    """Whether the name is that of a file."""
    return Path(part.name).suffix in suffixes


def _verified_path(part: Named) -> str:
    """The path of a file that has not changed since its settings were made."""
    expected = part.settings.get("sha256")
    if set(part.settings) - {"sha256"}:
        raise InvalidInput(f"{part}: what is read from a file has no settings")
    if expected is not None and checksum(part.file) != expected:
        raise InvalidInput(f"{part.name} has changed since this run was planned")
    return part.file


def checksum(file: str) -> str:
    """The first 16 hex digits of the SHA-256 of a file."""
    try:
        with open_binary(file) as stream:
            return file_digest(stream, "sha256").hexdigest()[:16]
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be read: {problem.strerror or problem}") from problem


def _made(make: Callable[..., Any], part: Named | None) -> Any:
    if part is None:
        return None
    own_code.require_unchanged(part.name, part.source)
    return make(part.name, **part.settings)
