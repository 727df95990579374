"""What the mixed-integer programs share, whichever way they are handed to a solver: accuracy, time, the policy."""

from typing import Any

import numpy as np

from amdp.arrays import Floats
from amdp.oracles.stationary.chains import Chains, Policy

# Tighter tolerances, presolve, and smaller coefficients make HiGHS call wrong answers optimal: measured, see
# docs/stationary-oracles.md. At the accuracy of HiGHS by itself, 1e-6, its bounds are rarely close enough to be of use.
ACCURACY = 1e-8
ABSOLUTE_GAP = 1e-10
SOLVER_TIME = 0.9  # share of the time for the solver; the rest is to examine what it claims
HIGHS_OPTIONS: dict[str, Any] = {"presolve": "off", "small_matrix_value": 1e-12}
HIGHS_ACCURACY = {f"{kind}_feasibility_tolerance": ACCURACY for kind in ("mip", "primal", "dual")}


def chosen_policy(chains: Chains, choices: Floats) -> Policy:
    """The policy of the variables `choice` `[s * a]`, which are whole only within a solver's tolerances."""
    _, states, actions = chains.shape
    return np.asarray(choices.reshape(states, actions).argmax(axis=1), dtype=np.int64)
