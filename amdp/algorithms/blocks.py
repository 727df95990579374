"""Compiled forms of learners: blocks of episodes, or of steps of a stream, without Python between the rounds.

A learner with a compiled form has a method `block_form(domain)`. It returns a `BlockForm`, or None where the form does
not cover what the learner was made of, such as another oracle than `dp`. The rounds are the same to the last bit as
those of its methods `draw`, `weigh` and `learn`, called one after the other: both are made of the same compiled steps.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Policies, one_hot
from amdp.kernels.blocks import Block, Played, Waiting
from amdp.kernels.rows import Epochs, IntervalRows, LeaderRows, Narrowing, Paths, Rows
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import Dynamics, read_only
from amdp.model.transitions import SingleKernel

State = TypeVar("State")
OLDER = "used "  # the names of what is saved of dynamics in use begin so, if newer ones were gathered


class BlockResult(NamedTuple):
    """What a learner leaves of a block of `b` rounds."""

    played: Played
    policies: Any  # chances [b, h, s, a], or the actions [b, h, s] of deterministic ones; stationary ones without h
    plans: NDArray[np.int64]  # [b], questions to a planning oracle
    rebuilt: bool = False  # whether every round changed what is known of the dynamics
    reached: int = -1  # the state in which a stream goes on


class BlockForm(Protocol[State]):
    """How a learner plays a block."""

    def space(self, slots: int, domain: Domain) -> Any:
        """Memory for so many rounds whose feedback has not arrived; `play` writes to it."""
        ...

    def play(
        self, distribution: State, block: Block, space: Any, rng: np.random.Generator
    ) -> tuple[State, BlockResult]:
        """Play on from a distribution; the distribution after the block, and what came of it."""
        ...

    def save(self, distribution: State) -> dict[str, NDArray[Any]]:
        """What a distribution has learned, as arrays."""
        ...

    def load(self, distribution: State, saved: Mapping[str, NDArray[Any]]) -> State:
        """The distribution that was saved, from one that starts."""
        ...


def block_form(learner: object, domain: Domain) -> BlockForm[Any] | None:
    """The compiled form of a learner over a domain, if its own type has one: a wrapper's methods must be called."""
    find = getattr(type(learner), "block_form", None)
    form: BlockForm[Any] | None = find(learner, domain) if callable(find) else None
    return form


class BlockDynamics(NamedTuple):
    """What a learner knows of the dynamics, as a compiled game reads it; a box that narrows is written to."""

    rows: Rows
    leader_rows: LeaderRows
    meeting_rows: Paths | IntervalRows
    told: Narrowing | None  # None if an episode tells nothing new

    @classmethod
    def of(cls, domain: Domain) -> Self:
        """A copy of a box, if it narrows; a kernel as it is."""
        dynamics: Any = domain.dynamics
        if narrows(domain):
            box = dynamics.narrowing()
            return cls(box.rows, box.rows, box.rows, box)
        return cls(dynamics.rows, dynamics.leader_rows, dynamics.meeting_rows, None)

    def after(self, domain: Domain) -> Domain:
        """The domain after the block that began with the given one."""
        if self.told is None:
            return domain
        box: Any = domain.dynamics
        return MarkovPolicies(box.narrowed(self.told), domain.initial)


class UsedDynamics(NamedTuple):
    """The same for a learner that need not take up at once what it has gathered about the dynamics."""

    rows: Rows  # of the dynamics in use
    told: Epochs | None  # None if an episode tells nothing new

    @classmethod
    def of(cls, used: Domain, gathered: Dynamics, *, in_epochs: bool) -> Self:
        """Copies of boxes that change; a kernel, or a box that stays, as it is."""
        dynamics: Any = used.dynamics
        if not narrows(used):
            return cls(dynamics.rows, None)
        in_use = dynamics.narrowing()
        newest = cast(BernsteinBox, gathered).narrowing() if in_epochs else in_use
        return cls(in_use.rows, Epochs(newest, in_use, not in_epochs))

    def after(self, used: Domain, gathered: Dynamics) -> tuple[Domain, Dynamics]:
        """The domain in use, and what was gathered, after the block that began with the given ones."""
        if self.told is None:
            return used, gathered
        in_use, newest = cast(BernsteinBox, used.dynamics), cast(BernsteinBox, gathered)
        taken = in_use.narrowed(self.told.used)
        return MarkovPolicies(taken, used.initial), taken if self.told.at_once else newest.narrowed(self.told.gathered)


def has_compiled_form(domain: Domain) -> bool:
    """Whether compiled games can read its dynamics: one kernel, or a box whose rule of narrowing they know."""
    dynamics = domain.dynamics
    if type(dynamics) is BernsteinBox:
        return dynamics.radius is None or dynamics.is_narrowed_by_code
    return isinstance(dynamics, SingleKernel)


def narrows(domain: Domain) -> bool:
    """Whether an episode tells something new of dynamics that compiled games can read."""
    dynamics = domain.dynamics
    return isinstance(dynamics, BernsteinBox) and dynamics.radius is not None and dynamics.shape[0] > 1


def saved_dynamics(domain: Domain) -> dict[str, NDArray[Any]]:
    """What has been learned of the dynamics, as arrays."""
    if not narrows(domain):
        return {}
    box: Any = domain.dynamics
    return {"lower": box.lower, "upper": box.upper, "visits": box.visits, "fallbacks": np.array(box.fallbacks)}


def loaded_dynamics(domain: Domain, saved: Mapping[str, NDArray[Any]]) -> Domain:
    """The domain with the dynamics that were saved, from one that starts."""
    if not narrows(domain):
        return domain
    box: Any = domain.dynamics
    learned = saved["lower"], saved["upper"], saved["visits"], box.radius, int(saved["fallbacks"])
    return MarkovPolicies(BernsteinBox(*learned), domain.initial)


def saved_used(used: Domain, gathered: Domain) -> dict[str, NDArray[Any]]:
    """The same where a learner may use older dynamics than it has gathered."""
    older = {} if gathered.dynamics is used.dynamics else saved_dynamics(used)
    return saved_dynamics(gathered) | {OLDER + name: value for name, value in older.items()}


def loaded_used(domain: Domain, saved: Mapping[str, NDArray[Any]]) -> tuple[Domain, Dynamics]:
    """The domain in use and the gathered dynamics that were saved, from a domain that starts."""
    older = {name.removeprefix(OLDER): value for name, value in saved.items() if name.startswith(OLDER)}
    gathered = loaded_dynamics(domain, saved)
    return loaded_dynamics(domain, older) if older else gathered, gathered.dynamics


def waiting(slots: int, steps: int) -> Waiting:
    """Memory for so many segments whose feedback has not arrived."""
    states, actions = np.empty((2, slots, steps), np.int64)
    weights, losses = np.empty((2, slots, steps))
    return Waiting(states, actions, weights, losses)


def empty_played(rounds: int, steps: int) -> Played:
    """To be filled by a compiled game."""
    states, actions = np.empty((2, rounds, steps), np.int64)
    return Played(states, actions, np.zeros(rounds, np.int64), np.zeros(4, np.int64))


def part_of_block(block: Block, low: int, high: int) -> Block:
    """The rounds `low .. high - 1` of a block."""
    starts = block.starts[low : high + 1]
    inside = slice(starts[0], starts[-1])
    tables = np.concatenate([block.tables[low:high], block.tables]) if low else block.tables
    return block._replace(
        luck=block.luck[low:high],
        tables=read_only(tables),  # as they come with a whole block: kernels are compiled for that alone
        slots=block.slots[low:high],
        starts=starts - starts[0],
        arrived=block.arrived[inside],
        arrived_tables=block.arrived_tables[inside] + (high - low if low else 0),
    )


def as_policies(policies: Any, n_actions: int) -> Policies:
    """Chances of actions `[b, h, s, a]`, or `[b, s, a]` if they are stationary."""
    if policies.dtype.kind == "i":
        return one_hot(policies.astype(np.int64), n_actions)
    chances: Policies = policies
    return chances
