"""The least visit chances over all policies: the assumption of learners that divide by visit chances."""

from typing import NamedTuple

import numpy as np

from amdp.arrays import Floats
from amdp.model.transitions import SingleKernel


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
