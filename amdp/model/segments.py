"""Parts of a trajectory: pairs that were visited, segments of consecutive steps, and the place that a stream is at."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Policies
from amdp.errors import InvalidInput

Shape = tuple[int, int, int]  # steps, states, actions


@dataclass(frozen=True, eq=False)
class Pairs:
    """A list of `m` places: steps, states, actions."""

    steps: NDArray[np.int64]
    states: NDArray[np.int64]
    actions: NDArray[np.int64]

    def __post_init__(self) -> None:
        _freeze_integers(self, "steps", "states", "actions")

    @classmethod
    def all(cls, shape: Shape) -> Self:
        """Every `(h, s, a)`, in C order."""
        return cls(*(axis.reshape(-1) for axis in np.indices(shape)))


@dataclass(frozen=True, eq=False)
class Segment:
    """What was seen while one policy was played: the states and actions of consecutive steps."""

    states: NDArray[np.int64]  # [m]
    actions: NDArray[np.int64]  # [m]
    start: int = 0  # the step of the first entry

    def __post_init__(self) -> None:
        _freeze_integers(self, "states", "actions")

    @property
    def stop(self) -> int:
        """The step after the last entry."""
        return self.start + len(self.states)

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The visited pairs, as an index into arrays `[h, s, a]`."""
        return np.arange(self.start, self.stop), self.states, self.actions

    @property
    def pairs(self) -> Pairs:
        """The visited pairs with their steps."""
        return Pairs(*self.places)


@dataclass(frozen=True, eq=False)
class Place:
    """The step and state of a stream before its next round, and the policy that is being followed."""

    time: int
    state: int
    policy: Policies | None = field(default=None, repr=False)  # [s, a], the one being followed; None: none was entered


class Visit(NamedTuple):
    """A round of a stream: the steps of the switch, those that followed the policy, and the place at its end."""

    entering: Segment
    segment: Segment
    place: Place


@dataclass(frozen=True, eq=False)
class Step(Segment):
    """One step of a stream, for learners that choose anew in each; it stands at step 0 of its table."""

    time: int = field(kw_only=True)
    reached: int = field(kw_only=True)  # the state after it


def _freeze_integers(owner: object, *names: str) -> None:
    """Turn the named fields into int64 arrays of one axis and one length, or refuse them."""
    given = [getattr(owner, name) for name in names]
    if all(type(it) is np.ndarray and it.dtype == np.int64 and it.shape == (given[0].size,) for it in given):
        return  # nearly always, and this is asked in every round
    arrays = [np.asarray(it) for it in given]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) != len(arrays[0]):
            raise InvalidInput(
                f"{name} has shape {array.shape} of {array.dtype}; "
                f"{', '.join(names)} must be lists of whole numbers of one length"
            )
        object.__setattr__(owner, name, array.astype(np.int64, copy=False))


NOWHERE = Segment(np.empty(0, np.int64), np.empty(0, np.int64))  # no steps
