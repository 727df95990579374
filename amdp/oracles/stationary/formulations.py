"""The best stationary policy as a mixed-integer program, step by step, over a model that solvers can hold.

Chances near the tolerances of solvers leave the model, and pay the least that can follow. Let `R` be the entries of
the kernel below `LEAST_CHANCE`, `K` the others, and `v[t, s]` the least cost to come over all policies that may choose
by step. The rounded model has the rows `K` and the costs

    c'[t, s, a] = c[t, s, a] + sum_y R(s, a, y) v[t+1, y].

Let `V` be the cost to come of a policy, and `V'` what it pays in the model. Then `V' <= V` at all steps and states: by
induction from the last step, for the actions of the policy,

    V'[t] = c[t] + R v[t+1] + K V'[t+1] <= c[t] + R V[t+1] + K V[t+1] = V[t].

So the least cost in the model is a bound on all policies as it stands: the charge for rounding is paid inside. It is
`sum_t <mu'[t], R (V - v)[t+1]>`, with `mu'` the law of the policy in the model: the chance of a removed move times what
would have been paid above `v` after it. That is at most `LEAST_CHANCE` times the number of states times the sum over
steps of the largest `V - v`. What a policy really costs is worked out from the true rows.

Over this model, `choice[s, a]` is 1 for the action of a state; it is the last block of columns. The formulations:

occupancy   `min <c, x>` over occupancy measures with `x[t,s,a] <= M[t,s] choice[s,a]`, where `M[t,s]` is at least the
            chance, under any policy, of being in `s` at step `t`
aggregated  the same with the sums over `t` of both sides: fewer rows, a weaker relaxation
value       `min V[0, initial]` with `V[t,s] >= c[t,s,a] + (P V[t+1])[s,a] - B[t,s,a] (1 - choice[s,a])`, where `B` is
            at least what the right-hand side can exceed the left-hand side by

A fourth formulation, over runs of equal costs, is in `amdp.oracles.stationary.phases`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Floats, one_hot, require_room
from amdp.model.segments import Shape
from amdp.oracles.model_files import Block, grid
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
    runs: NDArray[np.int64]  # [t], the first later step with other costs, as they were before they were charged

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
        runs = np.empty(steps, dtype=np.int64)
        kernels.search.bounds.find_runs(cost, runs)
        return cls(chains.shape, chains.initial, kept, charged, least, runs)

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
        choice, visits = one_hot(policy, self.shape[2]), np.empty(self.shape)
        law = np.zeros(self.shape[1])
        law[self.initial] = 1.0
        for t in range(len(visits)):
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


class Formulation(NamedTuple):
    """`row_lower <= matrix @ x <= row_upper`, `lower <= x <= upper`, the last S * A columns whole."""

    matrix: Any  # CSC
    row_lower: Floats
    row_upper: Floats
    cost: Floats
    lower: Floats
    upper: Floats
    n_choices: int
    start: Floats  # a feasible point
    column_blocks: tuple[Block, ...]
    row_blocks: tuple[Block, ...]


def occupancy(model: Rounded, start: Policy) -> Formulation:
    """The formulation with a row for each pair and step."""
    caps = _by_choice(-np.repeat(model.caps.reshape(-1), model.shape[2]), model.shape)
    rows = grid("only_chosen", *model.shape)
    return _over_occupancy(model, start, scipy.sparse.eye_array(caps.shape[0]), caps, rows)


def aggregated(model: Rounded, start: Policy) -> Formulation:
    """The formulation with a row for each pair, summed over steps."""
    steps, states, actions = model.shape
    ceilings = np.repeat(model.caps.sum(axis=0), actions)
    over_time = scipy.sparse.hstack([scipy.sparse.eye_array(states * actions)] * steps)
    rows = grid("only_chosen", states, actions)
    return _over_occupancy(model, start, over_time, -scipy.sparse.diags_array(ceilings), rows)


def value(model: Rounded, start: Policy) -> Formulation:
    """The formulation over values instead of chances, with a row for each pair and step."""
    steps, states, actions = model.shape
    least, greatest = model.least, np.maximum(model.greatest, model.least)
    later = np.zeros((steps, states * actions))
    for t in range(steps - 1):
        later[t] = model.moves @ greatest[t + 1]
    excess = model.cost.reshape(steps, -1) + later - np.repeat(least, actions, axis=1)
    relaxed = np.maximum(LEAST_CAP, excess).reshape(-1)
    own = scipy.sparse.kron(scipy.sparse.eye_array(steps * states), np.ones((actions, 1)))
    ahead = scipy.sparse.kron(scipy.sparse.eye_array(steps, k=1), model.moves)
    first = np.zeros(steps * states)
    first[model.initial] = 1.0
    rows = scipy.sparse.hstack([own - ahead, _by_choice(-relaxed, model.shape)])
    matrix = scipy.sparse.vstack([rows, _one_action(steps * states, states, actions)])
    return Formulation(
        matrix.tocsc(),
        np.concatenate([model.cost.reshape(-1) - relaxed, np.ones(states)]),
        np.concatenate([np.full(len(relaxed), np.inf), np.ones(states)]),
        np.concatenate([first, np.zeros(states * actions)]),
        np.concatenate([least.reshape(-1), np.zeros(states * actions)]),
        np.concatenate([greatest.reshape(-1), np.ones(states * actions)]),
        states * actions,
        np.concatenate([model.costs_to_go(start).reshape(-1), one_hot(start, actions).reshape(-1)]),
        (grid("V", steps, states), grid("choice", states, actions)),
        (grid("at_least", *model.shape), grid("one_action", states)),
    )


def _over_occupancy(model: Rounded, start: Policy, chances: Any, caps: Any, cap_rows: Block) -> Formulation:
    """Flow conservation, `chances @ x + caps @ choice <= 0`, and one action a state."""
    steps, states, actions = model.shape
    size, n_caps = steps * states * actions, caps.shape[0]
    leaving = scipy.sparse.kron(scipy.sparse.eye_array(steps * states), np.ones((1, actions)))
    entering = scipy.sparse.kron(scipy.sparse.eye_array(steps, k=-1), model.moves.T)
    flow = scipy.sparse.hstack([leaving - entering, scipy.sparse.csr_array((steps * states, states * actions))])
    first = np.zeros(steps * states)
    first[model.initial] = 1.0
    matrix = scipy.sparse.vstack([flow, scipy.sparse.hstack([chances, caps]), _one_action(size, states, actions)])
    return Formulation(
        matrix.tocsc(),
        np.concatenate([first, np.full(n_caps, -np.inf), np.ones(states)]),
        np.concatenate([first, np.zeros(n_caps), np.ones(states)]),
        np.concatenate([model.cost.reshape(-1), np.zeros(states * actions)]),
        np.zeros(size + states * actions),
        np.ones(size + states * actions),
        states * actions,
        np.concatenate([model.chances(start).reshape(-1), one_hot(start, actions).reshape(-1)]),
        (grid("x", *model.shape), grid("choice", states, actions)),
        (grid("balance", steps, states), cap_rows, grid("one_action", states)),
    )


def _by_choice(coefficients: Floats, shape: Shape) -> Any:
    """A row for each pair and step, with its coefficient in the column of `choice[s, a]`."""
    width, rows = shape[1] * shape[2], np.arange(len(coefficients))
    return scipy.sparse.coo_array((coefficients, (rows, rows % width)), shape=(len(rows), width))


def _one_action(before: int, states: int, actions: int) -> Any:
    """`sum_a choice[s, a]`, after so many other columns."""
    sums = scipy.sparse.kron(scipy.sparse.eye_array(states), np.ones((1, actions)))
    return scipy.sparse.hstack([scipy.sparse.csr_array((states, before)), sums])
