"""What prices stand for: a policy, its occupancy measure walked forward, and the gap that they prove."""

import numpy as np

from amdp.kernels.entropy import box
from amdp.kernels.entropy.common import LOG_BAND, SMALLEST_LOG, TINY, add_logs, inner
from amdp.kernels.entropy.dynamics import carry, relax
from amdp.kernels.rows import BOX


@inner
def evaluate(rows, pairs, initial, reached, known, prices, now):
    """Policy, occupancy and excess at these prices, into `now`; the gap. `known`: as for `_backward`."""
    _backward(rows, pairs, reached, known, prices, now)
    if not _walk(rows, initial, reached, now):
        _walk_in_logs(rows, initial, prices, now)
    gap = 0.0
    for h in range(prices.shape[0]):
        for s in range(prices.shape[1]):
            now.excess[h, s] = 0.0
            if reached[h, s]:
                # A chance that is lost even as a logarithm counts as the smallest number: what leaves is charged.
                log_chance = now.log_chance[h, s] if now.log_chance[h, s] != -np.inf else SMALLEST_LOG
                excess = prices[h, s] + now.total[h, s] - log_chance
                now.excess[h, s] = excess
                gap += _bregman(now.chance[h, s], log_chance, excess)
    return gap


@inner
def _backward(rows, pairs, reached, known, prices, now):
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
            total = _softmax(now.policy[h], now.log_policy[h], s * actions, (s + 1) * actions, reached[h, s])
            now.total[h, s] = total
            if known:
                there = reached[h, s] and now.log_chance[h, s] > -np.inf
                prices[h, s] = now.log_chance[h, s] - total if there else 0.0
        shift = _log_leaving(prices, now.total, reached, h)
        for s in range(states):
            if reached[h, s]:
                prices[h, s] -= shift


@inner
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


@inner
def _softmax(phi, log_policy, first, last, reached):
    """Turn the costs `phi` of one state's actions into the chances of a policy; the logarithm of their total."""
    least = np.inf
    if reached:
        for row in range(first, last):
            least = min(least, phi[row])
    if least == np.inf:
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


@inner
def _bregman(chance, log_chance, excess):
    """`d (exp(r) - 1 - r)`: a series where it would cancel; where it might overflow, `d exp(r)` at once."""
    if abs(excess) > 1.0:
        return np.exp(log_chance + excess) - chance * (1.0 + excess)
    if abs(excess) > 1e-3:
        return chance * (np.exp(excess) - 1.0 - excess)
    return chance * excess * excess * (0.5 + excess * (1.0 / 6.0 + excess * (1.0 / 24.0 + excess / 120.0)))


@inner
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
            now.log_chance[h, s] = -np.inf if chance == 0.0 else np.log(chance)
            safe = safe and (chance > TINY or not reached[h, s])
            for row in range(s * actions, (s + 1) * actions):
                now.mass[h, row] = chance * now.policy[h, row]
        if h < steps - 1:
            carry(rows, h, now.mass[h], now.chance[h + 1])
    return safe


@inner
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
        if rows.kind == BOX:
            box.carry_logs(rows.box, h, log_mass, prices[h + 1], now.log_chance[h + 1])
            continue
        while True:
            top = _highest(log_mass)
            if not -np.inf < top < np.inf:  # prices beyond all bounds leave NaN
                break
            for row in range(log_mass.size):
                mass[row] = 0.0
                if log_mass[row] >= top - LOG_BAND:  # also where a far `top` has no digits for the difference
                    mass[row] = np.exp(log_mass[row] - top)
                    log_mass[row] = -np.inf
            arrived[:] = 0.0
            carry(rows, h, mass, arrived)
            for y in range(states):
                now.log_chance[h + 1, y] = add_logs(now.log_chance[h + 1, y], top + np.log(arrived[y]))
    for h in range(steps):
        for s in range(states):
            now.chance[h, s] = np.exp(now.log_chance[h, s])
            for row in range(s * actions, (s + 1) * actions):
                now.mass[h, row] = now.chance[h, s] * now.policy[h, row]


@inner
def _highest(values):
    highest = -np.inf
    for k in range(values.size):
        highest = max(highest, values[k])
    return highest
