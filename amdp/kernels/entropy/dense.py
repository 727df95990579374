"""The four operations of a projection over a kernel whose rows are stored in full, next state first."""

from amdp.kernels.entropy.common import dot, inner


@inner
def _expect(chances, later, out):
    """`P later` into `out[s*a]`, next state by next state: the rows of one next state lie side by side."""
    out[:] = 0.0
    for y in range(later.size):
        value = later[y]
        if value != 0.0:
            for row in range(out.size):
                out[row] += chances[y, row] * value


@inner
def relax(rows, pairs, h, later, reached, phi):
    """`phi[s*a]` of step `h` at the next prices `later[y]`."""
    _expect(rows.chances[h if rows.chances.shape[0] > 1 else 0], later, phi)
    for row in range(phi.size):
        phi[row] -= pairs[h, row]


@inner
def carry(rows, h, mass, out):
    """Add to `out[y]` what the pairs' `mass[s*a]` of step `h` brings to each next state."""
    chances = rows.chances[h if rows.chances.shape[0] > 1 else 0]
    for y in range(out.size):
        total = 0.0
        for row in range(mass.size):
            total += chances[y, row] * mass[row]
        out[y] += total


@inner
def couple(rows, h, mass, here, later, flow, out, out_later):
    """Add `B' X B u` between the steps `h` and `h + 1`."""
    actions = mass.size // here.size
    _expect(rows.chances[h if rows.chances.shape[0] > 1 else 0], later, flow)
    for s in range(here.size):
        for row in range(s * actions, (s + 1) * actions):
            flow[row] = mass[row] * (flow[row] - here[s])
            out[s] -= flow[row]
    carry(rows, h, flow, out_later)


@inner
def assemble(rows, h, mass, root, later, scratch, block, couplings):
    """Add the scaled `B' X B` of step `h` to `block[y, z]` and into `couplings[y, s]`."""
    chances = rows.chances[h if rows.chances.shape[0] > 1 else 0]
    states = root.size
    actions = mass.size // states
    for y in range(states):
        if later[y] == 0.0:
            couplings[y, :] = 0.0
            continue
        for row in range(mass.size):
            scratch[y, row] = chances[y, row] * later[y] * mass[row]
        for z in range(y + 1):
            block[y, z] += later[z] * dot(scratch, y, chances, z, mass.size)
        for s in range(states):
            total = 0.0
            for row in range(s * actions, (s + 1) * actions):
                total += scratch[y, row]
            couplings[y, s] = -total * root[s]
