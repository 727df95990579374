"""The hard case of switching: a bandit whose losses hide a small gap in a random walk on many scales.

Dekel, Ding, Koren and Peres (2014): with bandit feedback and a cost for every switch, no learner has less than about
`T^(2/3)` regret. The constants 9 are [from memory], the embedding into a communicating world is [derived].
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import log2

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.instances.base import Instance, repeated, require_count
from amdp.losses import CalledLosses, LossSequence
from amdp.mdp import Kernel


@dataclass(frozen=True, eq=False)
class HardCase:
    """A world of arms, losses with one table a step, and what a learner must not know."""

    instance: Instance
    losses: LossSequence
    good: int  # the arm that is cheaper than the others, by
    gap: float
    walk: Floats = field(repr=False)  # [t]


def switching_bandit(n_steps: int, n_arms: int, rng: np.random.Generator, corridor: int = 1) -> HardCase:
    """Arms to stay at, and ways between them that cost.

    State `i < n_arms` is arm `i`, where action `i` stays and action `j` leaves for arm `j`: at once if `corridor` is 1,
    else through `corridor - 1` states of its own. With `w_t` a multi-scale walk of deviation `1 / (9 log2 T)`,

        staying at arm i costs clip(1/2 + w_t - gap 1[i is the good arm], 0, 1),

    and every step on the way costs 1; `gap = (corridor n_arms / T)^(1/3) / (9 log2 T)`. The start is arm 0, the
    diameter `2 corridor - 1`.
    """
    require_count("n_steps", n_steps, 2)
    require_count("n_arms", n_arms, 2)
    require_count("corridor", corridor)
    if n_steps < n_arms:
        raise InvalidInput(f"n_steps = {n_steps}; the bandit asks for at least as many as its {n_arms} arms")
    scale = 1.0 / (9.0 * log2(n_steps))
    gap = (corridor * n_arms / n_steps) ** (1 / 3) * scale
    good = int(rng.integers(n_arms))
    walk = multi_scale_walk(n_steps, scale, rng)
    p = _ways(n_arms, corridor)
    losses = CalledLosses(
        n_steps, (1, *p.shape[:2]), partial(_losses, walk, p.shape[:2], n_arms, good, gap), name="walk"
    )
    nominal = _losses(np.zeros(1), p.shape[:2], n_arms, good, gap, 0)[0]
    world = Instance("switching-bandit", Kernel.homogeneous(p, n_steps), repeated(nominal, n_steps))
    return HardCase(world, losses, good, gap, walk)


def multi_scale_walk(n_steps: int, deviation: float, rng: np.random.Generator) -> Floats:
    """`w_t = w_{parent(t)} + xi_t` for `t = 1 .. T` with normal `xi_t`; the parent clears the lowest bit of `t`.

    Each value is a sum of at most `log2 T + 1` numbers, and each step ends the reach of at most as many.
    """
    noise = deviation * rng.standard_normal(n_steps + 1)
    walk = np.zeros(n_steps + 1)
    for t, parent in enumerate(parents(n_steps), start=1):
        walk[t] = walk[parent] + noise[t]
    return walk[1:]


def parents(n_steps: int) -> NDArray[np.int64]:
    """The parent of each `t = 1 .. T`."""
    times = np.arange(1, n_steps + 1)
    return times & (times - 1)


def _losses(walk: Floats, pairs: tuple[int, int], n_arms: int, good: int, gap: float, t: int) -> Floats:
    table = np.ones((1, *pairs))
    arms = np.arange(n_arms)
    table[0, arms, arms] = np.clip(0.5 + walk[t] - gap * (arms == good), 0.0, 1.0)
    return table


def _ways(n_arms: int, corridor: int) -> Floats:
    """Rows `[s, a, y]`; the corridor to arm `j` has the states from `n_arms + j * (corridor - 1)` on."""
    states = n_arms * corridor
    p = np.zeros((states, n_arms, states))
    arms, inside = np.arange(n_arms), corridor - 1
    for j in arms:
        path = [*range(n_arms + j * inside, n_arms + (j + 1) * inside), j]
        p[arms, j, path[0]] = 1.0
        p[j, j] = np.eye(states)[j]
        for here, there in pairwise(path):
            p[here, :, there] = 1.0
    return p
