"""Branch and bound over the decisions that several models share.

A node has made some decisions. Its bound is the weighted sum of what the models pay if each makes the others for
itself (`Problem.values`), by one backward sweep in each model. Let `V_m` be the values of these sweeps and
`r_m = c_m + P_m V_m - V_m`, what an action costs model `m` above its own best. A policy that agrees with the node pays

    bound + sum_m w_m sum_{h,s} mu_m[h, s] r_m[h, s, pi(h, s)],

with `mu_m` the chances of its own walk in model `m` (the performance difference). So its distance from the bound is a
sum over open decisions, and the node branches on the largest term: there the models disagree most. If all terms are
zero, the policy attains the bound and the node is done. The node with the least bound is next. The bound is that of
Steimle, Ahluwalia, Kamdar and Denton: Decomposition methods for solving Markov decision processes with multiple models
of the parameters, 2019.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import perf_counter
from typing import NamedTuple

import numpy as np

from amdp.arrays import Floats, one_hot
from amdp.oracles.multi_model.planning import Choices, Found, Problem, descended

CLOSING_TOLERANCE = 1e-12  # relative to the size of a problem: a node that could gain less is closed
UNVISITED_WEIGHT = 1e-3  # of places to which the models do not come, when a policy is made of their own


class _Split(NamedTuple):
    """A policy that agrees with a node, and what each decision adds to its distance from the bound of the node."""

    policy: Choices
    distance: Floats  # [d]


@dataclass(frozen=True, eq=False)
class TreeSearch:
    """The search with its limits; `known` is a policy to begin with."""

    nodes: float = inf
    starts: int = 1
    known: Choices | None = None

    def __call__(self, problem: Problem, end: float) -> Found:
        """Branch until nothing is open, or a limit is reached."""
        tolerance = CLOSING_TOLERANCE * problem.size
        best, value = self._incumbent(problem, end)
        numbers, done, closed = count(), 0, inf
        queue = [(problem.relaxed, next(numbers), problem.undecided)]
        while queue and queue[0][0] < value - tolerance:
            if perf_counter() >= end or done >= self.nodes:
                note = "stopped at its limit of time" if perf_counter() >= end else f"stopped at {self.nodes:g} nodes"
                return Found(best, min(queue[0][0], closed, value), done, note)
            bound, _, node = heappop(queue)
            done += 1
            policy, distance = split(problem, node)
            paid = float(problem.values(policy[None])[0])
            if paid < value:
                best, value = policy, paid
            is_open = node < 0
            if not is_open.any() or paid <= bound + tolerance:
                closed = min(closed, bound)  # the policy attains it, up to rounding
                continue
            children = problem.alternatives(node, int(np.argmax(np.where(is_open, distance, -inf))))
            for child, floor in zip(children, problem.values(children).tolist(), strict=True):
                heappush(queue, (max(floor, bound), next(numbers), child))
        left = queue[0][0] if queue else inf
        return Found(best, min(left, closed, value), done)

    def _incumbent(self, problem: Problem, end: float) -> tuple[Choices, float]:
        """The best of descents from the given policy, from one that weighs all models, and from that of each model."""
        begins = [split(problem, problem.undecided).policy, *own_policies(problem)]
        if self.known is not None:
            begins.insert(0, self.known)
        found = [descended(problem, begin, end) for begin in begins[: self.starts]]
        return min(found, key=lambda each: each[1])


def own_policies(problem: Problem) -> list[Choices]:
    """The best policy of each model; where it decides differently at several places, as at the first of them."""
    _, first = np.unique(problem.domain.decisions, return_index=True)
    sweeps = problem.sweeps(problem.undecided[None])
    return [sweep.actions[0].reshape(-1)[first].astype(np.int64) for sweep in sweeps]


def split(problem: Problem, node: Choices) -> _Split:
    """Make the open decisions of a node by what they cost the models, each where its own best policy comes."""
    domain, actions = problem.domain, problem.domain.shape[2]
    sweeps, regrets = problem.sweeps(node[None]), list[Floats]()
    prices = np.zeros((domain.n_decisions, actions))
    for m, sweep in enumerate(sweeps):
        regrets.append(_regret(problem, m, sweep.values[0]))
        visits = _visits(problem, m, sweep.actions[0]) + UNVISITED_WEIGHT
        prices += problem.weights[m] * domain.summed(visits[:, :, None] * regrets[m])
    policy = np.where(node < 0, prices.argmin(axis=1), node)
    by_place = domain.by_place(policy[None])[0]
    distance = np.zeros(domain.n_decisions)
    for m, regret in enumerate(regrets):
        chosen = np.take_along_axis(regret, by_place[:, :, None].astype(np.int64), axis=2)[:, :, 0]
        distance += problem.weights[m] * domain.summed(_visits(problem, m, by_place) * chosen)
    return _Split(policy, distance)


def _regret(problem: Problem, m: int, values: Floats) -> Floats:
    """`c + P V - V`, `[h, s, a]`: what each action costs model `m` above what the values say."""
    kernel, later = problem.domain.kernels[m], np.zeros_like(problem.costs[m])
    for h in range(len(later) - 1):
        later[h] = kernel.least_expectation(h, values[h + 1][None])[0]
    regret: Floats = problem.costs[m] + later - values[:, :, None]
    return regret


def _visits(problem: Problem, m: int, actions: np.ndarray) -> Floats:
    """The chance `[h, s]` that a policy `[h, s]` is at each place in model `m`."""
    policy = one_hot(actions, problem.domain.shape[2])[None]
    visits: Floats = problem.domain.kernels[m].occupancy(policy, problem.domain.models[m].initial)[0].sum(axis=-1)
    return visits
