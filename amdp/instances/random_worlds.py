"""Random worlds: dense, sparse and layered; the same seed gives the same world."""

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import require_room
from amdp.errors import InvalidInput
from amdp.instances.base import USUAL_SEED, Instance, Seed, generator, repeated, require_count
from amdp.model.transitions import Kernel, SparseKernel, require_dense


def tiny(
    n_steps: int = 3, n_states: int = 3, n_actions: int = 2, seed: Seed = USUAL_SEED, concentration: float = 1.0
) -> Instance:
    """A `random_dense` world that is small enough to check by hand."""
    return random_dense(n_steps, n_states, n_actions, seed, concentration)


def random_dense(
    n_steps: int = 10, n_states: int = 8, n_actions: int = 3, seed: Seed = USUAL_SEED, concentration: float = 1.0
) -> Instance:
    """Other dynamics in every step: each row `p[h, s, a]` is Dirichlet, each cost uniform on [0, 1].

    All Dirichlet parameters equal `concentration`: 1 draws rows uniformly from the simplex, below 1 they lean to few
    states, above 1 to the uniform distribution.
    """
    _require_sizes(n_steps=n_steps, n_states=n_states, n_actions=n_actions)
    _require_concentration(concentration)
    require_dense(n_steps, n_states, n_actions)
    shape, rng = (n_steps, n_states, n_actions), generator(seed)
    p = rng.dirichlet(np.full(n_states, concentration), size=shape)
    return Instance("random-dense", Kernel(p), rng.random(shape))


def random_sparse(
    n_steps: int = 10, n_states: int = 200, n_actions: int = 4, seed: Seed = USUAL_SEED, n_successors: int = 4
) -> Instance:
    """The same dynamics in every step: each row has `n_successors` states, all sets of them being equally likely.

    The chances of a row are uniform on the simplex; each cost `[s, a]` is uniform on [0, 1]. Garnet problems of
    Archibald, McKinnon and Thomas (1995), with costs on pairs.
    """
    _require_sizes(n_steps=n_steps, n_states=n_states, n_actions=n_actions, n_successors=n_successors)
    if n_successors > n_states:
        raise InvalidInput(f"{n_successors}; it must be at most n_states = {n_states}", "n_successors")
    pairs, rng = n_states * n_actions, generator(seed)
    require_room("a sparse kernel", (n_states, n_actions, n_successors), 4)  # states and chances, drawn and kept
    successors = _distinct(pairs, n_successors, n_states, rng)
    chances = rng.dirichlet(np.ones(n_successors), size=pairs)
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
    _require_sizes(n_steps=n_steps, width=width, n_actions=n_actions)
    _require_concentration(concentration)
    n_states, rng = 1 + (n_steps - 1) * width, generator(seed)
    require_dense(n_steps, n_states, n_actions)
    p = np.zeros((n_steps, n_states, n_actions, n_states))
    costs = np.zeros((n_steps, n_states, n_actions))
    layers = [slice(0, 1), *(slice(first, first + width) for first in range(1, n_states, width))]
    for h, layer in enumerate(layers):
        size = layer.stop - layer.start
        costs[h, layer] = rng.random((size, n_actions))
        if h + 1 < n_steps:
            p[h, layer, :, layers[h + 1]] = rng.dirichlet(np.full(width, concentration), size=(size, n_actions))
    return Instance("random-layered", Kernel(p), costs)


def _distinct(n_rows: int, n_chosen: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Subsets of `0 .. size - 1`, uniform, one a row (Floyd's algorithm, all rows at once)."""
    chosen = np.empty((n_rows, n_chosen), dtype=np.int64)
    for i in range(n_chosen):
        newest = size - n_chosen + i
        draw = rng.integers(newest + 1, size=n_rows)
        taken = (chosen[:, :i] == draw[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, newest, draw)
    return chosen


def _require_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        require_count(name, size)


def _require_concentration(concentration: float) -> None:
    if not 0.0 < concentration < np.inf:
        raise InvalidInput(f"{concentration!r}; it must be finite and above 0", "concentration")
