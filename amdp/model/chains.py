"""The Markov chains of stationary policies: where they are after any number of steps.

`mu_pi^t` is the law of the pair at step `t` if policy `pi` was followed from the initial state at step 0.
For an initial distribution instead, `entrance` adds an initial state from which all actions lead there.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from amdp import kernels
from amdp.arrays import Actions, Floats, Policies, floats, one_hot, require_distributions
from amdp.errors import InvalidInput
from amdp.kernels import blas
from amdp.kernels.threads import one_thread
from amdp.model.domains import StationaryPolicies
from amdp.model.segments import Pairs
from amdp.model.transitions import STAYS_SPARSE, Kernel, SingleKernel, require_dense

PART_NUMBERS = 4_000_000  # chances that are held together


def rows_of(kernel: SingleKernel) -> Floats:
    """The rows `[s, a, y]` that all steps of a homogeneous kernel share, written out."""
    _, states, actions = kernel.shape
    matrix = kernel.matrix(0)
    require_dense(1, states, actions, STAYS_SPARSE)
    written: Floats = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return written.reshape(states, actions, states)


def chains(rows: Floats, policies: Policies) -> Floats:
    """The chance `[n, s, y]` of each move under each of the policies `[n, s, a]`."""
    moves: Floats = np.einsum("nsa,say->nsy", policies, rows)
    return moves


def laws(moves: Floats, initial: int, start: int, stop: int) -> Floats:
    """The law `[n, m, s]` of the state in the steps `start .. stop - 1`, from `initial` at step 0.

    A power of the chain leads to `start` at once; from there it goes step by step.
    """
    state_laws = np.empty((len(moves), max(stop - start, 0), moves.shape[1]))
    if stop > start:
        with one_thread(moves.shape[1] ** 3, blas.LARGE_OF_MATRICES):
            state_laws[:, 0] = np.linalg.matrix_power(moves, start)[:, initial]
        kernels.switches.forward(np.ascontiguousarray(moves), state_laws)
    return state_laws


def stationary_visits(domain: StationaryPolicies, actions: Actions, pairs: Pairs) -> Floats:
    """The chance `[n, m]` that each of the policies `[n, s]`, followed from the start, is at each pair."""
    if len(pairs.steps) == 0:
        return np.empty((len(actions), 0))
    first, last = int(pairs.steps.min()), int(pairs.steps.max())
    chances = np.empty((len(actions), len(pairs.steps)))
    for part, law in _laws_by_parts(domain, actions, first, last + 1):
        chances[part] = law[:, pairs.steps - first, pairs.states] * (actions[part][:, pairs.states] == pairs.actions)
    return chances


def stationary_costs(domain: StationaryPolicies, actions: Actions, costs: Floats) -> Floats:
    """The expected cost `[n]` of the policies `[n, s]` for one cost array `[t, s, a]`; steps without costs are free."""
    busy = np.flatnonzero(costs.any(axis=(1, 2)))
    paid = np.zeros(len(actions))
    if len(busy) == 0:
        return paid
    first, last = int(busy[0]), int(busy[-1])
    states = np.arange(domain.shape[1])
    for part, law in _laws_by_parts(domain, actions, first, last + 1):
        paid[part] = np.einsum("nts,tns->n", law, costs[first : last + 1, states, actions[part]])
    return paid


def _laws_by_parts(
    domain: StationaryPolicies, actions: Actions, start: int, stop: int
) -> Iterator[tuple[slice, Floats]]:
    """The laws `[n, m, s]` of some policies after the other: all at once may not fit into memory."""
    rows = rows_of(domain.dynamics)
    size = max(1, PART_NUMBERS // ((stop - start) * len(rows)))
    for low in range(0, len(actions), size):
        part = slice(low, low + size)
        yield part, laws(chains(rows, one_hot(actions[part], domain.shape[2])), domain.initial, start, stop)


def entrance(kernel: SingleKernel, start: ArrayLike) -> Kernel:
    """The kernel with one more state, the last, from which all actions lead to the law `start` `[s]`."""
    steps, states, actions = kernel.shape
    law = floats("start", start, "s")
    require_distributions("start", law[None], "ns")
    if len(law) != states:
        raise InvalidInput(f"start has {len(law)} entries; the kernel has {states} states")
    require_dense(1, states + 1, actions)
    rows = np.zeros((states + 1, actions, states + 1))
    rows[:states, :, :states] = rows_of(kernel)
    rows[states, :, :states] = law
    return Kernel.homogeneous(rows, steps)


def start_mass(domain: StationaryPolicies) -> float:
    """The least mass `alpha` that the law after an entrance has on a state; refused where it is 0."""
    rows, last = rows_of(domain.dynamics), domain.shape[1] - 1
    if domain.initial != last or last == 0 or domain.shape[0] < 2:
        raise InvalidInput(
            f"initial = {domain.initial} starts at a point, with no mass elsewhere; give the start a law: see entrance"
        )
    if rows[:, :, last].any():
        s, a = (int(i) for i in np.argwhere(rows[:, :, last])[0])
        raise InvalidInput(f"pair (s={s}, a={a}) leads back to the entrance, state {last}; nobody may return")
    law = rows[last, 0, :last]
    if (rows[last, :, :last] != law).any():
        raise InvalidInput(f"the actions of the entrance, state {last}, lead to different laws; they must be alike")
    if law.min() <= 0.0:
        raise InvalidInput(f"the start has no mass on state {int(law.argmin())}; every state needs some")
    return float(law.min())
