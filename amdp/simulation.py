"""The game: arenas, and the only loop.

policy from the learner's distribution -> segment in the arena -> weights at once -> feedback, late if it is late
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from amdp.algorithms.base import Learner, Source
from amdp.arrays import Policies
from amdp.delays import Delays, none
from amdp.dynamics import Segment
from amdp.errors import InvalidInput
from amdp.feedback import Bandit, Feedback, Weights
from amdp.losses import LossSequence
from amdp.mdp import Domain, SingleKernel
from amdp.seeding import Streams


@dataclass(frozen=True, eq=False)
class Episodic:
    """Every round starts again from the initial state and lasts all steps of the kernel."""

    kernel: SingleKernel
    initial: int = 0

    def play(self, policy: Policies, rng: np.random.Generator) -> Segment:
        """One episode; two uniform numbers a step, whatever is played, so that all learners meet the same luck."""
        return self.kernel.walk(policy, self.initial, rng.random((self.kernel.shape[0], 2)))


@dataclass(frozen=True, eq=False)
class Game:
    """An arena, the adversary's losses, and when and how they are told."""

    arena: Episodic
    losses: LossSequence
    delays: Delays | None = None  # None: feedback comes in its own round
    feedback: type[Feedback] = Bandit

    def __post_init__(self) -> None:
        if self.losses.shape != self.arena.kernel.shape:
            raise InvalidInput(f"losses have shape {self.losses.shape}; the arena has {self.arena.kernel.shape}")
        if self.delays is not None and len(self.delays) != len(self.losses):
            raise InvalidInput(f"{len(self.delays)} delays for {len(self.losses)} rounds of losses; give one a round")


@dataclass(frozen=True, eq=False)
class Round:
    """What happened in one round."""

    k: int
    policy: Policies = field(repr=False)  # [h, s, a], as it was drawn
    segment: Segment = field(repr=False)
    paid: float  # the sum of the losses met
    trials: int  # policies sampled for the estimates; the oracle was asked for these and for the one played
    seconds: float  # of the learner
    arrived: int  # feedbacks that arrived at its end


@dataclass(frozen=True, eq=False)
class _Pending:
    """A feedback under way: not the distribution that it was played from, only its weights."""

    segment: Segment
    weights: Weights


def play(
    game: Game, learner: Learner[Source], domain: Domain, streams: Streams, rounds: int | None = None
) -> Iterator[Round]:
    """Play rounds one by one; `domain` is what the learner is told of the arena."""
    total = len(game.losses) if rounds is None else rounds
    _require_playable(game, learner, domain, total)
    return _rounds(game, learner, domain, streams, total)


def _rounds(game: Game, learner: Learner[Source], domain: Domain, streams: Streams, total: int) -> Iterator[Round]:
    delays = game.delays or none(len(game.losses))
    source = learner.start(domain, streams.learner)
    waiting: dict[int, _Pending] = {}
    for k in range(total):
        began = perf_counter()
        policy = source.draw(streams.learner)
        seconds = perf_counter() - began
        segment = game.arena.play(policy, streams.arena)
        table = game.losses[k]
        began = perf_counter()
        weights = learner.weigh(source, segment, streams.learner)
        waiting[k] = _Pending(segment, weights)
        source = learner.observe(source, segment)
        arrivals = delays.arrivals(k)
        for j in arrivals:
            pending = waiting.pop(int(j))
            told = game.losses[int(j)] if j != k else table
            source = learner.learn(source, game.feedback.told(told, pending.segment, pending.weights))
        seconds += perf_counter() - began
        paid = float(table[segment.places].sum())
        yield Round(k, policy, segment, paid, weights.trials, seconds, len(arrivals))


def _require_playable(game: Game, learner: Learner[Source], domain: Domain, rounds: int) -> None:
    if not 1 <= rounds <= len(game.losses):
        raise InvalidInput(f"rounds = {rounds}; the losses have {len(game.losses)} rounds")
    if domain.shape != game.arena.kernel.shape:
        raise InvalidInput(f"the learner's domain has shape {domain.shape}; the arena has {game.arena.kernel.shape}")
    if domain.initial != game.arena.initial:
        raise InvalidInput(f"the learner starts in state {domain.initial}, the arena in {game.arena.initial}")
    if not issubclass(game.feedback, learner.feedback):
        raise InvalidInput(
            f"{type(learner).__name__} needs {learner.feedback.__name__}; the game tells {game.feedback.__name__}"
        )
