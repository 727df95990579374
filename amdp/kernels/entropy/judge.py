"""What a measure is worth, from the measure alone: objective, and by how much it misses flow and bounds."""

import numpy as np

from amdp.kernels.entropy.common import entry
from amdp.kernels.entropy.dynamics import carry, flow_rows


@entry
def judge(given_rows, weights, log_point, initial, states, measure, log_measure):
    """Objective and flow residual of a measure `[h, s*a]` over a kernel, from the measure alone."""
    rows = flow_rows(given_rows)
    steps, width = measure.shape
    entering = np.zeros(states)
    entering[initial] = 1.0
    objective = 0.0
    flow_residual = 0.0
    for h in range(steps):
        for row in range(width):
            mass = measure[h, row]
            cost = mass * (log_measure[h, row] - log_point[h, row] - 1.0)
            objective += weights[h, row] + (cost if mass > 0.0 else 0.0)
            entering[row // (width // states)] -= mass
        for s in range(states):
            flow_residual = max(flow_residual, abs(entering[s]))
            entering[s] = 0.0
        if h < steps - 1:
            carry(rows, h, measure[h], entering)
    return objective, flow_residual


@entry
def judge_box(lower, upper, weights, log_point, initial, measure, log_measure):
    """Objective, flow residual and largest excess over a bound of a measure over a box."""
    steps, width, states = measure.shape
    entering = np.zeros(states)
    leaving = np.zeros(states)
    entering[initial] = 1.0
    objective = 0.0
    flow_residual = 0.0
    box_residual = 0.0
    for h in range(steps):
        last = h == steps - 1
        for row in range(width):
            moved = 0.0
            for y in range(1 if last else states):
                mass = measure[h, row, y]
                moved += mass
                cost = mass * (log_measure[h, row, y] - log_point[h, row, y] - 1.0)
                objective += weights[h, row, y] + (cost if mass > 0.0 else 0.0)
            entering[row // (width // states)] -= moved
            for y in range(0 if last else states):
                mass = measure[h, row, y]
                leaving[y] += mass
                below = lower[h, row, y] * moved - mass
                above = mass - upper[h, row, y] * moved
                box_residual = max(box_residual, below, above)
        for s in range(states):
            flow_residual = max(flow_residual, abs(entering[s]))
            entering[s] = leaving[s]
            leaving[s] = 0.0
    return objective, flow_residual, box_residual
