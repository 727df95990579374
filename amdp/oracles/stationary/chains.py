"""A homogeneous kernel, a start and costs, in the form that all compiled searches over stationary policies read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeGuard
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Costs, Floats, require_finite
from amdp.errors import InvalidInput
from amdp.kernels.rows import SparseRows
from amdp.kernels.search.state import Problem
from amdp.model.domains import StationaryPolicies
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.interrupts import interruptible
from amdp.oracles.sizes import power_of_two_above

ROW_SUM_ROUNDING = 1e-13  # rows that sum to 1 as well as this are taken as exact
LONG_PRODUCTS = 1e7  # above so many products, a single compiled call may outlast a person's patience

STATIONARY_TOLERANCE = 1e-14  # a law of the state that moves by less in a step is taken as stationary
CLOSING_TOLERANCE = 1e-12  # relative to steps times the largest cost: a node that could gain less is closed
LANES = 256  # policies that are evaluated side by side: their laws stay in the cache

Policy = NDArray[np.int64]  # [s]


def is_stationary(domain: object) -> TypeGuard[StationaryPolicies]:
    """Whether a domain is that of stationary policies over a kernel, which the oracles of this folder solve."""
    return isinstance(domain, StationaryPolicies) and isinstance(domain.dynamics, SingleKernel)


@dataclass(frozen=True, eq=False)
class Chains:
    """A homogeneous kernel and a start, as the compiled searches read them."""

    kernel: SingleKernel
    initial: int
    _counts: dict[int, int] = field(default_factory=dict)  # of closed policies, by limit

    @classmethod
    def of(cls, domain: StationaryPolicies) -> "Chains":
        """The chains of a domain, made once: those who choose a method and the method itself all ask for them."""
        if domain not in _CHAINS_OF:
            _CHAINS_OF[domain] = cls(domain.dynamics, domain.initial)
        return _CHAINS_OF[domain]

    @property
    def shape(self) -> Shape:
        """The numbers of steps, states and actions."""
        return self.kernel.shape

    @cached_property
    def rows(self) -> SparseRows:
        """The rows by their positive entries."""
        matrix = self.kernel.matrix(0)
        if isinstance(matrix, np.ndarray):
            pairs, successors = np.nonzero(matrix)
            chances = matrix[pairs, successors]
        else:
            positive = matrix.data > 0.0
            pairs = np.repeat(np.arange(matrix.shape[0]), matrix.indptr[1:] - matrix.indptr[:-1])[positive]
            successors, chances = matrix.indices[positive], matrix.data[positive]
        starts = pairs.searchsorted(np.arange(matrix.shape[0] + 1))
        return SparseRows(starts[None], successors.astype(np.int32), chances)

    @cached_property
    def successors(self) -> NDArray[np.int64]:
        """How many states each pair can lead to, `[s * a]`."""
        counts: NDArray[np.int64] = np.diff(self.rows.starts[0])
        return counts

    @cached_property
    def defect(self) -> float:
        """The largest difference between 1 and the sum of a row; 0 if all differ by rounding only."""
        pairs = np.repeat(np.arange(len(self.successors)), self.successors)
        sums = np.bincount(pairs, self.rows.chances, len(self.successors))
        missed = float(np.abs(sums[self.successors > 0] - 1.0).max(initial=0.0))
        return missed if missed > ROW_SUM_ROUNDING else 0.0

    def count_closed(self, limit: int) -> int:
        """The number of stationary policies that are distinct on the states they reach; `limit + 1` if it is more."""
        if limit not in self._counts:
            steps, states, actions = self.shape
            nowhere, halt = np.empty((0, states), dtype=np.int64), np.zeros(1, dtype=np.int64)
            problem = self.rows, actions, self.initial, steps, limit, nowhere, halt
            count = interruptible(lambda: kernels.search.trees.list_closed(*problem), lambda: halt.fill(1), inf)
            self._counts[limit] = int(count)
        return self._counts[limit]

    @cached_property
    def is_long(self) -> bool:
        """Whether a round of a descent, or the coupling of all pairs of states, takes many products."""
        steps, states, actions = self.shape
        return states * (steps * self.rows.chances.size + 4_000 * states * actions**2) > LONG_PRODUCTS

    def pose(self, cost: Floats, lanes: int = LANES) -> Problem:
        """A problem for costs `[t, s, a]` of size at most 1, without a limit of time."""
        no_limit = np.zeros(1, dtype=np.int64)
        (problem,) = scaled_problems(self.initial, cost[None], len(cost), no_limit, scale=1.0).problems
        return problem._replace(lanes=lanes)

    def value(self, problem: Problem, policy: Policy) -> float:
        """The cost of one policy over all steps."""
        return float(kernels.search.chains.value(self.rows, problem, policy))

    def cheaper(self, problem: Problem, first: Policy, second: Policy) -> Policy:
        """The cheaper of two policies; the first if they cost the same."""
        return second if self.value(problem, second) < self.value(problem, first) else first

    def markov_values(self, cost: Floats) -> Floats:
        """The cost still to come `[t, s]` of the best policy that may choose by step as well: backward induction."""
        values: Floats = self.kernel.cheapest(cost[None]).values[0]
        return values

    def markov_bound(self, cost: Floats) -> float:
        """The cost of that policy: no stationary one is cheaper."""
        return float(self.markov_values(cost)[0, self.initial])


_CHAINS_OF: WeakKeyDictionary[StationaryPolicies, Chains] = WeakKeyDictionary()


class ScaledProblems(NamedTuple):
    """Costs scaled to a size of at most 1 and summed from the end, one problem for each cost array."""

    problems: list[Problem]
    scales: Floats  # [n], by which the costs were divided
    sizes: Floats  # [n], of the largest cost


def scaled_problems(
    initial: int, costs: Costs, horizon: int, halt: NDArray[np.int64], scale: float | None = None
) -> ScaledProblems:
    """Problems with the first `horizon` steps of each of `costs` `[n, t, s, a]`, divided by a power of two."""
    (n, steps, states, actions), pairs = costs.shape, costs[0, 0].size
    kept, tails = np.empty((n, horizon, pairs)), np.empty((n, horizon + 1, pairs))
    spans, peaks = np.empty((n, horizon + 2)), np.empty((n, pairs))
    for batch, by_step in _laid_out(costs):
        kernels.search.chains.pose(by_step, kept[batch], tails[batch], spans[batch], peaks[batch])
    sizes = peaks.max(axis=1)
    if not (np.isfinite(tails[:, 0]).all() and np.isfinite(spans).all()):
        require_finite("costs", costs, "nhsa")
        raise InvalidInput(f"costs reach {sizes.max():g}; their sums over steps overflow")
    scales = np.array([power_of_two_above(size) for size in sizes.tolist()]) if scale is None else np.full(n, scale)
    for sums in (kept, tails):
        sums /= scales[:, None, None]
    spans /= scales[:, None]
    shown = kept.reshape(n, horizon, states, actions)
    common = initial, STATIONARY_TOLERANCE, CLOSING_TOLERANCE * steps, LANES
    parts = zip(shown, tails, spans, scales.tolist(), strict=True)
    problems = [Problem(cost, tail, span, *common, power, halt) for cost, tail, span, power in parts]
    return ScaledProblems(problems, scales, sizes)


def evaluation_error(problem: Problem) -> float:
    """How far the value of a policy may be off because its law was taken as stationary."""
    return float(0.5 * problem.stop * problem.spans[1])


def _laid_out(costs: Costs) -> Iterator[tuple[slice, Floats]]:
    """The costs as contiguous arrays `[t, n * s * a]`: all at once if they are laid out step by step, or one by one."""
    n, steps = costs.shape[:2]
    by_step = costs.swapaxes(0, 1)
    if by_step.flags.c_contiguous and by_step.flags.writeable:
        yield slice(0, n), by_step.reshape(steps, -1)
        return
    for i, cost in enumerate(costs):
        yield slice(i, i + 1), np.require(cost, requirements=["C", "W"]).reshape(steps, -1)
