"""Episodes whose kernel changes from round to round: beyond the paper, which keeps transitions fixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.game.arenas import Episodic, RoundByRound
from amdp.game.delays import Delays
from amdp.game.rounds import Round
from amdp.losses import LossSequence
from amdp.model.domains import MarkovPolicies
from amdp.model.segments import Place, Visit
from amdp.model.transitions import SingleKernel


@dataclass(frozen=True, eq=False)
class Evolving(RoundByRound):
    """Every round starts again from the initial state, under the kernel `kernels[schedule[k]]`.

    A learner is told one kernel or a box of its own; nobody tells it of the schedule. Regret is measured by
    `amdp.game.dynamic_regret`: no planner finds the best policy for several kernels from a sum of losses.
    """

    kernels: tuple[SingleKernel, ...]
    schedule: NDArray[np.int64]  # [k], the kernel of each round
    initial: int = 0
    oracle: ClassVar[str] = "dp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        object.__setattr__(self, "schedule", _schedule(self.schedule, len(self.kernels)))
        shapes = {arena.kernel.shape for arena in self._arenas}
        if len(shapes) > 1:
            raise InvalidInput(f"kernels have the shapes {sorted(shapes)}; an arena has one")

    @cached_property
    def _arenas(self) -> tuple[Episodic, ...]:
        return tuple(Episodic(kernel, self.initial) for kernel in self.kernels)

    @property
    def kernel(self) -> SingleKernel:
        """That of the first round."""
        return self.kernels[int(self.schedule[0])]

    @property
    def domain(self) -> MarkovPolicies:
        """All Markov policies, over the kernel of the first round."""
        return MarkovPolicies(self.kernel, self.initial)

    def gather(self, total: Floats, table: Floats, k: int) -> None:
        """Refused: a sum of losses does not say under which kernel each was met."""
        raise InvalidInput("kernels change, so that losses cannot be summed; measure with amdp.game.dynamic_regret")

    def require_fits(self, losses: LossSequence, delays: Delays | None) -> None:
        """Losses have the shape of the kernels, and a kernel each."""
        self._arenas[0].require_fits(losses, delays)
        if len(losses) != len(self.schedule):
            raise InvalidInput(f"schedule has {len(self.schedule)} rounds; the losses have {len(losses)}")

    def visit(self, place: Place, policy: Policies, rng: np.random.Generator) -> Visit:
        """One episode under the kernel of its round; the same luck as in `Episodic`."""
        entering, segment, _ = self._arenas[self.schedule[place.time]].visit(place, policy, rng)
        return Visit(entering, segment, Place(place.time + 1, self.initial))

    def charged(self, played: Sequence[Round], tables: Sequence[Floats]) -> Floats:
        """The exact expected losses of the policies, each under the kernel of its round."""
        paid = np.empty(len(played))
        which = self.schedule[[one.k for one in played]]
        for i in np.unique(which):
            rounds = np.flatnonzero(which == i).tolist()
            paid[rounds] = self._arenas[i].charged([played[r] for r in rounds], [tables[r] for r in rounds])
        return paid


def _schedule(given: ArrayLike, kernels: int) -> NDArray[np.int64]:
    schedule = np.asarray(given)
    if schedule.ndim != 1 or len(schedule) == 0 or schedule.dtype.kind not in "iu":
        raise InvalidInput("schedule must be a list of whole numbers, one a round")
    outside = (schedule < 0) | (schedule >= kernels)
    if outside.any():
        k = int(outside.argmax())
        raise InvalidInput(f"schedule[{k}] = {schedule[k]}; there are {kernels} kernels, counted from 0")
    frozen = schedule.astype(np.int64)
    frozen.setflags(write=False)
    return frozen
