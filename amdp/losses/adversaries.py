"""Adversaries: losses that are random, that switch, drift, swap, spike, lie, move over a grid, or hide in a walk.

Each formula gives the losses `l_k[h, s, a]` of round `k`. What is random depends on the seed and the round alone.
Sequences are built from sequences: `bernoulli(swap(table, 10_000), seed)` is a swap seen through noise.
"""

from collections.abc import Iterable
from functools import partial
from math import cos, pi, prod, sin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp.arrays import Floats, floats, require_finite, require_room, require_whole
from amdp.errors import InvalidInput
from amdp.losses.base import (
    CalledLosses,
    CheckedLosses,
    FixedLosses,
    GeneratedLosses,
    LossSequence,
    PickedLosses,
    UniformlyDrawn,
    require_losses,
    round_rng,
)
from amdp.model.segments import Shape

Rounds = NDArray[np.int64]


def repeated(table: ArrayLike, rounds: int) -> CheckedLosses:
    """The same losses in each round: `l_k = table`."""
    losses = _table(table)
    return PickedLosses(rounds, losses.shape, FixedLosses(losses[None]), np.zeros_like)


def seasonal(table: ArrayLike, rounds: int, period: float, amplitude: float = 0.5) -> CheckedLosses:
    """A price that rises and falls: `l_k = table (1 + b sin(2 pi k / period)) / (1 + b)` with `b = amplitude`."""
    losses = _table(table)
    _require(0 < period < np.inf, "period", period, "must be finite and above 0")
    _require(0 <= amplitude <= 1, "amplitude", amplitude, "must be between 0 and 1")
    return CalledLosses(rounds, losses.shape, partial(_priced, losses, period, amplitude), name="seasonal")


def uniform(rounds: int, shape: Shape, seed: int, stream: str = "uniform") -> CheckedLosses:
    """Each `l_k[h, s, a]` uniform on [0, 1), all independent."""
    return UniformlyDrawn(rounds, shape, seed, _uniform, stream=stream)


def bernoulli(means: LossSequence, seed: int) -> CheckedLosses:
    """Zeros and ones: `P(l_k[h, s, a] = 1) = means_k[h, s, a]`, all independent."""
    return UniformlyDrawn(len(means), means.shape, seed, partial(_bernoulli, means), stream="bernoulli")


def beta(means: LossSequence, concentration: float, seed: int) -> CheckedLosses:
    """Each `l_k[h, s, a]` of law Beta(c m, c (1 - m)) with `m = means_k[h, s, a]`, all independent.

    The mean is `m`, the variance `m (1 - m) / (c + 1)`, and `c = concentration`. Means of 0 and 1 are met exactly.
    """
    _require(0 < concentration < np.inf, "concentration", concentration, "must be finite and above 0")
    return GeneratedLosses(len(means), means.shape, seed, partial(_beta, means, concentration), stream="beta")


def switching(tables: LossSequence, every: int, rounds: int) -> CheckedLosses:
    """One table after the other, `every` rounds each, and again from the first: `l_k = tables[(k // every) mod n]`."""
    require_whole("every", every, 1)
    return PickedLosses(rounds, tables.shape, tables, partial(_current, every, len(tables)))


def sinusoid(table: ArrayLike, rounds: int, period: float, seed: int, amplitude: float = 0.5) -> CheckedLosses:
    """A wave over a table: `l_k = (1 - b) table + b (1 + sin(2 pi (k / period + phase))) / 2` with `b = amplitude`.

    The phases `[h, s, a]` are uniform on [0, 1): each place has its own good times, and the best policy drifts.
    """
    losses = _table(table)
    _require(0 < period < np.inf, "period", period, "must be finite and above 0")
    _require(0 <= amplitude <= 1, "amplitude", amplitude, "must be between 0 and 1")
    phases = uniform(1, losses.shape, seed, "phases")[0]
    return CalledLosses(rounds, losses.shape, partial(_wave, losses, phases, period, amplitude), name="sinusoid")


def swap(table: ArrayLike, rounds: int, first: int = 1, growth: float = 2.0) -> CheckedLosses:
    """What was best becomes worst: `l_k = table` in even phases, `1 - table` in odd ones.

    Phase `i` lasts `first * growth**i` rounds, rounded down; growth 1 keeps all phases equally long. An episode has a
    fixed number of steps, so a policy that is cheapest in the even phases is dearest in the odd ones.
    """
    losses = _table(table)
    require_whole("first", first, 1)
    _require(1 <= growth < np.inf, "growth", growth, "must be finite and at least 1")
    require_whole("rounds", rounds, 1)
    ends = [first]
    while ends[-1] < rounds:
        ends.append(ends[-1] + int(min(first * growth ** len(ends), rounds)))
    both = FixedLosses(np.stack([losses, 1.0 - losses]))
    return PickedLosses(rounds, losses.shape, both, partial(_swapped, np.array(ends)))


def spikes(base: LossSequence, places: int, seed: int) -> CheckedLosses:
    """Sparse spikes: `l_k = base_k`, but 1 at some `places` triples `(h, s, a)`, uniform without repetition."""
    size = prod(base.shape)
    require_whole("places", places, 0)
    _require(places <= size, "places", places, f"must be at most {size}, the number of triples")
    return GeneratedLosses(len(base), base.shape, seed, partial(_spiked, base, places), stream="spikes")


def corrupted(base: LossSequence, budget: int, seed: int) -> CheckedLosses:
    """A sequence of which `budget` rounds, uniform without repetition, show the opposite: `l_k = 1 - base_k`."""
    require_whole("budget", budget, 0)
    _require(budget <= len(base), "budget", budget, f"must be at most {len(base)}, the number of rounds")
    require_whole("seed", seed, 0)
    chosen = round_rng(seed, "corrupted", 0).choice(len(base), budget, replace=False)
    return corrupted_at(base, chosen.tolist())


def corrupted_at(base: LossSequence, chosen: Iterable[int]) -> CheckedLosses:
    """A sequence of which the `chosen` rounds show the opposite: `l_k = 1 - base_k`."""
    flipped = frozenset(chosen)
    for k in sorted(flipped):
        _require(0 <= k < len(base), "a corrupted round", k, f"must be between 0 and {len(base) - 1}")
    return CalledLosses(len(base), base.shape, partial(_corrupted, base, flipped), name="corrupted")


def congestion(
    table: ArrayLike, rounds: int, width: int, height: int, period: float, radius: float = 1.0, weight: float = 0.5
) -> CheckedLosses:
    """Congestion that moves over a grid whose state `y * width + x` is the cell `(x, y)`.

    `l_k = (1 - weight) table + weight exp(-|cell - center_k|^2 / (2 radius^2))`. The center runs once around the
    ellipse that touches the four sides, `x = (width - 1) (1 + cos(2 pi k / period)) / 2` and `y` with the sine, in
    `period` rounds: of the two ways between opposite corners it blocks one, then the other.
    """
    losses = _table(table)
    require_whole("width", width, 1)
    require_whole("height", height, 1)
    if width * height != losses.shape[1]:
        raise InvalidInput(f"a grid of {width} x {height} cells does not fit {losses.shape[1]} states")
    _require(0 < period < np.inf, "period", period, "must be finite and above 0")
    _require(0 < radius < np.inf, "radius", radius, "must be finite and above 0")
    _require(0 <= weight <= 1, "weight", weight, "must be between 0 and 1")
    crowd = partial(_crowded, losses, (width, height), period, radius, weight)
    return CalledLosses(rounds, losses.shape, crowd, name="congestion")


def wandering(table: ArrayLike, walk: ArrayLike, where: ArrayLike | None = None) -> CheckedLosses:
    """Losses that move together: `l_k = clip(table + walk_k where, 0, 1)` for a walk `[k]`; `where` is 1 if None.

    Who stays at one place of `where` learns what the walk does, and nothing about the table.
    """
    fixed, moved = floats("table", table, "hsa"), floats("walk", walk, "k")
    moves = np.ones(fixed.shape) if where is None else floats("where", where, "hsa")
    if moves.shape != fixed.shape:
        raise InvalidInput(f"where has shape {moves.shape}; the table has {fixed.shape}")
    for name, array, axes in (("table", fixed, "hsa"), ("walk", moved, "k"), ("where", moves, "hsa")):
        require_finite(name, array, axes)
    steps, states, actions = fixed.shape
    return CalledLosses(len(moved), (steps, states, actions), partial(_wandered, fixed, moved, moves), name="walk")


def multi_scale_walk(n_steps: int, deviation: float, rng: np.random.Generator) -> Floats:
    """`w_t = w_{parent(t)} + xi_t` for `t = 1 .. T` with normal `xi_t`; the parent clears the lowest bit of `t`.

    The walk of Dekel et al. (2014), under which a small gap hides. Each value is a sum of at most `log2 T + 1` numbers,
    and each step ends the reach of at most as many.
    """
    require_whole("n_steps", n_steps, 1)
    require_room("a walk", (n_steps,), 4)
    noise = deviation * rng.standard_normal(n_steps + 1)
    walk = np.zeros(n_steps + 1)
    for t, parent in enumerate(parents(n_steps), start=1):
        walk[t] = walk[parent] + noise[t]
    return walk[1:]


def parents(n_steps: int) -> NDArray[np.int64]:
    """The parent of each `t = 1 .. T`."""
    times = np.arange(1, n_steps + 1)
    return times & (times - 1)


def _priced(table: Floats, period: float, amplitude: float, k: int) -> Floats:
    return table * ((1.0 + amplitude * sin(2.0 * pi * k / period)) / (1.0 + amplitude))


def _uniform(low: int, numbers: Floats) -> Floats:
    return numbers


def _bernoulli(means: LossSequence, low: int, numbers: Floats) -> Floats:
    return (numbers < means.batch(low, low + len(numbers))).astype(np.float64)


def _beta(means: LossSequence, concentration: float, k: int, rng: np.random.Generator) -> Floats:
    losses = np.array(means[k])
    ones, zeros = concentration * losses, concentration * (1.0 - losses)
    inside = (ones > 0.0) & (zeros > 0.0)
    losses[inside] = rng.beta(ones[inside], zeros[inside])
    return losses


def _current(every: int, tables: int, rounds: Rounds) -> Rounds:
    return rounds // every % tables


def _wave(table: Floats, phases: Floats, period: float, amplitude: float, k: int) -> Floats:
    return _mixed(table, (1.0 + np.sin(2.0 * pi * (k / period + phases))) / 2.0, amplitude)


def _swapped(ends: Rounds, rounds: Rounds) -> Rounds:
    phases: Rounds = np.searchsorted(ends, rounds, side="right") % 2
    return phases


def _spiked(base: LossSequence, places: int, k: int, rng: np.random.Generator) -> Floats:
    losses = np.array(base[k])
    losses.reshape(-1)[rng.choice(losses.size, places, replace=False, shuffle=False)] = 1.0
    return losses


def _corrupted(base: LossSequence, flipped: frozenset[int], k: int) -> Floats:
    return 1.0 - base[k] if k in flipped else base[k]


def _crowded(table: Floats, size: tuple[int, int], period: float, radius: float, weight: float, k: int) -> Floats:
    angle = 2.0 * pi * k / period
    y, x = np.divmod(np.arange(table.shape[1]), size[0])
    from_x = x - (size[0] - 1) * (1.0 + cos(angle)) / 2.0
    from_y = y - (size[1] - 1) * (1.0 + sin(angle)) / 2.0
    crowd = np.exp(-(from_x**2 + from_y**2) / (2.0 * radius**2))
    return _mixed(table, crowd[:, None], weight)


def _wandered(table: Floats, walk: Floats, where: Floats, k: int) -> Floats:
    moved: Floats = np.clip(table + walk[k] * where, 0.0, 1.0)
    return moved


def _mixed(table: Floats, other: Floats, weight: float) -> Floats:
    # In this order rounding cannot leave [0, 1]: (1 - weight) + weight is at most 1 in floating point too.
    mixture: Floats = (1.0 - weight) * table + weight * other
    return mixture


def _table(table: ArrayLike) -> Floats:
    losses = np.array(floats("table", table, "hsa"), order="C")
    require_losses(losses[None], name="table")
    losses.flags.writeable = False
    return losses


def _require(fine: bool, name: str, value: object, rule: str) -> None:
    if not fine:
        raise InvalidInput(f"{value!r}; it {rule}", name)
