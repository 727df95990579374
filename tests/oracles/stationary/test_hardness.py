"""Finding a Hamiltonian cycle is a special case: a digraph has one if and only if the least cost is zero."""

from itertools import permutations

import numpy as np
import pytest

from amdp import Kernel, StationaryPolicies, bind
from amdp.arrays import Floats


def as_problem(edges: np.ndarray) -> tuple[StationaryPolicies, Floats]:
    """Actions are edges; being at the start before the end costs 1, and so does not being there at the end."""
    states = len(edges)
    rows = np.zeros((states, states, states))
    for s in range(states):
        ways = np.flatnonzero(edges[s])
        rows[s, np.arange(states), np.resize(ways, states)] = 1.0
    cost = np.zeros((states + 1, states, states))
    cost[1:states, 0] = 1.0
    cost[states, 1:] = 1.0
    return StationaryPolicies(Kernel.homogeneous(rows, states + 1)), cost


def has_hamiltonian_cycle(edges: np.ndarray) -> bool:
    states = len(edges)
    return any(
        all(edges[a, b] for a, b in zip((0, *order), (*order, 0), strict=True))
        for order in permutations(range(1, states))
    )


@pytest.mark.parametrize("name", ["cycles", "branch-and-bound", "auto"])
def test_the_least_cost_is_zero_exactly_for_hamiltonian_digraphs(name: str) -> None:
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(60):
        states = int(rng.integers(3, 7))
        edges = rng.random((states, states)) < 0.45
        np.fill_diagonal(edges, False)
        edges[np.arange(states), (np.arange(states) + rng.integers(1, states, size=states)) % states] = True
        domain, cost = as_problem(edges)
        plan = bind(name, domain).minimize(cost[None])[0]
        expected = has_hamiltonian_cycle(edges)
        assert (plan.objective < 0.5) == expected
        answers.append(expected)
    assert 10 < sum(answers) < 50, "both kinds must occur"
