"""Random worlds: dense, sparse, layered, and communicating for an infinite horizon; the same seed, the same world."""

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import require_room
from amdp.errors import InvalidInput
from amdp.instances.base import (
    USUAL_SEED,
    USUAL_STREAM,
    Instance,
    Seed,
    dirichlet,
    generator,
    homogeneous,
    repeated,
    require_chances,
    require_counts,
)
from amdp.model.chains import entrance
from amdp.model.transitions import Kernel, SparseKernel, require_dense

WAIT = 0


def tiny(
    n_steps: int = 3,
    n_states: int = 3,
    n_actions: int = 2,
    seed: Seed = USUAL_SEED,
    concentration: float = 1.0,
    copies: int = 1,
) -> Instance:
    """A `random_dense` world that is small enough to check by hand.

    Each of the `n_actions` actions is there `copies` times: more actions to learn about, in a world that stays the
    same.
    """
    require_counts(copies=copies)
    world = random_dense(n_steps, n_states, n_actions, seed, concentration)
    p, costs = (np.repeat(array, copies, axis=2) for array in (world.kernel.dense().p, world.costs))
    return Instance("tiny", Kernel(p), costs)


def random_dense(
    n_steps: int = 10, n_states: int = 8, n_actions: int = 3, seed: Seed = USUAL_SEED, concentration: float = 1.0
) -> Instance:
    """Other dynamics in every step: each row `p[h, s, a]` is Dirichlet, each cost uniform on [0, 1].

    All Dirichlet parameters equal `concentration`: 1 draws rows uniformly from the simplex, below 1 they lean to few
    states, above 1 to the uniform distribution.
    """
    _require(concentration, n_steps=n_steps, n_states=n_states, n_actions=n_actions)
    require_dense(n_steps, n_states, n_actions)
    shape, rng = (n_steps, n_states, n_actions), generator(seed)
    p = dirichlet(rng, concentration, (*shape, n_states))
    return Instance("random-dense", Kernel(p), rng.random(shape))


def random_sparse(
    n_steps: int = 10, n_states: int = 200, n_actions: int = 4, seed: Seed = USUAL_SEED, n_successors: int = 4
) -> Instance:
    """The same dynamics in every step: each row has `n_successors` states, all sets of them being equally likely.

    The chances of a row are uniform on the simplex; each cost `[s, a]` is uniform on [0, 1]. Garnet problems of
    Archibald, McKinnon and Thomas (1995), with costs on pairs.
    """
    require_counts(n_steps=n_steps, n_states=n_states, n_actions=n_actions, n_successors=n_successors)
    if n_successors > n_states:
        raise InvalidInput(f"{n_successors}; it must be at most n_states = {n_states}", "n_successors")
    pairs, rng = n_states * n_actions, generator(seed)
    require_room("a sparse kernel", (n_states, n_actions, n_successors), 4)  # states and chances, drawn and kept
    successors = _distinct(pairs, n_successors, n_states, rng)
    chances = dirichlet(rng, 1.0, (pairs, n_successors))
    starts = np.arange(0, pairs * n_successors + 1, n_successors)
    matrix = scipy.sparse.csr_array((chances.reshape(-1), successors.reshape(-1), starts), shape=(pairs, n_states))
    costs = rng.random((n_states, n_actions))
    return Instance("random-sparse", SparseKernel.homogeneous(matrix, n_steps), repeated(costs, n_steps))


def random_layered(
    n_steps: int = 6, width: int = 4, n_actions: int = 3, seed: Seed = USUAL_SEED, concentration: float = 1.0
) -> Instance:
    """A loop-free world: at step `h` the state is in layer `h`, and no other.

    Layer 0 is state 0, the start; layer `h > 0` holds the `width` states from `1 + (h - 1) * width` on. A row within
    its layer is Dirichlet(`concentration`) over the next layer; all other rows are zero, and so are those of the last
    step, after which nothing follows. Costs are uniform on [0, 1] within the layer, else 0.

    The loop-free episodes of Neu, Gyorgy and Szepesvari (2010) and of O-REPS.
    """
    _require(concentration, n_steps=n_steps, width=width, n_actions=n_actions)
    n_states, rng = 1 + (n_steps - 1) * width, generator(seed)
    require_dense(n_steps, n_states, n_actions)
    p = np.zeros((n_steps, n_states, n_actions, n_states))
    costs = np.zeros((n_steps, n_states, n_actions))
    layers = [slice(0, 1), *(slice(first, first + width) for first in range(1, n_states, width))]
    for h, layer in enumerate(layers):
        size = layer.stop - layer.start
        costs[h, layer] = rng.random((size, n_actions))
        if h + 1 < n_steps:
            p[h, layer, :, layers[h + 1]] = dirichlet(rng, concentration, (size, n_actions, width))
    return Instance("random-layered", Kernel(p), costs)


def random_parked(
    n_steps: int = USUAL_STREAM,
    n_states: int = 5,
    n_actions: int = 3,
    seed: Seed = USUAL_SEED,
    concentration: float = 0.5,
) -> Instance:
    """A random communicating world; action 0 waits in state 0, the initial state.

    All other rows are Dirichlet(`concentration`) with weight 0.9, and lead with 0.1 to the next state around. Costs
    `[s, a]` are uniform on [0, 1].
    """
    _require(concentration, n_steps=n_steps, n_states=n_states, n_actions=n_actions)
    if n_states > 1 and n_actions == 1:
        raise InvalidInput("1; the state in which one can wait needs another action to leave it", "n_actions")
    require_dense(1, n_states, n_actions)
    rng, around = generator(seed), np.roll(np.eye(n_states), 1, axis=1)
    p = 0.9 * dirichlet(rng, concentration, (n_states, n_actions, n_states)) + 0.1 * around[:, None]
    p[0, WAIT] = np.eye(n_states)[0]
    return homogeneous("random-parked", p, rng.random(p.shape[:2]), n_steps)


def random_entered(
    n_steps: int = USUAL_STREAM,
    n_states: int = 5,
    n_actions: int = 3,
    seed: Seed = USUAL_SEED,
    concentration: float = 0.5,
) -> Instance:
    """A `random_parked` world with an entrance: an initial state that leads to all others with equal chances, once."""
    world = random_parked(n_steps, n_states, n_actions, seed, concentration)
    kernel = entrance(world.kernel, np.full(n_states, 1.0 / n_states))
    costs = np.vstack([world.costs[0], np.zeros((1, n_actions))])
    return Instance("random-entered", kernel, repeated(costs, n_steps), initial=n_states)


def random_ergodic(
    n_steps: int = USUAL_STREAM,
    n_states: int = 5,
    n_actions: int = 3,
    seed: Seed = USUAL_SEED,
    contraction: float = 0.7,
    concentration: float = 0.5,
) -> Instance:
    """A random ergodic world: with chance `1 - contraction` a step leads anywhere, whatever the action.

    Rows are uniform with weight `1 - contraction` and Dirichlet(`concentration`) with the rest, so that two of them
    are at most `contraction` apart, and every policy is in each state at least `(1 - contraction) / n_states` of the
    steps. Costs `[s, a]` are uniform on [0, 1].
    """
    _require(concentration, n_steps=n_steps, n_states=n_states, n_actions=n_actions)
    require_chances(contraction=contraction)
    require_dense(1, n_states, n_actions)
    rng = generator(seed)
    p = contraction * dirichlet(rng, concentration, (n_states, n_actions, n_states))
    p += (1.0 - contraction) / n_states
    return homogeneous("random-ergodic", p, rng.random(p.shape[:2]), n_steps)


EPISODIC = (random_dense, random_sparse, random_layered)
COMMUNICATING = (random_parked, random_entered, random_ergodic)


def _distinct(n_rows: int, n_chosen: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Subsets of `0 .. size - 1`, uniform, one a row (Floyd's algorithm, all rows at once)."""
    chosen = np.empty((n_rows, n_chosen), dtype=np.int64)
    for i in range(n_chosen):
        newest = size - n_chosen + i
        draw = rng.integers(newest + 1, size=n_rows)
        taken = (chosen[:, :i] == draw[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, newest, draw)
    return chosen


def _require(concentration: float, **counts: int) -> None:
    require_counts(**counts)
    if not 0.0 < concentration < np.inf:
        raise InvalidInput(f"{concentration!r}; it must be finite and above 0", "concentration")
