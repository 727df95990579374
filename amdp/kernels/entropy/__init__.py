"""Newton's method for relative-entropy projections, compiled.

The unknowns are prices `v[h, s]`. They stand for a policy, `pi` proportional to `exp(-phi)` with
`phi[h] = P v[h+1] - log w` (over a box: the least of `sum_y p (log p - log w + v[h+1])` over the rows `p`), and
for its occupancy `x = d pi`, walked forward, so every iterate is feasible. Optimal prices have no excess,

    r = v + log sum_a exp(-phi) - log d = 0,        gap = sum d (exp(r) - 1 - r).

A step `u` solves `B' X B u = -B' X r`, `(B u)[h,s,a] = u[h,s] - P u[h+1]`, plus, over a box, the curvature of
`phi`: the Newton step of the primal problem at `x`. Where that does not lower the gap, the matrix at `exp(v - phi)`,
what leaves at the prices, gives the step of the dual problem, which converges from anywhere: see `newton.solve`.

The matrix is block tridiagonal. Few states: a block Cholesky factor, scaled by the state chances, so that states of
tiny chance get their prices as exactly as others. Many states: conjugate gradients. Scaled so, the eigenvalues lie
between about `1 / H^2` and 4, whatever the weights, and the number of products grows with the steps, not with the
states; no matrix is stored.

The files: `dense`, `sparse` and `box` have the four operations that depend on the dynamics, and `dynamics` chooses
between them; `tilting` finds a row of a box; `evaluation` goes from prices to policy, occupancy and gap;
`linear_algebra` solves for a step; `newton` is the method; `judge` measures an answer without it. Rows are numbered
`s * A + a`; all arrays are C-contiguous.
"""

from amdp.kernels.entropy.box import has_faint_mass as has_faint_mass
from amdp.kernels.entropy.box import lay_out_all as lay_out_all
from amdp.kernels.entropy.box import prepare as prepare
from amdp.kernels.entropy.judge import judge as judge
from amdp.kernels.entropy.newton import project as project
