"""Every deterministic policy, evaluated: the last word on small cases, over Markov and over stationary policies.

Of stationary policies only the closed ones are listed: those that differ at a state to which they come. Over the same
kernel, the laws of all of them make a table, and a batch of costs is then one matrix product for each pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Floats
from amdp.errors import InvalidInput, UnsupportedDomain
from amdp.kernels.searches import Floors, Problem
from amdp.mdp import Domain
from amdp.oracles.base import Planner
from amdp.oracles.markov.enumeration import MarkovEnumerator, can_be_listed, count_deciding
from amdp.oracles.stationary.branch_and_bound import new_tree, proved
from amdp.oracles.stationary.local_search import descents
from amdp.oracles.stationary.planning import Chains, Found, StationaryPlanner, Watch, evaluation_error, is_stationary

TOGETHER = 64  # cost arrays of one matrix product
PORTION = 64  # nodes between two looks whether anyone wants to stop
NO_BOUNDS = np.empty(0)
ROUGH = 1e-6  # a law that moves by less counts as stationary in the table
CLOSE = 1_000  # policies that the table cannot tell apart and that are evaluated one by one


@dataclass(frozen=True)
class Enumeration:
    """The cheapest of all policies that differ where they come; refused above `limit` of them."""

    limit: int = 200_000
    table: int = 2**28  # bytes that the laws of all stationary policies may fill, from the second solve on
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise InvalidInput(f"limit = {self.limit}; it must be at least 1")
        if self.table < 0:
            raise InvalidInput(f"table = {self.table}; it must be at least 0 bytes")

    def supports(self, domain: Domain) -> bool:
        """Markov policies over a kernel or a box, and stationary policies over a kernel, if they are few."""
        if is_stationary(domain):
            return count_closed(_chains(domain), self.limit) <= self.limit
        return can_be_listed(domain) and _fits(domain, self.limit)

    def bind(self, domain: Domain) -> Planner:
        """Count the policies, and refuse too many."""
        if is_stationary(domain):
            self._require(self.supports(domain), f"more than {self.limit}")
            return StationaryPlanner(self, domain, lambda chains: _Listed(chains, self), gap=1e-9, together=TOGETHER)
        if can_be_listed(domain):
            many = f"{domain.shape[2]}^{count_deciding(domain)}"
            self._require(self.supports(domain), many)
        return MarkovEnumerator(self, domain)

    def _require(self, few: bool, many: str) -> None:
        if not few:
            raise UnsupportedDomain(
                f"Enumeration would try {many} policies, more than its limit of {self.limit}; "
                "use another oracle, or raise the limit"
            )


def count_closed(chains: Chains, limit: int) -> int:
    """How many stationary policies differ where they come, up to `limit + 1`."""
    steps, states, actions = chains.shape
    nowhere = np.empty((0, states), dtype=np.int64)
    return int(kernels.trees.list_closed(chains.rows, actions, chains.initial, steps, limit, nowhere))


class _Listed:
    name = ""

    def __init__(self, chains: Chains, settings: Enumeration) -> None:
        self._chains = chains
        self._settings = settings
        self._solved = 0

    def solve(self, problems: Sequence[Problem], watch: Watch) -> list[Found]:
        """One by one at first; by the table once there is more than one to solve."""
        self._solved += len(problems)
        told = self._table.solve(problems) if self._solved > 1 and self._table else [None] * len(problems)
        return [one or self._one(problem, watch) for one, problem in zip(told, problems, strict=True)]

    @cached_property
    def _table(self) -> "Table | None":
        return Table.of(self._chains, self._settings.limit, self._settings.table)

    def _one(self, problem: Problem, watch: Watch) -> Found:
        """Try all; a descent gives the value that a policy must fall below to be followed to its end."""
        tree = new_tree(self._chains, descents(self._chains, problem, 1, watch))
        floors = _no_floors(self._chains)
        while tree.counts[0] > 0:
            kernels.trees.grow(self._chains.rows, problem, floors, tree, NO_BOUNDS, 0, PORTION)
            watch.tell(float(tree.best[0]), -inf, int(tree.counts[1]))
        return Found(tree.policy, proved(tree, problem), int(tree.counts[3]))


@dataclass(frozen=True, eq=False)
class Table:
    """The laws of all closed policies until they are roughly stationary.

    The table tells which policies may be the cheapest; those are evaluated exactly.
    """

    chains: Chains
    policies: NDArray[np.int64]  # [n, s], -1 where a policy never comes
    groups: Sequence[tuple[int, int, NDArray[np.intp], Floats]]  # s, a, which policies, their chances [n, t] to be in s
    ends: NDArray[np.int64]  # [n], the step from which the law of each stays as it is

    @classmethod
    def of(cls, chains: Chains, limit: int, room: int) -> "Table | None":
        """The table, or None if it does not fit into so many bytes."""
        steps, states, actions = chains.shape
        n = count_closed(chains, limit)
        columns = min(steps, room // (8 * n * states))
        if columns < 1:
            return None
        policies = np.empty((n, states), dtype=np.int64)
        kernels.trees.list_closed(chains.rows, actions, chains.initial, steps, limit, policies)
        laws = np.empty((states, n, columns))
        ends = kernels.chains.occupy(chains.rows, actions, policies, chains.initial, ROUGH, laws)
        last = int(ends.max())
        if last == columns < steps:
            return None
        pairs = [(s, a, np.flatnonzero(policies[:, s] == a)) for s, a in np.ndindex(states, actions)]
        groups = [(s, a, who, laws[s, who, : last + 1].copy()) for s, a, who in pairs if len(who)]
        return cls(chains, policies, groups, ends)

    def solve(self, problems: Sequence[Problem]) -> list[Found | None]:
        """The cheapest policy for each problem; None where too many are too close to the cheapest."""
        paid = np.zeros((len(self.policies), len(problems)))
        actions = problems[0].costs.shape[2]
        last = int(self.ends.max())
        for s, a, who, chances in self.groups:
            prices = np.empty((chances.shape[1], len(problems)))
            for i, problem in enumerate(problems):
                prices[:last, i] = problem.costs[:last, s, a]
                prices[last:, i] = problem.tails[last, s * actions + a]
            paid[who] += chances @ prices
        return [self._found(problem, paid[:, i]) for i, problem in enumerate(problems)]

    def _found(self, problem: Problem, paid: Floats) -> Found | None:
        steps = problem.costs.shape[0]
        errors = 1e-13 * steps + 0.5 * ROUGH * problem.spans[self.ends + 1]
        close = np.flatnonzero(paid - errors <= (paid + errors).min())
        if len(close) > CLOSE:
            return None
        policies = np.maximum(self.policies[close], 0)
        exact = np.array([self.chains.value(problem, policy) for policy in policies])
        winner = int(exact.argmin())
        bound = float(exact[winner]) - evaluation_error(problem)
        return Found(policies[winner].copy(), bound, len(self.policies))


def _no_floors(chains: Chains) -> Floors:
    return Floors(np.zeros((1, chains.shape[1])), np.zeros(chains.shape[1]))


def _chains(domain: Domain) -> Chains:
    return Chains(domain.dynamics, domain.initial)  # type: ignore[arg-type]


def _fits(domain: Domain, limit: int) -> bool:
    return bool(domain.shape[2] ** count_deciding(domain) <= limit)
