"""Newton's method for separable regularizers on the occupancy measures of one kernel, compiled.

    minimize  <q, c> + sum psi(q),     psi(q) = e q ln q - t sqrt(q) - b ln q,     not both t and b zero.

Prices `v[h, s]` have the reduced costs `r = c + P v[h+1] - v[h]`, and each pair alone would take the mass `q(r)` at
which `psi'(q) = -r`. The dual value `v[0, initial] + sum (q r + psi(q))` is concave in the prices. Its slope is what
enters a state less what leaves it, and its curvature is `B' X B` with `X = 1 / psi''(q)`: the matrix of
`amdp.kernels.entropy.linear_algebra`, at other masses. The masses of the prices, walked forward as a policy, are an
occupancy measure `x`. With `D(x, q) = psi(x) - psi(q) - psi'(q) (x - q)` for each pair,

    objective of x - dual value of v       =  sum D(x, q),
    dual value of v' - dual value of v     =  slope - sum D(q, q'),

both without cancellation: the first proves an answer, the second judges a step.
"""

from typing import NamedTuple

import numpy as np

from amdp.arrays import Floats
from amdp.kernels import compiling
from amdp.kernels.entropy.dynamics import carry, flow_rows, relax
from amdp.kernels.entropy.linear_algebra import exact_step, iterated_step
from amdp.kernels.layout import Weights

MOST_PRODUCTS = 400  # that conjugate gradients may take for one step
MOST_ROOT_STEPS = 60  # of the searches in one dimension, which end after about five
LAST_ROOT_STEP = 1e-8  # of these searches: they converge quadratically, so that no error is left after it
RISE = 1e-4  # share of the slope by which the dual value must rise
SHORTEST = 1e-12  # of a step
LEAST_PROGRESS = 0.5  # factor by which a full step lowers the gap, unless it is down to rounding
LEAST_TARGET = 1e-140  # of a state's chance: its square is still a number
WALKS = 1  # starts from the chances of the start before: more save no steps
SMALL = 1e-3  # relative differences below which a series is taken

_entry = compiling.entry(compiling.ANY_ORDER)
_inner = compiling.inner(compiling.ANY_ORDER)


class _Point(NamedTuple):
    """What prices stand for."""

    reduced: Floats  # [h, s*a], reduced costs
    alone: Floats  # [h, s*a], the mass that each pair would take
    flow: Floats  # [h, s*a], the occupancy measure of their policy
    chance: Floats  # [h, s], that of being in a state


class _Curvature(NamedTuple):
    """The matrix of a step, by the names that `linear_algebra` reads."""

    mass: Floats  # [h, s*a], 1 / psi''
    chance: Floats  # [h, s], its sums over the actions
    excess: Floats  # [h, s], zero: states whose mass is no number keep their prices


@_entry
def minimize(given_rows, costs, initial, reached, weights, starts, aim, enough, limit, exact, prices, flow):
    """Solve, and write prices `[h, s]` and measure `[h, s*a]`; the gap, infinite without an answer, and the steps.

    It ends when the gap is at most `aim`, or at most `enough` where rounding allows no less. It begins at the first of
    `starts`, if there is one whose gap is below the weights, and otherwise at prices that suit given chances.
    """
    rows = flow_rows(given_rows)
    kind = Weights(*weights)
    pairs = -costs
    point, trial = _new_point(costs, prices), _new_point(costs, prices)
    curved = _Curvature(np.empty(costs.shape), np.empty(prices.shape), np.zeros(prices.shape))
    gap = _begin(rows, pairs, initial, reached, kind, starts, prices, point, trial)
    steps = 0
    if gap < np.inf:
        gap, steps = _climb(
            rows, pairs, initial, reached, kind, gap, aim, enough, limit, exact, prices, point, trial, curved
        )
    flow[:] = point.flow
    return gap, steps


@_inner
def _new_point(costs, prices):
    return _Point(np.zeros(costs.shape), np.zeros(costs.shape), np.zeros(costs.shape), np.zeros(prices.shape))


# --- one pair ---------------------------------------------------------------------------------------------------------


@_inner
def _slope(kind, mass):
    """`psi'(q)`."""
    return kind.entropy * (np.log(mass) + 1.0) - 0.5 * kind.tsallis / np.sqrt(mass) - kind.barrier / mass


@_inner
def _softness(kind, mass):
    """`1 / psi''(q)`."""
    return mass * mass / (kind.entropy * mass + 0.25 * kind.tsallis * np.sqrt(mass) + kind.barrier)


@_inner
def _mass(kind, reduced, guess):
    """The mass at which `psi'` is `-r`, nan where there is none; a `guess` above 0 may save steps."""
    if kind.entropy == 0.0:
        return _mass_without_entropy(kind, reduced) if reduced > 0.0 else np.nan
    # Newton's method for the logarithm: `psi'` is concave in it, so that the root is met from below.
    least = -reduced / kind.entropy - 1.0
    if reduced > 0.0:
        least = max(least, min(-1.0, np.log(_mass_without_entropy(kind, reduced))))
    log_mass = max(least, np.log(guess)) if guess > 0.0 else least
    for _ in range(MOST_ROOT_STEPS):
        inverse = np.exp(-0.5 * log_mass)
        root, barrier = 0.5 * kind.tsallis * inverse, kind.barrier * inverse * inverse
        off = kind.entropy * (log_mass + 1.0) - root - barrier + reduced
        step = off / (kind.entropy + 0.5 * root + barrier)
        log_mass = max(least, log_mass - step)
        if not abs(step) > LAST_ROOT_STEP:
            break
    return np.exp(log_mass)


@_inner
def _mass_without_entropy(kind, reduced):
    """`1 / z^2` with `b z^2 + (t/2) z = r`."""
    half = 0.5 * kind.tsallis
    z = 2.0 * reduced / (half + np.sqrt(half * half + 4.0 * kind.barrier * reduced))
    return 1.0 / (z * z)


@_inner
def _distance(kind, mass, other):
    """`D(x, q) = psi(x) - psi(q) - psi'(q) (x - q)`, without cancellation."""
    off = (mass - other) / other
    result = 0.0
    if kind.tsallis > 0.0:
        apart = (mass - other) / (np.sqrt(mass) + np.sqrt(other))
        result += 0.5 * kind.tsallis * apart * apart / np.sqrt(other)
    if abs(off) < SMALL:
        square = off * off
        result += kind.barrier * square * (0.5 + off * (-1.0 / 3.0 + off * (0.25 - 0.2 * off)))
        result += kind.entropy * other * square * (0.5 + off * (-1.0 / 6.0 + off * (1.0 / 12.0 - 0.05 * off)))
        return result
    ratio = np.log(mass / other)
    if kind.barrier > 0.0:
        result += kind.barrier * (off - ratio)
    if kind.entropy > 0.0:
        result += kind.entropy * (mass * ratio - (mass - other))
    return result


# --- prices -----------------------------------------------------------------------------------------------------------


@_inner
def _relax(rows, pairs, h, prices, reached, out):
    """`c + P v[h+1]` `[s*a]`; nothing follows the last step."""
    if h < prices.shape[0] - 1:
        relax(rows, pairs, h, prices[h + 1], reached[h + 1], out)
    else:
        for row in range(out.size):
            out[row] = -pairs[h, row]


@_inner
def _evaluate(rows, pairs, initial, reached, kind, prices, point):
    """What the prices stand for; the gap, infinite where a pair has no mass at its reduced cost."""
    steps, states = prices.shape
    actions = pairs.shape[1] // states
    for h in range(steps):
        _relax(rows, pairs, h, prices, reached, point.reduced[h])
        for row in range(pairs.shape[1]):
            if reached[h, row // actions]:
                point.reduced[h, row] -= prices[h, row // actions]
                mass = _mass(kind, point.reduced[h, row], point.alone[h, row])
                if not 0.0 < mass < np.inf:
                    return np.inf
                point.alone[h, row] = mass
    return _walk(rows, initial, reached, kind, point)


@_inner
def _walk(rows, initial, reached, kind, point):
    """The occupancy of the policy, and its distance from the masses of the pairs."""
    steps, states = point.chance.shape
    actions = point.alone.shape[1] // states
    gap = 0.0
    point.chance[:] = 0.0
    point.chance[0, initial] = 1.0
    for h in range(steps):
        for s in range(states):
            total = 0.0
            for row in range(s * actions, (s + 1) * actions):
                total += point.alone[h, row]
            for row in range(s * actions, (s + 1) * actions):
                point.flow[h, row] = point.chance[h, s] * (point.alone[h, row] / total) if reached[h, s] else 0.0
                if reached[h, s]:
                    gap += _distance(kind, point.flow[h, row], point.alone[h, row])
        if h < steps - 1:
            carry(rows, h, point.flow[h], point.chance[h + 1])
    return gap if gap == gap else np.inf


@_inner
def _settle(rows, pairs, reached, kind, chance, prices, scratch):
    """Prices at which the pairs of each state would take its `chance` `[h, s]` together, step by step from the last."""
    steps, states = prices.shape
    actions = pairs.shape[1] // states
    masses = np.empty(actions)
    for h in range(steps - 1, -1, -1):
        _relax(rows, pairs, h, prices, reached, scratch)
        for s in range(states):
            prices[h, s] = 0.0
            if reached[h, s]:
                costs = scratch[s * actions : (s + 1) * actions]
                prices[h, s] = _price(kind, costs, max(chance[h, s], LEAST_TARGET), masses)


@_inner
def _price(kind, costs, target, masses):
    """The price at which actions of these costs take the mass `target` together.

    The sum of the masses falls, and is convex, in the distance of the price from the least cost: Newton's method meets
    the root from where the cheapest action alone would take it all.
    """
    least = costs.min()
    below = -_slope(kind, target)
    masses[:] = 0.0
    for _ in range(MOST_ROOT_STEPS):
        total, soft = 0.0, 0.0
        for a in range(costs.size):
            masses[a] = _mass(kind, costs[a] - least + below, masses[a])
            total += masses[a]
            soft += _softness(kind, masses[a])
        step = (total - target) / soft
        below += step
        if not step > LAST_ROOT_STEP * abs(below):
            break
    return least - below


@_inner
def _begin(rows, pairs, initial, reached, kind, starts, prices, point, trial):
    """The best of the starts, its prices and its point; the gap."""
    gap = np.inf
    if starts.shape[0] > 0:
        prices[:] = starts[0]
        gap = _evaluate(rows, pairs, initial, reached, kind, prices, point)
        if gap <= kind.entropy + kind.tsallis + kind.barrier:
            return gap
    for h in range(prices.shape[0]):
        count = max(1, reached[h].sum())
        for s in range(prices.shape[1]):
            trial.chance[h, s] = 1.0 / count
    found = np.empty(prices.shape)
    scratch = np.empty(pairs.shape[1])
    for _ in range(1 + WALKS):
        _settle(rows, pairs, reached, kind, trial.chance, found, scratch)
        trial_gap = _evaluate(rows, pairs, initial, reached, kind, found, trial)
        if trial_gap < gap:
            gap = trial_gap
            prices[:] = found
            _copy(trial, point)
        if trial_gap == np.inf:
            break
    return gap


@_inner
def _copy(source, target):
    target.reduced[:] = source.reduced
    target.alone[:] = source.alone
    target.flow[:] = source.flow
    target.chance[:] = source.chance


# --- steps ------------------------------------------------------------------------------------------------------------


@_inner
def _climb(rows, pairs, initial, reached, kind, gap, aim, enough, limit, exact, prices, point, trial, curved):
    """Newton steps up the dual value, each shortened until it rises; the gap and the number of steps."""
    steps, states = prices.shape
    slope, step, tried = np.empty(prices.shape), np.empty(prices.shape), np.empty(prices.shape)
    factored = steps if exact else 0
    blocks, couplings = np.empty((factored, states, states)), np.empty((factored, states, states))
    scratch = np.empty((max(2, states) if exact else 1, pairs.shape[1]))
    for count in range(limit):
        if gap <= aim:
            return gap, count
        _right_side(rows, initial, reached, point, slope)
        _curve(kind, reached, point, curved)
        step[:] = slope
        if exact:
            exact_step(rows, curved, blocks, couplings, scratch, step)
        else:
            iterated_step(
                rows, curved, False, max(1e-10, 0.1 * min(1.0, np.sqrt(gap))), MOST_PRODUCTS, scratch[0], step
            )
        rise = (slope * step).sum()
        length = 1.0 if rise > 0.0 else 0.0
        tried_gap = np.inf
        while length > SHORTEST:
            tried[:] = prices + length * step
            tried_gap = _evaluate(rows, pairs, initial, reached, kind, tried, trial)
            if tried_gap < np.inf and _lost(kind, reached, point, trial) <= (1.0 - RISE) * length * rise:
                break
            length *= 0.5
        if not length > SHORTEST or (gap <= enough and not tried_gap < LEAST_PROGRESS * gap):
            return gap, count
        gap = tried_gap
        prices[:] = tried
        _copy(trial, point)
    return gap, limit


@_inner
def _right_side(rows, initial, reached, point, out):
    """What enters each state less what leaves it, if each pair takes the mass that it would take alone."""
    steps, states = out.shape
    actions = point.alone.shape[1] // states
    out[:] = 0.0
    out[0, initial] = 1.0
    for h in range(steps):
        if h < steps - 1:
            carry(rows, h, point.alone[h], out[h + 1])
        for s in range(states):
            for row in range(s * actions, (s + 1) * actions):
                out[h, s] -= point.alone[h, row]
            if not reached[h, s]:
                out[h, s] = 0.0


@_inner
def _curve(kind, reached, point, curved):
    """The matrix of the step."""
    steps, states = curved.chance.shape
    actions = curved.mass.shape[1] // states
    for h in range(steps):
        for s in range(states):
            curved.chance[h, s] = 0.0
            for row in range(s * actions, (s + 1) * actions):
                curved.mass[h, row] = _softness(kind, point.alone[h, row]) if reached[h, s] else 0.0
                curved.chance[h, s] += curved.mass[h, row]


@_inner
def _lost(kind, reached, point, trial):
    """By how much the dual value rises less than its slope says."""
    actions = point.alone.shape[1] // reached.shape[1]
    total = 0.0
    for h in range(point.alone.shape[0]):
        for row in range(point.alone.shape[1]):
            if reached[h, row // actions]:
                total += _distance(kind, point.alone[h, row], trial.alone[h, row])
    return total
