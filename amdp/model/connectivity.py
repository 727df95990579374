"""Structure of a homogeneous kernel: communication, diameter, period, and pairs at which one can wait.

The union graph has an edge `s -> y` if some action leads from `s` to `y` with a positive chance.
A row of zeros offers no way on, so its action is never taken.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Actions, Bools, Floats, require_index, require_room
from amdp.errors import InvalidInput
from amdp.model.hitting import fastest, sure_ways
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel

PARKING_TOLERANCE = 1e-12
NO_DIAMETER = "the diameter compares all pairs of states; communication, period and parking_pairs need far less"


@dataclass(frozen=True, eq=False)
class Communication:
    """Whether every state can be reached from every state; the classes are strongly connected components."""

    communicates: bool
    n_classes: int
    classes: NDArray[np.int32] = field(repr=False)  # [s], the class of each state
    breaking: tuple[int, ...]  # all states outside the largest class that cannot be left
    unreachable_pair: tuple[int, int] | None  # (s, y): no policy leads from s to y

    def __str__(self) -> str:
        if self.unreachable_pair is None:
            return "yes"
        s, y = self.unreachable_pair
        return f"no: {self.n_classes} classes; state {s} never leads to state {y}"


@dataclass(frozen=True, eq=False)
class Diameter:
    """`value = max_{s != y} min_policy E[steps from s until y]`; infinite if some pair has no sure way."""

    value: float
    pair: tuple[int, int]  # (s, y) that attains the value
    times: Floats = field(repr=False)  # [y, s], the least expected steps from s until y
    actions: Actions = field(repr=False)  # [y, s], the policies that attain them; -1: at y, or no sure way

    def __str__(self) -> str:
        return f"{self.value:.6g}, from state {self.pair[0]} to state {self.pair[1]}"


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Communication, diameter, period and parking pairs of one kernel, with an initial state; made to be printed."""

    shape: Shape
    initial: int
    n_reachable: int  # states that some policy can be in within the horizon
    communication: Communication
    diameter: Diameter
    period: int | None  # None: the kernel does not communicate, or has no cycle
    deterministic: bool
    parking_pair: tuple[int, int] | None

    def __str__(self) -> str:
        steps, states, actions = self.shape
        lines = (
            f"{steps} steps, {states} states, {actions} actions",
            f"reachable      {self.n_reachable} of {states} states from state {self.initial}",
            f"communicating  {self.communication}",
            f"diameter       {self.diameter}",
            f"period         {self.period or 'none'}",
            f"deterministic  {'yes' if self.deterministic else 'no'}",
            f"parking        {'nowhere' if self.parking_pair is None else f'(s, a) = {self.parking_pair}'}",
        )
        return "\n".join(lines)


def summary(kernel: SingleKernel, initial: int = 0) -> Diagnosis:
    """All that this module computes about a kernel; nearly all of the time goes into the diameter."""
    connected = communication(kernel)
    return Diagnosis(
        kernel.shape,
        initial,
        int(reachable(kernel, initial).any(axis=0).sum()),
        connected,
        diameter(kernel),
        (_cycle_gcd(_union_graph(_rows(kernel))) or None) if connected.communicates else None,
        is_deterministic(kernel),
        parking_pair(kernel),
    )


def reachable(kernel: SingleKernel, initial: int = 0) -> Bools:
    """Whether some policy can be in a state at a step, `[h, s]`; this one takes any single kernel."""
    _require_single(kernel)
    require_index("initial", initial, kernel.shape[1])
    return kernel.reachable(initial)


def communication(kernel: SingleKernel) -> Communication:
    """The strongly connected components of the union graph, and a witness if there are several."""
    graph = _union_graph(_rows(kernel))
    n_classes, classes = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    inside = classes == _largest_closed(classes, graph)
    breaking = tuple(np.flatnonzero(~inside).tolist())
    witness = (int(np.argmax(inside)), breaking[0]) if breaking else None
    return Communication(not breaking, int(n_classes), classes, breaking, witness)


def diameter(kernel: SingleKernel) -> Diameter:
    """The least expected time from every state to every other, and the longest of them.

    For a target `y`, `T[y] = 0` and `T[s] = 1 + min_a sum_z P(z|s,a) T[z]`. A time is finite if and only if some
    policy reaches `y` from `s` with probability 1. Policy iteration finds the least times; each policy is
    evaluated by one linear solve, an elimination without subtractions, so that astronomically long times keep
    their digits. Large kernels with near-empty rows go through sparse factors, whose error is bounded by their
    residual: `T - 1 - P T` within `r` of zero proves `T` to within the share `r`.
    """
    rows = _rows(kernel)
    # Expected times of all pairs and targets, and what comes of the choices among them, stand side by side.
    require_room("the times to each state from each pair", rows.shape, 3, NO_DIAMETER)
    sure, allowed, start = sure_ways(rows)
    times, actions = fastest(rows, allowed, start)
    times[~sure] = np.inf
    y, s = np.unravel_index(int(np.argmax(times)), times.shape)
    return Diameter(float(times[y, s]), (int(s), int(y)), times, actions)


def parking_pairs(kernel: SingleKernel) -> list[tuple[int, int]]:
    """All `(s, a)` with `P(s|s,a) = 1`: places to wait for as long as one likes."""
    rows = _rows(kernel)
    _, states, actions = kernel.shape
    pairs = np.arange(states * actions)
    stays = rows[pairs, pairs // actions] >= 1.0 - PARKING_TOLERANCE
    return [divmod(pair, actions) for pair in np.flatnonzero(stays).tolist()]


def parking_pair(kernel: SingleKernel) -> tuple[int, int] | None:
    """The first parking pair, or None."""
    return next(iter(parking_pairs(kernel)), None)


def period(kernel: SingleKernel) -> int:
    """The greatest common divisor of the lengths of all cycles of the union graph of a communicating kernel."""
    connected = communication(kernel)
    if connected.unreachable_pair:
        s, y = connected.unreachable_pair
        raise InvalidInput(f"the kernel has no single period: state {s} never leads to state {y}; see communication")
    result = _cycle_gcd(_union_graph(_rows(kernel)))
    if result == 0:
        raise InvalidInput("the kernel has no period: its rows are all zero, so there is no cycle")
    return result


def is_deterministic(kernel: SingleKernel) -> bool:
    """Whether every row leads to one state only; rows of zeros are ignored."""
    return bool((np.diff(_rows(kernel).indptr) <= 1).all())


def _require_single(kernel: object) -> None:
    if not isinstance(kernel, SingleKernel):
        raise InvalidInput(f"{type(kernel).__name__} is not a single kernel; diagnose a Kernel or a SparseKernel")


def _rows(kernel: SingleKernel) -> Any:
    """The positive entries, CSR `[s*a, y]`, each row scaled to sum to 1 as nearly as floats can."""
    _require_single(kernel)
    if not kernel.is_homogeneous:
        raise InvalidInput(
            f"{kernel!r} may change from step to step; use Kernel.homogeneous or SparseKernel.homogeneous"
        )
    rows = scipy.sparse.csr_array(kernel.matrix(0), dtype=np.float64, copy=True)
    rows.eliminate_zeros()
    rows.data /= np.repeat(np.asarray(rows.sum(axis=1)), np.diff(rows.indptr))
    return rows


def _union_graph(rows: Any) -> Any:
    pairs, states = rows.shape
    edges = rows.tocoo()
    ones = np.ones(rows.nnz, dtype=np.int32)
    return scipy.sparse.csr_array((ones, (edges.row // (pairs // states), edges.col)), shape=(states, states))


def _largest_closed(classes: NDArray[np.int32], graph: Any) -> int:
    source, target = graph.nonzero()
    sizes = np.bincount(classes)
    sizes[classes[source[classes[source] != classes[target]]]] = 0
    return int(np.argmax(sizes))


def _cycle_gcd(graph: Any) -> int:
    # Along a cycle the numbers `depth[s] + 1 - depth[y]` of its edges sum to its length.
    depth = scipy.sparse.csgraph.shortest_path(graph, unweighted=True, indices=0).astype(np.int64)
    source, target = graph.nonzero()
    return int(np.gcd.reduce(depth[source] + 1 - depth[target], initial=0))
