"""Kernels and regularizers that the tests of this folder share."""

import numpy as np

import amdp
from amdp import Kernel, LogBarrier, MarkovPolicies, NegativeEntropy, Regularizer, Tsallis
from amdp.arrays import Floats

REGULARIZERS: list[Regularizer] = [
    NegativeEntropy(0.7),
    Tsallis(1.3),
    LogBarrier(0.4),
    Tsallis(2.0) + LogBarrier(0.05),
    NegativeEntropy(0.5) + LogBarrier(0.1),
    NegativeEntropy(1.0) + Tsallis(0.3) + LogBarrier(0.2),
]


def random_domain(shape: tuple[int, int, int] = (5, 4, 3), seed: int = 0, initial: int = 2) -> MarkovPolicies:
    rng = np.random.default_rng(seed)
    return MarkovPolicies(Kernel(rng.dirichlet(np.ones(shape[1]), size=shape)), initial)


def spiky_domain(chance: float, shape: tuple[int, int, int] = (6, 4, 3), seed: int = 0) -> MarkovPolicies:
    """Each row goes to one state, but for a small chance of every other."""
    steps, states, actions = shape
    p = np.full((*shape, states), chance)
    likely = np.random.default_rng(seed).integers(states, size=(steps, states, actions, 1))
    np.put_along_axis(p, likely, 1.0 - (states - 1) * chance, axis=-1)
    return MarkovPolicies(Kernel(p), 1)


def random_cost(domain: MarkovPolicies, seed: int = 1, size: float = 1.0) -> Floats:
    return size * np.random.default_rng(seed).normal(size=domain.shape)


def objective(domain: MarkovPolicies, cost: Floats, regularizer: Regularizer, measure: Floats) -> float:
    """`<q, c> + sum psi(q)` over the pairs that can be reached, written out once more."""
    reached = domain.dynamics.reachable(domain.initial)  # type: ignore[attr-defined]
    mass = measure[reached]
    return float((mass * cost[reached]).sum() + regularizer.values(mass).sum())


def policy_measure(domain: MarkovPolicies, seed: int) -> Floats:
    """The occupancy measure of a random policy."""
    policy = np.random.default_rng(seed).dirichlet(np.ones(domain.shape[2]), size=domain.shape[:2])
    result: Floats = amdp.occupancy(domain.dynamics, policy[None], domain.initial)[0]  # type: ignore[arg-type]
    return result
