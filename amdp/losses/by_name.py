"""Adversaries by short name, in the settings of the demonstrations; all of their settings are keywords."""

from collections.abc import Callable
from functools import partial
from math import isqrt, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amdp import options, registry
from amdp.arrays import Floats, floats
from amdp.errors import InvalidInput
from amdp.losses import adversaries
from amdp.losses.base import CalledLosses, CheckedLosses, LossSequence, round_rng
from amdp.losses.random_walks import multi_scale_walk, wandering
from amdp.model.segments import Shape


class Setting(NamedTuple):
    """What an adversary by name starts from."""

    costs: Floats  # [h, s, a]; in a stream [t, s, a], of which each round has one step
    rounds: int
    seed: int
    steps: int  # of a round

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.steps, *self.costs.shape[1:]

    @property
    def table(self) -> Floats:
        """The costs of a round; in a stream their mean over all steps."""
        if len(self.costs) == self.steps or self.costs.strides[0] == 0:
            return self.costs[: self.steps]
        mean: Floats = np.clip(self.costs.mean(axis=0, keepdims=True), 0.0, 1.0)
        return mean

    @property
    def nominal(self) -> CheckedLosses:
        """The costs, each round; in a stream those of its step."""
        if len(self.costs) == self.steps:
            return adversaries.repeated(self.costs, self.rounds)
        return CalledLosses(self.rounds, self.shape, partial(_at_step, self.costs), name="nominal")

    def part(self, n: int) -> int:
        """The `n`-th part of the rounds, at least one."""
        return max(1, self.rounds // n)


Adversary = Callable[..., LossSequence]  # of a setting, and settings by keyword


def named(
    name: str, shape: Shape, rounds: int, seed: int, costs: ArrayLike | None = None, **settings: Any
) -> LossSequence:
    """The adversary of that name, for a world of that shape, with settings by keyword.

    It starts from the world's nominal `costs` `[h, s, a]` in [0, 1]; without them, from a table drawn uniformly by the
    seed. Where rounds are the steps of a stream, `shape` has one step and `costs` may have all: `[t, s, a]`.
    """
    made = adversary(name)
    registry.require_options(name, made, settings)
    options.require_kinds(name, made, settings)
    drawn = adversaries.uniform(1, shape, seed, "costs")[0]
    table = drawn if costs is None else floats("costs", costs, "hsa")
    streamed = shape[0] == 1 and len(table) == rounds
    if table.shape[1:] != drawn.shape[1:] or not (streamed or len(table) == shape[0]):
        raise InvalidInput(f"costs has shape {table.shape}; the world has {drawn.shape}")
    return made(Setting(table, rounds, seed, shape[0]), **settings)


def adversary(name: str) -> Adversary:
    """The function that makes the sequence of that name."""
    known = standard()
    if name not in known:
        raise InvalidInput(f"no losses {name!r}; known names: {', '.join(known)}")
    return known[name]


def standard() -> dict[str, Adversary]:
    """A function that makes each sequence, by name."""
    return {
        "nominal": _nominal,
        "seasonal": _seasonal,
        "uniform": _uniform,
        "bernoulli": _bernoulli,
        "beta": _beta,
        "switching": _switching,
        "sinusoid": _sinusoid,
        "swap": _swap,
        "spikes": _spikes,
        "corrupted": _corrupted,
        "congestion": _congestion,
        "walk": _walk,
        "hidden-walk": _hidden_walk,
    }


def _nominal(given: Setting) -> LossSequence:
    """The world's own costs."""
    return given.nominal


def _seasonal(given: Setting, *, period: float | None = None, amplitude: float = 0.5) -> LossSequence:
    """The costs times a price that rises and falls; the usual period is a tenth of the rounds."""
    return adversaries.seasonal(given.table, given.rounds, _or(period, given.part(10)), amplitude)


def _uniform(given: Setting) -> LossSequence:
    """Uniform on [0, 1), whatever the costs."""
    return adversaries.uniform(given.rounds, given.shape, given.seed)


def _bernoulli(given: Setting) -> LossSequence:
    """Zeros and ones with the costs as means."""
    return adversaries.bernoulli(given.nominal, given.seed)


def _beta(given: Setting, *, concentration: float = 4.0) -> LossSequence:
    """Beta numbers with the costs as means."""
    return adversaries.beta(given.nominal, concentration, given.seed)


def _switching(given: Setting, *, every: int | None = None, tables: int = 10) -> LossSequence:
    """Uniform tables, one after the other; the usual stretch is a tenth of the rounds."""
    drawn = adversaries.uniform(tables, given.shape, given.seed)
    return adversaries.switching(drawn, _or(every, given.part(10)), given.rounds)


def _sinusoid(given: Setting, *, period: float | None = None, amplitude: float = 0.5) -> LossSequence:
    """A wave over the costs, at each place with its own phase; the usual period is half of the rounds."""
    return adversaries.sinusoid(given.table, given.rounds, _or(period, given.part(2)), given.seed, amplitude)


def _swap(given: Setting, *, first: int | None = None, growth: float = 2.0) -> LossSequence:
    """What was best becomes worst, in phases that grow; the usual first one is a hundredth of the rounds."""
    return adversaries.swap(given.table, given.rounds, _or(first, given.part(100)), growth)


def _spikes(given: Setting, *, places: int | None = None) -> LossSequence:
    """The costs, but 1 at some places of each round; usually at one of fifty."""
    return adversaries.spikes(given.nominal, _or(places, max(1, given.table.size // 50)), given.seed)


def _corrupted(given: Setting, *, budget: int | None = None) -> LossSequence:
    """Bernoulli losses that lie in some rounds; usually in a tenth of them."""
    honest = adversaries.bernoulli(given.nominal, given.seed)
    return adversaries.corrupted(honest, _or(budget, given.rounds // 10), given.seed)


def _congestion(
    given: Setting,
    *,
    width: int | None = None,
    period: float | None = None,
    radius: float = 1.0,
    weight: float = 0.5,
) -> LossSequence:
    """A crowd that moves over a grid of states `y * width + x`, usually the squarest, four times around."""
    states = given.shape[1]
    tallest = next(side for side in range(isqrt(states), 0, -1) if states % side == 0)
    across = _or(width, states // tallest)
    height = states // across if across > 0 else 0
    return adversaries.congestion(given.table, given.rounds, across, height, _or(period, given.part(4)), radius, weight)


def _walk(given: Setting, *, deviation: float | None = None) -> LossSequence:
    """The costs between 1/4 and 3/4, all moved by one walk on many scales; it usually stays within these quarters."""
    return wandering(0.25 + given.table / 2.0, _many_scales(given, deviation))


def _hidden_walk(given: Setting, *, deviation: float | None = None) -> LossSequence:
    """The costs, those below 1 moved by one walk on many scales: the hard case, with the `switching-` worlds."""
    return wandering(given.table, _many_scales(given, deviation), given.table < 1.0)


def _many_scales(given: Setting, deviation: float | None) -> Floats:
    usual = 1.0 / (9.0 * log2(max(2, given.rounds)))
    return multi_scale_walk(given.rounds, _or(deviation, usual), round_rng(given.seed, "walk", 0))


def _or(given: Any, usual: Any) -> Any:
    return usual if given is None else given


def _at_step(costs: Floats, k: int) -> Floats:
    return costs[k : k + 1]
