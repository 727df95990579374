"""A learner in a game: the arena that it needs, its parameters, and what theory promises it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amdp import registry
from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Feedback
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import Hedge, count_policies
from amdp.algorithms.named import from_task
from amdp.algorithms.task import EpochSetup, Task
from amdp.arrays import require_positive
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.game.arenas import Arena, Continuing, Episodic, Stepwise
from amdp.game.delays import recorded
from amdp.game.games import FEEDBACK_NAMES, Game
from amdp.game.loop import ArenaGame, play_rounds
from amdp.game.regret import Regret, measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.model.domains import Domain, StationaryPolicies
from amdp.oracles.base import PlanningOracle, describe, oracle
from amdp.oracles.projection.base import ProjectionOracle, projection

Player = str | Learner[Any] | EpochSetup  # a name of `amdp learners`, or a learner


@dataclass(frozen=True, eq=False, repr=False)
class Match:
    """A game and the learner that plays it, ready for the loop."""

    game: Game
    played: ArenaGame  # the game in the arena that the learner needs
    learner: Learner[Any]
    epochs: EpochSetup | None  # of a learner whose rounds are epochs of a stream

    def __repr__(self) -> str:
        return f"Match({type(self.learner).__name__} in {self.game})"

    @property
    def domain(self) -> Domain:
        """The policies to choose from, over what the learner knows of the dynamics."""
        return self.game.domain

    @property
    def rounds(self) -> int:
        """How many rounds are played: episodes, epochs or steps."""
        return self.played.rounds

    @property
    def epoch(self) -> int | None:
        """The steps of a round, where rounds are epochs of a stream."""
        return self.epochs.length if self.epochs else None

    def play(self, seed: int) -> Iterator[Round]:
        """Play all rounds, one by one; the same seed gives the same rounds."""
        return play_rounds(self.played, self.learner, self.domain, Streams.from_seed(seed))

    def measure(self, played: Iterable[Round], checkpoints: Sequence[int] | NDArray[np.int64] | None = None) -> Regret:
        """The regret at the checkpoints, or after every round, against the game's comparator."""
        return measure(self.played, played, self.game.comparator, checkpoints)

    def bound(self, rounds: int) -> Any:
        """The bound on the expected regret after so many rounds, with a `total`; None where nothing is proved."""
        if self.epochs:  # it is stated for the whole stream
            return self.epochs.bound if rounds * self.epochs.length >= self.domain.shape[0] else None
        state = getattr(self.learner, "bound", None)
        if not callable(state):
            return None
        delayed = self.game.delays
        waited = () if delayed is None else (recorded(delayed.values[:rounds]).total_within,)
        return state(self.domain, rounds, *waited)

    def unproved(self, rounds: int) -> str:
        """Why no bound is stated after so many rounds."""
        if not self.epochs:
            return "no explicit bound is known for this learner in this game"
        return self.epochs.unproved or f"stated for the whole stream, not for {rounds} of its epochs"

    @property
    def parameters(self) -> dict[str, float | int]:
        """Learning rate, limit of the resampling trials, and exploration, where the learner has them."""
        perturbation, estimator = (getattr(self.learner, part, None) for part in ("perturbation", "estimator"))
        values = {
            "rate": getattr(perturbation or self.learner, "rate", None),
            "limit": getattr(estimator, "limit", None),
            "gamma": getattr(estimator, "gamma", None),
            "exploration": getattr(self.learner, "exploration", None) or None,
        }
        return {name: value for name, value in values.items() if value is not None}

    @property
    def used(self) -> dict[str, Any]:
        """What the game and the tuning made of the settings, for the record of a run."""
        facts = {
            "shape": list(self.domain.shape),
            "total_delay": self.game.total_delay,
            "rounds": self.rounds,
            "told": FEEDBACK_NAMES.get(self.played.feedback, self.played.feedback.__name__),
        }
        return facts | ({"epoch": self.epoch} if self.epoch else {}) | self.parameters


def enter(
    game: Game,
    player: Player,
    *,
    oracle: str | PlanningOracle | None = None,
    projection: str | ProjectionOracle | None = None,
    multiplier: float = 1.0,
    **settings: Any,
) -> Match:
    """The match of a learner in a game; a name is tuned for the game, as theory says, times `multiplier`."""
    if not isinstance(game, Game):
        raise InvalidInput(f"game is {type(game).__name__}; give amdp.Game(world, ...)")
    if not isinstance(player, str | EpochSetup) and not callable(getattr(player, "start", None)):
        raise InvalidInput(f"learner is {type(player).__name__}; give a name of `amdp learners`, or a learner")
    require_positive("multiplier", multiplier)
    setup = _learner(game, player, oracle, projection, multiplier, settings)
    learner, epochs = (setup.learner, setup) if isinstance(setup, EpochSetup) else (setup, None)
    name = player if isinstance(player, str) else type(learner).__name__
    played = ArenaGame(_arena(game, setup), game.losses, game.delays, _feedback(game, name, learner))
    match = Match(game, played, learner, epochs)
    _require_ready(match)
    return match


def _learner(
    game: Game,
    player: Player,
    planner: str | PlanningOracle | None,
    projector: str | ProjectionOracle | None,
    multiplier: float,
    settings: dict[str, Any],
) -> Learner[Any] | EpochSetup:
    if not isinstance(player, str):
        if planner is not None or projector is not None or multiplier != 1.0 or settings:
            raise InvalidInput(f"{type(player).__name__} has its own parameters; settings are for learners by name")
        return player
    planner = oracle(planner) if isinstance(planner, str) else planner
    projector = projection(projector) if isinstance(projector, str) else projector
    task = Task(game.domain, game.rounds, game.total_delay, planner, projector, multiplier)
    return from_task(player, task, **settings)


def _arena(game: Game, setup: Learner[Any] | EpochSetup) -> Arena:
    if isinstance(setup, EpochSetup):
        return Continuing(setup.entry, setup.length)
    if game.is_stream:
        if isinstance(setup, Ftpl):
            raise InvalidInput("Ftpl plays episodes: use Game(..., rounds=N); for an unbroken stream use ftpl-infinite")
        return Stepwise(game.world.kernel, game.world.initial)
    return Episodic(game.world.kernel, game.world.initial)


def _feedback(game: Game, name: str, learner: Learner[Any]) -> type[Feedback]:
    kind: type[Feedback] = learner.feedback
    word = FEEDBACK_NAMES.get(kind, kind.__name__)
    if game.feedback not in (None, word):
        raise InvalidInput(f"{name} understands {word} feedback; the game tells {game.feedback}")
    return kind


def _require_ready(match: Match) -> None:
    """Refuse at once what would be refused when the game begins, or at its end."""
    oracles = (
        ("oracle", getattr(match.learner, "oracle", None), match.domain),
        ("comparator", match.game.comparator, match.played.arena.domain),
    )
    for part, chosen, domain in oracles:
        planner = oracle(chosen) if isinstance(chosen, str) else chosen
        if planner is not None and not planner.supports(domain):
            raise UnsupportedDomain(f"{type(planner).__name__} does not solve {describe(domain)}", part)
        if planner is not None:
            registry.require(type(planner).__name__, planner.requires)
    chosen = getattr(match.learner, "projection", None)
    projector = projection(chosen) if isinstance(chosen, str) else chosen
    if projector is not None and not projector.supports(match.domain):
        remedy = "; give episodes instead of steps" if isinstance(match.domain, StationaryPolicies) else ""
        reason = f"{type(projector).__name__} does not project onto {describe(match.domain)}{remedy}"
        raise UnsupportedDomain(reason, "projection")
    if isinstance(match.learner, Hedge) and count_policies(match.domain) > match.learner.limit:
        count = f"{float(count_policies(match.domain)):.3g}"
        raise InvalidInput(f"Hedge would list {count} policies, more than its limit of {match.learner.limit}")
