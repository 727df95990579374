"""The conformance checks pass our oracles, and each of them rejects an oracle that is wrong in its way."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import amdp
from amdp import testing
from amdp.arrays import Costs
from amdp.model.domains import Domain
from amdp.registry import names
from amdp.testing import OracleCheck, learner_checks, oracle_checks, projection_checks

Spoil = Callable[[amdp.Plans, Costs], amdp.Plans]


def named(check: OracleCheck) -> str:
    return check.__name__


@pytest.mark.parametrize("check", oracle_checks(), ids=named)
@pytest.mark.parametrize("name", names("amdp.oracles"))
def test_our_oracles_conform(name: str, check: OracleCheck) -> None:
    check(amdp.oracle(name))


@pytest.mark.parametrize("check", oracle_checks(), ids=named)
@pytest.mark.parametrize(("name", "solver"), [("pulp", "CBC"), ("cvxpy", "CLARABEL")])
def test_their_second_solvers_conform(name: str, solver: str, check: OracleCheck) -> None:
    check(amdp.oracle(name, solver=solver))


@dataclass(frozen=True)
class Spoiled:
    """Backward induction whose answers are changed afterwards."""

    spoil: Spoil
    careless: bool = False  # takes any costs and any domain
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, amdp.MarkovPolicies)

    def bind(self, domain: Domain) -> amdp.Planner:
        return _Spoiler(self, domain)


class _Spoiler(amdp.Planner):
    oracle: Spoiled

    def __init__(self, oracle: Spoiled, domain: Domain) -> None:
        if not oracle.careless:
            super().__init__(oracle, domain)
        self.oracle, self.domain = oracle, domain
        self.solves = 0

    def minimize(self, costs: Costs) -> amdp.Plans:
        self.solves += 1
        taken = np.nan_to_num(np.resize(costs, (len(costs), *self.domain.shape))) if self.oracle.careless else costs
        return self.oracle.spoil(amdp.bind("dp", self.domain).minimize(taken), taken)


def claim_less(plans: amdp.Plans, costs: Costs) -> amdp.Plans:
    return replace(plans, objective=plans.objective - 1e-3, bound=plans.bound - 1e-3)


def claim_a_bound_too_high(plans: amdp.Plans, costs: Costs) -> amdp.Plans:
    return replace(plans, status=amdp.Status.FEASIBLE, bound=plans.bound + 1e-3)


def forget_scale(plans: amdp.Plans, costs: Costs) -> amdp.Plans:
    return replace(plans, actions=np.where(np.abs(costs).max() < 1e-3, 0, plans.actions).astype(np.int32))


def last_action_on_ties(plans: amdp.Plans, costs: Costs) -> amdp.Plans:
    tied = np.ptp(costs, axis=-1) == 0
    return replace(plans, actions=np.where(tied, costs.shape[-1] - 1, plans.actions).astype(np.int32))


def depend_on_the_batch(plans: amdp.Plans, costs: Costs) -> amdp.Plans:
    return replace(plans, actions=plans.actions if len(costs) == 1 else np.roll(plans.actions, 1, axis=0))


def write_to_the_costs(plans: amdp.Plans, costs: Costs) -> amdp.Plans:
    costs += 1.0
    return plans


def change_nothing(plans: amdp.Plans, costs: Costs) -> amdp.Plans:
    return plans


@pytest.mark.parametrize(
    ("check", "oracle"),
    [
        (testing.check_it_is_right, Spoiled(claim_less)),
        (testing.check_it_is_right, Spoiled(claim_a_bound_too_high)),
        (testing.check_any_size_of_costs, Spoiled(forget_scale)),
        (testing.check_ties_go_to_the_first_action, Spoiled(last_action_on_ties)),
        (testing.check_a_batch_is_its_singles, Spoiled(depend_on_the_batch)),
        (testing.check_solves_leave_no_trace, Spoiled(write_to_the_costs)),
        (testing.check_wrong_costs_are_refused, Spoiled(change_nothing, careless=True)),
        (testing.check_it_refuses_other_domains, Spoiled(change_nothing, careless=True)),
        (testing.check_it_is_a_recipe, Spoiled(lambda plans, costs: plans)),
        (testing.check_planners_travel, Spoiled(lambda plans, costs: plans)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_oracle_fails_its_check(check: OracleCheck, oracle: Spoiled) -> None:
    with pytest.raises((AssertionError, amdp.CertificateRejected, pickle.PicklingError)):
        check(oracle)


def test_every_check_is_listed() -> None:
    written = {name for name in vars(testing) if name.startswith("check_")}
    assert written == {check.__name__ for check in [*oracle_checks(), *projection_checks(), *learner_checks()]}
