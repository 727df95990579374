"""Learning rates as a part of a learner's state: fixed ones, ones that fall with time, and ones that tune themselves.

The adaptive rule is that of AdaHedge (de Rooij, van Erven, Grunwald and Koolen 2014; AdaFTRL, Orabona and Pal 2015). A
leader on the sum of losses `L` has a potential `Phi_rate(L) = min_q <q, L> + (1/rate) R(q)` with `0 <= R <= range`, and
plays its minimizer `q_k`. The gap of a round with losses `l_k` is what it pays above the growth of the potential,

    delta_k = <q_k, l_k> - (Phi_rate_k(L + l_k) - Phi_rate_k(L))  >=  0,
    rate_k  = range / max(Delta_{k-1}, first),    Delta_k = delta_1 + ... + delta_k.

`Phi_rate(L)` grows as the rate falls, so the increments telescope, and `range / rate_K <= Delta_K + first`: for every
`q*` the sum of `<q_k - q*, l_k>` is at most `2 Delta_K + first`. With rates that fall by a plan, such as `RootRate`,
the same sum is at most `Delta_K + range / rate_K`. See docs/learning-rates.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Protocol, runtime_checkable

import numpy as np

from amdp.algorithms.bounds import require_rate
from amdp.arrays import Floats, require_positive, require_whole
from amdp.errors import InvalidInput

ADAPTIVE, THEORY = "adaptive", "theory"  # rates by name
FIRST = 1.0  # a unit of loss, the most that a step costs


@runtime_checkable
class Rate(Protocol):
    """A learning rate, and what becomes of it when losses arrive."""

    @property
    def value(self) -> float:
        """The learning rate now."""
        ...

    def after(self, gap: Callable[[], float]) -> "Rate":
        """The rate after losses whose gap is `gap()`; it is computed only where it is needed."""
        ...


@dataclass(frozen=True)
class FixedRate:
    """The same learning rate in all rounds."""

    value: float

    def __post_init__(self) -> None:
        require_rate(self.value)

    def after(self, gap: Callable[[], float]) -> "FixedRate":
        return self


@dataclass(frozen=True)
class AdaptiveRate:
    """`range / max(gaps, first)`: the rate falls as the gaps add up, and needs neither the rounds nor a grid.

    The sum of the gaps may fall where feedback is delayed or the dynamics are unknown. The rate follows its running
    maximum, for the potentials telescope only if rates do not rise; without delay, over a kernel, the two are equal.

    `first` is what the sum of the gaps is taken for at least: it adds as much to the bound, and keeps the rates of the
    first rounds finite. The default is a unit of loss, the most that a step costs. With bandit feedback one round makes
    more gaps than that. With full information they are small, and a larger value, such as `H`, would hold the rate
    down for long; a much smaller one lets the second round follow the losses of a single one.
    """

    range: float  # of the regularizer
    first: float = FIRST
    gaps: float = 0.0  # the running maximum of `total`, at least 0
    total: float = 0.0  # the sum of the gaps so far

    def __post_init__(self) -> None:
        require_positive("first", self.first)
        if not 0.0 <= self.range < float("inf"):
            raise InvalidInput(f"{self.range}; it must be finite and not negative", "range")

    @property
    def value(self) -> float:
        return self.range / max(self.gaps, self.first)

    def after(self, gap: Callable[[], float]) -> "AdaptiveRate":
        total = self.total + gap()
        return AdaptiveRate(self.range, self.first, max(self.gaps, total), total)


@dataclass(frozen=True)
class RootRate:
    """`scale / sqrt(k)`, with `k - 1` the number of losses that arrived: without delay, `k` is the round.

    It needs not know the number of rounds. It is for leaders, which restate all losses so far at the new rate.
    """

    scale: float
    arrived: int = 0

    def __post_init__(self) -> None:
        require_rate(self.scale)
        require_whole("arrived", self.arrived, 0)

    @property
    def value(self) -> float:
        return self.scale / sqrt(1.0 + self.arrived)

    def after(self, gap: Callable[[], float]) -> "RootRate":
        return RootRate(self.scale, self.arrived + 1)


def as_rate(rate: "float | Rate") -> Rate:
    """A number as the rate of all rounds; a `Rate` as it is."""
    return rate if isinstance(rate, Rate) else FixedRate(rate)


def required_rate(rate: float | str | None) -> float | None:
    """A fixed rate as a number, None for theory's; a word other than `theory` is refused."""
    if not isinstance(rate, str):
        return rate
    if rate != THEORY:
        raise InvalidInput(f"{rate!r}; it must be a number, 'adaptive' or 'theory'", "rate")
    return None


def has_numbers(rate: Rate) -> bool:
    """Whether compiled games know the rule of this rate; a subclass may have another one."""
    return type(rate) in (FixedRate, AdaptiveRate)


def as_numbers(rate: Rate) -> Floats:
    """A fixed or an adaptive rate as compiled games keep it, and write to it."""
    if isinstance(rate, AdaptiveRate):
        return np.array([rate.range, rate.first, rate.gaps, rate.total])
    return np.array([rate.value])


def from_numbers(before: Rate, numbers: Floats) -> Rate:
    """The rate after a compiled game; `before` is what it was."""
    return AdaptiveRate(*numbers.tolist()) if isinstance(before, AdaptiveRate) else before
