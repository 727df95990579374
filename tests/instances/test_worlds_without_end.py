"""Communicating worlds: diameter, period, parking; and the hard case of switching."""

from math import log2

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from amdp import InvalidInput, instances
from amdp.algorithms.streams.switching import PolicySwitching
from amdp.instances import Instance
from amdp.losses.adversaries import multi_scale_walk, parents
from amdp.model import connectivity


def diagnosis(world: Instance) -> connectivity.Diagnosis:
    return connectivity.summary(world.kernel, world.initial)


@pytest.mark.parametrize("seed", range(5))
def test_random_parked_worlds_can_be_switched_in(seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = instances.random_parked(50, 5, 3, rng)
    found = diagnosis(world)
    assert found.communication.communicates
    assert found.parking_pair == (0, 0)
    assert PolicySwitching(world.kernel, world.initial).routes.success > 0.0


def test_river_swim_parks_on_its_left_bank() -> None:
    found = diagnosis(instances.river_swim(n_steps=100))
    assert found.communication.communicates
    assert found.parking_pair == (0, 0)


def test_a_server_farm_waits_anywhere_and_costs_what_it_says() -> None:
    world = instances.server_farm(n_steps=48, n_servers=3, boot=0.5, power=1.0, shortage=3.0, setup=0.5, day=24)
    assert {(0, 1), (1, 1), (2, 1), (3, 1)} < set(connectivity.parking_pairs(world.kernel))
    assert diagnosis(world).diameter.value == pytest.approx(6.0)  # three boots of two steps each
    original = world.costs * world.scale.unit
    assert_allclose(original[0, :, 1], [0.0, 1.0, 2.0, 3.0])  # midnight: no demand
    assert_allclose(original[12, :, 1], [9.0, 7.0, 5.0, 3.0])  # noon: three units
    assert_allclose(original[12, :, 2] - original[12, :, 1], 0.5)
    assert_allclose(world.costs[:24], world.costs[24:])
    assert world.costs.max() == 1.0


@pytest.mark.parametrize("size", [2, 5, 6])
def test_rings_and_stars_have_their_periods_and_diameters(size: int) -> None:
    ring = diagnosis(instances.waiting_ring(30, size))
    assert (ring.period, ring.diameter.value, ring.parking_pair) == (1, size - 1, (0, 0))
    swinging = diagnosis(instances.swinging_ring(30, size))
    assert (swinging.period, swinging.diameter.value) == (2 if size % 2 == 0 else 1, size // 2)
    assert swinging.parking_pair is None
    star = diagnosis(instances.waiting_star(30, size))
    assert (star.period, star.diameter.value, star.parking_pair) == (1, 2.0, (0, 0))
    beating = diagnosis(instances.swinging_star(30, size))
    assert (beating.period, beating.diameter.value, beating.parking_pair) == (2, 2.0 if size > 1 else 1.0, None)


def test_an_even_ring_without_waiting_cannot_be_switched_in() -> None:
    with pytest.raises(InvalidInput, match="no parking pair"):
        PolicySwitching(instances.swinging_ring(30, 4).kernel)


# --- the hard case ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arms", "corridor"), [(2, 1), (3, 1), (3, 3)])
def test_the_bandit_has_its_size_diameter_and_gap(arms: int, corridor: int) -> None:
    steps = 1000
    hard = instances.hidden_bandit(steps, arms, np.random.default_rng(4), corridor)
    assert hard.instance.shape == (steps, arms * corridor, arms)
    found = diagnosis(hard.instance)
    assert found.communication.communicates
    assert found.diameter.value == 2 * corridor - 1
    assert {(i, i) for i in range(arms)} <= set(connectivity.parking_pairs(hard.instance.kernel))
    tables = hard.losses.batch(0, steps)[:, 0]
    staying = tables[:, np.arange(arms), np.arange(arms)]
    others = [i for i in range(arms) if i != hard.good]
    assert ((staying > 0.0) & (staying < 1.0)).all()
    assert_allclose(staying[:, others] - staying[:, [hard.good]], hard.gap)
    assert_allclose(staying[:, others[0]], 0.5 + hard.walk)
    away = np.ones((arms * corridor, arms), dtype=bool)
    away[np.arange(arms), np.arange(arms)] = False
    assert_array_equal(tables[:, away], 1.0)
    assert hard.gap == pytest.approx((corridor * arms / steps) ** (1 / 3) / (9 * log2(steps)))


@pytest.mark.parametrize("steps", [1, 2, 64, 1000])
def test_the_walk_is_shallow_and_narrow(steps: int) -> None:
    lines = parents(steps)
    depth = np.zeros(steps + 1, dtype=int)
    for t, parent in enumerate(lines, start=1):
        assert 0 <= parent < t
        depth[t] = depth[parent] + 1
    most = int(log2(steps)) + 1
    assert depth.max() <= most
    width = max(sum(parent < t <= s for s, parent in enumerate(lines, start=1)) for t in range(1, steps + 1, 7))
    assert width <= most


def test_the_variance_of_the_walk_is_the_number_of_bits() -> None:
    rng = np.random.default_rng(2)
    walks = np.array([multi_scale_walk(16, 0.5, rng) for _ in range(8000)])
    bits = [t.bit_count() for t in range(1, 17)]
    assert_allclose(walks.var(axis=0), 0.25 * np.array(bits), rtol=0.1)


def test_one_seed_gives_one_bandit() -> None:
    one, other = (instances.hidden_bandit(64, 2, np.random.default_rng(7)) for _ in range(2))
    assert one.good == other.good
    assert_array_equal(one.losses.batch(0, 64), other.losses.batch(0, 64))


def test_bad_sizes_are_refused() -> None:
    rng = np.random.default_rng(1)
    for make, message in (
        (lambda: instances.hidden_bandit(2, 3, rng), "n_steps = 2"),
        (lambda: instances.hidden_bandit(10, 1, rng), "n_arms = 1"),
        (lambda: instances.hidden_bandit(10, 2, rng, 0), "corridor = 0"),
        (lambda: instances.random_parked(10, 3, 1, rng), "n_actions = 1"),
        (lambda: instances.random_parked(10, 3, 2, rng, 0.0), "concentration"),
        (lambda: instances.server_farm(boot=0.0), "boot = 0"),
        (lambda: instances.server_farm(power=-1.0), "power"),
        (lambda: instances.waiting_ring(10, 1), "n_states = 1"),
    ):
        with pytest.raises(InvalidInput, match=message):
            make()
