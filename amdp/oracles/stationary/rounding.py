"""A model that solvers can hold: chances near their tolerances leave it, and pay the least that can follow.

Let `R` be the entries of the kernel below `LEAST_CHANCE`, `K` the others, and `v[t, s]` the least cost to come over all
policies that may choose by step. The rounded model has the rows `K` and the costs

    c'[t, s, a] = c[t, s, a] + sum_y R(s, a, y) v[t+1, y].

Let `V` be the cost to come of a policy, and `V'` what it pays in the model. Then `V' <= V` at all steps and states: by
induction from the last step, for the actions of the policy,

    V'[t] = c[t] + R v[t+1] + K V'[t+1] <= c[t] + R V[t+1] + K V[t+1] = V[t].

So the least cost in the model is a bound on all policies as it stands: the charge for rounding is paid inside. It is
`sum_t <mu'[t], R (V - v)[t+1]>`, with `mu'` the law of the policy in the model: the chance of a removed move times what
would have been paid above `v` after it. That is at most `LEAST_CHANCE` times the number of states times the sum over
steps of the largest `V - v`. What a policy really costs is worked out from the true rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from amdp.arrays import Floats, one_hot, require_room
from amdp.model.segments import Shape
from amdp.oracles.stationary.chains import Chains, Policy

LEAST_CHANCE = 1e-9  # smaller entries are lost among the tolerances of solvers
LEAST_CAP = 1e-6  # a larger cap than needed stays valid, and solvers can tell it from 0


@dataclass(frozen=True, eq=False)
class Rounded:
    """The rows `[s * a, y]` and costs `[t, s, a]` of the rounded model; some rows sum to less than 1."""

    shape: Shape
    initial: int
    moves: Any  # CSR
    cost: Floats
    least: Floats  # [t, s], the cost to come over all policies that may choose by step, in either model

    @classmethod
    def of(cls, chains: Chains, cost: Floats) -> "Rounded":
        """Round the kernel, and charge the costs."""
        steps = len(cost)
        least = chains.markov_values(cost)
        rows = scipy.sparse.csr_array(chains.kernel.matrix(0))
        tiny = rows.copy()
        tiny.data = np.where(rows.data < LEAST_CHANCE, rows.data, 0.0)
        kept = rows - tiny
        kept.eliminate_zeros()
        charged = cost.copy()
        for t in range(steps - 1):
            charged[t] += (tiny @ least[t + 1]).reshape(cost.shape[1:])
        return cls(chains.shape, chains.initial, kept, charged, least)

    @cached_property
    def greatest(self) -> Floats:
        """The greatest cost to come `[t, s]` in the model."""
        values = np.empty_like(self.least)
        later = np.zeros(self.least.shape[1])
        for t in reversed(range(len(values))):
            ahead = self.cost[t] + (self.moves @ later).reshape(self.cost.shape[1:])
            later = values[t] = ahead.max(axis=1)
        return values

    @cached_property
    def caps(self) -> Floats:
        """At least the greatest chance `[t, s]` of a state: one backward sweep for each target gives all steps."""
        steps, states, actions = self.shape
        require_room("the chances of each state after each pair", (states, actions, states), 1, "auto needs none")
        reach = np.empty((steps, states))
        chance = np.eye(states)  # [s, target]
        for t in range(steps):
            reach[t] = chance[self.initial]
            chance = (self.moves @ chance).reshape(states, actions, states).max(axis=1)
        return np.clip(reach, LEAST_CAP, 1.0)

    def chances(self, policy: Policy) -> Floats:
        """The chances `[t, s, a]` of a policy in the model."""
        steps, states, actions = self.shape
        choice = one_hot(policy, actions)
        visits = np.empty(self.shape)
        law = np.zeros(states)
        law[self.initial] = 1.0
        for t in range(steps):
            visits[t] = law[:, None] * choice
            law = self.moves.T @ visits[t].reshape(-1)
        return visits

    def costs_to_go(self, policy: Policy) -> Floats:
        """The cost to come `[t, s]` of a policy in the model."""
        steps, states, actions = self.shape
        chosen = np.arange(states) * actions + policy
        values = np.empty((steps, states))
        later = np.zeros(states)
        for t in reversed(range(steps)):
            later = values[t] = self.cost[t].reshape(-1)[chosen] + self.moves[chosen] @ later
        return values
