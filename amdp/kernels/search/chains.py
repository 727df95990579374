"""Chains of stationary policies, compiled: sums of costs, reach, exact values, ties, single-state search.

The kernel comes as `SparseRows` with one step, the costs as a `Problem`: `tails[t] = sum_{u >= t} c[u]`. A problem may
show the first steps only; the rest is then its last tail.
A chain whose law moves by no more than `stop` in a step is taken as stationary: the rest is one product with the tail.
The steps of the law never grow, so this errs by at most `stop / 2 * sum_t span(tails[t])`.
"""

import numpy as np
from numba import uintp

from amdp.kernels.compiling import ANY_ORDER, FINITE_ANY_ORDER, entry, inner, merged

SPAN_BLOCK = 8  # steps whose spans are bounded together
SPAN_CHUNK = 32 * SPAN_BLOCK

# Sums of a row may be taken in any order: the compiler then adds several entries at once.
_entry = entry(ANY_ORDER, nogil=True)
_inner = inner(ANY_ORDER)
_merged = merged(ANY_ORDER)


@_merged
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


@_merged
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


@_entry
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


@_inner
def only(allowed, policy):
    """Set `allowed` to a single policy."""
    allowed[:] = False
    for s in range(policy.size):
        allowed[s, policy[s]] = True


@_entry
def pose(costs, kept, tails, spans, peaks):
    """Keep the first `k` of the steps of `costs` `[t, n * j]` in `[n, k, j]`, and add up from the last step back.

    `tails` `[n, k + 1, j]` are the costs from a step on; `spans` `[n, k + 2]` the spans of all tails from a step on,
    summed, or a little more; `peaks` `[n, j]` the largest sizes of costs. What is not finite makes `tails[:, 0]` so.
    """
    steps, width = costs.shape
    n, head, pairs = kept.shape
    sums = np.zeros((n, pairs))
    flat_sums = sums.reshape(width)
    flat_peaks = peaks.reshape(width)
    parts = np.empty((SPAN_CHUNK // SPAN_BLOCK, width))
    peaks[:] = 0.0
    spans[:, head:] = 0.0
    tails[:, head] = 0.0
    end = steps
    while end > head + 2:
        begin = max(head + 2, end - SPAN_CHUNK)
        _add_blocks(costs, begin, end, parts, flat_peaks)
        for b in range((end - begin - 1) // SPAN_BLOCK, -1, -1):
            size = min(SPAN_BLOCK, end - begin - b * SPAN_BLOCK)
            for i in range(n):
                # A step widens a span by no more than twice the largest cost.
                spans[i, head + 1] += size * (span(sums[i]) + (size + 1) * peaks[i].max())
            for q in range(width):
                flat_sums[q] += parts[b, q]
        end = begin
    for t in range(end - 1, -1, -1):
        _add_blocks(costs, t, t + 1, parts, flat_peaks)
        for q in range(width):
            flat_sums[q] += parts[0, q]
        for i in range(n):
            later = spans[i, t + 1] if t <= head else spans[i, head + 1]
            spans[i, t] = later + span(sums[i])
            if t <= head:
                for p in range(pairs):
                    tails[i, t, p] = sums[i, p]
            if t < head:
                for p in range(pairs):
                    kept[i, t, p] = costs[t, i * pairs + p]


@_inner
def _add_blocks(costs, begin, end, parts, peaks):
    """The costs of some steps, summed in blocks. Steps are read forward: processors fetch ahead in that direction."""
    for t in range(begin, end):
        row = uintp(t)
        b = uintp((t - begin) // SPAN_BLOCK)
        if (t - begin) % SPAN_BLOCK == 0:
            for q in range(peaks.size):
                parts[b, uintp(q)] = 0.0
        for q in range(peaks.size):
            k = uintp(q)
            parts[b, k] += costs[row, k]
            peaks[k] = max(peaks[k], abs(costs[row, k]))


@inner(FINITE_ANY_ORDER)
def span(numbers):
    """How far the largest of some numbers is from the least."""
    low = np.inf
    high = -np.inf
    for k in range(numbers.size):
        low = min(low, numbers[k])
        high = max(high, numbers[k])
    return high - low


@_merged
def move(rows, n_actions, policy, law, new):
    """The next law of a policy into `new`; by how much it differs from `law`."""
    new[:] = 0.0
    for s in range(law.size):
        if law[s] > 0.0:
            spread(rows, s * n_actions + policy[s], law[s], new)
    moved = 0.0
    for s in range(law.size):
        moved += abs(new[s] - law[s])
    return moved


@_entry
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
        moved = move(rows, n_actions, policy, law, new)
        law, new = new, law
        if moved <= problem.stop or t == steps - 1:
            for s in range(states):
                total += law[s] * problem.tails[t + 1, s * n_actions + policy[s]]
            break
    return total


@_entry
def costs_to_go(rows, costs, policy, values):
    """Fill `values` `[t, s]` with the cost still to come under one policy."""
    steps, states, n_actions = costs.shape
    for t in range(steps - 1, -1, -1):
        for s in range(states):
            later = expected(rows, s * n_actions + policy[s], values[t + 1]) if t < steps - 1 else 0.0
            values[t, s] = costs[t, s, policy[s]] + later


@_entry
def settle(rows, problem, policy, tie):
    """Action 0 where the policy never comes; elsewhere, if there is time, the first that costs at most `tie` more."""
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
            for a in range(kept if comes[s] and problem.halt[0] == 0 else 0):
                policy[s] = a
                if value(rows, problem, policy) <= ceiling:
                    changed = True
                    # The next state must be tried with the states to which the new action leads.
                    _forget_unreached(rows, problem, policy, allowed, order, comes)
                    break
                policy[s] = kept


@_inner
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


@_entry
def descend(rows, problem, allowed, policy):
    """Change one state at a time as long as that is cheaper and there is time; the value that is reached."""
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
                if a != kept and allowed[s, a] and problem.halt[0] == 0:
                    policy[s] = a
                    paid = value(rows, problem, policy)
                    if paid < best - 1e-13 * abs(best):
                        best = paid
                        kept = a
                        improved = True
            policy[s] = kept
    return best


@_entry
def scatter(number, allowed, policy):
    """Set `policy` to the allowed actions that a hash of `number` picks: a start that is the same in every run."""
    word = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x1234567)
    for s in range(allowed.shape[0]):
        word ^= word >> np.uint64(30)
        word *= np.uint64(0xBF58476D1CE4E5B9)
        word ^= word >> np.uint64(27)
        word *= np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        pick(allowed, s, np.int64((word >> np.uint64(11)) % np.uint64(max(1, width(allowed, s)))), policy)


@_inner
def pick(allowed, s, number, policy):
    """Set `policy` at a state to the allowed action of that number, if there are so many."""
    for a in range(allowed.shape[1]):
        if allowed[s, a]:
            if number == 0:
                policy[s] = a
            number -= 1


@_inner
def width(allowed, s):
    """How many actions of a state are allowed."""
    count = 0
    for a in range(allowed.shape[1]):
        count += allowed[s, a]
    return count
