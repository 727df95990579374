"""The hard case of switching: a bandit whose losses hide a small gap in a random walk on many scales.

Dekel, Ding, Koren and Peres (2014): with bandit feedback and a cost for every switch, no learner has less than about
`T^(2/3)` regret. The constants 9 are [from memory], the embeddings into communicating worlds are [derived].
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log2

import numpy as np
from numpy.typing import NDArray

from amdp import losses
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.instances.base import (
    USUAL_SEED,
    USUAL_STREAM,
    Instance,
    Seed,
    generator,
    homogeneous,
    no_rows,
    require_counts,
)
from amdp.losses import LossSequence
from amdp.model.transitions import require_dense


@dataclass(frozen=True, eq=False)
class HardCase:
    """A world of arms, losses with one table a step, and what a learner must not know."""

    instance: Instance
    losses: LossSequence
    good: int  # the arm that is cheaper than the others, by
    gap: float
    walk: Floats = field(repr=False)  # [t]


def switching_bandit(
    n_steps: int = USUAL_STREAM, n_arms: int = 2, corridor: int = 1, seed: Seed = USUAL_SEED
) -> Instance:
    """The world of `hidden_bandit`: arms to stay at, and corridors between them; its losses are `hidden-walk`."""
    return hidden_bandit(n_steps, n_arms, seed, corridor).instance


def switching_ring(n_steps: int = USUAL_STREAM, n_arms: int = 3, seed: Seed = USUAL_SEED) -> Instance:
    """The world of `hidden_ring`, with two actions: stay at an arm, or go to the next one around."""
    return hidden_ring(n_steps, n_arms, seed).instance


def hidden_bandit(n_steps: int, n_arms: int, seed: Seed, corridor: int = 1) -> HardCase:
    """Arms to stay at, and corridors between them that cost, with losses that hide which arm is good.

    State `i < n_arms` is arm `i`, where action `i` stays and action `j` leaves for arm `j`: at once if `corridor` is 1,
    else through `corridor - 1` states of its own. With `w_t` a multi-scale walk of deviation `1 / (9 log2 T)`,

        staying at arm i costs clip(1/2 + w_t - gap 1[i is the good arm], 0, 1),

    and every step on the way costs 1; `gap = (corridor n_arms / T)^(1/3) / (9 log2 T)`. The start is arm 0, the
    diameter `2 corridor - 1`.
    """
    _require_arms(n_steps, n_arms)
    require_counts(corridor=corridor)
    p = _ways(n_arms, corridor)
    return _hidden("switching-bandit", p, n_steps, np.arange(n_arms), corridor * n_arms, generator(seed))


def hidden_ring(n_steps: int, n_arms: int, seed: Seed) -> HardCase:
    """The same losses with two actions: action 0 stays, 1 goes to the next arm around and costs 1.

    `gap = (n_arms / T)^(1/3) / (9 log2 T)`: a switch takes one step at least. The diameter is `n_arms - 1`.
    """
    _require_arms(n_steps, n_arms)
    require_dense(1, n_arms, 2)
    around = np.stack([np.eye(n_arms), np.roll(np.eye(n_arms), 1, axis=1)], axis=1)
    return _hidden("switching-ring", around, n_steps, np.zeros(n_arms, dtype=np.int64), n_arms, generator(seed))


def easy_companion(hard: HardCase, seed: int) -> HardCase:
    """The same world, arm and gap without the walk: independent zeros and ones of the same means.

    Who does well here but not in the hard case lives on the missing correlation.
    """
    steps = hard.instance.shape[0]
    honest = losses.bernoulli(losses.repeated(hard.instance.costs[:1], steps), seed)
    return replace(hard, losses=honest, walk=np.zeros(steps))


COMMUNICATING = (switching_bandit, switching_ring)


def _hidden(
    name: str, p: Floats, n_steps: int, stays: NDArray[np.int64], price: int, rng: np.random.Generator
) -> HardCase:
    """A world `[s, a, y]` where action `stays[i]` stays at arm `i`; all other pairs cost 1."""
    scale = 1.0 / (9.0 * log2(n_steps))
    gap = (price / n_steps) ** (1 / 3) * scale
    good = int(rng.integers(len(stays)))
    walk = losses.multi_scale_walk(n_steps, scale, rng)
    where, arms = np.zeros((1, *p.shape[:2])), np.arange(len(stays))
    where[0, arms, stays] = 1.0
    nominal = 1.0 - where / 2.0
    nominal[0, good, stays[good]] -= gap
    world = homogeneous(name, p, nominal[0], n_steps)
    return HardCase(world, losses.wandering(nominal, walk, where), good, gap, walk)


def _require_arms(n_steps: int, n_arms: int) -> None:
    require_counts(2, n_steps=n_steps, n_arms=n_arms)
    if n_steps < n_arms:
        raise InvalidInput(f"{n_steps}; the bandit asks for at least as many as its {n_arms} arms", "n_steps")


def _ways(n_arms: int, corridor: int) -> Floats:
    """Rows `[s, a, y]`; the corridor to arm `j` has the states from `n_arms + j * (corridor - 1)` on."""
    states = n_arms * corridor
    p = no_rows(states, n_arms)
    arms, inside = np.arange(n_arms), corridor - 1
    for j in arms:
        path = [*range(n_arms + j * inside, n_arms + (j + 1) * inside), j]
        p[arms, j, path[0]] = 1.0
        p[j, j] = np.eye(states)[j]
        for here, there in pairwise(path):
            p[here, :, there] = 1.0
    return p
