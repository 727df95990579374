import subprocess
import sys

import numpy as np
import pytest

from amdp import instances
from amdp.errors import InvalidInput
from amdp.instances import Instance, build, continuing, standard
from amdp.instances.base import Scale, repeated
from amdp.model.domains import MarkovPolicies, StationaryPolicies
from amdp.model.transitions import Kernel
from amdp.oracles.base import plan
from amdp.oracles.markov.dynamic_programming import BackwardInduction

HOMOGENEOUS = ("river-swim", "grid", "lock", "forest", "random-sparse", "inventory", "queue")


@pytest.mark.parametrize("name", standard())
def test_every_row_is_a_distribution_or_empty(name: str) -> None:
    kernel = build(name).kernel
    for h in range(kernel.shape[0]):
        sums = np.asarray(kernel.matrix(h).sum(axis=1))
        assert np.all((np.abs(sums - 1.0) < 1e-12) | (sums == 0.0))


@pytest.mark.parametrize("name", standard())
def test_every_world_is_a_domain_that_can_be_planned(name: str) -> None:
    instance = build(name)
    assert isinstance(instance.domain, MarkovPolicies)
    best = plan(BackwardInduction(), instance.domain, instance.costs)
    assert 0.0 <= best.objective <= instance.shape[0]


@pytest.mark.parametrize("name", standard())
def test_costs_lie_between_zero_and_one(name: str) -> None:
    costs = build(name).costs
    assert costs.min() >= 0.0
    assert costs.max() <= 1.0


@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_steps_of_homogeneous_worlds_share_memory(name: str) -> None:
    kernel = build(name).kernel
    assert kernel.is_homogeneous
    if isinstance(kernel, Kernel):
        assert kernel.p.strides[0] == 0


@pytest.mark.parametrize("name", [name for name in standard() if name.startswith("random")])
def test_random_worlds_of_the_catalog_are_always_the_same(name: str) -> None:
    first, second = build(name), build(name)
    np.testing.assert_array_equal(first.kernel.dense().p, second.kernel.dense().p)
    np.testing.assert_array_equal(first.costs, second.costs)


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"no instance 'river'; did you mean 'river-swim'\? known names: tiny, "):
        build("river")


def test_a_scale_is_affine() -> None:
    scale = Scale(20.0, -2.0)
    assert scale.original(3.0) == 14.0
    np.testing.assert_array_equal(scale.original(np.array([0.0, 1.0])), [20.0, 18.0])


def test_nan_costs_are_refused_also_in_a_repeated_table() -> None:
    kernel = Kernel.homogeneous(np.ones((1, 2, 1)), 3)
    with pytest.raises(InvalidInput, match=r"costs\[h=0, s=0, a=1\] = nan; it must be finite"):
        Instance("broken", kernel, repeated([[0.0, np.nan]], 3))


def test_importing_the_worlds_does_not_import_gymnasium() -> None:
    code = "import sys, amdp.instances; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", standard() | continuing())
def test_every_short_name_is_a_function_with_the_same_world(name: str) -> None:
    built, called = build(name), getattr(instances, name.replace("-", "_"))()
    assert isinstance(called, Instance)
    assert (called.name, called.shape, called.initial) == (built.name, built.shape, built.initial)
    np.testing.assert_array_equal(called.costs, built.costs)


def test_random_worlds_take_a_seed_or_a_generator() -> None:
    seeded, drawn = (instances.random_dense(2, 3, 2, seed=seed) for seed in (7, np.random.default_rng(7)))
    np.testing.assert_array_equal(seeded.costs, drawn.costs)
    with pytest.raises(InvalidInput, match="seed = -1; it must be a whole number, at least 0"):
        instances.tiny(seed=-1)


def test_an_instance_has_markov_and_stationary_policies() -> None:
    ring = instances.waiting_ring(n_steps=8)
    assert isinstance(ring.stationary, StationaryPolicies)
    assert isinstance(ring.domain, MarkovPolicies)
    assert ring.stationary.dynamics is ring.domain.dynamics is ring.kernel
