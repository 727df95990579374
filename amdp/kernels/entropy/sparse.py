"""The four operations of a projection over a kernel that is stored by its non-zero entries."""

from amdp.kernels.entropy.common import inner


@inner
def relax(rows, pairs, h, later, reached, phi):
    """`phi[s*a]` of step `h` at the next prices `later[y]`."""
    first = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    for row in range(phi.size):
        total = 0.0
        for k in range(first[row], first[row + 1]):
            total += rows.chances[k] * later[rows.successors[k]]
        phi[row] = total - pairs[h, row]


@inner
def carry(rows, h, mass, out):
    """Add to `out[y]` what the pairs' `mass[s*a]` of step `h` brings to each next state."""
    first = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    for row in range(mass.size):
        if mass[row] != 0.0:
            for k in range(first[row], first[row + 1]):
                out[rows.successors[k]] += rows.chances[k] * mass[row]


@inner
def couple(rows, h, mass, here, later, flow, out, out_later):
    """Add `B' X B u` between the steps `h` and `h + 1`."""
    first = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    actions = mass.size // here.size
    for row in range(mass.size):
        if mass[row] == 0.0:
            continue
        total = 0.0
        for k in range(first[row], first[row + 1]):
            total += rows.chances[k] * later[rows.successors[k]]
        moved = mass[row] * (here[row // actions] - total)
        out[row // actions] += moved
        for k in range(first[row], first[row + 1]):
            out_later[rows.successors[k]] -= rows.chances[k] * moved


@inner
def assemble(rows, h, mass, root, later, scratch, block, couplings):
    """Add the scaled `B' X B` of step `h` to `block[y, z]` and into `couplings[y, s]`."""
    first = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    actions = mass.size // root.size
    couplings[:] = 0.0
    for row in range(mass.size):
        for k in range(first[row], first[row + 1]):
            y = rows.successors[k]
            moved = mass[row] * rows.chances[k] * later[y]
            couplings[y, row // actions] -= moved * root[row // actions]
            for j in range(first[row], first[row + 1]):
                z = rows.successors[j]
                if z <= y:
                    block[y, z] += moved * rows.chances[j] * later[z]
