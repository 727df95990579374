"""Noise on cumulative losses: the same sum, many times perturbed, laid out as batched sweeps read it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from amdp import kernels
from amdp.algorithms.bounds import require_noise_rate
from amdp.arrays import Costs, Floats, step_major
from amdp.kernels.layout import lanes
from amdp.kernels.rows import ReachedStates

Fill = Callable[[Floats, Floats], Any]  # center [h, j] and fresh noise, into out [h, n, j]


@dataclass(frozen=True)
class Perturbation(ABC):
    """A law of noise on losses, whose spread is in proportion to `1/rate`."""

    rate: float

    def __post_init__(self) -> None:
        require_noise_rate(self.rate)

    @abstractmethod
    def filler(self, rng: np.random.Generator) -> Fill:
        """A stream of noise."""

    def stream(self, total: Floats, rng: np.random.Generator) -> Callable[[int], Costs]:
        """The next `n` independently perturbed copies `[n, h, s, a]` of `total` `[h, s, a]`, call after call."""
        fill, center = self.filler(rng), total.reshape(len(total), -1)

        def copies(n: int) -> Costs:
            costs = step_major(n, total.shape)
            by_step = costs.swapaxes(0, 1)
            fill(center, by_step.reshape(*by_step.shape[:2], -1))
            return costs

        return copies

    def trial_stream(self, total: Floats, reached: ReachedStates, rng: np.random.Generator) -> Callable[[int], Costs]:
        """The same for resampling trials, which need no noise in states that cannot be reached."""
        return self.stream(total, rng)

    def perturbed(self, total: Floats, n: int, rng: np.random.Generator) -> Costs:
        """`n` independently perturbed copies."""
        return self.stream(total, rng)(n)


class Laplace(Perturbation):
    """The paper's noise: density `rate/2 exp(-rate |z|)`, so numpy's scale is `1/rate`."""

    def filler(self, rng: np.random.Generator) -> Fill:
        """Writes `center + z` with fresh noise `z` in each copy."""
        return partial(kernels.noise.add_laplace, lanes(rng), 1.0 / self.rate)

    def trial_stream(self, total: Floats, reached: ReachedStates, rng: np.random.Generator) -> Callable[[int], Costs]:
        """The noise of the compiled trials, in the order in which they draw it."""
        noise, center = lanes(rng), np.ascontiguousarray(total)

        def copies(n: int) -> Costs:
            costs = step_major(n, total.shape)
            kernels.leaders.perturbed(noise, 1.0 / self.rate, center, reached, costs)
            return costs

        return copies


class Exponential(Perturbation):
    """Wang and Dong's noise: `z >= 0` with density `rate exp(-rate z)`, subtracted from the losses."""

    def filler(self, rng: np.random.Generator) -> Fill:
        """Writes `center - z` with fresh noise `z` in each copy."""
        return partial(kernels.noise.add_exponential, lanes(rng), -1.0 / self.rate)


class Gumbel(Perturbation):
    """Gumbel noise of scale `1/rate`, subtracted: over independent single choices this would be Hedge."""

    def filler(self, rng: np.random.Generator) -> Fill:
        """Writes `center - z` with fresh noise `z` in each copy."""

        def fill(center: Floats, out: Floats) -> None:
            np.subtract(center[:, None], rng.gumbel(scale=1.0 / self.rate, size=out.shape), out=out)

        return fill


class Gaussian(Perturbation):
    """Normal noise of standard deviation `1/rate`."""

    def filler(self, rng: np.random.Generator) -> Fill:
        """Writes `center + z` with fresh noise `z` in each copy."""

        def fill(center: Floats, out: Floats) -> None:
            rng.standard_normal(out=out)
            out *= 1.0 / self.rate
            out += center[:, None]

        return fill
