"""The reach of states: the greatest chance, over all policies, of being in a state at a step.

    rho^h(s) = max_pi P_pi(s_h = s),     C_h = sum_s rho^h(s),    1 <= C_h <= S

`C_h` says what geometric resampling costs FTPL: with trials scaled by the reach a step takes about `A C_h` of them on
average, without it up to `A` times the states within reach (`amdp reach` prints both). On dense random kernels `C_h` is
a small number at every size; where moves are deterministic it is the number of states within reach, and nothing is
gained.

The objects below give resampling its trials: chances `x` of a visit whose mean is that of the pair, and bounds on
them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Actions, Bools, Floats, one_hot, require_index
from amdp.kernels.rows import IntervalRows, SparseRows, TwoStepRows
from amdp.kernels.threads import multiply
from amdp.model.chains import stationary_visits
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.dynamics import CompiledDynamics, Dynamics
from amdp.model.segments import Segment
from amdp.model.transitions import Kernel, SingleKernel, SparseKernel

BATCH = 32  # trials made together: as fast as larger batches, and fewer of them are not needed
BATCH_FACTOR = 4.0  # no batch is longer than so many times the expected number of trials
BOX_BATCH = 8  # the same over a box, where plans are made one by one
BATCH_NUMBERS = 4_000_000  # perturbed costs over a long horizon are large: no batch holds more of them, if it can
LOOK_BACK = 16  # steps over which the reach of a stream is followed back, from the state that is best for it


def reach(dynamics: Dynamics, initial: int = 0) -> Floats:
    """The reach `[h, s]` of every state at every step; over a set of kernels, the greatest that one of them allows."""
    steps, states, actions = dynamics.shape
    require_index("initial", initial, states)
    result = np.empty((steps, states))
    size = max(1, BATCH_NUMBERS // (states * actions))  # targets whose expectations are held together
    for low in range(0, states, size):
        targets = slice(low, min(low + size, states))
        if isinstance(dynamics, SingleKernel) and dynamics.is_homogeneous:  # then one pass over lags serves all steps
            for lag, chances in enumerate(_backwards(dynamics, steps - 1, targets)):
                result[lag, targets] = chances[:, initial]
        else:
            for step in range(steps):
                *_, chances = _backwards(dynamics, step, targets)
                result[step, targets] = chances[:, initial]
    return np.minimum(result, 1.0)


def _backwards(dynamics: Dynamics, step: int, targets: slice) -> Iterator[Floats]:
    """The greatest chance `[target, state]` of being at each target at `step`, from a state so many steps earlier."""
    chances = np.eye(dynamics.shape[1])[targets]
    yield chances
    for h in reversed(range(step)):
        chances = 0.0 - dynamics.least_expectation(h, -chances).min(axis=-1)  # no -0.0
        yield chances


class Scaled(NamedTuple):
    """Bounds `c` that are multiples of `1 / limit`, and `N = c * limit`.

    A pair that was visited has a bound above 0, but for rounding: it has one trial at least.
    """

    bounds: Floats
    limits: NDArray[np.int64]

    @classmethod
    def to(cls, limit: int, bounds: Floats) -> Self:
        """Round up."""
        limits = np.maximum(1, np.ceil(bounds * limit)).astype(np.int64)
        return cls(limits / limit, limits)


class Reach(ABC):
    """What scaled resampling asks of the dynamics."""

    def batches(self, segment: Segment) -> NDArray[np.int64]:
        """How many trials each pair of a segment asks for at a time, `[m]`."""
        return np.full(len(segment.states), BATCH)

    def path_numbers(self, segment: Segment) -> int:
        """Random numbers that a trial takes to find its chances."""
        return 0

    @abstractmethod
    def bounds(self, segment: Segment) -> Floats:
        """What no chance of a trial exceeds, `[m]`, for each pair of a segment."""

    def scaled(self, segment: Segment, limit: int) -> "Scaled":
        """These bounds rounded up to multiples of `1 / limit`, and the limits of the pairs' trials."""
        return Scaled.to(limit, self.bounds(segment))

    @abstractmethod
    def chances(self, actions: Actions, segment: Segment, wanted: Bools, uniforms: Floats) -> Floats:
        """Chances `[n, m]` of the pairs under the policies `[n, h, s]`, or `[n, s]`; 0 where not `wanted`."""

    def after(self, segment: Segment, dynamics: Dynamics) -> "Reach":
        """The same for the round after a segment, when the dynamics are narrower."""
        return self


@dataclass(frozen=True, eq=False)
class CompiledReach(Reach):
    """Chances by compiled loops, over rows of one kind."""

    dynamics: CompiledDynamics
    initial: int

    @property
    @abstractmethod
    def rows(self) -> TwoStepRows | SparseRows | IntervalRows:
        """The rows as the loops read them."""

    def chances(self, actions: Actions, segment: Segment, wanted: Bools, uniforms: Floats) -> Floats:
        by_step = np.ascontiguousarray(actions.transpose(1, 2, 0), dtype=np.int32)
        pairs = self.initial, segment.start, segment.states, segment.actions
        out = np.empty(wanted.shape)
        kernels.reach.chances(self.rows, by_step, self.dynamics.shape[2], *pairs, wanted, uniforms, out)
        return out

    def _greatest(self, steps: NDArray[np.int64], states: NDArray[np.int64]) -> Floats:
        """The reach `[m]` of each of the states at its step."""
        out = np.empty(len(steps))
        _, n_states, n_actions = self.dynamics.shape
        kernels.reach.reach(self.dynamics.rows, n_actions, n_states, self.initial, steps, states, out)
        return out


@dataclass(frozen=True, eq=False)
class TwoStepReach(CompiledReach):
    """Over a dense kernel: paths are drawn but for their last two steps, which are summed over.

    A chance is that of the pair given the state two steps earlier; its bound is the greatest over those states.
    """

    dynamics: Kernel

    @cached_property
    def rows(self) -> TwoStepRows:
        kernel = self.dynamics
        return TwoStepRows(kernel.paths.cumulative, kernel.leader_rows.chances, kernel.rows.chances)

    def path_numbers(self, segment: Segment) -> int:
        return segment.stop

    def batches(self, segment: Segment) -> NDArray[np.int64]:
        return self._batches[segment.start : segment.stop]

    @cached_property
    def _batches(self) -> NDArray[np.int64]:
        """`[h]`: a step takes `A C_h` trials on average; in the first step, with one state, that is few."""
        expected = self.dynamics.shape[2] * self._bounds.sum(axis=1)
        return np.asarray(np.minimum(BATCH, np.ceil(BATCH_FACTOR * expected)), dtype=np.int64)

    def bounds(self, segment: Segment) -> Floats:
        return self._bounds[np.arange(segment.start, segment.stop), segment.states]

    def scaled(self, segment: Segment, limit: int) -> Scaled:
        at = np.arange(segment.start, segment.stop), segment.states
        bounds, limits = self._scaled(limit)
        return Scaled(bounds[at], limits[at])

    def every(self, limit: int) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        """Bounds and limits `[h, s]`, and batches `[h]`, for the pairs of whole episodes."""
        return *self._scaled(limit), self._batches

    def _scaled(self, limit: int) -> Scaled:
        """All of them, `[h, s]`: most learners have one limit."""
        last: tuple[int, Scaled] | None = vars(self).get("_last")
        if last is None or last[0] != limit:
            last = limit, Scaled.to(limit, self._bounds)
            object.__setattr__(self, "_last", last)
        return last[1]

    @cached_property
    def _bounds(self) -> Floats:
        """`[h, s]`; the first two steps have one policy's chances from the initial state."""
        steps, states, actions = self.dynamics.shape
        bounds = np.zeros((steps, states))
        bounds[0, self.initial] = 1.0
        first = slice(self.initial * actions, (self.initial + 1) * actions)
        if steps > 1:
            bounds[1] = self.dynamics.matrix(0)[first].max(axis=0)
        later: Floats | None = None
        for h in range(2, steps):
            if later is None or not self.dynamics.is_homogeneous:
                best = self.dynamics.p[h - 1].max(axis=1)  # [z, s]
                within = multiply(self.dynamics.matrix(h - 2), best)
                later = within.max(axis=0)
            bounds[h] = within[first].max(axis=0) if h == 2 else later
        return np.minimum(bounds, 1.0)


@dataclass(frozen=True, eq=False)
class ForwardReach(CompiledReach):
    """Over a sparse kernel: the exact chances of a policy by one forward sweep, a share of `1/A` of its plan."""

    dynamics: SparseKernel
    _known: Floats = field(init=False, repr=False)  # [h, s], NaN where it was not asked for yet

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", np.full(self.dynamics.shape[:2], np.nan))

    @property
    def rows(self) -> SparseRows:
        return self.dynamics.rows

    def bounds(self, segment: Segment) -> Floats:
        """The reach, found when it is first asked for: all of them would take `S` sweeps."""
        at = np.arange(segment.start, segment.stop), segment.states
        for h, s in zip(*at, strict=True):
            if np.isnan(self._known[h, s]):
                self._find(int(h), int(s))
        return self._known[at]

    def _find(self, h: int, s: int) -> None:
        steps, states, actions = self.dynamics.shape
        if self.dynamics.is_homogeneous:
            lags = np.empty((steps, 2))
            kernels.reach.reach_by_lag(self.dynamics.rows, actions, states, self.initial, s, lags)
            self._known[:, s] = lags[:, 0]
        else:
            self._known[h, s] = self._greatest(np.array([h]), np.array([s]))[0]


@dataclass(frozen=True, eq=False)
class BoxReach(CompiledReach):
    """Over a box: upper occupancy bounds of a policy, and the greatest over policies and kernels of the box.

    Boxes are nested, so that a bound of an older box stands. It is found again when the visits of its state have
    more than doubled, to make it smaller, and after a fallback, since rows may have become wider then.
    """

    dynamics: BernsteinBox
    known: Floats = field(repr=False)  # [h, s], NaN where none stands
    visits: Floats = field(repr=False)  # [h, s], of the state when its bound was found

    def batches(self, segment: Segment) -> NDArray[np.int64]:
        return np.full(len(segment.states), BOX_BATCH)

    @classmethod
    def unknown(cls, box: BernsteinBox, initial: int) -> "BoxReach":
        """No bound was asked for yet."""
        return cls(box, initial, np.full(box.shape[:2], np.nan), np.zeros(box.shape[:2]))

    @property
    def rows(self) -> IntervalRows:
        return self.dynamics.rows

    def bounds(self, segment: Segment) -> Floats:
        return self._refreshed(segment).known[np.arange(segment.start, segment.stop), segment.states]

    def after(self, segment: Segment, dynamics: Dynamics) -> "BoxReach":
        assert isinstance(dynamics, BernsteinBox)
        if dynamics.fallbacks != self.dynamics.fallbacks:
            return BoxReach.unknown(dynamics, self.initial)
        fresh = self._refreshed(segment)
        return BoxReach(dynamics, self.initial, fresh.known, fresh.visits)

    def _refreshed(self, segment: Segment) -> "BoxReach":
        """With bounds for all pairs of a segment: weights and observation of a round ask for the same ones."""
        last: tuple[Segment, BoxReach] | None = vars(self).get("_last")
        if last is None or last[0] is not segment:
            last = segment, self._found(segment)
            object.__setattr__(self, "_last", last)
        return last[1]

    def _found(self, segment: Segment) -> "BoxReach":
        known, visits = self.known.copy(), self.visits.copy()
        pairs = self.dynamics.visits, self.initial, segment.start, segment.states
        kernels.reach.refresh_bounds(self.rows, *pairs, known, visits)
        return BoxReach(self.dynamics, self.initial, known, visits)


@dataclass(frozen=True, eq=False)
class AnyReach(Reach):
    """Over any other set of kernels: the greatest visit chances, bounded by 1."""

    dynamics: Dynamics
    initial: int

    def bounds(self, segment: Segment) -> Floats:
        return np.ones(len(segment.states))

    def chances(self, actions: Actions, segment: Segment, wanted: Bools, uniforms: Floats) -> Floats:
        policies = one_hot(actions, self.dynamics.shape[2])
        return np.where(wanted, self.dynamics.greatest_visits(policies, self.initial, segment.pairs), 0.0)

    def after(self, segment: Segment, dynamics: Dynamics) -> "AnyReach":
        return AnyReach(dynamics, self.initial)


@dataclass(frozen=True, eq=False)
class StationaryReach(Reach):
    """Stationary policies of a stream: exact chances; bounds by the reach over the last steps, from any state.

    The state `LOOK_BACK` steps earlier may be any, so that the bounds hold however a policy came to be followed; not
    given the state in which it was entered.
    """

    domain: StationaryPolicies

    def batches(self, segment: Segment) -> NDArray[np.int64]:
        return np.full(len(segment.states), min(BATCH, max(1, BATCH_NUMBERS // prod(self.domain.shape))))

    def bounds(self, segment: Segment) -> Floats:
        return self._bounds[np.minimum(np.arange(segment.start, segment.stop), LOOK_BACK), segment.states]

    @cached_property
    def _bounds(self) -> Floats:
        """`[t, s]` for the first steps, whose last entry bounds all later ones."""
        _, states, actions = self.domain.shape
        bounds, lags = np.empty((LOOK_BACK + 1, states)), np.empty((LOOK_BACK + 1, 2))
        for s in range(states):
            kernels.reach.reach_by_lag(self.domain.dynamics.rows, actions, states, self.domain.initial, s, lags)
            bounds[:, s] = lags[:, 0]
            bounds[LOOK_BACK, s] = lags[LOOK_BACK, 1]
        return bounds

    def chances(self, actions: Actions, segment: Segment, wanted: Bools, uniforms: Floats) -> Floats:
        return np.where(wanted, stationary_visits(self.domain, actions, segment.pairs), 0.0)


def reach_of(domain: Domain) -> Reach:
    """How scaled resampling finds chances and their bounds over a domain."""
    if isinstance(domain, StationaryPolicies):
        return StationaryReach(domain)
    if isinstance(domain.dynamics, Kernel):
        return TwoStepReach(domain.dynamics, domain.initial)
    if isinstance(domain.dynamics, SparseKernel):
        return ForwardReach(domain.dynamics, domain.initial)
    if isinstance(domain.dynamics, BernsteinBox):
        return BoxReach.unknown(domain.dynamics, domain.initial)
    return AnyReach(domain.dynamics, domain.initial)
