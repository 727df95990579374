"""The conformance checks pass our projection oracles, and each rejects one that is wrong in its way."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import amdp
from amdp import Projection, testing
from amdp.arrays import Floats
from amdp.model.domains import Domain
from amdp.testing import ProjectionCheck, projection_checks

Spoil = Callable[[Projection, Floats], Projection]


@pytest.mark.parametrize("check", projection_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ["newton", "cvxpy"])
def test_our_projection_oracles_conform(name: str, check: ProjectionCheck) -> None:
    check(amdp.projection(name))


@dataclass(frozen=True)
class Spoiled:
    """Newton's method, whose answers are changed afterwards."""

    spoil: Spoil
    careless: bool = False  # takes any point and any domain
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return isinstance(domain, amdp.MarkovPolicies)

    def bind(self, domain: Domain) -> amdp.Projector:
        return _Spoiler(self, domain)


class _Spoiler(amdp.Projector):
    oracle: Spoiled

    def __init__(self, oracle: Spoiled, domain: Domain) -> None:
        if not oracle.careless:
            super().__init__(oracle, domain)
        self.oracle, self.domain = oracle, domain
        self.point_shape = domain.shape

    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        asked = np.zeros(self.domain.shape) if self.oracle.careless else log_point
        inside = amdp.bind_projection("newton", self.domain)
        return self.oracle.spoil(inside.project(asked, near), log_point)


def claim_less(found: Projection, point: Floats) -> Projection:
    return replace(found, objective=found.objective - 1e-3)


def shift_mass(found: Projection, point: Floats) -> Projection:
    return replace(found, log_measure=np.roll(found.log_measure, 1, axis=2))


def shift_prices(found: Projection, point: Floats) -> Projection:
    return replace(found, prices=found.prices + 0.01 * np.arange(found.prices.size).reshape(found.prices.shape))


def write_to_the_point(found: Projection, point: Floats) -> Projection:
    point -= 1.0
    return found


def move_a_little(found: Projection, point: Floats) -> Projection:
    return replace(found, objective=found.objective + 1e-6)


def change_nothing(found: Projection, point: Floats) -> Projection:
    return found


@pytest.mark.parametrize(
    ("check", "oracle"),
    [
        (testing.check_projections_are_right, Spoiled(claim_less)),
        (testing.check_projections_are_right, Spoiled(shift_mass)),
        (testing.check_projections_are_right, Spoiled(shift_prices)),
        (testing.check_a_measure_is_its_own_projection, Spoiled(move_a_little)),
        (testing.check_projections_leave_no_trace, Spoiled(write_to_the_point)),
        (testing.check_wrong_points_are_refused, Spoiled(change_nothing, careless=True)),
        (testing.check_it_refuses_other_domains, Spoiled(change_nothing, careless=True)),
        (testing.check_it_is_a_recipe, Spoiled(lambda found, point: found)),
        (testing.check_projectors_travel, Spoiled(lambda found, point: found)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_oracle_fails_its_check(check: ProjectionCheck, oracle: Spoiled) -> None:
    with pytest.raises((AssertionError, pickle.PicklingError)):
        check(oracle)
