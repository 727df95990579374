"""The projection contract: which occupancy measure is nearest to these weights in relative entropy?

    minimize `KL(q || w) = sum q (log q - log w) - q + w` over the occupancy measures `q` of a domain.

Over a kernel `q` has the axes `[h, s, a]`, over a box `[h, s, a, y]`; nothing follows the last step of a box, so its
mass sits in `y = 0`. Weights and measures are kept as logarithms, `-inf` for zero: learners multiply them for
thousands of rounds.

With a price `v[h, s]` for each state of each step, and `phi` the least of `sum_y p_y (log p_y - log w_y + v[h+1, y])`
over the rows `p` of a pair (over a kernel: `P v[h+1] - log w`), every occupancy measure has

    KL(q || w)  >=  v[0, initial] - sum_{h,s,a} exp(v[h, s] - phi[h, s, a]) + sum w,

with equality at the optimum. So prices prove an answer, and are where the next solve starts.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from amdp import kernels
from amdp.arrays import Floats, floats, refuse
from amdp.errors import InvalidInput, Unsolved
from amdp.kernels.blocks import Projecting
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, World, as_domain
from amdp.oracles.base import Bound, Oracle, Report, Status, created, is_oracle, one_line

GROUP = "amdp.projections"
LARGEST_EXPONENT = 700.0  # exp of more is infinite


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """The nearest occupancy measure, with the prices that prove it."""

    log_measure: Floats  # [h, s, a] over a kernel, [h, s, a, y] over a box; -inf for zero
    prices: Floats  # [h, s]; 0 where no mass can be
    objective: float  # of the measure, evaluated here
    gap: float  # no occupancy measure is nearer by more; each step of the nearest one is within sqrt(2 gap) in L1
    flow_residual: float  # the largest difference between what enters a state and what leaves it
    box_residual: float  # the largest excess over a bound of the box; 0 over a kernel
    status: Status
    report: Report

    __repr__ = one_line

    @property
    def bound(self) -> float:
        """No occupancy measure is nearer: the dual value of the prices."""
        return self.objective - self.gap

    @cached_property
    def measure(self) -> Floats:
        """The chance of each pair, `[h, s, a]`, or of each move, `[h, s, a, y]`."""
        result: Floats = np.exp(self.log_measure)
        return result

    @cached_property
    def policy(self) -> Floats:
        """The chance of each action `[h, s, a]`; uniform where the measure has no mass."""
        if self.log_measure.ndim == 3:
            return shares(self.log_measure)
        log_mass = np.empty(self.log_measure.shape[:3])
        by_pair = np.ascontiguousarray(self.log_measure).reshape(log_mass.size, -1)
        kernels.measures.log_sums(by_pair, log_mass.reshape(-1))
        return shares(log_mass)

    def as_prior(self) -> Self:
        """The same measure as the answer for itself as the point: it is nearest to itself, at prices of zero."""
        return replace(self, prices=np.zeros_like(self.prices), objective=0.0, gap=0.0)

    def require(self, *accepted: Status) -> Self:
        """Itself, if its status is accepted; otherwise `Unsolved` with the residuals."""
        if self.status in accepted:
            return self
        reason = f"; {self.report.note}" if self.report.note else ""
        raise Unsolved(
            f"{self.report.oracle} ended {self.status} after {self.report.iterations} iterations: objective "
            f"{self.objective:g}, gap {self.gap:g}, flow residual {self.flow_residual:g}, "
            f"box residual {self.box_residual:g}{reason}",
            self,
        )


@runtime_checkable
class ProjectionOracle(Oracle["Projector"], Protocol):
    """Settings of a projection method. `requires` names the packages that it must be able to import."""


class Projector(Bound, solves="project"):
    """A projection oracle bound to a domain."""

    oracle: ProjectionOracle
    group, role, verb = GROUP, "projection", "project onto"
    within_budgets = "newton or cvxpy"

    def __init__(self, oracle: ProjectionOracle, domain: Domain) -> None:
        super().__init__(oracle, domain)
        self.point_shape = point_shape(domain)

    @abstractmethod
    def project(self, log_point: Floats, near: Projection | None = None) -> Projection:
        """The measure nearest to `exp(log_point)`; `near`, an earlier answer of this shape, only warms the start.

        Whatever is returned is proved optimal; otherwise `Unsolved` carries what was found.
        """

    def compiled(self) -> Projecting | None:
        """How compiled games ask the same of it; None where they cannot."""
        return None

    def checked(self, log_point: ArrayLike) -> Floats:
        """`log_point` as an array that fits the domain, below `LARGEST_EXPONENT` and without NaN, or `InvalidInput`."""
        axes = "hsay"[: len(self.point_shape)]
        result = floats("log_point", log_point, axes)
        if result.shape != self.point_shape:
            raise InvalidInput(f"log_point has shape {result.shape}; the domain asks for {self.point_shape}")
        if not result.max() < LARGEST_EXPONENT:
            refuse(
                "log_point", result, ~(result < LARGEST_EXPONENT), axes, f"must be a number below {LARGEST_EXPONENT:g}"
            )
        return result

    def start(self, near: Projection | None) -> Floats | None:
        """The prices of an earlier answer, if it has finite ones, or `InvalidInput` if it has another shape."""
        if near is None:
            return None
        if near.prices.shape != self.point_shape[:2]:
            raise InvalidInput(f"near has prices {near.prices.shape}; the domain asks for {self.point_shape[:2]}")
        return near.prices if np.isfinite(near.prices).all() else None


def projection(name: str, **options: Any) -> ProjectionOracle:
    """The projection oracle registered under `name`, such as `"newton"`, with its options."""
    return created(GROUP, name, options)  # type: ignore[no-any-return]


def project(
    oracle: str | ProjectionOracle, domain: Domain | World, point: ArrayLike, near: Projection | None = None
) -> Projection:
    """The measure nearest to the weights `point >= 0`, `[h, s, a]` over a kernel and `[h, s, a, y]` over a box."""
    projector = bind_projection(oracle, domain)
    axes = "hsay"[: len(projector.point_shape)]
    weights = floats("point", point, axes)
    refuse("point", weights, ~(weights >= 0), axes, "must be a number that is not negative")
    refuse("point", weights, np.isinf(weights), axes, "must be finite")
    with np.errstate(divide="ignore"):
        return projector.project(np.log(weights), near)


def bind_projection(oracle: str | ProjectionOracle, domain: Domain | World) -> Projector:
    """A projector for many projections onto one domain."""
    chosen = created(GROUP, oracle, {}) if isinstance(oracle, str) else oracle
    bound = chosen.bind(as_domain(domain)) if is_oracle(chosen) else None
    if not isinstance(bound, Projector):
        raise InvalidInput(f"{chosen!r} is not a projection oracle; give a name, such as 'newton', or an oracle")
    return bound


def point_shape(domain: Domain) -> tuple[int, ...]:
    """The shape of a point: `[h, s, a]` over a kernel, `[h, s, a, y]` over a box."""
    shape = domain.shape
    return (*shape, shape[1]) if isinstance(domain.dynamics, BernsteinBox) else shape


def status_of(gap: float, steps: int, tolerance: float) -> Status:
    """Optimal if the gap is at most the tolerance for each step; what is not finite proves nothing.

    The mass of each step is 1. The objective is no scale: it holds also the weights that no measure can reach.
    """
    return Status.OPTIMAL if isfinite(gap) and gap <= tolerance * steps else Status.FEASIBLE


def log_sum(values: Floats) -> Floats:
    """`log sum exp` over the last axis."""
    top = values.max(axis=-1, keepdims=True)
    shift = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        result: Floats = np.log(np.exp(values - shift).sum(axis=-1)) + shift[..., 0]
    return result


def shares(log_weights: Floats) -> Floats:
    """Weights as shares of their sum over the last axis; equal ones where there is no weight."""
    rows = np.ascontiguousarray(log_weights).reshape(-1, log_weights.shape[-1])
    result = np.empty(rows.shape)
    kernels.measures.shares(rows, result)
    return result.reshape(log_weights.shape)
