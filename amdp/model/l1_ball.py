"""Balls of transition kernels in L1 distance: the confidence sets of UC-O-REPS (Rosenberg and Mansour 2019).

In plain numpy, without compiled sweeps: they are here for that algorithm, and for small worlds.
"""

from dataclasses import dataclass, replace
from math import log
from typing import Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Actions, Costs, Floats, Policies, floats, refuse, require_distributions, require_room
from amdp.errors import InvalidInput
from amdp.model.dynamics import ConfidenceSet, Sweep, by_row, read_only, require_places
from amdp.model.segments import Pairs, Segment, Shape
from amdp.model.transitions import SingleKernel

WHOLE_SIMPLEX = 2.0  # no two distributions are further apart
AT_ONCE = 2**20  # chances of rows that are written out together


@dataclass(frozen=True, eq=False, repr=False)
class L1Ball(ConfidenceSet):
    """All kernels with `sum_y |p - center| <= radius` in every row; the rows of the last step are never read.

    With a `log_term` the ball moves and shrinks as segments are seen: `center` is the empirical mean of a row and
    `radius` is `sqrt(2 S log_term / N)` after `N` visits [from memory]. Without one it stays as it is.
    """

    center: Floats  # [h, s, a, y]
    radius: Floats  # [h, s, a]
    visits: NDArray[np.int64] | None = None  # [h, s, a, y], transitions seen so far
    log_term: float | None = None

    def __post_init__(self) -> None:
        center, radius = floats("center", self.center, "hsay"), floats("radius", self.radius, "hsa")
        if center.shape[:3] != radius.shape or center.shape[1] != center.shape[3]:
            raise InvalidInput(f"center {center.shape} and radius {radius.shape} must be [h, s, a, y] and [h, s, a]")
        _require_room(center.shape)
        require_distributions("center", center[:-1], "hsay")
        refuse("radius", radius, ~((radius >= 0) & (radius < np.inf)), "hsa", "must be finite and not negative")
        visits = np.zeros(center.shape, np.int64) if self.visits is None else np.asarray(self.visits, np.int64)
        object.__setattr__(self, "center", read_only(center))
        object.__setattr__(self, "radius", read_only(radius))
        object.__setattr__(self, "visits", visits)

    @classmethod
    def vacuous(cls, shape: Shape, rounds: int, delta: float | None = None) -> Self:
        """Every kernel, with `log_term = ln(KHSA / delta)` and `delta = 1/K`: what is known at first."""
        steps, states, actions = shape
        chance = 1.0 / rounds if delta is None else delta
        if rounds < 1 or not 0.0 < chance <= 1.0:
            raise InvalidInput(f"rounds = {rounds}, delta = {chance}; at least 1, and above 0 and at most 1")
        _require_room((*shape, states))
        log_term = log(rounds * steps * states * actions / chance)
        return cls(np.full((*shape, states), 1.0 / states), np.full(shape, WHOLE_SIMPLEX), None, log_term)

    @classmethod
    def exactly(cls, kernel: SingleKernel) -> Self:
        """The ball that holds one kernel only."""
        return cls(kernel.dense().p, np.zeros(kernel.shape))

    @property
    def shape(self) -> Shape:
        return self.center.shape[:3]

    def contains(self, kernel: SingleKernel, tolerance: float = 1e-12) -> bool:
        """Whether `kernel` lies in the ball, at every step that has a successor."""
        away = np.abs(kernel.dense().p - self.center).sum(axis=-1)
        return not bool((away[:-1] > self.radius[:-1] + tolerance).any())

    def least_expectation(self, h: int, values: Floats) -> Floats:
        """Least expected value `[n, s, a]`: half the radius moves to the best state, away from the worst ones."""
        parts = np.array_split(values, 1 + len(values) * self.center[h].size // AT_ONCE)
        return np.concatenate([self._least(h, part) for part in parts])

    def cheapest(self, costs: Costs) -> Sweep:
        free = np.full(costs.shape[:3], -1, dtype=np.int32)
        return self.follow(costs, free, np.zeros(len(costs)))

    def follow(self, costs: Costs, wanted: Actions, slack: Floats) -> Sweep:
        actions = np.empty(costs.shape[:3], dtype=np.int32)
        values, shortfall = np.empty(costs.shape[:3]), np.zeros(len(costs))
        later = np.zeros_like(costs[:, 0])
        for h in reversed(range(self.shape[0])):
            now = costs[:, h] + later
            least = now.min(axis=-1)
            first = (now <= (least + kernels.sweeps.TIE_TOLERANCE * np.abs(least))[..., None]).argmax(axis=-1)
            asked = np.where(wanted[:, h] < 0, first, wanted[:, h])
            kept = _at(now, asked) - _at(now, first) > slack[:, None]
            actions[:, h] = np.where(kept, asked, first)
            values[:, h] = _at(now, actions[:, h])
            shortfall += (_at(now, first) - values[:, h]).min(axis=-1)
            if h > 0:
                later = self.least_expectation(h - 1, values[:, h])
        return Sweep(actions, values, shortfall)

    def greatest_visits(self, policies: Policies, initial: int, pairs: Pairs) -> Floats:
        require_places("pairs", "hsa", (pairs.steps, pairs.states, pairs.actions), self.shape)
        out = np.empty((len(policies), len(pairs.steps)))
        for m, (step, state, action) in enumerate(zip(pairs.steps, pairs.states, pairs.actions, strict=True)):
            reach = np.zeros((len(policies), self.shape[1]))
            reach[:, state] = 1.0
            for h in reversed(range(step)):
                reach = -np.einsum("nsa,nsa->ns", policies[:, h], self.least_expectation(h, -reach))
            out[:, m] = policies[:, step, state, action] * reach[:, initial]
        return out

    def narrow(self, segment: Segment) -> Self:
        """The ball around the counts after one more segment."""
        if self.log_term is None or len(segment.states) < 2:
            return self
        visits, rows = self.counted(segment)
        counts = by_row(visits)[rows]
        total = counts.sum(axis=-1)
        center, radius = self.center.copy(), self.radius.copy()
        by_row(center)[rows] = counts / total[:, None]
        radius.reshape(-1)[rows] = np.sqrt(2.0 * self.shape[1] * self.log_term / total)
        return replace(self, center=center, radius=radius, visits=visits)

    def _least(self, h: int, values: Floats) -> Floats:
        order = np.argsort(values, axis=1, kind="stable")  # [n, y], the best state first
        rows = np.moveaxis(self.center[h][..., order], 2, 0).copy()  # [n, s, a, y]
        moved = np.minimum(self.radius[h] / 2.0, 1.0 - rows[..., 0])[..., None]
        rows[..., :1] += moved
        worst_first = rows[..., :0:-1]
        taken_before = np.cumsum(worst_first, axis=-1) - worst_first
        worst_first -= np.clip(moved - taken_before, 0.0, worst_first)
        least: Floats = np.einsum("nsay,ny->nsa", rows, np.take_along_axis(values, order, axis=1))
        return least


def _require_room(shape: tuple[int, ...]) -> None:
    """Refuse a ball too large to be written out: its center and the visits."""
    require_room("a confidence set", shape, 2, "confidence sets have no sparse form: learn fewer states")


def _at(values: Floats, actions: NDArray[np.integer]) -> Floats:
    """`values` `[n, s, a]` of the chosen actions, `[n, s]`."""
    return np.take_along_axis(values, actions[..., None].astype(np.int64), axis=-1)[..., 0]
