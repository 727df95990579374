"""An entrance: an added initial state from which all actions lead to a given initial distribution."""

import numpy as np
from numpy.typing import ArrayLike

from amdp.arrays import floats, require_distributions
from amdp.errors import InvalidInput
from amdp.model.chains import rows_of
from amdp.model.domains import StationaryPolicies
from amdp.model.transitions import Kernel, SingleKernel, require_dense


def entrance(kernel: SingleKernel, start: ArrayLike) -> Kernel:
    """The kernel with one more state, the last, from which all actions lead to the law `start` `[s]`."""
    steps, states, actions = kernel.shape
    law = floats("start", start, "s")
    require_distributions("start", law[None], "ns")
    if len(law) != states:
        raise InvalidInput(f"start has {len(law)} entries; the kernel has {states} states")
    require_dense(1, states + 1, actions)
    rows = np.zeros((states + 1, actions, states + 1))
    rows[:states, :, :states] = rows_of(kernel)
    rows[states, :, :states] = law
    return Kernel.homogeneous(rows, steps)


def start_mass(domain: StationaryPolicies) -> float:
    """The least mass `alpha` that the law after an entrance has on a state; refused where it is 0."""
    rows, last = rows_of(domain.dynamics), domain.shape[1] - 1
    if domain.initial != last or last == 0 or domain.shape[0] < 2:
        raise InvalidInput(
            f"initial = {domain.initial} starts at a point, with no mass elsewhere; give the start a law: see entrance"
        )
    if rows[:, :, last].any():
        s, a = (int(i) for i in np.argwhere(rows[:, :, last])[0])
        raise InvalidInput(f"pair (s={s}, a={a}) leads back to the entrance, state {last}; nobody may return")
    law = rows[last, 0, :last]
    if (rows[last, :, :last] != law).any():
        raise InvalidInput(f"the actions of the entrance, state {last}, lead to different laws; they must be alike")
    if law.min() <= 0.0:
        raise InvalidInput(f"the start has no mass on state {int(law.argmin())}; every state needs some")
    return float(law.min())
