"""Losses of a world behind an entrance: those of the world inside, one step later, and none in the entrance."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from amdp.arrays import Floats
from amdp.losses.base import CalledLosses, CheckedLosses, LossSequence, require_block


@dataclass(frozen=True, eq=False)
class EnteredLosses(CheckedLosses):
    """One more step, the first, and one more state, the last, both with losses of 0; `inside` are all others."""

    inside: CheckedLosses = field(repr=False)

    @classmethod
    def of(cls, inside: LossSequence) -> Self:
        """The losses of all places; those of somebody else's sequence are checked as they are read."""
        if not isinstance(inside, CheckedLosses):
            inside = CalledLosses(len(inside), inside.shape, inside.__getitem__)
        steps, states, actions = inside.shape
        return cls(len(inside), (steps + 1, states + 1, actions), inside)

    def table(self, k: int) -> Floats:
        return np.pad(self.inside[k], ((1, 0), (0, 1), (0, 0)))

    def batch(self, low: int, high: int) -> Floats:
        require_block(low, high, self.rounds)
        block = np.zeros((high - low, *self.shape))
        block[:, 1:, :-1] = self.inside.batch(low, high)
        block.flags.writeable = False
        return block
