"""Occupancy measures as the solutions of sparse linear rows: stated once for the LP, MILP and projection oracles.

Over a kernel: `sum_a x[0,s,a] = 1{s = initial}` and `sum_a x[h+1,y,a] = sum_{s,a} P[h,s,a,y] x[h,s,a]`, `x >= 0`.
Over a box the flow `q[h,s,a,y]` has columns of its own, with `sum_y q = x` and `lower x <= q <= upper x`.
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.confidence import BernsteinBox
from amdp.dynamics import Shape
from amdp.errors import UnsupportedDomain
from amdp.mdp import Domain, MarkovPolicies, SingleKernel

Entries = tuple[NDArray[np.integer], NDArray[np.integer], Floats]  # row, column, coefficient


@dataclass(frozen=True, eq=False)
class Polytope:
    """`row_lower <= matrix @ x <= row_upper`, `x >= 0`; the first H*S*A columns are the pairs `[h, s, a]`."""

    shape: Shape
    matrix: Any  # CSC
    row_lower: Floats
    row_upper: Floats

    @property
    def n_pairs(self) -> int:
        """How many columns are pairs; costs and the returned mass live on these."""
        return int(np.prod(self.shape))


def is_linear(domain: Domain) -> bool:
    """Whether the occupancy measures of a domain are the solutions of linear rows."""
    return isinstance(domain, MarkovPolicies) and isinstance(domain.dynamics, SingleKernel | BernsteinBox)


def polytope(domain: MarkovPolicies) -> Polytope:
    """The rows whose solutions are the occupancy measures of a domain."""
    return _rows(domain.dynamics, domain.initial)


@singledispatch
def _rows(dynamics: object, initial: int) -> Polytope:
    raise UnsupportedDomain(f"no linear rows are known for {type(dynamics).__name__}")


@_rows.register
def _kernel_rows(kernel: SingleKernel, initial: int) -> Polytope:
    steps, states, actions = kernel.shape
    parts = [_outflow(kernel.shape)]
    for h in range(steps - 1):
        step = scipy.sparse.coo_array(kernel.matrix(h))
        pair, successor = step.coords
        parts.append(((h + 1) * states + successor, h * states * actions + pair, -step.data))
    balance = _start(kernel.shape, initial)
    return _assemble(kernel.shape, parts, steps * states * actions, balance, balance)


@_rows.register
def _box_rows(box: BernsteinBox, initial: int) -> Polytope:
    steps, states, actions = box.shape
    pairs = steps * states * actions
    lower, upper = box.lower[:-1], box.upper[:-1]
    h, s, a, y = np.nonzero(upper > 0.0)  # a flow that must be zero needs no column
    pair = (h * states + s) * actions + a
    flow = pairs + np.arange(len(pair))
    low, high = lower[h, s, a, y], upper[h, s, a, y]
    ones = np.ones(len(pair))

    n_balance, n_split = steps * states, (steps - 1) * states * actions
    split = n_balance + pair
    capped = np.flatnonzero(high < 1.0)
    cap_row = n_balance + n_split + np.arange(len(capped))
    floored = np.flatnonzero(low > 0.0)
    floor_row = n_balance + n_split + len(capped) + np.arange(len(floored))
    every_pair = np.arange(n_split)
    parts = [
        _outflow(box.shape),
        ((h + 1) * states + y, flow, -ones),
        (n_balance + every_pair, every_pair, np.ones(n_split)),
        (split, flow, -ones),
        (cap_row, flow[capped], ones[capped]),
        (cap_row, pair[capped], -high[capped]),
        (floor_row, flow[floored], ones[floored]),
        (floor_row, pair[floored], -low[floored]),
    ]
    equal = np.concatenate([_start(box.shape, initial), np.zeros(n_split)])
    row_lower = np.concatenate([equal, np.full(len(capped), -np.inf), np.zeros(len(floored))])
    row_upper = np.concatenate([equal, np.zeros(len(capped)), np.full(len(floored), np.inf)])
    return _assemble(box.shape, parts, pairs + len(pair), row_lower, row_upper)


def _outflow(shape: Shape) -> Entries:
    """`sum_a x[h,s,a]` in the balance row of `(h, s)`."""
    steps, states, actions = shape
    column = np.arange(steps * states * actions)
    return column // actions, column, np.ones(len(column))


def _start(shape: Shape, initial: int) -> Floats:
    balance = np.zeros(shape[0] * shape[1])
    balance[initial] = 1.0
    return balance


def _assemble(shape: Shape, parts: list[Entries], columns: int, row_lower: Floats, row_upper: Floats) -> Polytope:
    row, column, coefficient = (np.concatenate(entry) for entry in zip(*parts, strict=True))
    matrix = scipy.sparse.csc_array((coefficient, (row, column)), shape=(len(row_lower), columns))
    matrix.sum_duplicates()
    return Polytope(shape, matrix, row_lower, row_upper)
