"""A small world, and the law of the perturbed leader in it by plain array operations: no oracle, no compiled code."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from amdp.arrays import Actions, Floats
from amdp.mdp import Kernel, MarkovPolicies

STEPS, STATES, ACTIONS = 3, 2, 2
PAIRS = STATES * ACTIONS


@dataclass(frozen=True, eq=False)
class SmallWorld:
    """Three steps, two states, two actions: small enough that every law can be known."""

    p: Floats  # [h, s, a, y]

    @classmethod
    def fixed(cls) -> Self:
        """Always the same one."""
        return cls(np.random.default_rng(7).dirichlet(np.ones(STATES), size=(STEPS, STATES, ACTIONS)))

    @cached_property
    def kernel(self) -> Kernel:
        """As the library sees it."""
        return Kernel(self.p)

    @property
    def domain(self) -> MarkovPolicies:
        """All Markov policies."""
        return MarkovPolicies(self.kernel)


def leaders(p: Floats, costs: Floats) -> Actions:
    """The cheapest policies `[n, h, s]` for `costs` `[n, h, s, a]`, by backward induction."""
    n, steps, states, _ = costs.shape
    actions = np.empty((n, steps, states), dtype=np.int32)
    ahead = np.zeros((n, states))
    for h in reversed(range(steps)):
        worth = costs[:, h] + (np.einsum("say,ny->nsa", p[h], ahead) if h < steps - 1 else 0.0)
        actions[:, h] = worth.argmin(axis=2)
        ahead = worth.min(axis=2)
    return actions


def occupancies(p: Floats, actions: Actions) -> Floats:
    """Where policies `[n, h, s]` are, `[n, h, s, a]`, from state 0."""
    n, steps, states = actions.shape
    result = np.zeros((n, steps, states, p.shape[2]))
    at = np.zeros((n, states))
    at[:, 0] = 1.0
    for h in range(steps):
        result[:, h] = at[:, :, None] * (actions[:, h, :, None] == np.arange(p.shape[2]))
        at = np.einsum("nsa,say->ny", result[:, h], p[h])
    return result


def laplace(n: int, rate: float, rng: np.random.Generator) -> Floats:
    """Noise `[n, h, s, a]` of density `rate/2 exp(-rate |z|)`."""
    return rng.laplace(scale=1.0 / rate, size=(n, STEPS, STATES, ACTIONS))


def mean_occupancy(p: Floats, total: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Where the leader of `total` plus noise is, `[h, s, a]`, and the standard error of this mean."""
    found = occupancies(p, leaders(p, total + noise))
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(len(noise))
