"""The linear system of a Newton step: by a block Cholesky factor, or by conjugate gradients."""

import numpy as np

from amdp.kernels.entropy.common import TINY, dot, inner
from amdp.kernels.entropy.dynamics import assemble, carry, couple


@inner
def primal_right_side(rows, now, flow, out):
    """`-B' X r`, the right side of a Newton step."""
    steps, states = out.shape
    actions = flow.size // states
    out[:] = 0.0
    for h in range(steps):
        for s in range(states):
            out[h, s] -= now.chance[h, s] * now.excess[h, s]
        if h < steps - 1:
            for row in range(flow.size):
                flow[row] = now.mass[h, row] * now.excess[h, row // actions]
            carry(rows, h, flow, out[h + 1])


@inner
def exact_step(rows, now, blocks, couplings, scratch, u):
    """Replace the right side `u` by its step: a block Cholesky factor, `blocks[h]` diagonal, `couplings[h]` below.

    States without a chance have no part in it: `met[h]` lists the others, and blocks are of these alone, in front.
    """
    steps, states = u.shape
    root = np.zeros((steps, states))
    met = np.empty((steps, states), np.int64)
    counts = np.zeros(steps, np.int64)
    for h in range(steps):
        for y in range(states):
            if now.chance[h, y] > TINY:
                root[h, y] = 1.0 / np.sqrt(now.chance[h, y])
                met[h, counts[h]] = y
                counts[h] += 1
    blocks[:] = 0.0
    for h in range(steps):
        block = blocks[h]
        count = counts[h]
        before = counts[h - 1] if h > 0 else 0
        _draw_together(block, met[h], count, met[h], count)
        for y in range(count):
            u[h, y] = u[h, met[h, y]] * root[h, met[h, y]]
            block[y, y] += 1.0
        if h > 0:
            _draw_together(couplings[h - 1], met[h], count, met[h - 1], before)
            _eliminate(blocks[h - 1], couplings[h - 1], block, count, before)
        _factor(block, count)
        for y in range(count):
            if h > 0:
                u[h, y] -= dot(couplings[h - 1], y, u, h - 1, before)
            u[h, y] = (u[h, y] - dot(block, y, u, h, y)) * block[y, y]
        if h < steps - 1:
            assemble(rows, h, now.mass[h], root[h], root[h + 1], scratch, blocks[h + 1], couplings[h])
    for h in range(steps - 1, -1, -1):
        if h < steps - 1:
            for y in range(counts[h + 1]):
                for s in range(counts[h]):
                    u[h, s] -= couplings[h, y, s] * u[h + 1, y]
        for y in range(counts[h] - 1, -1, -1):
            u[h, y] *= blocks[h, y, y]
            for s in range(y):
                u[h, s] -= blocks[h, y, s] * u[h, y]
    for h in range(steps):
        last = counts[h] - 1
        for y in range(states - 1, -1, -1):
            if last >= 0 and met[h, last] == y:
                u[h, y] = u[h, last] * root[h, y]
                last -= 1
            else:
                u[h, y] = 0.0
    _step_rarest(now, u)


@inner
def _draw_together(matrix, rows, n_rows, columns, n_columns):
    """Move the entries at these rows and columns, ascending numbers, to the front, in place."""
    if n_rows < matrix.shape[0] or n_columns < matrix.shape[1]:
        for i in range(n_rows):
            for j in range(n_columns):
                matrix[i, j] = matrix[rows[i], columns[j]]


@inner
def _eliminate(factor, couplings, block, count, before):
    """`couplings` times the inverse transposed factor, in place, and its square taken off the next block."""
    for s in range(before):
        for y in range(count):
            couplings[y, s] = (couplings[y, s] - dot(factor, s, couplings, y, s)) * factor[s, s]
    for y in range(count):
        for z in range(y + 1):
            block[y, z] -= dot(couplings, y, couplings, z, before)


@inner
def _factor(block, count):
    """The Cholesky factor, in place, with the inverses of its diagonal: a product takes less time than a division."""
    for y in range(count):
        for z in range(y):
            block[y, z] = (block[y, z] - dot(block, y, block, z, z)) * block[z, z]
        block[y, y] = 1.0 / np.sqrt(max(1e-30, block[y, y] - dot(block, y, block, y, y)))


@inner
def iterated_step(rows, now, raised, relative, limit, flow, u):
    """Replace the right side `u` by its step: conjugate gradients, scaled by the state chances.

    It stops when the residual has fallen by `relative`. Where dual steps have `raised` the chances above the mass of
    the pairs, the diagonal of the matrix is that of the chances, as in `exact_step`.
    """
    steps, states = u.shape
    actions = now.mass.shape[1] // states
    residual = np.empty((steps, states))
    direction = np.empty((steps, states))
    image = np.empty((steps, states))
    energy = 0.0
    for h in range(steps):
        for s in range(states):
            residual[h, s] = u[h, s]
            u[h, s] = 0.0
            direction[h, s] = 0.0
            if now.chance[h, s] > TINY:
                direction[h, s] = residual[h, s] / now.chance[h, s]
            energy += residual[h, s] * direction[h, s]
    enough = relative * relative * energy
    count = 0
    while energy > enough and count < limit:
        image[:] = 0.0
        curved = 0.0
        for h in range(steps):
            if h < steps - 1:
                couple(rows, h, now.mass[h], direction[h], direction[h + 1], flow, image[h], image[h + 1])
            for s in range(states):
                if h == steps - 1:
                    image[h, s] += now.chance[h, s] * direction[h, s]
                elif raised:
                    leaving = 0.0
                    for row in range(s * actions, (s + 1) * actions):
                        leaving += now.mass[h, row]
                    image[h, s] += (now.chance[h, s] - leaving) * direction[h, s]
                curved += direction[h, s] * image[h, s]
        if not curved > 0.0:
            break
        renewed = 0.0
        for h in range(steps):
            for s in range(states):
                u[h, s] += energy / curved * direction[h, s]
                residual[h, s] -= energy / curved * image[h, s]
                if now.chance[h, s] > TINY:
                    renewed += residual[h, s] * residual[h, s] / now.chance[h, s]
        for h in range(steps):
            for s in range(states):
                kept = renewed / energy * direction[h, s]
                direction[h, s] = residual[h, s] / now.chance[h, s] + kept if now.chance[h, s] > TINY else 0.0
        energy = renewed
        count += 1
    _step_rarest(now, u)


@inner
def _step_rarest(now, u):
    """Steps for states whose chance is no number: by the diagonal alone, which is at most twice the chance."""
    for h in range(u.shape[0]):
        for s in range(u.shape[1]):
            if now.chance[h, s] <= TINY:
                u[h, s] = -0.5 * now.excess[h, s]
