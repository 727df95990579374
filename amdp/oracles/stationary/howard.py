"""Howard's policy iteration for one criterion: evaluate a policy, improve it at every state, until none is better."""

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from amdp.arrays import Floats
from amdp.oracles.stationary.criteria import TIE_TOLERANCE, Compared, Criterion, Evaluation, Policy


class Solved(NamedTuple):
    """A policy, what it pays and does not exceed, and what no policy pays less than."""

    policy: Policy
    objective: float
    bound: float
    most: float  # the objective is not above this, whatever its equations have lost
    values: Floats  # [s]
    iterations: int
    is_complete: bool = True  # if not, the time was over
    note: str = ""


@dataclass(frozen=True, eq=False)
class Iteration:
    """Policy iteration over a kernel from which the least total is proved by one set of values."""

    criterion: Criterion

    @property
    def horizon(self) -> float:
        """The most that costs of size 1 come to in all."""
        return self.criterion.horizon

    def solve(self, cost: Floats, end: float) -> Solved:
        """Iterate on costs `[s, a]` of size at most 1 until no action is better, or the time is over."""
        policy, seen, is_complete = cost.argmin(axis=1), set[bytes](), True
        while True:
            seen.add(policy.tobytes())
            now = self.criterion.of_policy(policy, cost)
            better = self._improved(policy, now, cost)
            # By rounding, policies that cost the same may take turns.
            if (better == policy).all() or better.tobytes() in seen:
                break
            if perf_counter() >= end:
                is_complete = False
                break
            policy = better
        bound, most = self._proved(policy, now, cost)
        settled = self._settled(now, cost)
        if is_complete and (settled != policy).any():
            policy = settled
            now = self.criterion.of_policy(policy, cost)
            again, most = self._proved(policy, now, cost)
            bound = max(bound, again)
        objective = self.criterion.objective(now)
        values = self.criterion.shown(now.values)
        return Solved(policy, objective, min(bound, objective), most, values, len(seen), is_complete)

    def _among_candidates(self, now: Evaluation, cost: Floats) -> Compared:
        """What each action adds; infinite for those that are no candidates."""
        compared, candidates = self.criterion.compare(cost, now.values), self.criterion.candidates(now)
        if candidates is None:
            return compared
        return compared._replace(excess=np.where(candidates, compared.excess, np.inf))

    def _improved(self, policy: Policy, now: Evaluation, cost: Floats) -> Policy:
        """The cheapest candidate of each state; where the policy is no worse it stays."""
        excess, error = self._among_candidates(now, cost)
        states, best = np.arange(len(policy)), excess.argmin(axis=1)
        doubt = error[states, best] + error[states, policy]
        return np.where(excess[states, best] < excess[states, policy] - doubt, best, policy)

    def _settled(self, now: Evaluation, cost: Floats) -> Policy:
        """The first of the cheapest candidates of each state."""
        excess, error = self._among_candidates(now, cost)
        tie = np.maximum(TIE_TOLERANCE * np.abs(cost).max(), error)
        first: Policy = np.argmax(excess <= excess.min(axis=1, keepdims=True) + tie, axis=1)
        return first

    def _proved(self, policy: Policy, now: Evaluation, cost: Floats) -> tuple[float, float]:
        """What no policy pays less than, and what this one does not pay more than, whatever the equations have lost."""
        excess, error = self.criterion.compare(cost, now.values)
        own = (excess + error)[np.arange(len(policy)), policy]
        least, most = float((excess - error).min()), float(own.max())
        return self.criterion.in_all(least, now.values), self.criterion.in_all(most, now.values)
