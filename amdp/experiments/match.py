"""From the settings of a run to its match."""

from hashlib import file_digest
from pathlib import Path

from amdp import losses
from amdp.errors import InvalidInput
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.game import games
from amdp.game.delays import Delays
from amdp.game.games import LOSS_FILES, WORLD_FILES, Game
from amdp.game.match import Match, enter
from amdp.instances import Instance, build, load
from amdp.losses import LossSequence
from amdp.model.domains import Domain
from amdp.oracles.base import PlanningOracle, oracle
from amdp.oracles.projection.base import ProjectionOracle, projection
from amdp.regular_files import open_binary


def arrange(settings: RunSettings) -> Match:
    """The match that the settings describe."""
    return entered(game_of(settings.game, settings.seed), settings.learner)


def game_of(settings: GameSettings, seed: int) -> Game:
    """The game that the settings describe, with the adversary of a seed."""
    instance = world(settings)
    # A radius may be shared by games, some of which have known transitions and no use for it.
    sets = {"radius": settings.radius, "radius_scale": settings.radius_scale} if settings.unknown else {}
    return Game(
        instance,
        adversary_of(settings, instance, seed),
        settings.episodes,
        steps=settings.steps,
        seed=seed,
        delay=settings.delay,
        feedback=settings.feedback,
        unknown=settings.unknown,
        comparator=_oracle(settings.comparator),
        **sets,  # type: ignore[arg-type]
    )


def entered(game: Game, learner: LearnerSettings) -> Match:
    """The match of a learner, as its settings describe it, in a game."""
    return enter(
        game,
        learner.name,
        oracle=_oracle(learner.oracle),
        projection=_projection(learner.projection),
        multiplier=learner.multiplier,
        **learner.settings,
    )


def world(game: GameSettings) -> Instance:
    """The world of a game."""
    given = game.instance
    if is_file(given, WORLD_FILES):
        return load(verified_path(given))
    fixed = dict(given.settings)
    if game.steps is not None:
        if fixed.get("n_steps", game.steps) != game.steps:
            raise InvalidInput(
                f"{fixed['n_steps']}; an unbroken stream has as many as its game, {game.steps}: leave it out", "n_steps"
            )
        fixed["n_steps"] = game.steps
    return build(given.name, **fixed)


def adversary_of(game: GameSettings, instance: Instance, seed: int) -> LossSequence:
    """The losses of a game."""
    stream = game.steps is not None
    if not is_file(game.losses, LOSS_FILES):
        return games.find_losses(_table(game.losses), instance, game.length, seed, stream=stream)
    written = losses.load(verified_path(game.losses), (1, *instance.shape[1:]) if stream else instance.shape)
    return games.shortened(written, game.length, game.losses.name)


def build_delays(game: GameSettings, seed: int) -> Delays | None:
    """The delay of each episode; None in a stream."""
    return games.find_delays(game.delay, game.length, seed, stream=game.steps is not None)


def told(game: GameSettings, instance: Instance) -> Domain:
    """What the learner knows of the dynamics."""
    games.require_radius(game.radius, game.radius_scale)
    settings = {"unknown": game.unknown, "radius": game.radius, "radius_scale": game.radius_scale}
    return games.learner_domain(instance, game.length, stream=game.steps is not None, **settings)  # type: ignore[arg-type]


def is_file(given: Named, suffixes: tuple[str, ...]) -> bool:
    """Whether the name is that of a file."""
    return Path(given.name).suffix in suffixes


def verified_path(given: Named) -> str:
    """The path of a file that has not changed since its settings were made."""
    expected = given.settings.get("sha256")
    if set(given.settings) - {"sha256"}:
        raise InvalidInput(f"{given}: what is read from a file has no settings")
    if expected is not None and checksum(given.file) != expected:
        raise InvalidInput(f"{given.name} has changed since this run was planned")
    return given.file


def checksum(file: str) -> str:
    """The first 16 hex digits of the SHA-256 of a file."""
    try:
        with open_binary(file) as stream:
            return file_digest(stream, "sha256").hexdigest()[:16]
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be read: {problem.strerror or problem}") from problem


def _table(given: Named) -> dict[str, object]:
    return {"name": given.name, **given.settings}


def _oracle(given: Named | None) -> PlanningOracle | None:
    return oracle(given.name, **given.settings) if given else None


def _projection(given: Named | None) -> ProjectionOracle | None:
    return projection(given.name, **given.settings) if given else None
