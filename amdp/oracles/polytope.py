"""Occupancy measures as the solutions of sparse linear rows: stated once for the LP, MILP and projection oracles.

Over a kernel: `sum_a x[0,s,a] = 1{s = initial}` and `sum_a x[h+1,y,a] = sum_{s,a} P[h,s,a,y] x[h,s,a]`, `x >= 0`.
Over a box the flow `q[h,s,a,y]` has columns of its own, with `sum_y q = x` and `lower x <= q <= upper x`. For planning
(`program`) a flow whose bounds are closer than a solver can tell apart is a fixed share of `x` instead. Budgets are one
more row each, divided by their sizes: `<usage, x> <= limit`. They are the last rows.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Bools, Floats
from amdp.errors import UnsupportedDomain
from amdp.model.budgets import Budgets
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import BudgetedPolicies, EpisodeDomain, MarkovPolicies
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.model_files import Block, grid, listed

# Narrower than this, the two rows that hold a flow contradict each other within the tolerances of the solvers. What the
# flow could differ by is below the accuracy of any answer; policies are judged by a sweep over the box as it is.
NARROWEST_FLOW = 1e-8

Entries = tuple[NDArray[np.integer], NDArray[np.integer], Floats]  # row, column, coefficient


@dataclass(frozen=True, eq=False)
class Polytope:
    """`row_lower <= matrix @ x <= row_upper`, `x >= 0`; the first H*S*A columns are the pairs `[h, s, a]`."""

    shape: Shape
    matrix: Any  # CSC
    row_lower: Floats
    row_upper: Floats
    column_blocks: tuple[Block, ...]
    row_blocks: tuple[Block, ...]

    @property
    def n_pairs(self) -> int:
        """How many columns are pairs; costs and the returned mass live on these."""
        return prod(self.shape)

    @property
    def has_flows(self) -> bool:
        """Whether there are other columns than pairs."""
        return bool(self.matrix.shape[1] > self.n_pairs)

    @property
    def bases_are_policies(self) -> bool:
        """Whether each deterministic policy is a feasible basis: pairs are all columns, and balances all rows."""
        steps, states, _ = self.shape
        return bool(self.matrix.shape == (steps * states, self.n_pairs))


def has_polytope(domain: object) -> bool:
    """Whether `polytope` knows the occupancy measures of a domain: over a kernel, with budgets or without, or a box."""
    return isinstance(domain, EpisodeDomain) and isinstance(domain.dynamics, SingleKernel | BernsteinBox)


def polytope(domain: EpisodeDomain) -> Polytope:
    """The rows whose solutions are the occupancy measures of a domain."""
    if isinstance(domain, BudgetedPolicies):
        return _with_budgets(_kernel_rows(domain.dynamics, domain.unlimited), domain.budgets)
    if isinstance(domain.dynamics, BernsteinBox):
        lower, upper = domain.dynamics.lower[:-1], domain.dynamics.upper[:-1]
        return _flow_rows(Moves(lower, upper, lower, upper > 0.0), domain)  # what must be zero needs no column
    if isinstance(domain.dynamics, SingleKernel):
        return _kernel_rows(domain.dynamics, domain)
    raise UnsupportedDomain(f"no linear rows are known for {type(domain.dynamics).__name__}")


def program(domain: EpisodeDomain) -> Polytope:
    """The rows for a linear program: those of `polytope`, but that narrow flows over a box are fixed."""
    if isinstance(domain.dynamics, BernsteinBox):
        return _flow_rows(solvable_moves(domain.dynamics), domain)
    return polytope(domain)


@dataclass(frozen=True, eq=False)
class Moves:
    """The flows over a box, `[h, s, a, y]` for all steps but the last: `low x <= q <= high x`, or `q = share x`."""

    low: Floats
    high: Floats
    share: Floats  # a distribution of the box
    free: Bools  # which flows are not fixed


def solvable_moves(box: BernsteinBox) -> Moves:
    """Flows for a linear program: bounds that can be reached, and a fixed share where these are `NARROWEST_FLOW`."""
    lower, upper = box.lower[:-1], box.upper[:-1]
    budget = np.maximum(0.0, 1.0 - lower.sum(axis=-1, keepdims=True))
    surplus = np.maximum(0.0, upper.sum(axis=-1, keepdims=True) - 1.0)
    low, high = np.maximum(lower, upper - surplus), np.minimum(upper, lower + budget)
    part = budget / np.where(budget + surplus > 0.0, budget + surplus, 1.0)
    share = lower + part * (upper - lower)
    return Moves(low, high, share / share.sum(axis=-1, keepdims=True), high - low > NARROWEST_FLOW)


def _kernel_rows(kernel: SingleKernel, domain: MarkovPolicies) -> Polytope:
    steps, states, actions = kernel.shape
    parts = [_outflow(kernel.shape)]
    for h in range(steps - 1):
        step = scipy.sparse.coo_array(kernel.matrix(h))
        pair, successor = step.coords
        parts.append(((h + 1) * states + successor, h * states * actions + pair, -step.data))
    balance = _start(domain)
    blocks = (grid("x", *kernel.shape),), (grid("balance", steps, states),)
    matrix = _matrix(parts, steps * states, steps * states * actions)
    return Polytope(kernel.shape, matrix, balance, balance, *blocks)


def _with_budgets(rows: Polytope, budgets: Budgets) -> Polytope:
    usage = budgets.usage.reshape(len(budgets), -1) / budgets.sizes[:, None]
    matrix = scipy.sparse.vstack([rows.matrix, scipy.sparse.csr_array(usage)], format="csc")
    none, limits = np.full(len(budgets), -np.inf), budgets.limits / budgets.sizes
    upper = np.concatenate([rows.row_upper, limits])
    blocks = rows.column_blocks, (*rows.row_blocks, grid("budget", len(budgets)))
    return Polytope(rows.shape, matrix, np.concatenate([rows.row_lower, none]), upper, *blocks)


def _flow_rows(moves: Moves, domain: MarkovPolicies) -> Polytope:
    """Balance rows, one row that splits each pair with free flows, and a row for each bound of a free flow."""
    steps, states, actions = shape = domain.shape
    pairs = steps * states * actions
    h, s, a, y = np.nonzero(moves.free)
    fixed = np.nonzero(~moves.free & (moves.share > 0.0))  # there `share x` enters the next state
    pair = (h * states + s) * actions + a
    flow = pairs + np.arange(len(pair))
    low, high = moves.low[moves.free], moves.high[moves.free]
    ones = np.ones(len(pair))

    split_pairs = np.flatnonzero(moves.free.any(axis=-1))
    n_balance, n_split = steps * states, len(split_pairs)
    split = n_balance + np.searchsorted(split_pairs, pair)
    capped = np.flatnonzero(high < 1.0)
    cap_row = n_balance + n_split + np.arange(len(capped))
    floored = np.flatnonzero(low > 0.0)
    floor_row = n_balance + n_split + len(capped) + np.arange(len(floored))
    left = 1.0 - np.where(moves.free, 0.0, moves.share).sum(axis=-1).reshape(-1)[split_pairs]
    parts = [
        _outflow(shape),
        ((fixed[0] + 1) * states + fixed[3], (fixed[0] * states + fixed[1]) * actions + fixed[2], -moves.share[fixed]),
        ((h + 1) * states + y, flow, -ones),
        (n_balance + np.arange(n_split), split_pairs, left),
        (split, flow, -ones),
        (cap_row, flow[capped], ones[capped]),
        (cap_row, pair[capped], -high[capped]),
        (floor_row, flow[floored], ones[floored]),
        (floor_row, pair[floored], -low[floored]),
    ]
    equal = np.concatenate([_start(domain), np.zeros(n_split)])
    row_lower = np.concatenate([equal, np.full(len(capped), -np.inf), np.zeros(len(floored))])
    row_upper = np.concatenate([equal, np.zeros(len(capped)), np.full(len(floored), np.inf)])
    columns = grid("x", *shape), listed("q", h, s, a, y)
    rows = (
        grid("balance", steps, states),
        listed("split", *np.unravel_index(split_pairs, shape)),
        *(listed(label, h[used], s[used], a[used], y[used]) for label, used in (("cap", capped), ("floor", floored))),
    )
    matrix = _matrix(parts, len(row_lower), pairs + len(pair))
    return Polytope(shape, matrix, row_lower, row_upper, columns, rows)


def _outflow(shape: Shape) -> Entries:
    """`sum_a x[h,s,a]` in the balance row of `(h, s)`."""
    steps, states, actions = shape
    column = np.arange(steps * states * actions)
    return column // actions, column, np.ones(len(column))


def _start(domain: MarkovPolicies) -> Floats:
    balance = np.zeros(domain.shape[0] * domain.shape[1])
    balance[domain.initial] = 1.0
    return balance


def _matrix(parts: list[Entries], rows: int, columns: int) -> Any:
    row, column, coefficient = (np.concatenate(entry) for entry in zip(*parts, strict=True))
    matrix = scipy.sparse.csc_array((coefficient, (row, column)), shape=(rows, columns))
    matrix.sum_duplicates()
    return matrix
