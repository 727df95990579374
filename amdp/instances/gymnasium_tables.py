"""Read the transition tables of Gymnasium's toy-text environments (FrozenLake, CliffWalking, Taxi).

`env.unwrapped.P[s][a]` lists `(chance, next state, reward, terminated)`. A list may name one next state several times
(walls), and what follows a `terminated` entry means nothing: CliffWalking's goal has ordinary rows.
"""

from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp import registry
from amdp.arrays import Bools, Floats, floats, require_distributions
from amdp.errors import InvalidInput, MissingDependency
from amdp.instances.base import Instance, costs_of_rewards, repeated, require_counts
from amdp.model.transitions import SparseKernel

Terminal = Literal["absorb", "restart"]


def from_gymnasium(env: Any, horizon: int, terminal: Terminal = "absorb") -> Instance:
    """The first `horizon` steps of an environment (or of the id of one) as a world with a sparse kernel.

    States keep their numbers; wrappers are not in the table and are ignored, a time limit too. `terminated` entries
    lead, under `"absorb"`, to one more state `S` in which nothing happens and no reward is paid; under `"restart"`,
    to the start distribution. If the start is random (Taxi), one last state is added: the world starts there, its
    first step costs nothing and draws the start, and there are `horizon + 1` steps.

    The cost of a pair is `(best - E[reward]) / (best - worst)`, with `best` and `worst` over all entries of the table
    and, if there is an absorbing state, its reward 0. So every policy's expected return over `horizon` steps is
    `scale.original(total cost)`, and the cheapest policy has the greatest return. The absorbing state is therefore
    free only if no reward is above 0: in FrozenLake, where only the goal pays, a hole costs 1 a step.
    """
    require_counts(horizon=horizon)
    if terminal not in get_args(Terminal):
        raise InvalidInput(f"{terminal!r}; it must be 'absorb' or 'restart'", "terminal")
    if isinstance(env, str):
        with closing(_make(env)) as made:
            return from_gymnasium(made, horizon, terminal)
    name = _name(env)
    table, start = _tables(name, env.unwrapped)
    absorbs = terminal == "absorb" and bool(table.ends.any())
    rows = _rows(table, start, absorbs)
    rewards = np.zeros((rows.shape[1], table.n_actions))
    rewards[: table.n_states] = table.summed(table.chance * table.reward).reshape(table.n_states, table.n_actions)
    paid = np.append(table.reward[table.chance > 0], [0.0] if absorbs else [])
    costs, scale = costs_of_rewards(rewards, horizon, float(paid.max()), float(paid.min()))
    initial, n_steps = int(np.argmax(start)), horizon
    if np.count_nonzero(start) > 1:
        rows, costs = _with_draw(rows, start, table.n_actions), np.vstack([costs, np.zeros(table.n_actions)])
        initial, n_steps = len(costs) - 1, horizon + 1
    label = f"{name}-restart" if terminal == "restart" else name
    return Instance(label, SparseKernel.homogeneous(rows, n_steps), repeated(costs, n_steps), initial, scale)


@dataclass(frozen=True, eq=False)
class _Table:
    """All entries of `P`, one after the other."""

    n_states: int
    n_actions: int
    pair: NDArray[np.int64]  # s * A + a
    chance: Floats
    successor: NDArray[np.int64]
    reward: Floats
    ends: Bools

    def summed(self, weights: Floats) -> Floats:
        """The sum of a weight of each entry over the entries of a pair, `[s*a]`."""
        return np.bincount(self.pair, weights, self.n_states * self.n_actions).astype(np.float64)


def _rows(table: _Table, start: Floats, absorbs: bool) -> Any:
    """Rows `[s*a, y]`; entries that end the episode lead to one more state that absorbs, or to the start."""
    kept, shape = ~table.ends, (table.n_states * table.n_actions, table.n_states)
    places = (table.pair[kept], table.successor[kept])
    going_on = scipy.sparse.coo_array((table.chance[kept], places), shape=shape).tocsr()  # sums repeated successors
    ending = scipy.sparse.csr_array(table.summed(table.chance * table.ends)[:, None])
    if not absorbs:
        return going_on + ending @ scipy.sparse.csr_array(start[None])
    ended = np.zeros((table.n_actions, table.n_states + 1))
    ended[:, -1] = 1.0
    parts = [scipy.sparse.hstack([going_on, ending]), scipy.sparse.csr_array(ended)]
    return scipy.sparse.vstack(parts, format="csr")


def _with_draw(rows: Any, start: Floats, n_actions: int) -> Any:
    """`rows` and one more state, from which every action draws the start."""
    first = np.zeros((n_actions, rows.shape[1] + 1))
    first[:, : len(start)] = start
    wider = scipy.sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], rows.shape[1] + 1))
    return scipy.sparse.vstack([wider, scipy.sparse.csr_array(first)], format="csr")


def _make(name: str) -> Any:
    if registry.missing(("gymnasium",)):
        raise MissingDependency('from_gymnasium needs gymnasium: pip install "amdp[gym]"')
    import gymnasium

    try:
        return gymnasium.make(name)
    except (gymnasium.error.Error, ImportError) as problem:
        raise InvalidInput(f"gymnasium cannot make {name!r}: {problem}") from problem


def _name(env: Any) -> str:
    if not hasattr(env, "unwrapped"):
        raise InvalidInput(f"env is a {type(env).__name__}; give a gymnasium environment or the id of one")
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__


def _tables(name: str, raw: Any) -> tuple[_Table, Floats]:
    if getattr(raw, "fickle_passenger", False):
        raise InvalidInput(f"{name} has fickle_passenger=True, which its table does not show; make it without")
    for attribute in ("P", "initial_state_distrib"):
        if not hasattr(raw, attribute):
            raise InvalidInput(
                f"{name} has no table {attribute!r}; readable are environments with one, "
                "such as FrozenLake, CliffWalking and Taxi"
            )
    table = _flattened(name, raw.P)
    start = floats("initial_state_distrib", raw.initial_state_distrib, "s")
    if len(start) != table.n_states:
        raise InvalidInput(f"{name}: initial_state_distrib has {len(start)} entries for {table.n_states} states")
    require_distributions("initial_state_distrib", start[None], "ns")
    if not start.any():
        raise InvalidInput(f"{name}: initial_state_distrib is all zero; it must sum to 1")
    return table, start


def _flattened(name: str, p: Any) -> _Table:
    n_states, n_actions = len(p), len(p[0])
    for s in range(n_states):
        if len(p[s]) != n_actions:
            raise InvalidInput(f"{name}: P[{s}] has {len(p[s])} actions, P[0] has {n_actions}; all must have as many")
    pairs = range(n_states * n_actions)
    entries = [(pair, *entry) for pair in pairs for entry in p[pair // n_actions][pair % n_actions]]
    kinds = (np.int64, np.float64, np.int64, np.float64, np.bool_)
    columns = zip(*entries, strict=True)
    arrays: list[Any] = [np.array(column).astype(kind) for column, kind in zip(columns, kinds, strict=True)]
    table = _Table(n_states, n_actions, *arrays)
    outside = (table.successor < 0) | (table.successor >= n_states)
    if outside.any():
        i = int(np.argmax(outside))
        s, a = divmod(int(table.pair[i]), n_actions)
        raise InvalidInput(f"{name}: P[{s}][{a}] leads to state {table.successor[i]}; there are {n_states} states")
    return table
