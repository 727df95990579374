"""The mixing bound: how fast the laws of all stationary policies settle, and what that proves about their costs.

Once laws hardly move, costs can be averaged over time. Averages are the same in every step, and for such costs the
best policy that may choose by step is stationary as well, so that backward induction bounds all stationary policies
closely. docs/stationary-oracles.md has the inequality and its proof.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Bools, Floats
from amdp.kernels.search.state import Floors, Problem
from amdp.oracles.stationary.chains import Chains

# Scales of averaging. 0 averages nothing: plain backward induction.
SCALES = np.array([0.0, 1.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
FLOOR_MOVES = 64  # moves for which the least chance of each state is worked out step by step


@dataclass(frozen=True, eq=False)
class MixingBound:
    """What bounds on all policies that choose among some pairs need of the kernel alone."""

    chains: Chains
    order: NDArray[np.int64]  # the states that can be reached
    pairs: NDArray[np.int64]  # their pairs `s * A + a`, state by state
    first: NDArray[np.int64]  # where the pairs of each begin
    moves: Floats  # [t]: the laws of steps t and t + 1 differ by no more, in total variation, under any policy
    floors: Floors

    @classmethod
    def of(cls, chains: Chains, allowed: Bools | None = None, halt: NDArray[np.int64] | None = None) -> "MixingBound":
        """Work out mixing and least chances for the policies of the `allowed` pairs `[s, a]`, until `halt` is set."""
        steps, states, actions = chains.shape
        open_pairs = np.ones((states, actions), dtype=bool) if allowed is None else allowed
        order, pairs = np.zeros(states, dtype=np.int64), np.zeros(states * actions, dtype=np.int64)
        first, moves = np.zeros(states + 1, dtype=np.int64), np.empty(steps)
        count = kernels.search.chains.reached(chains.rows, open_pairs, chains.initial, steps, order)
        used = kernels.search.bounds.list_pairs(open_pairs, order, count, pairs, first)
        stop = np.zeros(1, dtype=np.int64) if halt is None else halt
        floors = Floors(np.zeros((min(steps, FLOOR_MOVES), states)), np.zeros(states))
        kernels.search.bounds.least_reach(chains.rows, order, count, pairs, first, chains.initial, *floors, stop)
        kernels.search.bounds.mix(chains.rows, chains.initial, order, count, pairs, first, moves, np.zeros(2), stop)
        return cls(chains, order[:count].copy(), pairs[:used].copy(), first[: count + 1].copy(), moves, floors)

    def at(self, problem: Problem, scale: float) -> float:
        """The bound for scaled costs, averaged at one of the scales."""
        terms, guesses = np.empty(len(self.pairs)), np.empty(len(self.pairs))
        states = np.zeros(self.chains.shape[1], dtype=np.int64)
        states[: len(self.order)] = self.order
        found = kernels.search.bounds.bound(
            self.chains.rows,
            problem,
            self.floors,
            states,
            len(self.order),
            self.pairs,
            self.first,
            self.moves,
            scale,
            1e-6,
            terms,
            guesses,
            np.zeros(2),
        )
        return float(found + sum(terms[low:high].min() for low, high in zip(self.first, self.first[1:], strict=False)))

    def best(self, problem: Problem) -> float:
        """The best bound over all scales."""
        return max(self.at(problem, float(scale)) for scale in SCALES)
