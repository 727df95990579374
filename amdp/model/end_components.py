"""End components: the places in which a walk may stay for ever, whatever the chances.

An end component is a set of states, each with some allowed actions, that these actions never leave and in which they
lead from every state to every state. Under any policy a walk ends up in one of them; the maximal ones are disjoint.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Bools


class EndComponent(NamedTuple):
    """A maximal end component."""

    states: NDArray[np.intp]  # [k]
    allowed: Bools  # [k, a], the actions that do not leave it


def end_components(moves: Any) -> list[EndComponent]:
    """The maximal end components of rows `[s * a, y]`, dense or CSR, by their first states.

    Actions that may leave the strongly connected component of their state are struck out, until none is left that does.
    """
    rows = scipy.sparse.csr_array(moves)
    rows.eliminate_zeros()
    pairs, states = rows.shape
    source, target = np.repeat(np.arange(pairs), np.diff(rows.indptr)), rows.indices
    owner = np.arange(pairs) // (pairs // states)
    allowed = np.ones(pairs, dtype=bool)
    while True:
        kept = allowed[source]
        edges = np.ones(int(kept.sum()), dtype=np.int8), (owner[source[kept]], target[kept])
        graph = scipy.sparse.csr_array(edges, shape=(states, states))
        _, classes = scipy.sparse.csgraph.connected_components(graph, connection="strong")
        leaving = source[kept & (classes[owner[source]] != classes[target])]
        if len(leaving) == 0:
            break
        allowed[leaving] = False
    by_state = allowed.reshape(states, -1)
    members = (np.flatnonzero(classes == number) for number in np.unique(classes[by_state.any(axis=1)]))
    found = [EndComponent(each, by_state[each]) for each in members]
    return sorted(found, key=lambda component: int(component.states[0]))
