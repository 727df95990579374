"""Relative-entropy projections as one would write them with cvxpy alone, without amdp's repair of the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import cvxpy
import numpy as np

from amdp import BernsteinBox, MarkovPolicies
from amdp.arrays import Floats
from amdp.oracles.polytope import polytope
from amdp.oracles.projection.base import point_shape
from amdp.oracles.projection.certificate import supported
from amdp.oracles.regularized.certificate import reached_pairs

Project = Callable[[Floats], Floats]

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "accept_unknown": True}
SOLVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Clarabel": ("CLARABEL", {}),
    "Clarabel, tight": ("CLARABEL", TIGHT),
    "SCS": ("SCS", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 20_000}),
}


@dataclass(frozen=True)
class Configuration:
    """One way to write the problem: the form of its objective, its solver, and whether it is written anew each time."""

    form: str  # "entr" or "kl_div"
    solver: str  # of `SOLVERS`
    anew: bool = False
    floor: float = 0.0  # no entry may be less

    def __str__(self) -> str:
        return f"cvxpy {self.form}, {self.solver}, {'written anew' if self.anew else 'parameter'}"

    def bind(self, domain: MarkovPolicies) -> Project:
        """A function that projects `log_point` and returns the solver's measure as it is."""
        return _Writer(self, domain).project


class _Writer:
    def __init__(self, configuration: Configuration, domain: MarkovPolicies) -> None:
        self._configuration = configuration
        self._shape = point_shape(domain)
        self._used = supported(domain, np.zeros(self._shape)) > -np.inf
        rows = polytope(domain)
        columns, self._counted = _columns(domain, self._used)
        matrix = rows.matrix[:, columns].tocsr()
        full = np.diff(matrix.indptr) > 0
        equal = full & (rows.row_lower == rows.row_upper)
        capped = full & ~equal & np.isfinite(rows.row_upper)
        floored = full & ~equal & np.isfinite(rows.row_lower)
        self._equal = matrix[equal], rows.row_lower[equal]
        self._below = [(matrix[capped], rows.row_upper[capped]), (-matrix[floored], -rows.row_lower[floored])]
        self._n = len(columns)
        self._kept: tuple[Any, Any, Any] | None = None

    def project(self, log_point: Floats) -> Floats:
        value = log_point[self._used]
        if self._configuration.form == "kl_div":
            value = np.exp(value)
        if self._configuration.anew or self._kept is None:
            given = value if self._configuration.anew else cvxpy.Parameter(len(value), nonneg=self._is_nonnegative())
            self._kept = *self._written(given), given
        problem, x, given = self._kept
        if not self._configuration.anew:
            given.value = value
        solver, options = SOLVERS[self._configuration.solver]
        with catch_warnings():
            simplefilter("ignore")
            problem.solve(solver=solver, **options)
        measure = np.zeros(self._shape)
        measure[self._used] = x.value[self._counted]
        return measure

    def _is_nonnegative(self) -> bool:
        return self._configuration.form == "kl_div"

    def _written(self, given: Any) -> tuple[Any, Any]:
        x = cvxpy.Variable(self._n)
        matrix, bound = self._equal
        constraints = [matrix @ x == bound, *(rows @ x <= limit for rows, limit in self._below if len(limit))]
        mass = x[self._counted]
        if self._configuration.floor:
            constraints.append(mass >= self._configuration.floor)
        if self._configuration.form == "kl_div":
            objective = cvxpy.sum(cvxpy.kl_div(mass, given))
        else:
            objective = cvxpy.sum(-cvxpy.entr(mass)) - (given + 1.0) @ mass
        return cvxpy.Problem(cvxpy.Minimize(objective), constraints), x


class RegularizedWriter:
    """`<q, c> + sum psi(q)` written once, with the costs as a parameter; no repair."""

    def __init__(self, domain: MarkovPolicies, weights: tuple[float, float, float], solver: str) -> None:
        self._solver, self._settings = SOLVERS[solver]
        self._reached = reached_pairs(domain)
        columns = np.flatnonzero(self._reached)
        rows = polytope(domain)
        matrix = rows.matrix[:, columns].tocsr()
        full = np.diff(matrix.indptr) > 0
        self._x, self._cost = cvxpy.Variable(len(columns)), cvxpy.Parameter(len(columns))
        forms = -cvxpy.entr(self._x), -cvxpy.sqrt(self._x), -cvxpy.log(self._x)
        terms = [weight * cvxpy.sum(form) for weight, form in zip(weights, forms, strict=True) if weight > 0.0]
        objective = self._cost @ self._x + sum(terms)
        self._problem = cvxpy.Problem(cvxpy.Minimize(objective), [matrix[full] @ self._x == rows.row_lower[full]])

    def minimize(self, cost: Floats) -> Floats:
        """The solver's measure."""
        self._cost.value = cost[self._reached]
        with catch_warnings():
            simplefilter("ignore")
            self._problem.solve(solver=self._solver, **self._settings)
        measure = np.zeros(self._reached.shape)
        measure[self._reached] = self._x.value
        return measure


class Ensemble:
    """DO-REPS as PyNOL runs it: exponential weights among the rates of a grid, two projections a round for each.

    The first is that of its optimistic form, which projects the measure before it is played: here with a guess of zero,
    so that it changes nothing but the time. [confirmed: PyNOL's learner/base.py]
    """

    def __init__(self, way: Configuration, domain: MarkovPolicies, rates: Sequence[float], choosing: float) -> None:
        self._project, self._rates, self._choosing = way.bind(domain), np.array(rates), choosing
        self._floor, self._lost = way.floor, np.zeros(len(rates))
        first = self._project(np.zeros(domain.shape))
        self._measures = np.stack([first] * len(rates))

    def round(self, table: Floats) -> Floats:
        """The measure that is played, after which all learn the losses."""
        for i, measure in enumerate(self._measures):
            self._measures[i] = self._project(np.log(np.maximum(measure, self._floor)))
        weights = np.exp(-self._choosing * (self._lost - self._lost.min()))
        played: Floats = np.tensordot(weights / weights.sum(), self._measures, axes=1)
        self._lost += np.tensordot(self._measures, table, axes=3)
        masses = np.maximum(self._measures, self._floor)
        for i, rate in enumerate(self._rates):
            self._measures[i] = self._project(np.log(masses[i]) - rate * table)
        return played


def _columns(domain: MarkovPolicies, used: Any) -> tuple[Any, Any]:
    """The columns of the polytope that can be positive, and the place among them of each used entry of the point."""
    if not isinstance(domain.dynamics, BernsteinBox):
        columns = np.flatnonzero(used)
        return columns, np.arange(len(columns))
    pairs = used.any(axis=-1).reshape(-1)
    columns = np.flatnonzero(np.concatenate([pairs, used[:-1][domain.dynamics.upper[:-1] > 0.0]]))
    place = np.arange(len(columns))
    ending = (columns >= used[:-1, ..., 0].size) & (columns < pairs.size)
    return columns, np.concatenate([place[columns >= pairs.size], place[ending]])
