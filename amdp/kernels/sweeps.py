"""Backward sweeps, compiled: `V[h,s] = min_a c[h,s,a] + (least expectation of V[h+1])[s,a]`.

Memory is step-major: values `[h, n, s]`, so that the values of one step are the operand of the next product.
Costs come as `[h, n, s*a]` (`by_step`) or as `[n, h, s*a]`. All arrays are C-contiguous.
"""

import numpy as np
from numba import njit, uintp
from numba.extending import overload

from amdp.kernels.rows import DenseRows, IntervalRows, SparseRows

LANES = 16  # solves that the sparse sweep carries side by side
BLOCK = 256  # positions whose chosen actions wait as floats: an integer store inside stops vectorization
ROWS = 64  # rows of a box whose budgets are spent side by side
UNROLLED = 8  # up to this many actions the comparison of actions is unrolled

# No reassociation: a sum is taken in one order, whatever the compiler makes of the loop around it.
_fast = njit(cache=True, error_model="numpy", fastmath={"nsz", "contract"})


def ladder(n_actions: int) -> tuple[float, ...]:
    """A tuple whose *type* tells the compiler the number of actions, or an empty one."""
    return (0.0,) * n_actions if n_actions <= UNROLLED else ()


@_fast
def _choose(later, costs, values, actions, positions, n_actions, rungs):
    """Cheapest action at each of `positions` states, first index on ties."""
    chosen = np.empty(BLOCK)
    count = len(rungs) if len(rungs) > 0 else n_actions
    for low in range(0, positions, BLOCK):
        width = min(BLOCK, positions - low)
        for j in range(width):
            # Unsigned offsets spare the test for negative indices, which would stop vectorization.
            first = (uintp(low) + uintp(j)) * uintp(count)
            best = later[first] + costs[first]
            action = 0.0
            for a in range(1, count):
                q = later[first + uintp(a)] + costs[first + uintp(a)]
                action = float(a) if q < best else action
                best = q if q < best else best
            values[uintp(low) + uintp(j)] = best
            chosen[j] = action
        for j in range(width):
            actions[uintp(low) + uintp(j)] = np.int32(chosen[j])


@_fast
def _gather(costs, h, n, by_step, buffer):
    """The costs of step `h` for all `n` solves, side by side."""
    if by_step:
        return costs[h].reshape(-1)
    for i in range(n):
        source = costs[i, h]
        target = buffer[i]
        for j in range(source.size):
            target[j] = source[j]
    return buffer.reshape(-1)


@_fast
def sort(order, keys):
    """Sort `order` by ascending `keys`; nearly sorted orders, as from the step before, are quick."""
    moves = 0
    for i in range(1, order.size):
        item = order[i]
        key = keys[item]
        j = i - 1
        while j >= 0 and keys[order[j]] > key:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item
        moves += i - 1 - j
        if moves > 8 * order.size:
            order[:] = np.argsort(keys)
            return


@_fast
def spend(lower, width, budget, order, values, out):
    """Extreme expectation `[s*a]`: spend each row's budget on the next states in `order`, up to `width` each.

    All rows of a block advance together, so that the loop over rows vectorizes; a block ends with its budgets.
    """
    np.dot(values, lower, out)
    left = np.empty(ROWS)
    for low in range(0, out.size, ROWS):
        count = min(ROWS, out.size - low)
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


@_fast
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
    np.dot(values, rows.chances[h if rows.chances.shape[0] > 1 else 0], out)


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


@_fast
def expectations(rows, h, values, out):
    """`expect` for each row of `values` `[n, y]`, into `out` `[n, s*a]`."""
    order = np.arange(values.shape[1])
    for i in range(values.shape[0]):
        expect(rows, h, values[i], order, out[i])


def cheapest(rows, costs, by_step, actions, values, rungs):
    """Fill `actions` and `values` `[h, n, s]` by backward induction."""
    raise NotImplementedError("compiled code only")


@overload(cheapest)
def _cheapest(rows, costs, by_step, actions, values, rungs):
    return _CHEAPEST[rows.instance_class]


def _cheapest_dense(rows, costs, by_step, actions, values, rungs):
    steps, n, states = values.shape
    width = costs.shape[2]
    later = np.zeros((n, width))
    buffer = np.empty((0 if by_step else n, width))
    for h in range(steps - 1, -1, -1):
        if h < steps - 1:
            chances = rows.chances[h if rows.chances.shape[0] > 1 else 0]
            if n == 1:
                np.dot(values[h + 1, 0], chances, later[0])
            else:
                np.dot(values[h + 1], chances, later)
        now = _gather(costs, h, n, by_step, buffer)
        _choose(
            later.reshape(-1), now, values[h].reshape(-1), actions[h].reshape(-1), n * states, width // states, rungs
        )


def _cheapest_sparse(rows, costs, by_step, actions, values, rungs):
    steps, n, states = values.shape
    if n == 1:
        _one_by_one(rows, costs, by_step, actions, values, rungs)
        return
    n_actions = costs.shape[2] // states
    old = np.zeros((states, LANES))
    new = np.zeros((states, LANES))
    q = np.empty(LANES)
    chosen = np.empty(LANES)
    for low in range(0, n, LANES):
        lanes = min(LANES, n - low)
        for h in range(steps - 1, -1, -1):
            starts = rows.starts[h if rows.starts.shape[0] > 1 else 0]
            for s in range(states):
                for a in range(n_actions):
                    row = s * n_actions + a
                    for b in range(lanes):
                        q[b] = costs[h, low + b, row] if by_step else costs[low + b, h, row]
                    if h < steps - 1:
                        for k in range(starts[row], starts[row + 1]):
                            chance = rows.chances[k]
                            source = old[rows.successors[k]]
                            for b in range(LANES):
                                q[b] += chance * source[b]
                    for b in range(LANES):
                        better = a == 0 or q[b] < new[s, b]
                        chosen[b] = float(a) if better else chosen[b]
                        new[s, b] = q[b] if better else new[s, b]
                for b in range(lanes):
                    values[h, low + b, s] = new[s, b]
                    actions[h, low + b, s] = np.int32(chosen[b])
            old, new = new, old


def _cheapest_interval(rows, costs, by_step, actions, values, rungs):
    _one_by_one(rows, costs, by_step, actions, values, rungs)


_CHEAPEST = {DenseRows: _cheapest_dense, SparseRows: _cheapest_sparse, IntervalRows: _cheapest_interval}


@_fast
def _one_by_one(rows, costs, by_step, actions, values, rungs):
    steps, n, states = values.shape
    width = costs.shape[2]
    order = np.arange(states)
    later = np.zeros(width)
    for i in range(n):
        later[:] = 0.0
        for h in range(steps - 1, -1, -1):
            if h < steps - 1:
                expect(rows, h, values[h + 1, i], order, later)
            now = costs[h, i] if by_step else costs[i, h]
            _choose(later, now, values[h, i], actions[h, i], states, width // states, rungs)


@_fast
def induct(rows, costs, by_step, actions, values, rungs):
    """Backward induction for a batch: the entry that Python calls."""
    cheapest(rows, costs, by_step, actions, values, rungs)


@_fast
def follow(rows, costs, by_step, wanted, slack, actions, values, shortfall):
    """Backward sweep that keeps the `wanted` actions `[h, n, s]` (-1: free choice).

    Where the first cheapest action beats the wanted one by no more than `slack[n]`, it takes its place: ties
    are settled alike for all oracles. `shortfall[n]` sums, over the steps, the largest amount by which an action
    beats the chosen one: no policy is cheaper than the value of this one plus its (non-positive) shortfall.
    """
    steps, n, states = values.shape
    width = costs.shape[2]
    n_actions = width // states
    order = np.arange(states)
    later = np.zeros(width)
    for i in range(n):
        later[:] = 0.0
        shortfall[i] = 0.0
        for h in range(steps - 1, -1, -1):
            if h < steps - 1:
                expect(rows, h, values[h + 1, i], order, later)
            now = costs[h, i] if by_step else costs[i, h]
            worst = 0.0
            for s in range(states):
                cheapest_action = 0
                best = later[s * n_actions] + now[s * n_actions]
                for a in range(1, n_actions):
                    q = later[s * n_actions + a] + now[s * n_actions + a]
                    if q < best:
                        best = q
                        cheapest_action = a
                action = wanted[h, i, s]
                value = best
                if action < 0:
                    action = cheapest_action
                else:
                    value = later[s * n_actions + action] + now[s * n_actions + action]
                    if value - best <= slack[i]:
                        action = cheapest_action
                        value = best
                actions[h, i, s] = action
                values[h, i, s] = value
                worst = min(worst, best - value)
            shortfall[i] += worst
