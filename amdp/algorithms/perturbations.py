"""Noise on cumulative losses: the same sum, many times perturbed, laid out as batched sweeps read it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Costs, Floats, step_major
from amdp.errors import InvalidInput


class Perturbation(Protocol):
    """A law of noise on losses."""

    def perturbed(self, total: Floats, n: int, rng: np.random.Generator) -> Costs:
        """`n` independently perturbed copies `[n, h, s, a]` of `total` `[h, s, a]`."""
        ...


@dataclass(frozen=True)
class Laplace:
    """The paper's noise: density `rate/2 exp(-rate |z|)`, so numpy's scale is `1/rate`."""

    rate: float

    def __post_init__(self) -> None:
        require_rate(self.rate)

    def perturbed(self, total: Floats, n: int, rng: np.random.Generator) -> Costs:
        """`total + z`."""
        costs = step_major(n, total.shape)
        center, out = _flat(total, costs)
        kernels.noise.add_laplace(_lanes(rng), 1.0 / self.rate, center, out)
        return costs


@dataclass(frozen=True)
class Exponential:
    """Wang and Dong's noise: `z >= 0` with density `rate exp(-rate z)`, subtracted from the losses."""

    rate: float

    def __post_init__(self) -> None:
        require_rate(self.rate)

    def perturbed(self, total: Floats, n: int, rng: np.random.Generator) -> Costs:
        """`total - z`."""
        costs = step_major(n, total.shape)
        center, out = _flat(total, costs)
        kernels.noise.add_exponential(_lanes(rng), -1.0 / self.rate, center, out)
        return costs


@dataclass(frozen=True)
class Gumbel:
    """Gumbel noise of scale `1/rate`, subtracted: over independent single choices this would be Hedge."""

    rate: float

    def __post_init__(self) -> None:
        require_rate(self.rate)

    def perturbed(self, total: Floats, n: int, rng: np.random.Generator) -> Costs:
        """`total - z`."""
        costs = step_major(n, total.shape)
        center, out = _flat(total, costs)
        np.subtract(center[:, None], rng.gumbel(scale=1.0 / self.rate, size=out.shape), out=out)
        return costs


@dataclass(frozen=True)
class Gaussian:
    """Normal noise of standard deviation `1/rate`."""

    rate: float

    def __post_init__(self) -> None:
        require_rate(self.rate)

    def perturbed(self, total: Floats, n: int, rng: np.random.Generator) -> Costs:
        """`total + z`."""
        costs = step_major(n, total.shape)
        center, out = _flat(total, costs)
        rng.standard_normal(out=out)
        out *= 1.0 / self.rate
        out += center[:, None]
        return costs


def require_rate(rate: float) -> None:
    """Refuse a rate that is not positive and finite."""
    if not 0.0 < rate < np.inf:
        raise InvalidInput(f"rate = {rate}; it must be above 0 and finite")


def _flat(total: Floats, costs: Costs) -> tuple[Floats, Floats]:
    """`[h, s*a]` and `[h, n, s*a]` views."""
    by_step = costs.swapaxes(0, 1)
    return total.reshape(len(total), -1), by_step.reshape(*by_step.shape[:2], -1)


def _lanes(rng: np.random.Generator) -> NDArray[np.uint64]:
    words = rng.bit_generator.random_raw(4 * kernels.noise.LANES)
    return np.asarray(words, dtype=np.uint64).reshape(4, -1)
