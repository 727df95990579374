"""Regularizers: convex functions of an occupancy measure that are sums over its pairs, and their sums.

| type | `psi(q)` | mass at the reduced cost `r` | its distance `D(x, q)` |
|---|---|---|---|
| `NegativeEntropy(e)` | `e q ln q` | `exp(-r/e - 1)` | `e (x ln(x/q) - x + q)` |
| `Tsallis(t)` | `-t sqrt(q)` | `(t / 2r)^2`, `r > 0` | `t (sqrt(x) - sqrt(q))^2 / (2 sqrt(q))` |
| `LogBarrier(b)` | `-b ln q` | `b / r`, `r > 0` | `b (x/q - 1 - ln(x/q))` |

The mass at a reduced cost is where `psi'(q) = -r`, and `D(x, q) = psi(x) - psi(q) - psi'(q) (x - q)` is the Bregman
distance: see `amdp.oracles.regularized.base` for what both prove. Values, slopes `psi'` and distances of a sum are
sums. Its masses are not: without entropy they solve a quadratic equation in `1 / sqrt(q)`; with entropy and another
regularizer they are found by Newton's method.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from amdp.arrays import Floats, require_positive
from amdp.errors import InvalidInput
from amdp.kernels.layout import Weights

MOST_STEPS = 100  # of Newton's method for the logarithm of a mass, which takes about five
LAST_STEP = 1e-8  # of that method: it converges quadratically, so that no error is left after it
LARGEST_LOG = 700.0  # exp of more is infinite


class Regularizer(ABC):
    """A convex function of each mass of a measure; `+` makes sums."""

    @property
    @abstractmethod
    def weights(self) -> Weights:
        """How much entropy, Tsallis entropy and log-barrier it has."""

    @abstractmethod
    def values(self, mass: Floats) -> Floats:
        """`psi(q)` of each mass."""

    @abstractmethod
    def slopes(self, mass: Floats) -> Floats:
        """`psi'(q)` of each mass."""

    @abstractmethod
    def distances(self, mass: Floats, other: Floats) -> Floats:
        """`D(x, q)` of each pair of masses; at least 0, and 0 where they are equal."""

    def __add__(self, other: "Regularizer") -> "Sum":
        if not isinstance(other, Regularizer):
            return NotImplemented
        return Sum(_parts(self) + _parts(other))

    def softness(self, mass: Floats) -> Floats:
        """`1 / psi''(q)` of each mass: how fast the mass falls as its reduced cost grows."""
        entropy, tsallis, barrier = self.weights
        return mass * mass / (entropy * mass + 0.25 * tsallis * np.sqrt(mass) + barrier)

    def masses(self, reduced: Floats) -> Floats:
        """The mass at which `psi'` is `-r`, for each reduced cost; nan where there is none."""
        entropy, tsallis, barrier = self.weights
        with np.errstate(invalid="ignore", divide="ignore"):
            half = 0.5 * tsallis
            z = 2.0 * reduced / (half + np.sqrt(half * half + 4.0 * barrier * np.maximum(reduced, 0.0)))
            alone = np.where(reduced > 0.0, 1.0 / (z * z), np.nan)  # without entropy
        return self._with_entropy(reduced, alone) if entropy > 0.0 else alone

    def _with_entropy(self, reduced: Floats, alone: Floats) -> Floats:
        """Newton's method for the logarithm of the mass, in which `psi'` is concave: it meets the root from below."""
        entropy, tsallis, barrier = self.weights
        logs = -reduced / entropy - 1.0
        if tsallis or barrier:
            with np.errstate(divide="ignore"):
                logs = np.fmax(logs, np.minimum(-1.0, np.log(alone)))
            for _ in range(MOST_STEPS):
                root, inverse = 0.5 * tsallis * np.exp(-0.5 * logs), barrier * np.exp(-logs)
                step = (entropy * (logs + 1.0) - root - inverse + reduced) / (entropy + 0.5 * root + inverse)
                logs = logs - step
                if (np.abs(step) <= LAST_STEP).all():
                    break
        masses: Floats = np.exp(np.minimum(logs, LARGEST_LOG))
        return masses


@dataclass(frozen=True)
class NegativeEntropy(Regularizer):
    """`weight sum q ln q`: relative entropy from the flat measure, up to constants."""

    weight: float

    def __post_init__(self) -> None:
        require_positive("weight", self.weight)

    @property
    def weights(self) -> Weights:
        return Weights(entropy=float(self.weight))

    def values(self, mass: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.weight * np.where(mass > 0.0, mass * np.log(mass), 0.0)

    def slopes(self, mass: Floats) -> Floats:
        result: Floats = self.weight * (np.log(mass) + 1.0)
        return result

    def distances(self, mass: Floats, other: Floats) -> Floats:
        off = (mass - other) / other
        small = np.where(np.abs(off) < 1e-3, off, 0.0)
        series = small * small * (0.5 + small * (-1.0 / 6.0 + small * (1.0 / 12.0 - 0.05 * small)))
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = np.where(mass > 0.0, mass * np.log(mass / other), 0.0) - (mass - other)
        return self.weight * np.where(np.abs(off) < 1e-3, other * series, whole)


@dataclass(frozen=True)
class Tsallis(Regularizer):
    """`-weight sum sqrt(q)`: the Tsallis entropy of order 1/2, up to constants."""

    weight: float

    def __post_init__(self) -> None:
        require_positive("weight", self.weight)

    @property
    def weights(self) -> Weights:
        return Weights(tsallis=float(self.weight))

    def values(self, mass: Floats) -> Floats:
        return -self.weight * np.sqrt(mass)

    def slopes(self, mass: Floats) -> Floats:
        return -0.5 * self.weight / np.sqrt(mass)

    def distances(self, mass: Floats, other: Floats) -> Floats:
        apart = (mass - other) / (np.sqrt(mass) + np.sqrt(other))
        result: Floats = 0.5 * self.weight * apart * apart / np.sqrt(other)
        return result


@dataclass(frozen=True)
class LogBarrier(Regularizer):
    """`-weight sum ln q`: infinite where a pair that can be reached has no mass."""

    weight: float

    def __post_init__(self) -> None:
        require_positive("weight", self.weight)

    @property
    def weights(self) -> Weights:
        return Weights(barrier=float(self.weight))

    def values(self, mass: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return -self.weight * np.log(mass)

    def slopes(self, mass: Floats) -> Floats:
        return -self.weight / mass

    def distances(self, mass: Floats, other: Floats) -> Floats:
        off = (mass - other) / other
        small = np.where(np.abs(off) < 1e-3, off, 0.0)
        series = small * small * (0.5 + small * (-1.0 / 3.0 + small * (0.25 - 0.2 * small)))
        with np.errstate(divide="ignore"):
            whole = off - np.log(mass / other)
        return self.weight * np.where(np.abs(off) < 1e-3, series, whole)


@dataclass(frozen=True)
class Sum(Regularizer):
    """The sum of some regularizers, as `Tsallis(1.0) + LogBarrier(0.1)` makes it."""

    parts: tuple[Regularizer, ...]

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Regularizer) for part in self.parts):
            raise InvalidInput(f"{self.parts!r}; it must be a tuple of regularizers", "parts")

    @property
    def weights(self) -> Weights:
        return Weights(*(sum(each) for each in zip(*(part.weights for part in self.parts), strict=True)))

    def values(self, mass: Floats) -> Floats:
        return self._summed([part.values(mass) for part in self.parts])

    def slopes(self, mass: Floats) -> Floats:
        return self._summed([part.slopes(mass) for part in self.parts])

    def distances(self, mass: Floats, other: Floats) -> Floats:
        return self._summed([part.distances(mass, other) for part in self.parts])

    @staticmethod
    def _summed(arrays: list[Floats]) -> Floats:
        result: Floats = np.sum(arrays, axis=0)
        return result


def _parts(regularizer: Regularizer) -> tuple[Regularizer, ...]:
    return regularizer.parts if isinstance(regularizer, Sum) else (regularizer,)
