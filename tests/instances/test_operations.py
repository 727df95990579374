from collections.abc import Callable
from math import comb, exp, factorial

import numpy as np
import pytest

from amdp.errors import InvalidInput
from amdp.instances import Instance, inventory, maintenance, queue
from amdp.oracles.base import plan
from amdp.oracles.markov.dynamic_programming import BackwardInduction


def poisson(mean: float, tail: int = 60) -> list[float]:
    return [exp(-mean) * mean**d / factorial(d) for d in range(tail)]


def test_inventory_follows_its_demand_one_by_one() -> None:
    capacity, max_order, mean, holding, shortage = 4, 3, 1.7, 0.3, 5.0
    prices = [1.0, 4.0]
    instance = inventory(2, capacity, max_order, mean, holding, shortage, prices)
    p = np.zeros((capacity + 1, max_order + 1, capacity + 1))
    costs = np.zeros((2, capacity + 1, max_order + 1))
    for s in range(capacity + 1):
        for a in range(max_order + 1):
            x = min(s + a, capacity)
            costs[:, s, a] = np.array(prices) * (x - s)
            for demand, chance in enumerate(poisson(mean)):
                p[s, a, max(x - demand, 0)] += chance
                costs[:, s, a] += chance * (holding * max(x - demand, 0) + shortage * max(demand - x, 0))
    np.testing.assert_allclose(instance.kernel.dense().p[0], p, atol=1e-14)
    np.testing.assert_allclose(instance.scale.unit * instance.costs, costs, atol=1e-12)
    assert instance.costs.max() == 1.0


def test_the_best_orders_raise_the_stock_to_one_level_a_step() -> None:
    # Linear prices, no delivery time, no limit on the order: a base-stock policy is optimal.
    instance = inventory(12, capacity=10, max_order=10)
    orders = plan(BackwardInduction(), instance.domain, instance.costs).actions
    levels = []
    for order in orders:
        reached = {int(s + a) for s, a in enumerate(order[:-1]) if a > 0}  # a full stock takes no order
        assert len(reached) <= 1
        levels.append(max(reached, default=0))
    assert len(set(levels)) > 1  # the prices move, and the level with them


def test_a_dear_price_is_only_paid_for_what_is_delivered() -> None:
    cheap, dear = (inventory(1, 3, 2, prices=[price]) for price in (1.0, 9.0))
    full = cheap.scale.unit * cheap.costs[0, 3], dear.scale.unit * dear.costs[0, 3]
    np.testing.assert_allclose(full[0], full[1])
    empty = dear.scale.unit * dear.costs[0, 0] - cheap.scale.unit * cheap.costs[0, 0]
    np.testing.assert_allclose(empty, [0.0, 8.0, 16.0])


def test_queue_follows_its_events_one_by_one() -> None:
    capacity, arrival, service, holding, rejection = 3, 0.3, 0.45, 2.0, 7.0
    instance = queue(5, capacity, arrival, service, holding, rejection)
    p = np.zeros((capacity + 1, 2, capacity + 1))
    costs = np.zeros((capacity + 1, 2))
    for s in range(capacity + 1):
        for admit in (0, 1):
            joins = admit and s < capacity
            p[s, admit, s + 1 if joins else s] += arrival
            p[s, admit, max(s - 1, 0)] += service
            p[s, admit, s] += 1.0 - arrival - service
            costs[s, admit] = holding * s + (0.0 if joins else arrival * rejection)
    np.testing.assert_allclose(instance.kernel.dense().p[0], p, atol=1e-15)
    np.testing.assert_allclose(instance.scale.unit * instance.costs[0], costs, atol=1e-12)


def test_the_best_gate_closes_from_some_length_on() -> None:
    instance = queue()
    gates = plan(BackwardInduction(), instance.domain, instance.costs).actions[:, :-1]
    assert np.all(np.diff(gates, axis=1) <= 0)
    assert 0 < gates[0].sum() < gates.shape[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: inventory(capacity=0), "capacity = 0"),
        (lambda: inventory(max_order=0), "max_order = 0"),
        (lambda: inventory(mean_demand=-1.0), "mean_demand = -1.0; it must be finite and not negative"),
        (lambda: inventory(holding=float("inf")), "holding = inf"),
        (lambda: inventory(3, prices=[1.0, 2.0]), "prices has 2 entries; give one for each of the 3 steps"),
        (lambda: inventory(2, prices=[1.0, -2.0]), r"prices\[h=1\] = -2; it must be finite and not negative"),
        (lambda: queue(capacity=0), "capacity = 0"),
        (lambda: queue(arrival=1.2), "arrival = 1.2; it must be between 0 and 1"),
        (
            lambda: queue(arrival=0.6, service=0.6),
            "arrival [+] service = 1.2; together they must be at most 1",
        ),
        (lambda: queue(rejection=float("nan")), "rejection = nan"),
    ],
)
def test_bad_parameters_are_refused_with_the_rule(make: Callable[[], Instance], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_maintenance_wears_and_is_repaired_as_stated() -> None:
    """Run only: the wear after `h` steps is a binomial number of wears, cut at broken."""
    steps, levels, wear = 6, 4, 0.3
    world = maintenance(n_steps=steps, n_levels=levels, wear=wear, hours=0.0)
    running = np.zeros((1, *world.shape))
    running[..., 0] = 1.0
    at = world.kernel.occupancy(running, world.initial)[0].sum(axis=-1)
    for h in range(steps):
        chances = [comb(h, k) * wear**k * (1.0 - wear) ** (h - k) for k in range(h + 1)]
        expected = [sum(chances[k:]) if k == levels - 1 else chances[k] if k <= h else 0.0 for k in range(levels)]
        np.testing.assert_allclose(at[h], expected, atol=1e-12)
    best = plan("lp", world, world.costs)
    assert best.objective == pytest.approx((at * np.arange(levels) / (levels - 1)).sum())
    rows = world.kernel.matrix(0).reshape(levels, 3, levels)
    np.testing.assert_array_equal(rows[:, 1].argmax(axis=1), [0, 0, 1, 3])
    np.testing.assert_array_equal(rows[:, 2].argmax(axis=1), 0)
