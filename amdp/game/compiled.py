"""Episodes, or a stream of steps, played block by block in machine code, for learners that have a compiled form."""

import json
from collections.abc import Callable, Iterator, Mapping
from math import prod
from time import perf_counter, thread_time
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.blocks import BlockForm, BlockResult
from amdp.algorithms.estimators.feedback import FullInformation
from amdp.arrays import Floats
from amdp.game.blocks import BLOCK_NUMBERS, Block, CompiledBlock, StepBlock, block_size
from amdp.game.delays import Delays
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Timing
from amdp.game.seeding import Streams
from amdp.kernels import blocks

Ints = NDArray[np.int64]


class Arrivals(NamedTuple):
    """When feedback comes: rounds by their arrival, and the slots in which they wait."""

    slots: Ints  # [K], -1: never arrives
    rounds: Ints
    starts: Ints  # [K + 1]
    n_slots: int

    @classmethod
    def of(cls, delays: Delays) -> "Arrivals":
        rounds, starts = delays.by_arrival
        slots = np.empty(len(delays), np.int64)
        arrives = delays.values < np.arange(len(delays), 0, -1)
        return cls(slots, rounds, starts, int(kernels.episodes.assign_slots(arrives, rounds, starts, slots)))


class CompiledGame:
    """Plays `total` rounds from the first on, block by block; its state can be kept and taken up again."""

    made: ClassVar[type[CompiledBlock]] = CompiledBlock

    def __init__(
        self,
        game: ArenaGame,
        form: BlockForm[Any],
        distribution: Any,
        streams: Streams,
        total: int,
        tick: Callable[[int], None] | None = None,
    ) -> None:
        self._tick = tick
        self._game, self._form, self._distribution, self._streams = game, form, distribution, streams
        self._total, self._first, self._begin = total, 0, game.arena.initial
        self._arrivals = None if game.delays is None else Arrivals.of(game.delays)
        slots = 1 if self._arrivals is None else self._arrivals.n_slots
        self._space = form.space(slots, distribution.domain)

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        first = self._first
        if first >= self._total:
            raise StopIteration
        marks = [(perf_counter(), thread_time())]
        tables = self._game.losses.batch(first, first + self._size(first))
        block = _block(self._game, self._arrivals, first, tables, self._begin, self._streams.arena)
        self._distribution, result = self._form.play(self._distribution, block, self._space, self._streams.learner)
        self._first += len(tables)
        self._begin = self._next_begin(result)
        if self._tick:
            self._tick(self._first)
        marks.append((perf_counter(), thread_time()))
        clock, cpu = (after - before for before, after in zip(*marks, strict=True))
        parts = _parts(result.played.spent, clock)
        shares = (cpu / clock if clock > 0.0 else 1.0) * parts
        return self.made(first, result, tables, np.diff(block.starts), Timing(*parts), Timing(*shares))

    def _next_begin(self, result: BlockResult) -> int:
        """The state in which the next block begins."""
        return self._begin

    def _size(self, first: int) -> int:
        """Rounds of the next block: fewer where full information brings many tables of earlier rounds."""
        shape = self._game.losses.shape
        size = min(block_size(shape), self._total - first)
        if self._arrivals is None or not issubclass(self._game.feedback, FullInformation):
            return size
        starts = self._arrivals.starts[first : first + size + 1]
        room = int(np.searchsorted(starts - starts[0], max(1, BLOCK_NUMBERS // prod(shape)), side="right")) - 1
        return max(1, min(size, room))

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `resume` needs: how far the game is, what waits, the random numbers, and the learner."""
        state = {"first": np.array(self._first), "begin": np.array(self._begin)}
        state |= {f"space {i}": array.copy() for i, array in enumerate(_arrays(self._space))}
        state |= {
            f"luck {name}": np.array(json.dumps(rng.bit_generator.state)) for name, rng in vars(self._streams).items()
        }
        return state | {f"learner {name}": value for name, value in self._form.save(self._distribution).items()}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from where another game of the same learner and seed was."""
        self._first, self._begin = int(state["first"]), int(state["begin"])
        for i, array in enumerate(_arrays(self._space)):
            array[...] = state[f"space {i}"]
        for name, rng in vars(self._streams).items():
            rng.bit_generator.state = json.loads(str(state[f"luck {name}"]))
        saved = {name.removeprefix("learner "): value for name, value in state.items() if name.startswith("learner ")}
        self._distribution = self._form.load(self._distribution, saved)


class CompiledStream(CompiledGame):
    """The same for one stream of steps: a block begins where the last one ended."""

    made = StepBlock

    def _next_begin(self, result: BlockResult) -> int:
        return result.reached


def _arrays(space: Any) -> list[NDArray[Any]]:
    """The arrays that a learner's memory is made of."""
    return [space] if isinstance(space, np.ndarray) else [array for part in space for array in _arrays(part)]


def _block(
    game: ArenaGame, arrivals: Arrivals | None, first: int, tables: Floats, begin: int, luck: np.random.Generator
) -> blocks.Block:
    kernel, b = game.arena.kernel, len(tables)
    arena = kernel.paths, begin, luck.random((b, len(tables[0]), 2))
    if arrivals is None:
        every = np.arange(b + 1)
        return blocks.Block(*arena, _handed_over(tables), 0 * every[:b], every, 0 * every[:b], every[:b])
    starts = arrivals.starts[first : first + b + 1]
    rounds = arrivals.rounds[starts[0] : starts[-1]]
    which = rounds - first
    if issubclass(game.feedback, FullInformation) and (which < 0).any():  # others keep the losses that they met
        tables = np.concatenate([tables, [game.table(int(k)) for k in rounds[which < 0]]])
        which = np.where(which < 0, b - 1 + np.cumsum(which < 0), which)
    slots = arrivals.slots[first : first + b]
    return blocks.Block(*arena, _handed_over(tables), slots, starts - starts[0], arrivals.slots[rounds], which)


def _handed_over(tables: Floats) -> Floats:
    """Read-only in one piece, however they were put together: kernels are compiled for that alone."""
    laid = np.ascontiguousarray(tables).view()
    laid.flags.writeable = False
    return laid


def _parts(nanoseconds: Ints, seconds: float) -> Floats:
    """Seconds by part; what was not counted inside made losses and luck, and belongs to the arena."""
    parts: Floats = np.multiply(nanoseconds, 1e-9, dtype=np.float64)
    parts[blocks.ARENA] += max(0.0, seconds - parts.sum())
    return parts
