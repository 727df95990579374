"""How many stationary policies differ on the states that they reach: an estimate, where there are too many to list.

Draw the action of each state at random. A policy that reaches `k` states is met with chance `A**-k`, whatever it would
do elsewhere, so the mean of `A**k` is the number of policies that differ on reachable states (Knuth, Estimating the
efficiency of backtrack programs, 1975). Where every policy reaches every state, as on dense kernels, it is exact.
"""

from math import log10

import numpy as np

from amdp import kernels
from amdp.arrays import one_hot
from amdp.oracles.stationary.chains import Chains

PROBES = 400  # policies that are drawn, the same ones in every run
LARGEST_EXPONENT = 300  # above it, a number is too large for a float


def estimated_policies(chains: Chains) -> float:
    """The logarithm to base 10 of the number of policies that differ on reachable states."""
    steps, states, actions = chains.shape
    everything = np.ones((states, actions), dtype=bool)
    policy, order = np.zeros(states, dtype=np.int64), np.empty(states, dtype=np.int64)
    decided = np.empty(PROBES)
    for number in range(PROBES):
        kernels.search.chains.scatter(number, everything, policy)
        chosen = one_hot(policy, actions) > 0
        decided[number] = kernels.search.chains.reached(chains.rows, chosen, chains.initial, steps, order)
    exponents = decided * log10(actions)
    most = float(exponents.max())
    return most + float(np.log10(np.mean(10.0 ** (exponents - most))))


def in_words(exponent: float) -> str:
    """About how many, for a logarithm to base 10."""
    return f"about {10.0**exponent:.2g}" if exponent < LARGEST_EXPONENT else f"about 1e+{exponent:.0f}"
