"""The soft backward sweep, compiled, and the visit chances of the policy that it finds.

    Q[h] = L[h] + least expectation of V[h+1],    V[h,s] = -(1/rate) ln((1/A) sum_a exp(-rate Q[h,s,a])),
    policy[h,s,a] proportional to exp(-rate Q[h,s,a]).

The least of a row is subtracted before anything is exponentiated. At rate 0 the value is the mean of a row, and the
policy is uniform. All arrays are C-contiguous.
"""

from math import factorial

import numpy as np
from numba import literal_unroll, uint64, uintp
from numba.extending import overload

from amdp.kernels.compiling import FUSED, entry, merged
from amdp.kernels.products import multiply
from amdp.kernels.rows import DenseRows, SparseRows
from amdp.kernels.sweeps import expect

NARROW = 0.1  # a row whose `rate Q` differ by less is summed as `expm1`: the logarithm of a number near 1 loses digits
SMALLEST = -708.0  # the exponential of less is taken for 0

_ONE = np.uint64(0x3FF0000000000000)  # the bits of 1.0
_ROUNDS = 6755399441055744.0  # 1.5 * 2^52: added to a small number it leaves the nearest whole one in the lowest bits
_LOG2_E = 1.4426950408889634
_LN_2_HIGH = 0.6931471803691238  # its product with a whole number below 2^20 is exact
_LN_2_LOW = 1.9082149292705877e-10
_FACTORIALS = tuple(1.0 / factorial(n) for n in range(13, -1, -1))  # the series of the exponential, last term first
_FEW_FACTORIALS = tuple(1.0 / factorial(n) for n in range(10, 0, -1))  # that of expm1(x) / x, for |x| <= 0.11

_entry = entry(FUSED)
_merged = merged(FUSED)


@_entry
def sweep(rows, total, rate, policy, values):
    """Fill the policy `[h, s, a]` and the values `[h, s]` for the sums of losses `total` `[h, s, a]`."""
    steps, states, n_actions = total.shape
    width = states * n_actions
    order, later, scratch = np.arange(states), np.zeros(width), np.empty(width)
    flat_total, flat_policy, flat_values = total.reshape(-1), policy.reshape(-1), values.reshape(-1)
    for h in range(steps - 1, -1, -1):
        if h < steps - 1:
            expect(rows, h, values[h + 1], order, later)
        _choose(
            flat_total, h * width, later, rate, flat_policy, h * width, flat_values, h * states, states, n_actions,
            scratch,
        )  # fmt: skip


@_entry
def value(rows, total, rate, initial):
    """The value of `sweep` at the initial state alone."""
    steps, states, n_actions = total.shape
    width = states * n_actions
    order, later, chances, scratch = np.arange(states), np.zeros(width), np.empty(width), np.empty(width)
    flat_total, values = total.reshape(-1), np.empty(states)
    for h in range(steps - 1, -1, -1):
        if h < steps - 1:
            expect(rows, h, values, order, later)
        _choose(flat_total, h * width, later, rate, chances, 0, values, 0, states, n_actions, scratch)
    return values[initial]


@_merged
def _choose(total, now, later, rate, policy, to, values, at, states, n_actions, scratch):
    """The soft minima of `total[now...] + later`, written from `values[at]` on, and the chances, from `policy[to]` on.

    The arrays hold all steps: views of one step would take longer than the arithmetic of small worlds.
    """
    now, to, at = uintp(now), uintp(to), uintp(at)
    for s in range(states):
        row = uintp(s * n_actions)
        least = total[now + row] + later[row]
        for a in range(1, n_actions):
            i = row + uintp(a)
            cost = total[now + i] + later[i]
            least = cost if cost < least else least
        for a in range(n_actions):
            i = row + uintp(a)
            policy[to + i] = -rate * (total[now + i] + later[i] - least)
        values[at + uintp(s)] = least
    exponentiate(policy, to, states * n_actions, scratch)
    for s in range(states):
        row = uintp(s * n_actions)
        weight = 0.0
        lightest = 1.0
        for a in range(n_actions):
            weight += policy[to + row + uintp(a)]
            lightest = min(lightest, policy[to + row + uintp(a)])
        if lightest > 1.0 - NARROW:
            values[at + uintp(s)] = _narrow(total, now + row, later, row, n_actions, values[at + uintp(s)], rate)
        else:
            values[at + uintp(s)] -= np.log(weight / n_actions) / rate
        share = 1.0 / weight
        for a in range(n_actions):
            policy[to + row + uintp(a)] *= share


@_merged
def exponentiate(numbers, first, count, scratch):
    """`exp(x)` of `count` numbers `x <= 0` from the `first` on, in place; `scratch` has room for as many.

    It is `2^n exp(r)` with `|r| <= ln(2)/2`, in loops that vectorize.
    """
    bits, to = scratch.view(np.uint64), uintp(first)
    for j in range(count):
        i = to + uintp(j)
        x = numbers[i] if numbers[i] > SMALLEST else SMALLEST
        scratch[uintp(j)] = x * _LOG2_E + _ROUNDS
        n = scratch[uintp(j)] - _ROUNDS
        r = (x - n * _LN_2_HIGH) - n * _LN_2_LOW
        series = 0.0
        for coefficient in literal_unroll(_FACTORIALS):
            series = series * r + coefficient
        numbers[i] = series if numbers[i] > SMALLEST else 0.0
    for j in range(count):
        bits[uintp(j)] = (bits[uintp(j)] << uint64(52)) + _ONE  # of 2^n
    for j in range(count):
        numbers[to + uintp(j)] *= scratch[uintp(j)]


@_merged
def _narrow(total, now, later, row, n_actions, least, rate):
    """The soft minimum of a row whose costs differ little: `least - log1p(mean of expm1(-rate (Q - least))) / rate`."""
    summed = 0.0
    above = 0.0
    for j in range(n_actions):
        more = total[now + uintp(j)] + later[row + uintp(j)] - least
        above += more
        x = -rate * more
        series = 0.0
        for coefficient in literal_unroll(_FEW_FACTORIALS):
            series = series * x + coefficient
        summed += x * series
    if above == 0.0 or rate == 0.0:
        return least + above / n_actions
    return least - np.log1p(summed / n_actions) / rate


# --- what an adaptive rate asks for -----------------------------------------------------------------------------------


@_entry
def estimated_loss(losses, weights, gamma):
    """What the policy of a round pays under its estimate: the sum of `losses (1 - gamma weights)`."""
    total = 0.0
    for h in range(losses.size):
        total += losses[h] * (1.0 - gamma * weights[h])
    return total


@_entry
def paid(measure, table):
    """The sum of the products of two tables."""
    total = 0.0
    for h in range(table.shape[0]):
        for s in range(table.shape[1]):
            for a in range(table.shape[2]):
                total += measure[h, s, a] * table[h, s, a]
    return total


@_entry
def occupancy(rows, policy, initial, out):
    """The occupancy measure `[h, s, a]` of a policy over one kernel."""
    steps, states, n_actions = policy.shape
    at = np.zeros(states)
    at[initial] = 1.0
    for h in range(steps):
        for s in range(states):
            for a in range(n_actions):
                out[h, s, a] = at[s] * policy[h, s, a]
        if h + 1 < steps:
            move(rows, h, out[h].reshape(-1), at)


# --- visit chances ----------------------------------------------------------------------------------------------------


@_entry
def visit_chances(rows, policy, initial, steps, states, actions, out):
    """The chance `[m]` that a policy `[h, s, a]` is at each pair, over one kernel; `steps` ascend."""
    n_states, n_actions = policy.shape[1:]
    at = np.zeros(n_states)
    at[initial] = 1.0
    mass = np.empty(n_states * n_actions)
    h = 0
    for m in range(steps.size):
        while h < steps[m]:
            for s in range(n_states):
                for a in range(n_actions):
                    mass[s * n_actions + a] = at[s] * policy[h, s, a]
            move(rows, h, mass, at)
            h += 1
        out[m] = at[states[m]] * policy[h, states[m], actions[m]]


def move(rows, h, mass, at):
    """The chance `at` `[y]` of each state after step `h`, for the chances `mass` `[s*a]` of the pairs."""
    raise NotImplementedError("compiled code only")


@overload(move)
def _move(rows, h, mass, at):
    return _MOVE[rows.instance_class]


def _move_dense(rows, h, mass, at):
    multiply(mass, rows.chances[h if rows.chances.shape[0] > 1 else 0].T, at)


def _move_sparse(rows, h, mass, at):
    starts = rows.starts[h if rows.starts.shape[0] > 1 else 0]
    at[:] = 0.0
    for row in range(mass.size):
        if mass[row] > 0.0:
            for k in range(starts[row], starts[row + 1]):
                at[rows.successors[k]] += rows.chances[k] * mass[row]


_MOVE = {DenseRows: _move_dense, SparseRows: _move_sparse}
