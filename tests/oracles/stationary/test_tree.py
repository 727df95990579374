"""The tree of branch and bound, node by node: every bound in it is below all policies that it speaks of."""

import numpy as np
import pytest

from amdp import kernels
from amdp.arrays import Bools, Floats
from amdp.kernels.search.state import IN_BOUNDS, OPEN, VALUE, Tree
from amdp.oracles.stationary.branch_and_bound import SCALES, Mixing, new_tree
from amdp.oracles.stationary.chains import Chains
from benchmarks.brute_force import every_policy, plain_costs
from benchmarks.stationary_worlds import FAMILIES, world

ALWAYS = -np.inf  # the price of a bound: no node is tried out because that is cheaper


def least(allowed: Bools, policies: np.ndarray, paid: Floats) -> float:
    """The least cost of the policies of a node."""
    inside = allowed[np.arange(policies.shape[1]), policies].all(axis=1)
    return float(paid[inside].min())


def assert_bounds_hold(tree: Tree, policies: np.ndarray, paid: Floats) -> None:
    opened = [least(tree.allowed[node], policies, paid) for node in range(tree.counts[OPEN])]
    assert (tree.bounds[: tree.counts[OPEN]] <= np.array(opened) + 1e-9).all(), "an open node is bounded too high"
    assert min(tree.best[VALUE], *opened, np.inf) <= paid.min() + 1e-9, "the optimum is lost"


@pytest.mark.parametrize("incumbent", ["second best", "middling"])
@pytest.mark.parametrize("inherited", ["nothing", "nearly the optimum"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_node_is_bounded_above_its_best_policy(family: str, inherited: str, incumbent: str) -> None:
    # A node that inherits a higher bound than it computes must not raise the former by terms that belong to the latter.
    rng = np.random.default_rng(31)
    for steps in (8, 30, 150):
        for _ in range(3):
            domain, cost = world(family, "noise", (steps, 5, 3), rng)
            chains = Chains.of(domain)
            problem = chains.pose(cost / np.abs(cost).max(), lanes=1)
            policies = every_policy(domain)
            paid = plain_costs(domain, problem.costs, policies)
            dearer = np.sort(paid[paid > paid.min() + 1e-6])
            ceiling = dearer[0 if incumbent == "second best" else len(dearer) // 2]
            tree = new_tree(chains, problem, (policies[0], float(ceiling)))
            mixing = Mixing.of(chains)
            tree.mixing[0], tree.loosened[0], tree.work[IN_BOUNDS] = mixing.moves, mixing.loosened, ALWAYS
            tree.bounds[0] = -np.inf if inherited == "nothing" else paid.min() - 1e-9
            for _ in range(40):
                kernels.search.trees.grow(chains.rows, problem, mixing.floors, tree, SCALES, True, 1)
                assert_bounds_hold(tree, policies, paid)
