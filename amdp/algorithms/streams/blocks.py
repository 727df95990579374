"""Compiled forms of learners that choose anew in each step of a stream: see `amdp.algorithms.blocks`.

A block of a stream is a `Block` of rounds of one step that begins in the state `initial`. Feedback comes at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from amdp.algorithms.blocks import BlockResult, empty_played
from amdp.kernels.blocks import Block, Played
from amdp.model.domains import Domain

State = TypeVar("State")


class StepForm(ABC, Generic[State]):
    """How a learner plays a block of steps; its results say where the stream goes on."""

    def space(self, slots: int, domain: Domain) -> tuple[()]:
        """None: no feedback waits."""
        return ()

    @abstractmethod
    def play(
        self, distribution: State, block: Block, space: Any, rng: np.random.Generator
    ) -> tuple[State, BlockResult]:
        """Play on from a distribution; the distribution after the block, and what came of it."""

    @abstractmethod
    def save(self, distribution: State) -> dict[str, NDArray[Any]]:
        """What a distribution has learned, as arrays."""

    @abstractmethod
    def load(self, distribution: State, saved: Mapping[str, NDArray[Any]]) -> State:
        """The distribution that was saved, from one that starts."""


def empty_steps(block: Block) -> Played:
    """To be filled by a compiled stream."""
    return empty_played(len(block.slots), 1)


def chosen_result(played: Played, reached: int, states: int, plans: NDArray[np.int64] | None = None) -> BlockResult:
    """The result of a learner that chooses one action at a time: action 0 in all states but the present one."""
    steps = len(played.states)
    chosen = np.zeros((steps, states), np.int32)
    chosen[np.arange(steps), played.states[:, 0]] = played.actions[:, 0]
    return BlockResult(played, chosen, np.zeros(steps, np.int64) if plans is None else plans, reached=reached)
