"""Adversaries by short name; their settings are keywords with usual values that fit the length of the game."""

from collections.abc import Callable
from math import isqrt, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amdp import options, own_code, registry
from amdp.arrays import Floats, floats
from amdp.errors import InvalidInput
from amdp.losses import adversaries
from amdp.losses.base import CheckedLosses, FixedLosses, LossSequence, round_rng
from amdp.model.segments import Shape
from amdp.text import suggestion


class LossTask(NamedTuple):
    """What an adversary by name starts from: nominal costs, the number of rounds, and a seed."""

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
        if len(self.costs) == self.steps or self.costs.strides[0] == 0:
            return adversaries.repeated(self.costs[: self.steps], self.rounds)
        return FixedLosses(self.costs[:, None])

    def part(self, n: int) -> int:
        """The `n`-th part of the rounds, at least one."""
        return max(1, self.rounds // n)


Adversary = Callable[..., LossSequence]  # makes losses of a `LossTask`, and settings by keyword


def named(
    name: str, shape: Shape, rounds: int, seed: int, costs: ArrayLike | None = None, **settings: Any
) -> LossSequence:
    """The adversary of that name, for a world of that shape, with settings by keyword.

    It starts from the world's nominal `costs` `[h, s, a]` in [0, 1]; without them, from a table drawn uniformly by the
    seed. Where rounds are the steps of a stream, `shape` has one step and `costs` may have all: `[t, s, a]`.
    """
    make = adversary(name)
    registry.require_options(name, make, settings)
    options.require_kinds(name, make, settings)
    drawn = adversaries.uniform(1, shape, seed, "costs")
    table = drawn[0] if costs is None else floats("costs", costs, "hsa")
    streamed = shape[0] == 1 and len(table) == rounds
    if table.shape[1:] != drawn.shape[1:] or not (streamed or len(table) == shape[0]):
        raise InvalidInput(f"costs has shape {table.shape}; the world has {drawn.shape}")
    made: Any = make(LossTask(table, rounds, seed, shape[0]), **settings)
    return made if isinstance(made, LossSequence) else _tables(name, made)


def adversary(name: str) -> Adversary:
    """The function that makes the sequence of that name: a built-in one, or one's own, `my_module:storms`."""
    if own_code.is_own(name):
        own: Adversary = own_code.find(name)
        if len(options.required(own)) != 1:
            raise InvalidInput(f"{name!r} must have one argument without a default, the task: see LossTask")
        return own
    known = standard()
    if name not in known:
        raise InvalidInput(f"no losses {name!r}; {suggestion(name, known)}known names: {', '.join(known)}")
    return known[name]


def _tables(name: str, made: Any) -> LossSequence:
    """What a function of one's own returned, if it is an array `[k, h, s, a]`."""
    try:
        return FixedLosses(made)
    except InvalidInput as problem:
        rule = "it must return a LossSequence or an array [k, h, s, a] in [0, 1]"
        raise InvalidInput(f"{name!r} returned {type(made).__name__}; {rule}: {problem}") from problem


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


def _nominal(task: LossTask) -> LossSequence:
    """The nominal costs of the world in every round."""
    return task.nominal


def _seasonal(task: LossTask, *, period: float | None = None, amplitude: float = 0.5) -> LossSequence:
    """The costs times a price that rises and falls; the usual period is a tenth of the rounds."""
    return adversaries.seasonal(task.table, task.rounds, _or(period, task.part(10)), amplitude)


def _uniform(task: LossTask) -> LossSequence:
    """Uniform on [0, 1), whatever the costs."""
    return adversaries.uniform(task.rounds, task.shape, task.seed)


def _bernoulli(task: LossTask) -> LossSequence:
    """Zeros and ones with the costs as means."""
    return adversaries.bernoulli(task.nominal, task.seed)


def _beta(task: LossTask, *, concentration: float = 4.0) -> LossSequence:
    """Beta numbers with the costs as means."""
    return adversaries.beta(task.nominal, concentration, task.seed)


def _switching(task: LossTask, *, every: int | None = None, tables: int = 10) -> LossSequence:
    """Uniform tables, one after the other; the usual stretch is a tenth of the rounds."""
    drawn = adversaries.uniform(tables, task.shape, task.seed)
    return adversaries.switching(drawn, _or(every, task.part(10)), task.rounds)


def _sinusoid(task: LossTask, *, period: float | None = None, amplitude: float = 0.5) -> LossSequence:
    """A wave over the costs, at each place with its own phase; the usual period is half of the rounds."""
    return adversaries.sinusoid(task.table, task.rounds, _or(period, task.part(2)), task.seed, amplitude)


def _swap(task: LossTask, *, first: int | None = None, growth: float = 2.0) -> LossSequence:
    """What was best becomes worst, in phases that grow; the usual first one is a hundredth of the rounds."""
    return adversaries.swap(task.table, task.rounds, _or(first, task.part(100)), growth)


def _spikes(task: LossTask, *, places: int | None = None) -> LossSequence:
    """The costs, but 1 at some places of each round; usually at one of fifty."""
    return adversaries.spikes(task.nominal, _or(places, max(1, task.table.size // 50)), task.seed)


def _corrupted(task: LossTask, *, budget: int | None = None) -> LossSequence:
    """Bernoulli losses that lie in some rounds; usually in a tenth of them."""
    honest = adversaries.bernoulli(task.nominal, task.seed)
    return adversaries.corrupted(honest, _or(budget, task.rounds // 10), task.seed)


def _congestion(
    task: LossTask, *, width: int | None = None, period: float | None = None, radius: float = 1.0, weight: float = 0.5
) -> LossSequence:
    """A crowd that moves over a grid of states `y * width + x`, usually the squarest, four times around."""
    states = task.shape[1]
    tallest = next(side for side in range(isqrt(states), 0, -1) if states % side == 0)
    across = _or(width, states // tallest)
    height = states // across if across > 0 else 0
    return adversaries.congestion(task.table, task.rounds, across, height, _or(period, task.part(4)), radius, weight)


def _walk(task: LossTask, *, deviation: float | None = None) -> LossSequence:
    """The costs between 1/4 and 3/4, all moved by one walk on many scales; it usually stays within these quarters."""
    return adversaries.wandering(0.25 + task.table / 2.0, _many_scales(task, deviation))


def _hidden_walk(task: LossTask, *, deviation: float | None = None) -> LossSequence:
    """The costs, those below 1 moved by one walk on many scales: the hard case, with the `switching-` worlds."""
    return adversaries.wandering(task.table, _many_scales(task, deviation), task.table < 1.0)


def _many_scales(task: LossTask, deviation: float | None) -> Floats:
    usual = 1.0 / (9.0 * log2(max(2, task.rounds)))
    return adversaries.multi_scale_walk(task.rounds, _or(deviation, usual), round_rng(task.seed, "walk", 0))


def _or(value: Any, usual: Any) -> Any:
    return usual if value is None else value
