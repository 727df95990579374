"""The loop of rounds, the only one: every learner is played here.

policy drawn from the learner's distribution -> trajectory in the arena -> importance weights at once -> feedback, in
the same round or after its delay -> the next distribution
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from amdp.algorithms.base import Distribution, Learner
from amdp.algorithms.blocks import BlockForm, block_form
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.streams.blocks import StepForm
from amdp.arrays import Floats, require_whole
from amdp.errors import InvalidInput
from amdp.game.arenas import Arena, Episodic, Stepwise
from amdp.game.blocks import Block, in_blocks
from amdp.game.delays import Delays, none, recorded
from amdp.game.rounds import Round, Timing
from amdp.game.seeding import Streams
from amdp.losses import CalledLosses, CheckedLosses, LossSequence
from amdp.model.domains import Domain
from amdp.model.segments import Segment


@dataclass(frozen=True, eq=False)
class ArenaGame:
    """A game in a given arena: the adversary's losses, their delays, and what feedback reveals of them."""

    arena: Arena
    losses: LossSequence  # somebody else's sequence is checked as it is read
    delays: Delays | None = None  # None: feedback comes in its own round; a list of whole numbers is accepted too
    feedback: type[Feedback] = Bandit

    def __post_init__(self) -> None:
        if not isinstance(self.losses, LossSequence):
            raise InvalidInput(f"losses are {type(self.losses).__name__}; wrap tables: FixedLosses(array)")
        if not isinstance(self.losses, CheckedLosses):
            checked = CalledLosses(len(self.losses), self.losses.shape, self.losses.__getitem__)
            object.__setattr__(self, "losses", checked)
        delays: object = self.delays
        if delays is not None and not isinstance(delays, Delays):
            object.__setattr__(self, "delays", recorded(np.asarray(delays)))
        self.arena.require_fits(self.losses, self.delays)

    @property
    def rounds(self) -> int:
        """How many rounds there are to play."""
        return self.arena.rounds(self.losses)

    def table(self, k: int) -> Floats:
        """The losses of round `k`, `[h, s, a]`."""
        return self.arena.table(self.losses, k)


def play_rounds(
    game: ArenaGame, learner: Learner[Distribution], domain: Domain, streams: Streams, rounds: int | None = None
) -> Iterator[Round]:
    """Play rounds one by one; `domain` is what the learner is told of the arena."""
    total = game.rounds if rounds is None else rounds
    _require_playable(game, learner, domain, total)
    return _rounds(game, learner, domain, streams, total)


def play_blocks(
    game: ArenaGame,
    learner: Learner[Distribution],
    domain: Domain,
    streams: Streams,
    rounds: int | None = None,
    *,
    tick: Callable[[int], None] | None = None,
) -> Iterator[Block]:
    """The same rounds, block by block: in machine code, if the learner has a compiled form for them.

    `tick` is told how many rounds are played: after each block, or after each round where they are played one by one.
    """
    total = game.rounds if rounds is None else rounds
    _require_playable(game, learner, domain, total)
    form = block_form(learner, domain) if game.feedback in (Bandit, FullInformation) else None
    if form is None or not _has_compiled_loop(game, form):
        return in_blocks(_counted(_rounds(game, learner, domain, streams, total), tick), game.arena.round_shape)
    from amdp.game.compiled import CompiledGame, CompiledStream

    kind = CompiledStream if isinstance(form, StepForm) else CompiledGame
    return kind(game, form, _started(learner, domain, streams), streams, total, tick)


def _has_compiled_loop(game: ArenaGame, form: BlockForm[Any]) -> bool:
    """Episodes, or a stream of steps whose feedback comes at once."""
    if isinstance(form, StepForm):
        return type(game.arena) is Stepwise and game.delays is None
    return type(game.arena) is Episodic


def _counted(rounds: Iterator[Round], tick: Callable[[int], None] | None) -> Iterator[Round]:
    for record in rounds:
        if tick:
            tick(record.k + 1)
        yield record


def _rounds(
    game: ArenaGame, learner: Learner[Distribution], domain: Domain, streams: Streams, total: int
) -> Iterator[Round]:
    delays = game.delays or none(game.rounds)
    distribution = _started(learner, domain, streams)
    place = game.arena.begin()
    waiting: dict[int, tuple[Segment, Weights]] = {}  # feedback that is still to come, by its round
    calls = 0
    for k in range(total):
        marks = [_now()]
        policy = distribution.draw(streams.learner)
        marks.append(_now())
        entering, segment, place = game.arena.visit(place, policy, streams.arena)
        table = game.table(k)
        marks.append(_now())
        weights = learner.weigh(distribution, segment, streams.learner)
        marks.append(_now())
        if k + int(delays.values[k]) < game.rounds:
            waiting[k] = segment, weights
        known = distribution.domain.dynamics
        distribution = learner.observe(distribution, segment)
        rebuilt = distribution.domain.dynamics is not known
        arrivals = delays.arrivals(k)
        for j in arrivals:
            losses = game.table(int(j)) if j != k else table
            distribution = learner.learn(distribution, game.feedback.reveal(losses, *waiting.pop(int(j))))
        marks.append(_now())
        clock, cpu = (Timing.between(readings) for readings in zip(*marks, strict=True))
        lost = float(table[entering.places].sum()) if len(entering.states) else 0.0
        incurred = lost + float(table[segment.places].sum())
        plans = distribution.oracle_calls - calls + weights.oracle_calls
        calls = distribution.oracle_calls
        yield Round(
            k, policy, segment, incurred, weights.trials, clock, cpu, rebuilt, len(arrivals), entering, lost, plans
        )


def _started(learner: Learner[Distribution], domain: Domain, streams: Streams) -> Distribution:
    distribution = learner.start(domain, streams.learner)
    name = type(distribution).__name__
    for member in ("domain", "draw"):
        if not hasattr(distribution, member):
            raise InvalidInput(
                f"{type(learner).__name__}.start gave a {name} without {member!r}: see PolicyDistribution"
            )
    if not hasattr(distribution, "oracle_calls"):
        raise InvalidInput(f"{name} does not count its oracle_calls; one without an oracle has `oracle_calls = 0`")
    return distribution


def _now() -> tuple[float, float]:
    return perf_counter(), thread_time()


def _require_playable(game: ArenaGame, learner: Learner[Distribution], domain: Domain, rounds: int) -> None:
    require_whole("rounds", rounds)
    if not callable(getattr(learner, "start", None)):
        raise InvalidInput(f"{learner!r} is not a learner; make one by name: amdp.algorithms.named.learner")
    if not 1 <= rounds <= game.rounds:
        raise InvalidInput(f"rounds = {rounds}; the losses have {game.rounds} rounds")
    played = type(game.arena.domain)
    if not isinstance(domain, played):
        known = type(domain).__name__
        raise InvalidInput(f"{type(game.arena).__name__} plays {played.__name__}; the learner is told {known}")
    if domain.shape != game.arena.kernel.shape:
        raise InvalidInput(f"the learner's domain has shape {domain.shape}; the arena has {game.arena.kernel.shape}")
    if domain.initial != game.arena.initial:
        raise InvalidInput(f"the learner starts in state {domain.initial}, the arena in {game.arena.initial}")
    if not issubclass(game.feedback, learner.feedback):
        raise InvalidInput(
            f"{type(learner).__name__} needs {learner.feedback.__name__}; the game tells {game.feedback.__name__}"
        )
