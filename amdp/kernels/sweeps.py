"""Backward sweeps, compiled: `V[h,s] = min_a c[h,s,a] + (least expectation of V[h+1])[s,a]`.

Memory is step-major: values `[h, n, s]`, so that the values of one step are the operand of the next product.
Costs come as `[h, n, s, a]` (`by_step`) or as `[n, h, s, a]`. All arrays are C-contiguous.
"""

import numpy as np
from numba import uintp
from numba.extending import overload

from amdp.kernels.compiling import FUSED, entry, inner, merged
from amdp.kernels.products import multiply
from amdp.kernels.rows import DenseRows, IntervalRows, SparseRows

LANES = 64  # solves that the sparse sweep carries side by side
ROW_TILE = 512  # rows that it carries with them: both sides of the turn stay in the cache
LINE_PADDING = 8  # unused entries a line: lengths that are powers of two crowd into few sets of the cache
TIE_TOLERANCE = 1e-13  # relative to the least cost to come: actions that differ from it by less differ by rounding
SMALL = 4096  # entries of a matrix that is multiplied without the linear algebra library
BOX_ROWS = 64  # rows of a box whose budgets are spent side by side

# No reassociation: a sum is taken in one order, whatever the compiler makes of the loop around it.
_entry = entry(FUSED)
_inner = inner(FUSED)
_merged = merged(FUSED)


@_merged
def _cheapest_action(later, row, costs, at, count):
    """The cheapest of `count` actions for `later[row...] + costs[at...]`, and its value.

    The first action that costs no more than rounding above the least is chosen. A cost that is NaN or infinite makes
    the value NaN, whether or not it is chosen.
    """
    # Unsigned offsets spare the test for negative indices, which would stop vectorization.
    least = later[row] + costs[at]
    met = least
    for a in range(1, count):
        q = later[row + uintp(a)] + costs[at + uintp(a)]
        met += q
        least = q if q < least else least
    ceiling = least + TIE_TOLERANCE * abs(least)
    best = least
    action = 0
    for below in range(count):
        a = count - 1 - below
        q = later[row + uintp(a)] + costs[at + uintp(a)]
        action = a if q <= ceiling else action
        best = q if q <= ceiling else best
    return action, best + 0.0 * met


@_inner
def _choose(later, costs, values, actions, n_actions):
    """Cheapest action at each position, by a loop over actions that is unrolled for the usual numbers of them."""
    if n_actions == 2:
        _choose_among(later, costs, values, actions, n_actions, (0, 0))
    elif n_actions == 3:
        _choose_among(later, costs, values, actions, n_actions, (0, 0, 0))
    elif n_actions == 4:
        _choose_among(later, costs, values, actions, n_actions, (0, 0, 0, 0))
    elif n_actions == 5:
        _choose_among(later, costs, values, actions, n_actions, (0, 0, 0, 0, 0))
    elif n_actions == 6:
        _choose_among(later, costs, values, actions, n_actions, (0, 0, 0, 0, 0, 0))
    elif n_actions == 7:
        _choose_among(later, costs, values, actions, n_actions, (0, 0, 0, 0, 0, 0, 0))
    elif n_actions == 8:
        _choose_among(later, costs, values, actions, n_actions, (0, 0, 0, 0, 0, 0, 0, 0))
    else:
        _choose_among(later, costs, values, actions, n_actions, ())


@_inner
def _choose_among(later, costs, values, actions, n_actions, unrolled):
    """The same, for `len(unrolled)` actions, a number that the compiler knows; for `n_actions` if it is empty."""
    count = len(unrolled) if len(unrolled) > 0 else n_actions
    for j in range(values.size):
        first = uintp(j) * uintp(count)
        action, value = _cheapest_action(later, first, costs, first, count)
        values[uintp(j)] = value
        actions[uintp(j)] = np.int32(action)


@_inner
def _gather(costs, h, n, by_step, buffer):
    """The costs of step `h` for all `n` solves, side by side."""
    if by_step:
        return costs[h].reshape(-1)
    for i in range(n):
        source = costs[i, h].reshape(-1)
        target = buffer[i]
        for j in range(source.size):
            target[j] = source[j]
    return buffer.reshape(-1)


@_inner
def sort(order, keys):
    """Sort `order` by ascending `keys`; nearly sorted orders, as from the step before, are quick.

    By Shell's method: as fast here as `np.argsort`, which alone takes seconds to compile.
    """
    gap = 1
    while gap < order.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, order.size):
            item = order[i]
            key = keys[item]
            j = i
            while j >= gap and keys[order[j - gap]] > key:
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3


@_inner
def spend(lower, width, budget, order, values, out):
    """Extreme expectation `[s*a]`: spend each row's budget on the next states in `order`, up to `width` each.

    All rows of a block advance together, so that the loop over rows vectorizes; a block ends with its budgets.
    """
    _expect_one(values, lower, out)
    left = np.empty(BOX_ROWS)
    for low in range(0, out.size, BOX_ROWS):
        count = min(BOX_ROWS, out.size - low)
        for b in range(count):
            left[b] = budget[uintp(low) + uintp(b)]
        for j in range(order.size):
            y = order[j]
            value = values[y]
            room = width[y]
            for b in range(count):
                spent = min(room[uintp(low) + uintp(b)], left[b])
                out[uintp(low) + uintp(b)] += spent * value
                left[b] -= spent
            if j % 4 == 3 and not _any_left(left, count):
                break


@_inner
def _any_left(left, count):
    for b in range(count):
        if left[b] > 0.0:
            return True
    return False


def expect(rows, h, values, order, out):
    """Least expectation `[s*a]` of `values[y]` after step `h`; `order` is scratch kept between calls."""
    raise NotImplementedError("compiled code only")


@overload(expect)
def _expect(rows, h, values, order, out):
    return _EXPECT[rows.instance_class]


def _expect_dense(rows, h, values, order, out):
    _expect_one(values, rows.chances[h if rows.chances.shape[0] > 1 else 0], out)


@_inner
def _expect_one(values, chances, out):
    """`values @ chances`; small ones by a loop, since a call of the library takes longer."""
    if chances.size > SMALL:
        multiply(values, chances, out)
        return
    out[:] = 0.0
    for y in range(values.size):
        value, row = values[y], chances[y]
        for j in range(out.size):
            out[j] += value * row[j]


def _expect_sparse(rows, h, values, order, out):
    starts = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    for row in range(out.size):
        total = 0.0
        for k in range(starts[row], starts[row + 1]):
            total += rows.chances[k] * values[rows.successors[k]]
        out[row] = total


def _expect_interval(rows, h, values, order, out):
    step = h if rows.lower.shape[0] > 1 else 0
    sort(order, values)
    spend(rows.lower[step], rows.width[step], rows.budget[step], order, values, out)


_EXPECT = {DenseRows: _expect_dense, SparseRows: _expect_sparse, IntervalRows: _expect_interval}


@_entry
def expectations(rows, h, values, out):
    """`expect` for each row of `values` `[n, y]`, into `out` `[n, s*a]`."""
    order = np.arange(values.shape[1])
    for i in range(values.shape[0]):
        expect(rows, h, values[i], order, out[i])


def cheapest(rows, costs, by_step, actions, values):
    """Fill `actions` and `values` `[h, n, s]` by backward induction."""
    raise NotImplementedError("compiled code only")


@overload(cheapest)
def _cheapest(rows, costs, by_step, actions, values):
    return _CHEAPEST[rows.instance_class]


def _cheapest_dense(rows, costs, by_step, actions, values):
    steps, n, states = values.shape
    n_actions = costs.shape[3]
    if n == 1:
        _one_dense(rows, costs.reshape(-1), actions.reshape(-1), values.reshape(-1), n_actions)
        return
    width = states * n_actions
    later = np.zeros((n, width))
    buffer = np.empty((0 if by_step else n, width))
    for h in range(steps - 1, -1, -1):
        if h < steps - 1:
            multiply(values[h + 1], rows.chances[h if rows.chances.shape[0] > 1 else 0], later)
        now = _gather(costs, h, n, by_step, buffer)
        flat = (values[h].reshape(-1), actions[h].reshape(-1))
        _choose(later.reshape(-1), now, flat[0], flat[1], n_actions)


@_inner
def _one_dense(rows, costs, actions, values, n_actions):
    """One solve, its steps behind each other in flat arrays.

    All in one function: the products are so short that calls and views would cost more than they do.
    """
    chances = rows.chances
    width = chances.shape[2]
    states = width // n_actions
    later = np.zeros(width)
    for h in range(values.size // states - 1, -1, -1):
        first = uintp(h * states)
        if h < values.size // states - 1:
            _expect_one(values[(h + 1) * states : (h + 2) * states], chances[h if chances.shape[0] > 1 else 0], later)
        for s in range(states):
            row = uintp(s * n_actions)
            action, value = _cheapest_action(later, row, costs, first * uintp(n_actions) + row, n_actions)
            values[first + uintp(s)] = value
            actions[first + uintp(s)] = np.int32(action)


def _cheapest_sparse(rows, costs, by_step, actions, values):
    steps, n, states = values.shape
    if n == 1:
        _one_by_one(rows, costs, by_step, actions, values)
        return
    n_actions = costs.shape[3]
    groups = (n + LANES - 1) // LANES
    lanes = (n + groups - 1) // groups
    tile = max(1, ROW_TILE // n_actions)
    old = np.zeros((states, lanes))
    new = np.zeros((states, lanes))
    by_row = np.zeros((tile * n_actions, lanes + LINE_PADDING))
    later = np.zeros((lanes, tile * n_actions + LINE_PADDING))
    for low in range(0, n, lanes):
        high = min(n, low + lanes)
        later[:] = 0.0
        for h in range(steps - 1, -1, -1):
            _sweep_tiles(rows, h, costs, by_step, low, high, old, new, by_row, later, actions, values)
            old, new = new, old


@_inner
def _sweep_tiles(rows, h, costs, by_step, low, high, old, new, by_row, later, actions, values):
    """One step of the sparse sweep for the solves `low .. high - 1`: from values `old[y, lane]` to `new[s, lane]`."""
    steps, _, states = values.shape
    n_actions = costs.shape[3]
    tile = by_row.shape[0] // n_actions
    for first in range(0, states, tile):
        last = min(states, first + tile)
        if h < steps - 1:
            _expect_lanes(rows, h, first * n_actions, last * n_actions, old, by_row, later)
        for i in range(low, high):
            now = costs[h, i, first:last] if by_step else costs[i, h, first:last]
            found = values[h, i, first:last]
            _choose(later[i - low, : now.size], now.reshape(-1), found, actions[h, i, first:last], n_actions)
            for s in range(first, last):
                new[s, i - low] = found[s - first]


@_inner
def _expect_lanes(rows, h, first, last, values, by_row, out):
    """Expectations of `values` `[y, lane]` after the rows `first .. last - 1`, into `out` `[lane, row]`."""
    starts = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    lanes = values.shape[1]
    for row in range(first, last):
        total = by_row[row - first]
        total[:] = 0.0
        for k in range(starts[row], starts[row + 1]):
            chance = rows.chances[k]
            source = values[rows.successors[k]]
            for b in range(lanes):
                total[b] += chance * source[b]
    for b in range(lanes):
        for j in range(last - first):
            out[b, j] = by_row[j, b]


def _cheapest_interval(rows, costs, by_step, actions, values):
    _one_by_one(rows, costs, by_step, actions, values)


_CHEAPEST = {DenseRows: _cheapest_dense, SparseRows: _cheapest_sparse, IntervalRows: _cheapest_interval}


@_inner
def _one_by_one(rows, costs, by_step, actions, values):
    steps, n, states = values.shape
    n_actions = costs.shape[3]
    order = np.arange(states)
    later = np.zeros(states * n_actions)
    for i in range(n):
        later[:] = 0.0
        for h in range(steps - 1, -1, -1):
            if h < steps - 1:
                expect(rows, h, values[h + 1, i], order, later)
            now = (costs[h, i] if by_step else costs[i, h]).reshape(-1)
            _choose(later, now, values[h, i], actions[h, i], n_actions)


@_entry
def holds(actions, mass, least):
    """Whether the actions `[h, s]` are the first heaviest wherever one of `mass` `[h, s, a]` is above `least`."""
    steps, states, n_actions = mass.shape
    for h in range(steps):
        for s in range(states):
            heaviest = 0
            for a in range(1, n_actions):
                if mass[h, s, a] > mass[h, s, heaviest]:
                    heaviest = a
            if mass[h, s, heaviest] > least and actions[h, s] != heaviest:
                return False
    return True


@_entry
def induct(rows, costs, by_step, actions, values):
    """Backward induction for a batch: the entry that Python calls; whether all costs were finite."""
    cheapest(rows, costs, by_step, actions, values)
    return _sound(rows, values)


@_entry
def follow(rows, costs, by_step, wanted, slack, actions, values, shortfall):
    """Backward sweep that keeps the `wanted` actions `[h, n, s]` (-1: free choice).

    Where backward induction would choose an action that beats the wanted one by no more than `slack[n]`, that one
    takes its place: ties are settled alike for all oracles. `shortfall[n]` sums, over the steps, the largest amount
    by which the action of backward induction beats the chosen one: up to rounding, no policy is cheaper than the value
    of this one plus its (non-positive) shortfall. Returns whether all costs were finite.
    """
    steps, n, states = values.shape
    n_actions = costs.shape[3]
    order = np.arange(states)
    later = np.zeros(states * n_actions)
    for i in range(n):
        later[:] = 0.0
        shortfall[i] = 0.0
        for h in range(steps - 1, -1, -1):
            if h < steps - 1:
                expect(rows, h, values[h + 1, i], order, later)
            now = (costs[h, i] if by_step else costs[i, h]).reshape(-1)
            worst = 0.0
            for s in range(states):
                least = later[s * n_actions] + now[s * n_actions]
                met = least
                for a in range(1, n_actions):
                    q = later[s * n_actions + a] + now[s * n_actions + a]
                    met += q
                    least = q if q < least else least
                free_action = 0
                while later[s * n_actions + free_action] + now[
                    s * n_actions + free_action
                ] > least + TIE_TOLERANCE * abs(least):
                    free_action += 1
                free_value = later[s * n_actions + free_action] + now[s * n_actions + free_action]
                action = wanted[h, i, s]
                value = free_value
                if action < 0:
                    action = free_action
                else:
                    value = later[s * n_actions + action] + now[s * n_actions + action]
                    if value - free_value <= slack[i]:
                        action = free_action
                        value = free_value
                actions[h, i, s] = action
                values[h, i, s] = value + 0.0 * met
                worst = min(worst, free_value - value)
            shortfall[i] += worst
    return _sound(rows, values)


@_inner
def _sound(rows, values):
    """Whether no value is NaN. Full rows carry NaN back to the first step; sparse rows may pass it by."""
    probe = 0.0
    for h in range(values.shape[0] if passes_by(rows) else 1):
        for value in values[h].flat:
            probe += 0.0 * value
    return probe == 0.0


def passes_by(rows):
    """Whether a value may be left out of every expectation."""
    raise NotImplementedError("compiled code only")


@overload(passes_by)
def _passes_by(rows):
    return (lambda rows: True) if rows.instance_class is SparseRows else (lambda rows: False)
