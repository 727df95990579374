"""All stationary policies of a node, tried side by side, compiled: one policy a lane, several lanes an instruction."""

import numpy as np
from numba import uintp

from amdp.kernels.compiling import ANY_ORDER, entry, inner
from amdp.kernels.copies import copy_first
from amdp.kernels.search.chains import pick, width
from amdp.kernels.search.state import IN_LANES

STEPS_BETWEEN_CHECKS = 8  # steps between two looks whether lanes have become stationary

_entry = entry(ANY_ORDER, nogil=True)
_inner = inner(ANY_ORDER)


@_entry
def cheapest_lane(rows, problem, allowed, order, count, lanes, ceiling, policy, work):
    """The least value below `ceiling` among all policies that `allowed` leaves at the reached states, or infinity.

    Each policy has a lane. The law of a state that is decided moves on as a whole; that of a free state is split by
    actions first. A lane ends when its law is stationary, or when its value cannot fall below the ceiling any more:
    from step `t` on it is within `moved / 2 * sum_{u > t} span(tails[u])` of its product with the tail.
    Infinity as well if there is no time left.
    """
    steps = problem.costs.shape[0]
    sources, source_pairs, chosen, chosen_from = _sources(allowed, order, count, lanes)
    starts, edges, weights = _edges(rows, order, count, sources, source_pairs)
    law = np.zeros((count + chosen.shape[0], lanes))
    new = np.zeros((count + chosen.shape[0], lanes))
    prices = np.empty(sources.size)
    total = np.zeros(lanes)
    guess = np.empty(lanes)
    moved = np.empty(lanes)
    number = np.empty(lanes, dtype=np.int64)
    best = ceiling
    winner = -1
    alive = lanes
    law[0] = 1.0
    for lane in range(lanes):
        number[lane] = lane
    for t in range(steps):
        if problem.halt[0] != 0:
            return np.inf
        _split(chosen, chosen_from, law, count, alive)
        if t % STEPS_BETWEEN_CHECKS == STEPS_BETWEEN_CHECKS - 1:
            copy_first(total, guess, alive)
            moved[:alive] = 0.0
            for j in range(sources.size):
                prices[j] = problem.tails[t, source_pairs[j]]
            _combine(guess, law, sources, prices, 0, sources.size, alive)
            for i in range(count):
                _add_distance(moved, law[i], new[i], alive)
            kept = 0
            for lane in range(alive):
                settled = moved[lane] <= problem.stop
                if settled and guess[lane] < best:
                    best = guess[lane]
                    winner = number[lane]
                if settled or guess[lane] - 0.5 * moved[lane] * problem.spans[t + 1] >= best:
                    moved[lane] = -1.0
                else:
                    kept += 1
            if kept == 0:
                alive = 0
                break
            if 4 * kept <= 3 * alive:
                alive = _compact(moved, total, number, law, chosen, count, alive)
                _split(chosen, chosen_from, law, count, alive)
        for j in range(sources.size):
            prices[j] = problem.costs[t, source_pairs[j] // allowed.shape[1], source_pairs[j] % allowed.shape[1]]
        _combine(total, law, sources, prices, 0, sources.size, alive)
        work[IN_LANES] += alive * (sources.size + edges.size)
        for y in range(count):
            new[y, :alive] = 0.0
            _combine(new[y], law, edges, weights, starts[y], starts[y + 1], alive)
        law, new = new, law
    _split(chosen, chosen_from, law, count, alive)
    for j in range(sources.size):
        prices[j] = problem.tails[steps, source_pairs[j]]
    _combine(total, law, sources, prices, 0, sources.size, alive)
    for lane in range(alive):
        if total[lane] < best:
            best = total[lane]
            winner = number[lane]
    if winner < 0:
        return np.inf
    _decode(allowed, order, count, winner, policy)
    return best


@_inner
def _combine(target, law, sources, weights, begin, end, count):
    """Add weighted rows of `law` to `target`, four at a time."""
    e = begin
    while e + 4 <= end:
        w0, w1, w2, w3 = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        r0, r1, r2, r3 = law[sources[e]], law[sources[e + 1]], law[sources[e + 2]], law[sources[e + 3]]
        for lane in range(count):
            k = uintp(lane)
            target[k] += w0 * r0[k] + w1 * r1[k] + w2 * r2[k] + w3 * r3[k]
        e += 4
    while e < end:
        w0 = weights[e]
        r0 = law[sources[e]]
        for lane in range(count):
            target[uintp(lane)] += w0 * r0[uintp(lane)]
        e += 1


@_inner
def _split(chosen, chosen_from, law, count, alive):
    """Split the law of each free state by actions: behind the `count` laws of states."""
    for q in range(chosen.shape[0]):
        choice, source, out = chosen[q], law[chosen_from[q]], law[count + q]
        for lane in range(alive):
            out[uintp(lane)] = choice[uintp(lane)] * source[uintp(lane)]


@_inner
def _add_distance(total, first, second, count):
    for lane in range(count):
        total[uintp(lane)] += abs(first[uintp(lane)] - second[uintp(lane)])


@_inner
def _compact(moved, total, number, law, chosen, count, alive):
    """Close the gaps that ended lanes left; how many are alive."""
    kept = 0
    for lane in range(alive):
        if moved[lane] >= 0.0:
            if kept < lane:
                total[kept] = total[lane]
                number[kept] = number[lane]
                for i in range(count):
                    law[i, kept] = law[i, lane]
                for q in range(chosen.shape[0]):
                    chosen[q, kept] = chosen[q, lane]
            kept += 1
    return kept


@_inner
def _sources(allowed, order, count, lanes):
    """Where mass moves from: the row of each source, its pair, and for free states the lanes `[pair, lane]` of each."""
    n_actions = allowed.shape[1]
    size = 0
    split = 0
    for i in range(count):
        wide = width(allowed, order[i])
        size += wide
        split += wide if wide > 1 else 0
    sources = np.empty(size, dtype=np.int64)
    pairs = np.empty(size, dtype=np.int64)
    chosen = np.zeros((split, lanes))
    chosen_from = np.empty(split, dtype=np.int64)
    repeat = 1
    j = 0
    q = 0
    for i in range(count):
        wide = width(allowed, order[i])
        action_number = 0
        for a in range(n_actions):
            if allowed[order[i], a]:
                sources[j] = i
                pairs[j] = order[i] * n_actions + a
                if wide > 1:
                    sources[j] = count + q
                    chosen_from[q] = i
                    for lane in range(lanes):
                        if (lane // repeat) % wide == action_number:
                            chosen[q, lane] = 1.0
                    q += 1
                action_number += 1
                j += 1
        repeat *= wide
    return sources, pairs, chosen, chosen_from


@_inner
def _edges(rows, order, count, sources, pairs):
    """The moves into each reached state: from which source, with which chance.

    States that come within reach after the last step only are left out: no law gets there.
    """
    place = np.empty(order.size, dtype=np.int64)
    place[:] = -1
    for i in range(count):
        place[order[i]] = i
    starts = np.zeros(count + 1, dtype=np.int64)
    for j in range(pairs.size):
        for k in range(rows.starts[0, pairs[j]], rows.starts[0, pairs[j] + 1]):
            if place[rows.successors[k]] >= 0:
                starts[place[rows.successors[k]] + 1] += 1
    for i in range(count):
        starts[i + 1] += starts[i]
    filled = np.empty(count, dtype=np.int64)
    copy_first(starts, filled, count)
    edges = np.empty(starts[count], dtype=np.int64)
    weights = np.empty(starts[count])
    for j in range(pairs.size):
        for k in range(rows.starts[0, pairs[j]], rows.starts[0, pairs[j] + 1]):
            y = place[rows.successors[k]]
            if y >= 0:
                edges[filled[y]] = sources[j]
                weights[filled[y]] = rows.chances[k]
                filled[y] += 1
    return starts, edges, weights


@_inner
def _decode(allowed, order, count, number, policy):
    """The actions of lane `number`, counted over the allowed actions of the reached states; 0 elsewhere."""
    policy[:] = 0
    for i in range(count):
        wide = width(allowed, order[i])
        pick(allowed, order[i], number % wide, policy)
        number //= wide
