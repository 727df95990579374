"""Small worlds of the literature: chains, a grid, a forest."""

from collections.abc import Sequence

import numpy as np

from amdp.arrays import Floats, require_index
from amdp.errors import InvalidInput
from amdp.instances.base import Instance, costs_of_rewards, no_rows, repeated, require_chance, require_count
from amdp.model.transitions import Kernel

LEFT, RIGHT = 0, 1
WAIT, CUT = 0, 1
COMPASS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # north, east, south, west as steps (x, y)


def river_swim(n_states: int = 6, n_steps: int = 20) -> Instance:
    """Swim up a river: a small reward downstream, a large one upstream.

    A chain, from state 0 (downstream, the start). Action 0 swims left and always arrives (state 0 stays). Action 1
    swims right against the current: state 0 stays with chance 0.4 and advances with 0.6; a middle state falls back
    with 0.05, stays with 0.6, advances with 0.35; the last state falls back with 0.4 and stays with 0.6.
    The reward is 0.005 for `left` in state 0, 1 for `right` in the last state, else 0; the cost is `1 - reward`.

    Strehl and Littman (2008) invented it; these are the numbers of Osband, Russo and Van Roy (2013).
    """
    require_count("n_states", n_states, 2)
    require_count("n_steps", n_steps)
    last = n_states - 1
    p = no_rows(n_states, 2)
    rewards = np.zeros((n_states, 2))
    for s in range(n_states):
        p[s, LEFT, max(s - 1, 0)] = 1.0
    for s in range(1, last):
        p[s, RIGHT, s - 1 : s + 2] = 0.05, 0.6, 0.35
    p[0, RIGHT, :2] = 0.4, 0.6
    p[last, RIGHT, last - 1 :] = 0.4, 0.6
    rewards[0, LEFT], rewards[last, RIGHT] = 0.005, 1.0
    costs, scale = costs_of_rewards(rewards, n_steps, best=1.0, worst=0.0)
    return Instance("river-swim", Kernel.homogeneous(p, n_steps), repeated(costs, n_steps), scale=scale)


def grid(width: int = 5, height: int = 5, slip: float = 0.2, n_steps: int = 20) -> Instance:
    """Walk from one corner of a grid to the opposite one.

    State `y * width + x`; the start is (0, 0), the goal (width - 1, height - 1). The actions are north (y + 1), east,
    south, west. The walker moves as meant with chance `1 - slip`, and to each side of it with `slip / 2`; into a wall
    it stays where it is. The goal is absorbing. Each step outside the goal costs 1, in it 0: the total is the
    expected time to the goal, cut at `n_steps`.

    The noise is that of Russell and Norvig's 4x3 world (slip 0.2).
    """
    require_count("width", width)
    require_count("height", height)
    require_count("n_steps", n_steps)
    require_chance("slip", slip)
    goal = width * height - 1
    p = no_rows(goal + 1, 4)
    for s in range(goal):
        arrivals = [_arrival(s, direction, width, height) for direction in range(4)]
        for a in range(4):
            p[s, a, arrivals[a]] += 1.0 - slip
            p[s, a, arrivals[a - 1]] += slip / 2
            p[s, a, arrivals[(a + 1) % 4]] += slip / 2
    p[goal, :, goal] = 1.0
    return Instance(f"grid-{width}x{height}", Kernel.homogeneous(p, n_steps), _one_except(goal, p, n_steps))


def lock(code: Sequence[int] = (1, 0, 1, 1, 0), n_actions: int = 2, jam: float = 0.1, n_steps: int = 20) -> Instance:
    """Press the right buttons in a row to open a lock.

    State `i` has `i` right digits entered; state `len(code)` is open and absorbing. Button `code[i]` in state `i`
    advances with chance `1 - jam` and is not felt with chance `jam` (the state stays); any other button returns to
    state 0. Each step before the lock is open costs 1, afterwards 0.

    Whitehead (1991), Kakade (2003): pressing at random needs about `n_actions ** len(code)` steps.
    """
    require_count("n_actions", n_actions)
    require_count("n_steps", n_steps)
    require_chance("jam", jam)
    if not len(code):
        raise InvalidInput("code is empty; a lock needs at least one digit")
    opened = len(code)
    p = no_rows(opened + 1, n_actions)
    p[:opened, :, 0] = 1.0
    for i, digit in enumerate(code):
        require_index(f"code[{i}]", digit, n_actions)
        p[i, digit] = 0.0
        p[i, digit, i : i + 2] = jam, 1.0 - jam
    p[opened, :, opened] = 1.0
    return Instance(f"lock-{opened}", Kernel.homogeneous(p, n_steps), _one_except(opened, p, n_steps))


def forest(n_states: int = 3, n_steps: int = 20, fire: float = 0.1) -> Instance:
    """Keep an old forest for wildlife, or cut it for wood.

    The state is the age of the trees. `wait` (0) burns with chance `fire` (back to age 0), else the trees grow one
    class older, up to the last; `cut` (1) returns to age 0. The reward is 4 for waiting in the last state, 0 for
    waiting elsewhere; cutting pays 0 at age 0, 2 in the last state, else 1. The cost is `(4 - reward) / 4`.

    The forest example of the MDP toolboxes (Chades et al. 2014), with their default rewards.
    """
    require_count("n_states", n_states, 2)
    require_count("n_steps", n_steps)
    require_chance("fire", fire)
    oldest = n_states - 1
    p = no_rows(n_states, 2)
    for s in range(n_states):
        p[s, WAIT, 0] = fire
        p[s, WAIT, min(s + 1, oldest)] = 1.0 - fire
        p[s, CUT, 0] = 1.0
    rewards = np.zeros((n_states, 2))
    rewards[1:, CUT] = 1.0
    rewards[oldest] = 4.0, 2.0
    costs, scale = costs_of_rewards(rewards, n_steps, best=4.0, worst=0.0)
    return Instance("forest", Kernel.homogeneous(p, n_steps), repeated(costs, n_steps), scale=scale)


def _arrival(s: int, direction: int, width: int, height: int) -> int:
    step_x, step_y = COMPASS[direction]
    x, y = s % width + step_x, s // width + step_y
    return y * width + x if 0 <= x < width and 0 <= y < height else s


def _one_except(free: int, p: Floats, n_steps: int) -> Floats:
    costs = np.ones(p.shape[:2])
    costs[free] = 0.0
    return repeated(costs, n_steps)
