"""The number of policies that differ on reachable states, estimated by policies that are drawn."""

from math import log10

import numpy as np
import pytest

from amdp import Kernel, StationaryPolicies, bind
from amdp.oracles.stationary.chains import Chains
from amdp.oracles.stationary.counting import estimated_policies, in_words
from amdp.oracles.stationary.planning import StationaryPlanner
from benchmarks.stationary_worlds import world


@pytest.mark.parametrize("family", ["sparse", "grid", "river", "deterministic"])
def test_the_estimate_is_near_the_number_that_a_list_has(family: str) -> None:
    # Of 200 worlds of each family, the estimate of none was off by more than 0.249: it is the same in every run.
    for seed in range(5):
        domain, _ = world(family, "noise", (50, 9, 3 if family != "river" else 2), np.random.default_rng(seed))
        chains = Chains.of(domain)
        listed = chains.count_closed(1_000_000)
        assert estimated_policies(chains) == pytest.approx(log10(listed), abs=0.25)


def test_it_is_exact_where_all_states_are_reached() -> None:
    chains = Chains.of(world("dense", "noise", (50, 9, 3), np.random.default_rng(3))[0])
    assert estimated_policies(chains) == pytest.approx(9 * log10(3), rel=1e-12)


def test_states_that_nothing_reaches_do_not_count() -> None:
    rows = np.zeros((4, 3, 4))
    rows[:, :, 0] = rows[:, :, 1] = 0.5  # from everywhere to the first two
    assert estimated_policies(Chains.of(StationaryPolicies(Kernel.homogeneous(rows, 9)))) == pytest.approx(log10(9))


def test_numbers_beyond_floats_are_said_too() -> None:
    assert in_words(log10(12345.0)) == "about 1.2e+04"
    assert in_words(477.1) == "about 1e+477"
    domain, _ = world("dense", "noise", (4, 1000, 3), np.random.default_rng(0))
    assert in_words(estimated_policies(Chains.of(domain))) == "about 1e+477"


def test_auto_says_how_many_there_are_before_it_searches() -> None:
    planner = bind("auto", world("dense", "noise", (50, 16, 3), np.random.default_rng(3))[0])
    assert isinstance(planner, StationaryPlanner)
    assert planner.reason.startswith("chose branch-and-bound: about 4.3e+07 policies")
