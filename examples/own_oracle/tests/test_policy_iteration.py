"""The conformance checks of amdp, run on an oracle of another package."""

import pytest
from policy_iteration import PolicyIteration

import amdp
from amdp import instances
from amdp.testing import OracleCheck, oracle_checks


@pytest.mark.parametrize("check", oracle_checks(), ids=lambda check: check.__name__)
def test_policy_iteration_conforms(check: OracleCheck) -> None:
    check(PolicyIteration())


def test_it_is_found_by_name() -> None:
    world = instances.river_swim()
    found = amdp.plan("step-policy-iteration", world.domain, world.costs)
    assert found.objective == pytest.approx(amdp.plan("dp", world.domain, world.costs).objective)


def test_a_limit_makes_it_feasible_with_a_bound_that_holds() -> None:
    world = instances.river_swim()
    stopped = amdp.plan(PolicyIteration(rounds=1), world.domain, world.costs)
    best = amdp.plan("dp", world.domain, world.costs).objective
    assert stopped.status is amdp.Status.FEASIBLE
    assert stopped.bound <= best <= stopped.objective
