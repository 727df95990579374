"""One integer, one independent generator for each party of a game."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from amdp.arrays import require_whole


@dataclass(frozen=True, eq=False)
class Streams:
    """The random numbers of the arena and of the learner: the arena's do not depend on who plays in it."""

    arena: np.random.Generator
    learner: np.random.Generator

    @classmethod
    def from_seed(cls, seed: int) -> Self:
        """Spawn all streams of one run; the same seed always gives the same streams."""
        require_whole("seed", seed, 0)
        return cls(*(np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(2)))
