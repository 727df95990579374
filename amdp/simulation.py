"""The game: arenas, and the only loop.

policy from the learner's distribution -> segment in the arena -> weights at once -> feedback, late if it is late
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter, thread_time
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np

from amdp.algorithms.base import Draws, Learner, Source
from amdp.algorithms.switching import Place, PolicySwitching, Visit
from amdp.arrays import Floats, Policies, require_index, require_whole
from amdp.chains import rows_of
from amdp.delays import Delays, none, recorded
from amdp.dynamics import Segment
from amdp.errors import InvalidInput
from amdp.evaluation import values
from amdp.feedback import Bandit, Feedback, Weights
from amdp.losses import CalledLosses, CheckedLosses, LossSequence
from amdp.mdp import Domain, MarkovPolicies, SingleKernel, StationaryPolicies
from amdp.seeding import Streams

NOWHERE = Segment(np.empty(0, np.int64), np.empty(0, np.int64))


class Arena(Protocol):
    """Where policies are played. A round goes in with a place and comes out with one."""

    oracle: ClassVar[str]  # who finds the best policy in hindsight, if nobody else is named

    @property
    def kernel(self) -> SingleKernel:
        """Its dynamics."""
        ...

    @property
    def initial(self) -> int:
        """Its initial state."""
        ...

    @property
    def domain(self) -> Domain:
        """The policies that can be played."""
        ...

    def rounds(self, losses: LossSequence) -> int:
        """How many rounds the losses last."""
        ...

    def table(self, losses: LossSequence, k: int) -> Floats:
        """The losses of round `k`, `[h, s, a]`."""
        ...

    def gather(self, total: Floats, table: Floats, k: int) -> None:
        """Add the table of round `k` to the losses of all policies so far, `[h, s, a]`, in place."""
        ...

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        """Refuse losses and delays that cannot be played here."""
        ...

    def begin(self) -> Place:
        """Where the first round starts."""
        ...

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """One round."""
        ...

    def charged(self, played: "Sequence[Round]", tables: Sequence[Floats]) -> Floats:
        """What each round counts for in the regret, `[k]`."""
        ...


@dataclass(frozen=True, eq=False)
class Episodic:
    """Every round starts again from the initial state and lasts all steps of the kernel."""

    kernel: SingleKernel
    initial: int = 0
    oracle: ClassVar[str] = "dp"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SingleKernel):
            raise InvalidInput(f"{type(self.kernel).__name__} is not a kernel; an arena has one: Kernel(p)")
        require_index("initial", self.initial, self.kernel.shape[1])

    def play(self, policy: Policies, rng: np.random.Generator) -> Segment:
        """One episode; two uniform numbers a step, whatever is played, so that all learners meet the same luck."""
        return self.kernel.walk(policy, self.initial, rng.random((self.kernel.shape[0], 2)))

    @property
    def domain(self) -> MarkovPolicies:
        """All Markov policies."""
        return MarkovPolicies(self.kernel, self.initial)

    def rounds(self, losses: LossSequence) -> int:
        """A table for each."""
        return len(losses)

    def table(self, losses: LossSequence, k: int) -> Floats:
        """The losses of round `k`, `[h, s, a]`."""
        return losses[k]

    def gather(self, total: Floats, table: Floats, k: int) -> None:
        """Table by table."""
        total += table

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        """Losses have the shape of the kernel."""
        if losses.shape != self.kernel.shape:
            raise InvalidInput(f"losses have shape {losses.shape}; the arena has {self.kernel.shape}")
        if delays is not None and len(delays) != len(losses):
            raise InvalidInput(f"{len(delays)} delays for {len(losses)} rounds of losses; give one a round")

    def begin(self) -> Place:
        """The initial state."""
        return Place(0, self.initial)

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """One episode, and back to the start."""
        return Visit(NOWHERE, self.play(policy, rng), place)

    def charged(self, played: "Sequence[Round]", tables: Sequence[Floats]) -> Floats:
        """The exact expected losses of the policies."""
        policies = np.stack([one.policy for one in played])
        return values(self.kernel, policies, np.stack(tables))[:, 0, self.initial]


@dataclass(frozen=True, eq=False)
class Continuing:
    """One unbroken stream of all steps of a homogeneous kernel, in epochs: a round is an epoch, its policy stationary.

    The losses have one table `[1, s, a]` for each step. What a learner is told of an epoch is an array `[t, s, a]`
    over all steps that is zero outside the epoch. Feedback comes at its end.
    """

    entry: PolicySwitching
    length: int  # steps of an epoch; the last one may be shorter
    oracle: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.entry, PolicySwitching):
            raise InvalidInput(f"entry is {type(self.entry).__name__}; it must be PolicySwitching(kernel)")
        require_whole("length", self.length)
        if self.length < 1:
            raise InvalidInput(f"length = {self.length}; an epoch has at least 1 step")
        shortest, steps = self.entry.routes.length, self.kernel.shape[0]
        if self.length < steps and self.length <= shortest:
            raise InvalidInput(
                f"length = {self.length}; no switch could end within an epoch: one attempt takes {shortest} steps"
            )

    @property
    def kernel(self) -> SingleKernel:
        """Its dynamics."""
        return self.entry.kernel

    @property
    def initial(self) -> int:
        """The state at step 0."""
        return self.entry.initial

    @property
    def domain(self) -> StationaryPolicies:
        """All stationary policies."""
        return StationaryPolicies(self.kernel, self.initial)

    def rounds(self, losses: LossSequence) -> int:
        """Epochs: all steps, divided by their length and rounded up."""
        return -(-len(losses) // self.length)

    def table(self, losses: LossSequence, k: int) -> Floats:
        """The losses of epoch `k`, `[t, s, a]`, and zero in all other steps."""
        first, last = k * self.length, min((k + 1) * self.length, len(losses))
        result = np.zeros(self.kernel.shape)
        result[first:last] = losses.batch(first, last)[:, 0]
        return result

    def gather(self, total: Floats, table: Floats, k: int) -> None:
        """They stand at their own steps."""
        total += table

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        """One table a step, no delays."""
        _require_steps(self.kernel, losses)
        if delays is not None and (delays.total > 0 or len(delays) != self.rounds(losses)):
            raise InvalidInput(f"{delays}: feedback of a continuing arena comes at the end of its epoch, without delay")

    def begin(self) -> Place:
        """The initial state at step 0, where every policy may begin."""
        return Place(0, self.initial)

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """One epoch: enter the policy if it is a new one, and follow it."""
        return self.entry.walk(place, policy, min(place.time + self.length, self.kernel.shape[0]), rng)

    def charged(self, played: "Sequence[Round]", tables: Sequence[Floats]) -> Floats:
        """The losses that were met, switches included: their mean is the regret's first term, without a model."""
        return np.array([one.paid for one in played])


@dataclass(frozen=True, eq=False)
class Step(Segment):
    """One step of an unbroken stream, for learners that choose anew in each; it stands at step 0 of its table."""

    time: int = field(kw_only=True)
    reached: int = field(kw_only=True)  # the state after it


@dataclass(frozen=True, eq=False)
class Stepwise:
    """One unbroken stream of all steps of a homogeneous kernel: a round is a step, its policy a choice `[s, a]`.

    The losses have one table `[1, s, a]` for each step. Nothing happens between two policies: whoever wants to be
    somewhere must walk there.
    """

    kernel: SingleKernel
    initial: int = 0
    oracle: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        StationaryPolicies(self.kernel, self.initial)  # refuses what is not homogeneous

    @property
    def domain(self) -> StationaryPolicies:
        """All stationary policies."""
        return StationaryPolicies(self.kernel, self.initial)

    def rounds(self, losses: LossSequence) -> int:
        """A step each."""
        return len(losses)

    def table(self, losses: LossSequence, k: int) -> Floats:
        """The losses of step `k`, `[1, s, a]`."""
        return losses[k]

    def gather(self, total: Floats, table: Floats, k: int) -> None:
        """At step `k`."""
        total[k] += table[0]

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        """One table a step."""
        _require_steps(self.kernel, losses)
        if delays is not None and len(delays) != len(losses):
            raise InvalidInput(f"{len(delays)} delays for {len(losses)} steps of losses; give one a step")

    def begin(self) -> Place:
        """The initial state at step 0."""
        return Place(0, self.initial)

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """One step; two uniform numbers, whatever is played, so that all learners meet the same luck."""
        if policy.shape != self.kernel.shape[1:]:
            raise InvalidInput(f"the policy has shape {policy.shape}; a step asks for {self.kernel.shape[1:]}, [s, a]")
        choose, move = rng.random(2)
        action = _pick(policy[place.state].cumsum(), choose)
        reached = _pick(self._below[place.state, action], move)
        step = Step(np.array([place.state]), np.array([action]), time=place.time, reached=reached)
        return Visit(NOWHERE, step, Place(place.time + 1, reached))

    def charged(self, played: "Sequence[Round]", tables: Sequence[Floats]) -> Floats:
        """The losses that were met."""
        return np.array([one.paid for one in played])

    @cached_property
    def _below(self) -> Floats:
        return np.cumsum(rows_of(self.kernel), axis=2)


def _pick(below: Floats, uniform: float) -> int:
    """The place that a uniform number falls on, of cumulative chances that may end a little off 1."""
    return int(below.searchsorted(uniform * below[-1], side="right"))


def _require_steps(kernel: SingleKernel, losses: LossSequence) -> None:
    """A table `[1, s, a]` for each step of the kernel."""
    steps, states, actions = kernel.shape
    if losses.shape != (1, states, actions):
        raise InvalidInput(f"losses have shape {losses.shape}; a step of the arena asks for {(1, states, actions)}")
    if len(losses) != steps:
        raise InvalidInput(f"{len(losses)} tables of losses for {steps} steps; give one a step")


@dataclass(frozen=True, eq=False)
class Game:
    """An arena, the adversary's losses, and when and how they are told."""

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
        given: object = self.delays
        if given is not None and not isinstance(given, Delays):
            object.__setattr__(self, "delays", recorded(np.asarray(given)))
        self.arena.require_fits(self.losses, self.delays)

    @property
    def rounds(self) -> int:
        """How many rounds there are to play."""
        return self.arena.rounds(self.losses)

    def table(self, k: int) -> Floats:
        """The losses of round `k`, `[h, s, a]`."""
        return self.arena.table(self.losses, k)


class Spent(NamedTuple):
    """Seconds of a round, by who spent them: the oracle works in the first three, each learner's where it asks it."""

    draw: float  # the policy that is played: FTPL plans here
    weigh: float  # what a loss stands for: FTPL plans once for every trial
    learn: float  # from one distribution to the next: mirror descent projects here
    arena: float  # the play, and the losses told

    @classmethod
    def between(cls, marks: Sequence[float]) -> Self:
        """From readings of a clock at the begin of a round, and after its draw, play, weighing and learning."""
        begin, drawn, played, weighed, learned = marks
        return cls(drawn - begin, weighed - played, learned - weighed, played - drawn)


@dataclass(frozen=True, eq=False)
class Round:
    """What happened in one round."""

    k: int
    policy: Policies = field(repr=False)  # [h, s, a], as it was drawn; [s, a] if it is stationary
    segment: Segment = field(repr=False)  # the steps in which the policy was followed
    paid: float  # the sum of the losses met
    trials: int  # policies sampled for the estimates
    spent: Spent = field(repr=False)  # on the clock
    cpu: Spent = field(repr=False)  # of the processor, this thread only
    rebuilt: bool  # what is known of the dynamics changed
    arrived: int  # feedbacks that arrived at its end
    entering: Segment = field(default=NOWHERE, repr=False)  # the steps before the segment, spent on a switch
    paid_entering: float = 0.0  # what of `paid` was met in them
    plans: int = 0  # questions to a planning oracle; none of a learner that has no planner

    @property
    def seconds(self) -> float:
        """Of the learner."""
        return self.spent.draw + self.spent.weigh + self.spent.learn


@dataclass(frozen=True, eq=False)
class _Pending:
    """A feedback under way: not the distribution that it was played from, only its weights."""

    segment: Segment
    weights: Weights


def play(
    game: Game, learner: Learner[Source], domain: Domain, streams: Streams, rounds: int | None = None
) -> Iterator[Round]:
    """Play rounds one by one; `domain` is what the learner is told of the arena."""
    total = game.rounds if rounds is None else rounds
    _require_playable(game, learner, domain, total)
    return _rounds(game, learner, domain, streams, total)


def _rounds(game: Game, learner: Learner[Source], domain: Domain, streams: Streams, total: int) -> Iterator[Round]:
    delays = game.delays or none(game.rounds)
    source = learner.start(domain, streams.learner)
    place = game.arena.begin()
    waiting: dict[int, _Pending] = {}
    asked = 0
    for k in range(total):
        marks = [_now()]
        policy = source.draw(streams.learner)
        marks.append(_now())
        entering, segment, place = game.arena.visit(place, policy, streams.arena)
        table = game.table(k)
        marks.append(_now())
        weights = learner.weigh(source, segment, streams.learner)
        marks.append(_now())
        if k + int(delays.values[k]) < game.rounds:
            waiting[k] = _Pending(segment, weights)
        known = source.domain.dynamics
        source = learner.observe(source, segment)
        rebuilt = source.domain.dynamics is not known
        arrivals = delays.arrivals(k)
        for j in arrivals:
            pending = waiting.pop(int(j))
            told = game.table(int(j)) if j != k else table
            source = learner.learn(source, game.feedback.told(told, pending.segment, pending.weights))
        marks.append(_now())
        clock, cpu = (Spent.between(readings) for readings in zip(*marks, strict=True))
        lost = float(table[entering.places].sum()) if len(entering.states) else 0.0
        paid = lost + float(table[segment.places].sum())
        before, asked = asked, _asked(source, asked, weights.trials)
        plans = asked - before
        yield Round(k, policy, segment, paid, weights.trials, clock, cpu, rebuilt, len(arrivals), entering, lost, plans)


def _asked(source: Draws, before: int, trials: int) -> int:
    """Plans so far: one for each policy and trial, if there is a planner; sources that plan at other times count."""
    counted: int | None = getattr(source, "planned", None)
    if counted is not None:
        return counted
    return before + trials + 1 if getattr(source, "planner", None) is not None else before


def _now() -> tuple[float, float]:
    return perf_counter(), thread_time()


def _require_playable(game: Game, learner: Learner[Source], domain: Domain, rounds: int) -> None:
    require_whole("rounds", rounds)
    if not callable(getattr(learner, "start", None)):
        raise InvalidInput(f"{learner!r} is not a learner; make one by name: amdp.algorithms.recipes.learner")
    if not 1 <= rounds <= game.rounds:
        raise InvalidInput(f"rounds = {rounds}; the losses have {game.rounds} rounds")
    played = type(game.arena.domain)
    if not isinstance(domain, played):
        told = type(domain).__name__
        raise InvalidInput(f"{type(game.arena).__name__} plays {played.__name__}; the learner is told {told}")
    if domain.shape != game.arena.kernel.shape:
        raise InvalidInput(f"the learner's domain has shape {domain.shape}; the arena has {game.arena.kernel.shape}")
    if domain.initial != game.arena.initial:
        raise InvalidInput(f"the learner starts in state {domain.initial}, the arena in {game.arena.initial}")
    if not issubclass(game.feedback, learner.feedback):
        raise InvalidInput(
            f"{type(learner).__name__} needs {learner.feedback.__name__}; the game tells {game.feedback.__name__}"
        )
