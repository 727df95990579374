"""Episodes played block by block in machine code, for learners that have a compiled form."""

from collections.abc import Iterator
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.blocks import BlockForm
from amdp.algorithms.estimators.feedback import FullInformation
from amdp.arrays import Floats
from amdp.game.blocks import Block, CompiledBlock, block_size
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


def play_compiled(
    game: ArenaGame, form: BlockForm[Any], distribution: Any, streams: Streams, total: int
) -> Iterator[Block]:
    """Play `total` rounds on from a distribution."""
    arrivals = None if game.delays is None else Arrivals.of(game.delays)
    space = form.space(1 if arrivals is None else arrivals.n_slots, distribution.domain)
    size = block_size(game.losses.shape)
    for first in range(0, total, size):
        marks = [(perf_counter(), thread_time())]
        tables = game.losses.batch(first, min(first + size, total))
        block = _block(game, arrivals, first, tables, streams.arena)
        distribution, result = form.play(distribution, block, space, streams.learner)
        marks.append((perf_counter(), thread_time()))
        clock, cpu = (after - before for before, after in zip(*marks, strict=True))
        parts = _parts(result.played.spent, clock)
        shares = (cpu / clock if clock > 0.0 else 1.0) * parts
        yield CompiledBlock(first, result, tables, np.diff(block.starts), Timing(*parts), Timing(*shares))


def _block(
    game: ArenaGame, arrivals: Arrivals | None, first: int, tables: Floats, luck: np.random.Generator
) -> blocks.Block:
    kernel, b = game.arena.kernel, len(tables)
    arena = kernel.paths, game.arena.initial, luck.random((b, len(tables[0]), 2))
    if arrivals is None:
        every = np.arange(b + 1)
        return blocks.Block(*arena, np.ascontiguousarray(tables), 0 * every[:b], every, 0 * every[:b], every[:b])
    starts = arrivals.starts[first : first + b + 1]
    rounds = arrivals.rounds[starts[0] : starts[-1]]
    which = rounds - first
    if issubclass(game.feedback, FullInformation) and (which < 0).any():  # others keep the losses that they met
        tables = np.concatenate([tables, [game.table(int(k)) for k in rounds[which < 0]]])
        which = np.where(which < 0, b - 1 + np.cumsum(which < 0), which)
    slots = arrivals.slots[first : first + b]
    return blocks.Block(*arena, np.ascontiguousarray(tables), slots, starts - starts[0], arrivals.slots[rounds], which)


def _parts(nanoseconds: Ints, seconds: float) -> Floats:
    """Seconds by part; what was not counted inside made losses and luck, and belongs to the arena."""
    parts: Floats = np.multiply(nanoseconds, 1e-9, dtype=np.float64)
    parts[blocks.ARENA] += max(0.0, seconds - parts.sum())
    return parts
