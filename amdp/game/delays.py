"""Delays: how many rounds late the feedback of each round arrives.

The feedback of round `k` is there at the end of round `k + d_k`; with `d_k = 0` in its own round. What would arrive
after the last round is never seen. Rounds count from 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp.arrays import require_room, require_whole
from amdp.errors import InvalidInput
from amdp.text import suggestion

Ints = NDArray[np.int64]

LONGEST = 10**18  # far beyond any game, and sums with a round's number still fit in 64 bits


@dataclass(frozen=True, eq=False, repr=False)
class Delays:
    """The delays `values[k] = d_k >= 0` of `K` rounds."""

    values: Ints

    def __post_init__(self) -> None:
        values = _whole_numbers(self.values)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Delays of {len(self)} rounds, {self.total} in total"

    @cached_property
    def total(self) -> int:
        """The sum of all `d_k`: script D of the bounds."""
        # Halves of 32 bits: a sum of huge delays must not wrap around.
        return (int((self.values >> 32).sum()) << 32) + int((self.values & 0xFFFFFFFF).sum())

    @cached_property
    def total_within(self) -> int:
        """The sum of `min(d_k, K - 1 - k)`: how often a round begins without the feedback of an earlier one."""
        return int(np.minimum(self.values, np.arange(len(self))[::-1]).sum())

    def arrivals(self, k: int) -> Ints:
        """The rounds whose feedback arrives at the end of round `k`, in order."""
        if not 0 <= k < len(self):
            raise InvalidInput(f"arrivals of round {k!r} were asked for; rounds are 0 .. {len(self) - 1}")
        rounds, starts = self.by_arrival
        return rounds[starts[k] : starts[k + 1]]

    @cached_property
    def by_arrival(self) -> tuple[Ints, Ints]:
        """The rounds sorted by arrival, and where the arrivals of each round start."""
        n_rounds = len(self)
        arrival = np.arange(n_rounds) + np.minimum(self.values, n_rounds)
        rounds = np.argsort(arrival, kind="stable")
        rounds.flags.writeable = False
        return rounds, np.searchsorted(arrival[rounds], np.arange(n_rounds + 1))

    def __reduce__(self) -> tuple[Any, ...]:
        return Delays, (self.values,)


def none(rounds: int) -> Delays:
    """No delay: `d_k = 0`."""
    return fixed(rounds, 0)


def fixed(rounds: int, delay: int) -> Delays:
    """The same delay in all rounds: `d_k = delay`."""
    require_rounds(rounds)
    require_whole("delay", delay, 0, LONGEST)
    return Delays(np.full(rounds, delay))


def uniform(rounds: int, low: int, high: int, rng: np.random.Generator) -> Delays:
    """Each `d_k` uniform on `low .. high`, both included."""
    require_rounds(rounds)
    require_whole("low", low, 0, LONGEST)
    require_whole("high", high, low, LONGEST)
    return Delays(rng.integers(low, high, size=rounds, endpoint=True))


def geometric(rounds: int, mean: float, rng: np.random.Generator) -> Delays:
    """Each `d_k` geometric from 0 on: `P(d_k = i) = p (1 - p)^i` with `p = 1 / (1 + mean)`."""
    require_rounds(rounds)
    if not 0.0 <= mean <= 1e15:  # beyond it numpy's whole numbers end
        raise InvalidInput(f"mean = {mean!r}; it must be between 0 and 1e15")
    return Delays(rng.geometric(1.0 / (1.0 + mean), size=rounds) - 1)


def bursts(rounds: int, every: int, length: int) -> Delays:
    """Feedback held back and released together: of every `every` rounds, the first `length` report with their last.

    `d_k = max(0, length - 1 - k mod every)`.
    """
    require_rounds(rounds)
    require_whole("length", length, 1, LONGEST)
    require_whole("every", every, length, LONGEST)
    return Delays(np.maximum(length - 1 - np.arange(rounds) % every, 0))


def one_huge(rounds: int, at: int, delay: int) -> Delays:
    """One late feedback: `d_at = delay`, and 0 elsewhere."""
    require_rounds(rounds)
    require_whole("at", at, 0, rounds - 1)
    require_whole("delay", delay, 0, LONGEST)
    return Delays(np.where(np.arange(rounds) == at, delay, 0))


def all_at_end(rounds: int) -> Delays:
    """Everything arrives at the end of the last round: `d_k = K - 1 - k`."""
    require_rounds(rounds)
    return Delays(np.arange(rounds)[::-1])


def recorded(values: ArrayLike, rounds: int | None = None) -> Delays:
    """Delays that were written down; `rounds`, if given, must be their number."""
    delays = Delays(_whole_numbers(values))
    if rounds is not None and len(delays) != rounds:
        raise InvalidInput(f"delays has {len(delays)} entries; there are {rounds} rounds")
    return delays


def parse(text: str, rounds: int, rng: np.random.Generator) -> Delays:
    """The delays that a text asks for, such as `fixed:50`; see `FORMS`."""
    name, *rest = text.strip().split(":")
    for form, make in FORMS.items():
        known, *expected = form.split(":")
        if name == known and len(rest) == len(expected):
            return make(rounds, *(_number(text, part) for part in rest), *([rng] if make in RANDOM else []))
    raise _unknown(text)


FORMS: dict[str, Callable[..., Delays]] = {
    "none": none,
    "fixed:DELAY": fixed,
    "uniform:LOW:HIGH": uniform,
    "geometric:MEAN": geometric,
    "bursts:EVERY:LENGTH": bursts,
    "one-huge:AT:DELAY": one_huge,
    "all-at-end": all_at_end,
}
RANDOM = (uniform, geometric)  # these take a generator last


def _number(text: str, part: str) -> int | float:
    try:
        return int(part) if part.strip().lstrip("+-").isdigit() else float(part)
    except ValueError as problem:
        raise _unknown(text) from problem


def require_rounds(rounds: int) -> None:
    """Refuse a number of rounds for which there is no room: delays stand in memory as given, and by arrival."""
    require_whole("rounds", rounds, 1, LONGEST)
    require_room("delays", (rounds,), 5)


def _unknown(text: str) -> InvalidInput:
    word, known = text.partition(":")[0], [form.partition(":")[0] for form in FORMS]
    near = "" if word in known else suggestion(word, known)  # otherwise the numbers behind it are wrong
    return InvalidInput(f"no delays {text!r}; {near}known forms: {', '.join(FORMS)}")


def _whole_numbers(values: ArrayLike) -> Ints:
    try:
        array = np.asarray(values)
    except ValueError as problem:
        raise InvalidInput(f"delays is not a list of numbers: {problem}") from problem
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf":
        raise InvalidInput(f"delays is {array.dtype} of shape {array.shape}; expected one whole number for each round")
    fine = (array >= 0) & (array == np.floor(array)) & (array <= LONGEST)
    if not fine.all():
        k = int(np.argmin(fine))
        raise InvalidInput(f"delays[k={k}] = {array[k].item()!r}; it must be a whole number, 0 .. {LONGEST}")
    return array.astype(np.int64)
