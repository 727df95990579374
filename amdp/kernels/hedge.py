"""Hedge over listed policies, compiled: the steps that its Python methods and its blocks of episodes share.

Over a kernel `columns[h, s, a]` `[n]` are the chances of the listed policies to be at a pair. Over a box there is no
such table; but the greatest chance to be at a pair depends only on the actions of the steps before, and the least
losses to come on those of the steps after, so that policies which agree there share them. Sums are taken in the order
written: they come out the same wherever the compiler puts the loops.
"""

import numpy as np

from amdp.kernels.compiling import entry, inner
from amdp.kernels.paths import _pick
from amdp.kernels.policies import _extreme_reach
from amdp.kernels.soft import exponentiate
from amdp.kernels.sweeps import expect

_entry = entry()
_inner = inner()


@_entry
def exponential_weights(incurred, rate, chances):
    """Chances proportional to `exp(-rate * incurred)`, `[n]`; all of them NaN if one of the losses is."""
    least = incurred.min()  # NaN if one is
    for i in range(chances.size):
        chances[i] = -rate * (incurred[i] - least)
    exponentiate(chances, 0, chances.size, np.empty(chances.size))
    share = 1.0 / _sum(chances)
    for i in range(chances.size):
        chances[i] *= share


@_inner
def _sum(numbers):
    """The sum of all numbers, in four parts: one after the other, each addition would wait for the last."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = numbers.size - numbers.size % 4
    for i in range(0, whole, 4):
        a += numbers[i]
        b += numbers[i + 1]
        c += numbers[i + 2]
        d += numbers[i + 3]
    for i in range(whole, numbers.size):
        a += numbers[i]
    return (a + b) + (c + d)


@_entry
def accumulate(chances, below):
    """The running sums `[n]` of the chances, from which policies are drawn."""
    total = 0.0
    for i in range(chances.size):
        total += chances[i]
        below[i] = total


@_entry
def draw(below, uniforms, drawn):
    """The number of the policy that each of the uniform numbers draws."""
    for i in range(drawn.size):
        drawn[i] = _pick(below, uniforms[i])


@_inner
def mixed(chances, column):
    """The chance that a policy drawn with these chances is at the pair of a column; summed in four parts."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = chances.size - chances.size % 4
    for i in range(0, whole, 4):
        a += chances[i] * column[i]
        b += chances[i + 1] * column[i + 1]
        c += chances[i + 2] * column[i + 2]
        d += chances[i + 3] * column[i + 3]
    for i in range(whole, chances.size):
        a += chances[i] * column[i]
    return (a + b) + (c + d)


@_entry
def mixed_visits(columns, chances, out):
    """The chance `[m]` that a policy drawn with these chances is at the pair of each of `m` columns."""
    for m in range(out.size):
        out[m] = mixed(chances, columns[m])


@_inner
def add_column(column, loss, expected):
    """What a loss at the pair of a column adds to the expected loss of each policy."""
    for i in range(expected.size):
        expected[i] += column[i] * loss


@_entry
def expected_losses(columns, estimate, expected):
    """The expected loss `[n]` of each policy, for losses `[h, s, a]`."""
    expected[:] = 0.0
    for h in range(estimate.shape[0]):
        for s in range(estimate.shape[1]):
            for a in range(estimate.shape[2]):
                if estimate[h, s, a] != 0.0:  # most estimates are 0 but for one pair a step
                    add_column(columns[h, s, a], estimate[h, s, a], expected)


@_entry
def box_visits(listed, initial, steps, states, actions, columns):
    """The greatest chance `columns[m, n]`, over the kernels of a box, of each policy to be at each of `m` pairs."""
    n, _, n_states, _ = listed.policies.shape
    order, now, reach = np.arange(n_states), np.empty(n_states), np.empty(n)
    for m in range(steps.size):
        h, s, a = steps[m], states[m], actions[m]
        apart = listed.before[h]
        for i in range(apart):
            reach[i] = _extreme_reach(listed.rows, listed.policies[i], initial, h, s, -1.0, order, now)
        for i in range(n):
            columns[m, i] = reach[i % apart] if listed.actions[i, h, s] == a else 0.0


@_entry
def box_losses(listed, initial, estimate, expected):
    """The least expected loss `[n]` of each policy over the kernels of a box, for losses `[h, s, a]`.

    The values of step `h` are those of the policies with the numbers `0, before[h], 2 before[h], ...`.
    """
    n, steps, states, n_actions = listed.policies.shape
    order, later = np.arange(states), np.zeros(states * n_actions)
    values, next_values = np.empty((n, states)), np.empty((n, states))
    for h in range(steps - 1, -1, -1):
        apart = listed.before[h]
        each = listed.before[h + 1] // apart
        for j in range(n // listed.before[h + 1]):
            if h < steps - 1:
                expect(listed.rows, h, next_values[j], order, later)
            for i in range(j * each, (j + 1) * each):
                for s in range(states):
                    a = listed.actions[i * apart, h, s]
                    values[i, s] = later[s * n_actions + a] + estimate[h, s, a]
        values, next_values = next_values, values
    for i in range(n):
        expected[i] = next_values[i, initial]
