"""A learner in a game: the arena that it needs, its parameters, and what theory promises it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amdp import registry
from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.feedback import Feedback
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import Hedge, count_policies
from amdp.algorithms.named import from_task
from amdp.algorithms.rates import AdaptiveRate
from amdp.algorithms.task import EpochSetup, Task
from amdp.arrays import require_positive
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.game import delays
from amdp.game.arenas import Arena, Continuing, Episodic, Stepwise
from amdp.game.delays import Delays
from amdp.game.games import FEEDBACK_NAMES, Game
from amdp.game.loop import ArenaGame, play
from amdp.game.regret import Regret, measure
from amdp.game.rounds import Round
from amdp.game.seeding import Streams
from amdp.instances import Instance
from amdp.model.domains import Domain, StationaryPolicies
from amdp.oracles.base import PlanningOracle, describe, oracle
from amdp.oracles.projection.base import ProjectionOracle, projection

Player = str | Learner[Any] | EpochSetup  # a name of `amdp learners`, or a learner


@dataclass(frozen=True, eq=False)
class Match:
    """A game and the learner that plays it, ready for the loop."""

    game: Game
    played: ArenaGame  # the game in the arena that the learner needs
    learner: Learner[Any]
    epoch: int | None  # steps of a round, where rounds are epochs of a stream
    bound: Callable[[int], Any]  # the bound on expected regret after so many rounds, with a `total`; or None
    unproved: Callable[[int], str]  # why there is none

    @property
    def world(self) -> Instance:
        """Where it is played."""
        return self.game.world

    @property
    def domain(self) -> Domain:
        """What the learner knows."""
        return self.game.domain

    @property
    def rounds(self) -> int:
        """How many rounds are played: episodes, epochs or steps."""
        return self.played.rounds

    def play(self, seed: int) -> Iterator[Round]:
        """Play all rounds, one by one; the same seed gives the same rounds."""
        return play(self.played, self.learner, self.domain, Streams.from_seed(seed))

    def measure(self, played: Iterable[Round], checkpoints: Sequence[int] | NDArray[np.int64] | None = None) -> Regret:
        """The regret at the checkpoints, or after every round, against the game's comparator."""
        return measure(self.played, played, self.game.comparator, checkpoints)

    @property
    def parameters(self) -> dict[str, float | int]:
        """Learning rate if it is fixed, limit of the resampling trials, and exploration, where the learner has them."""
        perturbation, estimator = (getattr(self.learner, part, None) for part in ("perturbation", "estimator"))
        rate = getattr(perturbation or self.learner, "rate", None)
        values = {
            "rate": None if isinstance(rate, AdaptiveRate) else getattr(rate, "value", rate),
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
    learner, epoch = (setup.learner, setup.length) if isinstance(setup, EpochSetup) else (setup, None)
    name = player if isinstance(player, str) else type(learner).__name__
    played = ArenaGame(_arena(game, setup), game.losses, game.delays, _feedback(game, name, learner))
    bound, unproved = partial(_bound, setup, game.domain, game.delays), partial(_unproved, setup)
    match = Match(game, played, learner, epoch, bound, unproved)
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
            raise InvalidInput("it plays episodes, not an unbroken stream; see ftpl-infinite")
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
    planners = {
        "oracle": (getattr(match.learner, "oracle", None), match.domain),
        "comparator": (match.game.comparator, match.played.arena.domain),
    }
    for part, (chosen, domain) in planners.items():
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


def _bound(setup: Learner[Any] | EpochSetup, domain: Domain, delay: Delays | None, rounds: int) -> Any:
    """What theory allows after `rounds`; None where it does not speak."""
    if isinstance(setup, EpochSetup):
        return setup.bound if rounds * setup.length >= domain.shape[0] else None  # it is stated for the whole stream
    state = getattr(setup, "bound", None)
    if not callable(state):
        return None
    if delay is None:
        return state(domain, rounds)
    return state(domain, rounds, delays.recorded(delay.values[:rounds]).total_within)


def _unproved(setup: Learner[Any] | EpochSetup, rounds: int) -> str:
    """Why no bound is stated after so many rounds."""
    if not isinstance(setup, EpochSetup):
        return "no explicit bound is known for this learner in this game"
    return setup.unproved or f"stated for the whole stream, not for {rounds} of its epochs"
