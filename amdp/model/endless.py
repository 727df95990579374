"""Domains without an end: policies that choose by state alone, for ever, under costs `[s, a]` that never change.

Among all policies, whatever they remember, one that chooses by state alone is then among the best; so nothing is lost.
The two domains differ in what a policy pays in all: a discounted sum, or an average over time.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from amdp.arrays import Floats, floats, located, require_distributions, require_index
from amdp.errors import InvalidInput
from amdp.model.transitions import SingleKernel

Start = int | Floats | list[float] | tuple[float, ...]  # a state, or a distribution [s]


class EndlessPolicies:
    """What both domains share: a homogeneous kernel, whose number of steps is not used, and a start."""

    cost_axes: ClassVar[tuple[str, ...]] = ("sa",)
    dynamics: SingleKernel
    initial: Start

    @property
    def shape(self) -> tuple[int, int]:
        """States, actions."""
        return self.dynamics.shape[1:]

    @property
    def cost_shape(self) -> tuple[int, int]:
        """Of one cost array `[s, a]`."""
        return self.shape

    @cached_property
    def start(self) -> Floats:
        """The chance `[s]` of each state to be the first."""
        states = self.shape[0]
        if isinstance(self.initial, int | np.integer):
            require_index("initial", int(self.initial), states)
            point = np.zeros(states)
            point[self.initial] = 1.0
            return point
        law = floats("initial", self.initial, "s")
        if len(law) != states:
            raise InvalidInput(f"initial has {len(law)} entries; the kernel has {states} states")
        require_distributions("initial", law[None], "ns")
        if not law.any():
            raise InvalidInput("initial is all zero; it must sum to 1")
        return law

    def _require_endless(self) -> None:
        """Refuse what cannot be walked on for ever."""
        kernel: object = self.dynamics
        if not isinstance(kernel, SingleKernel):
            wrap = "give a homogeneous kernel: Kernel.homogeneous(rows, 1)"
            raise InvalidInput(f"{type(kernel).__name__} is not a kernel; {wrap}", "dynamics")
        if not kernel.is_homogeneous:
            raise InvalidInput("an endless horizon needs a homogeneous kernel: see Kernel.homogeneous")
        empty = kernel.empty_rows(0)
        if empty.any():
            place = np.unravel_index(int(np.argmax(empty)), empty.shape)
            raise InvalidInput(f"p{located('sa', place)} is all zero; without an end every row must sum to 1")
        _ = self.start  # refuses what is no state and no distribution


@dataclass(frozen=True, eq=False)
class DiscountedPolicies(EndlessPolicies):
    """All stationary policies; a policy pays `sum_t discount^t c(s_t, a_t)` in expectation."""

    dynamics: SingleKernel
    discount: float
    initial: Start = 0

    def __post_init__(self) -> None:
        self._require_endless()
        discount: object = self.discount
        if not isinstance(discount, int | float) or not 0.0 <= discount < 1.0:
            remedy = "; without a discount see AverageCostPolicies" if discount == 1 else ""
            raise InvalidInput(f"{discount!r}; it must be at least 0 and below 1{remedy}", "discount")


@dataclass(frozen=True, eq=False)
class AverageCostPolicies(EndlessPolicies):
    """All stationary policies; a policy pays its average cost a step, `lim (1/T) sum_{t<T} E c(s_t, a_t)`."""

    dynamics: SingleKernel
    initial: Start = 0

    def __post_init__(self) -> None:
        self._require_endless()
