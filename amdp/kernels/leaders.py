"""Leaders of perturbed costs, WIDTH of them side by side: noise and backward sweep in one pass over the states.

The costs of a tile of states are made when the sweep comes to it, as `[action, state, leader]`. Costs and values do
not leave the nearest caches, and every loop runs over leaders that lie side by side in memory. Noise is drawn from the
last step to the first, for the states that can be reached, and for WIDTH leaders even if fewer are asked for.
"""

import numpy as np
from numba import uintp
from numba.extending import overload

from amdp.kernels.compiling import FUSED, entry, inner, merged
from amdp.kernels.layout import WIDTH
from amdp.kernels.noise import BLOCK, advance, laplace, rounded_up
from amdp.kernels.rows import FullRows, IntervalRows, SparseRows
from amdp.kernels.sweeps import TIE_TOLERANCE, expect

_entry = entry(FUSED)
_inner = inner(FUSED)
_merged = merged(FUSED)


@_inner
def tile_size(n_actions):
    """States whose costs are made together: one block of noise, if the actions are few."""
    return max(1, 2 * BLOCK // (n_actions * WIDTH))


@_entry
def perturbed(lanes, scale, center, reached, out):
    """`out[n, h, s, a] = center[h, s, a]` plus the Laplace noise that `find_leaders` would add for its leaders."""
    n, steps, states, n_actions = out.shape
    for i in range(n):  # by loops, whatever its order in memory
        for h in range(steps):
            for s in range(states):
                for a in range(n_actions):
                    out[i, h, s, a] = center[h, s, a]
    tile = tile_size(n_actions)
    costs = np.empty(tile * n_actions * WIDTH)
    words = np.empty(rounded_up(tile * n_actions * WIDTH), np.uint64)
    for low in range(0, n, WIDTH):
        for h in range(steps - 1, -1, -1):
            for at in range(reached.first[h], reached.first[h + 1], tile):
                listed = reached.states[at : min(at + tile, reached.first[h + 1])]
                _perturb(lanes, scale, center, h, listed, costs, words)
                for k in range(listed.size):
                    for a in range(n_actions):
                        for i in range(low, min(low + WIDTH, n)):
                            out[i, h, listed[k], a] = costs[(a * listed.size + k) * WIDTH + i - low]


@_merged
def _perturb(lanes, scale, center, h, listed, costs, words):
    """Costs `[a, k, leader]` of step `h` in the `listed` states: `center` plus noise of mean absolute value `scale`."""
    n_actions = center.shape[2]
    for a in range(n_actions):
        for k in range(listed.size):
            at = uintp((a * listed.size + k) * WIDTH)
            shift = center[h, listed[k], a]
            for b in range(WIDTH):
                costs[at + uintp(b)] = shift
    count = listed.size * n_actions * WIDTH
    advance(lanes, words, rounded_up(count))
    for i in range(count):
        costs[i] += scale * laplace(words[i])


@_inner
def find_leaders(rows, reached, lanes, scale, center, n, actions):
    """The cheapest `actions[h, s, i]` of `n` leaders in the reached states, the numbers rounded up to WIDTH.

    Returns whether all costs were finite.
    """
    steps, states, n_actions = center.shape
    tile = min(states, tile_size(n_actions))
    costs = np.empty(tile * n_actions * WIDTH)
    words = np.empty(rounded_up(tile * n_actions * WIDTH), np.uint64)
    chosen, best, probe = np.empty(tile * WIDTH), np.empty(tile * WIDTH), np.zeros(tile * WIDTH)
    padded = (states + 3) // 4 * 4
    old, new = np.zeros(padded * WIDTH), np.zeros(padded * WIDTH)
    places = actions.reshape(-1)
    space = step_space(rows, states, n_actions)
    for low in range(0, n, WIDTH):
        for h in range(steps - 1, -1, -1):
            if h < steps - 1:
                expect_step(rows, h, min(WIDTH, n - low), old, space)
            for at in range(reached.first[h], reached.first[h + 1], tile):
                listed = reached.states[at : min(at + tile, reached.first[h + 1])]
                _perturb(lanes, scale, center, h, listed, costs, words)
                if h < steps - 1:
                    add_expected(rows, h, n_actions, listed, old, space, costs)
                _choose(costs, n_actions, listed.size * WIDTH, chosen, best, probe)
                _keep(listed, chosen, best, new, places, h * states, actions.shape[2], low)
            old, new = new, old
    return probe.sum() == 0.0


@_merged
def _choose(costs, n_actions, width, chosen, best, probe):
    """The cheapest of the actions at each of `width` positions, by a loop that is unrolled for the usual numbers."""
    if n_actions == 2:
        _choose_among(costs, n_actions, width, chosen, best, probe, (0, 0))
    elif n_actions == 3:
        _choose_among(costs, n_actions, width, chosen, best, probe, (0, 0, 0))
    elif n_actions == 4:
        _choose_among(costs, n_actions, width, chosen, best, probe, (0, 0, 0, 0))
    elif n_actions == 5:
        _choose_among(costs, n_actions, width, chosen, best, probe, (0, 0, 0, 0, 0))
    elif n_actions == 6:
        _choose_among(costs, n_actions, width, chosen, best, probe, (0, 0, 0, 0, 0, 0))
    elif n_actions == 8:
        _choose_among(costs, n_actions, width, chosen, best, probe, (0, 0, 0, 0, 0, 0, 0, 0))
    else:
        _choose_among(costs, n_actions, width, chosen, best, probe, ())


@_merged
def _choose_among(costs, n_actions, width, chosen, best, probe, unrolled):
    """The same, for `len(unrolled)` actions, a number that the compiler knows; for `n_actions` if it is empty.

    The first action that costs no more than rounding above the least is chosen. `probe` is not finite afterwards if a
    cost was not.
    """
    count = len(unrolled) if len(unrolled) > 0 else n_actions
    plane = uintp(width)
    for j in range(width):
        at = uintp(j)
        least = costs[at]
        met = least
        for a in range(1, count):
            cost = costs[at + uintp(a) * plane]
            met += cost
            least = cost if cost < least else least
        ceiling = least + TIE_TOLERANCE * abs(least)
        action = 0.0
        value = least
        for below in range(count):
            a = count - 1 - below
            cost = costs[at + uintp(a) * plane]
            is_least = cost <= ceiling
            action = float(a) if is_least else action
            value = cost if is_least else value
        chosen[at] = action
        best[at] = value
        probe[at] += 0.0 * met


@_merged
def _keep(listed, chosen, best, values, actions, first, n, low):
    """Write what was chosen in a tile to `values[s, leader]` and `actions[first + s, low + leader]`, of rows of `n`."""
    for k in range(listed.size):
        source = uintp(k * WIDTH)
        to, action = uintp(listed[k] * WIDTH), uintp((first + listed[k]) * n + low)
        for b in range(WIDTH):
            values[to + uintp(b)] = best[source + uintp(b)]
        for b in range(WIDTH):
            actions[action + uintp(b)] = np.int32(chosen[source + uintp(b)])


# --- expectations -----------------------------------------------------------------------------------------------------


def step_space(rows, states, n_actions):
    """Memory in which `expect_step` leaves the expectations of a step, if the rows need it; otherwise None."""
    raise NotImplementedError("compiled code only")


@overload(step_space)
def _step_space(rows, states, n_actions):
    if rows.instance_class is IntervalRows:
        return lambda rows, states, n_actions: (
            np.zeros(states * n_actions * WIDTH),
            np.arange(WIDTH * states) % states,
        )
    return lambda rows, states, n_actions: None


def expect_step(rows, h, count, values, space):
    """What is found for all rows of a step at once: over a box, the least expectations of the first `count` leaders."""
    raise NotImplementedError("compiled code only")


@overload(expect_step)
def _expect_step(rows, h, count, values, space):
    return _expect_step_interval if rows.instance_class is IntervalRows else lambda rows, h, count, values, space: None


def _expect_step_interval(rows, h, count, values, space):
    expected, orders = space
    states = orders.size // WIDTH
    later, out = np.empty(states), np.empty(expected.size // WIDTH)
    for b in range(count):
        for y in range(states):
            later[y] = values[y * WIDTH + b]
        expect(rows, h, later, orders[b * states : (b + 1) * states], out)
        for row in range(out.size):
            expected[row * WIDTH + b] = out[row]


def add_expected(rows, h, n_actions, listed, values, space, costs):
    """Add the expectations of `values` `[y, leader]` after step `h` to `costs` `[a, k, leader]`."""
    raise NotImplementedError("compiled code only")


@overload(add_expected)
def _add_expected(rows, h, n_actions, listed, values, space, costs):
    return _ADD_EXPECTED[rows.instance_class]


def _add_expected_full(rows, h, n_actions, listed, values, space, costs):
    chances, length = rows.chances.reshape(-1), rows.chances.shape[2]
    step = h * rows.chances.shape[1] if rows.chances.shape[0] > 1 else 0
    plane = uintp(listed.size * WIDTH)
    for k in range(listed.size):
        for a in range(0, n_actions, 2):
            row, at = uintp((step + listed[k] * n_actions + a) * length), uintp((a * listed.size + k) * WIDTH)
            if a + 1 < n_actions:
                _add_two_rows(chances, row, length, values, costs, at, at + plane)
            else:
                _add_row(chances, row, length, values, costs, at)


@_merged
def _add_two_rows(chances, p, length, values, costs, here, there):
    """Four next states at a time, so that sums do not wait for each other; the rows of two actions share the loads."""
    q = p + uintp(length)
    for y in range(0, length, 4):
        y0, y1, y2, y3 = uintp(y), uintp(y + 1), uintp(y + 2), uintp(y + 3)
        p0, p1, p2, p3 = chances[p + y0], chances[p + y1], chances[p + y2], chances[p + y3]
        q0, q1, q2, q3 = chances[q + y0], chances[q + y1], chances[q + y2], chances[q + y3]
        first = uintp(y * WIDTH)
        for j in range(WIDTH):
            b = uintp(j)
            v0, v1 = values[first + b], values[first + uintp(WIDTH) + b]
            v2, v3 = values[first + uintp(2 * WIDTH) + b], values[first + uintp(3 * WIDTH) + b]
            costs[here + b] += p0 * v0 + p1 * v1 + p2 * v2 + p3 * v3
            costs[there + b] += q0 * v0 + q1 * v1 + q2 * v2 + q3 * v3


@_merged
def _add_row(chances, p, length, values, costs, here):
    """The same for one row."""
    for y in range(0, length, 4):
        y0, y1, y2, y3 = uintp(y), uintp(y + 1), uintp(y + 2), uintp(y + 3)
        p0, p1, p2, p3 = chances[p + y0], chances[p + y1], chances[p + y2], chances[p + y3]
        first = uintp(y * WIDTH)
        for j in range(WIDTH):
            b = uintp(j)
            v0, v1 = values[first + b], values[first + uintp(WIDTH) + b]
            v2, v3 = values[first + uintp(2 * WIDTH) + b], values[first + uintp(3 * WIDTH) + b]
            costs[here + b] += p0 * v0 + p1 * v1 + p2 * v2 + p3 * v3


def _add_expected_sparse(rows, h, n_actions, listed, values, space, costs):
    starts = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    for k in range(listed.size):
        for a in range(n_actions):
            at = uintp((a * listed.size + k) * WIDTH)
            row = listed[k] * n_actions + a
            for move in range(starts[row], starts[row + 1]):
                chance = rows.chances[move]
                source = uintp(rows.successors[move] * WIDTH)
                for b in range(WIDTH):
                    costs[at + uintp(b)] += chance * values[source + uintp(b)]


def _add_expected_interval(rows, h, n_actions, listed, values, space, costs):
    expected, _ = space
    for k in range(listed.size):
        for a in range(n_actions):
            at = uintp((a * listed.size + k) * WIDTH)
            source = uintp((listed[k] * n_actions + a) * WIDTH)
            for b in range(WIDTH):
                costs[at + uintp(b)] += expected[source + uintp(b)]


_ADD_EXPECTED = {
    FullRows: _add_expected_full,
    SparseRows: _add_expected_sparse,
    IntervalRows: _add_expected_interval,
}
