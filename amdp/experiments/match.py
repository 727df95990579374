"""From settings to a game, a learner and what the learner is told."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np

from amdp import losses, registry
from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import Hedge, count_policies
from amdp.algorithms.named import learner
from amdp.algorithms.task import EpochSetup
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.game import delays
from amdp.game.arenas import Arena, Continuing, Episodic, Stepwise
from amdp.game.delays import Delays
from amdp.game.loop import Game
from amdp.game.regret import log_checkpoints
from amdp.instances import Instance, build, load
from amdp.losses import FixedLosses, LossSequence
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
from amdp.oracles.base import PlanningOracle, describe, oracle
from amdp.oracles.projection.base import ProjectionOracle, projection
from amdp.regular_files import open_binary

WORLD_FILES = (".npz", ".json")
LOSS_FILES = (".csv", ".parquet", ".npz")
RADII: dict[str, Callable[..., Radius]] = {
    "paper": Radius.paper,
    "jin-2020": Radius.jin_2020,
    "luo-2021": Radius.luo_2021,
}
TOLD: dict[type[Feedback], str] = {Bandit: "bandit", FullInformation: "full"}


class Misfit(UnsupportedDomain):
    """A part of the settings, of the learner or of the game, does not fit the other's kind of problem."""

    def __init__(self, message: str, part: str) -> None:
        super().__init__(message)
        self.part = part

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.part)


@dataclass(frozen=True, eq=False)
class Match:
    """A game, who plays it, and what the player is told of the arena."""

    settings: RunSettings
    instance: Instance
    game: Game
    learner: Learner[Any]
    domain: Domain
    total_delay: int
    epoch: int | None  # steps of a round, where rounds are epochs of a stream
    theory: Callable[[int], Any]  # the bound on expected regret after so many rounds, with a `total`; or None
    unproved: Callable[[int], str]  # why there is none

    @property
    def checkpoints(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The rounds after which the regret is measured."""
        return log_checkpoints(self.game.rounds, self.settings.checkpoints)

    @property
    def comparator(self) -> PlanningOracle | None:
        """Who finds the best policy in hindsight; None: the arena's own choice."""
        return _oracle(self.settings.game.comparator)

    @property
    def used(self) -> dict[str, Any]:
        """The parameters that the recipe made of the settings."""
        found = {"shape": list(self.domain.shape), "total_delay": self.total_delay, "rounds": self.game.rounds}
        found |= {"told": TOLD[self.game.feedback]}
        return found | ({"epoch": self.epoch} if self.epoch else {}) | self.tuned

    @property
    def tuned(self) -> dict[str, float | int]:
        """Rate, limit of the trials and implicit exploration, where the learner has them."""
        perturbation, estimator = (getattr(self.learner, part, None) for part in ("perturbation", "estimator"))
        found = {
            "rate": getattr(perturbation or self.learner, "rate", None),
            "limit": getattr(estimator, "limit", None),
            "gamma": getattr(estimator, "gamma", None),
            "exploration": getattr(self.learner, "exploration", None) or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def bound(self, rounds: int) -> Any:
        """What theory allows after `rounds`; None where it does not speak."""
        return self.theory(rounds)


def arrange(settings: RunSettings) -> Match:
    """The match that the settings describe."""
    game = settings.game
    instance = world(game)
    adversary = adversary_of(game, instance, settings.seed)
    late = build_delays(game, settings.seed)
    domain = told(game, instance)
    # The bound's proof counts the rounds spent waiting within the game, which a delay beyond its end does not add to.
    total = late.total_within if late else 0
    made = _player(settings.learner, domain, game.length, total)
    player, epoch = (made.learner, made.length) if isinstance(made, EpochSetup) else (made, None)
    played = Game(_arena(made, domain, instance), adversary, late, _feedback(game, settings.learner.name, player))
    theory, unproved = partial(_bound, made, domain, late), partial(_unproved, made)
    match = Match(settings, instance, played, player, domain, total, epoch, theory, unproved)
    _require_ready(match)
    return match


def _require_ready(match: Match) -> None:
    """Refuse at once what would be refused when the game begins, or at its end."""
    arena = match.game.arena.domain
    planners = {
        "oracle": (getattr(match.learner, "oracle", None), match.domain),
        "comparator": (match.comparator, arena),
    }
    for part, (one, domain) in planners.items():
        planner = oracle(one) if isinstance(one, str) else one
        if planner is not None and not planner.supports(domain):
            raise Misfit(f"{type(planner).__name__} does not solve {describe(domain)}", part)
        if planner is not None:
            registry.require(type(planner).__name__, planner.requires)
    chosen = getattr(match.learner, "projection", None)
    projector = projection(chosen) if isinstance(chosen, str) else chosen
    if projector is not None and not projector.supports(match.domain):
        reason = f"{type(projector).__name__} does not project onto {describe(match.domain)}{_remedy(match.domain)}"
        raise Misfit(reason, "projection")
    if isinstance(match.learner, Hedge) and count_policies(match.domain) > match.learner.limit:
        count = f"{float(count_policies(match.domain)):.3g}"
        raise InvalidInput(f"Hedge would list {count} policies, more than its limit of {match.learner.limit}")


def _remedy(domain: Domain) -> str:
    return "; give episodes instead of steps" if isinstance(domain, StationaryPolicies) else ""


def _bound(made: Learner[Any] | EpochSetup, domain: Domain, late: Delays | None, rounds: int) -> Any:
    if isinstance(made, EpochSetup):
        return made.bound if rounds * made.length >= domain.shape[0] else None  # it is stated for the whole stream
    state = getattr(made, "bound", None)
    if not callable(state):
        return None
    return state(domain, rounds, delays.recorded(late.values[:rounds]).total_within) if late else state(domain, rounds)


def _unproved(made: Learner[Any] | EpochSetup, rounds: int) -> str:
    """Why no bound is stated after so many rounds."""
    if not isinstance(made, EpochSetup):
        return "none stated for this learner and what it is told"
    return made.unproved or f"stated for the whole stream, not for {rounds} of its epochs"


def world(game: GameSettings) -> Instance:
    """Where it is played."""
    given = game.instance
    if is_file(given, WORLD_FILES):
        return load(verified_path(given))
    fixed = dict(given.settings)
    if game.steps is not None:
        if fixed.get("n_steps", game.steps) != game.steps:
            raise InvalidInput(
                f"n_steps = {fixed['n_steps']}; an unbroken stream has as many as its game, {game.steps}: leave it out"
            )
        fixed["n_steps"] = game.steps
    return build(given.name, **fixed)


def adversary_of(game: GameSettings, instance: Instance, seed: int) -> LossSequence:
    """Who makes the losses: a table `[h, s, a]` an episode, or `[1, s, a]` a step of a stream."""
    shape = instance.shape if game.steps is None else (1, *instance.shape[1:])
    if not is_file(game.losses, LOSS_FILES):
        return losses.named(game.losses.name, shape, game.length, seed, instance.costs, **game.losses.settings)
    written = losses.load(verified_path(game.losses), shape)
    if game.length > len(written):
        raise InvalidInput(f"{game.length} rounds; {game.losses.name} has {len(written)}")
    return FixedLosses(written.batch(0, game.length))


def is_file(given: Named, suffixes: tuple[str, ...]) -> bool:
    """Whether the name is that of a file."""
    return Path(given.name).suffix in suffixes


def verified_path(given: Named) -> str:
    """The name of a file that has not changed since its settings were made."""
    expected = given.settings.get("sha256")
    if set(given.settings) - {"sha256"}:
        raise InvalidInput(f"{given}: what is read from a file has no settings")
    if expected is not None and checksum(given.file) != expected:
        raise InvalidInput(f"{given.name} has changed since this run was planned")
    return given.file


def checksum(file: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a file."""
    try:
        with open_binary(file) as stream:
            return file_digest(stream, "sha256").hexdigest()[:16]
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be read: {problem.strerror or problem}") from problem


def build_delays(game: GameSettings, seed: int) -> Delays | None:
    """How late the losses of each episode are told; None in a stream."""
    late = delays.parse(game.delay, game.length, np.random.default_rng(seed))
    if game.steps is None:
        return late
    if late.total:
        raise InvalidInput(f"delay = {game.delay!r}; an unbroken stream is played without delays")
    return None


def told(game: GameSettings, instance: Instance) -> Domain:
    """What the learner knows of the dynamics."""
    if game.radius not in RADII:
        raise InvalidInput(f"radius = {game.radius!r}; known names: {', '.join(RADII)}")
    if game.steps is not None:
        if game.unknown:
            raise InvalidInput("unknown = true; an unbroken stream is played with known transitions")
        return StationaryPolicies(instance.kernel, instance.initial)
    if not game.unknown:
        return instance.domain
    radius = RADII[game.radius](instance.shape, game.length, scale=game.radius_scale)
    return MarkovPolicies(BernsteinBox.vacuous(instance.shape, radius), instance.initial)


def _player(chosen: LearnerSettings, domain: Domain, length: int, total_delay: int) -> Learner[Any] | EpochSetup:
    usual = "auto" if isinstance(domain, StationaryPolicies) else "dp"
    planner, projector = _oracle(chosen.oracle), _projection(chosen.projection)
    try:
        made: Learner[Any] | EpochSetup = learner(
            chosen.name,
            domain,
            length,
            total_delay,
            planner or usual,
            chosen.multiplier,
            projector or "newton",
            **chosen.settings,
        )
    except UnsupportedDomain as problem:
        # A recipe that binds an oracle meets its refusal, which begins with its name.
        for part, one in (("oracle", planner), ("projection", projector)):
            if one is not None and str(problem).startswith(f"{type(one).__name__} "):
                raise Misfit(str(problem), part) from problem
        raise
    return made


def _arena(made: Learner[Any] | EpochSetup, domain: Domain, instance: Instance) -> Arena:
    if isinstance(made, EpochSetup):
        return Continuing(made.entry, made.length)
    if isinstance(domain, StationaryPolicies):
        if isinstance(made, Ftpl):
            raise InvalidInput("it plays episodes, not an unbroken stream; see ftpl-infinite")
        return Stepwise(instance.kernel, instance.initial)
    return Episodic(instance.kernel, instance.initial)


def _feedback(game: GameSettings, name: str, player: Learner[Any]) -> type[Feedback]:
    kind: type[Feedback] = player.feedback
    if game.feedback not in (None, TOLD[kind]):
        raise InvalidInput(f"{name} understands {TOLD[kind]} feedback; the game tells {game.feedback}")
    return kind


def _oracle(given: Named | None) -> PlanningOracle | None:
    return oracle(given.name, **given.settings) if given else None


def _projection(given: Named | None) -> ProjectionOracle | None:
    return projection(given.name, **given.settings) if given else None
