"""What an oracle needs of the dynamics: backward sweeps, visit chances, and what remains possible after data.

One kernel or a set of kernels: both are `Dynamics`, and the sweeps over their rows are compiled.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Actions, Bools, Costs, Floats, Policies, Values, one_hot, require_finite, require_index
from amdp.errors import InvalidInput
from amdp.kernels.rows import IntervalRows, LeaderRows, Paths, Rows
from amdp.model.segments import Pairs, Segment, Shape


class Sweep(NamedTuple):
    """The result of one backward sweep over a batch of costs."""

    actions: Actions  # [n, h, s]
    values: Values  # [n, h, s]
    shortfall: Floats  # [n], at most 0: no policy is cheaper than the swept one by more


@runtime_checkable
class Dynamics(Protocol):
    """One transition kernel, or a confidence set of kernels, of which a plan may choose the cheapest."""

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""

    def least_expectation(self, h: int, values: Floats) -> Floats:
        """`[n, y] -> [n, s, a]`: the least expected value of the next state."""

    def cheapest(self, costs: Costs) -> Sweep:
        """Backward induction: the cheapest action everywhere, the first of those that differ by rounding only."""

    def follow(self, costs: Costs, wanted: Actions, slack: Floats) -> Sweep:
        """The sweep of given actions (-1: free); the first cheapest replaces one that costs at most `slack[n]` more."""

    def greatest_visits(self, policies: Policies, initial: int, pairs: Pairs) -> Floats:
        """`[n, m]`: the greatest chance, over the kernels in the set, of being at each pair."""

    def meets(
        self, actions: Actions, initial: int, segment: Segment, steps: NDArray[np.int64], uniforms: Floats
    ) -> Bools:
        """Whether policy `i` of `[n, h, s]` visits pair `steps[i]` of the segment; `uniforms[n, stop]` decide."""

    def meets_all(self, actions: Actions, initial: int, segment: Segment, uniforms: Floats) -> Bools:
        """Whether each of the policies `[n, h, s]` visits each pair of the segment; `uniforms[n, stop]` decide."""

    def narrow(self, segment: Segment) -> Self:
        """What remains possible after a segment was seen."""

    def require_closed(self, initial: int) -> None:
        """Refuse dynamics that lead from `initial` to a place with no way on."""


class CompiledDynamics(Dynamics):
    """The sweeps, for dynamics whose rows the compiled kernels can read."""

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """The rows as the compiled sweeps read them."""

    @property
    @abstractmethod
    def leader_rows(self) -> LeaderRows:
        """The rows as sweeps of perturbed leaders read them: see `amdp.kernels.leaders`."""

    def least_expectation(self, h: int, values: Floats) -> Floats:
        steps, states, actions = self.shape
        require_index("h", h, steps)
        if values.ndim != 2 or values.shape[1] != states:
            raise InvalidInput(f"values has shape {values.shape}; expected (n, {states})")
        out = np.empty((len(values), states * actions))
        kernels.sweeps.expectations(self.rows, h, np.ascontiguousarray(values), out)
        return out.reshape(-1, states, actions)

    def cheapest(self, costs: Costs) -> Sweep:
        self._require_shape("costs", costs, self.shape)
        laid, by_step = _laid_out(costs)
        actions, values = _step_major(costs.shape)
        if not kernels.sweeps.induct(self.rows, laid, by_step, actions, values):
            _refuse_costs(costs)
        return Sweep(actions.swapaxes(0, 1), values.swapaxes(0, 1), np.zeros(len(costs)))

    def follow(self, costs: Costs, wanted: Actions, slack: Floats) -> Sweep:
        n = len(costs)
        self._require_shape("costs", costs, self.shape)
        self._require_shape("actions", wanted, self.shape[:2])
        if len(wanted) != n or len(slack) != n:
            raise InvalidInput(f"{n} costs, {len(wanted)} policies, {len(slack)} slacks; give as many of each")
        if wanted.min() < -1 or wanted.max() >= self.shape[2]:
            raise InvalidInput(f"actions run from {wanted.min()} to {wanted.max()}; they are 0 to {self.shape[2] - 1}")
        laid, by_step = _laid_out(costs)
        actions, values = _step_major(costs.shape)
        shortfall = np.empty(len(costs))
        by_steps = np.ascontiguousarray(wanted.transpose(1, 0, 2), dtype=np.int32)
        if not kernels.sweeps.follow(self.rows, laid, by_step, by_steps, slack, actions, values, shortfall):
            _refuse_costs(costs)
        return Sweep(actions.swapaxes(0, 1), values.swapaxes(0, 1), shortfall)

    @property
    @abstractmethod
    def meeting_rows(self) -> Paths | IntervalRows:
        """The rows by which resampling trials meet pairs: see `amdp.kernels.meetings`."""

    def meets(
        self, actions: Actions, initial: int, segment: Segment, steps: NDArray[np.int64], uniforms: Floats
    ) -> Bools:
        met = np.empty(len(actions), dtype=bool)
        require_places("steps", "m", (steps,), (len(segment.states),))
        kernels.meetings.meets(*self._simulated(actions, initial, segment, uniforms), steps, uniforms, met)
        return met

    def meets_all(self, actions: Actions, initial: int, segment: Segment, uniforms: Floats) -> Bools:
        met = np.empty((len(actions), len(segment.states)), dtype=bool)
        kernels.meetings.meets_all(*self._simulated(actions, initial, segment, uniforms), uniforms, met)
        return met

    def _simulated(self, actions: Actions, initial: int, segment: Segment, uniforms: Floats) -> tuple[Any, ...]:
        """What a simulation reads; policies `[h, s, n]`, as leaders are left in memory."""
        self._require_shape("actions", actions, self.shape[:2])
        require_index("initial", initial, self.shape[1])
        require_places("segment", "hsa", segment.places, self.shape)
        if len(uniforms) < len(actions) or uniforms.shape[1] < segment.stop:
            raise InvalidInput(f"uniforms has shape {uniforms.shape}; expected ({len(actions)}, {segment.stop})")
        by_step = np.ascontiguousarray(actions.transpose(1, 2, 0), dtype=np.int32)
        return self.meeting_rows, by_step, self.shape[2], initial, segment.start, segment.states, segment.actions

    def _require_shape(self, name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
        # Compiled code does not look: a wrong shape would read foreign memory.
        if array.ndim != len(shape) + 1 or array.shape[1:] != shape or len(array) == 0:
            raise InvalidInput(f"{name} has shape {array.shape}; expected (n, {', '.join(map(str, shape))})")


class ConfidenceSet(Dynamics):
    """Kernels that data have not ruled out: a trial meets a pair with the greatest chance that any of them allows."""

    visits: NDArray[np.int64] | None  # [h, s, a, y], transitions seen so far

    def meets(
        self, actions: Actions, initial: int, segment: Segment, steps: NDArray[np.int64], uniforms: Floats
    ) -> Bools:
        met, policies = np.empty(len(actions), dtype=bool), one_hot(actions, self.shape[2])
        for step in sorted(set(steps.tolist())):
            chosen = steps == step
            pair = Pairs(*(axis[step : step + 1] for axis in segment.places))
            chances = self.greatest_visits(policies[chosen], initial, pair)
            met[chosen] = uniforms[chosen, step] < chances[:, 0]
        return met

    def meets_all(self, actions: Actions, initial: int, segment: Segment, uniforms: Floats) -> Bools:
        chances = self.greatest_visits(one_hot(actions, self.shape[2]), initial, segment.pairs)
        return uniforms[:, segment.start :] < chances

    def counted(self, segment: Segment) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """The visits `[h, s, a, y]` with those of a segment added, and the rows `[m]` that it visited, none twice."""
        assert self.visits is not None
        places = np.asarray(np.ravel_multi_index(require_moves(segment, self.shape), self.visits.shape))
        visits = self.visits.copy()
        visits.reshape(-1)[places] += 1
        return visits, places // self.shape[1]

    def require_closed(self, initial: int) -> None:
        """Nothing to refuse: every row holds a distribution."""

    def __repr__(self) -> str:
        return describe(self)


def describe(dynamics: Dynamics, kind: str = "") -> str:
    """The type and the sizes of dynamics."""
    steps, states, actions = dynamics.shape
    return f"{type(dynamics).__name__}({kind}{steps} steps, {states} states, {actions} actions)"


def require_places(name: str, axes: str, places: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> None:
    """Refuse indices outside `sizes`: compiled loops would go past the end of their arrays."""
    for axis, index, size in zip(axes, places, sizes, strict=True):
        if index.size and not 0 <= index.min() <= index.max() < size:
            raise InvalidInput(f"{name} has {axis} = {index.min()} .. {index.max()}; expected 0 .. {size - 1}")


def require_moves(segment: Segment, shape: Shape) -> tuple[NDArray[np.integer], ...]:
    """The steps, states, actions and next states of a segment; refused where one is outside the shape."""
    at = np.arange(segment.start, segment.stop - 1)
    moves = at, segment.states[:-1], segment.actions[:-1], segment.states[1:]
    require_places("segment", "hsay", moves, (*shape, shape[1]))
    return moves


def read_only(array: Floats) -> Floats:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def by_row(array: NDArray[Any]) -> NDArray[Any]:
    """A view `[hsa, y]` of a whole array `[h, s, a, y]`."""
    return array.reshape(-1, array.shape[-1])


def next_state_first(rows: Floats) -> Floats:
    """A new array `[h, y, s*a]` of rows `[h, s, a, y]`: what a sweep multiplies values with."""
    steps, states, actions, _ = rows.shape
    return np.array(rows.transpose(0, 3, 1, 2), order="C").reshape(steps, states, states * actions)


def _refuse_costs(costs: Costs) -> None:
    """Refuse costs that are not finite, or whose sums are not."""
    require_finite("costs", costs, "nhsa")
    raise InvalidInput(f"costs reach {np.abs(costs).max():g}; their sums over steps and actions overflow")


def _step_major(shape: tuple[int, ...]) -> tuple[Actions, Floats]:
    n, steps, states, _ = shape
    return np.empty((steps, n, states), dtype=np.int32), np.empty((steps, n, states))


def _laid_out(costs: Costs) -> tuple[Floats, bool]:
    """Costs as the sweeps read them: `[h, n, s, a]` if they lie so in memory, else `[n, h, s, a]`."""
    swapped = costs.swapaxes(0, 1)
    by_step = swapped.flags.c_contiguous
    laid = swapped if by_step else np.ascontiguousarray(costs)
    # A read-only array is another type to the compiler: a copy is cheaper than compiling all kernels twice.
    return laid if laid.flags.writeable else laid.copy(), by_step
