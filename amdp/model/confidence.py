"""Boxes of transition kernels that data have not ruled out, and the Bernstein radii that shape them.

The paper keeps, for each row, `|P(y) - mean(y)| <= radius(y)` and intersects with what was known before
(its equations for the confidence set; the radius is that of Jin et al. 2022).
"""

from dataclasses import dataclass, fields
from functools import cached_property
from math import log
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp import kernels
from amdp.arrays import Actions, Bools, Floats, Policies, floats, located, refuse, require_index, require_room
from amdp.errors import EmptyConfidenceSet, InvalidInput
from amdp.kernels.layout import EMPTY_TOLERANCE
from amdp.kernels.rows import IntervalRows, Narrowing
from amdp.model.dynamics import CompiledDynamics, ConfidenceSet, by_row, read_only, require_moves, require_places
from amdp.model.segments import Pairs, Segment, Shape
from amdp.model.transitions import Kernel, SingleKernel


@dataclass(frozen=True)
class Radius:
    """`scale * (spread * sqrt(mean * log_term / m) + offset * log_term / m)`, `m = max(1, visits - discount)`.

    The published constants are wide: with `delta = 1/K` the offset alone exceeds 1 until a row has about
    `offset * log_term` visits. A `scale` below 1 gives up the proof and makes small experiments informative.
    """

    log_term: float
    spread: float
    offset: float
    discount: int = 0
    scale: float = 1.0

    @classmethod
    def paper(cls, shape: Shape, rounds: int, delta: float | None = None, scale: float = 1.0) -> Self:
        """The paper's radius (Jin et al. 2022): `ln(10 HSAK / delta)`, constants 4 and 10; `delta = 1/K`."""
        return cls(_log_term(10.0, shape, rounds, delta), 4.0, 10.0, 0, scale)

    @classmethod
    def jin_2020(cls, shape: Shape, rounds: int, delta: float | None = None, scale: float = 1.0) -> Self:
        """UOB-REPS (Jin, Jin, Luo, Sra, Yu 2020): `ln(HSAK / delta)`, constants 2 and 14/3, visits less one."""
        return cls(_log_term(1.0, shape, rounds, delta), 2.0, 14.0 / 3.0, 1, scale)

    @classmethod
    def luo_2021(cls, shape: Shape, rounds: int, delta: float | None = None, scale: float = 1.0) -> Self:
        """Dilated bonuses (Luo, Wei, Lee 2021): `ln(HSAK / delta)`, constants 4 and 28/3."""
        return cls(_log_term(1.0, shape, rounds, delta), 4.0, 28.0 / 3.0, 0, scale)

    @property
    def numbers(self) -> Floats:
        """What compiled code narrows a box by."""
        numbers = self.log_term, self.spread, self.offset, self.discount, self.scale
        return np.array(numbers, dtype=np.float64)

    def __call__(self, mean: Floats, visits: Floats) -> Floats:
        """Half-widths for the means `[..., y]` of rows that were visited `visits` `[..., 1]` times."""
        effective = np.maximum(1.0, visits - self.discount)
        wide = self.spread * np.sqrt(mean * self.log_term / effective) + self.offset * self.log_term / effective
        return self.scale * wide


@dataclass(frozen=True, eq=False, repr=False)
class BernsteinBox(CompiledDynamics, ConfidenceSet):
    """All kernels with `lower <= p <= upper`, `[h, s, a, y]`; the rows of the last step are never read.

    With a `radius` the box narrows as segments are seen; without one it stays as it is.
    """

    lower: Floats
    upper: Floats
    visits: NDArray[np.int64] | None = None  # [h, s, a, y], transitions seen so far
    radius: Radius | None = None
    fallbacks: int = 0  # rows whose intersection was empty and that were started again from the newest interval

    def __post_init__(self) -> None:
        lower, upper = floats("lower", self.lower, "hsay"), floats("upper", self.upper, "hsay")
        if lower.shape != upper.shape or lower.shape[1] != lower.shape[3]:
            raise InvalidInput(f"lower {lower.shape} and upper {upper.shape} must share one shape [h, s, a, y], y = s")
        _require_room(lower.shape)
        for name, bound in (("lower", lower), ("upper", upper)):
            refuse(name, bound, ~((bound >= 0) & (bound <= 1)), "hsay", "must be between 0 and 1")
        _require_rows(lower[:-1], upper[:-1])
        visits = np.zeros(lower.shape, np.int64) if self.visits is None else np.asarray(self.visits, np.int64)
        if visits.shape != lower.shape:
            raise InvalidInput(f"visits has shape {visits.shape}; the bounds have {lower.shape}")
        object.__setattr__(self, "lower", read_only(lower))
        object.__setattr__(self, "upper", read_only(upper))
        object.__setattr__(self, "visits", visits)

    @classmethod
    def vacuous(cls, shape: Shape, radius: Radius | None = None) -> Self:
        """Every kernel: what is known before the first episode."""
        size = (*shape, shape[1])
        _require_room(size)
        return cls(np.zeros(size), np.ones(size), None, radius)

    @classmethod
    def exactly(cls, kernel: SingleKernel) -> Self:
        """The box that holds one kernel only; rows that sum to 1 but for rounding are divided by their sum.

        A row of zeros, which cannot be reached, becomes the whole simplex.
        """
        p = kernel.dense().p
        distinct = p[:1] if kernel.is_homogeneous else p
        sums = distinct.sum(axis=-1, keepdims=True)
        rounded = (np.abs(sums - 1.0) > EMPTY_TOLERANCE) & (sums > 0.0)
        rows = distinct / np.where(rounded, sums, 1.0)
        upper = np.where(sums == 0.0, 1.0, rows)
        return cls(np.broadcast_to(rows, p.shape), np.broadcast_to(upper, p.shape))

    @classmethod
    def from_counts(cls, visits: ArrayLike, radius: Radius) -> Self:
        """The box after the transitions `visits[h, s, a, y]` were seen all at once."""
        _require_room(np.shape(visits))
        counts = np.asarray(visits, np.int64)
        lower, upper = _interval(counts, radius)
        return cls(lower, upper, counts, radius)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.fallbacks} fallbacks)"

    @property
    def shape(self) -> Shape:
        return self.lower.shape[:3]

    @cached_property
    def rows(self) -> IntervalRows:
        steps, states, actions = self.shape
        by_next = steps, states, states * actions
        rows = IntervalRows(np.empty(by_next), np.empty(by_next), np.empty((steps, states * actions)))
        kernels.boxes.fill_rows(*self._bounds(), rows)
        return rows

    @property
    def leader_rows(self) -> IntervalRows:
        return self.rows

    @property
    def meeting_rows(self) -> IntervalRows:
        return self.rows

    def meets(
        self, actions: Actions, initial: int, segment: Segment, steps: NDArray[np.int64], uniforms: Floats
    ) -> Bools:
        return self._meeting.meets(self, actions, initial, segment, steps, uniforms)

    def meets_all(self, actions: Actions, initial: int, segment: Segment, uniforms: Floats) -> Bools:
        return self._meeting.meets_all(self, actions, initial, segment, uniforms)

    @property
    def _meeting(self) -> type[CompiledDynamics | ConfidenceSet]:
        """By whose rule trials meet pairs: compiled, unless a subclass has visit chances of its own."""
        usual = type(self).greatest_visits is BernsteinBox.greatest_visits
        return CompiledDynamics if usual else ConfidenceSet

    def contains(self, kernel: SingleKernel, tolerance: float = 1e-12) -> bool:
        """Whether `kernel` lies in the box, at every step that has a successor."""
        if kernel.shape != self.shape:
            raise InvalidInput(f"the kernel has shape {kernel.shape}; the box has {self.shape}")
        p = kernel.dense().p
        below, above = p[:-1] < self.lower[:-1] - tolerance, p[:-1] > self.upper[:-1] + tolerance
        return not bool(below.any() or above.any())

    def optimistic_kernel(self, values: Floats) -> Kernel:
        """The kernel of the box that makes `values` `[h, s]` of the next step least in expectation."""
        p = np.array(self.lower)
        for h in range(len(p) - 1):
            order = np.argsort(values[h + 1], kind="stable")
            room = (self.upper[h] - self.lower[h])[..., order]
            spent_before = np.cumsum(room, axis=-1) - room
            budget = 1.0 - self.lower[h].sum(axis=-1, keepdims=True)
            p[h][..., order] += np.clip(budget - spent_before, 0.0, room)
        p[-1] = np.eye(p.shape[1])[:, None, :]
        return Kernel(p)

    def greatest_visits(self, policies: Policies, initial: int, pairs: Pairs) -> Floats:
        """Upper occupancy bounds `[n, m]` (Comp-UOB): the most that any kernel in the box allows."""
        return self._extreme_visits(policies, initial, pairs, -1.0)

    def least_visits(self, policies: Policies, initial: int, pairs: Pairs) -> Floats:
        """Lower occupancy bounds `[n, m]`: the least that any kernel in the box allows."""
        return self._extreme_visits(policies, initial, pairs, 1.0)

    def narrow(self, segment: Segment) -> Self:
        """The box after one more segment: rows that it visited are intersected with their new interval.

        An empty intersection (it happens only if the true kernel was excluded, with chance at most `4 delta`)
        starts again from the newest interval alone and is counted in `fallbacks`.
        """
        if self.radius is None or len(segment.states) < 2:
            return self
        if not self.is_narrowed_by_code:
            return self._intersected(segment, self.radius)
        require_moves(segment, self.shape)
        box = self.narrowing()
        kernels.boxes.narrow(box, segment.start, segment.states, segment.actions)
        return self.narrowed(box)

    @property
    def is_narrowed_by_code(self) -> bool:
        """Whether compiled code knows the rule of the radius; one of somebody's own is asked."""
        return type(self.radius) is Radius

    def narrowing(self) -> Narrowing:
        """A copy that compiled code narrows in place."""
        assert self.radius is not None
        assert self.visits is not None
        rows = IntervalRows(*(part.copy() for part in self.rows))
        return Narrowing(self.visits.copy(), *self._bounds(), rows, np.array([self.fallbacks]), self.radius.numbers)

    def narrowed(self, box: Narrowing) -> Self:
        """The box that compiled code made of such a copy."""
        changes = {"visits": box.visits, "fallbacks": int(box.fallbacks[0])}
        narrower = self._changed(box.lower, box.upper, **changes)
        if type(self) is BernsteinBox:
            vars(narrower)["rows"] = box.rows
        return narrower

    def _intersected(self, segment: Segment, radius: Radius) -> Self:
        """The same in numpy, for a radius of somebody's own."""
        visits, rows = self.counted(segment)
        newest_lower, newest_upper = _interval(by_row(visits)[rows], radius)
        lower, upper = self._bounds()
        row_lower = np.maximum(by_row(lower)[rows], newest_lower)
        row_upper = np.minimum(by_row(upper)[rows], newest_upper)
        empty = _is_empty(row_lower, row_upper)
        row_lower[empty], row_upper[empty] = newest_lower[empty], newest_upper[empty]
        by_row(lower)[rows], by_row(upper)[rows] = row_lower, row_upper
        return self._changed(lower, upper, visits=visits, fallbacks=self.fallbacks + int(np.count_nonzero(empty)))

    def _bounds(self) -> tuple[Floats, Floats]:
        """Copies of both bounds, as compiled code reads them."""
        return np.array(self.lower, order="C"), np.array(self.upper, order="C")

    def _changed(self, lower: Floats, upper: Floats, **changes: Any) -> Self:
        """The same box but for changes that need no check: to check all rows takes longer than to narrow a few."""
        box = object.__new__(type(self))
        same = {each.name: getattr(self, each.name) for each in fields(self)}
        vars(box).update(same | changes, lower=read_only(lower), upper=read_only(upper))
        return box

    def __reduce__(self) -> tuple[Any, ...]:
        return BernsteinBox, (self.lower, self.upper, self.visits, self.radius, self.fallbacks)

    def _extreme_visits(self, policies: Policies, initial: int, pairs: Pairs, sign: float) -> Floats:
        require_places("pairs", "hsa", (pairs.steps, pairs.states, pairs.actions), self.shape)
        require_index("initial", initial, self.shape[1])
        played = np.ascontiguousarray(floats("policies", policies, "nhsa"))
        if played.shape[1:] != self.shape:
            raise InvalidInput(f"policies has shape {played.shape}; the box asks for (n, *{self.shape})")
        out = np.empty((len(policies), len(pairs.steps)))
        kernels.policies.extreme_visits(self.rows, played, initial, pairs.steps, pairs.states, pairs.actions, sign, out)
        return out


def _require_room(shape: tuple[int, ...]) -> None:
    """Refuse a box too large to be written out: two bounds, as given and as the sweeps read them, and the visits."""
    remedy = "confidence sets have no sparse form: learn fewer states, or play a known SparseKernel"
    require_room("a confidence set", shape, 5, remedy)


def _log_term(factor: float, shape: Shape, rounds: int, delta: float | None) -> float:
    steps, states, actions = shape
    if rounds < 1:
        raise InvalidInput(f"rounds = {rounds}; it must be at least 1")
    chance = 1.0 / rounds if delta is None else delta
    if not 0.0 < chance <= 1.0:
        raise InvalidInput(f"{chance}; it must be above 0 and at most 1", "delta")
    return log(factor * steps * states * actions * rounds / chance)


def _interval(counts: NDArray[np.int64], radius: Radius) -> tuple[Floats, Floats]:
    """Bounds around the empirical means; a row that was never visited is the whole simplex."""
    total = counts.sum(axis=-1, keepdims=True)
    mean = counts / np.maximum(1, total)
    half_width = np.where(total > 0, radius(mean, total.astype(np.float64)), 1.0)
    return np.maximum(0.0, mean - half_width), np.minimum(1.0, mean + half_width)


def _is_empty(lower: Floats, upper: Floats) -> Bools:
    crossed = (lower > upper).any(axis=-1)
    too_much = lower.sum(axis=-1) > 1.0 + EMPTY_TOLERANCE
    too_little = upper.sum(axis=-1) < 1.0 - EMPTY_TOLERANCE
    return np.asarray(crossed | too_much | too_little)


def _require_rows(lower: Floats, upper: Floats) -> None:
    refuse("lower", lower, lower > upper, "hsay", "is above its upper bound")
    empty = _is_empty(lower, upper)
    if empty.any():
        place = np.unravel_index(int(np.argmax(empty)), empty.shape)
        raise EmptyConfidenceSet(
            f"no distribution fits at {located('hsa', place)}: the lower bounds sum to {lower[place].sum():.12g}, "
            f"the upper bounds to {upper[place].sum():.12g}; 1 must lie between"
        )
