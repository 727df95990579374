"""Blocks of rounds: a game is played and measured block by block.

A learner with a compiled form plays a block in machine code, any other round by round in Python; whoever measures the
blocks sees no difference.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amdp.algorithms.blocks import BlockResult, as_policies
from amdp.arrays import Floats, Policies, require_distributions
from amdp.game.rounds import Round, Timing
from amdp.model.segments import Segment, Shape, Step

BLOCK = 256  # rounds that are played and evaluated together
BLOCK_NUMBERS = 8_000_000  # losses that are held together
BLOCK_WORK = 2_000_000  # pairs of a place and a next state: progress and Ctrl-C wait for the end of a block


def block_size(shape: Shape) -> int:
    """How many rounds a block has: by the shape alone, so that sums over blocks are always the same."""
    places = prod(shape)
    return max(1, min(BLOCK, BLOCK_NUMBERS // places, BLOCK_WORK // (places * shape[1])))


class Block(ABC):
    """Consecutive rounds of a game."""

    first: int  # the number of its first round

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Round]:
        """The rounds one by one."""

    @property
    @abstractmethod
    def policies(self) -> Policies:
        """The policies that were played, `[b, h, s, a]`, or `[b, s, a]` if they are stationary."""

    @abstractmethod
    def column(self, name: str) -> NDArray[Any]:
        """An attribute of all its rounds, `[b]`; of `spent` and `cpu` `[b, 4]`."""


@dataclass(frozen=True, eq=False)
class RoundList(Block):
    """Rounds that were played one by one."""

    rounds: list[Round]
    first: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", self.rounds[0].k)

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[Round]:
        return iter(self.rounds)

    @property
    def policies(self) -> Policies:
        """Checked: they may come from anybody's learner."""
        policies = np.ascontiguousarray([record.policy for record in self.rounds], dtype=np.float64)
        require_distributions("policies", policies, "khsa"[: policies.ndim - 1] + "a")
        return policies

    def column(self, name: str) -> NDArray[Any]:
        return np.array([getattr(record, name) for record in self.rounds])


@dataclass(frozen=True, eq=False)
class CompiledBlock(Block):
    """Episodes that were played in machine code. The time of a round is the mean over the block."""

    first: int
    result: BlockResult = field(repr=False)
    tables: Floats = field(repr=False)  # [b, h, s, a]
    arrived: NDArray[np.int64]  # [b], feedbacks that arrived at the end of each round
    spent: Timing
    cpu: Timing

    def __len__(self) -> int:
        return len(self.arrived)

    @property
    def policies(self) -> Policies:
        return as_policies(self.result.policies, self.tables.shape[3])

    @property
    def paid(self) -> Floats:
        """The losses that were met, `[b]`."""
        states, actions = self.result.played.states, self.result.played.actions
        met: Floats = self.tables[np.arange(len(self))[:, None], np.arange(states.shape[1]), states, actions]
        if states.shape[1] == 1:
            return met[:, 0]
        # One by one, in the order in which numpy sums a segment: that of rows of a matrix may be another.
        return np.array([segment.sum() for segment in met])

    def column(self, name: str) -> NDArray[Any]:
        if name in ("spent", "cpu"):
            return np.tile(np.array(getattr(self, name)) / len(self), (len(self), 1))
        if name == "k":
            return self.first + np.arange(len(self))
        if name == "paid":
            return self.paid
        counts = {"trials": self.result.played.trials, "plans": self.result.plans, "arrived": self.arrived}
        same = {"rebuilt": self.result.rebuilt, "paid_entering": 0.0}  # an episode has no steps of a switch
        return counts[name] if name in counts else np.full(len(self), same[name])

    def __iter__(self) -> Iterator[Round]:
        policies, played, paid = self.policies, self.result.played, self.paid
        spent, cpu = (Timing(*(part / len(self) for part in clock)) for clock in (self.spent, self.cpu))
        for i in range(len(self)):
            yield Round(
                self.first + i, policies[i], self._segment(i), float(paid[i]), int(played.trials[i]), spent, cpu,
                self.result.rebuilt, int(self.arrived[i]), plans=int(self.result.plans[i]),
            )  # fmt: skip

    def _segment(self, i: int) -> Segment:
        """What was seen in its round number `i`."""
        played = self.result.played
        return Segment(played.states[i].copy(), played.actions[i].copy())


@dataclass(frozen=True, eq=False)
class StepBlock(CompiledBlock):
    """The same for steps of a stream; the tables have one step."""

    def _segment(self, i: int) -> Step:
        seen, states = super()._segment(i), self.result.played.states
        reached = int(states[i + 1, 0]) if i + 1 < len(states) else self.result.reached
        return Step(seen.states, seen.actions, time=self.first + i, reached=reached)


def in_blocks(played: Iterator[Any], shape: Shape) -> Iterator[Block]:
    """Rounds put together to blocks; blocks as they are."""
    for one in played:
        if isinstance(one, Block):
            yield one
        else:
            more = islice(played, block_size(shape) - 1)
            yield RoundList([one, *more])
