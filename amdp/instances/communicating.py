"""Worlds for an infinite horizon: communicating, most of them with a parking pair. See also `river_swim`.

Communicating: every state can be reached from every other. They are homogeneous, so that `n_steps` may be the length of
a stream of steps. Random ones are in `random_worlds`.
"""

import numpy as np

from amdp.arrays import Floats, require_room
from amdp.errors import InvalidInput
from amdp.instances.base import (
    USUAL_STREAM,
    Instance,
    costs_but_at,
    homogeneous,
    no_rows,
    require_amounts,
    require_chances,
    require_counts,
    shrunk,
)
from amdp.model.transitions import Kernel, require_dense

WAIT = 0
LESS, KEEP, MORE = 0, 1, 2


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
    require_counts(n_steps=n_steps, n_servers=n_servers, day=day)
    require_chances(boot=boot)
    if boot == 0.0:
        raise InvalidInput("0; servers must have a chance to come up", "boot")
    require_amounts(power=power, shortage=shortage, setup=setup)
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
    return _ring("waiting-ring", n_steps, n_states, 0)


def swinging_ring(n_steps: int = USUAL_STREAM, n_states: int = 5) -> Instance:
    """A ring on which one must move: action 0 goes back, 1 goes on. An even ring has period 2; nobody can wait."""
    return _ring("swinging-ring", n_steps, n_states, -1)


def waiting_star(n_steps: int = USUAL_STREAM, n_leaves: int = 3) -> Instance:
    """A hub, state 0, and leaves: action 0 waits, `i` goes from the hub to leaf `i` and from any leaf to the hub.

    Period 1, diameter 2.
    """
    p = _star(n_steps, n_leaves)
    return homogeneous("waiting-star", p, costs_but_at(n_leaves, p), n_steps)


def swinging_star(n_steps: int = USUAL_STREAM, n_leaves: int = 3) -> Instance:
    """The star without waiting: action `i` goes from the hub to leaf `i + 1`, and all lead back. Period 2."""
    p = _star(n_steps, n_leaves)[:, 1:].copy()
    return homogeneous("swinging-star", p, costs_but_at(n_leaves, p), n_steps)


COMMUNICATING = (server_farm, waiting_ring, swinging_ring, waiting_star, swinging_star)


def _ring(name: str, n_steps: int, n_states: int, first: int) -> Instance:
    """Action 0 goes `first` states around, action 1 goes one; the state opposite to the start is free."""
    _require_size(n_steps, n_states)
    require_dense(1, n_states, 2)
    p = np.stack([np.roll(np.eye(n_states), by, axis=1) for by in (first, 1)], axis=1)
    return homogeneous(name, p, costs_but_at(n_states // 2, p), n_steps)


def _star(n_steps: int, n_leaves: int) -> Floats:
    """Rows `[s, a, y]`: action 0 waits, action `i` goes from the hub to leaf `i` and back from any leaf."""
    _require_size(n_steps, n_leaves + 1)
    p = no_rows(n_leaves + 1, n_leaves + 1)
    p[:, WAIT] = np.eye(n_leaves + 1)
    p[0, 1:, 1:] = np.eye(n_leaves)
    p[1:, 1:, 0] = 1.0
    return p


def _require_size(n_steps: int, n_states: int) -> None:
    require_counts(n_steps=n_steps)
    require_counts(2, n_states=n_states)
