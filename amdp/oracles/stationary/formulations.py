"""The best stationary policy as a mixed-integer program, in three formulations.

`choice[s, a]` is 1 for the action of a state; it is the last block of columns in each of them.

occupancy   `min <c, x>` over occupancy measures with `x[t,s,a] <= M[t,s] choice[s,a]`, where `M[t,s]` is the greatest
            chance, under any policy, of being in `s` at step `t`
aggregated  the same with the sums over `t` of both sides: fewer rows, a weaker relaxation
value       `min V[0, initial]` with `V[t,s] >= c[t,s,a] + (P V[t+1])[s,a] - B[t,s,a] (1 - choice[s,a])`, where `B` is
            what the right-hand side can exceed the left-hand side by
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from amdp import kernels
from amdp.arrays import Floats, one_hot
from amdp.errors import InvalidInput
from amdp.mdp import MarkovPolicies, SingleKernel
from amdp.oracles.polytope import polytope
from amdp.oracles.stationary.planning import Chains, Policy


class Formulation(NamedTuple):
    """`row_lower <= matrix @ x <= row_upper`, `lower <= x <= upper`, the last S * A columns whole."""

    matrix: Any  # CSC
    row_lower: Floats
    row_upper: Floats
    cost: Floats
    lower: Floats
    upper: Floats
    n_choices: int
    start: Callable[[Policy], Floats]  # a feasible point of a policy


def occupancy(chains: Chains, cost: Floats) -> Formulation:
    """A row for each pair and step."""
    steps, states, actions = chains.shape
    ceilings = np.repeat(greatest_reach(chains).reshape(-1), actions)
    pairs = np.arange(steps * states * actions)
    caps = scipy.sparse.coo_array(
        (-ceilings, (pairs, pairs % (states * actions))), shape=(len(pairs), states * actions)
    )
    return _over_occupancy(chains, cost, scipy.sparse.eye_array(len(pairs)), caps)


def aggregated(chains: Chains, cost: Floats) -> Formulation:
    """A row for each pair."""
    steps, states, actions = chains.shape
    ceilings = np.repeat(greatest_reach(chains).sum(axis=0), actions)
    over_time = scipy.sparse.hstack([scipy.sparse.eye_array(states * actions)] * steps)
    return _over_occupancy(chains, cost, over_time, -scipy.sparse.diags_array(ceilings))


def value(chains: Chains, cost: Floats) -> Formulation:
    """A row for each pair and step, over values instead of chances."""
    steps, states, actions = chains.shape
    least, greatest = _extreme_values(chains.kernel, cost)
    later = np.zeros((steps, states * actions))
    for t in range(steps - 1):
        later[t] = chains.kernel.matrix(t) @ greatest[t + 1]
    excess = np.maximum(0.0, cost.reshape(steps, -1) + later - np.repeat(least, actions, axis=1)).reshape(-1)
    own = scipy.sparse.kron(scipy.sparse.eye_array(steps * states), np.ones((actions, 1)))
    move = scipy.sparse.csr_array(chains.kernel.matrix(0))
    ahead = scipy.sparse.kron(scipy.sparse.eye_array(steps, k=1), move)
    pairs = np.arange(steps * states * actions)
    relax = scipy.sparse.coo_array((-excess, (pairs, pairs % (states * actions))), shape=(len(pairs), states * actions))
    first = np.zeros(steps * states)
    first[chains.initial] = 1.0

    def start(policy: Policy) -> Floats:
        values = np.empty((steps, states))
        kernels.chains.costs_to_go(chains.rows, cost, policy, values)
        return np.concatenate([values.reshape(-1), one_hot(policy, actions).reshape(-1)])

    matrix = scipy.sparse.vstack(
        [scipy.sparse.hstack([own - ahead, relax]), _one_action(steps * states, states, actions)]
    )
    return Formulation(
        matrix.tocsc(),
        np.concatenate([cost.reshape(-1) - excess, np.ones(states)]),
        np.concatenate([np.full(len(pairs), np.inf), np.ones(states)]),
        np.concatenate([first, np.zeros(states * actions)]),
        np.concatenate([least.reshape(-1), np.zeros(states * actions)]),
        np.concatenate([greatest.reshape(-1), np.ones(states * actions)]),
        states * actions,
        start,
    )


def require_suffix(path: str | Path) -> None:
    """Refuse files that are neither `.lp` nor `.mps`."""
    if Path(path).suffix not in (".lp", ".mps"):
        raise InvalidInput(f"{path}: the suffix must be .lp or .mps, not {Path(path).suffix!r}")


FORMULATIONS = {"occupancy": occupancy, "aggregated": aggregated, "value": value}


def greatest_reach(chains: Chains) -> Floats:
    """The greatest chance `[t, s]` of a state: one backward sweep for each target gives all steps."""
    steps, states, actions = chains.shape
    reach = np.empty((steps, states))
    chance = np.eye(states)  # [s, target]
    for t in range(steps):
        reach[t] = np.minimum(1.0, chance[chains.initial])
        chance = (chains.kernel.matrix(0) @ chance).reshape(states, actions, states).max(axis=1)
    return reach


def _over_occupancy(chains: Chains, cost: Floats, chances: Any, caps: Any) -> Formulation:
    """Flow conservation, `chances @ x + caps @ choice <= 0`, and one action a state."""
    steps, states, actions = chains.shape
    flow = polytope(MarkovPolicies(chains.kernel, chains.initial))
    size = steps * states * actions
    matrix = scipy.sparse.vstack(
        [
            scipy.sparse.hstack([flow.matrix, scipy.sparse.csc_array((flow.matrix.shape[0], states * actions))]),
            scipy.sparse.hstack([chances, caps]),
            _one_action(size, states, actions),
        ]
    )
    n_caps = caps.shape[0]

    def start(policy: Policy) -> Floats:
        choice = one_hot(policy, actions)
        always = np.broadcast_to(choice, (1, steps, states, actions))
        return np.concatenate([chains.kernel.occupancy(always, chains.initial).reshape(-1), choice.reshape(-1)])

    return Formulation(
        matrix.tocsc(),
        np.concatenate([flow.row_lower, np.full(n_caps, -np.inf), np.ones(states)]),
        np.concatenate([flow.row_upper, np.zeros(n_caps), np.ones(states)]),
        np.concatenate([cost.reshape(-1), np.zeros(states * actions)]),
        np.zeros(size + states * actions),
        np.ones(size + states * actions),
        states * actions,
        start,
    )


def _one_action(before: int, states: int, actions: int) -> Any:
    """`sum_a choice[s, a]`, after so many other columns."""
    sums = scipy.sparse.kron(scipy.sparse.eye_array(states), np.ones((1, actions)))
    return scipy.sparse.hstack([scipy.sparse.csr_array((states, before)), sums])


def _extreme_values(kernel: SingleKernel, cost: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest cost to come `[t, s]` over all policies."""
    return kernel.cheapest(cost[None]).values[0], -kernel.cheapest(-cost[None]).values[0]
