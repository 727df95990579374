"""From a search to plans: one place that scales costs, settles ties, evaluates, and keeps the clock.

A search proposes a policy and proves a bound. The policy is then made definite (action 0 where it never comes, the
first of actions that cost the same), and evaluated: that is the objective. The values `[t, s]`, the cost still to come
under the returned policy, are worked out when someone reads them. They do not prove the bound; the search does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import frexp, inf
from threading import TIMEOUT_MAX, Timer
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Costs, Floats, Values, require_finite
from amdp.errors import InvalidInput
from amdp.kernels.rows import SparseRows
from amdp.kernels.searches import Problem
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Shape
from amdp.model.transitions import Kernel, SingleKernel, SparseKernel
from amdp.oracles.apart import Tell, run_apart
from amdp.oracles.base import Planner, PlanningOracle, Plans, Report, Status
from amdp.oracles.interrupts import LOOK, interruptible
from amdp.oracles.solving import worst

STOP = 1e-14  # a law that moves by less in a step is stationary
STILL = 1e-16  # and so it is to the last digit
SLACK = 1e-12  # relative to steps times the largest cost: a node that could gain less is closed
TIE = 1e-13  # relative to the same: policies that differ by less differ by rounding
SAME = 1e-9  # relative to the same: two evaluations of one policy do not differ by more
LANES = 256  # policies that are evaluated side by side: their laws stay in the cache
SURE = 1e-13  # rows that sum to 1 as well as this are taken as exact
LONG = 1e7  # products: above it, a single compiled call may outlast a person's patience
LATE = 1.0  # seconds after its limit at which a solver in another process is ended

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


class ScaledProblems(NamedTuple):
    """Costs as problems."""

    problems: list[Problem]
    scales: Floats  # [n], by which the costs were divided
    sizes: Floats  # [n], of the largest cost


@dataclass(frozen=True, eq=False)
class Chains:
    """A homogeneous kernel and a start, as the compiled searches read them."""

    kernel: SingleKernel
    initial: int

    @classmethod
    def of(cls, domain: StationaryPolicies) -> "Chains":
        """The chains of a domain, made once: those who choose a method and the method itself all ask for them."""
        if domain not in _KNOWN:
            _KNOWN[domain] = cls(domain.dynamics, domain.initial)
        return _KNOWN[domain]

    @property
    def shape(self) -> Shape:
        """Steps, states, actions."""
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
        """By how much a row misses the sum 1; 0 if by rounding only."""
        pairs = np.repeat(np.arange(len(self.successors)), self.successors)
        sums = np.bincount(pairs, self.rows.chances, len(self.successors))
        missed = float(np.abs(sums[self.successors > 0] - 1.0).max(initial=0.0))
        return missed if missed > SURE else 0.0

    def count_closed(self, limit: int) -> int:
        """How many stationary policies differ where they come, up to `limit + 1`."""
        if limit not in self._counts:
            steps, states, actions = self.shape
            nowhere, halt = np.empty((0, states), dtype=np.int64), np.zeros(1, dtype=np.int64)
            given = self.rows, actions, self.initial, steps, limit, nowhere, halt
            count = interruptible(lambda: kernels.trees.list_closed(*given), lambda: halt.fill(1), inf)
            self._counts[limit] = int(count)
        return self._counts[limit]

    @cached_property
    def is_long(self) -> bool:
        """Whether a round of a descent, or the coupling of all pairs of states, takes many products."""
        steps, states, actions = self.shape
        return states * (steps * self.rows.chances.size + 4_000 * states * actions**2) > LONG

    @cached_property
    def _counts(self) -> dict[int, int]:
        return {}

    def pose(self, cost: Floats, lanes: int = LANES) -> Problem:
        """A problem for costs `[t, s, a]` of size at most 1, without a limit of time."""
        (problem,) = self.posed(cost[None], len(cost), np.zeros(1, dtype=np.int64), scale=1.0).problems
        return problem._replace(lanes=lanes)

    def posed(
        self, costs: Costs, horizon: int, halt: NDArray[np.int64], scale: float | None = None
    ) -> "ScaledProblems":
        """Problems that show the first `horizon` steps of each of `costs` `[n, t, s, a]`, divided by a power of two."""
        (n, steps, states, actions), pairs = costs.shape, costs[0, 0].size
        kept, tails = np.empty((n, horizon, pairs)), np.empty((n, horizon + 1, pairs))
        spans, peaks = np.empty((n, horizon + 2)), np.empty((n, pairs))
        for few, by_step in _laid_out(costs):
            kernels.chains.pose(by_step, kept[few], tails[few], spans[few], peaks[few])
        sizes = peaks.max(axis=1)
        if not (np.isfinite(tails[:, 0]).all() and np.isfinite(spans).all()):
            require_finite("costs", costs, "nhsa")
            raise InvalidInput(f"costs reach {sizes.max():g}; their sums over steps overflow")
        scales = np.array([_power(size) for size in sizes.tolist()]) if scale is None else np.full(n, scale)
        for sums in (kept, tails):
            sums /= scales[:, None, None]
        spans /= scales[:, None]
        shown = kept.reshape(n, horizon, states, actions)
        common = self.initial, STOP, SLACK * steps, LANES
        parts = zip(shown, tails, spans, scales.tolist(), strict=True)
        problems = [Problem(cost, tail, span, *common, power, halt) for cost, tail, span, power in parts]
        return ScaledProblems(problems, scales, sizes)

    def value(self, problem: Problem, policy: Policy) -> float:
        """The cost of one policy over all steps."""
        return float(kernels.chains.value(self.rows, problem, policy))

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


_KNOWN: WeakKeyDictionary[StationaryPolicies, Chains] = WeakKeyDictionary()


class Watch:
    """The clock of one solve, and whoever listens to it.

    Compiled searches cannot look at a clock; they look at `halt`, which is set when the time is over.
    """

    def __init__(self, seconds: float, listener: Callable[[Progress], None] | None) -> None:
        self._began = perf_counter()
        self._seconds = seconds
        self._listener = listener
        self._timer: Timer | None = None
        self._interrupted = False
        self._end: Callable[[], None] | None = None  # of a solver in another process
        self.halt = np.full(1, 0 if seconds > 0 else 1, dtype=np.int64)

    def __enter__(self) -> Self:
        if 0 < self._seconds < TIMEOUT_MAX:
            self._timer = Timer(self.left, self.halt.fill, (1,))
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

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
        return self.seconds >= self._seconds or bool(self.halt[0])

    @property
    def is_heard(self) -> bool:
        """Whether someone listens."""
        return self._listener is not None

    def unheard(self) -> "Watch":
        """The same clock, to which no one listens."""
        other = copy(self)
        other._listener = None
        return other

    def interrupt(self) -> None:
        """Make compiled searches return and solvers end: nobody wants the answer any more."""
        self._interrupted = True
        self.halt.fill(1)
        if self._end is not None:
            self._end()

    def apart(self, work: Callable[..., Any], *given: Any, tell: Tell) -> Any:
        """`run_apart`, until the time is well over."""
        try:
            return run_apart(work, *given, seconds=self.left + LATE, tell=tell, on_start=self._on_start)
        finally:
            self._end = None

    def _on_start(self, end: Callable[[], None]) -> None:
        self._end = end
        if self._interrupted:
            end()

    def tell(self, problem: Problem, incumbent: float, bound: float, nodes: int) -> None:
        """Report progress, in the size of the costs that were asked about."""
        if self._listener is not None:
            self._listener(Progress(problem.scale * incumbent, problem.scale * bound, nodes, self.seconds))


class Search(ABC):
    """A method, compiled for one kernel."""

    name = ""  # of the solver inside, if there is one

    def __init__(self, chains: Chains) -> None:
        self._chains = chains

    def horizon(self, n: int, watch: Watch) -> int:
        """How many first steps of the next `n` costs it must see one by one; of the others it needs the sums."""
        return self._chains.shape[0]

    def solve(self, problems: Sequence[Problem], watch: Watch) -> list[Found]:
        """A policy and a bound for each problem."""
        return [self._one(problem, watch) for problem in problems]

    @abstractmethod
    def _one(self, problem: Problem, watch: Watch) -> Found:
        """A policy and a bound."""


@dataclass(frozen=True, eq=False)
class StationaryPlans(Plans):
    """Plans whose values are worked out when they are first read: learners ask for policies only."""

    chains: Chains = field(kw_only=True, repr=False)
    costs: Costs = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.values is LATER:
            object.__delattr__(self, "values")

    def __getattr__(self, name: str) -> Any:
        if name != "values":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        values = np.empty(self.costs.shape[:3])
        for cost, actions, to_go in zip(self.costs, self.actions, values, strict=True):
            laid = np.require(cost, requirements=["C", "W"])
            kernels.chains.costs_to_go(self.chains.rows, laid, actions.astype(np.int64), to_go)
        self._require_same(values[:, 0, self.chains.initial])
        object.__setattr__(self, "values", values)
        return values

    def _require_same(self, objective: Floats) -> None:
        largest = np.abs(self.costs).max(axis=(1, 2, 3))
        if (np.abs(objective - self.objective) > SAME * self.costs.shape[1] * largest).any():
            raise InvalidInput("costs has changed since the plans were made; read their values before")

    def __reduce__(self) -> tuple[Any, ...]:
        return Plans, tuple(getattr(self, one.name) for one in fields(Plans))


LATER: Values = np.empty((0, 0, 0))  # stands for values that no one has read


class StationaryPlanner(Planner):
    """A planner that puts scaled costs to a search, and evaluates what comes back.

    `on_progress`, if set, is called with a `Progress` now and then while a search runs; on large kernels not in the
    main thread, which listens for Ctrl-C.
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
        self.chains = Chains.of(domain)
        self.search = build(self.chains)
        self.on_progress: Callable[[Progress], None] | None = None
        self.reason = ""  # why this search was chosen
        self._gap = gap
        self._seconds = seconds  # for each of the costs
        self._together = together
        if seconds < inf:
            _compile_first(oracle, domain.dynamics, build)

    def minimize(self, costs: Costs) -> Plans:
        """The cheapest stationary policy for each of `costs` `[n, t, s, a]`."""
        began = perf_counter()
        shaped = self.shaped(costs)
        found: list[Found] = []
        objective, bound, allowed = np.empty((3, len(shaped)))
        for first in range(0, len(shaped), self._together):
            few = slice(first, first + self._together)
            found += self._solved(shaped[few], objective[few], bound[few], allowed[few])
        proved = objective - bound <= allowed
        statuses = [Status.OPTIMAL if met else Status.FEASIBLE for met in proved]
        return StationaryPlans(
            np.array([one.policy for one in found], dtype=np.int32),
            objective,
            bound,
            worst(statuses),
            LATER,
            self._report(found, perf_counter() - began),
            shaped.shape[3],
            tuple(statuses),
            chains=self.chains,
            costs=shaped,
        )

    def _solved(self, costs: Costs, objective: Floats, bound: Floats, allowed: Floats) -> list[Found]:
        """Search, settle and evaluate; values, bounds, and the gaps that still count as optimal, go into `[n]`."""
        with Watch(self._seconds * len(costs), self.on_progress) as watch:

            def work() -> list[Found]:
                return self._searched(costs, objective, bound, allowed, watch)

            found = interruptible(work, watch.interrupt, inf) if self.chains.is_long else work()
        np.minimum(bound, objective, out=bound)
        return found

    def _searched(self, costs: Costs, objective: Floats, bound: Floats, allowed: Floats, watch: Watch) -> list[Found]:
        steps, rows = self.chains.shape[0], self.chains.rows
        horizon = self.search.horizon(len(costs), watch)
        problems, scales, sizes = self.chains.posed(costs, horizon, watch.halt)
        found = self.search.solve(problems, watch)
        for i, (problem, one) in enumerate(zip(problems, found, strict=True)):
            kernels.chains.settle(rows, problem, one.policy, TIE * steps)
            objective[i] = scales[i] * self.chains.value(problem._replace(stop=STILL), one.policy)
            # Rows that miss the sum 1 shift every term of a bound's proof by no more than this.
            bound[i] = scales[i] * (one.bound - 4.0 * self.chains.defect * steps**2)
        allowed[:] = self._gap * steps * sizes
        return found

    def _report(self, found: list[Found], seconds: float) -> Report:
        notes = [self.reason, *sorted({one.note for one in found})]
        nodes = sum(one.nodes for one in found)
        note = "; ".join(one for one in notes if one)
        return Report(type(self.oracle).__name__, seconds, nodes=nodes, solver=self.search.name, note=note)


_COMPILED: set[tuple[type, type]] = set()


def _compile_first(oracle: PlanningOracle, kernel: SingleKernel, build: Callable[[Chains], Search]) -> None:
    """Solve a world of one state without a limit: compiling, once on a machine, is not what limits are for."""
    key = type(oracle), type(kernel)
    if key in _COMPILED:
        return
    stay = np.ones((2, 1))
    sparse = isinstance(kernel, SparseKernel)
    tiny = SparseKernel.homogeneous(stay, 2) if sparse else Kernel.homogeneous(stay.reshape(1, 2, 1), 2)
    planner = StationaryPlanner(oracle, StationaryPolicies(tiny), build, gap=1e-9, together=5)
    costs, chains = np.zeros((5, 2, 1, 2)), planner.chains
    planner.minimize(costs[:1])
    planner.minimize(costs)  # by the table, where there is one
    everything, policy = np.ones((1, 2), dtype=bool), np.zeros(1, dtype=np.int64)
    kernels.chains.descend(chains.rows, chains.pose(costs[0]), everything, policy)
    chains.markov_bound(costs[0])
    _COMPILED.add(key)


def evaluation_error(problem: Problem) -> float:
    """How far the value of a policy may be off because its law was taken as stationary."""
    return float(0.5 * problem.stop * problem.spans[1])


def is_stationary(domain: Domain) -> bool:
    """Whether these oracles may be asked."""
    return isinstance(domain, StationaryPolicies) and isinstance(domain.dynamics, SingleKernel)


def next_portion(portion: int, seconds: float) -> int:
    """So many nodes, after so many took `seconds`, that Ctrl-C is heard soon and the listener is not flooded."""
    return max(1, min(2 * portion, int(portion * LOOK / max(seconds, 1e-6))))


def _laid_out(costs: Costs) -> Iterator[tuple[slice, Floats]]:
    """The costs as contiguous arrays `[t, n * s * a]`: all at once if they are laid out step by step, or one by one."""
    n, steps = costs.shape[:2]
    by_step = costs.swapaxes(0, 1)
    if by_step.flags.c_contiguous and by_step.flags.writeable:
        yield slice(0, n), by_step.reshape(steps, -1)
        return
    for i, cost in enumerate(costs):
        yield slice(i, i + 1), np.require(cost, requirements=["C", "W"]).reshape(steps, -1)


def _power(largest: float) -> float:
    """A power of two above all costs, with an inverse: scaling by it loses no digit."""
    return float(2.0 ** max(-1022, min(1022, frexp(largest or 0.5)[1])))
