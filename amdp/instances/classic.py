"""Worlds of the literature: chains, a grid, a forest, an inventory with moving prices, a queue, a machine."""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats, refuse, require_index, require_room
from amdp.errors import InvalidInput
from amdp.instances.base import (
    Instance,
    costs_but_at,
    costs_of_rewards,
    homogeneous,
    no_rows,
    require_amounts,
    require_chances,
    require_counts,
    shrunk,
)
from amdp.kernels.threads import multiply
from amdp.model.budgets import Budgets
from amdp.model.transitions import Kernel, require_dense

LEFT, RIGHT = 0, 1
WAIT, CUT = 0, 1
REJECT, ADMIT = 0, 1
RUN, SERVICE, REPLACE = 0, 1, 2
COMPASS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # north, east, south, west as steps (x, y)


def river_swim(n_states: int = 6, n_steps: int = 20) -> Instance:
    """Swim up a river: a small reward downstream, a large one upstream.

    A chain, from state 0 (downstream, the start). Action 0 swims left and always arrives (state 0 stays). Action 1
    swims right against the current: state 0 stays with chance 0.4 and advances with 0.6; a middle state falls back
    with 0.05, stays with 0.6, advances with 0.35; the last state falls back with 0.4 and stays with 0.6.
    The reward is 0.005 for `left` in state 0, 1 for `right` in the last state, else 0; the cost is `1 - reward`.

    Strehl and Littman (2008) invented it; these are the numbers of Osband, Russo and Van Roy (2013).
    """
    require_counts(2, n_states=n_states)
    require_counts(n_steps=n_steps)
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
    return homogeneous("river-swim", p, costs, n_steps, scale=scale)


def grid(width: int = 5, height: int = 5, slip: float = 0.2, n_steps: int = 20) -> Instance:
    """Walk from one corner of a grid to the opposite one.

    State `y * width + x`; the start is (0, 0), the goal (width - 1, height - 1). The actions are north (y + 1), east,
    south, west. The walker moves as meant with chance `1 - slip`, and to each side of it with `slip / 2`; into a wall
    it stays where it is. The goal is absorbing. Each step outside the goal costs 1, in it 0: the total is the
    expected time to the goal, cut at `n_steps`.

    The noise is that of Russell and Norvig's 4x3 world (slip 0.2).
    """
    require_counts(width=width, height=height, n_steps=n_steps)
    require_chances(slip=slip)
    goal = width * height - 1
    p = no_rows(goal + 1, 4)
    for s in range(goal):
        arrivals = [_arrival(s, direction, width, height) for direction in range(4)]
        for a in range(4):
            p[s, a, arrivals[a]] += 1.0 - slip
            p[s, a, arrivals[a - 1]] += slip / 2
            p[s, a, arrivals[(a + 1) % 4]] += slip / 2
    p[goal, :, goal] = 1.0
    return homogeneous(f"grid-{width}x{height}", p, costs_but_at(goal, p), n_steps)


def lock(code: Sequence[int] = (1, 0, 1, 1, 0), n_actions: int = 2, jam: float = 0.1, n_steps: int = 20) -> Instance:
    """Press the right buttons in a row to open a lock.

    State `i` has `i` right digits entered; state `len(code)` is open and absorbing. Button `code[i]` in state `i`
    advances with chance `1 - jam` and is not felt with chance `jam` (the state stays); any other button returns to
    state 0. Each step before the lock is open costs 1, afterwards 0.

    Whitehead (1991), Kakade (2003): pressing at random needs about `n_actions ** len(code)` steps.
    """
    require_counts(n_actions=n_actions, n_steps=n_steps)
    require_chances(jam=jam)
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
    return homogeneous(f"lock-{opened}", p, costs_but_at(opened, p), n_steps)


def forest(n_states: int = 3, n_steps: int = 20, fire: float = 0.1) -> Instance:
    """Keep an old forest for wildlife, or cut it for wood.

    The state is the age of the trees. `wait` (0) burns with chance `fire` (back to age 0), else the trees grow one
    class older, up to the last; `cut` (1) returns to age 0. The reward is 4 for waiting in the last state, 0 for
    waiting elsewhere; cutting pays 0 at age 0, 2 in the last state, else 1. The cost is `(4 - reward) / 4`.

    The forest example of the MDP toolboxes (Chades et al. 2014), with their default rewards.
    """
    require_counts(2, n_states=n_states)
    require_counts(n_steps=n_steps)
    require_chances(fire=fire)
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
    return homogeneous("forest", p, costs, n_steps, scale=scale)


def inventory(
    n_steps: int = 20,
    capacity: int = 10,
    max_order: int = 5,
    mean_demand: float = 3.0,
    holding: float = 0.5,
    shortage: float = 6.0,
    prices: ArrayLike | None = None,
) -> Instance:
    """Order stock at moving prices, under random demand.

    State: units in stock, `0 .. capacity`; action: units ordered, `0 .. max_order`. The order arrives at once, and
    what does not fit is neither delivered nor paid: `x = min(s + a, capacity)` units meet a Poisson(`mean_demand`)
    demand `D`. Unmet demand is lost: the next state is `max(x - D, 0)`. The expected cost of a step is

        prices[h] * (x - s) + holding * E[max(x - D, 0)] + shortage * E[max(D - x, 0)],

    divided by the largest such cost (`scale.unit`). The default price is `2 + sin(2 pi h / 10)`, a season of ten
    steps; `prices` `[h]` replaces it. The start is the empty stock.

    Puterman (1994), section 3.2, with lost sales and prices that depend on time.
    """
    require_counts(n_steps=n_steps, capacity=capacity, max_order=max_order)
    require_amounts(mean_demand=mean_demand, holding=holding, shortage=shortage)
    require_dense(1, capacity + 1, max_order + 1)
    require_room("costs", (n_steps, capacity + 1, max_order + 1), 2)  # before and after they are scaled
    price = _prices(prices, n_steps)
    stock = np.arange(capacity + 1)
    raised = np.minimum(stock[:, None] + np.arange(max_order + 1), capacity)  # [s, a]
    after = _after_demand(capacity, mean_demand)  # [x, y]
    left = multiply(after, stock)
    unmet = np.maximum(mean_demand - (stock - left), 0.0)  # E[D - min(D, x)]
    later = holding * left[raised] + shortage * unmet[raised]
    costs, scale = shrunk(price[:, None, None] * (raised - stock[:, None]) + later)
    return Instance("inventory", Kernel.homogeneous(after[raised], n_steps), costs, scale=scale)


def queue(
    n_steps: int = 30,
    capacity: int = 10,
    arrival: float = 0.4,
    service: float = 0.5,
    holding: float = 1.0,
    rejection: float = 8.0,
) -> Instance:
    """Open or close the gate of a queue with one server.

    State: customers present, `0 .. capacity`; action 0 rejects, 1 admits whoever comes in this step. At most one
    thing happens in a step: with chance `arrival` a customer comes (and joins if admitted and there is room), with
    chance `service` one leaves (if any is there). A step costs `holding` for each customer present, and `rejection`
    for a customer turned away, by the gate or by the full house: `holding * s + arrival * rejection` in expectation.
    Costs are divided by the largest (`scale.unit`). The start is the empty queue.

    Admission control of an M/M/1 queue, uniformized: Naor (1969), Stidham (1985), Puterman (1994), section 3.7.
    """
    require_counts(n_steps=n_steps, capacity=capacity)
    require_chances(arrival=arrival, service=service)
    require_amounts(holding=holding, rejection=rejection)
    if arrival + service > 1.0:
        raise InvalidInput(f"arrival + service = {arrival + service:g}; together they must be at most 1")
    p = no_rows(capacity + 1, 2)
    present = np.arange(capacity + 1)
    p[present[:-1], ADMIT, present[1:]] = arrival
    p[present[1:], :, present[:-1]] = service
    p[present, :, present] = 1.0 - p.sum(axis=2)
    turned_away = np.ones((capacity + 1, 2))
    turned_away[:-1, ADMIT] = 0.0
    costs, scale = shrunk(holding * present[:, None] + arrival * rejection * turned_away)
    return homogeneous("queue", p, costs, n_steps, scale=scale)


def maintenance(
    n_steps: int = 20, n_levels: int = 5, wear: float = 0.3, service_cost: float = 0.1, hours: float = 3.0
) -> Instance:
    """Keep a machine running with a crew that has few hours.

    State: the wear of the machine, from 0 (new, the start) to `n_levels - 1` (broken). Action 0 runs it, and wear grows
    by 1 with chance `wear`. Action 1 services it: wear falls by 1, but what is broken stays broken. Action 2 replaces
    it by a new one. A step costs the share of the output that is lost: `s / (n_levels - 1)` at wear `s`, and for a
    service `service_cost` more, at most 1; a replacement costs 1, for nothing is made.

    The budget: a service takes an hour of the crew, a replacement three; an episode may take `hours` in expectation.

    The machine replacement problem (Derman 1963), as a constrained Markov decision process (Altman 1999).
    """
    require_counts(2, n_levels=n_levels)
    require_counts(n_steps=n_steps)
    require_chances(wear=wear, service_cost=service_cost)
    require_amounts(hours=hours)
    broken, level = n_levels - 1, np.arange(n_levels)
    p = no_rows(n_levels, 3)
    p[level, RUN, level] += 1.0 - wear
    p[level, RUN, np.minimum(level + 1, broken)] += wear
    p[level, SERVICE, np.where(level == broken, broken, np.maximum(level - 1, 0))] = 1.0
    p[level, REPLACE, 0] = 1.0
    costs = np.ones((n_levels, 3))
    costs[:, RUN] = level / broken
    costs[:, SERVICE] = np.minimum(1.0, level / broken + service_cost)
    used = np.broadcast_to([0.0, 1.0, 3.0], costs.shape)
    return homogeneous("maintenance", p, costs, n_steps).with_budgets(Budgets.of(hours=(used, hours)))


EPISODIC = (river_swim, grid, lock, forest, inventory, queue)
BUDGETED = (maintenance,)


def _arrival(s: int, direction: int, width: int, height: int) -> int:
    step_x, step_y = COMPASS[direction]
    x, y = s % width + step_x, s // width + step_y
    return y * width + x if 0 <= x < width and 0 <= y < height else s


def _prices(prices: ArrayLike | None, n_steps: int) -> Floats:
    if prices is None:
        season: Floats = np.sin(2.0 * np.pi * np.arange(n_steps) / 10.0)
        return 2.0 + season
    table = floats("prices", prices, "h")
    if len(table) != n_steps:
        raise InvalidInput(f"prices has {len(table)} entries; give one for each of the {n_steps} steps")
    refuse("prices", table, ~((table >= 0) & (table < np.inf)), "h", "must be finite and not negative")
    return table


def _after_demand(capacity: int, mean_demand: float) -> Floats:
    """The chance `[x, y]` that `y` of `x` units are left after a Poisson demand; the tail empties the stock."""
    demand = np.arange(capacity + 1)
    chance = np.exp(scipy.special.xlogy(demand, mean_demand) - mean_demand - scipy.special.gammaln(demand + 1))
    after = np.zeros((capacity + 1, capacity + 1))
    for x in range(capacity + 1):
        after[x, 1 : x + 1] = chance[:x][::-1]
        after[x, 0] = 1.0 - after[x].sum()
    return np.maximum(after, 0.0)
