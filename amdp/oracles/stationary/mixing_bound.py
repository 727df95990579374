"""The mixing bound: how fast the laws of all stationary policies settle, and what that proves about their costs.

Once laws hardly move, costs can be averaged over time. Averages are the same in every step, and for such costs the
best policy that may choose by step is stationary as well, so that backward induction bounds all stationary policies
closely. docs/stationary-oracles.md has the inequality and its proof.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Bools, Floats
from amdp.kernels.search.state import Floors, Node, Problem, new_node
from amdp.oracles.stationary.chains import Chains

# Scales of averaging. 0 averages nothing: plain backward induction.
SCALES = np.array([0.0, 1.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
FLOOR_MOVES = 64  # moves for which the least chance of each state is worked out step by step


@dataclass(frozen=True, eq=False)
class MixingBound:
    """What bounds on all policies that choose among some pairs need of the kernel alone."""

    chains: Chains
    node: Node
    count: int  # states that the node reaches
    moves: Floats  # [t]: the laws of steps t and t + 1 differ by no more, in total variation, under any policy
    floors: Floors

    @classmethod
    def of(cls, chains: Chains, allowed: Bools | None = None, halt: NDArray[np.int64] | None = None) -> "MixingBound":
        """Work out mixing and least chances for the policies of the `allowed` pairs `[s, a]`, until `halt` is set."""
        steps, states, actions = chains.shape
        node = new_node(np.ones((states, actions), dtype=bool) if allowed is None else allowed)
        moves, stop = np.empty(steps), np.zeros(1, dtype=np.int64) if halt is None else halt
        count = kernels.search.chains.reached(chains.rows, node.allowed, chains.initial, steps, node.order)
        kernels.search.bounds.list_pairs(node, count)
        floors = Floors(np.zeros((min(steps, FLOOR_MOVES), states)), np.zeros(states))
        kernels.search.bounds.least_reach(chains.rows, node, count, chains.initial, floors, stop)
        kernels.search.bounds.mix(chains.rows, chains.initial, node, count, moves, np.zeros(2), stop)
        return cls(chains, node, count, moves, floors)

    def at(self, problem: Problem, scale: float) -> float:
        """The bound for scaled costs, averaged at one of the scales."""
        node = self.node._replace(terms=np.empty_like(self.node.terms), guesses=np.empty_like(self.node.guesses))
        work = np.zeros(2)
        bound = kernels.search.bounds.bound
        rest = bound(self.chains.rows, problem, self.floors, node, self.count, self.moves, scale, 1e-6, work)
        ends = node.first[: self.count + 1].tolist()
        return float(rest + sum(node.terms[low:high].min() for low, high in pairwise(ends)))

    def best(self, problem: Problem) -> float:
        """The best bound over all scales."""
        return max(self.at(problem, float(scale)) for scale in SCALES)
