"""What a measure is worth, from the measure alone: objective, and by how much it misses flow and bounds."""

import numpy as np

from amdp.kernels.entropy.common import entry
from amdp.kernels.entropy.dynamics import carry, flow_rows
from amdp.kernels.rows import BOX


@entry
def judge(given_rows, weights, log_point, initial, states, measure, log_measure):
    """Objective, flow residual and largest excess over a bound of a measure.

    It is `[h, s*a, 1]` over a kernel, and `[h, s*a, y]` over a box, with the mass of the last step at `y = 0`.
    """
    rows = flow_rows(given_rows)
    steps, width, _ = measure.shape
    entering = np.zeros(states)
    leaving = np.zeros(states)
    moved = np.empty(width)
    entering[initial] = 1.0
    objective = 0.0
    flow_residual = 0.0
    box_residual = 0.0
    for h in range(steps):
        last = h == steps - 1
        for row in range(width):
            moved[row] = 0.0
            for y in range(1 if last else measure.shape[2]):
                mass = measure[h, row, y]
                moved[row] += mass
                cost = mass * (log_measure[h, row, y] - log_point[h, row, y] - 1.0)
                objective += weights[h, row, y] + (cost if mass > 0.0 else 0.0)
            entering[row // (width // states)] -= moved[row]
            for y in range(0 if last or rows.kind != BOX else states):
                mass = measure[h, row, y]
                leaving[y] += mass
                below = rows.box.lower[h, row, y] * moved[row] - mass
                above = mass - rows.box.upper[h, row, y] * moved[row]
                box_residual = max(box_residual, below, above)
        if not last and rows.kind != BOX:
            carry(rows, h, moved, leaving)
        for s in range(states):
            flow_residual = max(flow_residual, abs(entering[s]))
            entering[s] = leaving[s]
            leaving[s] = 0.0
    return objective, flow_residual, box_residual
