"""Bounds on stationary policies, compiled: least chances, and what averaged costs prove.

A `Node` is a set of allowed pairs `[s, a]`; it reaches the first `count` states of its `order`.
See docs/stationary-oracles.md for the mathematics.
"""

import numpy as np

from amdp.kernels.compiling import ANY_ORDER, entry, inner
from amdp.kernels.copies import copy_first
from amdp.kernels.search.chains import expected, span, spread
from amdp.kernels.search.state import IN_BOUNDS, MOVES, RESTS
from amdp.kernels.search.state import Room as _Room
from amdp.kernels.search.state import Stretches as _Stretches

MOST_SWEEPS = 256  # of value iteration in the constant tail, and again of the damped kind
CARELESSNESS = 2e-6  # what several steps that are averaged by one span may add to an error, each time, is 4 times that
NO_FLOOR = 1e-3  # least chances that sum to less are not followed any further
SHORTEST_LEAP = 3  # steps: fewer are swept one by one
SHOWN_MOVES = 16  # moves of a stretch that guesses follow one by one

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
def _sweep(rows, node, count, costs, later, now):
    """One step of backward induction over the allowed pairs."""
    for i in range(count):
        least = np.inf
        for p in range(node.first[i], node.first[i + 1]):
            least = min(least, costs[p] + expected(rows, node.pairs[p], later))
        now[node.order[i]] = least


@_inner
def _look_ahead(rows, node, count, costs, later, now, ahead):
    """The same step, which keeps what each pair would cost."""
    for i in range(count):
        least = np.inf
        for p in range(node.first[i], node.first[i + 1]):
            ahead[p] = costs[p] + expected(rows, node.pairs[p], later)
            least = min(least, ahead[p])
        now[node.order[i]] = least


@_inner
def _average(tails, begin, end, pairs, used, out):
    for p in range(used):
        out[p] = (tails[begin, pairs[p]] - tails[end, pairs[p]]) / (end - begin)


@_inner
def _averaging_error(tails, begin, end, pairs, used, means, moves, work):
    """At most what averaging the costs of the steps `begin .. end - 1` can add: `sum_t moves[t - 1] span(N[t])`.

    Where laws hardly move, one span stands for several steps: a step changes it by no more than 4, costs being at most
    1 in size.
    """
    error = 0.0
    rest = np.empty(used)
    t = begin + 1
    while t < end:
        stride = int(min(np.sqrt(CARELESSNESS / max(moves[t - 1], 1e-300)), float(end - t)))
        left = float(end - t)
        for p in range(used):
            rest[p] = tails[t, pairs[p]] - tails[end, pairs[p]] - left * means[p]
        work[IN_BOUNDS] += used
        if stride > 1:
            error += moves[t - 1] * stride * (span(rest) + 4.0 * stride)
            t += stride
        else:
            error += moves[t - 1] * span(rest)
            t += 1
    return error


@_inner
def _distance_error(costs, runs, begin, end, pairs, used, means, distances):
    """Another bound on the same: `sum_t distances[t] span(c[t] - means)`."""
    n_actions = costs.shape[2]
    error = 0.0
    t = begin
    while t < end:
        following = min(end, runs[t])
        low = np.inf
        high = -np.inf
        for p in range(used):
            apart = costs[t, pairs[p] // n_actions, pairs[p] % n_actions] - means[p]
            low = min(low, apart)
            high = max(high, apart)
        error += (distances[t] - distances[following]) * (high - low)
        t = following
    return error


@_inner
def _is_settled(steps, mixing, scale, runs, t):
    """Whether laws hardly move from a step on: the last block may begin there."""
    return mixing[MOVES, t] * (steps - t) <= scale or (runs[t] > t + 1 and mixing[RESTS, t] <= scale)


@_inner
def _blocks(steps, mixing, scale, runs, ends):
    """Cut the steps into blocks of at most `scale / mixing[t]`, or of equal costs if these last longer; how many.

    A block is no longer than a quarter of what went before, except the last, which begins once laws hardly move.
    """
    t = 0
    used = 0
    while t < steps:
        if _is_settled(steps, mixing, scale, runs, t):
            t = steps
        else:
            run = runs[t]
            t = min(steps, t + max(1, min(1 + t // 4, int(scale / mixing[MOVES, t]))))
            while t < run and not _is_settled(steps, mixing, scale, runs, t):
                t += 1
        ends[used] = t
        used += 1
    return used


@_entry
def find_runs(costs, runs):
    """Fill `runs` `[t]` with the first later step whose costs are not those of step `t`."""
    steps = costs.shape[0]
    runs[steps - 1] = steps
    for t in range(steps - 2, -1, -1):
        runs[t] = runs[t + 1] if _equal(costs[t], costs[t + 1]) else t + 1


@_inner
def _equal(first, second):
    for s in range(first.shape[0]):
        for a in range(first.shape[1]):
            if first[s, a] != second[s, a]:
                return False
    return True


@_inner
def _most_stretches(ends, n_blocks, runs):
    """How many stretches the blocks can need: a step and a leap for each sweep, and the rest."""
    most = 0
    begin = 0
    for b in range(n_blocks):
        length = ends[b] - begin
        most += min(length, 2 * _most_sweeps(runs, begin, ends[b]) + 3)
        begin = ends[b]
    return most


@_inner
def _most_sweeps(runs, begin, end):
    """The sweeps after which values are settled: nothing that is not averaged may fall behind backward induction."""
    return end - begin if runs[begin] >= end else MOST_SWEEPS


@_inner
def _induce(rows, node, count, means, length, most_sweeps, tolerance, values, room, stretches, used):
    """Backward induction over `length` steps of equal costs, from `values` to values that are no higher than exact.

    Where values change by nearly the same in every step, a leap takes many steps at once, and loses no more than
    `tolerance` a step. The stretches that follow each other backward are appended; returns (their number, sweeps).
    """
    order, first = node.order, node.first
    now, new, far, after, change = room.values[0], room.values[1], room.values[2], room.values[3], room.values[4]
    ahead, far_ahead = room.pairs[0], room.pairs[1]
    copy_first(values, now, values.size)
    left = length
    sweeps = 1
    bend = np.inf
    _look_ahead(rows, node, count, means, now, new, ahead)
    while True:
        stretches.lengths[used] = 1
        for i in range(count):
            for p in range(first[i], first[i + 1]):
                stretches.early[used, p] = ahead[p] - new[order[i]]
        used += 1
        left -= 1
        if left == 0:
            break
        if sweeps >= most_sweeps:
            used, more = _settle(rows, node, count, means, left, tolerance, new, stretches, used)
            sweeps += more
            break
        turned = 0.0
        for i in range(count):
            s = order[i]
            turned = max(turned, change[s] - (new[s] - now[s]))
            change[s] = new[s] - now[s]
        bend = turned if sweeps > 1 else np.inf
        if left <= SHORTEST_LEAP:
            bend = np.inf
        leap = int(min(float(left - 1), 2.0 * tolerance / bend - 1.0)) if bend > 0.0 else left - 1
        low, high = _changes(order, count, now, new)
        if high - low <= tolerance:
            leap = left - 1
            for i in range(count):
                change[order[i]] = low
        if leap >= SHORTEST_LEAP:
            for i in range(count):
                far[order[i]] = new[order[i]] + leap * change[order[i]]
            _look_ahead(rows, node, count, means, far, after, far_ahead)
            sweeps += 1
            excess = 0.0
            for i in range(count):
                s = order[i]
                excess = max(excess, far[s] + change[s] - after[s])
            if excess <= 2.0 * tolerance:
                share = 1.0 / (leap + 1.0)
                stretches.lengths[used] = leap
                for i in range(count):
                    s = order[i]
                    for p in range(first[i], first[i + 1]):
                        late = ahead[p] - new[s]
                        rise = far_ahead[p] - far[s] - change[s] + excess - late
                        stretches.early[used, p] = late + leap * share * rise
                        stretches.late[used, p] = late + share * rise
                used += 1
                left -= leap
                lost = 0.5 * excess * leap
                for i in range(count):
                    s = order[i]
                    now[s] = far[s] - lost
                    new[s] = after[s] - lost
                    for p in range(first[i], first[i + 1]):
                        ahead[p] = far_ahead[p] - lost
                continue
        now, new = new, now
        _look_ahead(rows, node, count, means, now, new, ahead)
        sweeps += 1
    copy_first(new, values, values.size)
    return used, sweeps


@_inner
def _settle(rows, node, count, means, length, tolerance, values, stretches, used):
    """The same for values that keep swinging: with `L` one step of backward induction, and damped sweeps for `h`,

    `L h >= h + g` gives `L^N V >= h + N g + min(V - h)`.
    """
    order, first, states = node.order, node.first, values.size
    biases, new = values.copy(), np.zeros(states)
    ahead = np.empty(first[count])
    gain = 0.0
    sweeps = 0
    while True:
        _look_ahead(rows, node, count, means, biases, new, ahead)
        sweeps += 1
        low, high = _changes(order, count, biases, new)
        gain = low
        if high - low <= tolerance or sweeps == MOST_SWEEPS:
            break
        for i in range(count):
            biases[order[i]] = 0.5 * (biases[order[i]] + new[order[i]])
    stretches.lengths[used] = length
    shift = np.inf
    for i in range(count):
        shift = min(shift, values[order[i]] - biases[order[i]])
        for p in range(first[i], first[i + 1]):
            stretches.early[used, p] = max(0.0, ahead[p] - biases[order[i]] - gain)
            stretches.late[used, p] = stretches.early[used, p]
    for i in range(count):
        values[order[i]] = biases[order[i]] + length * gain + shift
    return used + 1, sweeps


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
def bound(rows, problem, floors, node, count, mixing, loosened, runs, scale, precision, work):
    """Lower bound on all policies of a node, without its terms; the terms and guesses of the node are filled in.

    The bound is the returned value plus, for each reached state, the least of its terms. Where the guesses of all
    pairs of a state are large, branching helps. Minus infinity if there is no time left.
    """
    steps, states, n_actions = problem.costs.shape
    pairs, size = node.pairs, node.first[count]
    ends = np.empty(steps, dtype=np.int64)
    n_blocks = _blocks(steps, mixing, scale, runs, ends)
    most = _most_stretches(ends, n_blocks, runs)
    stretches = _Stretches(np.empty(most, np.int64), np.empty((most, size)), np.empty((most, size)))
    room = _Room(np.zeros((5, states)), np.empty((2, size)))
    means = np.empty(size)
    values = np.zeros(states)
    error = 0.0
    used = 0
    sweeps = 0
    for b in range(n_blocks - 1, -1, -1):
        if problem.halt[0] != 0:
            return -np.inf
        begin = ends[b - 1] if b > 0 else 0
        end = ends[b]
        _average(problem.tails, begin, end, pairs, size, means)
        if runs[begin] < end:
            if runs[begin] > begin + 1:
                error += _distance_error(problem.costs, runs, begin, end, pairs, size, means, mixing[RESTS])
            else:
                error += _averaging_error(problem.tails, begin, end, pairs, size, means, mixing[MOVES], work)
        limits = end - begin, _most_sweeps(runs, begin, end), precision / steps
        used, more = _induce(rows, node, count, means, *limits, values, room, stretches, used)
        sweeps += more
    work[IN_BOUNDS] += size * (10.0 + rows.chances.size / (states * n_actions)) * sweeps
    _charge(rows, floors, node, count, stretches, used, problem.initial)
    for p in range(size):
        node.guesses[p] += error * loosened[pairs[p]]
    return values[problem.initial] - error


@_inner
def _least_chances(rows, floors, node, count, initial, steps, least):
    """Fill `least` `[t, s]` with the least chances under any policy of a node, as long as these say more than `floors`

    do of late steps; for how many steps.
    """
    order, pairs, first = node.order, node.pairs, node.first
    states = floors.late.size
    surest = np.zeros((states, states))  # the least chance of y after s
    row_law = np.zeros(states)
    for i in range(count):
        s = order[i]
        for p in range(first[i], first[i + 1]):
            row_law[:] = 0.0
            spread(rows, pairs[p], 1.0, row_law)
            for y in range(states):
                surest[s, y] = row_law[y] if p == first[i] else min(surest[s, y], row_law[y])
    forward = np.zeros(states)
    new = np.zeros(states)
    forward[initial] = 1.0
    mass = 1.0
    t = 0
    while t < steps and (mass > NO_FLOOR or t < floors.reach.shape[0]):
        for y in range(states):
            known = floors.reach[t, y] if t < floors.reach.shape[0] else floors.late[y]
            least[t, y] = max(forward[y], known)
        if mass > NO_FLOOR:
            new[:] = 0.0
            for i in range(count):
                s = order[i]
                if forward[s] > 0.0:
                    for y in range(states):
                        new[y] += forward[s] * surest[s, y]
            mass = 0.0
            for y in range(states):
                mass += new[y]
            forward, new = new, forward
        else:
            forward[:] = 0.0
        t += 1
    return t


@_inner
def _charge(rows, floors, node, count, stretches, used, initial):
    """Add up what each pair costs above the relaxed optimum, by its least chance and along that optimum."""
    order, pairs, first, terms, guesses = node.order, node.pairs, node.first, node.terms, node.guesses
    states = floors.late.size
    steps = 0
    for k in range(used):
        steps += stretches.lengths[k]
    least = np.empty((steps, states))
    known = _least_chances(rows, floors, node, count, initial, steps, least)
    law = np.zeros(states)
    new_law = np.zeros(states)
    law[initial] = 1.0
    terms[: first[count]] = 0.0
    guesses[: first[count]] = 0.0
    t = 0
    for k in range(used - 1, -1, -1):
        length = stretches.lengths[k]
        early, late = stretches.early[k], stretches.late[k]
        moves = min(length, SHOWN_MOVES)
        for move in range(moves):
            shown = 1.0 if move < moves - 1 else length - moves + 1.0
            new_law[:] = 0.0
            for i in range(count):
                mass = law[order[i]]
                if mass > 0.0:
                    taken = first[i]
                    for p in range(first[i], first[i + 1]):
                        guesses[p] += shown * mass * early[p]
                        if early[p] < early[taken]:
                            taken = p
                    spread(rows, pairs[taken], mass, new_law)
            law, new_law = new_law, law
        for i in range(count):
            if first[i + 1] == first[i] + 1:
                continue  # the only pair costs nothing above the best
            s = order[i]
            if length == 1:
                at_first = least[t, s] if t < known else floors.late[s]
                for p in range(first[i], first[i + 1]):
                    terms[p] += at_first * early[p]
            else:
                at_first, at_last = _floors_at_ends(least[:known, s], floors.late[s], t, length)
                for p in range(first[i], first[i + 1]):
                    terms[p] += at_first * early[p] + at_last * late[p]
        t += length


@_inner
def _floors_at_ends(least, late, begin, length):
    """The least chances of a state in each step of a stretch, weighed by how near the step is to either end."""
    at_first = 0.0
    at_last = 0.0
    known = min(length, max(0, least.size - begin))
    for j in range(known):
        share = j / (length - 1.0)
        at_first += least[begin + j] * (1.0 - share)
        at_last += least[begin + j] * share
    rest = float(length - known)
    share = (known + length - 1.0) / 2.0 / (length - 1.0)  # mean of the steps that are left
    return at_first + late * rest * (1.0 - share), at_last + late * rest * share
