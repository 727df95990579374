"""Planning for ever: policy iteration, discounted and by average cost, against QuantEcon and pymdptoolbox."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np

import amdp
from amdp import AverageCostPolicies, DiscountedPolicies, Kernel
from benchmarks import peers, worlds
from benchmarks.results import Row, faster
from benchmarks.timing import Call, Effort, side_by_side

Rows = Iterator[Row]

SEED = 20_266
SIZES = ((10, 4), (50, 4), (200, 4))  # states, actions; the sums of larger rows are not exact enough for pymdptoolbox
ACCURACY = 1e-6  # of relative value iteration, which ends before it is exact


def discounted(effort: Effort) -> Rows:
    """One solve with a discount near 1."""
    has_quantecon = find_spec("quantecon") is not None
    note = "" if has_quantecon else "QuantEcon is not installed, and left out"
    for states, actions in SIZES:
        rng = np.random.default_rng(SEED)
        rows, cost = worlds.rows(states, actions, rng), rng.random((states, actions))
        for discount in (0.95, 0.999):
            planner = amdp.bind("policy-iteration", DiscountedPolicies(Kernel.homogeneous(rows, 1), discount))
            others: dict[str, Call] = {"pymdptoolbox": peers.toolbox_endless(rows, cost, discount)}
            if has_quantecon:
                others["QuantEcon, prebuilt"] = peers.quantecon_endless(rows, cost, discount)
            for answer in (other() for other in others.values()):
                np.testing.assert_allclose(planner.minimize(cost[None]).values[0], np.asarray(answer), rtol=1e-6)
            times = side_by_side({"ours": partial(planner.minimize, cost[None]), **others}, effort)
            name, sizes = f"policy-iteration, discount {discount:g}", {"S": states, "A": actions}
            for peer in others:
                yield faster(name, sizes, times, "ours", peer, None, note)


def average(effort: Effort) -> Rows:
    """One solve by average cost; the peer is not exact."""
    for states, actions in SIZES:
        rng = np.random.default_rng(SEED)
        rows, cost = worlds.rows(states, actions, rng), rng.random((states, actions))
        planner = amdp.bind("policy-iteration", AverageCostPolicies(Kernel.homogeneous(rows, 1)))
        other = peers.toolbox_average(rows, cost, ACCURACY)
        np.testing.assert_allclose(planner.minimize(cost[None]).objective[0], other(), atol=2 * ACCURACY)
        peer = "pymdptoolbox, relative value iteration"
        times = side_by_side({"ours": partial(planner.minimize, cost[None]), peer: other}, effort)
        note = f"the peer to within {ACCURACY:g}"
        yield faster("policy-iteration, average", {"S": states, "A": actions}, times, "ours", peer, None, note)


CASES: dict[str, Callable[[Effort], Rows]] = {"discounted": discounted, "average": average}
