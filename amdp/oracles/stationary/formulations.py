"""The best stationary policy as a mixed-integer program over a rounded model, in three formulations.

`choice[s, a]` is 1 for the action of a state; it is the last block of columns in each of them.

occupancy   `min <c, x>` over occupancy measures with `x[t,s,a] <= M[t,s] choice[s,a]`, where `M[t,s]` is at least the
            chance, under any policy, of being in `s` at step `t`
aggregated  the same with the sums over `t` of both sides: fewer rows, a weaker relaxation
value       `min V[0, initial]` with `V[t,s] >= c[t,s,a] + (P V[t+1])[s,a] - B[t,s,a] (1 - choice[s,a])`, where `B` is
            at least what the right-hand side can exceed the left-hand side by
"""

from typing import Any, NamedTuple

import numpy as np
import scipy

from amdp.arrays import Floats, one_hot
from amdp.oracles.stationary.chains import Policy
from amdp.oracles.stationary.rounding import LEAST_CAP, Rounded


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


def occupancy(model: Rounded, start: Policy) -> Formulation:
    """The formulation with a row for each pair and step."""
    steps, states, actions = model.shape
    ceilings = np.repeat(model.caps.reshape(-1), actions)
    pairs = np.arange(steps * states * actions)
    caps = scipy.sparse.coo_array(
        (-ceilings, (pairs, pairs % (states * actions))), shape=(len(pairs), states * actions)
    )
    return _over_occupancy(model, start, scipy.sparse.eye_array(len(pairs)), caps)


def aggregated(model: Rounded, start: Policy) -> Formulation:
    """The formulation with a row for each pair, summed over steps."""
    steps, states, actions = model.shape
    ceilings = np.repeat(model.caps.sum(axis=0), actions)
    over_time = scipy.sparse.hstack([scipy.sparse.eye_array(states * actions)] * steps)
    return _over_occupancy(model, start, over_time, -scipy.sparse.diags_array(ceilings))


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
    pairs = np.arange(steps * states * actions)
    relax = scipy.sparse.coo_array(
        (-relaxed, (pairs, pairs % (states * actions))), shape=(len(pairs), states * actions)
    )
    first = np.zeros(steps * states)
    first[model.initial] = 1.0
    matrix = scipy.sparse.vstack(
        [scipy.sparse.hstack([own - ahead, relax]), _one_action(steps * states, states, actions)]
    )
    return Formulation(
        matrix.tocsc(),
        np.concatenate([model.cost.reshape(-1) - relaxed, np.ones(states)]),
        np.concatenate([np.full(len(pairs), np.inf), np.ones(states)]),
        np.concatenate([first, np.zeros(states * actions)]),
        np.concatenate([least.reshape(-1), np.zeros(states * actions)]),
        np.concatenate([greatest.reshape(-1), np.ones(states * actions)]),
        states * actions,
        np.concatenate([model.costs_to_go(start).reshape(-1), one_hot(start, actions).reshape(-1)]),
    )


FORMULATIONS = {"occupancy": occupancy, "aggregated": aggregated, "value": value}


def _over_occupancy(model: Rounded, start: Policy, chances: Any, caps: Any) -> Formulation:
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
    )


def _one_action(before: int, states: int, actions: int) -> Any:
    """`sum_a choice[s, a]`, after so many other columns."""
    sums = scipy.sparse.kron(scipy.sparse.eye_array(states), np.ones((1, actions)))
    return scipy.sparse.hstack([scipy.sparse.csr_array((states, before)), sums])
