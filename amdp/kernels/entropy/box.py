"""The four operations of a projection over a box: every pair takes the row between its bounds that is nearest."""

import numpy as np

from amdp.kernels.entropy.common import TINY, add_logs, entry, inlined, inner
from amdp.kernels.entropy.tilting import LARGEST_FACTOR, scale_in_bands, sum_of, tilt
from amdp.kernels.rows import BoxRows

NEGLIGIBLE_LOG = 40.0  # by how much the logarithm of an addend may lie below that of the sum to count
FAR_LOG = 1e5  # logarithms beyond this are rounded by more than 1e-11
FAINT_LOG_MASS = -600.0  # the logarithm of masses that the sums of a projection may lose
SAFE_LOG_RANGE = 600.0  # products of weights and prices within this range of logarithms do not underflow


@inner
def relax(rows, pairs, h, later, reached, phi):
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
        if rows.span[h, row] + (most - least) < SAFE_LOG_RANGE:
            for y in range(states):
                scaled[y] = rows.weights[h, row, y] * eased[y]
        else:
            base = scale_in_bands(rows.log_weights, rows.lower, rows.upper, h, row, later, scaled)
        factor = np.exp(rows.tilt[h, row] + base)
        if not 1.0 / LARGEST_FACTOR < factor < LARGEST_FACTOR:
            factor = 1.0 / sum_of(scaled)
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


@inner
def carry(rows, h, mass, out):
    """Add to `out[y]` what the pairs' `mass[s*a]` of step `h` brings to each next state."""
    for row in range(mass.size):
        if mass[row] != 0.0:
            for y in range(out.size):
                out[y] += rows.chances[h, row, y] * mass[row]


@inner
def couple(rows, h, mass, here, later, flow, out, out_later):
    """Add `B' X B u` between the steps `h` and `h + 1`, with the curvature of the chosen rows."""
    actions = mass.size // here.size
    for row in range(mass.size):
        if mass[row] == 0.0:
            continue
        total = 0.0
        mean = 0.0
        for y in range(later.size):
            total += rows.chances[h, row, y] * later[y]
            mean += rows.free[h, row, y] * later[y]
        moved = mass[row] * (here[row // actions] - total)
        out[row // actions] += moved
        bends = rows.loose[h, row] > TINY  # the inverse of less may be infinite
        mean = mean / rows.loose[h, row] if bends else 0.0
        for y in range(later.size):
            bent = mass[row] * rows.free[h, row, y] * (later[y] - mean) if bends else 0.0
            out_later[y] += bent - rows.chances[h, row, y] * moved


@inner
def assemble(rows, h, mass, root, later, scratch, block, couplings):
    """Add the scaled `B' X B` of step `h`, with the curvature of the chosen rows."""
    actions = mass.size // root.size
    couplings[:] = 0.0
    moved, bent = scratch[0], scratch[1]
    for row in range(mass.size):
        if mass[row] == 0.0:
            continue
        bends = rows.loose[h, row] > TINY  # the inverse of less may be infinite
        inverse = 1.0 / rows.loose[h, row] if bends else 0.0
        for y in range(later.size):
            moved[y] = rows.chances[h, row, y] * later[y]
            bent[y] = rows.free[h, row, y] * later[y] if bends else 0.0
            couplings[y, row // actions] -= mass[row] * moved[y] * root[row // actions]
        for y in range(later.size):
            block[y, y] += mass[row] * bent[y] * later[y]
            by_moved, by_bent = mass[row] * moved[y], mass[row] * bent[y] * inverse
            for z in range(y + 1):
                block[y, z] += by_moved * moved[z] - by_bent * bent[z]


@inner
def carry_logs(rows, h, log_mass, later, out):
    """Add to `out[y]` what pairs of a box bring to each next state, all as logarithms."""
    for row in range(log_mass.size):
        if log_mass[row] > -np.inf:
            for y in range(out.size):
                brought = log_mass[row] + log_move(rows, h, row, y, later[y])
                if brought > out[y] - NEGLIGIBLE_LOG:
                    out[y] = add_logs(out[y], brought)


@inlined
def log_move(rows, h, row, y, price):
    """The logarithm of a chosen chance: a number also where the chance itself is none."""
    if rows.free[h, row, y] == 0.0 and rows.chances[h, row, y] > 0.0:
        is_low = rows.chances[h, row, y] == rows.lower[h, row, y]
        return rows.log_lower[h, row, y] if is_low else rows.log_upper[h, row, y]
    if rows.free[h, row, y] > TINY and max(abs(price), abs(rows.log_weights[h, row, y])) > FAR_LOG:
        return np.log(rows.free[h, row, y])  # the sum of the logarithms would lose digits that the chance has
    return min(rows.tilt[h, row] + rows.log_weights[h, row, y] - price, rows.log_upper[h, row, y])


@inner
def write_row(rows, h, row, pair, later, log_measure):
    """The mass of a pair of a box, spread over its chosen row; all as logarithms."""
    for y in range(later.size):
        log_measure[y] = pair + log_move(rows, h, row, y, later[y])


@entry
def lay_out(lower, upper, h, s, a, laid_lower, laid_upper, log_lower, log_upper):
    """Write the bounds `[h, s, a, y]` of a pair to the rows that a projection reads."""
    row = s * lower.shape[2] + a
    for y in range(lower.shape[3]):
        laid_lower[h, row, y] = lower[h, s, a, y]
        laid_upper[h, row, y] = upper[h, s, a, y]
        log_lower[h, row, y] = np.log(lower[h, s, a, y])
        log_upper[h, row, y] = np.log(upper[h, s, a, y])


@entry
def lay_out_all(lower, upper, laid_lower, laid_upper, log_lower, log_upper):
    """The same for all pairs; nothing follows those of the last step."""
    for h in range(lower.shape[0] - 1):
        for s in range(lower.shape[1]):
            for a in range(lower.shape[2]):
                lay_out(lower, upper, h, s, a, laid_lower, laid_upper, log_lower, log_upper)


@entry
def has_faint_mass(log_measure):
    """Whether a measure `[h, s*a, y]` has masses that are too small for the sums by which it was proved."""
    for h in range(log_measure.shape[0]):
        for row in range(log_measure.shape[1]):
            for y in range(log_measure.shape[2]):
                if -np.inf < log_measure[h, row, y] < FAINT_LOG_MASS:
                    return True
    return False


@entry
def prepare(given_rows, log_point, usable, pairs):
    """Lay out the weights of a box where mass may go; whether all of these are positive."""
    rows = BoxRows(*given_rows)
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
                rows.weights[h, row, y] = np.exp(rows.log_weights[h, row, y] - top) if top > -np.inf else 0.0
            rows.top[h, row] = top
            rows.span[h, row] = top - bottom
            rows.tilt[h, row] = np.nan
            rows.loose[h, row] = 0.0
    for row in range(width):
        pairs[steps - 1, row] = log_point[steps - 1, row, 0] if usable[steps - 1, row, 0] else -np.inf
        positive = positive and (pairs[steps - 1, row] > -np.inf or not usable[steps - 1, row, 0])
    return positive
