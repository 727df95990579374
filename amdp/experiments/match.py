"""From the words of a command line to a game, a learner and what the learner is told."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amdp import delays, losses
from amdp.algorithms.base import Learner
from amdp.algorithms.bounds import Bound
from amdp.algorithms.ftpl import Ftpl
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.measures import MeasureLearner
from amdp.algorithms.perturbations import Laplace
from amdp.algorithms.recipes import learner
from amdp.confidence import BernsteinBox, Radius
from amdp.errors import InvalidInput
from amdp.estimators import GeometricResampling, SharedResampling
from amdp.instances import Instance, build, load
from amdp.losses import FixedLosses, LossSequence
from amdp.mdp import Domain, MarkovPolicies, SingleKernel
from amdp.regret import FtplBound, ftpl_bound
from amdp.simulation import Episodic, Game

WORLD_FILES = (".npz", ".json")
RADII: dict[str, Callable[..., Radius]] = {
    "paper": Radius.paper,
    "jin-2020": Radius.jin_2020,
    "luo-2021": Radius.luo_2021,
}
LOSS_FILES = (".csv", ".parquet", ".npz")


@dataclass(frozen=True)
class Settings:
    """All that is needed to repeat a run."""

    instance: str
    learner: str
    oracle: str
    episodes: int
    losses: str
    delay: str
    seed: int
    unknown: bool
    radius_scale: float
    multiplier: float
    projection: str = "newton"
    radius: str = "paper"

    def __post_init__(self) -> None:
        for name, whole, least in (("episodes", self.episodes, 1), ("seed", self.seed, 0)):
            if not least <= whole < 2**62:
                raise InvalidInput(f"{name} = {whole}; it must be at least {least} and below 2^62")
        if self.radius not in RADII:
            raise InvalidInput(f"no radius {self.radius!r}; known names: {', '.join(RADII)}")
        for name, scale in (("radius_scale", self.radius_scale), ("multiplier", self.multiplier)):
            if not 0.0 < scale < np.inf:
                raise InvalidInput(f"{name} = {scale}; it must be above 0 and finite")


@dataclass(frozen=True, eq=False)
class Match:
    """A game, who plays it, and what the player is told of the arena."""

    settings: Settings
    instance: Instance
    game: Game
    learner: Learner[Any]
    domain: Domain
    total_delay: int

    @property
    def used(self) -> dict[str, Any]:
        """The settings, and the parameters that the recipe made of them."""
        return (
            asdict(self.settings) | {"shape": list(self.instance.shape), "total_delay": self.total_delay} | self.tuned
        )

    @property
    def tuned(self) -> dict[str, float | int]:
        """Rate, limit of the trials and implicit exploration, where the learner has them."""
        perturbation, estimator = (getattr(self.learner, part, None) for part in ("perturbation", "estimator"))
        found = {
            "rate": getattr(perturbation or self.learner, "rate", None),
            "limit": getattr(estimator, "limit", None),
            "gamma": getattr(estimator, "gamma", None),
        }
        return {name: value for name, value in found.items() if value is not None}

    def bound(self, rounds: int) -> FtplBound | Bound | None:
        """What the theorem allows after `rounds`; None where it does not speak: box, fixed noise, other learners."""
        player = self.learner
        if isinstance(player, MeasureLearner | Hedge):
            return player.bound(self.domain, rounds, self._waited(rounds))
        if type(player) is not Ftpl or not isinstance(self.domain.dynamics, SingleKernel):
            return None
        if not isinstance(player.perturbation, Laplace):
            return None
        if not isinstance(player.estimator, GeometricResampling | SharedResampling):
            return None
        return ftpl_bound(
            self.instance.shape, rounds, player.perturbation.rate, player.estimator.limit, self._waited(rounds)
        )

    def _waited(self, rounds: int) -> int:
        late = self.game.delays
        return delays.recorded(late.values[:rounds]).total_within if late else 0


def arrange(settings: Settings) -> Match:
    """The match that the settings describe."""
    instance = _world(settings.instance)
    adversary = _adversary(settings, instance)
    late = delays.parse(settings.delay, settings.episodes, np.random.default_rng(settings.seed))
    domain = _told(settings, instance)
    # The bound's proof counts the rounds spent waiting within the game, which a delay beyond its end does not add to.
    total = late.total_within
    chosen = settings.oracle, settings.multiplier, settings.projection
    player = learner(settings.learner, domain, settings.episodes, total, *chosen)
    game = Game(Episodic(instance.kernel, instance.initial), adversary, late, player.feedback)
    return Match(settings, instance, game, player, domain, total)


def _world(name: str) -> Instance:
    return load(name) if Path(name).suffix in WORLD_FILES else build(name)


def _adversary(settings: Settings, instance: Instance) -> LossSequence:
    if Path(settings.losses).suffix not in LOSS_FILES:
        return losses.named(settings.losses, instance.shape, settings.episodes, settings.seed, instance.costs)
    written = losses.load(settings.losses, instance.shape)
    if settings.episodes > len(written):
        raise InvalidInput(f"episodes = {settings.episodes}; {settings.losses} has {len(written)} rounds")
    return FixedLosses(written.batch(0, settings.episodes))


def _told(settings: Settings, instance: Instance) -> Domain:
    if not settings.unknown:
        return instance.domain
    radius = RADII[settings.radius](instance.shape, settings.episodes, scale=settings.radius_scale)
    return MarkovPolicies(BernsteinBox.vacuous(instance.shape, radius), instance.initial)
