"""Costs as the compiled searches read them: divided by a power of two, and summed from the end."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.arrays import Costs, Floats, require_finite
from amdp.errors import InvalidInput
from amdp.kernels.search.state import Problem
from amdp.oracles.sizes import power_of_two_above

STATIONARY_TOLERANCE = 1e-14  # a law of the state that moves by less in a step is taken as stationary
CLOSING_TOLERANCE = 1e-12  # relative to steps times the largest cost: a node that could gain less is closed
LANES = 256  # policies that are evaluated side by side: their laws stay in the cache


class ScaledProblems(NamedTuple):
    """Costs scaled to a size of at most 1 and summed from the end, one problem for each cost array."""

    problems: list[Problem]
    scales: Floats  # [n], by which the costs were divided
    sizes: Floats  # [n], of the largest cost


def scaled_problems(
    initial: int, costs: Costs, horizon: int, halt: NDArray[np.int64], scale: float | None = None
) -> ScaledProblems:
    """Problems with the first `horizon` steps of each of `costs` `[n, t, s, a]`, divided by a power of two."""
    (n, steps, states, actions), pairs = costs.shape, costs[0, 0].size
    kept, tails = np.empty((n, horizon, pairs)), np.empty((n, horizon + 1, pairs))
    spans, peaks = np.empty((n, horizon + 2)), np.empty((n, pairs))
    for batch, by_step in _laid_out(costs):
        kernels.search.chains.pose(by_step, kept[batch], tails[batch], spans[batch], peaks[batch])
    sizes = peaks.max(axis=1)
    if not (np.isfinite(tails[:, 0]).all() and np.isfinite(spans).all()):
        require_finite("costs", costs, "nhsa")
        raise InvalidInput(f"costs reach {sizes.max():g}; their sums over steps overflow")
    scales = np.array([power_of_two_above(size) for size in sizes.tolist()]) if scale is None else np.full(n, scale)
    for sums in (kept, tails):
        sums /= scales[:, None, None]
    spans /= scales[:, None]
    shown = kept.reshape(n, horizon, states, actions)
    common = initial, STATIONARY_TOLERANCE, CLOSING_TOLERANCE * steps, LANES
    parts = zip(shown, tails, spans, scales.tolist(), strict=True)
    problems = [Problem(cost, tail, span, *common, power, halt) for cost, tail, span, power in parts]
    return ScaledProblems(problems, scales, sizes)


def evaluation_error(problem: Problem) -> float:
    """How far the value of a policy may be off because its law was taken as stationary."""
    return float(0.5 * problem.stop * problem.spans[1])


def _laid_out(costs: Costs) -> Iterator[tuple[slice, Floats]]:
    """The costs as contiguous arrays `[t, n * s * a]`: all at once if they are laid out step by step, or one by one."""
    n, steps = costs.shape[:2]
    by_step = costs.swapaxes(0, 1)
    if by_step.flags.c_contiguous and by_step.flags.writeable:
        yield slice(0, n), by_step.reshape(steps, -1)
        return
    for i, cost in enumerate(costs):
        yield slice(i, i + 1), np.require(cost, requirements=["C", "W"]).reshape(steps, -1)
