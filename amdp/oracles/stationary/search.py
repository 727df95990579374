"""What a search over stationary policies is and returns, its time limit, and reports of how far it has come."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from math import inf
from threading import TIMEOUT_MAX, Timer
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.kernels.search.state import Problem
from amdp.oracles.base import relative
from amdp.oracles.interrupts import POLL_SECONDS
from amdp.oracles.stationary.chains import Chains, Policy
from amdp.oracles.subprocesses import Tell, run_in_subprocess

GRACE_SECONDS = 1.0  # after its limit, until a solver in another process is ended


class Progress(NamedTuple):
    """How far a running solve has come. The bound begins at that of Markov policies, and never falls."""

    incumbent: float
    bound: float  # proved
    nodes: int
    seconds: float
    first_bound: float = -inf  # at which the bound began
    claim: float | None = None  # the bound of a solver, if one is at work: nobody has examined it yet

    @property
    def gap(self) -> float:
        """How much cheaper another policy could be: the absolute gap to what is proved."""
        return max(0.0, self.incumbent - self.bound)

    @property
    def relative_gap(self) -> float | None:
        """The gap as a part of what the incumbent costs, None if that is 0."""
        return relative(self.gap, self.incumbent)


@dataclass
class _Course:
    """The bounds of one problem, for scaled costs."""

    first: float
    proved: float
    claimed: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.first, self.proved, self.claimed))


class SearchClock:
    """The time limit of one solve, and the listener that is told of its progress.

    Compiled searches cannot look at a clock; they look at `halt`, which is set when the time is over.
    """

    def __init__(
        self,
        seconds: float,
        listener: Callable[[Progress], None] | None,
        floor: Callable[[Problem], float] = lambda problem: -inf,  # a bound that is known without a search
        charge: float = 0.0,  # what a bound for scaled costs may be off by
    ) -> None:
        self._began = perf_counter()
        self._floor, self._charge = floor, charge
        self._courses: dict[int, _Course] = {}  # of the problems that were reported on, by the identity of their costs
        self._seconds = seconds
        self._listener = listener
        self._timer: Timer | None = None
        self._is_interrupted = False
        self._end: Callable[[], None] | None = None  # of a solver in another process
        self.halt = np.full(1, 0 if seconds > 0 else 1, dtype=np.int64)

    def __enter__(self) -> Self:
        if 0 < self._seconds < TIMEOUT_MAX:
            self._timer = Timer(self.left, self.halt.fill, (1,))
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def seconds(self) -> float:
        """Seconds since the solve began."""
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
    def has_listener(self) -> bool:
        """Whether progress is reported to anyone."""
        return self._listener is not None

    def without_listener(self) -> "SearchClock":
        """The same clock; progress is reported to no one."""
        other = copy(self)
        other._listener = None
        return other

    def interrupt(self) -> None:
        """Make compiled searches return and solvers end: nobody wants the answer any more."""
        self._is_interrupted = True
        self.halt.fill(1)
        if self._end is not None:
            self._end()

    def run_in_subprocess(self, work: Callable[..., Any], *given: Any, tell: Tell) -> Any:
        """Call `work(*given, tell)` in another process, which is ended a little after the limit."""
        try:
            limit = self.left + GRACE_SECONDS
            return run_in_subprocess(work, *given, seconds=limit, tell=tell, on_start=self._on_start)
        finally:
            self._end = None

    def _on_start(self, end: Callable[[], None]) -> None:
        self._end = end
        if self._is_interrupted:
            end()

    def report(self, problem: Problem, incumbent: float, bound: float, nodes: int, claim: float | None = None) -> None:
        """Report progress, in the size of the costs that were asked about; a solver's own bound is a `claim`."""
        if self._listener is None:
            return
        course = self._courses.get(id(problem.costs))
        if course is None:
            floor = self._floor(problem)
            course = self._courses[id(problem.costs)] = _Course(floor, floor, floor)
        course.proved = max(course.proved, bound)
        course.claimed = max(course.claimed, course.proved, -inf if claim is None else claim)
        first, proved, claimed = (problem.scale * (each - self._charge) for each in course)
        told = Progress(problem.scale * incumbent, proved, nodes, self.seconds, first)
        self._listener(told if claim is None else told._replace(claim=claimed))

    def proved(self, problem: Problem) -> float:
        """The bound for scaled costs that was last reported; -inf if none was."""
        course = self._courses.get(id(problem.costs))
        return -inf if course is None else course.proved


def next_portion(portion: int, seconds: float) -> int:
    """How many nodes to search next if `portion` took `seconds`: Ctrl-C is heard soon, and reports are not too many."""
    return max(1, min(2 * portion, int(portion * POLL_SECONDS / max(seconds, 1e-6))))


class SearchResult(NamedTuple):
    """A policy, and a bound that no policy undercuts; the bound is for scaled costs."""

    policy: Policy
    bound: float
    nodes: int = 0
    note: str = ""  # why it stopped early


class Search(ABC):
    """A method that looks for the cheapest stationary policy over one kernel."""

    name = ""  # of the solver inside, if there is one
    batch_size = 1  # how many costs it is given at a time

    def __init__(self, chains: Chains) -> None:
        self._chains = chains

    def policies(self) -> NDArray[np.int64] | None:
        """All policies `[n, s]` that it chooses from, if they are few: -1 where a policy never comes."""
        return None

    def horizon(self, n: int, clock: SearchClock) -> int:
        """How many first steps of the next `n` costs it must see one by one; of the others it needs the sums."""
        return self._chains.shape[0]

    def solve(self, problems: Sequence[Problem], clock: SearchClock) -> list[SearchResult]:
        """A policy and a bound for each problem."""
        return [self._solve_one(problem, clock) for problem in problems]

    def undercut(self, problem: Problem, target: float, clock: SearchClock) -> SearchResult:
        """Look for a policy that costs less than `target`; if there is none, the bound need not be above it."""
        return self._solve_one(problem, clock)

    def rehearse(self, problem: Problem) -> None:
        """Call the compiled code that solves of a tiny problem may not come to, so that it is compiled."""
        _, states, actions = self._chains.shape
        everything, policy = np.ones((states, actions), dtype=bool), np.zeros(states, dtype=np.int64)
        kernels.search.chains.descend(self._chains.rows, problem, everything, policy)
        self.markov_bound(problem)

    def markov_bound(self, problem: Problem) -> float:
        """The cost of the best policy that may choose by step as well: a bound that takes one backward sweep."""
        return self._chains.markov_bound(problem.costs)

    @abstractmethod
    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        """A policy and a bound for one problem."""
