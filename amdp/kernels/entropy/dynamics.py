"""The four operations that a projection asks of any dynamics: `relax`, `carry`, `couple` and `assemble`.

One file a kind of dynamics has them: `dense`, `sparse`, `box`. They are chosen between as the code runs, because the
method around them is large and is compiled once for all kinds.
"""

from amdp.kernels.entropy import box, dense, sparse
from amdp.kernels.entropy.common import inlined
from amdp.kernels.rows import DENSE, SPARSE, BoxRows, DenseRows, FlowRows, SparseRows


@inlined
def flow_rows(given):
    """`FlowRows` from the plain tuples in which Python hands them over."""
    kind, in_full, by_entries, between = given
    return FlowRows(kind, DenseRows(*in_full), SparseRows(*by_entries), BoxRows(*between))


@inlined
def relax(rows, pairs, h, later, reached, phi):
    """`phi[s*a]` of step `h` at the next prices `later[y]`."""
    if rows.kind == DENSE:
        dense.relax(rows.dense, pairs, h, later, reached, phi)
    elif rows.kind == SPARSE:
        sparse.relax(rows.sparse, pairs, h, later, reached, phi)
    else:
        box.relax(rows.box, pairs, h, later, reached, phi)


@inlined
def carry(rows, h, mass, out):
    """Add to `out[y]` what the pairs' `mass[s*a]` of step `h` brings to each next state."""
    if rows.kind == DENSE:
        dense.carry(rows.dense, h, mass, out)
    elif rows.kind == SPARSE:
        sparse.carry(rows.sparse, h, mass, out)
    else:
        box.carry(rows.box, h, mass, out)


@inlined
def couple(rows, h, mass, here, later, flow, out, out_later):
    """Add `B' X B u` between the steps `h` and `h + 1`, for `u` = `here[s]`, `later[y]`; `flow[s*a]` is scratch."""
    if rows.kind == DENSE:
        dense.couple(rows.dense, h, mass, here, later, flow, out, out_later)
    elif rows.kind == SPARSE:
        sparse.couple(rows.sparse, h, mass, here, later, flow, out, out_later)
    else:
        box.couple(rows.box, h, mass, here, later, flow, out, out_later)


@inlined
def assemble(rows, h, mass, root, later, scratch, block, couplings):
    """Add `B' X B` of the pairs of step `h`, scaled: to `block[y, z]`, `z <= y`, and into `couplings[y, s]`.

    `root[s]` and `later[y]` are the inverse roots of the state chances, 0 where there is none.
    """
    if rows.kind == DENSE:
        dense.assemble(rows.dense, h, mass, root, later, scratch, block, couplings)
    elif rows.kind == SPARSE:
        sparse.assemble(rows.sparse, h, mass, root, later, scratch, block, couplings)
    else:
        box.assemble(rows.box, h, mass, root, later, scratch, block, couplings)
