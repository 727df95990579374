"""Blocks of episodes as compiled games read and write them: see `amdp.kernels.episodes`, `amdp.kernels.measures`."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Actions, Bools, Floats
from amdp.kernels.rows import IntervalRows, Paths, TwoStepRows

DRAW, WEIGH, LEARN, ARENA = 0, 1, 2, 3  # parts of a round whose time is measured


class Block(NamedTuple):
    """What a block of `b` rounds is played with."""

    paths: Paths  # of the arena
    initial: int
    luck: Floats  # [b, h, 2], uniform numbers: for the action, for the move
    tables: Floats  # [b + late, h, s, a], losses of the rounds, then of earlier rounds whose feedback arrives
    slots: NDArray[np.int64]  # [b], where the feedback of each round waits; -1: it never arrives
    starts: NDArray[np.int64]  # [b + 1], where the arrivals of each round begin in the two below
    arrived: NDArray[np.int64]  # slots
    arrived_tables: NDArray[np.int64]  # indices into `tables`


class Waiting(NamedTuple):
    """Segments whose feedback has not arrived, in their slots, with the weights and the losses that were met."""

    states: NDArray[np.int64]  # [slots, h]
    actions: NDArray[np.int64]
    weights: Floats
    losses: Floats


class Played(NamedTuple):
    """What came of a block."""

    states: NDArray[np.int64]  # [b, h]
    actions: NDArray[np.int64]
    trials: NDArray[np.int64]  # [b]
    spent: NDArray[np.int64]  # [4], nanoseconds by part


class Switch(NamedTuple):
    """How a switch to a stationary policy goes, step by step: see `amdp.algorithms.streams.switching`."""

    rows: Floats  # [s, a, y]
    initial: int
    inside: int  # the first states, which can be visited again; an entrance is none of them
    parked: int
    home: Actions  # [s], the way to the parked state
    routes: Actions  # [g, r, s], with r + 1 steps left
    odds: Floats  # [g], with which an arrival is accepted
    ahead: int  # steps from the start of an attempt to the law that its target is drawn from


class PlainSearch(NamedTuple):
    """How plain resampling weighs an episode."""

    rows: Paths | IntervalRows  # by which trials meet pairs, over what the learner knows of the dynamics
    limit: int
    batch: int
    is_shared: bool


class ScaledSearch(NamedTuple):
    """How reach-scaled resampling weighs an episode over a dense kernel."""

    reach: TwoStepRows
    bounds: Floats  # [h, s]
    limits: NDArray[np.int64]  # [h, s]
    batches: NDArray[np.int64]  # [h]
    is_shared: bool


class BoxSearch(NamedTuple):
    """How reach-scaled resampling weighs an episode over a box."""

    rows: IntervalRows
    visits: NDArray[np.int64]  # [h, s, a, y]
    known: Floats  # [h, s], the bounds that stand; NaN where none does
    seen: Floats  # [h, s], visits of the state when its bound was found
    limit: int
    batch: int
    is_shared: bool


FAINTEST = -500.0  # the logarithm of the least mass of a prior; the exponential of less may be lost in a round


class Projecting(NamedTuple):
    """How a compiled game projects onto occupancy measures: the arguments of `entropy.project`."""

    rows: tuple[Any, ...]  # `FlowRows` as plain tuples
    usable: Bools  # [h, s*a, y], where mass may go over a box; empty over a kernel
    reached: Bools  # [h, s]
    initial: int
    highest: float  # logarithms of weights must be below
    tolerance: float  # the gap aimed at
    enough: float  # the gap that must be proved
    limit: int  # of Newton steps
    exact: bool  # steps by block factors, not by conjugate gradients


class Tilted(NamedTuple):
    """What a learner keeps of the measure nearest to `prior * exp(-rate * total)`; a compiled game writes to it."""

    prior: Floats  # [h, s*a, m], logarithms; m is 1 over a kernel, the number of next states over a box
    total: Floats  # [h, s, a], the sum of loss estimates that tilts the prior
    log_measure: Floats  # [h, s*a, m], the last projection
    prices: Floats  # [1, h, s], those of the last projection, to start the next one from
    gap: Floats  # [1], of the last projection
    warm: Bools  # [1], whether there are prices to start from
    stands: Bools  # [1], whether nothing changed since: the last projection is the next one too
