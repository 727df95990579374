"""Checks of projection oracles.

A projection oracle minimizes `KL(q || w) = sum q (log q - log w) - q + w` over the occupancy measures `q` of a domain,
for weights `w = exp(point)`; the prices `v[h, s]` that it returns prove a lower bound, the dual value.
"""

import pickle
from collections.abc import Callable, Iterator

import numpy as np

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.model.domains import MarkovPolicies
from amdp.oracles.base import Status, describe
from amdp.oracles.projection.base import Projection, ProjectionOracle, Projector
from amdp.oracles.projection.certificate import box_residual, certified, flow_residual
from amdp.testing.samples import require_frozen_settings, require_supports_agrees_with_bind, sample_domains

ProjectionCheck = Callable[[ProjectionOracle], None]

OBJECTIVE_TOLERANCE = 1e-8  # relative where the objective is above 1; of residuals, absolute


def projection_checks() -> list[ProjectionCheck]:
    """Every check of a projection oracle; call each with one."""
    return [
        check_projections_come_from_a_recipe,
        check_projections_refuse_other_domains,
        check_projections_are_right,
        check_a_measure_is_its_own_projection,
        check_projections_leave_no_trace,
        check_wrong_points_are_refused,
        check_projectors_travel,
    ]


def check_projections_come_from_a_recipe(oracle: ProjectionOracle) -> None:
    """The oracle is frozen settings: it hashes, prints, pickles, and names the packages that it needs."""
    require_frozen_settings(oracle, ProjectionOracle)


def check_projections_refuse_other_domains(oracle: ProjectionOracle) -> None:
    """`bind` accepts what `supports` accepts, and raises `UnsupportedDomain` otherwise."""
    require_supports_agrees_with_bind(oracle)


def check_projections_are_right(oracle: ProjectionOracle) -> None:
    """`q` is an occupancy measure, the objective is `KL(q || w)`, and the dual value of the prices equals it.

    The weights go down to `exp(-1000)`.
    """
    for projector in _projectors(oracle):
        for size in (1.0, 30.0, 1000.0):
            point = size * _point(projector, 8)
            projection = projector.project(point)
            what = f"{describe(projector.domain)}, weights down to exp({point.min():.0f})"
            optimal = projection.status is Status.OPTIMAL
            assert optimal, f"{what}: a projector returns what is proved, or raises Unsolved"
            assert projection.log_measure.shape == point.shape, f"{what}: the measure has another shape than the point"
            assert isinstance(projector.domain, MarkovPolicies)
            proved = certified(projector.domain, point, projection.prices, projection.report)
            tolerance = OBJECTIVE_TOLERANCE * max(1.0, abs(proved.objective))
            assert abs(projection.objective - proved.objective) <= tolerance, f"{what}: a wrong objective"
            assert proved.gap <= tolerance, f"{what}: the prices do not prove it; gap {proved.gap:g}"
            assert np.abs(projection.measure - proved.measure).max() <= 1e-3, f"{what}: measure and prices disagree"
            assert _residual(projector.domain, projection) <= OBJECTIVE_TOLERANCE, f"{what}: not an occupancy measure"


def check_a_measure_is_its_own_projection(oracle: ProjectionOracle) -> None:
    """Where `w` is an occupancy measure, `KL(q || w) = 0` and `q = w`."""
    for projector in _projectors(oracle):
        measure = projector.project(_point(projector, 9))
        again = projector.project(measure.log_measure)
        assert abs(again.objective) <= OBJECTIVE_TOLERANCE, "the nearest measure to a measure is not at distance zero"
        assert np.abs(again.measure - measure.measure).max() <= 1e-4, "a measure was moved"


def check_projections_leave_no_trace(oracle: ProjectionOracle) -> None:
    """The projection is a function of the point, to the bit; `near` changes the speed; the point is not written to."""
    for projector in _projectors(oracle):
        point, other = _point(projector, 10), _point(projector, 11)
        before = point.copy()
        first = projector.project(point)
        elsewhere = projector.project(other)
        assert np.array_equal(projector.project(point).log_measure, first.log_measure), "an answer left a trace"
        near = projector.project(point, elsewhere)
        tolerance = OBJECTIVE_TOLERANCE * max(1.0, abs(first.objective))
        assert abs(near.objective - first.objective) <= tolerance, "near moved it"
        assert np.array_equal(point, before), "the projector wrote to the point"


def check_wrong_points_are_refused(oracle: ProjectionOracle) -> None:
    """NaN, infinite weights, wrong shapes, and weights that no occupancy measure can use raise `InvalidInput`."""
    for projector in _projectors(oracle):
        for wrong in (np.nan, np.inf):
            point = _point(projector, 12)
            point[1, 2, 1] = wrong
            assert _refuses(projector, point), f"a point with {wrong} was accepted"
        assert _refuses(projector, np.zeros((1, 3, 2))), "a point of another shape was accepted"
        point = _point(projector, 12)
        point[2] = -np.inf
        assert _refuses(projector, point), "a point without weight in a step was accepted"


def check_projectors_travel(oracle: ProjectionOracle) -> None:
    """A pickled projector gives the measure of the original, to the bit."""
    for projector in _projectors(oracle):
        point = _point(projector, 13)
        measure = pickle.loads(pickle.dumps(projector)).project(point).log_measure
        assert np.array_equal(measure, projector.project(point).log_measure), "pickling changed the answer"


def _projectors(oracle: ProjectionOracle) -> Iterator[Projector]:
    return (oracle.bind(domain) for domain in sample_domains() if oracle.supports(domain))


def _point(projector: Projector, seed: int) -> Floats:
    """Logarithms of weights between `1/e` and 1."""
    return -np.random.default_rng(seed).random(projector.point_shape)


def _residual(domain: MarkovPolicies, projection: Projection) -> float:
    """How far a measure is from an occupancy measure, by the residuals that it reports and by those computed here."""
    flow, box = flow_residual(domain, projection.log_measure), box_residual(domain, projection.log_measure)
    return max(flow, box, projection.flow_residual, projection.box_residual)


def _refuses(projector: Projector, point: Floats) -> bool:
    try:
        projector.project(point)
    except InvalidInput:
        return True
    return False
