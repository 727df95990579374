"""Chains of stationary policies, compiled: reach, exact values, ties, single-state search, all policies in lanes.

The kernel comes as `SparseRows` with one step, the costs as a `Problem`: `tails[t] = sum_{u >= t} c[u]`.
A chain whose law moves by no more than `stop` in a step is taken as stationary: the rest is one product with the tail.
The steps of the law never grow, so this errs by at most `stop / 2 * sum_t span(tails[t])`.
"""

import numpy as np
from numba import njit, uintp

LANES = 256  # policies that are evaluated side by side: their laws stay in the cache
PATIENCE = 8  # steps between two looks whether lanes have become stationary

# Sums of a row may be taken in any order: the compiler then adds several entries at once.
_fast = njit(cache=True, error_model="numpy", fastmath={"nsz", "contract", "reassoc"})
_inlined = njit(cache=True, error_model="numpy", fastmath={"nsz", "contract", "reassoc"}, forceinline=True)


@_inlined
def expected(rows, row, values):
    """Expected value of the next state after a row; full rows are read without their successors."""
    first = rows.starts[0, row]
    last = rows.starts[0, row + 1]
    if last == first:
        return 0.0
    total = 0.0
    low = np.int64(rows.successors[first])
    if rows.successors[last - 1] - low == last - 1 - first:
        for k in range(last - first):
            total += rows.chances[uintp(first) + uintp(k)] * values[uintp(low) + uintp(k)]
    else:
        for k in range(first, last):
            total += rows.chances[k] * values[rows.successors[k]]
    return total


@_inlined
def spread(rows, row, mass, law):
    """Add `mass` times a row to a law."""
    first = rows.starts[0, row]
    last = rows.starts[0, row + 1]
    if last == first:
        return
    low = np.int64(rows.successors[first])
    if rows.successors[last - 1] - low == last - 1 - first:
        for k in range(last - first):
            law[uintp(low) + uintp(k)] += mass * rows.chances[uintp(first) + uintp(k)]
    else:
        for k in range(first, last):
            law[rows.successors[k]] += mass * rows.chances[k]


@_fast
def reached(rows, allowed, initial, steps, order):
    """The states that allowed pairs lead to in fewer than `steps` moves, breadth first in `order`; how many."""
    states, n_actions = allowed.shape
    seen = np.zeros(states, dtype=np.bool_)
    seen[initial] = True
    order[0] = initial
    count = 1
    low = 0
    for _ in range(steps - 1):
        high = count
        for i in range(low, high):
            s = order[i]
            for a in range(n_actions):
                if allowed[s, a]:
                    for k in range(rows.starts[0, s * n_actions + a], rows.starts[0, s * n_actions + a + 1]):
                        y = rows.successors[k]
                        if not seen[y]:
                            seen[y] = True
                            order[count] = y
                            count += 1
        if count == high:
            break
        low = high
    return count


@_fast
def only(allowed, policy):
    """Set `allowed` to a single policy."""
    allowed[:] = False
    for s in range(policy.size):
        allowed[s, policy[s]] = True


@_fast
def add_up(costs, tails, spans):
    """Fill `tails` `[t + 1, s * a]` and `spans` `[t + 2]` from the last step back."""
    steps, states, n_actions = costs.shape
    for p in range(states * n_actions):
        tails[steps, p] = 0.0
    spans[steps + 1] = 0.0
    spans[steps] = 0.0
    for t in range(steps - 1, -1, -1):
        low = np.inf
        high = -np.inf
        for s in range(states):
            for a in range(n_actions):
                p = s * n_actions + a
                tails[t, p] = tails[t + 1, p] + costs[t, s, a]
                low = min(low, tails[t, p])
                high = max(high, tails[t, p])
        spans[t] = spans[t + 1] + high - low


@_fast
def value(rows, problem, policy):
    """The cost of one policy over all steps."""
    steps, states, n_actions = problem.costs.shape
    law = np.zeros(states)
    law[problem.initial] = 1.0
    new = np.empty(states)
    total = 0.0
    for t in range(steps):
        for s in range(states):
            total += law[s] * problem.costs[t, s, policy[s]]
        if t == steps - 1:
            break
        new[:] = 0.0
        for s in range(states):
            if law[s] > 0.0:
                spread(rows, s * n_actions + policy[s], law[s], new)
        moved = 0.0
        for s in range(states):
            moved += abs(new[s] - law[s])
        law, new = new, law
        if moved <= problem.stop:
            for s in range(states):
                total += law[s] * problem.tails[t + 1, s * n_actions + policy[s]]
            break
    return total


@_fast
def occupy(rows, n_actions, policies, initial, stop, laws):
    """The laws `[s, n, t]` of policies `[n, s]` (-1: never there); the step `[n]` from which each stays as it is.

    That step is the room where a law moves until there is none left. Laws are filled up to the latest of these steps.
    """
    states, n, room = laws.shape
    law = np.empty(states)
    new = np.empty(states)
    ends = np.empty(n, dtype=np.int64)
    longest = 0
    for i in range(n):
        law[:] = 0.0
        law[initial] = 1.0
        ends[i] = room
        for t in range(room):
            for s in range(states):
                laws[s, i, t] = law[s]
            if ends[i] == t:
                break
            new[:] = 0.0
            for s in range(states):
                if law[s] > 0.0 and policies[i, s] >= 0:
                    spread(rows, s * n_actions + policies[i, s], law[s], new)
            moved = 0.0
            for s in range(states):
                moved += abs(new[s] - law[s])
            law, new = new, law
            if moved <= stop and t + 1 < room:
                ends[i] = t + 1
        longest = max(longest, ends[i])
    for i in range(n):
        for t in range(ends[i] + 1, min(room, longest + 1)):
            for s in range(states):
                laws[s, i, t] = laws[s, i, ends[i]]
    return ends


@_fast
def costs_to_go(rows, costs, policy, values):
    """Fill `values` `[t, s]` with the cost still to come under one policy."""
    steps, states, n_actions = costs.shape
    for t in range(steps - 1, -1, -1):
        for s in range(states):
            later = expected(rows, s * n_actions + policy[s], values[t + 1]) if t < steps - 1 else 0.0
            values[t, s] = costs[t, s, policy[s]] + later


@_fast
def settle(rows, problem, policy, tie):
    """Action 0 where the policy never comes; elsewhere the first action that costs at most `tie` more."""
    states, n_actions = problem.costs.shape[1:]
    allowed = np.zeros((states, n_actions), dtype=np.bool_)
    order = np.empty(states, dtype=np.int64)
    comes = np.empty(states, dtype=np.bool_)
    ceiling = value(rows, problem, policy) + tie
    _forget_unreached(rows, problem, policy, allowed, order, comes)
    changed = True
    while changed:
        changed = False
        for s in range(states):
            kept = policy[s]
            for a in range(kept if comes[s] else 0):
                policy[s] = a
                if value(rows, problem, policy) <= ceiling:
                    changed = True
                    # The next state must be tried with the states to which the new action leads.
                    _forget_unreached(rows, problem, policy, allowed, order, comes)
                    break
                policy[s] = kept


@_fast
def _forget_unreached(rows, problem, policy, allowed, order, comes):
    """Mark the states to which a policy comes, and set it to action 0 elsewhere."""
    only(allowed, policy)
    count = reached(rows, allowed, problem.initial, problem.costs.shape[0], order)
    comes[:] = False
    for i in range(count):
        comes[order[i]] = True
    for s in range(policy.size):
        if not comes[s]:
            policy[s] = 0


@_fast
def descend(rows, problem, allowed, policy):
    """Change one state at a time as long as that is cheaper; the value that is reached."""
    steps, states, n_actions = problem.costs.shape
    chosen = np.zeros((states, n_actions), dtype=np.bool_)
    order = np.empty(states, dtype=np.int64)
    best = value(rows, problem, policy)
    improved = True
    while improved:
        improved = False
        only(chosen, policy)
        count = reached(rows, chosen, problem.initial, steps, order)
        for i in range(count):
            s = order[i]
            kept = policy[s]
            for a in range(n_actions):
                if a != kept and allowed[s, a]:
                    policy[s] = a
                    paid = value(rows, problem, policy)
                    if paid < best - 1e-13 * abs(best):
                        best = paid
                        kept = a
                        improved = True
            policy[s] = kept
    return best


@_fast
def scatter(number, allowed, policy):
    """Set `policy` to the allowed actions that a hash of `number` picks: a start that is the same in every run."""
    states, n_actions = allowed.shape
    word = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x1234567)
    for s in range(states):
        word ^= word >> np.uint64(30)
        word *= np.uint64(0xBF58476D1CE4E5B9)
        word ^= word >> np.uint64(27)
        word *= np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        choices = 0
        for a in range(n_actions):
            choices += allowed[s, a]
        pick = np.int64((word >> np.uint64(11)) % np.uint64(max(1, choices)))
        for a in range(n_actions):
            if allowed[s, a]:
                if pick == 0:
                    policy[s] = a
                pick -= 1


@_fast
def choices(allowed, order, count, limit):
    """How many policies differ at the reached states; `limit + 1` if more than that."""
    total = 1
    for i in range(count):
        total *= width(allowed, order[i])
        if total > limit:
            return limit + 1
    return total


@_fast
def cheapest_lane(rows, problem, allowed, order, count, lanes, ceiling, policy, work):
    """The least value below `ceiling` among all policies that `allowed` leaves at the reached states, or infinity.

    Each policy has a lane. The law of a state that is decided moves on as a whole; that of a free state is split by
    actions first. A lane ends when its law is stationary, or when its value cannot fall below the ceiling any more:
    from step `t` on it is within `moved / 2 * sum_{u > t} span(tails[u])` of its product with the tail.
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
    for lane in range(lanes):
        law[0, lane] = 1.0
        number[lane] = lane
    for t in range(steps):
        for q in range(chosen.shape[0]):
            _multiply(chosen[q], law[chosen_from[q]], law[count + q], alive)
        if t % PATIENCE == PATIENCE - 1:
            for lane in range(alive):
                guess[lane] = total[lane]
                moved[lane] = 0.0
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
                for q in range(chosen.shape[0]):
                    _multiply(chosen[q], law[chosen_from[q]], law[count + q], alive)
        for j in range(sources.size):
            prices[j] = problem.costs[t, source_pairs[j] // allowed.shape[1], source_pairs[j] % allowed.shape[1]]
        _combine(total, law, sources, prices, 0, sources.size, alive)
        work[1] += alive * (sources.size + edges.size)
        if t < steps - 1:
            for y in range(count):
                for lane in range(alive):
                    new[y, lane] = 0.0
                _combine(new[y], law, edges, weights, starts[y], starts[y + 1], alive)
            law, new = new, law
    for lane in range(alive):
        if total[lane] < best:
            best = total[lane]
            winner = number[lane]
    if winner < 0:
        return np.inf
    _decode(allowed, order, count, winner, policy)
    return best


@_fast
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


@_fast
def _multiply(first, second, out, count):
    for lane in range(count):
        out[uintp(lane)] = first[uintp(lane)] * second[uintp(lane)]


@_fast
def _add_distance(total, first, second, count):
    for lane in range(count):
        total[uintp(lane)] += abs(first[uintp(lane)] - second[uintp(lane)])


@_fast
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


@_fast
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
        pick = 0
        for a in range(n_actions):
            if allowed[order[i], a]:
                sources[j] = i
                pairs[j] = order[i] * n_actions + a
                if wide > 1:
                    sources[j] = count + q
                    chosen_from[q] = i
                    for lane in range(lanes):
                        if (lane // repeat) % wide == pick:
                            chosen[q, lane] = 1.0
                    q += 1
                pick += 1
                j += 1
        repeat *= wide
    return sources, pairs, chosen, chosen_from


@_fast
def _edges(rows, order, count, sources, pairs):
    """The moves into each reached state: from which source, with which chance.

    States that come within reach after the last step only are left out: no law gets there.
    """
    n_states = order.size
    place = np.empty(n_states, dtype=np.int64)
    for s in range(n_states):
        place[s] = -1
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
    for i in range(count):
        filled[i] = starts[i]
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


@_fast
def width(allowed, s):
    """How many actions of a state are allowed."""
    count = 0
    for a in range(allowed.shape[1]):
        count += allowed[s, a]
    return count


@_fast
def _decode(allowed, order, count, number, policy):
    """The actions of lane `number`, counted over the allowed actions of the reached states; 0 elsewhere."""
    policy[:] = 0
    for i in range(count):
        s = order[i]
        wide = width(allowed, s)
        pick = number % wide
        number //= wide
        for a in range(allowed.shape[1]):
            if allowed[s, a]:
                if pick == 0:
                    policy[s] = a
                pick -= 1
