"""Transition kernels of Markov decision processes, dense and sparse.

A kernel has the axes `[h, s, a, y]`: the chance of next state `y` after action `a` in state `s` at step `h`.
Nothing follows the last step, so its rows are never read. A row of zeros marks a place that cannot be reached.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from amdp import kernels
from amdp.arrays import (
    Bools,
    Floats,
    Occupancy,
    Policies,
    floats,
    in_each_step,
    located,
    require_distributions,
    require_room,
    require_row_sums,
    require_whole,
)
from amdp.errors import InvalidInput
from amdp.kernels.rows import DensePaths, DenseRows, FullRows, Paths, SparsePaths, SparseRows
from amdp.kernels.threads import multiply, one_thread
from amdp.model.dynamics import CompiledDynamics, describe, next_state_first, read_only
from amdp.model.segments import Pairs, Segment, Shape

SPARSE_FORM = "give its non-zero entries only: SparseKernel, or data, indices and indptr in a file"
STAYS_SPARSE = "keep the SparseKernel: what asks for all entries is not made for so many states"


class SingleKernel(CompiledDynamics):
    """Dynamics that are known exactly: what dense and sparse kernels share."""

    @property
    @abstractmethod
    def is_homogeneous(self) -> bool:
        """Whether all steps share one set of rows."""

    @abstractmethod
    def matrix(self, h: int) -> Any:
        """The rows of step `h` as a matrix `[s*a, y]`, dense or CSR."""

    @abstractmethod
    def dense(self) -> "Kernel":
        """The same kernel with every entry written out."""

    def __repr__(self) -> str:
        return describe(self, "homogeneous, " if self.is_homogeneous else "")

    def occupancy(self, policies: Policies, initial: int) -> Occupancy:
        """Chance `[n, h, s, a]` that each policy is at a pair in a step."""
        steps, states, actions = self.shape
        visits = np.empty((len(policies), steps, states, actions))
        at = np.zeros((len(policies), states))
        at[:, initial] = 1.0
        with one_thread(len(policies) * states * states * actions):
            for h in range(steps):
                np.multiply(at[:, :, None], policies[:, h], out=visits[:, h])
                if h < steps - 1:
                    at = (self.matrix(h).T @ visits[:, h].reshape(len(policies), -1).T).T
        return visits

    def greatest_visits(self, policies: Policies, initial: int, pairs: Pairs) -> Floats:
        return self.occupancy(policies, initial)[:, pairs.steps, pairs.states, pairs.actions]

    def visits(self, policy: Policies, initial: int, pairs: Pairs) -> Floats:
        """The chance `[m]` that one policy `[h, s, a]` is at each pair."""
        if len(pairs.steps) and (np.diff(pairs.steps) < 0).any():  # the compiled walk goes forward
            in_any_order: Floats = self.greatest_visits(policy[None], initial, pairs)[0]
            return in_any_order
        chances = np.empty(len(pairs.steps))
        places = pairs.steps, pairs.states, pairs.actions
        kernels.soft.visit_chances(self.rows, np.ascontiguousarray(policy), initial, *places, chances)
        return chances

    def narrow(self, segment: Segment) -> Self:
        return self

    @property
    @abstractmethod
    def paths(self) -> Paths:
        """Cumulative rows, from which trajectories are drawn."""

    @property
    def meeting_rows(self) -> Paths:
        return self.paths

    def walk(self, policy: Policies, initial: int, uniforms: Floats) -> Segment:
        """The trajectory of one policy `[h, s, a]` that the numbers `uniforms[h, 2]` decide: action, then move."""
        if policy.shape != self.shape:
            raise InvalidInput(f"the policy has shape {policy.shape}; the kernel has {self.shape}")
        segment = Segment(np.empty(len(policy), np.int64), np.empty(len(policy), np.int64))
        kernels.paths.walk(self.paths, policy, initial, uniforms, segment.states, segment.actions)
        return segment

    def reachable(self, initial: int) -> Bools:
        """Whether some policy can be in a state at a step, `[h, s]`."""
        steps, states, actions = self.shape
        reached = np.zeros((steps, states), dtype=bool)
        reached[0, initial] = True
        for h in range(steps - 1):
            pairs = np.repeat(reached[h], actions).astype(np.float64)
            reached[h + 1] = multiply(self.matrix(h).T, pairs) > 0
            if self.is_homogeneous and (reached[h + 1] == reached[h]).all():  # so it stays
                reached[h + 1 :] = reached[h]
                break
        return reached

    def empty_rows(self, h: int) -> Bools:
        """Whether the row of a pair is all zero, `[s, a]`: nothing can follow there."""
        _, states, actions = self.shape
        sums: Floats = np.asarray(self.matrix(h).sum(axis=1), dtype=np.float64)
        return np.equal(sums, 0.0).reshape(states, actions)

    def require_closed(self, initial: int) -> None:
        steps = self.shape[0]
        distinct = range(min(1, steps - 1) if self.is_homogeneous else steps - 1)
        if not any(self.empty_rows(h).any() for h in distinct):
            return
        reached = self.reachable(initial)
        for h in range(steps - 1):
            dead = self.empty_rows(h) & reached[h][:, None]
            if dead.any():
                place = (np.intp(h), *np.unravel_index(int(np.argmax(dead)), dead.shape))
                raise InvalidInput(
                    f"p{located('hsa', place)} is all zero, but state {initial} leads there; "
                    "a reachable row must sum to 1"
                )


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(SingleKernel):
    """Transition chances `p[h, s, a, y]`. The array is not copied; do not change it afterwards."""

    p: Floats

    def __post_init__(self) -> None:
        p = floats("p", self.p, "hsay")
        if p.shape[1] != p.shape[3]:
            raise InvalidInput(f"p has shape {p.shape}; axes s and y of [h, s, a, y] must be equal")
        distinct = p[:1] if p.strides[0] == 0 else p
        require_dense(*distinct.shape[:3])  # a view may be larger than what it shows
        require_distributions("p", distinct, "hsay")
        object.__setattr__(self, "p", read_only(p))

    @classmethod
    def homogeneous(cls, p: ArrayLike, n_steps: int) -> Self:
        """The same `p[s, a, y]` in each of `n_steps` steps, without a copy."""
        return cls(in_each_step("p", floats("p", p, "say"), n_steps))

    @property
    def shape(self) -> Shape:
        return self.p.shape[:3]

    @property
    def is_homogeneous(self) -> bool:
        return len(self.p) == 1 or self.p.strides[0] == 0

    @cached_property
    def rows(self) -> DenseRows:
        return DenseRows(next_state_first(self.p[:1] if self.is_homogeneous else self.p))

    @cached_property
    def leader_rows(self) -> FullRows:
        distinct = self.p[:1] if self.is_homogeneous else self.p
        rows = distinct.reshape(len(distinct), -1, distinct.shape[3])
        return FullRows(np.pad(rows, ((0, 0), (0, 0), (0, -rows.shape[2] % 4))))

    @cached_property
    def paths(self) -> DensePaths:
        distinct = self.p[:1] if self.is_homogeneous else self.p
        return DensePaths(np.cumsum(distinct, axis=-1).reshape(len(distinct), -1, distinct.shape[3]))

    def matrix(self, h: int) -> Floats:
        step: Floats = self.p[h]
        return step.reshape(-1, self.p.shape[3])

    def dense(self) -> "Kernel":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A stride-0 view would be written out by pickle; and the compiled rows are made again where needed.
        if self.is_homogeneous:
            return Kernel.homogeneous, (np.array(self.p[0]), len(self.p))
        return Kernel, (np.array(self.p),)


@dataclass(frozen=True, eq=False, repr=False)
class SparseKernel(SingleKernel):
    """Transition chances by their non-zero entries: one CSR matrix `[s*a, y]` a step, rows `s * A + a`."""

    matrices: Sequence[Any]  # scipy sparse or anything that csr_array takes
    n_steps: int | None = None  # with one matrix: it holds in each of so many steps

    def __post_init__(self) -> None:
        matrices = tuple(_csr(h, matrix) for h, matrix in enumerate(self.matrices))
        if not matrices:
            raise InvalidInput("matrices is empty; give one matrix a step")
        for h, matrix in enumerate(matrices):
            if matrix.shape != matrices[0].shape:
                raise InvalidInput(f"matrices[{h}] has shape {matrix.shape}; the first has {matrices[0].shape}")
        steps = len(matrices) if self.n_steps is None else self.n_steps
        require_whole("n_steps", steps, 1)
        if len(matrices) not in (1, steps):
            raise InvalidInput(f"{len(matrices)} matrices for {steps} steps; give one, or one a step")
        object.__setattr__(self, "matrices", matrices)
        object.__setattr__(self, "n_steps", steps)

    @classmethod
    def homogeneous(cls, matrix: Any, n_steps: int) -> Self:
        """The same rows `[s*a, y]` in each of `n_steps` steps."""
        return cls((matrix,), n_steps)

    @property
    def shape(self) -> Shape:
        pairs, states = self.matrices[0].shape
        assert self.n_steps is not None
        return self.n_steps, states, pairs // states

    @property
    def is_homogeneous(self) -> bool:
        return len(self.matrices) == 1

    @cached_property
    def rows(self) -> SparseRows:
        offsets = np.cumsum([0, *(matrix.nnz for matrix in self.matrices[:-1])])
        return SparseRows(
            np.stack([matrix.indptr + offset for matrix, offset in zip(self.matrices, offsets, strict=True)]).astype(
                np.int64
            ),
            np.concatenate([matrix.indices for matrix in self.matrices]).astype(np.int32),
            np.concatenate([matrix.data for matrix in self.matrices]),
        )

    @property
    def leader_rows(self) -> SparseRows:
        return self.rows

    @cached_property
    def paths(self) -> SparsePaths:
        starts, successors, chances = self.rows
        cumulative = np.empty_like(chances)
        kernels.paths.cumulate(starts, chances, cumulative)
        return SparsePaths(starts, successors, cumulative)

    def matrix(self, h: int) -> Any:
        return self.matrices[0 if self.is_homogeneous else h]

    def dense(self) -> Kernel:
        steps, states, actions = self.shape
        require_dense(len(self.matrices), states, actions, STAYS_SPARSE)
        written = [matrix.toarray().reshape(states, actions, states) for matrix in self.matrices]
        return Kernel.homogeneous(written[0], steps) if self.is_homogeneous else Kernel(np.stack(written))

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseKernel, (self.matrices, self.n_steps)


def require_dense(n_steps: int, n_states: int, n_actions: int, remedy: str = SPARSE_FORM) -> None:
    """Refuse a kernel too large to be written out; it stands in memory as given, and as the sweeps read it."""
    require_room("a dense kernel", (n_steps, n_states, n_actions, n_states), 2, remedy)


def _csr(h: int, matrix: Any) -> Any:
    name = f"matrices[{h}]"
    try:
        result = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)  # what follows works in place
    except (TypeError, ValueError) as problem:
        raise InvalidInput(f"{name} is not a matrix [s*a, y]: {problem}") from problem
    if result.ndim != 2:
        raise InvalidInput(f"{name} has shape {result.shape}; give a sequence of matrices [s*a, y]")
    result.sum_duplicates()
    pairs, states = result.shape
    if states == 0 or pairs == 0 or pairs % states:
        raise InvalidInput(f"{name} has shape {result.shape}; rows [s*a] must be a multiple of the states {states}")
    _refuse_entry(name, result, ~np.isfinite(result.data), "must be a finite probability")
    _refuse_entry(name, result, result.data < 0, "must not be negative")
    require_row_sums(name, np.asarray(result.sum(axis=1), dtype=np.float64).reshape(states, -1), "sa")
    return result


def _refuse_entry(name: str, matrix: Any, bad: Bools, rule: str) -> None:
    """Raise for the first bad entry of a CSR matrix `[s*a, y]`, with its place."""
    if bad.any():
        k = int(np.argmax(bad))
        row = np.searchsorted(matrix.indptr, k, side="right") - 1
        place = (*np.divmod(row, matrix.shape[0] // matrix.shape[1]), matrix.indices[k])
        raise InvalidInput(f"{name}{located('say', place)} = {matrix.data[k]:g}; it {rule}")
