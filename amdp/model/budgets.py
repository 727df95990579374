"""Budgets: known limits on what a policy may use in expectation, linear in its occupancy measure.

A policy with the occupancy measure `q` keeps budget `i` if `sum_hsa q[h,s,a] usage[i,h,s,a] <= limits[i]`. With prices
`y[i] >= 0` for a unit of each budget, every policy that keeps them has

    <q, c>  >=  <q, c + y usage> - <y, limits>  >=  (the least cost of any policy under c + y usage) - <y, limits>,

so that one sweep of backward induction proves a lower bound, whoever found the prices (Lagrangian duality).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import Costs, Floats, Occupancy, floats, require_finite
from amdp.errors import InvalidInput
from amdp.model.segments import Shape

KEPT = 1e-9  # a budget counts as kept if it is exceeded by at most so much, relative to its size


@dataclass(frozen=True, eq=False)
class Budgets:
    """What a visit of each pair uses of each budget, of any sign, and how much a policy may use in expectation."""

    usage: Floats  # [i, h, s, a], or [i, s, a] for the same in each step
    limits: Floats  # [i]
    names: tuple[str, ...] = ()  # [i], for messages and reports; "budget 0", ... if none are given

    def __post_init__(self) -> None:
        axes = "isa" if np.ndim(self.usage) == 3 else "ihsa"
        usage, limits = floats("usage", self.usage, axes), floats("limits", np.atleast_1d(self.limits), "i")
        require_finite("usage", usage, axes)
        require_finite("limits", limits, "i")
        if len(usage) != len(limits):
            raise InvalidInput(f"usage has {len(usage)} budgets and limits has {len(limits)}; give one limit for each")
        names = _names(self.names, len(limits))
        for name, value in (("usage", usage), ("limits", limits), ("names", names)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, **budgets: tuple[ArrayLike, float]) -> Self:
        """Budgets by name, each with its usage `[s, a]` or `[h, s, a]`, all of the same kind, and its limit."""
        usage, limits = zip(*budgets.values(), strict=True) if budgets else ((), ())
        return cls(np.stack([np.asarray(each) for each in usage]), np.array(limits), tuple(budgets))

    def __len__(self) -> int:
        return len(self.limits)

    def __repr__(self) -> str:
        limits = (f"{name} <= {limit:g}" for name, limit in zip(self.names, self.limits, strict=True))
        return f"Budgets({', '.join(limits)})"

    def over(self, shape: Shape) -> Self:
        """The same budgets with a usage for each step, or `InvalidInput` if they do not fit a world of this shape."""
        expected = shape if self.usage.ndim == 4 else shape[1:]
        if self.usage.shape[1:] != expected:
            raise InvalidInput(f"usage has shape {self.usage.shape}; the world asks for {(len(self), *expected)}")
        if self.usage.ndim == 4:
            return self
        steps, states, actions = shape
        in_each_step = np.broadcast_to(self.usage[:, None], (len(self), steps, states, actions))
        return replace(self, usage=in_each_step)

    @cached_property
    def sizes(self) -> Floats:
        """What excesses are relative to, `[i]`: the limit or the largest usage, whichever is larger."""
        largest = np.maximum(np.abs(self.limits), np.abs(self.usage).reshape(len(self), -1).max(axis=1))
        return np.where(largest > 0.0, largest, 1.0)

    def use(self, measures: Occupancy) -> Floats:
        """The expected use `[n, i]` of occupancy measures `[n, h, s, a]`."""
        return np.tensordot(measures, self.usage, axes=([1, 2, 3], [1, 2, 3]))

    def excess(self, use: Floats) -> Floats:
        """By how much uses `[n, i]` exceed the limits at the worst budget, relative to its size, `[n]`; at least 0."""
        over: Floats = np.maximum(0.0, (use - self.limits) / self.sizes).max(axis=1)
        return over

    def priced(self, costs: Costs, prices: Floats) -> Costs:
        """The costs `[n, h, s, a]` with what is used paid at the prices `[n, i]`."""
        result: Costs = costs + np.tensordot(prices, self.usage, axes=1)
        return result


def _names(given: Sequence[str], count: int) -> tuple[str, ...]:
    if isinstance(given, str) or not all(map(_is_text, given)):
        raise InvalidInput(f"{given!r}; give a text for each budget", "names")
    names = tuple(given) or tuple(f"budget {i}" for i in range(count))
    if len(names) != count or len(set(names)) != count:
        raise InvalidInput(f"{names}; there are {count} budgets, and each has a name of its own", "names")
    return names


def _is_text(name: object) -> bool:
    return isinstance(name, str) and name != ""
