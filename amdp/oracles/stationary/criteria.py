"""What is paid in all for ever: the equations of a policy, discounted or on average, and what its values prove."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Bools, Floats
from amdp.kernels import blas
from amdp.kernels.threads import multiply, one_thread
from amdp.model.endless import EndlessPolicies

TIE_TOLERANCE = 1e-13  # relative to the largest cost: actions that differ by less differ by rounding
ROUNDING = 8 * float(np.finfo(np.float64).eps)  # relative to the numbers that were added up

Policy = NDArray[np.intp]  # [s]


def endless_moves(domain: EndlessPolicies) -> Any:
    """The rows `[s * a, y]` of a domain, which sum to 1: what rounding leaves out would add up without an end."""
    matrix = domain.dynamics.matrix(0)
    sums = np.asarray(matrix.sum(axis=1), dtype=np.float64)
    return scipy.sparse.diags_array(1.0 / sums) @ matrix if is_sparse(matrix) else matrix / sums[:, None]


class Evaluation(NamedTuple):
    """What a policy pays in all from each state, and the values by which actions are compared."""

    total: Floats  # [s]
    values: Floats  # [s]


class Compared(NamedTuple):
    """What each action adds, and by how much rounding may have changed that."""

    excess: Floats  # [s, a]
    error: Floats  # [s, a]


class Criterion(ABC):
    """An objective over one kernel: how a policy is evaluated, and what its values prove."""

    def __init__(self, moves: Any, shape: tuple[int, int], start: Floats, discount: float = 1.0) -> None:
        self.moves = moves  # [s * a, y], dense or CSR, rows that sum to 1
        self.shape, self.start, self.discount = shape, start, discount

    @property
    @abstractmethod
    def horizon(self) -> float:
        """The most that costs of size 1 come to in all."""

    @abstractmethod
    def evaluate(self, chain: Any, paid: Floats) -> Evaluation:
        """Evaluate a policy with the moves `chain` `[s, y]` and the costs `paid` `[s]`."""

    def candidates(self, now: Evaluation) -> Bools | None:
        """The actions `[s, a]` that are compared by values, if not all are."""
        return None

    @abstractmethod
    def in_all(self, excess: float, values: Floats) -> float:
        """What a walk pays in all on which `c + discount P V - V` is always `excess`; at least, if it never is less."""

    def objective(self, now: Evaluation) -> float:
        """What a policy pays in all from the start."""
        return float(multiply(self.start, now.total))

    def shown(self, values: Floats) -> Floats:
        """The values as they are returned."""
        return values

    def of_policy(self, policy: Policy, cost: Floats) -> Evaluation:
        """Evaluate a policy `[s]` for costs `[s, a]`."""
        states, actions = self.shape
        pairs = np.arange(states) * actions + policy
        return self.evaluate(self.moves[pairs], cost.reshape(-1)[pairs])

    def compare(self, cost: Floats, values: Floats) -> Compared:
        """`c + discount P V - V`: what an action costs above the value of its state."""
        drift, size = self.drift(values)
        ending = (1.0 - self.discount) * values[:, None]
        error = ROUNDING * (np.abs(cost) + self.discount * size + np.abs(ending))
        return Compared(cost + self.discount * drift - ending, error)

    def drift(self, values: Floats) -> tuple[Floats, Floats]:
        """`P V - V`, `[s, a]`, as the sum of `P[s, a, y] (V[y] - V[s])`, and the sum of the sizes of its terms.

        Values of 1e12 that a chance of 1e-12 separates would leave nothing of a difference of products.
        """
        states, actions = self.shape
        if is_sparse(self.moves):
            pairs = np.repeat(np.arange(states * actions), np.diff(self.moves.indptr))
            terms = self.moves.data * (values[self.moves.indices] - values[pairs // actions])
            sums = [np.bincount(pairs, each, states * actions) for each in (terms, np.abs(terms))]
        else:
            apart = (values - values[:, None])[:, :, None]  # [s, y, 1]
            by_state = self.moves.reshape(states, actions, states)
            sums = [np.matmul(by_state, each) for each in (apart, np.abs(apart))]
        drift, size = np.asarray(sums, dtype=np.float64).reshape(2, states, actions)
        return drift, size


class Discounted(Criterion):
    """`V = c + discount P V`."""

    @property
    def horizon(self) -> float:
        return 1.0 / (1.0 - self.discount)

    def evaluate(self, chain: Any, paid: Floats) -> Evaluation:
        rate = self.discount
        values = solve(_leaving(chain, 1.0 - rate, rate), paid)
        return Evaluation(values, values)

    def in_all(self, excess: float, values: Floats) -> float:
        return float(multiply(self.start, values)) + self.horizon * excess


class Average(Criterion):
    """`g = P g` and `g + V = c + P V`, with one state of each closed class of the policy at `V = 0`."""

    horizon = 1.0

    def evaluate(self, chain: Any, paid: Floats) -> Evaluation:
        gain, values = np.empty(len(paid)), np.empty(len(paid))
        passing = np.ones(len(paid), dtype=bool)  # states to which the policy does not come back for ever
        for members in _closed_classes(chain):
            gain[members], values[members] = _within_class(_part(chain, members, members), paid[members])
            passing[members] = False
        if passing.any():
            inside, ends = np.flatnonzero(passing), np.flatnonzero(~passing)
            own, onward = _part(chain, inside, inside), _part(chain, inside, ends)
            exits = np.asarray(onward.sum(axis=1))
            least = gain[ends].min()  # by differences: where all classes have the same gain, so has every state
            gain[inside] = least + until_end(own, exits, onward @ (gain[ends] - least))
            values[inside] = until_end(own, exits, paid[inside] - gain[inside] + onward @ values[ends])
        return Evaluation(gain, values)

    def candidates(self, now: Evaluation) -> Bools | None:
        """Those that lead to the least gain: only among them do values compare what is left."""
        if np.ptp(now.total) <= TIE_TOLERANCE:
            return None
        drift, _ = self.drift(now.total)
        result: Bools = drift <= drift.min(axis=1, keepdims=True) + TIE_TOLERANCE * self._leaving_chances
        return result

    @cached_property
    def _leaving_chances(self) -> Floats:
        """The chance `[s, a]` to be elsewhere after an action: by it gains that differ by rounding come to differ."""
        states, actions = self.shape
        pairs = np.arange(states * actions)
        if is_sparse(self.moves):
            return np.asarray(self.moves.sum(axis=1) - self.moves[pairs, pairs // actions]).reshape(states, actions)
        elsewhere = self.moves.copy()
        elsewhere[pairs, pairs // actions] = 0.0
        chances: Floats = elsewhere.sum(axis=1).reshape(states, actions)
        return chances

    def in_all(self, excess: float, values: Floats) -> float:
        return excess

    def shown(self, values: Floats) -> Floats:
        """What beginning in a state costs more than beginning at the start."""
        return values - float(multiply(self.start, values))


def _leaving(chain: Any, stop: float | Floats = 0.0, rate: float = 1.0) -> Any:
    """`stop I + rate (I - P)`; the chance to leave a state is summed up, since `1 - P[s, s]` would lose its digits.

    Where the rows of `chain` sum to less than 1, `stop` holds the rest.
    """
    if not is_sparse(chain):
        moves = -rate * chain
        np.fill_diagonal(moves, 0.0)
        np.fill_diagonal(moves, stop - moves.sum(axis=1))
        return moves
    moves = -rate * (chain - scipy.sparse.diags_array(chain.diagonal()))
    return scipy.sparse.csr_array(moves + scipy.sparse.diags_array(stop - np.asarray(moves.sum(axis=1))))


def until_end(chain: Any, exits: Floats, paid: Floats) -> Floats:
    """What is paid in expectation from each state until the states `[s]` are left, with the chance `exits` in a step.

    By factors; where these are singular to rounding, one state after the other is bypassed (Grassmann, Taksar and
    Heyman, 1985), which takes longer, and subtracts no chances.
    """
    try:
        return solve(_leaving(chain, exits), paid)
    except (np.linalg.LinAlgError, RuntimeError):
        return _bypassed(chain.toarray() if is_sparse(chain) else chain.copy(), exits.copy(), paid.copy())


def _bypassed(moves: Floats, exits: Floats, paid: Floats) -> Floats:
    """The same by elimination; overwrites what it is given."""
    leaving = np.empty(len(paid))
    for k in reversed(range(len(paid))):
        leaving[k] = moves[k, :k].sum() + exits[k]
        share = moves[:k, k] / leaving[k]
        paid[:k] += share * paid[k]
        exits[:k] += share * exits[k]
        moves[:k, :k] += share[:, None] * moves[k, :k]
    for k in range(len(paid)):
        paid[k] = (paid[k] + moves[k, :k] @ paid[:k]) / leaving[k]
    return paid


def _closed_classes(chain: Any) -> list[NDArray[np.intp]]:
    """The sets of states that a chain never leaves, and in which it comes everywhere."""
    if not is_sparse(chain) and chain.all():
        return [np.arange(len(chain))]
    graph = scipy.sparse.csr_array(chain)
    graph.eliminate_zeros()
    count, classes = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    source, target = graph.nonzero()
    is_closed = np.ones(count, dtype=bool)
    is_closed[classes[source[classes[source] != classes[target]]]] = False
    return [np.flatnonzero(classes == number) for number in np.flatnonzero(is_closed)]


def _within_class(chain: Any, paid: Floats) -> tuple[float, Floats]:
    """The gain of a closed class, and its values with the first at 0: its column stands for the gain instead."""
    away = _leaving(chain)  # I - P
    try:
        if is_sparse(away):
            ones = scipy.sparse.csr_array(np.ones((len(paid), 1)))
            solution = solve(scipy.sparse.hstack([ones, away[:, 1:]], format="csr"), paid)
        else:
            away[:, 0] = 1.0
            solution = solve(away, paid)
    except (np.linalg.LinAlgError, RuntimeError):
        return _around(chain.toarray() if is_sparse(chain) else chain, paid)
    return float(solution[0]), np.concatenate([[0.0], solution[1:]])


def _around(chain: Floats, paid: Floats) -> tuple[float, Floats]:
    """The same from one visit of the first state to the next: what is paid on the way, and how long it takes."""
    inside, exits, onward = chain[1:, 1:], chain[1:, 0], chain[0, 1:]
    spent, steps = (_bypassed(inside.copy(), exits.copy(), each.copy()) for each in (paid[1:], np.ones(len(paid) - 1)))
    gain = float((paid[0] + onward @ spent) / (1.0 + onward @ steps))
    return gain, np.concatenate([[0.0], _bypassed(inside.copy(), exits.copy(), paid[1:] - gain)])


def is_sparse(matrix: Any) -> bool:
    """Whether a matrix is one of scipy's; without the types that `issparse` would tell a checker of."""
    return bool(scipy.sparse.issparse(matrix))


def _part(matrix: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Any:
    return matrix[rows][:, columns]


def solve(matrix: Any, right: Floats) -> Floats:
    """`matrix^-1 right`, by dense or sparse LU factors."""
    if is_sparse(matrix):
        solution: Floats = scipy.sparse.linalg.splu(scipy.sparse.csc_array(matrix)).solve(right)
        return solution
    with one_thread(len(right) ** 3, blas.LARGE_OF_MATRICES):
        return np.linalg.solve(matrix, right)
