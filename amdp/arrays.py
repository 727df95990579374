"""Array types named by their axes, and the checks that stand at the library's borders.

One order of axes everywhere: `n` batch, `h` step, `s` state, `a` action, `y` next state.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp.errors import InvalidInput

Floats = NDArray[np.float64]
Costs = NDArray[np.float64]  # [n, h, s, a], any sign, minimized
Policies = NDArray[np.float64]  # [n, h, s, a], the chance of each action
Occupancy = NDArray[np.float64]  # [n, h, s, a], the chance of each pair
Values = NDArray[np.float64]  # [n, h, s], the cost still to come
Actions = NDArray[np.int32]  # [n, h, s], a deterministic policy
Bools = NDArray[np.bool_]

ROW_TOLERANCE = 1e-8
ADDRESSES = 2**63  # bytes that numpy can count
CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of Linux, new and old


def floats(name: str, array: ArrayLike, axes: str) -> Floats:
    """`array` as float64 with one dimension for each letter of `axes`."""
    try:
        result = np.asarray(array)
        if result.dtype.kind not in "biuf":
            raise TypeError(f"it holds {result.dtype}")
        if result.dtype != np.float64:
            require_room(name, result.shape)
        result = np.asarray(result, dtype=np.float64)
    except InvalidInput:
        raise
    except (TypeError, ValueError, OverflowError) as problem:
        raise InvalidInput(f"{name} is not an array of numbers: {problem}") from problem
    if result.ndim != len(axes):
        raise InvalidInput(f"{name} has shape {result.shape}; expected axes {_brackets(axes)}")
    if 0 in result.shape:
        raise InvalidInput(f"{name} is empty: shape {result.shape} of axes {_brackets(axes)}")
    return result


def require_finite(name: str, array: Floats, axes: str) -> None:
    """Refuse NaN and infinity, naming the first one."""
    # A sum sees every entry at memory speed; only sums beyond 1e308 need the slow look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    refuse(name, array, ~np.isfinite(array), axes, "must be finite")


def refuse(name: str, array: Floats, bad: Bools, axes: str, rule: str) -> None:
    """Raise for the first `True` of `bad`, if there is one, with its place and value."""
    if bad.any():
        place = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise InvalidInput(f"{name}{located(axes, place)} = {array[place]:g}; it {rule}")


def require_distributions(name: str, rows: Floats, axes: str) -> None:
    """Refuse rows (over the last axis) that are neither distributions nor all zero."""
    refuse(name, rows, ~np.isfinite(rows), axes, "must be a finite probability")
    refuse(name, rows, rows < 0, axes, "must not be negative")
    require_row_sums(name, rows.sum(axis=-1), axes[:-1])


def require_row_sums(name: str, sums: Floats, axes: str) -> None:
    """Refuse sums that are neither 1 nor exactly 0 (a place that cannot be reached)."""
    wrong = (np.abs(sums - 1.0) > ROW_TOLERANCE) & (sums != 0.0)
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise InvalidInput(f"{name}{located(axes, place)} sums to {sums[place]:.12g}; every row must sum to 1")


def require_index(name: str, index: int, size: int) -> None:
    """Refuse what is not a whole number of `0 .. size - 1`."""
    require_whole(name, index)
    if not 0 <= index < size:
        raise InvalidInput(f"{index}; it must be between 0 and {size - 1}", name)


def require_whole(name: str, value: object, least: int | None = None, most: int | None = None) -> None:
    """Refuse what is not a whole number, or lies outside the given ends."""
    if not isinstance(value, int | np.integer):
        raise InvalidInput(f"{value!r}; it must be a whole number", name)
    if (least is not None and value < least) or (most is not None and value > most):
        ends = f"at least {least}" if most is None else f"{least} .. {most}"
        raise InvalidInput(f"{value!r}; it must be a whole number, {ends}", name)


def require_positive(name: str, value: object) -> None:
    """Refuse what is not a finite number above 0."""
    if not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise InvalidInput(f"{value!r}; it must be above 0 and finite", name)


def require_room(name: str, shape: Sequence[int], copies: int = 1, remedy: str = "", itemsize: int = 8) -> None:
    """Refuse `copies` arrays of a shape that together would not fit into memory, before any of them is made.

    The system would promise more than it has, and end the program when the promise is called in.
    """
    asked, there = prod(map(int, shape)) * itemsize * copies, memory()
    if asked > there:
        several = f"{copies} copies of " if copies > 1 else ""
        raise InvalidInput(
            f"{several}{name} of shape {' x '.join(map(str, shape))} would fill {asked:,} bytes, "
            f"{_gibibytes(asked)}; there are {_gibibytes(there)} of memory" + (f"; {remedy}" if remedy else "")
        )


@cache
def memory() -> int:
    """Bytes of memory of this machine, or of the container that this process lives in.

    A system that does not say how much it has is taken to have no end: it refuses what it cannot give.
    """
    limits = [ADDRESSES]
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in CONTAINERS:
        with suppress(OSError, ValueError):  # not there, or `max`
            limits.append(int(Path(file).read_text()))
    return min(size for size in limits if size > 0)


def in_each_step(name: str, step: Floats, n_steps: int) -> Floats:
    """`n_steps` times the same array, along a new first axis, without a copy."""
    require_whole("n_steps", n_steps, 1)
    if n_steps * max(step.nbytes, 1) >= ADDRESSES:
        raise InvalidInput(f"{n_steps}; {name} of so many steps has more entries than can be counted", "n_steps")
    return np.broadcast_to(step, (n_steps, *step.shape))


def one_hot(actions: NDArray[np.integer], n_actions: int) -> Policies:
    """The deterministic policy `actions[..., s]` as chances `[..., s, a]`."""
    policy: Policies = _identity(n_actions)[np.asarray(actions)]
    return policy


@cache
def _identity(n: int) -> Floats:
    """The rows of the actions, and one of zeros for the action -1: none."""
    return np.eye(n + 1, n)


def step_major(n: int, shape: tuple[int, int, int]) -> Costs:
    """Uninitialized costs `[n, h, s, a]`, laid out step by step: what batched sweeps read fastest."""
    steps, states, actions = shape
    return np.empty((steps, n, states, actions)).transpose(1, 0, 2, 3)


def located(axes: str, place: Sequence[np.intp]) -> str:
    """An index with the names of its axes: `[h=0, s=2, a=1]`."""
    return "[" + ", ".join(f"{axis}={int(i)}" for axis, i in zip(axes, place, strict=True)) + "]"


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size < ADDRESSES else f"{size / 2**30:.3g} GiB"


def _brackets(axes: str) -> str:
    return "[" + ", ".join(axes) + "]"
