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

Near the answer, Newton's method for the measure `x` itself is of a higher order: its prices `v + u` have
`B' X B u = B' X (r + psi'(x))` with `X` at the masses of `x`. Such a step is taken where it halves the gap, and a step
up the dual value, which always rises, where it does not.
"""

from typing import NamedTuple

import numpy as np

from amdp.arrays import Floats
from amdp.kernels import compiling
from amdp.kernels.copies import copy
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
ROUGH_ROOT = 0.2  # the same for the prices of a start
SMALL = 1e-3  # relative differences below which a series is taken

_entry = compiling.entry(compiling.ANY_ORDER)
_inner = compiling.inner(compiling.ANY_ORDER)


class _Point(NamedTuple):
    """What prices stand for."""

    reduced: Floats  # [h, s*a], reduced costs
    alone: Floats  # [h, s*a], the mass that each pair would take
    flow: Floats  # [h, s*a], the occupancy measure of their policy
    chance: Floats  # [h, s], that of being in a state
    ratio: Floats  # [h, s], that of the flow to the masses alone, the same for all actions


class _Curvature(NamedTuple):
    """The matrix of a step, by the names that `linear_algebra` reads."""

    mass: Floats  # [h, s*a], 1 / psi''
    chance: Floats  # [h, s], its sums over the actions
    excess: Floats  # [h, s], zero: states whose mass is no number keep their prices


@_entry
def minimize(given_rows, costs, initial, reached, weights, starts, aim, enough, limit, exact, prices, logs):
    """Solve, and write prices `[h, s]` and the logarithms of the measure `[h, s*a]`.

    The gap, infinite without an answer, the steps, the objective, and the largest error of the flow.

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
    value, residual = _judge(rows, costs, initial, reached, kind, point, logs)
    return gap, steps, value, residual


@_inner
def _new_point(costs, prices):
    shape = prices.shape
    return _Point(np.zeros(costs.shape), np.zeros(costs.shape), np.zeros(costs.shape), np.zeros(shape), np.zeros(shape))


# --- one pair ---------------------------------------------------------------------------------------------------------


@_inner
def _slope(kind, mass):
    """`psi'(q)`."""
    without = -0.5 * kind.tsallis / np.sqrt(mass) - kind.barrier / mass
    return without + kind.entropy * (np.log(mass) + 1.0) if kind.entropy > 0.0 else without


@_inner
def _softness(kind, mass):
    """`1 / psi''(q)`."""
    return mass * mass / (kind.entropy * mass + 0.25 * kind.tsallis * np.sqrt(mass) + kind.barrier)


@_inner
def _mass(kind, reduced, guess, last):
    """The mass at which `psi'` is `-r`, nan where there is none.

    A `guess` above 0 may save steps, and a step below `last` ends them.
    """
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
        if not abs(step) > last:
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
        for s in range(states):
            for row in range(s * actions, (s + 1) * actions):
                point.reduced[h, row] -= prices[h, s]
                if not reached[h, s]:
                    point.reduced[h, row] = 1.0  # has a mass, which is taken away below
        if not _take(kind, h, point):
            return np.inf
        for s in range(states):
            if not reached[h, s]:
                point.alone[h, s * actions : (s + 1) * actions] = 0.0
    _walk(rows, initial, reached, point)
    return _gap(reached, kind, point)


@_inner
def _take(kind, h, point):
    """The masses of the pairs of a step at their reduced costs; whether all have one."""
    least, most = np.inf, 0.0
    if kind.entropy == 0.0:
        for row in range(point.reduced.shape[1]):  # no branch: several pairs are computed at once
            mass = _mass_without_entropy(kind, point.reduced[h, row])
            point.alone[h, row] = mass
            least = min(least, point.reduced[h, row])
            most = max(most, mass)
        return least > 0.0 and most < np.inf
    for row in range(point.reduced.shape[1]):
        mass = _mass(kind, point.reduced[h, row], point.alone[h, row], LAST_ROOT_STEP)
        if not 0.0 < mass < np.inf:
            return False
        point.alone[h, row] = mass
    return True


@_inner
def _walk(rows, initial, reached, point):
    """The occupancy of the policy that takes actions as their masses are."""
    steps, states = point.chance.shape
    actions = point.alone.shape[1] // states
    point.chance[:] = 0.0
    point.chance[0, initial] = 1.0
    for h in range(steps):
        for s in range(states):
            total = 0.0
            for row in range(s * actions, (s + 1) * actions):
                total += point.alone[h, row]
            ratio = point.chance[h, s] / total if reached[h, s] else 0.0
            point.ratio[h, s] = ratio
            for row in range(s * actions, (s + 1) * actions):
                point.flow[h, row] = ratio * point.alone[h, row]
        if h < steps - 1:
            carry(rows, h, point.flow[h], point.chance[h + 1])


@_inner
def _gap(reached, kind, point):
    """The distance of the flow from the masses of the pairs, whose ratio is one number for each state."""
    steps, states = point.chance.shape
    actions = point.alone.shape[1] // states
    gap = 0.0
    for h in range(steps):
        for s in range(states):
            if reached[h, s]:
                ratio = point.ratio[h, s]
                total, roots = 0.0, 0.0
                for row in range(s * actions, (s + 1) * actions):
                    total += point.alone[h, row]
                    roots += np.sqrt(point.alone[h, row])
                gap += kind.tsallis * roots * _distance(Weights(0.0, 1.0, 0.0), ratio, 1.0)
                if kind.entropy > 0.0 or kind.barrier > 0.0:
                    gap += _distance(Weights(kind.entropy * total, 0.0, kind.barrier * actions), ratio, 1.0)
    return gap if gap == gap else np.inf


@_inner
def _judge(rows, costs, initial, reached, kind, point, logs):
    """The objective of the flow, whose logarithms are written, and by how much flow enters a state and is lost."""
    steps, states = point.chance.shape
    actions = costs.shape[1] // states
    entering = np.zeros((steps + 1, states))
    entering[0, initial] = 1.0
    value, residual = 0.0, 0.0
    for h in range(steps):
        if h < steps - 1:
            carry(rows, h, point.flow[h], entering[h + 1])
        for s in range(states):
            for row in range(s * actions, (s + 1) * actions):
                mass = point.flow[h, row]
                logs[h, row] = np.log(mass) if mass > 0.0 else -np.inf
                entering[h, s] -= mass
                if reached[h, s]:
                    value += mass * costs[h, row] - kind.tsallis * np.sqrt(mass)
                    value += kind.entropy * mass * logs[h, row] if mass > 0.0 else 0.0
                    value -= kind.barrier * logs[h, row] if kind.barrier > 0.0 else 0.0
            residual = max(residual, abs(entering[h, s]))
    return value, residual


@_inner
def _settle(rows, pairs, reached, kind, point, prices):
    """Prices at which the pairs of each state would take about its chance together, step by step from the last."""
    steps, states = prices.shape
    actions = pairs.shape[1] // states
    for h in range(steps - 1, -1, -1):
        _relax(rows, pairs, h, prices, reached, point.reduced[h])
        for s in range(states):
            prices[h, s] = 0.0
            if reached[h, s]:
                here = slice(s * actions, (s + 1) * actions)
                target = max(point.chance[h, s], LEAST_TARGET)
                prices[h, s] = _price(kind, point.reduced[h, here], target, point.alone[h, here])


@_inner
def _price(kind, costs, target, masses):
    """The price at which actions of these costs take about the mass `target` together; `masses` are near to theirs.

    The logarithm of the sum of the masses falls, and is convex, in the distance of the price from the least cost:
    Newton's method meets the root from where the cheapest action alone would take it all. Without entropy the sum to
    the power -1/2 is nearer to a line.
    """
    least = costs.min()
    below = -_slope(kind, target)
    masses[:] = 0.0
    for _ in range(MOST_ROOT_STEPS):
        total, soft = 0.0, 0.0
        for a in range(costs.size):
            masses[a] = _mass(kind, costs[a] - least + below, masses[a], ROUGH_ROOT)
            total += masses[a]
            soft += _softness(kind, masses[a])
        above = total / target
        below += total / soft * (np.log(above) if kind.entropy > 0.0 else 2.0 * (np.sqrt(above) - 1.0))
        if not above > 1.0 + ROUGH_ROOT:
            break
    return least - below


@_inner
def _begin(rows, pairs, initial, reached, kind, starts, prices, point, trial):
    """The best of the starts, its prices and its point; the gap."""
    gap = np.inf
    if starts.shape[0] > 0:
        copy(starts[0], prices)
        gap = _evaluate(rows, pairs, initial, reached, kind, prices, point)
        if gap <= kind.entropy + kind.tsallis + kind.barrier:
            return gap
    found = np.empty(prices.shape)
    _meet_alike(reached, trial)
    _settle(rows, pairs, reached, kind, trial, found)
    _walk(rows, initial, reached, trial)
    first_gap = _gap(reached, kind, trial)
    _settle(rows, pairs, reached, kind, trial, found)
    trial_gap = _evaluate(rows, pairs, initial, reached, kind, found, trial)
    if not trial_gap <= first_gap:  # the chance of a state all but vanished
        _meet_alike(reached, trial)
        _settle(rows, pairs, reached, kind, trial, found)
        trial_gap = _evaluate(rows, pairs, initial, reached, kind, found, trial)
    if trial_gap < gap:
        gap = trial_gap
        copy(found, prices)
        _copy_point(trial, point)
    return gap


@_inner
def _meet_alike(reached, point):
    """All states of a step that can be reached have the same chance."""
    for h in range(reached.shape[0]):
        point.chance[h] = 1.0 / max(1, reached[h].sum())


@_inner
def _step_on(prices, length, step, out):
    for h in range(out.shape[0]):
        for s in range(out.shape[1]):
            out[h, s] = prices[h, s] + length * step[h, s]


@_inner
def _copy_point(source, target):
    copy(source.reduced, target.reduced)
    copy(source.alone, target.alone)
    copy(source.flow, target.flow)
    copy(source.chance, target.chance)
    copy(source.ratio, target.ratio)


# --- steps ------------------------------------------------------------------------------------------------------------


@_inner
def _climb(rows, pairs, initial, reached, kind, gap, aim, enough, limit, exact, prices, point, trial, curved):
    """Newton steps, of the measure where they halve the least gap, else up the dual value; the gap and their number."""
    steps, states = prices.shape
    slope, step, tried = np.empty(prices.shape), np.empty(prices.shape), np.empty(prices.shape)
    factored = steps if exact else 0
    blocks, couplings = np.empty((factored, states, states)), np.empty((factored, states, states))
    scratch = np.empty((max(2, states) if exact else 1, pairs.shape[1]))
    least = gap  # and not the last, which a step up the dual value may raise: so both kinds of steps cannot take turns
    for count in range(limit):
        if gap <= aim:
            return gap, count
        tried_gap = np.inf
        if gap <= kind.entropy + kind.tsallis + kind.barrier:
            _curve(kind, reached, point.flow, curved)
            _flow_right_side(rows, kind, reached, point, curved, scratch[0], step)
            _solve(rows, curved, exact, gap, blocks, couplings, scratch, step)
            _step_on(prices, 1.0, step, tried)
            tried_gap = _evaluate(rows, pairs, initial, reached, kind, tried, trial)
        if not tried_gap < LEAST_PROGRESS * least:
            _right_side(rows, initial, reached, point, slope)
            _curve(kind, reached, point.alone, curved)
            copy(slope, step)
            _solve(rows, curved, exact, gap, blocks, couplings, scratch, step)
            rise = (slope * step).sum()
            length = 1.0 if rise > 0.0 else 0.0
            while length > SHORTEST:
                _step_on(prices, length, step, tried)
                tried_gap = _evaluate(rows, pairs, initial, reached, kind, tried, trial)
                if tried_gap < np.inf and _lost(kind, reached, point, trial) <= (1.0 - RISE) * length * rise:
                    break
                length *= 0.5
            if not length > SHORTEST or (gap <= enough and not tried_gap < LEAST_PROGRESS * gap):
                return gap, count
        gap = tried_gap
        least = min(least, gap)
        copy(tried, prices)
        _copy_point(trial, point)
    return gap, limit


@_inner
def _solve(rows, curved, exact, gap, blocks, couplings, scratch, step):
    """Replace the right side `step` by the step."""
    if exact:
        exact_step(rows, curved, blocks, couplings, scratch, step)
    else:
        relative = max(1e-10, 0.1 * min(1.0, np.sqrt(gap)))
        iterated_step(rows, curved, False, relative, MOST_PRODUCTS, scratch[0], step)


@_inner
def _flow_right_side(rows, kind, reached, point, curved, scratch, out):
    """`B' X (r + psi'(x))` at the flow `x`: what is in brackets is `psi'(x) - psi'(q)`, without cancellation."""
    steps, states = out.shape
    actions = scratch.size // states
    out[:] = 0.0
    for h in range(steps):
        for s in range(states):
            ratio = point.ratio[h, s] if reached[h, s] else 1.0
            root = 0.5 * kind.tsallis * (1.0 - 1.0 / np.sqrt(ratio))
            whole = kind.barrier * (1.0 - 1.0 / ratio)
            by_log = kind.entropy * np.log1p(ratio - 1.0) if kind.entropy > 0.0 else 0.0
            for row in range(s * actions, (s + 1) * actions):
                mass = point.alone[h, row] if reached[h, s] else 1.0
                off = by_log + (root * np.sqrt(mass) + whole) / mass
                scratch[row] = curved.mass[h, row] * off
                out[h, s] += scratch[row]
        if h < steps - 1:
            for row in range(scratch.size):
                scratch[row] = -scratch[row]
            carry(rows, h, scratch, out[h + 1])
            for s in range(states):
                if not reached[h + 1, s]:
                    out[h + 1, s] = 0.0


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
def _curve(kind, reached, masses, curved):
    """The matrix of the step."""
    steps, states = curved.chance.shape
    actions = curved.mass.shape[1] // states
    for h in range(steps):
        for s in range(states):
            curved.chance[h, s] = 0.0
            for row in range(s * actions, (s + 1) * actions):
                curved.mass[h, row] = _softness(kind, masses[h, row]) if reached[h, s] else 0.0
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
