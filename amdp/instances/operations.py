"""Worlds of operations research: an inventory with moving prices, a queue with a gate."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from amdp.arrays import Floats, floats, refuse, require_room
from amdp.errors import InvalidInput
from amdp.instances.base import Instance, no_rows, repeated, require_amount, require_chance, require_count, shrunk
from amdp.kernels.threads import multiply
from amdp.model.transitions import Kernel, require_dense

REJECT, ADMIT = 0, 1


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
    require_count("n_steps", n_steps)
    require_count("capacity", capacity)
    require_count("max_order", max_order)
    for name, amount in (("mean_demand", mean_demand), ("holding", holding), ("shortage", shortage)):
        require_amount(name, amount)
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
    require_count("n_steps", n_steps)
    require_count("capacity", capacity)
    for name, chance in (("arrival", arrival), ("service", service)):
        require_chance(name, chance)
    for name, amount in (("holding", holding), ("rejection", rejection)):
        require_amount(name, amount)
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
    return Instance("queue", Kernel.homogeneous(p, n_steps), repeated(costs, n_steps), scale=scale)


def _prices(prices: ArrayLike | None, n_steps: int) -> Floats:
    if prices is None:
        season: Floats = np.sin(2.0 * np.pi * np.arange(n_steps) / 10.0)
        return 2.0 + season
    table = floats("prices", prices, "h")
    if len(table) != n_steps:
        raise InvalidInput(f"prices has {len(table)} entries; give one for each of the {n_steps} steps")
    refuse(
        "prices",
        table,
        ~((table >= 0) & (table < np.inf)),
        "h",
        "must be finite and not negative",
    )
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
