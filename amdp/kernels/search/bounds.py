"""Bounds on stationary policies, compiled: how fast laws settle, least chances, and what averaged costs prove.

A `Node` is a set of allowed pairs `[s, a]`; it reaches the first `count` states of its `order`.
See docs/stationary-oracles.md for the mathematics.
"""

import numpy as np

from amdp.kernels.compiling import ANY_ORDER, entry, inner
from amdp.kernels.search.chains import copy, expected, spread
from amdp.kernels.search.state import IN_BOUNDS

MOST_SWEEPS = 256  # of value iteration in the constant tail, and again of the damped kind
COUPLED_CHANCE = 0.1  # a coupling that fails less often is iterated by multiplication
MOST_COUPLINGS = 64  # steps of a coupling that are worked out one by one
HOPELESS_STEPS, HOPELESS_CHANCE = 16, 0.95  # a coupling that fails so often after so many steps is given up
NO_MASS = 1e-15

_entry = entry(ANY_ORDER, nogil=True)
_inner = inner(ANY_ORDER)


@_entry
def least_reach(rows, node, count, initial, floors, halt):
    """Fill the `floors`, the least chances under any policy of a node, by one backward sweep a target.

    Targets for which there is no time keep the chance 0.
    """
    order, reach, late = node.order, floors.reach, floors.late
    now = np.zeros(order.size)
    new = np.zeros(order.size)
    nothing = np.zeros(node.pairs.size)
    for k in range(count):
        target = order[k]
        now[:] = 0.0
        now[target] = 1.0
        reach[0, target] = now[initial]
        for j in range(1, reach.shape[0]):
            if halt[0] != 0:
                return
            _sweep(rows, node, count, nothing, now, new)
            now, new = new, now
            reach[j, target] = now[initial]
        late[target] = 1.0
        for i in range(count):
            late[target] = min(late[target], now[order[i]])


@_entry
def list_pairs(node, count):
    """Write down the allowed pairs of the reached states of a node, state by state; how many."""
    allowed, order, pairs, first = node.allowed, node.order, node.pairs, node.first
    used = 0
    for i in range(count):
        first[i] = used
        for a in range(allowed.shape[1]):
            if allowed[order[i], a]:
                pairs[used] = order[i] * allowed.shape[1] + a
                used += 1
    first[count] = used
    return used


@_inner
def _apart(rows, first, second, chances, left, right):
    """How likely two rows stay apart, weighed by `chances` `[y, y]` of staying apart later.

    What they share moves together; the rest is matched nearest first if it is little, independently otherwise.
    """
    i = rows.starts[0, first]
    j = rows.starts[0, second]
    i_end = rows.starts[0, first + 1]
    j_end = rows.starts[0, second + 1]
    n_left = 0
    n_right = 0
    mass = 0.0
    while i < i_end or j < j_end:
        y = rows.successors[i] if i < i_end else np.int32(2**31 - 1)
        z = rows.successors[j] if j < j_end else np.int32(2**31 - 1)
        p = rows.chances[i] if y <= z else 0.0
        q = rows.chances[j] if z <= y else 0.0
        if p > q:
            left[n_left, 0] = y
            left[n_left, 1] = p - q
            mass += p - q
            n_left += 1
        elif q > p:
            right[n_right, 0] = z
            right[n_right, 1] = q - p
            n_right += 1
        if y <= z:
            i += 1
        if z <= y:
            j += 1
    if mass <= NO_MASS or n_right == 0:
        return mass
    total = 0.0
    if n_left * n_right > 16:
        for i in range(n_left):
            inner = 0.0
            y = int(left[i, 0])
            for j in range(n_right):
                inner += right[j, 1] * chances[y, int(right[j, 0])]
            total += left[i, 1] * inner
        return min(mass, total / mass)
    rest = mass
    for _ in range(n_left + n_right):
        nearest = 2.0
        at_i = -1
        at_j = -1
        for i in range(n_left):
            for j in range(n_right):
                if left[i, 1] > 0.0 and right[j, 1] > 0.0:
                    chance = chances[int(left[i, 0]), int(right[j, 0])]
                    if chance < nearest:
                        nearest, at_i, at_j = chance, i, j
        if at_i < 0:
            break
        moved = min(left[at_i, 1], right[at_j, 1])
        total += moved * nearest
        rest -= moved
        left[at_i, 1] -= moved
        right[at_j, 1] -= moved
    return min(mass, total + max(0.0, rest))


@_entry
def mix(rows, initial, node, count, mixing, work, halt):
    """Fill `mixing[t]` with bounds on the distance of the laws of steps `t` and `t + 1` under every policy of a node.

    `apart[s, y]` bounds the chance that two chains of one policy, coupled, differ after `k` moves from `s` and `y`.
    Without time for more moves, the last bound stands for all later steps.
    """
    order, pairs, first = node.order, node.pairs, node.first
    states = order.size
    steps = mixing.size
    apart = np.empty((states, states))
    new = np.empty((states, states))
    left = np.empty((states, 2))
    right = np.empty((states, 2))
    apart[:] = new[:] = 1.0
    for s in range(states):
        apart[s, s] = new[s, s] = 0.0
    worst = 1.0
    k = 0
    while True:
        farthest = 0.0
        for p in range(first[0], first[1]):
            farthest = max(farthest, expected(rows, pairs[p], apart[initial]))
        mixing[k] = farthest
        k += 1
        if (
            k == steps
            or k > MOST_COUPLINGS
            or worst <= COUPLED_CHANCE
            or (k > HOPELESS_STEPS and worst > HOPELESS_CHANCE)
        ):
            break
        worst = 0.0
        for i in range(count):
            for j in range(i):
                if halt[0] != 0:
                    break
                most = 0.0
                for p in range(first[i], first[i + 1]):
                    for q in range(first[j], first[j + 1]):
                        most = max(most, _apart(rows, pairs[p], pairs[q], apart, left, right))
                        work[IN_BOUNDS] += rows.starts[0, pairs[p] + 1] - rows.starts[0, pairs[p]] + 60.0
                s, y = order[i], order[j]
                new[s, y] = min(most, apart[s, y])
                new[y, s] = new[s, y]
                worst = max(worst, new[s, y])
        if halt[0] != 0:
            worst = 1.0
            break
        apart, new = new, apart
    # `worst` bounds the distance after k - 1 moves from any two starts, and such factors multiply.
    for t in range(k, steps):
        mixing[t] = min(mixing[t - 1], mixing[t - k + 1] * worst) if k > 1 else mixing[t - 1]


@_inner
def _sweep(rows, node, count, costs, later, now):
    """One step of backward induction over the allowed pairs."""
    for i in range(count):
        least = np.inf
        for p in range(node.first[i], node.first[i + 1]):
            least = min(least, costs[p] + expected(rows, node.pairs[p], later))
        now[node.order[i]] = least


@_inner
def _average(tails, begin, end, pairs, used, out):
    for p in range(used):
        out[p] = (tails[begin, pairs[p]] - tails[end, pairs[p]]) / (end - begin)


@_inner
def _averaging_error(tails, begin, end, pairs, used, means, mixing):
    """At most what averaging the costs of the steps `begin .. end - 1` can add: `sum_t mixing[t - 1] span(N[t])`."""
    error = 0.0
    for t in range(begin + 1, end):
        moves = mixing[t - 1]
        left = float(end - t)
        # Costs are at most 1 in size, so the spans that are left sum to less than twice the square of their number.
        if moves * 2.0 * left * left <= 1e-9:
            return error + moves * 2.0 * left * left
        low = np.inf
        high = -np.inf
        for p in range(used):
            rest = tails[t, pairs[p]] - tails[end, pairs[p]] - left * means[p]
            low = min(low, rest)
            high = max(high, rest)
        error += moves * (high - low)
    return error


@_inner
def _blocks(steps, mixing, scale, ends):
    """Cut the steps into blocks of at most `scale / mixing[t]`, single steps if `scale` is 0; how many.

    A block is no longer than a quarter of what went before, except the last, which begins once laws hardly move.
    """
    t = 0
    used = 0
    while t < steps:
        if mixing[t] * (steps - t) <= scale:
            t = steps
        else:
            t = min(steps, t + max(1, min(1 + t // 4, int(scale / mixing[t]))))
        ends[used] = t
        used += 1
    return used


@_inner
def _tail(rows, node, count, means, length, precision, end_values, biases):
    """Lower bound on the cost of `length` steps of constant costs: `end_values`; returns (gain, steps it was used for).

    With `L` one step of backward induction, `L h >= h + g` and `V_n = L^n 0` give
    `V_N >= h + (N - n) g + min(V_n - h)`.
    """
    order, states = node.order, end_values.size
    now = np.zeros(states)
    new = np.zeros(states)
    n = 0
    gain = 0.0
    while n < length:
        _sweep(rows, node, count, means, now, new)
        n += 1
        low, high = _changes(order, count, now, new)
        now, new = new, now
        gain = low
        if n >= MOST_SWEEPS or (high - low) * (length - n) <= precision:
            break
    copy(now, biases, states)
    left = length - n
    spread_left = (high - low) * left
    rounds = 0
    if spread_left > precision:
        while rounds < MOST_SWEEPS:
            _sweep(rows, node, count, means, biases, new)
            rounds += 1
            low, high = _changes(order, count, biases, new)
            gain = max(gain, low)
            if (high - low) * left <= precision or rounds == MOST_SWEEPS:
                gain = low
                break
            for i in range(count):
                biases[order[i]] = 0.5 * (biases[order[i]] + new[order[i]])
    shift = np.inf
    for i in range(count):
        shift = min(shift, now[order[i]] - biases[order[i]])
    for i in range(count):
        end_values[order[i]] = biases[order[i]] + left * gain + shift
    return gain, left, n + rounds


@_inner
def _changes(order, count, before, after):
    """The least and the greatest change of a value over the reached states."""
    low = np.inf
    high = -np.inf
    for i in range(count):
        change = after[order[i]] - before[order[i]]
        low = min(low, change)
        high = max(high, change)
    return low, high


@_entry
def bound(rows, problem, floors, node, count, mixing, scale, precision, work):
    """Lower bound on all policies of a node, without its terms; the terms and guesses of the node are filled in.

    The bound is the returned value plus, for each reached state, the least of its terms. Where the guesses of all
    pairs of a state are large, branching helps. Minus infinity if there is no time left.
    """
    order, pairs, first = node.order, node.pairs, node.first
    steps = problem.costs.shape[0]
    states = problem.costs.shape[1]
    n_actions = problem.costs.shape[2]
    used = first[count]
    ends = np.empty(steps, dtype=np.int64)
    n_blocks = _blocks(steps, mixing, scale, ends)
    window = ends[n_blocks - 2] if n_blocks > 1 else 0
    means = np.empty(used)
    node.terms[:used] = 0.0
    node.guesses[:used] = 0.0
    # the constant tail
    _average(problem.tails, window, steps, pairs, used, means)
    error = _averaging_error(problem.tails, window, steps, pairs, used, means, mixing)
    values = np.zeros((window + 1, states))
    biases = np.zeros(states)
    gain, middle, sweeps = _tail(rows, node, count, means, steps - window, precision, values[window], biases)
    residues = np.empty(used)
    for i in range(count):
        for p in range(first[i], first[i + 1]):
            ahead = means[p] + expected(rows, pairs[p], biases)
            residues[p] = max(0.0, ahead - biases[order[i]] - gain)
    # the window, block by block
    extra = np.empty((window, used))
    for b in range(n_blocks - 2, -1, -1):
        begin = ends[b - 1] if b > 0 else 0
        end = ends[b]
        _average(problem.tails, begin, end, pairs, used, means)
        if end > begin + 1:
            error += _averaging_error(problem.tails, begin, end, pairs, used, means, mixing)
        if problem.halt[0] != 0:
            return -np.inf
        for t in range(end - 1, begin - 1, -1):
            for i in range(count):
                least = np.inf
                for p in range(first[i], first[i + 1]):
                    ahead = means[p] + expected(rows, pairs[p], values[t + 1])
                    extra[t, p] = ahead
                    least = min(least, ahead)
                values[t, order[i]] = least
                for p in range(first[i], first[i + 1]):
                    extra[t, p] -= least
    work[IN_BOUNDS] += used * (10.0 + rows.chances.size / (states * n_actions)) * (window + sweeps)
    _charge(rows, floors, node, count, extra, residues, middle, problem.initial)
    return values[0, problem.initial] - error


@_inner
def _charge(rows, floors, node, count, extra, residues, middle, initial):
    """Add up what each pair costs above the relaxed optimum, by its least chance and along that optimum."""
    order, pairs, first, terms, guesses = node.order, node.pairs, node.first, node.terms, node.guesses
    window = extra.shape[0]
    states = floors.late.size
    surest = np.zeros((states, states))  # the least chance of y after s, for this node
    row_law = np.zeros(states)
    for i in range(count):
        s = order[i]
        for p in range(first[i], first[i + 1]):
            row_law[:] = 0.0
            spread(rows, pairs[p], 1.0, row_law)
            for y in range(states):
                surest[s, y] = row_law[y] if p == first[i] else min(surest[s, y], row_law[y])
    least = np.zeros(states)
    law = np.zeros(states)
    new_least = np.empty(states)
    new_law = np.empty(states)
    least[initial] = 1.0
    law[initial] = 1.0
    mass = 1.0
    for t in range(window):
        new_law[:] = 0.0
        for i in range(count):
            s = order[i]
            floor = least[s]
            floor = max(floor, floors.reach[t, s] if t < floors.reach.shape[0] else floors.late[s])
            taken = first[i]
            for p in range(first[i], first[i + 1]):
                terms[p] += floor * extra[t, p]
                guesses[p] += law[s] * extra[t, p]
                if extra[t, p] == 0.0:
                    taken = p
            if law[s] > 0.0:
                spread(rows, pairs[taken], law[s], new_law)
        law, new_law = new_law, law
        if mass > 1e-3:
            new_least[:] = 0.0
            mass = 0.0
            for i in range(count):
                s = order[i]
                if least[s] > 0.0:
                    for y in range(states):
                        new_least[y] += least[s] * surest[s, y]
            for y in range(states):
                mass += new_least[y]
            least, new_least = new_least, least
        else:
            least[:] = 0.0
    late_steps = max(0, window + middle - max(window, floors.reach.shape[0] - 1))
    for i in range(count):
        s = order[i]
        for p in range(first[i], first[i + 1]):
            terms[p] += late_steps * floors.late[s] * residues[p]
            guesses[p] += middle * max(law[s], floors.late[s]) * residues[p]
