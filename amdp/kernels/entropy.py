"""Newton's method for relative-entropy projections, compiled.

The unknowns are prices `v[h, s]`. They stand for a policy, `pi` proportional to `exp(-phi)` with
`phi[h] = P v[h+1] - log w` (over a box: the least of `sum_y p (log p - log w + v[h+1])` over the rows `p`), and
for its occupancy `x = d pi`, walked forward, so every iterate is feasible. Optimal prices have no excess,

    r = v + log sum_a exp(-phi) - log d = 0,        gap = sum d (exp(r) - 1 - r).

A step `u` solves `B' X B u = -B' X r`, `(B u)[h,s,a] = u[h,s] - P u[h+1]`, plus, over a box, the curvature of
`phi`: the Newton step of the primal problem at `x`. Where that does not lower the gap, the matrix at `exp(v - phi)`,
what leaves at the prices, gives the step of the dual problem, which converges from anywhere: see `solve`.

The matrix is block tridiagonal. Few states: a block Cholesky factor, scaled by the state chances, so that states of
tiny chance get their prices as exactly as others. Many states: conjugate gradients. Scaled so, the eigenvalues lie
between about `1 / H^2` and 4, whatever the weights, and the number of products grows with the steps, not with the
states; no matrix is stored.

Rows are numbered `s * A + a`; all arrays are C-contiguous.
"""

import numpy as np

from amdp.kernels.compiling import ANY_ORDER, entry, inlined, inner
from amdp.kernels.rows import FlowRows, Iterate

TINY = 1e-280  # chances below are carried as logarithms only
BAND = 600.0  # logarithms that are carried forward together
NEAR = 0.1  # a start with a smaller gap is taken as it is
CLOSE = 1.0  # and so is one with no larger excess
SETTLED = 1e-6  # an excess that rare states may keep
SHORTEST = 0.1  # of a feasible step that may be halved once more
SHORTEST_RARE = 0.3  # the same where only rare states are left
SHORTEST_DUAL = 1e-9
SHARE = 1e-4  # of the slope, by which the dual value must rise
PRODUCTS = 400  # that conjugate gradients may take for one step
MOST = 1e280  # the largest factor of weights; beyond it their scale is changed
ROUNDING = 1e-14  # of the sum of a row
NEGLIGIBLE = 40.0  # by how much the logarithm of an addend may lie below that of the sum to count
LEAST = -745.0  # the logarithm of the smallest number
FAR = 1e5  # logarithms beyond this are rounded by more than 1e-11
SAFE = 600.0  # products of weights and prices within this range of logarithms do not underflow

# Sums may be taken in any one order: nothing is compared for equality here.
_fast = entry(ANY_ORDER)
_inlined = inlined(ANY_ORDER)  # handing all rows to a function costs as much as a small row takes
_inner = inner(ANY_ORDER)


@_inner
def _expect(chances, later, out):
    """`P later`, by next states: few rows fit the registers, many ask for the memory's pace alone."""
    out[:] = 0.0
    for y in range(later.size):
        value = later[y]
        if value != 0.0:
            for row in range(out.size):
                out[row] += chances[y, row] * value


@_inner
def _dot(left, i, right, j, size):
    """Of the first entries of the rows `left[i]` and `right[j]`; views of rows would cost as much as the sum."""
    total = 0.0
    for k in range(size):
        total += left[i, k] * right[j, k]
    return total


@_inner
def _relax_dense(dense, pairs, h, later, reached, phi):
    _expect(dense[h if dense.shape[0] > 1 else 0], later, phi)
    for row in range(phi.size):
        phi[row] -= pairs[h, row]


@_inner
def _relax_sparse(starts, successors, entries, pairs, h, later, reached, phi):
    first = starts[h if starts.shape[0] > 1 else 0]
    for row in range(phi.size):
        total = 0.0
        for k in range(first[row], first[row + 1]):
            total += entries[k] * later[successors[k]]
        phi[row] = total - pairs[h, row]


@_inner
def _relax_box(rows, pairs, h, later, reached, phi):
    """Each row `p = clip(c w exp(-later), lower, upper)`, which is nearest to its weights at these prices."""
    states = later.size
    least = np.inf
    most = -np.inf
    for y in range(states):
        if reached[y]:
            least = min(least, later[y])
            most = max(most, later[y])
    eased = np.empty(states)
    scaled = np.empty(states)
    for y in range(states):
        eased[y] = np.exp(least - later[y]) if reached[y] else 0.0
    # Written out, with plain indices: handing all rows to a function, or views of one, costs more than the row.
    for row in range(phi.size):
        if rows.top[h, row] == -np.inf:
            phi[row] = np.inf
            continue
        base = rows.top[h, row] - least
        if rows.span[h, row] + (most - least) < SAFE:
            for y in range(states):
                scaled[y] = rows.weights[h, row, y] * eased[y]
        else:
            base = _far_scale(rows.log_weights, rows.lower, rows.upper, h, row, later, scaled)
        factor = np.exp(rows.tilt[h, row] + base)
        if not 1.0 / MOST < factor < MOST:
            factor = 1.0 / _total(scaled)
        factor = tilt(scaled, rows.lower, rows.upper, h, row, factor)
        shift = np.log(factor) - base
        loose = 0.0
        bound = 0.0
        for y in range(states):
            wanted = factor * scaled[y]
            low = rows.lower[h, row, y]
            high = rows.upper[h, row, y]
            is_free = low < wanted < high
            rows.chances[h, row, y] = wanted if is_free else (low if wanted <= low else high)
            rows.free[h, row, y] = wanted if is_free else 0.0
        for y in range(states):
            chance = rows.chances[h, row, y]
            free = rows.free[h, row, y]
            is_low = factor * scaled[y] <= rows.lower[h, row, y]
            log_chance = rows.log_lower[h, row, y] if is_low else rows.log_upper[h, row, y]
            cost = chance * (log_chance - rows.log_weights[h, row, y] + later[y])
            loose += free
            bound += 0.0 if free > 0.0 or chance == 0.0 else cost
        rows.loose[h, row] = loose
        rows.tilt[h, row] = shift
        phi[row] = loose * shift + bound


@_inlined
def relax(rows, pairs, h, later, reached, phi):
    """`phi[s*a]` of step `h` at the next prices `later[y]`."""
    if rows.dense.shape[0] > 0:
        _relax_dense(rows.dense, pairs, h, later, reached, phi)
    elif rows.starts.shape[0] > 0:
        _relax_sparse(rows.starts, rows.successors, rows.entries, pairs, h, later, reached, phi)
    else:
        _relax_box(rows, pairs, h, later, reached, phi)


@_inner
def _far_scale(log_weights, lower, upper, h, row, later, scaled):
    """Scale weights that no single scale can hold: the scale follows the solution; its logarithm.

    If the weights down to `BAND` below a scale do not suffice at any factor, all of them are at their upper bounds, and
    the largest of the others sets the next scale.
    """
    base = np.inf
    following = -np.inf
    for y in range(later.size):
        following = max(following, log_weights[h, row, y] - later[y])
    while following > -np.inf:
        base = following
        following = -np.inf
        for y in range(later.size):
            value = log_weights[h, row, y] - later[y]
            scaled[y] = np.exp(min(BAND, value - base))
            if value < base - BAND:
                following = max(following, value)
        if tilt(scaled, lower, upper, h, row, 1.0) < MOST:
            break
    return base


@_inner
def _total(values):
    total = 0.0
    for k in range(values.size):
        total += values[k]
    return total


@_inner
def tilt(weights, lower, upper, h, row, factor):
    """The factor `c` for which `clip(c weights, lower, upper)` sums to 1: Newton steps within a closing bracket.

    `MOST` where even this is too little: the remaining weights are too small for the scale.
    """
    below, above = 0.0, MOST
    for _ in range(200):
        fixed = 0.0
        loose = 0.0
        for y in range(weights.size):
            wanted = factor * weights[y]
            low = lower[h, row, y]
            high = upper[h, row, y]
            is_low = wanted <= low
            is_high = wanted >= high
            fixed += low if is_low else (high if is_high else 0.0)
            loose += 0.0 if is_low or is_high else weights[y]
        excess = fixed + factor * loose - 1.0
        if abs(excess) <= ROUNDING:
            wanted = (1.0 - fixed) / loose if loose > 0.0 else factor
            if abs(wanted - factor) <= 1e-9 * factor:
                return wanted
            # What is left for the free entries is rounding only: they get no more than where a bound is just met.
            turn = _next_turn(weights, lower, upper, h, row, factor, True) * (1.0 + 1e-12)
            return min(factor, turn) if turn > 0.0 else factor
        if excess > 0.0:
            above = min(above, factor)
        else:
            below = max(below, factor)
        if loose > 0.0:
            wanted = (1.0 - fixed) / loose
        else:
            wanted = _next_turn(weights, lower, upper, h, row, factor, fixed > 1.0)
            if wanted >= MOST:
                return MOST
        if not below < wanted < above:
            wanted = np.sqrt(below) * np.sqrt(above) if below > 0.0 else above / 16.0
            if above <= below * (1.0 + 4e-16):
                break
        factor = wanted
    return factor if above < MOST else MOST


@_inner
def _next_turn(weights, lower, upper, h, row, factor, down):
    """The nearest factor, below or above, at which an entry leaves its bound."""
    turn = 0.0 if down else np.inf
    for y in range(weights.size):
        if weights[y] > 0.0:
            if down and factor * weights[y] >= upper[h, row, y]:
                turn = max(turn, upper[h, row, y] / weights[y] * (1.0 - 1e-12))
            elif not down and factor * weights[y] <= lower[h, row, y]:
                turn = min(turn, lower[h, row, y] / weights[y] * (1.0 + 1e-12))
    return turn


@_inner
def _carry_dense(dense, h, mass, out):
    chances = dense[h if dense.shape[0] > 1 else 0]
    for y in range(out.size):
        total = 0.0
        for row in range(mass.size):
            total += chances[y, row] * mass[row]
        out[y] += total


@_inner
def _carry_sparse(starts, successors, entries, h, mass, out):
    first = starts[h if starts.shape[0] > 1 else 0]
    for row in range(mass.size):
        if mass[row] != 0.0:
            for k in range(first[row], first[row + 1]):
                out[successors[k]] += entries[k] * mass[row]


@_inner
def _carry_box(chances, h, mass, out):
    for row in range(mass.size):
        if mass[row] != 0.0:
            for y in range(out.size):
                out[y] += chances[h, row, y] * mass[row]


@_inlined
def carry(rows, h, mass, out):
    """Add to `out[y]` what the pairs' `mass[s*a]` of step `h` brings to each next state."""
    if rows.dense.shape[0] > 0:
        _carry_dense(rows.dense, h, mass, out)
    elif rows.starts.shape[0] > 0:
        _carry_sparse(rows.starts, rows.successors, rows.entries, h, mass, out)
    else:
        _carry_box(rows.chances, h, mass, out)


@_inner
def _couple_dense(dense, h, mass, here, later, flow, out, out_later):
    chances = dense[h if dense.shape[0] > 1 else 0]
    actions = mass.size // here.size
    _expect(chances, later, flow)
    for s in range(here.size):
        for row in range(s * actions, (s + 1) * actions):
            flow[row] = mass[row] * (here[s] - flow[row])
            out[s] += flow[row]
    for y in range(later.size):
        total = 0.0
        for row in range(flow.size):
            total += chances[y, row] * flow[row]
        out_later[y] -= total


@_inner
def _couple_sparse(starts, successors, entries, h, mass, here, later, flow, out, out_later):
    first = starts[h if starts.shape[0] > 1 else 0]
    actions = mass.size // here.size
    for row in range(mass.size):
        if mass[row] == 0.0:
            continue
        total = 0.0
        for k in range(first[row], first[row + 1]):
            total += entries[k] * later[successors[k]]
        moved = mass[row] * (here[row // actions] - total)
        out[row // actions] += moved
        for k in range(first[row], first[row + 1]):
            out_later[successors[k]] -= entries[k] * moved


@_inner
def _couple_box(chances, free, loose, h, mass, here, later, flow, out, out_later):
    actions = mass.size // here.size
    for row in range(mass.size):
        if mass[row] == 0.0:
            continue
        total = 0.0
        mean = 0.0
        for y in range(later.size):
            total += chances[h, row, y] * later[y]
            mean += free[h, row, y] * later[y]
        moved = mass[row] * (here[row // actions] - total)
        out[row // actions] += moved
        bends = loose[h, row] > TINY  # the inverse of less may be infinite
        mean = mean / loose[h, row] if bends else 0.0
        for y in range(later.size):
            bent = mass[row] * free[h, row, y] * (later[y] - mean) if bends else 0.0
            out_later[y] += bent - chances[h, row, y] * moved


@_inlined
def couple(rows, h, mass, here, later, flow, out, out_later):
    """Add `B' X B u` between the steps `h` and `h + 1`, for `u` = `here[s]`, `later[y]`; `flow[s*a]` is scratch."""
    if rows.dense.shape[0] > 0:
        _couple_dense(rows.dense, h, mass, here, later, flow, out, out_later)
    elif rows.starts.shape[0] > 0:
        _couple_sparse(rows.starts, rows.successors, rows.entries, h, mass, here, later, flow, out, out_later)
    else:
        _couple_box(rows.chances, rows.free, rows.loose, h, mass, here, later, flow, out, out_later)


@_inner
def _assemble_dense(dense, h, mass, root, later, scratch, block, couplings):
    chances = dense[h if dense.shape[0] > 1 else 0]
    states = root.size
    actions = mass.size // states
    for y in range(states):
        for row in range(mass.size):
            scratch[y, row] = chances[y, row] * later[y] * np.sqrt(mass[row])
        for z in range(y + 1):
            block[y, z] += _dot(scratch, y, scratch, z, mass.size)
        for s in range(states):
            total = 0.0
            for row in range(s * actions, (s + 1) * actions):
                total += chances[y, row] * mass[row]
            couplings[y, s] = -total * root[s] * later[y]


@_inner
def _assemble_sparse(starts, successors, entries, h, mass, root, later, scratch, block, couplings):
    first = starts[h if starts.shape[0] > 1 else 0]
    actions = mass.size // root.size
    couplings[:] = 0.0
    for row in range(mass.size):
        for k in range(first[row], first[row + 1]):
            y = successors[k]
            moved = mass[row] * entries[k] * later[y]
            couplings[y, row // actions] -= moved * root[row // actions]
            for j in range(first[row], first[row + 1]):
                z = successors[j]
                if z <= y:
                    block[y, z] += moved * entries[j] * later[z]


@_inner
def _assemble_box(chances, free, loose, h, mass, root, later, scratch, block, couplings):
    actions = mass.size // root.size
    couplings[:] = 0.0
    moved, bent = scratch[0], scratch[1]
    for row in range(mass.size):
        if mass[row] == 0.0:
            continue
        bends = loose[h, row] > TINY  # the inverse of less may be infinite
        inverse = 1.0 / loose[h, row] if bends else 0.0
        for y in range(later.size):
            moved[y] = chances[h, row, y] * later[y]
            bent[y] = free[h, row, y] * later[y] if bends else 0.0
            couplings[y, row // actions] -= mass[row] * moved[y] * root[row // actions]
        for y in range(later.size):
            block[y, y] += mass[row] * bent[y] * later[y]
            by_moved, by_bent = mass[row] * moved[y], mass[row] * bent[y] * inverse
            for z in range(y + 1):
                block[y, z] += by_moved * moved[z] - by_bent * bent[z]


@_inlined
def assemble(rows, h, mass, root, later, scratch, block, couplings):
    """Add `B' X B` of the pairs of step `h`, scaled: to `block[y, z]`, `z <= y`, and into `couplings[y, s]`.

    `root[s]` and `later[y]` are the inverse roots of the state chances, 0 where there is none.
    """
    if rows.dense.shape[0] > 0:
        _assemble_dense(rows.dense, h, mass, root, later, scratch, block, couplings)
    elif rows.starts.shape[0] > 0:
        _assemble_sparse(rows.starts, rows.successors, rows.entries, h, mass, root, later, scratch, block, couplings)
    else:
        _assemble_box(rows.chances, rows.free, rows.loose, h, mass, root, later, scratch, block, couplings)


@_inner
def backward(rows, pairs, reached, known, prices, now):
    """The policy of the prices; where `known`, they are first set to `v = log d - L`, step by step.

    The prices of each step are shifted so that what leaves its states, `exp(v + L)`, sums to 1. That changes no policy,
    and no other shift gives a larger dual value: `v[0, initial]`, less the number of steps.
    """
    steps, states = prices.shape
    actions = pairs.shape[1] // states
    for h in range(steps - 1, -1, -1):
        if h < steps - 1:
            relax(rows, pairs, h, prices[h + 1], reached[h + 1], now.policy[h])
        else:
            for row in range(pairs.shape[1]):
                now.policy[h, row] = -pairs[h, row]
        for s in range(states):
            total = _soften(now.policy[h], now.log_policy[h], s * actions, (s + 1) * actions, reached[h, s])
            now.total[h, s] = total
            if known:
                there = reached[h, s] and now.log_chance[h, s] > -np.inf
                prices[h, s] = now.log_chance[h, s] - total if there else 0.0
        shift = _log_leaving(prices, now.total, reached, h)
        for s in range(states):
            if reached[h, s]:
                prices[h, s] -= shift


@_inner
def _log_leaving(prices, total, reached, h):
    """The logarithm of `sum_s exp(v + L)` over the states of a step."""
    top = -np.inf
    for s in range(prices.shape[1]):
        if reached[h, s]:
            top = max(top, prices[h, s] + total[h, s])
    leaving = 0.0
    for s in range(prices.shape[1]):
        if reached[h, s]:
            leaving += np.exp(prices[h, s] + total[h, s] - top)
    return top + np.log(leaving)


@_inner
def _soften(phi, log_policy, first, last, reached):
    """Turn the costs `phi` of one state's actions into the chances of a policy; the logarithm of their total."""
    least = np.inf
    for row in range(first, last):
        least = min(least, phi[row])
    if not reached or least == np.inf:
        for row in range(first, last):
            phi[row] = 0.0
            log_policy[row] = -np.inf
        return -np.inf
    total = 0.0
    for row in range(first, last):
        log_policy[row] = least - phi[row]
        phi[row] = np.exp(log_policy[row])
        total += phi[row]
    log_total = np.log(total)
    for row in range(first, last):
        log_policy[row] -= log_total
        phi[row] /= total
    return log_total - least


@_inner
def evaluate(rows, pairs, initial, reached, known, prices, now):
    """Policy, occupancy and excess at these prices, into `now`; the gap. `known`: as for `backward`."""
    backward(rows, pairs, reached, known, prices, now)
    if not _walk(rows, initial, reached, now):
        _walk_in_logs(rows, initial, prices, now)
    gap = 0.0
    for h in range(prices.shape[0]):
        for s in range(prices.shape[1]):
            now.excess[h, s] = 0.0
            if reached[h, s]:
                # A chance that is lost even as a logarithm counts as the smallest number: what leaves is charged.
                log_chance = now.log_chance[h, s] if now.log_chance[h, s] != -np.inf else LEAST
                excess = prices[h, s] + now.total[h, s] - log_chance
                now.excess[h, s] = excess
                gap += _bregman(now.chance[h, s], log_chance, excess)
    return gap


@_inner
def _bregman(chance, log_chance, excess):
    """`d (exp(r) - 1 - r)`: a series where it would cancel; where it might overflow, `d exp(r)` at once."""
    if abs(excess) > 1.0:
        return np.exp(log_chance + excess) - chance * (1.0 + excess)
    if abs(excess) > 1e-3:
        return chance * (np.exp(excess) - 1.0 - excess)
    return chance * excess * excess * (0.5 + excess * (1.0 / 6.0 + excess * (1.0 / 24.0 + excess / 120.0)))


@_inner
def _walk(rows, initial, reached, now):
    """Occupancy of the policy; whether no chance came close to underflow."""
    steps, states = now.total.shape
    actions = now.policy.shape[1] // states
    now.chance[:] = 0.0
    now.chance[0, initial] = 1.0
    safe = True
    for h in range(steps):
        for s in range(states):
            chance = now.chance[h, s]
            now.log_chance[h, s] = np.log(chance)
            safe = safe and (chance > TINY or not reached[h, s])
            for row in range(s * actions, (s + 1) * actions):
                now.mass[h, row] = chance * now.policy[h, row]
        if h < steps - 1:
            carry(rows, h, now.mass[h], now.chance[h + 1])
    return safe


@_inner
def _walk_in_logs(rows, initial, prices, now):
    """Occupancy as logarithms: over a kernel the mass of a step goes forward in bands that do not underflow."""
    steps, states = now.total.shape
    actions = now.policy.shape[1] // states
    now.log_chance[:] = -np.inf
    now.log_chance[0, initial] = 0.0
    log_mass = np.empty(states * actions)
    mass = np.empty(states * actions)
    arrived = np.empty(states)
    for h in range(steps - 1):
        for row in range(log_mass.size):
            log_mass[row] = now.log_chance[h, row // actions] + now.log_policy[h, row]
        if rows.chances.shape[0] > 0:
            _carry_logs(rows, h, log_mass, prices[h + 1], now.log_chance[h + 1])
            continue
        while True:
            top = _highest(log_mass)
            if not -np.inf < top < np.inf:  # prices beyond all bounds leave NaN
                break
            for row in range(log_mass.size):
                mass[row] = 0.0
                if log_mass[row] > top - BAND:
                    mass[row] = np.exp(log_mass[row] - top)
                    log_mass[row] = -np.inf
            arrived[:] = 0.0
            carry(rows, h, mass, arrived)
            for y in range(states):
                now.log_chance[h + 1, y] = _add_logs(now.log_chance[h + 1, y], top + np.log(arrived[y]))
    for h in range(steps):
        for s in range(states):
            now.chance[h, s] = np.exp(now.log_chance[h, s])
            for row in range(s * actions, (s + 1) * actions):
                now.mass[h, row] = now.chance[h, s] * now.policy[h, row]


@_inner
def _carry_logs(rows, h, log_mass, later, out):
    """Add to `out[y]` what pairs of a box bring to each next state, all as logarithms."""
    for row in range(log_mass.size):
        if log_mass[row] > -np.inf:
            for y in range(out.size):
                brought = log_mass[row] + _log_move(rows, h, row, y, later[y])
                if brought > out[y] - NEGLIGIBLE:
                    out[y] = _add_logs(out[y], brought)


@_inner
def _log_move(rows, h, row, y, price):
    """The logarithm of a chosen chance: a number also where the chance itself is none."""
    if rows.free[h, row, y] == 0.0 and rows.chances[h, row, y] > 0.0:
        is_low = rows.chances[h, row, y] == rows.lower[h, row, y]
        return rows.log_lower[h, row, y] if is_low else rows.log_upper[h, row, y]
    if rows.free[h, row, y] > TINY and max(abs(price), abs(rows.log_weights[h, row, y])) > FAR:
        return np.log(rows.free[h, row, y])  # the sum of the logarithms would lose digits that the chance has
    return min(rows.tilt[h, row] + rows.log_weights[h, row, y] - price, rows.log_upper[h, row, y])


@_inner
def _highest(values):
    highest = -np.inf
    for k in range(values.size):
        highest = max(highest, values[k])
    return highest


@_inner
def _add_logs(one, other):
    """`log(exp(one) + exp(other))`."""
    high, low = max(one, other), min(one, other)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@_inner
def _slope(rows, now, flow, out):
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


@_inner
def exact_step(rows, now, blocks, couplings, scratch, u):
    """Replace the right side `u` by its step: a block Cholesky factor, `blocks[h]` diagonal, `couplings[h]` below."""
    steps, states = u.shape
    root = np.zeros((steps, states))
    for h in range(steps):
        block = blocks[h]
        for y in range(states):
            if now.chance[h, y] > TINY:
                root[h, y] = 1.0 / np.sqrt(now.chance[h, y])
            u[h, y] *= root[h, y]
            if h == 0:
                block[y, : y + 1] = 0.0
            block[y, y] += 1.0
        if h > 0:
            _eliminate(blocks[h - 1], couplings[h - 1], block)
        _factor(block)
        for y in range(states):
            if h > 0:
                u[h, y] -= _dot(couplings[h - 1], y, u, h - 1, states)
            u[h, y] = (u[h, y] - _dot(block, y, u, h, y)) / block[y, y]
        if h < steps - 1:
            for y in range(states):
                blocks[h + 1, y, : y + 1] = 0.0
                if now.chance[h + 1, y] > TINY:
                    root[h + 1, y] = 1.0 / np.sqrt(now.chance[h + 1, y])
            assemble(rows, h, now.mass[h], root[h], root[h + 1], scratch, blocks[h + 1], couplings[h])
    for h in range(steps - 1, -1, -1):
        if h < steps - 1:
            for y in range(states):
                for s in range(states):
                    u[h, s] -= couplings[h, y, s] * u[h + 1, y]
        for y in range(states - 1, -1, -1):
            u[h, y] /= blocks[h, y, y]
            for s in range(y):
                u[h, s] -= blocks[h, y, s] * u[h, y]
    for h in range(steps):
        for s in range(states):
            u[h, s] *= root[h, s]
    _move_the_rarest(now, u)


@_inner
def _move_the_rarest(now, u):
    """Steps for states whose chance is no number: by the diagonal alone, which is at most twice the chance."""
    for h in range(u.shape[0]):
        for s in range(u.shape[1]):
            if now.chance[h, s] <= TINY:
                u[h, s] = -0.5 * now.excess[h, s]


@_inner
def _eliminate(factor, couplings, block):
    """`couplings` times the inverse transposed factor, in place, and its square taken off the next block."""
    states = block.shape[0]
    for y in range(states):
        for s in range(states):
            couplings[y, s] = (couplings[y, s] - _dot(factor, s, couplings, y, s)) / factor[s, s]
        for z in range(y + 1):
            block[y, z] -= _dot(couplings, y, couplings, z, states)


@_inner
def _factor(block):
    """The Cholesky factor, in place."""
    for y in range(block.shape[0]):
        for z in range(y):
            block[y, z] = (block[y, z] - _dot(block, y, block, z, z)) / block[z, z]
        block[y, y] = np.sqrt(max(1e-30, block[y, y] - _dot(block, y, block, y, y)))


@_inner
def iterated_step(rows, now, relative, limit, flow, u):
    """Replace the right side `u` by its step: conjugate gradients, scaled by the state chances.

    It stops when the residual has fallen by `relative`.
    """
    steps, states = u.shape
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
    _move_the_rarest(now, u)


@_inner
def _copy(source, target):
    for h in range(target.shape[0]):
        for s in range(target.shape[1]):
            target[h, s] = source[h, s]


@_inner
def _turn_to_dual(rows, prices, initial, reached, now, entering, out):
    """Replace the occupancy by what leaves each state at its price; `out` is what enters less what leaves.

    The matrix is then the curvature of the dual value. Where more enters than leaves, its diagonal is raised to the
    logarithmic mean of both: `exp(u)` times what leaves is what enters at `u = log(entering / leaves)`, not at the far
    longer step of a linear model.
    """
    steps, states = prices.shape
    actions = now.policy.shape[1] // states
    entering[:] = 0.0
    entering[0, initial] = 1.0
    for h in range(steps):
        for s in range(states):
            leaves = np.exp(prices[h, s] + now.total[h, s]) if reached[h, s] else 0.0
            out[h, s] = entering[h, s] - leaves
            now.chance[h, s] = leaves
            if entering[h, s] > leaves > 0.0:
                ratio = np.log(entering[h, s] / leaves)
                now.chance[h, s] = out[h, s] / ratio if ratio > 1e-3 else entering[h, s]
            for row in range(s * actions, (s + 1) * actions):
                now.mass[h, row] = leaves * now.policy[h, row]
        if h < steps - 1:
            carry(rows, h, now.mass[h], entering[h + 1])


@_inner
def _hasten(prices, reached, now, entering, u):
    """Lower the prices of states that far more leaves than enters by more than Newton's step, 1; the slope of the step.

    By convexity `exp(u[s] - p u') <= sum_y p (exp(2 u[s]) + exp(-2 u'[y])) / 2` for all changes `u` of the prices, over
    a box for the chosen rows as well. So a quarter of `log(entering / leaving)` in every state raises the dual value,
    wherever the prices are (generalized iterative scaling, Darroch and Ratcliff 1972).
    """
    slope = 0.0
    for h in range(u.shape[0]):
        for s in range(u.shape[1]):
            if not reached[h, s]:
                u[h, s] = 0.0
                continue
            log_leaving = prices[h, s] + now.total[h, s]
            log_entering = np.log(entering[h, s]) if entering[h, s] > 0.0 else LEAST
            safe = 0.25 * (log_entering - log_leaving)
            if now.chance[h, s] <= TINY:
                u[h, s] = safe if entering[h, s] > 0.0 or log_leaving > LEAST else 0.0
            elif safe < 0.0:
                u[h, s] = min(u[h, s], safe)
            slope += (entering[h, s] - np.exp(log_leaving)) * u[h, s]
    return slope


@_inner
def propose(stage, starts, reached, prices, length, u, trial, now):
    """The next prices to try, into `trial`.

    Stages 0, 1, ...: the given starts; then zero; then the prices at which all states of a step are met alike, whose
    gap is at most `H (1 + log S)` whatever the weights; then those of the chances that these lead to; then the best
    prices so far, moved along `u`.
    """
    given = starts.shape[0]
    for h in range(trial.shape[0]):
        count = 0.0
        for s in range(trial.shape[1]):
            count += 1.0 if reached[h, s] else 0.0
        for s in range(trial.shape[1]):
            if stage < given:
                trial[h, s] = starts[stage, h, s]
            elif stage == given:
                trial[h, s] = 0.0
            elif stage == given + 1:
                now.log_chance[h, s] = -np.log(count)
            elif stage > given + 2:
                trial[h, s] = prices[h, s] + length * u[h, s] if length > 0.0 else prices[h, s]


@_inner
def _worst_excess(now):
    """The largest excess of a state; it is 0 where none can be."""
    worst = 0.0
    for h in range(now.excess.shape[0]):
        for s in range(now.excess.shape[1]):
            worst = max(worst, abs(now.excess[h, s]))
    return worst


@_inner
def _is_better(found, gap, worst, now, length, tolerance):
    """Whether prices of gap `found` are progress; once the gap is small, the rare states decide."""
    if gap <= tolerance:
        return found <= tolerance and _worst_excess(now) < 0.75 * worst
    return found < (1.0 - 0.1 * length) * gap


@_inner
def solve(rows, pairs, initial, reached, starts, tolerance, enough, limit, exact, prices, now):
    """Newton steps until the gap is below `tolerance`, or below `enough` and no step lowers it.

    Returns the gap, the number of steps, and how many of them were dual steps.

    A feasible step is one of the primal problem, at the occupancy that prices stand for; it is taken if the gap falls.
    It is exact where all excess is small, but far from there the gap may rise along it: states of chance 1e-12 whose
    prices are wrong by 30 do not count in the gap, and do after the step. A dual step is one of the dual problem, at
    what leaves the states. The dual value is concave and rises along it, so a line search that asks for a share of the
    slope leads to the optimum from anywhere (Boyd and Vandenberghe 2004, section 9.5).

    Where no feasible step helps, dual steps take over, at first from the prices at which all states of a step are met
    alike: there the matrix is well conditioned, and the dual value is within `H (1 + log S)` of its greatest. They end
    when the gap has fallen to a hundredth, or when the dual value can rise by rounding only. Rare states have no share
    in the gap: for them there are more steps at the end, as long as these help.

    There is one place that evaluates prices, for starts and steps alike: it is most of what has to be compiled.
    """
    steps, states = prices.shape
    alike, newton = starts.shape[0] + 1, starts.shape[0] + 3
    trial = np.zeros(prices.shape)
    u = np.zeros(prices.shape)
    entering = np.zeros(prices.shape)
    blocks = np.empty((steps if exact else 0, states, states))
    couplings = np.empty((steps if exact else 0, states, states))
    scratch = np.empty((max(2, states) if exact else 1, pairs.shape[1]))
    gap = np.inf
    dual = -np.inf
    slope = 0.0
    worst = np.inf
    refined = exact and tolerance <= SETTLED * SETTLED  # who asks for rough answers gets them
    by_dual, turned, exhausted, stuck = False, False, False, False
    until = 0.0  # the gap at which dual steps end
    length = 0.0
    iterations, dual_steps = 0, 0
    stage = 0
    while True:
        propose(stage, starts, reached, prices, length, u, trial, now)
        soft = newton - 2 <= stage < newton
        found = evaluate(rows, pairs, initial, reached, soft, trial, now)
        value = trial[0, initial] - steps
        if stage < newton:
            near = by_dual or found <= NEAR or _worst_excess(now) <= CLOSE
            if near or found < gap:
                _copy(trial, prices)
                gap = found
            stage = newton if near else stage + 1
            if not near:
                continue
        elif by_dual and length > 0.0:
            if not value >= dual + SHARE * length * slope:
                length = 0.5 * length if length > SHORTEST_DUAL else 0.0
                stuck = length == 0.0
                continue
            _copy(trial, prices)
            gap = found
        elif length == 0.0 or _is_better(found, gap, worst, now, length, tolerance):
            _copy(trial, prices)
            gap = found
        else:
            # Without progress along the step, go back to where it began.
            length = 0.5 * length if length > (SHORTEST if gap > tolerance else SHORTEST_RARE) else 0.0
            stuck = length == 0.0
            continue
        worst = _worst_excess(now)
        dual = value
        settled = gap <= tolerance and (worst <= SETTLED or not refined)
        if settled or iterations == limit or (stuck and not by_dual and (exhausted or gap <= enough)):
            return gap, iterations, dual_steps
        if stuck:
            exhausted = by_dual
            by_dual = not by_dual
            until = 0.01 * gap
            length = 0.0
            stuck = False
            if by_dual and not turned:
                turned = True
                stage = alike
                continue
        elif gap <= until:
            by_dual = False
        if by_dual:
            _turn_to_dual(rows, prices, initial, reached, now, entering, u)
        else:
            _slope(rows, now, scratch[0], u)
        if exact:
            exact_step(rows, now, blocks, couplings, scratch, u)
        else:
            relative = max(np.sqrt(0.1 * tolerance / gap), 0.1 * min(1.0, np.sqrt(gap)))
            iterated_step(rows, now, relative, PRODUCTS, scratch[0], u)
        length = 1.0
        if by_dual:
            slope = _hasten(prices, reached, now, entering, u)
            stuck = not slope > ROUNDING * (steps + abs(dual))
            length = 0.0 if stuck else 1.0
            dual_steps += 1
        iterations += 1


@_fast
def prepare(given_rows, log_point, usable, pairs):
    """Lay out the weights of a box where mass may go; whether all of these are positive.

    `rows.weights` is left as a logarithm: numpy exponentiates an array faster than compiled code does.
    """
    rows = FlowRows(*given_rows)
    positive = True
    steps, width, states = log_point.shape
    for h in range(steps - 1):
        for row in range(width):
            top, bottom = -np.inf, np.inf
            for y in range(states):
                value = log_point[h, row, y] if usable[h, row, y] else -np.inf
                rows.log_weights[h, row, y] = value
                top = max(top, value)
                if usable[h, row, y]:
                    bottom = min(bottom, value)
            positive = positive and bottom > -np.inf
            for y in range(states):
                rows.weights[h, row, y] = rows.log_weights[h, row, y] - (top if top > -np.inf else 0.0)
            rows.top[h, row] = top
            rows.span[h, row] = top - bottom
            rows.tilt[h, row] = np.nan
            rows.loose[h, row] = 0.0
    for row in range(width):
        pairs[steps - 1, row] = log_point[steps - 1, row, 0] if usable[steps - 1, row, 0] else -np.inf
        positive = positive and (pairs[steps - 1, row] > -np.inf or not usable[steps - 1, row, 0])
    return positive


@_fast
def project(given_rows, pairs, initial, reached, closed, starts, tolerance, enough, limit, exact, prices, log_measure):
    """Solve, and write the measure `[h, s*a, 1]` over a kernel, `[h, s*a, y]` over a box; gap, steps and dual steps.

    Unless pairs without weight are `closed`, `reached` taking account of them, nothing is done where there is one, and
    the steps are -1. This is what Python calls; it takes `FlowRows` as a plain tuple, which numba recognizes ten
    times faster.
    """
    rows = FlowRows(*given_rows)
    steps, states = prices.shape
    by_pair = (steps, pairs.shape[1])
    actions = pairs.shape[1] // states
    if not closed and _has_holes(pairs, reached, actions):
        return np.inf, -1, 0
    now = Iterate(
        np.empty(by_pair),
        np.empty(by_pair),
        np.empty(by_pair),
        np.empty((steps, states)),
        np.empty((steps, states)),
        np.empty((steps, states)),
        np.empty((steps, states)),
    )
    prices[:] = 0.0
    gap, iterations, dual_steps = solve(
        rows, pairs, initial, reached, starts, tolerance, enough, limit, exact, prices, now
    )
    for h in range(steps):
        for s in range(states):
            if not reached[h, s]:
                prices[h, s] = 0.0
        for row in range(pairs.shape[1]):
            pair = now.log_chance[h, row // actions] + now.log_policy[h, row]
            for y in range(log_measure.shape[2]):
                log_measure[h, row, y] = -np.inf
            log_measure[h, row, 0] = pair
            if rows.chances.shape[0] > 0 and h < steps - 1 and pair > -np.inf:
                _write_row(rows, h, row, pair, prices[h + 1], log_measure[h, row])
    return gap, iterations, dual_steps


@_inner
def _has_holes(pairs, reached, actions):
    for h in range(pairs.shape[0]):
        for row in range(pairs.shape[1]):
            if pairs[h, row] == -np.inf and reached[h, row // actions]:
                return True
    return False


@_inner
def _write_row(rows, h, row, pair, later, log_measure):
    """The mass of a pair of a box, spread over its chosen row; all as logarithms."""
    for y in range(later.size):
        log_measure[y] = pair + _log_move(rows, h, row, y, later[y])


@_fast
def judge(given_rows, weights, log_point, initial, states, measure, log_measure):
    """Objective and flow residual of a measure `[h, s*a]` over a kernel, from the measure alone."""
    rows = FlowRows(*given_rows)
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


@_fast
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
