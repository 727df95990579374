"""Branch and bound over stationary policies: exact, with limits that leave a policy and a proved bound.

A node is a set of allowed pairs. Its bound is the best of the mixing bound at several scales of averaging, where
scale 0 is plain backward induction, each sharpened by the performance difference: what a pair costs above the relaxed
optimum, times the least chance of its state. Pairs that this excludes are struck out. A node of few policies is
tried out, all of them side by side.

The mixing bound: once the laws of all stationary policies hardly move, costs can be averaged over time. Averages are
the same in every step, and for such costs the best policy that may choose by step is stationary as well, so that
backward induction bounds all stationary policies closely. docs/stationary-oracles.md has the inequality and its proof.
"""

from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Bools, Floats
from amdp.kernels.search.state import CLOSED_BOUND, IN_BOUNDS, NODES, OPEN, VALUE, Floors, Problem, Tree, new_node
from amdp.model.several_models import MultiModel
from amdp.oracles.base import Planner, PlanningDomain
from amdp.oracles.multi_model import branch_and_bound as multi_model
from amdp.oracles.multi_model.planning import MultiModelPlanner
from amdp.oracles.solving import require_limits
from amdp.oracles.stationary.chains import Chains, evaluation_error, is_stationary
from amdp.oracles.stationary.local_search import descents
from amdp.oracles.stationary.planning import StationaryPlanner
from amdp.oracles.stationary.search import Search, SearchClock, SearchResult, next_portion
from amdp.oracles.stationary.sharing import LONE_NODES, ROUND_NODES, Team

# Scales of averaging. 0 averages nothing: plain backward induction.
SCALES = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0])
FLOOR_MOVES = 64  # moves for which the least chance of each state is worked out step by step
OPEN_NODES, OPEN_PAIRS = 2**15, 2**24  # that are kept, best first; beyond, the search goes depth first
SPARSE_SHARE = 1 / 3  # with a smaller share of successors, mixing is worked out anew at every node


@dataclass(frozen=True)
class BranchAndBound:
    """Least bound first, from the best of several descents; node and time limits return what is proved so far."""

    seconds: float = inf  # for each solve
    nodes: float = inf  # for each solve
    gap: float = 1e-9  # relative to steps times the largest cost: above it an answer is not called optimal
    starts: int = 20
    threads: int = 1  # over one kernel; the answer does not depend on it
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_limits(self)

    def supports(self, domain: PlanningDomain) -> bool:
        return isinstance(domain, MultiModel) or is_stationary(domain)

    def bind(self, domain: PlanningDomain) -> Planner:
        if isinstance(domain, MultiModel):
            search = multi_model.TreeSearch(self.nodes, self.starts)
            return MultiModelPlanner(self, domain, search, self.gap, self.seconds)
        return StationaryPlanner(self, domain, partial(TreeSearch, settings=self), self.gap, self.seconds)


class Mixing(NamedTuple):
    """What bounds on all policies that choose among some pairs need of the kernel alone."""

    moves: Floats  # [t]: the laws of steps t and t + 1 differ by no more, in total variation, under any policy
    loosened: Floats  # [s * a]: a guess of which part of this each pair takes away
    floors: Floors  # the least chance of each state

    @classmethod
    def of(cls, chains: Chains, allowed: Bools | None = None, halt: NDArray[np.int64] | None = None) -> "Mixing":
        """Work out mixing and least chances for the policies of the `allowed` pairs `[s, a]`, until `halt` is set."""
        steps, states, actions = chains.shape
        node = new_node(np.ones((states, actions), dtype=bool) if allowed is None else allowed)
        moves, stop = np.empty((3, steps + 1)), np.zeros(1, dtype=np.int64) if halt is None else halt
        count = kernels.search.chains.reached(chains.rows, node.allowed, chains.initial, steps, node.order)
        kernels.search.bounds.list_pairs(node, count)
        loosened = np.zeros(states * actions)
        floors = Floors(np.zeros((min(steps, FLOOR_MOVES), states)), np.zeros(states))
        kernels.search.bounds.least_reach(chains.rows, node, count, chains.initial, floors, stop)
        kernels.search.couplings.mix(chains.rows, chains.initial, node, count, moves, loosened, np.zeros(2), stop)
        return cls(moves, loosened, floors)


class TreeSearch(Search):
    """The tree of one kernel; the last three arguments are there to be varied in studies."""

    def __init__(
        self,
        chains: Chains,
        settings: BranchAndBound,
        scales: Floats = SCALES,
        lanes: int | None = None,
        bound_price: float = 0.0,  # -inf: bound every node, whether or not that pays
    ) -> None:
        super().__init__(chains)
        self._settings = settings
        self._scales = scales
        self._lanes = lanes
        self._bound_price = bound_price
        self._mixing: Mixing | None = None

    def mixing(self, clock: SearchClock) -> Mixing:
        """What the bounds need of the kernel alone, worked out once; as much of it as there is time for."""
        if self._mixing is not None:
            return self._mixing
        mixing = Mixing.of(self._chains, halt=clock.halt)
        self._mixing = None if clock.expired else mixing
        return mixing

    def _solve_one(self, problem: Problem, clock: SearchClock) -> SearchResult:
        return self.undercut(problem, inf, clock)

    def undercut(self, problem: Problem, target: float, clock: SearchClock) -> SearchResult:
        """As if a policy were known that costs `target`: nodes whose bound reaches it are closed."""
        posed = problem if self._lanes is None else problem._replace(lanes=self._lanes)
        policy, value = descents(self._chains, posed, self._settings.starts, clock)
        clock.report(posed, value, -inf, 0)
        highest = target + evaluation_error(posed) + posed.slack  # what may be lost on the way to the bound
        tree = new_tree(self._chains, posed, (policy, min(value, highest)))
        mixing = self.mixing(clock)
        tree.mixing[0], tree.loosened[0] = mixing.moves, mixing.loosened
        tree.work[IN_BOUNDS] = self._bound_price
        note = self._grow(tree, posed, mixing, clock)
        bound = proved(tree, posed)
        if bound == -inf:
            bound = self._chains.markov_bound(posed.costs)
        return SearchResult(tree.policy, bound, int(tree.counts[NODES]), note)

    def rehearse(self, problem: Problem) -> None:
        super().rehearse(problem)
        with Team(new_tree(self._chains, problem, (np.zeros(self._chains.shape[1]), inf)), 1) as team:
            team.work(lambda part, nodes: None)

    def _grow(self, tree: Tree, problem: Problem, mixing: Mixing, clock: SearchClock) -> str:
        """Work until nothing is open; why it stopped, if it is for a limit."""
        _, states, actions = self._chains.shape
        rows = self._chains.rows
        couple = rows.chances.size <= SPARSE_SHARE * states * states * actions

        def grow(part: Tree, nodes: int) -> None:
            kernels.search.trees.grow(rows, problem, mixing.floors, part, self._scales, couple, nodes)

        portion = 4
        with Team(tree, self._settings.threads) as team:
            while tree.counts[OPEN] > 0:
                if clock.expired:
                    return f"stopped at {self._settings.seconds:g} seconds"
                left = self._settings.nodes - tree.counts[NODES]
                if left <= 0:
                    return f"stopped at {self._settings.nodes:g} nodes"
                if team.can_share(left):
                    team.work(grow)
                else:
                    began, young = perf_counter(), int(LONE_NODES - tree.counts[NODES])
                    # Beyond its beginning a tree takes fixed portions, so that no clock decides when it is shared.
                    portion = min(portion, young) if young > 0 else ROUND_NODES
                    grow(tree, int(min(left, portion)))
                    portion = next_portion(portion, perf_counter() - began)
                clock.report(problem, float(tree.best[VALUE]), proved(tree, problem), int(tree.counts[NODES]))
        return ""


def new_tree(chains: Chains, problem: Problem, incumbent: tuple[np.ndarray, float]) -> Tree:
    """A tree whose root allows everything."""
    steps, states, actions = chains.shape
    runs = np.empty(len(problem.costs), dtype=np.int64)
    kernels.search.bounds.find_runs(problem.costs, runs)
    room = 2 * states * actions + actions + 1 + min(OPEN_NODES, OPEN_PAIRS // (states * actions))
    policy, value = incumbent
    allowed, bounds, marks = np.empty((room, states, actions), bool), np.empty(room), np.empty((room, 2), np.int64)
    allowed[0], bounds[0], marks[0] = True, -inf, (0, -1)
    return Tree(
        allowed,
        bounds,
        marks,
        np.empty((2, 3, steps + 1)),
        np.zeros((2, states * actions)),
        runs,
        policy.astype(np.int64),
        np.array([value, inf]),
        np.array([1, 0, 0, 0]),
        np.zeros((1024, 2)),
        np.zeros(2),
    )


def proved(tree: Tree, problem: Problem) -> float:
    """No policy is cheaper: the least of the incumbent, what bounds closed, and what is open."""
    least_open = tree.bounds[: tree.counts[OPEN]].min(initial=inf)
    return float(min(tree.best[VALUE] - evaluation_error(problem), tree.best[CLOSED_BOUND], least_open))
