"""From a search to plans: one place that scales costs, settles ties, evaluates, and keeps the clock.

A search proposes a policy and proves a bound. The policy is then made definite (action 0 where it never comes, the
first of actions that cost the same), and evaluated backward over all steps: that is the objective, and the values
`[t, s]` are the cost still to come under the returned policy. They do not prove the bound; the search does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import frexp, inf
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Costs, Floats
from amdp.dynamics import Shape
from amdp.errors import InvalidInput
from amdp.kernels.rows import SparseRows
from amdp.kernels.searches import Problem
from amdp.mdp import Domain, SingleKernel, StationaryPolicies
from amdp.oracles.base import Planner, PlanningOracle, Plans, Report, Status
from amdp.oracles.solving import worst

STOP = 1e-14  # a law that moves by less in a step is stationary
SLACK = 1e-12  # relative to steps times the largest cost: a node that could gain less is closed
TIE = 1e-13  # relative to the same: policies that differ by less differ by rounding
LANES = 256  # policies that are evaluated side by side: their laws stay in the cache
SURE = 1e-13  # rows that sum to 1 as well as this are taken as exact

Policy = NDArray[np.int64]  # [s]


class Progress(NamedTuple):
    """How far a running solve has come."""

    incumbent: float
    bound: float
    nodes: int
    seconds: float

    @property
    def gap(self) -> float:
        """How much cheaper another policy could be."""
        return self.incumbent - self.bound


class Found(NamedTuple):
    """What a search leaves: a policy, and a bound on all policies; both for scaled costs."""

    policy: Policy
    bound: float
    nodes: int = 0
    note: str = ""  # why it stopped early


@dataclass(frozen=True, eq=False)
class Chains:
    """A homogeneous kernel and a start, as the compiled searches read them."""

    kernel: SingleKernel
    initial: int

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
        return self.kernel.shape

    @cached_property
    def rows(self) -> SparseRows:
        """The rows by their positive entries."""
        matrix = scipy.sparse.csr_array(self.kernel.matrix(0), copy=True)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return SparseRows(matrix.indptr.astype(np.int64)[None], matrix.indices.astype(np.int32), matrix.data.copy())

    @cached_property
    def defect(self) -> float:
        """By how much a row misses the sum 1; 0 if by rounding only."""
        sums = np.asarray(self.kernel.matrix(0).sum(axis=1), dtype=np.float64)
        missed = float(np.abs(sums[sums > 0.0] - 1.0).max(initial=0.0))
        return missed if missed > SURE else 0.0

    def pose(self, cost: Floats, lanes: int = LANES) -> Problem:
        """A problem for costs `[t, s, a]` of size at most 1."""
        steps, states, actions = self.shape
        tails, spans = np.empty((steps + 1, states * actions)), np.empty(steps + 2)
        kernels.chains.add_up(cost, tails, spans)
        return Problem(cost, tails, spans, self.initial, STOP, SLACK * steps, lanes)

    def value(self, problem: Problem, policy: Policy) -> float:
        """The cost of one policy over all steps."""
        return float(kernels.chains.value(self.rows, problem, policy))

    def cheaper(self, problem: Problem, first: Policy, second: Policy) -> Policy:
        """The cheaper of two policies; the first if they cost the same."""
        return second if self.value(problem, second) < self.value(problem, first) else first

    def markov_bound(self, cost: Floats) -> float:
        """The cost of the best policy that may choose by step as well: by backward induction."""
        return float(self.kernel.cheapest(cost[None]).values[0, 0, self.initial])


class Watch:
    """The clock of one solve, and whoever listens to it."""

    def __init__(self, seconds: float, listener: Callable[[Progress], None] | None) -> None:
        self._began = perf_counter()
        self._seconds = seconds
        self._listener = listener
        self.scale = 1.0  # of the costs that the search sees

    @property
    def seconds(self) -> float:
        """Since the solve began."""
        return perf_counter() - self._began

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return max(0.0, self._seconds - self.seconds)

    @property
    def expired(self) -> bool:
        """Whether the limit is reached."""
        return self.seconds >= self._seconds

    def tell(self, incumbent: float, bound: float, nodes: int) -> None:
        """Report progress, in the size of the costs that were asked about."""
        if self._listener is not None:
            self._listener(Progress(self.scale * incumbent, self.scale * bound, nodes, self.seconds))


class Search(Protocol):
    """A method, compiled for one kernel."""

    name: str  # of the solver inside, if there is one

    def solve(self, problems: Sequence[Problem], watch: Watch) -> list[Found]:
        """A policy and a bound for each problem."""


class StationaryPlanner(Planner):
    """A planner that puts scaled costs to a search, and evaluates what comes back.

    `on_progress`, if set, is called with a `Progress` now and then while a search runs.
    """

    def __init__(
        self,
        oracle: PlanningOracle,
        domain: Domain,
        build: Callable[[Chains], Search],
        gap: float,
        seconds: float = inf,
        together: int = 1,
    ) -> None:
        super().__init__(oracle, domain)
        assert isinstance(domain, StationaryPolicies)
        self.chains = Chains(domain.dynamics, domain.initial)
        self.search = build(self.chains)
        self.on_progress: Callable[[Progress], None] | None = None
        self._gap = gap
        self._seconds = seconds
        self._together = together

    def minimize(self, costs: Costs) -> Plans:
        """The cheapest stationary policy for each of `costs` `[n, t, s, a]`."""
        began = perf_counter()
        checked = self.checked(costs)
        steps = checked.shape[1]
        if np.abs(checked).max() > np.finfo(np.float64).max / (4 * steps):
            raise InvalidInput(f"costs reach {np.abs(checked).max():g}; their sums over steps overflow")
        found: list[Found] = []
        values = np.empty(checked.shape[:3])
        scales = np.array([_power(cost) for cost in checked])
        for first in range(0, len(checked), self._together):
            few = slice(first, first + self._together)
            problems = [self._posed(cost, scale) for cost, scale in zip(checked[few], scales[few], strict=True)]
            found += self._solved(problems, scales[few], values[few])
        values *= scales[:, None, None]
        objective = values[:, 0, self.domain.initial].copy()
        bound = np.minimum(objective, scales * np.array([one.bound for one in found]))
        largest = np.abs(checked).reshape(len(checked), -1).max(axis=1)
        proved = objective - bound <= self._gap * steps * largest
        statuses = [Status.OPTIMAL if met else Status.FEASIBLE for met in proved]
        actions = np.stack([one.policy for one in found]).astype(np.int32)
        report = self._report(found, perf_counter() - began)
        return Plans(actions, objective, bound, worst(statuses), values, report, checked.shape[3], tuple(statuses))

    def _posed(self, cost: Floats, scale: float) -> Problem:
        return self.chains.pose(np.ascontiguousarray(cost) / scale)

    def _solved(self, problems: list[Problem], scales: Floats, values: Floats) -> list[Found]:
        """Search, settle and evaluate; the costs to go into `values` `[n, t, s]`."""
        watch = Watch(self._seconds, self.on_progress)
        watch.scale = float(scales[0])
        found = self.search.solve(problems, watch)
        steps, rows = self.chains.shape[0], self.chains.rows
        for problem, one, to_go in zip(problems, found, values, strict=True):
            kernels.chains.settle(rows, problem, one.policy, TIE * steps)
            kernels.chains.costs_to_go(rows, problem.costs, one.policy, to_go)
        # Rows that miss the sum 1 shift every term of a bound's proof by no more than this.
        return [one._replace(bound=one.bound - 4.0 * self.chains.defect * steps**2) for one in found]

    def _report(self, found: list[Found], seconds: float) -> Report:
        notes = "; ".join(sorted({one.note for one in found if one.note}))
        nodes = sum(one.nodes for one in found)
        return Report(type(self.oracle).__name__, seconds, nodes=nodes, solver=self.search.name, note=notes)


def evaluation_error(problem: Problem) -> float:
    """How far the value of a policy may be off because its law was taken as stationary."""
    return float(0.5 * problem.stop * problem.spans[1])


def is_stationary(domain: Domain) -> bool:
    """Whether these oracles may be asked."""
    return isinstance(domain, StationaryPolicies) and isinstance(domain.dynamics, SingleKernel)


def _power(cost: Floats) -> float:
    """A power of two above all costs: scaling by it loses no digit."""
    largest = float(max(cost.max(), -cost.min()))
    return float(2.0 ** min(1023, frexp(largest or 0.5)[1]))
