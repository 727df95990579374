"""Arenas: where policies are played, in episodes or as one stream of steps."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp import kernels
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.arrays import Floats, Policies, require_index, require_whole
from amdp.errors import InvalidInput
from amdp.game.blocks import Block
from amdp.game.delays import Delays
from amdp.losses import LossSequence
from amdp.model.budgets import Budgets
from amdp.model.chains import rows_of
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain, MarkovPolicies, StationaryPolicies
from amdp.model.dynamics import read_only
from amdp.model.segments import NOWHERE, Place, Segment, Shape, Step, Visit
from amdp.model.transitions import SingleKernel


class Arena(Protocol):
    """Where policies are played. A round goes in with a place and comes out with one."""

    oracle: ClassVar[str]  # who finds the best policy in hindsight, if nobody else is named

    @property
    def kernel(self) -> SingleKernel:
        """The transition kernel that trajectories are drawn from."""

    @property
    def initial(self) -> int:
        """The state in which every episode, or the stream, begins."""

    @property
    def domain(self) -> Domain:
        """The policies that can be played."""

    @property
    def round_shape(self) -> Shape:
        """Steps, states and actions of what a round adds to a game: blocks of rounds are as long as this allows."""

    def rounds(self, losses: LossSequence) -> int:
        """How many rounds the losses last."""

    def table(self, losses: LossSequence, k: int) -> Floats:
        """The losses of round `k`, `[h, s, a]`."""

    def gather(self, total: Floats, losses: LossSequence, low: int, high: int) -> None:
        """Add the losses of the rounds `low .. high - 1` to those of all policies so far, `[h, s, a]`, in place."""

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        """Refuse losses and delays that cannot be played here."""

    def begin(self) -> Place:
        """Where the first round starts."""

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """Play one round of a policy from a place."""

    def charged(self, block: Block, losses: LossSequence) -> Floats:
        """What each round of a block counts for in the regret, `[b]`."""

    def used(self, block: Block) -> Floats:
        """What the policies of each round of a block use of each budget, `[b, i]`."""


class RoundByRound:
    """What arenas share: a table of losses for each round, summed up as they are, from the initial state on."""

    @property
    def round_shape(self: Arena) -> Shape:
        return self.kernel.shape

    def rounds(self, losses: LossSequence) -> int:
        return len(losses)

    def table(self, losses: LossSequence, k: int) -> Floats:
        return losses[k]

    def gather(self, total: Floats, losses: LossSequence, low: int, high: int) -> None:
        total += losses.batch(low, high).sum(axis=0)

    def begin(self: Arena) -> Place:
        return Place(0, self.initial)

    def charged(self, block: Block, losses: LossSequence) -> Floats:
        """The losses that were met, switches included: their mean is the regret's first term, without a model."""
        return block.column("paid")

    def used(self, block: Block) -> Floats:
        """Nothing: there are no budgets."""
        return np.empty((len(block), 0))


@dataclass(frozen=True, eq=False)
class Episodic(RoundByRound):
    """Every round starts again from the initial state and lasts all steps of the kernel."""

    kernel: SingleKernel
    initial: int = 0
    oracle: ClassVar[str] = "dp"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SingleKernel):
            raise InvalidInput(f"{type(self.kernel).__name__} is not a kernel; an arena has one: Kernel(p)")
        require_index("initial", self.initial, self.kernel.shape[1])

    def play(self, policy: Policies, rng: np.random.Generator) -> Segment:
        """One episode; two uniform numbers a step, whatever is played: all learners meet the same transitions."""
        return self.kernel.walk(policy, self.initial, rng.random((self.kernel.shape[0], 2)))

    @property
    def domain(self) -> EpisodeDomain:
        return MarkovPolicies(self.kernel, self.initial)

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        if losses.shape != self.kernel.shape:
            raise InvalidInput(f"losses have shape {losses.shape}; the arena has {self.kernel.shape}")
        if delays is not None and len(delays) != len(losses):
            raise InvalidInput(f"{len(delays)} delays for {len(losses)} rounds of losses; give one a round")

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        return Visit(NOWHERE, self.play(policy, rng), place)

    def charged(self, block: Block, losses: LossSequence) -> Floats:
        """The exact expected losses of the policies."""
        return _expected(self.kernel, self.initial, block.policies, losses.batch(block.first, block.first + len(block)))


@dataclass(frozen=True, eq=False)
class WithinBudgets(Episodic):
    """Episodes in which policies have to keep budgets in expectation, as the best one in hindsight does."""

    budgets: Budgets = field(kw_only=True)
    oracle: ClassVar[str] = "lagrangian"

    @property
    def domain(self) -> BudgetedPolicies:
        return BudgetedPolicies(self.kernel, self.budgets, self.initial)

    def used(self, block: Block) -> Floats:
        """The exact expected use of each budget."""
        policies, budgets = block.policies, self.budgets.over(self.kernel.shape)
        tables = (np.broadcast_to(usage, policies.shape) for usage in budgets.usage)
        return np.column_stack([_expected(self.kernel, self.initial, policies, table) for table in tables])


@dataclass(frozen=True, eq=False)
class Evolving(RoundByRound):
    """Episodes under the kernel `kernels[schedule[k]]` in round `k`: beyond the paper, which keeps transitions fixed.

    A learner knows one kernel or a box of its own, and nothing of the schedule. Regret is measured by
    `amdp.game.dynamic_regret`: no planner finds the best policy for several kernels from a sum of losses.
    """

    kernels: tuple[SingleKernel, ...]
    schedule: NDArray[np.int64]  # [k], the kernel of each round
    initial: int = 0
    oracle: ClassVar[str] = "dp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        object.__setattr__(self, "schedule", _schedule(self.schedule, len(self.kernels)))
        shapes = {arena.kernel.shape for arena in self._arenas}
        if len(shapes) > 1:
            raise InvalidInput(f"kernels have the shapes {sorted(shapes)}; an arena has one")

    @cached_property
    def _arenas(self) -> tuple[Episodic, ...]:
        return tuple(Episodic(kernel, self.initial) for kernel in self.kernels)

    @property
    def kernel(self) -> SingleKernel:
        """The kernel of the first round."""
        return self.kernels[int(self.schedule[0])]

    @property
    def domain(self) -> MarkovPolicies:
        return MarkovPolicies(self.kernel, self.initial)

    def gather(self, total: Floats, losses: LossSequence, low: int, high: int) -> None:
        """Refused: a sum of losses does not say under which kernel each was met."""
        raise InvalidInput("kernels change, so that losses cannot be summed; measure with amdp.game.dynamic_regret")

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        self._arenas[0].require_fits(losses, delays)
        if len(losses) != len(self.schedule):
            raise InvalidInput(f"schedule has {len(self.schedule)} rounds; the losses have {len(losses)}")

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        segment = self._arenas[self.schedule[place.time]].play(policy, rng)
        return Visit(NOWHERE, segment, Place(place.time + 1, self.initial))

    def charged(self, block: Block, losses: LossSequence) -> Floats:
        tables, policies = losses.batch(block.first, block.first + len(block)), block.policies
        kernel_of = self.schedule[block.first : block.first + len(block)]
        paid = np.empty(len(block))
        for i in np.unique(kernel_of):
            there = kernel_of == i
            paid[there] = _expected(self.kernels[i], self.initial, policies[there], tables[there])
        return paid


@dataclass(frozen=True, eq=False)
class Continuing(RoundByRound):
    """One stream of all steps of a homogeneous kernel, in epochs: a round is an epoch, its policy stationary.

    The losses have one table `[1, s, a]` for each step. The losses of an epoch are an array `[t, s, a]` over all steps
    that is zero outside the epoch. Feedback comes at its end.
    """

    entry: PolicySwitching
    length: int  # steps of an epoch; the last one may be shorter
    oracle: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.entry, PolicySwitching):
            raise InvalidInput(f"entry is {type(self.entry).__name__}; it must be PolicySwitching(kernel)")
        require_whole("length", self.length, 1)
        shortest, steps = self.entry.attempt_length, self.kernel.shape[0]
        if self.length < steps and self.length <= shortest:
            raise InvalidInput(
                f"length = {self.length}; no switch could end within an epoch: one attempt takes {shortest} steps"
            )

    @property
    def kernel(self) -> SingleKernel:
        return self.entry.kernel

    @property
    def initial(self) -> int:
        return self.entry.initial

    @property
    def domain(self) -> StationaryPolicies:
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

    def gather(self, total: Floats, losses: LossSequence, low: int, high: int) -> None:
        first, last = (min(k * self.length, len(losses)) for k in (low, high))
        total[first:last] += losses.batch(first, last)[:, 0]

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        _require_steps(self.kernel, losses)
        if delays is not None and (delays.total > 0 or len(delays) != self.rounds(losses)):
            raise InvalidInput(f"{delays}: feedback of a continuing arena comes at the end of its epoch, without delay")

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """One epoch: enter the policy if it is a new one, and follow it."""
        return self.entry.walk(place, policy, min(place.time + self.length, self.kernel.shape[0]), rng)


@dataclass(frozen=True, eq=False)
class Stepwise(RoundByRound):
    """One stream of all steps of a homogeneous kernel: a round is a step, its policy a choice `[s, a]`.

    The losses have one table `[1, s, a]` for each step. Nothing happens between two policies: whoever wants to be
    somewhere must walk there.
    """

    kernel: SingleKernel
    initial: int = 0
    oracle: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        StationaryPolicies(self.kernel, self.initial)  # refuses what is not homogeneous

    @property
    def round_shape(self) -> Shape:
        """One step, however many the stream has."""
        return 1, *self.kernel.shape[1:]

    @property
    def domain(self) -> StationaryPolicies:
        return StationaryPolicies(self.kernel, self.initial)

    def gather(self, total: Floats, losses: LossSequence, low: int, high: int) -> None:
        total[low:high] += losses.batch(low, high)[:, 0]

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        _require_steps(self.kernel, losses)
        if delays is not None and len(delays) != len(losses):
            raise InvalidInput(f"{len(delays)} delays for {len(losses)} steps of losses; give one a step")

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """One step; two uniform numbers, whatever is played: all learners meet the same transitions."""
        if policy.shape != self.kernel.shape[1:]:
            raise InvalidInput(f"the policy has shape {policy.shape}; a step asks for {self.kernel.shape[1:]}, [s, a]")
        choose, move = rng.random(2)
        action = _pick(policy[place.state].cumsum(), choose)
        reached = _pick(self._below[place.state, action], move)
        step = Step(np.array([place.state]), np.array([action]), time=place.time, reached=reached)
        return Visit(NOWHERE, step, Place(place.time + 1, reached))

    @cached_property
    def _below(self) -> Floats:
        return np.cumsum(rows_of(self.kernel), axis=2)


def _expected(kernel: SingleKernel, initial: int, policies: Policies, tables: Floats) -> Floats:
    """The exact expected loss `[b]` of each of the policies `[b, h, s, a]` under its table."""
    if policies.shape != tables.shape or tables.shape[1:] != kernel.shape:
        raise InvalidInput(f"policies has shape {policies.shape}; the losses have {tables.shape}")
    paid = np.empty(len(policies))
    given = read_only(policies), read_only(np.ascontiguousarray(tables))  # so that there is one form to compile
    kernels.episodes.expected_losses(kernel.rows, *given, initial, paid)
    return paid


def _schedule(schedule: ArrayLike, kernels: int) -> NDArray[np.int64]:
    kernel_of = np.asarray(schedule)
    if kernel_of.ndim != 1 or len(kernel_of) == 0 or kernel_of.dtype.kind not in "iu":
        raise InvalidInput("schedule must be a list of whole numbers, one a round")
    outside = (kernel_of < 0) | (kernel_of >= kernels)
    if outside.any():
        k = int(outside.argmax())
        raise InvalidInput(f"schedule[{k}] = {kernel_of[k]}; there are {kernels} kernels, counted from 0")
    frozen = kernel_of.astype(np.int64)
    frozen.setflags(write=False)
    return frozen


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
