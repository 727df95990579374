"""Exact evaluation of policies: occupancy forward, values backward, and the least visit chances over all policies."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Costs, Floats, Occupancy, Policies, Values, floats, require_distributions, require_index
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.dynamics import Dynamics
from amdp.model.transitions import SingleKernel


def occupancy(kernel: SingleKernel, policies: Policies, initial: int = 0) -> Occupancy:
    """Chance `[n, h, s, a]` that each of the policies `[n, h, s, a]` is at a pair in a step."""
    played = floats("policies", policies, "nhsa")
    _require_shape("policies", played, (len(played), *kernel.shape))
    require_distributions("policies", played, "nhsa")
    require_index("initial", initial, kernel.shape[1])
    return kernel.occupancy(played, initial)


def values(dynamics: Dynamics, policies: Policies, costs: Costs) -> Values:
    """Cost still to come `[n, h, s]`: `V[h] = sum_a pi[h] (c[h] + least expectation of V[h+1])`."""
    played, paid = floats("policies", policies, "nhsa"), floats("costs", costs, "nhsa")
    _require_shape("costs", paid, (len(paid), *dynamics.shape))
    _require_shape("policies", played, paid.shape)
    require_distributions("policies", played, "nhsa")
    result = np.empty(paid.shape[:3])
    later = np.zeros_like(paid[:, 0])
    for h in reversed(range(dynamics.shape[0])):
        np.einsum("nsa,nsa->ns", played[:, h], paid[:, h] + later, out=result[:, h])
        if h > 0:
            later = dynamics.least_expectation(h - 1, result[:, h])
    return result


def evaluate(domain: Domain, actions: NDArray[np.integer], costs: Costs) -> Floats:
    """Expected cost `[n]` of deterministic policies `[n, h, s]`; over a box, under its cheapest kernel.

    An action of -1 leaves the choice open: the cheapest is taken.
    """
    _require_steps(domain)
    paid, chosen = floats("costs", costs, "nhsa"), np.asarray(actions)
    if not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidInput(f"actions are {chosen.dtype}; they must be whole numbers")
    as_they_are = np.full(len(paid), -np.inf)
    swept = domain.dynamics.follow(paid, chosen.astype(np.int32, copy=False), as_they_are)
    return swept.values[:, 0, domain.initial]


class LeastVisited(NamedTuple):
    """The step and state with the least visit chance over all policies, of those that can be reached."""

    chance: float
    step: int
    state: int


def least_visited(kernel: SingleKernel, initial: int = 0) -> LeastVisited:
    """The least of `least_chances` over the steps and states that some policy can reach; the first one of a tie."""
    chances = np.where(kernel.reachable(initial), least_chances(kernel, initial), np.inf)
    step, state = np.unravel_index(int(np.argmin(chances)), chances.shape)
    return LeastVisited(float(chances[step, state]), int(step), int(state))


def least_chances(kernel: SingleKernel, initial: int = 0) -> Floats:
    """The least chance `[h, s]`, over all policies, of being in a state at a step.

    For one target the policy that avoids it best is found by backward induction: `f[x] = min_a E[f(y)]`.
    """
    steps, states, _ = kernel.shape
    chances = np.empty((steps, states))
    for step in range(steps):
        reach = np.eye(states)  # [target, state]
        for h in reversed(range(step)):
            reach = kernel.least_expectation(h, reach).min(axis=-1)
        chances[step] = reach[:, initial]
    return chances


def _require_steps(domain: object) -> None:
    if not isinstance(domain, Domain):
        raise InvalidInput(f"{type(domain).__name__} is not evaluated here; give MarkovPolicies or StationaryPolicies")


def _require_shape(name: str, array: np.ndarray, expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise InvalidInput(f"{name} has shape {array.shape}; expected {expected}")
