"""Adversaries by short name, in the settings of the demonstrations."""

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats
from amdp.dynamics import Shape
from amdp.errors import InvalidInput
from amdp.losses import adversaries
from amdp.losses.base import CheckedLosses, LossSequence


class Setting(NamedTuple):
    """What an adversary by name starts from."""

    costs: Floats  # [h, s, a]
    rounds: int
    seed: int

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        steps, states, actions = self.costs.shape
        return steps, states, actions

    @property
    def nominal(self) -> CheckedLosses:
        """The costs, each round."""
        return adversaries.repeated(self.costs, self.rounds)

    def part(self, n: int) -> int:
        """The `n`-th part of the rounds, at least one."""
        return max(1, self.rounds // n)


def named(name: str, instance_shape: Shape, rounds: int, seed: int, costs: ArrayLike | None = None) -> LossSequence:
    """The adversary of that name, for a world of that shape.

    It starts from the world's nominal `costs` `[h, s, a]` in [0, 1]; without them, from a table drawn uniformly by the
    seed. `congestion` reads the states as the squarest grid there is, `y * width + x`, no taller than wide.
    """
    known = standard()
    if name not in known:
        raise InvalidInput(f"no losses {name!r}; known names: {', '.join(known)}")
    drawn = adversaries.uniform(1, instance_shape, seed, "costs")[0]
    table = drawn if costs is None else floats("costs", costs, "hsa")
    if table.shape != drawn.shape:
        raise InvalidInput(f"costs has shape {table.shape}; the world has {drawn.shape}")
    return known[name](Setting(table, rounds, seed))


def standard() -> dict[str, Callable[[Setting], LossSequence]]:
    """A function that makes each sequence, by name."""
    return {
        "nominal": lambda given: given.nominal,
        "seasonal": lambda given: adversaries.seasonal(given.costs, given.rounds, period=given.part(10)),
        "uniform": lambda given: adversaries.uniform(given.rounds, given.shape, given.seed),
        "bernoulli": lambda given: adversaries.bernoulli(given.nominal, given.seed),
        "beta": lambda given: adversaries.beta(given.nominal, 4.0, given.seed),
        "switching": _switching,
        "sinusoid": lambda given: adversaries.sinusoid(given.costs, given.rounds, given.part(2), given.seed),
        "swap": lambda given: adversaries.swap(given.costs, given.rounds, first=given.part(100)),
        "spikes": _spikes,
        "corrupted": _corrupted,
        "congestion": _congestion,
    }


def _switching(given: Setting) -> LossSequence:
    tables = adversaries.uniform(10, given.shape, given.seed)
    return adversaries.switching(tables, every=given.part(10), rounds=given.rounds)


def _spikes(given: Setting) -> LossSequence:
    return adversaries.spikes(given.nominal, max(1, given.costs.size // 50), given.seed)


def _corrupted(given: Setting) -> LossSequence:
    honest = adversaries.bernoulli(given.nominal, given.seed)
    return adversaries.corrupted(honest, budget=given.rounds // 10, seed=given.seed)


def _congestion(given: Setting) -> LossSequence:
    states = given.shape[1]
    height = next(side for side in range(isqrt(states), 0, -1) if states % side == 0)
    return adversaries.congestion(given.costs, given.rounds, states // height, height, period=given.part(4))
