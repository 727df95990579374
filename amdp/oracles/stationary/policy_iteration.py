"""Policy iteration (Howard): the best policy for ever, under costs `[s, a]` that never change, with a proof.

A policy is evaluated by linear equations; then every state takes the action that is cheapest now and after it, by these
values. The two objectives differ in the equations (`_Criterion`); what proves a bound is one inequality for any numbers
`V[s]`, whatever they come from. With `r[s, a] = c + discount P V - V`, along the walk of any policy

    sum_t discount^t c(s_t, a_t) = V(s_0) + sum_t discount^t r(s_t, a_t)    in expectation,

so that no policy pays less than `<start, V> + min r / (1 - discount)`; and without a discount, since `V(s_T) / T`
vanishes, no policy pays less than `min r` a step. For the values of an optimal policy both meet what it pays.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import inf
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Bools, Costs, Floats
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.kernels import blas
from amdp.kernels.threads import multiply, one_thread
from amdp.model.connectivity import second_end
from amdp.model.endless import AverageCostPolicies, DiscountedPolicies, EndlessPolicies
from amdp.oracles.base import Planner, PlanningDomain, PlanningOracle, Plans, Report, Status
from amdp.oracles.sizes import power_of_two_above
from amdp.oracles.solving import require_limits, worst

TIE_TOLERANCE = 1e-13  # relative to the largest cost: actions that differ by less differ by rounding
ROUNDING = 8 * float(np.finfo(np.float64).eps)  # relative to the values that were added up

Policy = NDArray[np.intp]  # [s]


@dataclass(frozen=True)
class PolicyIteration:
    """Policy iteration over an endless horizon, discounted or by average cost, with a bound that is proved.

    By average cost the kernel must communicate weakly, so that the least average is the same from every state. Policies
    on the way there may well have several closed classes of states.
    """

    seconds: float = inf  # for each solve
    gap: float = 1e-9  # relative to the largest cost, over 1 - discount: above it an answer is not called optimal
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_limits(self)

    def supports(self, domain: PlanningDomain) -> bool:
        return isinstance(domain, EndlessPolicies) and not reason_to_refuse(domain)

    def bind(self, domain: PlanningDomain) -> Planner:
        return PolicyIterator(self, domain, self)


def reason_to_refuse(domain: EndlessPolicies) -> str:
    """Why the average cost of a domain is not one number for all states; empty if it is, or if costs are discounted."""
    ends = second_end(domain.dynamics) if isinstance(domain, AverageCostPolicies) else None
    if ends is None:
        return ""
    return (
        f"policy-iteration needs a kernel that communicates weakly: from state {ends[1]} a policy can keep away for "
        f"ever from the closed class of state {ends[0]}, so that the least average cost depends on where one ends; "
        "discounted costs do not need it"
    )


class _Evaluation(NamedTuple):
    """What a policy pays in all from each state, and the values by which actions are compared."""

    total: Floats  # [s]
    values: Floats  # [s]


class _Compared(NamedTuple):
    """What each action adds, and by how much rounding may have changed that."""

    excess: Floats  # [s, a]
    error: Floats  # [s, a]


class _Criterion(ABC):
    """An objective over one kernel: how a policy is evaluated, and what its values prove."""

    def __init__(self, domain: EndlessPolicies, discount: float) -> None:
        matrix = domain.dynamics.matrix(0)
        sums = np.asarray(matrix.sum(axis=1), dtype=np.float64)
        # Rows may miss the sum 1 by rounding; without an end that would add up.
        is_sparse = _is_sparse(matrix)
        self.moves: Any = scipy.sparse.diags_array(1.0 / sums) @ matrix if is_sparse else matrix / sums[:, None]
        self.discount = discount
        self.shape, self.start = domain.shape, domain.start

    @property
    @abstractmethod
    def horizon(self) -> float:
        """The most that costs of size 1 come to in all."""

    @abstractmethod
    def evaluate(self, chain: Any, paid: Floats) -> _Evaluation:
        """Evaluate a policy with the moves `chain` `[s, y]` and the costs `paid` `[s]`."""

    def candidates(self, now: _Evaluation) -> Bools | None:
        """The actions `[s, a]` that are compared by values, if not all are."""
        return None

    @abstractmethod
    def in_all(self, excess: float, values: Floats) -> float:
        """What a walk pays in all on which `c + discount P V - V` is always `excess`; at least, if it never is less."""

    def objective(self, now: _Evaluation) -> float:
        """What a policy pays in all from the start."""
        return float(multiply(self.start, now.total))

    def shown(self, values: Floats) -> Floats:
        """The values as they are returned."""
        return values

    def of_policy(self, policy: Policy, cost: Floats) -> _Evaluation:
        """Evaluate a policy `[s]` for costs `[s, a]`."""
        states, actions = self.shape
        pairs = np.arange(states) * actions + policy
        return self.evaluate(self.moves[pairs], cost.reshape(-1)[pairs])

    def compare(self, cost: Floats, values: Floats) -> _Compared:
        """`c + discount P V - V`: what an action costs above the value of its state."""
        drift, size = self.drift(values)
        ending = (1.0 - self.discount) * values[:, None]
        error = ROUNDING * (np.abs(cost) + self.discount * size + np.abs(ending))
        return _Compared(cost + self.discount * drift - ending, error)

    def drift(self, values: Floats) -> tuple[Floats, Floats]:
        """`P V - V`, `[s, a]`, as the sum of `P[s, a, y] (V[y] - V[s])`, and the sum of the sizes of its terms.

        Values of 1e12 that a chance of 1e-12 separates would leave nothing of a difference of products.
        """
        states, actions = self.shape
        if _is_sparse(self.moves):
            pairs = np.repeat(np.arange(states * actions), np.diff(self.moves.indptr))
            terms = self.moves.data * (values[self.moves.indices] - values[pairs // actions])
            sums = [np.bincount(pairs, each, states * actions) for each in (terms, np.abs(terms))]
        else:
            apart = (values - values[:, None])[:, :, None]  # [s, y, 1]
            by_state = self.moves.reshape(states, actions, states)
            sums = [np.matmul(by_state, each) for each in (apart, np.abs(apart))]
        drift, size = np.asarray(sums, dtype=np.float64).reshape(2, states, actions)
        return drift, size


class _Discounted(_Criterion):
    """`V = c + discount P V`."""

    @property
    def horizon(self) -> float:
        return 1.0 / (1.0 - self.discount)

    def evaluate(self, chain: Any, paid: Floats) -> _Evaluation:
        rate = self.discount
        values = _solve(_leaving(chain, 1.0 - rate, rate), paid)
        return _Evaluation(values, values)

    def in_all(self, excess: float, values: Floats) -> float:
        return float(multiply(self.start, values)) + self.horizon * excess


class _Average(_Criterion):
    """`g = P g` and `g + V = c + P V`, with one state of each closed class of the policy at `V = 0`."""

    horizon = 1.0

    def evaluate(self, chain: Any, paid: Floats) -> _Evaluation:
        away = _leaving(chain)  # I - P
        gain, values = np.empty(len(paid)), np.empty(len(paid))
        passing = np.ones(len(paid), dtype=bool)  # states to which the policy does not come back for ever
        for members in _closed_classes(chain):
            gain[members], values[members] = _within_class(_part(away, members, members), paid[members])
            passing[members] = False
        if passing.any():
            inside, ends = np.flatnonzero(passing), np.flatnonzero(~passing)
            own, onward = _part(away, inside, inside), _part(chain, inside, ends)
            least = gain[ends].min()  # by differences: where all classes have the same gain, so has every state
            gain[inside] = least + _solve(own, onward @ (gain[ends] - least))
            values[inside] = _solve(own, paid[inside] - gain[inside] + onward @ values[ends])
        return _Evaluation(gain, values)

    def candidates(self, now: _Evaluation) -> Bools | None:
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
        if _is_sparse(self.moves):
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


def _criterion(domain: EndlessPolicies) -> _Criterion:
    return _Discounted(domain, domain.discount) if isinstance(domain, DiscountedPolicies) else _Average(domain, 1.0)


class _Solved(NamedTuple):
    policy: Policy
    objective: float
    bound: float
    values: Floats
    status: Status
    iterations: int
    note: str = ""


class PolicyIterator(Planner):
    """Policy iteration for one cost array after the other; `reason` says why an oracle chose it."""

    domain: EndlessPolicies  # type: ignore[assignment]

    def __init__(
        self, oracle: PlanningOracle, domain: PlanningDomain, settings: PolicyIteration, reason: str = ""
    ) -> None:
        if isinstance(domain, EndlessPolicies) and (refusal := reason_to_refuse(domain)):
            raise UnsupportedDomain(refusal, "oracle")
        super().__init__(oracle, domain)
        assert isinstance(domain, EndlessPolicies)
        self._criterion = _criterion(domain)
        self._gap, self._seconds, self._reason = settings.gap, settings.seconds, reason

    def minimize(self, costs: Costs) -> Plans:
        """The cheapest policy for each of `costs` `[n, s, a]`."""
        began = perf_counter()
        checked = self.checked(costs)
        solved = [self._solved(cost) for cost in checked]
        objective, bound = np.array([(each.objective, each.bound) for each in solved]).T.copy()
        if not np.isfinite(objective).all():
            raise InvalidInput(f"costs reach {np.abs(checked).max():g}; what they come to in all overflows")
        statuses = [each.status for each in solved]
        notes = [self._reason, *sorted({each.note for each in solved})]
        report = Report(
            self.name,
            perf_counter() - began,
            iterations=sum(each.iterations for each in solved),
            note="; ".join(note for note in notes if note),
        )
        return Plans(
            np.array([each.policy for each in solved], dtype=np.int32),
            objective,
            bound,
            worst(statuses),
            np.array([each.values for each in solved]),
            report,
            checked.shape[2],
            tuple(statuses),
        )

    def _solved(self, cost: Floats) -> _Solved:
        """Iterate on costs of size at most 1 until no action is better, or the time is over."""
        end = perf_counter() + self._seconds
        scale = power_of_two_above(float(np.abs(cost).max()))
        scaled = cost / scale
        policy, seen, note = scaled.argmin(axis=1), set[bytes](), ""
        while True:
            seen.add(policy.tobytes())
            now = self._criterion.of_policy(policy, scaled)
            better = self._improved(policy, now, scaled)
            # By rounding, policies that cost the same may take turns.
            if (better == policy).all() or better.tobytes() in seen:
                break
            if perf_counter() >= end:
                note = f"stopped at {self._seconds:g} seconds"
                break
            policy = better
        bound, most = self._proved(policy, now, scaled)
        settled = self._settled(now, scaled)
        if not note and (settled != policy).any():
            policy = settled
            now = self._criterion.of_policy(policy, scaled)
            again, most = self._proved(policy, now, scaled)
            bound = max(bound, again)
        objective = self._criterion.objective(now)
        is_optimal = most - bound <= self._gap * self._criterion.horizon * float(np.abs(scaled).max())
        values = scale * self._criterion.shown(now.values)
        with np.errstate(over="ignore"):
            numbers = scale * objective, scale * min(bound, objective)
        return _Solved(policy, *numbers, values, Status.OPTIMAL if is_optimal else Status.FEASIBLE, len(seen), note)

    def _among_candidates(self, now: _Evaluation, cost: Floats) -> _Compared:
        """What each action adds; infinite for those that are no candidates."""
        compared, candidates = self._criterion.compare(cost, now.values), self._criterion.candidates(now)
        if candidates is None:
            return compared
        return compared._replace(excess=np.where(candidates, compared.excess, np.inf))

    def _improved(self, policy: Policy, now: _Evaluation, cost: Floats) -> Policy:
        """The cheapest candidate of each state; where the policy is no worse it stays."""
        excess, error = self._among_candidates(now, cost)
        states, best = np.arange(len(policy)), excess.argmin(axis=1)
        doubt = error[states, best] + error[states, policy]
        return np.where(excess[states, best] < excess[states, policy] - doubt, best, policy)

    def _settled(self, now: _Evaluation, cost: Floats) -> Policy:
        """The first of the cheapest candidates of each state."""
        excess, error = self._among_candidates(now, cost)
        tie = np.maximum(TIE_TOLERANCE * np.abs(cost).max(), error)
        first: Policy = np.argmax(excess <= excess.min(axis=1, keepdims=True) + tie, axis=1)
        return first

    def _proved(self, policy: Policy, now: _Evaluation, cost: Floats) -> tuple[float, float]:
        """What no policy pays less than, and what this one does not pay more than, whatever the equations have lost."""
        excess, error = self._criterion.compare(cost, now.values)
        own = (excess + error)[np.arange(len(policy)), policy]
        least, most = float((excess - error).min()), float(own.max())
        return self._criterion.in_all(least, now.values), self._criterion.in_all(most, now.values)


def _leaving(chain: Any, stop: float = 0.0, rate: float = 1.0) -> Any:
    """`stop I + rate (I - P)`; the chance to leave a state is summed up, since `1 - P[s, s]` would lose its digits."""
    if not _is_sparse(chain):
        moves = -rate * chain
        np.fill_diagonal(moves, 0.0)
        np.fill_diagonal(moves, stop - moves.sum(axis=1))
        return moves
    moves = -rate * (chain - scipy.sparse.diags_array(chain.diagonal()))
    return scipy.sparse.csr_array(moves + scipy.sparse.diags_array(stop - np.asarray(moves.sum(axis=1))))


def _closed_classes(chain: Any) -> list[NDArray[np.intp]]:
    """The sets of states that a chain never leaves, and in which it comes everywhere."""
    if not _is_sparse(chain) and chain.all():
        return [np.arange(len(chain))]
    graph = scipy.sparse.csr_array(chain)
    graph.eliminate_zeros()
    count, classes = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    source, target = graph.nonzero()
    is_closed = np.ones(count, dtype=bool)
    is_closed[classes[source[classes[source] != classes[target]]]] = False
    return [np.flatnonzero(classes == number) for number in np.flatnonzero(is_closed)]


def _within_class(away: Any, paid: Floats) -> tuple[float, Floats]:
    """The gain of a closed class, and its values with the first at 0: its column stands for the gain instead."""
    if _is_sparse(away):
        ones = scipy.sparse.csr_array(np.ones((len(paid), 1)))
        solution = _solve(scipy.sparse.hstack([ones, away[:, 1:]], format="csr"), paid)
    else:
        system = away.copy()
        system[:, 0] = 1.0
        solution = _solve(system, paid)
    return float(solution[0]), np.concatenate([[0.0], solution[1:]])


def _is_sparse(matrix: Any) -> bool:
    return bool(scipy.sparse.issparse(matrix))


def _part(matrix: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Any:
    return matrix[rows][:, columns]


def _solve(matrix: Any, right: Floats) -> Floats:
    """`matrix^-1 right`, by dense or sparse LU factors."""
    if _is_sparse(matrix):
        solution: Floats = scipy.sparse.linalg.splu(scipy.sparse.csc_array(matrix)).solve(right)
        return solution
    with one_thread(len(right) ** 3, blas.LARGE_OF_MATRICES):
        return np.linalg.solve(matrix, right)
