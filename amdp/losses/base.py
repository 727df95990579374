"""Sequences of losses that are fixed before the game starts, read in any order, and checked as they are read.

Round `k` counts from 0. Its losses are an array `[h, s, a]` with entries in [0, 1].
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp import kernels
from amdp.arrays import Floats, floats, located, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.layout import keyed_rng
from amdp.model.segments import Shape

COMPILED_NUMBERS = 1024  # more a round are made as quickly by numpy
AHEAD = 64  # rounds that are made together if they are read one after the other
AHEAD_NUMBERS = 100_000  # losses that they have at most
RULE = "a loss must be between 0 and 1"


@runtime_checkable
class LossSequence(Protocol):
    """What an oblivious adversary chose: losses `[h, s, a]` in [0, 1] for each round, the same at every reading."""

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""

    def __len__(self) -> int:
        """The number of rounds."""

    def __getitem__(self, k: int, /) -> Floats:
        """The losses `[h, s, a]` of round `k`; not to be changed."""

    def __iter__(self) -> Iterator[Floats]:
        """The losses of all rounds, one after the other."""

    def batch(self, low: int, high: int) -> Floats:
        """The losses `[n, h, s, a]` of the rounds `low .. high - 1`; not to be changed."""


@dataclass(frozen=True)
class CheckedLosses(ABC):
    """Refuses a wrong table in the moment when its round is read, before a learner meets it."""

    rounds: int
    shape: Shape

    def __post_init__(self) -> None:
        require_whole("rounds", self.rounds, 1)
        if len(self.shape) != 3:
            raise InvalidInput(f"shape = {self.shape}; it must be (steps, states, actions)")
        for axis, size in zip("hsa", self.shape, strict=True):
            require_whole(f"shape[{axis}]", size, 1)
        object.__setattr__(self, "shape", tuple(int(size) for size in self.shape))

    @abstractmethod
    def table(self, k: int) -> ArrayLike:
        """The losses of round `k`, not yet checked."""

    def __len__(self) -> int:
        return self.rounds

    def __getitem__(self, k: int) -> Floats:
        _require_round(k, self.rounds)
        # A copy: what the adversary wrote into may be its buffer for the next round.
        losses = np.array(floats(f"losses of round {k}", self.table(int(k)), "hsa"), order="C")
        if losses.shape != self.shape:
            raise InvalidInput(f"losses of round {k} have shape {losses.shape}; expected {self.shape}")
        require_losses(losses[None], first=int(k))
        losses.flags.writeable = False
        return losses

    def __iter__(self) -> Iterator[Floats]:
        return (self[k] for k in range(self.rounds))

    def batch(self, low: int, high: int) -> Floats:
        require_block(low, high, self.rounds)
        block = np.empty((high - low, *self.shape))
        for k in range(low, high):
            block[k - low] = self[k]
        block.flags.writeable = False
        return block


class RecentLosses:
    """A sequence that keeps the last block that was read: several readers ask for the same one."""

    def __init__(self, losses: LossSequence) -> None:
        self.losses, self.shape = losses, losses.shape
        self._low, self._block = 0, np.empty((0, *losses.shape))

    def __len__(self) -> int:
        return len(self.losses)

    def __getitem__(self, k: int) -> Floats:
        return self.losses[k]

    def __iter__(self) -> Iterator[Floats]:
        return iter(self.losses)

    def hold(self, low: int, block: Floats) -> None:
        """Somebody has read the rounds from `low` on."""
        self._low, self._block = low, block

    def batch(self, low: int, high: int) -> Floats:
        if not self._low <= low <= high <= self._low + len(self._block):
            self._low, self._block = low, self.losses.batch(low, high)
        return self._block[low - self._low : high - self._low]


@dataclass(frozen=True, eq=False)
class FixedLosses(CheckedLosses):
    """Losses by array `[k, h, s, a]`, checked at once. The array is not copied; do not change it afterwards."""

    rounds: int = field(init=False)
    shape: Shape = field(init=False)
    array: Floats = field(repr=False)

    def __post_init__(self) -> None:
        array = floats("losses", self.array, "khsa").view()
        array.flags.writeable = False
        require_losses(array)
        object.__setattr__(self, "array", array)
        object.__setattr__(self, "rounds", len(array))
        object.__setattr__(self, "shape", array.shape[1:])

    def table(self, k: int) -> Floats:
        losses: Floats = self.array[k]
        return losses

    def __getitem__(self, k: int) -> Floats:
        _require_round(k, self.rounds)
        return self.table(k)

    def batch(self, low: int, high: int) -> Floats:
        require_block(low, high, self.rounds)
        return self.array[low:high]

    def __reduce__(self) -> tuple[Any, ...]:
        return FixedLosses, (self.array,)


@dataclass(frozen=True)
class CalledLosses(CheckedLosses):
    """Losses by function: round `k` is `call(k)`, which must not depend on earlier calls."""

    call: Callable[[int], ArrayLike] = field(repr=False)
    name: str = field(default="", kw_only=True)

    def table(self, k: int) -> ArrayLike:
        return self.call(k)


@dataclass(frozen=True)
class GeneratedLosses(CheckedLosses):
    """Losses by generator: round `k` is `make(k, rng)`, with an `rng` of its own that depends on seed, stream and `k`.

    Nothing is stored, and the order of reading does not matter. Sequences of one seed and different streams are
    independent.
    """

    seed: int
    make: Callable[[int, np.random.Generator], ArrayLike] = field(repr=False)
    stream: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("seed", self.seed, 0)

    def table(self, k: int) -> ArrayLike:
        return self.make(k, round_rng(self.seed, self.stream, k))


@dataclass(frozen=True)
class PickedLosses(CheckedLosses):
    """Tables of another sequence: round `k` is `tables[which(k)]`; `which` takes many rounds `[n]` at once."""

    tables: LossSequence
    which: Callable[[NDArray[np.int64]], NDArray[np.int64]] = field(repr=False)

    def table(self, k: int) -> Floats:
        return self[k]

    def __getitem__(self, k: int) -> Floats:
        _require_round(k, self.rounds)
        return self.tables[int(self.which(np.array([k]))[0])]

    def batch(self, low: int, high: int) -> Floats:
        require_block(low, high, self.rounds)
        picked, where = np.unique(self.which(np.arange(low, high)), return_inverse=True)
        if len(picked) == 1:
            return np.broadcast_to(self.tables[int(picked[0])], (high - low, *self.shape))
        block = np.stack([self.tables[int(k)] for k in picked])[where] if len(picked) else np.empty((0, *self.shape))
        block.flags.writeable = False
        return block


@dataclass(frozen=True)
class UniformlyDrawn(CheckedLosses):
    """Losses made from uniform numbers on [0, 1), one for each place, that depend on seed, stream and round alone.

    `make(low, numbers)` turns the numbers `[n, h, s, a]` of the rounds from `low` on into losses. They are those of
    `round_rng`, and many rounds are made at once.
    """

    seed: int
    make: Callable[[int, Floats], ArrayLike] = field(repr=False)
    stream: str = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("seed", self.seed, 0)

    def table(self, k: int) -> Floats:
        return self[k]

    def __getitem__(self, k: int) -> Floats:
        """Rounds that are read one after the other are made in blocks; any other is made alone."""
        _require_round(k, self.rounds)
        k = int(k)
        low, block, last = vars(self).get("_recent", (0, np.empty((0, *self.shape)), k))
        if not low <= k < low + len(block):
            size = max(1, min(AHEAD, AHEAD_NUMBERS // prod(self.shape))) if k == last + 1 else 1
            made = self.batch(k, min(k + size, self.rounds))
            if size == 1 and k < low:  # late feedback asks for it again, and rounds go on in the block
                object.__setattr__(self, "_recent", (low, block, k))
                return made[0]  # type: ignore[no-any-return]
            low, block = k, made
        object.__setattr__(self, "_recent", (low, block, k))
        return block[k - low]  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_recent"}

    def batch(self, low: int, high: int) -> Floats:
        require_block(low, high, self.rounds)
        block = np.array(self.make(low, self._numbers(low, high)), dtype=np.float64, order="C")
        if block.shape != (high - low, *self.shape):
            raise InvalidInput(f"losses of rounds {low} .. have shape {block.shape[1:]}; expected {self.shape}")
        if high > low:
            require_losses(block, first=low)
        block.flags.writeable = False
        return block

    def _numbers(self, low: int, high: int) -> Floats:
        numbers = np.empty((high - low, *self.shape))
        if prod(self.shape) > COMPILED_NUMBERS:
            for k in range(low, high):
                round_rng(self.seed, self.stream, k).random(out=numbers[k - low])
        else:
            key = np.uint64(_hashed(self.seed, self.stream))
            kernels.philox.fill_uniform(key, low, numbers.reshape(high - low, prod(self.shape)))
        return numbers


def round_rng(seed: int, stream: str, k: int) -> np.random.Generator:
    """A fresh generator for round `k`: Philox under the key `(hash of seed and stream, k)`."""
    return keyed_rng(_hashed(seed, stream), k)


@lru_cache
def _hashed(seed: int, stream: str) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=tuple(stream.encode())).generate_state(1, np.uint64)[0])


def require_losses(block: Floats, first: int = 0, name: str = "") -> None:
    """Refuse the first entry of `[k, h, s, a]` that is not in [0, 1]; the block begins with round `first`."""
    if block.min() >= 0.0 and block.max() <= 1.0:  # false with a NaN as well
        return
    bad = ~((block >= 0.0) & (block <= 1.0))
    k, *place = np.unravel_index(int(np.argmax(bad)), bad.shape)
    label = name or f"round {first + k}: loss"
    raise InvalidInput(f"{label}{located('hsa', place)} = {float(block[(k, *place)])!r}; {RULE}")


def _require_round(k: object, rounds: int) -> None:
    if not isinstance(k, int | np.integer) or not 0 <= k < rounds:
        raise InvalidInput(f"round {k!r} was asked for; rounds are 0 .. {rounds - 1}; several at once: batch")


def require_block(low: int, high: int, rounds: int) -> None:
    """Refuse a block of rounds that is not there."""
    if not 0 <= low <= high <= rounds:
        raise InvalidInput(f"rounds {low} .. {high} (not included) were asked for; there are {rounds}")
