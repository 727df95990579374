"""Worlds for an infinite horizon: communicating, most of them with a parking pair. See also `river_swim`.

Communicating: every state can be reached from every other. They are homogeneous, so that `n_steps` may be the length of
a stream of steps.
"""

import numpy as np

from amdp.arrays import Floats, require_room
from amdp.errors import InvalidInput
from amdp.instances.base import (
    USUAL_SEED,
    USUAL_STREAM,
    Instance,
    Seed,
    generator,
    no_rows,
    repeated,
    require_amount,
    require_chance,
    require_count,
    shrunk,
)
from amdp.model.chains import entrance
from amdp.model.transitions import Kernel, require_dense

WAIT = 0
LESS, KEEP, MORE = 0, 1, 2


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
    for name, count in (("n_steps", n_steps), ("n_states", n_states), ("n_actions", n_actions)):
        require_count(name, count)
    if n_states > 1 and n_actions == 1:
        raise InvalidInput("1; the state in which one can wait needs another action to leave it", "n_actions")
    _require_concentration(concentration)
    require_dense(1, n_states, n_actions)
    rng, around = generator(seed), np.roll(np.eye(n_states), 1, axis=1)
    p = 0.9 * rng.dirichlet(np.full(n_states, concentration), size=(n_states, n_actions)) + 0.1 * around[:, None]
    p[0, WAIT] = np.eye(n_states)[0]
    return Instance("random-parked", Kernel.homogeneous(p, n_steps), repeated(rng.random(p.shape[:2]), n_steps))


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
    for name, count in (("n_steps", n_steps), ("n_states", n_states), ("n_actions", n_actions)):
        require_count(name, count)
    require_chance("contraction", contraction)
    _require_concentration(concentration)
    require_dense(1, n_states, n_actions)
    rng = generator(seed)
    p = contraction * rng.dirichlet(np.full(n_states, concentration), size=(n_states, n_actions))
    p += (1.0 - contraction) / n_states
    return Instance("random-ergodic", Kernel.homogeneous(p, n_steps), repeated(rng.random(p.shape[:2]), n_steps))


def server_farm(
    n_steps: int = USUAL_STREAM,
    n_servers: int = 4,
    boot: float = 0.6,
    power: float = 1.0,
    shortage: float = 3.0,
    setup: float = 0.5,
    day: int = 24,
) -> Instance:
    """Switch servers on and off against a demand that follows the time of day.

    State: servers that run, `0 .. n_servers`; action 0 switches one off, 1 keeps them, 2 boots one more, which comes up
    with chance `boot` and costs `setup` whether it does or not. A step costs `power` for each running server and
    `shortage` for each unit of demand that no server meets; the demand at step `h` is `n_servers` times
    `(1 - cos(2 pi h / day)) / 2`. Costs are divided by the largest (`scale.unit`). The start is the dark hall. With
    `keep` one can wait anywhere.
    """
    require_count("n_steps", n_steps)
    require_count("n_servers", n_servers)
    require_count("day", day)
    require_chance("boot", boot)
    if boot == 0.0:
        raise InvalidInput("0; servers must have a chance to come up", "boot")
    for name, amount in (("power", power), ("shortage", shortage), ("setup", setup)):
        require_amount(name, amount)
    p = no_rows(n_servers + 1, 3)
    require_room("costs", (n_steps, n_servers + 1, 3), 2)  # before and after they are scaled
    running = np.arange(n_servers + 1)
    p[running, LESS, np.maximum(running - 1, 0)] = 1.0
    p[running, KEEP, running] = 1.0
    p[running, MORE, running] = 1.0 - boot
    p[running, MORE, np.minimum(running + 1, n_servers)] += boot
    demand = n_servers * (1.0 - np.cos(2.0 * np.pi * np.arange(n_steps) / day)) / 2.0
    unmet = np.maximum(demand[:, None] - running, 0.0)
    steps = power * running + shortage * unmet  # [h, s]
    costs, scale = shrunk(steps[:, :, None] + np.array([0.0, 0.0, setup]))
    return Instance("server-farm", Kernel.homogeneous(p, n_steps), costs, scale=scale)


def waiting_ring(n_steps: int = USUAL_STREAM, n_states: int = 5) -> Instance:
    """A ring on which one may wait: action 0 stays, 1 goes to the next state. Period 1, diameter `n_states - 1`."""
    _require_size(n_steps, n_states)
    require_dense(1, n_states, 2)
    p = np.stack([np.eye(n_states), _shift(n_states, 1)], axis=1)
    return _pays_at_the_far_end("waiting-ring", p, n_steps, n_states // 2)


def swinging_ring(n_steps: int = USUAL_STREAM, n_states: int = 5) -> Instance:
    """A ring on which one must move: action 0 goes back, 1 goes on. An even ring has period 2; nobody can wait."""
    _require_size(n_steps, n_states)
    require_dense(1, n_states, 2)
    p = np.stack([_shift(n_states, -1), _shift(n_states, 1)], axis=1)
    return _pays_at_the_far_end("swinging-ring", p, n_steps, n_states // 2)


def waiting_star(n_steps: int = USUAL_STREAM, n_leaves: int = 3) -> Instance:
    """A hub, state 0, and leaves: action 0 waits, `i` goes from the hub to leaf `i` and from any leaf to the hub.

    Period 1, diameter 2.
    """
    p = _star(n_steps, n_leaves)
    p[:, WAIT] = np.eye(n_leaves + 1)
    return _pays_at_the_far_end("waiting-star", p, n_steps, n_leaves)


def swinging_star(n_steps: int = USUAL_STREAM, n_leaves: int = 3) -> Instance:
    """The star without waiting: action `i` goes from the hub to leaf `i + 1`, and all lead back. Period 2."""
    p = _star(n_steps, n_leaves)[:, 1:].copy()
    return _pays_at_the_far_end("swinging-star", p, n_steps, n_leaves)


def _star(n_steps: int, n_leaves: int) -> Floats:
    """Rows `[s, 1 + a, y]`; those of action 0 are still empty."""
    _require_size(n_steps, n_leaves + 1)
    p = no_rows(n_leaves + 1, n_leaves + 1)
    p[0, 1:, 1:] = np.eye(n_leaves)
    p[1:, 1:, 0] = 1.0
    return p


def _shift(n_states: int, by: int) -> Floats:
    return np.roll(np.eye(n_states), by, axis=1)


def _pays_at_the_far_end(name: str, p: Floats, n_steps: int, free: int) -> Instance:
    costs = np.ones(p.shape[:2])
    costs[free] = 0.0
    return Instance(name, Kernel.homogeneous(p, n_steps), repeated(costs, n_steps))


def _require_size(n_steps: int, n_states: int) -> None:
    require_count("n_steps", n_steps)
    require_count("n_states", n_states, 2)


def _require_concentration(concentration: float) -> None:
    if not 0.0 < concentration < np.inf:
        raise InvalidInput(f"{concentration!r}; it must be finite and above 0", "concentration")
