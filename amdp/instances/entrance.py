"""Worlds that begin in a state drawn from a distribution, by an entrance: one more step and one more state.

In the entrance, the last state, all actions draw the first state of the world and cost nothing. So a world always
begins in one state, and nothing else has to know of distributions: oracles, confidence sets, compiled loops and regret
are right as they stand. What it costs is one step: such a world has `H + 1` steps and `S + 1` states, and bounds and
rates of learners, which are those of its sizes, are those of `H + 1` and `S + 1`.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats, require_distributions
from amdp.errors import InvalidInput
from amdp.instances.base import Instance, repeated
from amdp.model.budgets import Budgets
from amdp.model.transitions import Kernel, SingleKernel, SparseKernel, require_dense


@dataclass(frozen=True, eq=False, repr=False)
class EnteredInstance(Instance):
    """A world behind an entrance; adversaries choose losses for the world inside, and the entrance is free."""

    inside: Instance = field(kw_only=True)  # its initial state is not used
    start: Floats = field(kw_only=True)  # [s], the chance of each state of the world inside to be the first


def with_start(instance: Instance, start: ArrayLike) -> EnteredInstance:
    """The same world, which begins in state `s` with chance `start[s]`, whatever its initial state was.

    The states keep their numbers, and step `h` of the world becomes step `h + 1`; the entrance before it costs 0.
    """
    if isinstance(instance, EnteredInstance):
        raise InvalidInput(f"{instance.name} has a start distribution already; give that of its .inside another one")
    law = _distribution(start, instance.shape[1])
    kernel, costs = _entered_kernel(instance.kernel, law), _entered_costs(instance.costs)
    name, scale, budgets = instance.name, instance.scale, _entered_budgets(instance.budgets)
    return EnteredInstance(name, kernel, costs, len(law), scale, budgets, inside=instance, start=law)


def _distribution(start: ArrayLike, n_states: int) -> Floats:
    law = floats("start", start, "s")
    if len(law) != n_states:
        raise InvalidInput(f"start has {len(law)} entries; the world has {n_states} states")
    require_distributions("start", law[None], "ns")
    if not law.any():
        raise InvalidInput("start is all zero; it must sum to 1")
    return law


def _entered_kernel(kernel: SingleKernel, law: Floats) -> SingleKernel:
    steps, states, actions = kernel.shape
    is_sparse = isinstance(kernel, SparseKernel)
    if not is_sparse:
        require_dense(1 if kernel.is_homogeneous else steps + 1, states + 1, actions)
    entered = _entered_sparse if is_sparse else _entered_dense
    # Nobody is inside in the first step: there any rows will do, and any costs.
    distinct = [0] if kernel.is_homogeneous else [0, *range(steps)]
    rows = [entered(kernel.matrix(h), law, actions) for h in distinct]
    if is_sparse:
        return SparseKernel(rows, steps + 1)
    return Kernel.homogeneous(rows[0], steps + 1) if kernel.is_homogeneous else Kernel(np.stack(rows))


def _entered_dense(matrix: Floats, law: Floats, actions: int) -> Floats:
    states = len(law)
    rows = np.zeros((states + 1, actions, states + 1))
    rows[:-1, :, :-1] = matrix.reshape(states, actions, states)
    rows[-1, :, :-1] = law
    return rows


def _entered_sparse(matrix: Any, law: Floats, actions: int) -> Any:
    pairs, states = matrix.shape
    wider = scipy.sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(pairs, states + 1))
    entrance = scipy.sparse.csr_array(np.tile(np.append(law, 0.0), (actions, 1)))
    return scipy.sparse.vstack([wider, entrance], format="csr")


def _entered_budgets(budgets: Budgets | None) -> Budgets | None:
    """The same budgets: the entrance uses nothing."""
    if budgets is None:
        return None
    return replace(budgets, usage=np.stack([_entered_costs(usage) for usage in budgets.usage]))


def _entered_costs(costs: Floats) -> Floats:
    steps, _, actions = costs.shape
    if costs.strides[0] == 0:
        return repeated(np.vstack([costs[0], np.zeros(actions)]), steps + 1)
    return np.pad(np.concatenate([costs[:1], costs]), ((0, 0), (0, 1), (0, 0)))
