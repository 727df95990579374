"""How fast the laws of stationary policies settle, compiled: two chains of one policy, coupled, meet.

See docs/stationary-oracles.md for the mathematics.
"""

import numpy as np

from amdp.kernels.compiling import ANY_ORDER, entry, inner
from amdp.kernels.search.chains import expected
from amdp.kernels.search.state import DISTANCES, IN_BOUNDS, MOVES, RESTS
from amdp.kernels.search.state import Coupling as _Coupling

COUPLED_CHANCE = 0.1  # a coupling that fails less often is iterated by multiplication
MOST_COUPLINGS = 200  # steps of a coupling that are worked out one by one
HOPELESS_STEPS = 16  # after so many, two chains that may stay apart for sure are given up
PATIENT_STEPS, LITTLE_CHANGE = 8, 0.05  # a coupling is extrapolated once its factor gains less in so many steps
FOLLOWED_MOVES = 64  # of two chains that stay apart
MOST_MATCHED = 8  # entries of a coupling; what more of two rows is not shared moves independently
MOST_COUPLES = 1_000_000  # of pairs: above it, all that is not shared moves independently
NO_MASS = 1e-15

_entry = entry(ANY_ORDER, nogil=True)
_inner = inner(ANY_ORDER)


@_inner
def _differences(rows, first, second, left, right):
    """What each of two rows has more than the other, `[y, chance]`: (entries on the left, on the right, mass)."""
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
    return n_left, n_right, mass


@_inner
def _match(chances, left, n_left, right, n_right, mass, places, masses):
    """A coupling of what two rows do not share, nearest first: into `places` (`y * states + z`) and `masses`."""
    matched = 0
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
        places[matched] = int(left[at_i, 0]) * chances.shape[0] + int(right[at_j, 0])
        masses[matched] = moved
        matched += 1
        rest -= moved
        left[at_i, 1] -= moved
        right[at_j, 1] -= moved
    masses[matched - 1] += max(0.0, rest)  # rounding, on the side of staying apart
    return matched


@_inner
def _independent(chances, left, n_left, right, n_right, mass):
    """How likely two rows stay apart if what they do not share moves independently."""
    total = 0.0
    for i in range(n_left):
        inner = 0.0
        y = int(left[i, 0])
        for j in range(n_right):
            inner += right[j, 1] * chances[y, int(right[j, 0])]
        total += left[i, 1] * inner
    return min(mass, total / mass)


@_inner
def _couple(rows, node, count, chances, coupling, halt):
    """Couple the rows of any two allowed pairs of different states, anew for these `chances` of staying apart.

    It is not finished if there is no time left. Where couples are too many to be kept, none is coupled.
    """
    if coupling.sizes.size == 0:
        return
    pairs, first = node.pairs, node.first
    states = chances.shape[0]
    left = np.empty((states, 2))
    right = np.empty((states, 2))
    for i in range(count):
        for p in range(first[i], first[i + 1]):
            if halt[0] != 0:
                return
            for q in range(first[i]):
                both = _both(p, q)
                if coupling.sizes[both] < 0:
                    continue
                n_left, n_right, mass = _differences(rows, pairs[p], pairs[q], left, right)
                if n_left + n_right > coupling.places.shape[1] + 1:
                    coupling.sizes[both] = -1
                elif mass <= NO_MASS or n_right == 0:
                    coupling.sizes[both] = 0
                else:
                    places, masses = coupling.places[both], coupling.masses[both]
                    coupling.sizes[both] = _match(chances, left, n_left, right, n_right, mass, places, masses)


@_inner
def _both(p, q):
    """The number of two pairs, the second of which comes first."""
    return p * (p - 1) // 2 + q


@_inner
def _apart_by(coupling, flat, both):
    """How likely two pairs lead apart, by their coupling."""
    total = 0.0
    for k in range(coupling.sizes[both]):
        total += coupling.masses[both, k] * flat[coupling.places[both, k]]
    return total


@_inner
def _stay_apart(rows, node, count, coupling, apart, new, work, halt):
    """One more move of any two chains, coupled: (how likely they are apart at most, by what factor it fell at least).

    `new` is not finished if there is no time left.
    """
    order, pairs, first = node.order, node.pairs, node.first
    states = apart.shape[0]
    flat = apart.reshape(states * states)
    left = np.empty((states, 2))
    right = np.empty((states, 2))
    worst = 0.0
    factor = 0.0
    for i in range(count):
        if halt[0] != 0:
            return 1.0, 1.0
        for j in range(i):
            most = 0.0
            for p in range(first[i], first[i + 1]):
                for q in range(first[j], first[j + 1]):
                    both = _both(p, q)
                    if coupling.sizes.size > 0 and coupling.sizes[both] >= 0:
                        total = _apart_by(coupling, flat, both)
                        work[IN_BOUNDS] += coupling.sizes[both] + 2.0
                    else:
                        n_left, n_right, mass = _differences(rows, pairs[p], pairs[q], left, right)
                        total = _independent(apart, left, n_left, right, n_right, mass)
                        work[IN_BOUNDS] += n_left * n_right + n_left + 20.0
                    most = max(most, total)
            s, y = order[i], order[j]
            chance = min(most, apart[s, y])
            new[s, y] = new[y, s] = chance
            worst = max(worst, chance)
            if apart[s, y] > 0.0:
                factor = max(factor, chance / apart[s, y])
    return worst, factor


@_inner
def _loosen(node, count, coupling, apart, loosened):
    """Guess which part of the time that two chains stay apart each pair takes away: into `loosened` `[s * a]`.

    Two chains are followed for a while that stay apart as long as they can, from the start and from the state farthest
    from it; whenever one of them is at a state, another action there makes them meet more or less often.
    """
    order, pairs, first = node.order, node.pairs, node.first
    for p in range(first[count]):
        loosened[pairs[p]] = 0.0
    if coupling.sizes.size == 0:
        return
    states = order.size
    flat = apart.reshape(states * states)
    lost = np.zeros((first[count], states))  # by a pair, with the other chain at a state
    best = np.zeros((states, states), dtype=np.int64)
    for i in range(count):
        for j in range(i):
            most = -1.0
            for p in range(first[i], first[i + 1]):
                for q in range(first[j], first[j + 1]):
                    total = _apart_by(coupling, flat, _both(p, q))
                    lost[p, order[j]] = max(lost[p, order[j]], total)
                    lost[q, order[i]] = max(lost[q, order[i]], total)
                    if total > most:
                        most = total
                        best[order[i], order[j]] = _both(p, q)
            for p in range(first[i], first[i + 1]):
                lost[p, order[j]] = 1.0 - lost[p, order[j]] / most if most > 0.0 else 0.0
            for q in range(first[j], first[j + 1]):
                lost[q, order[i]] = 1.0 - lost[q, order[i]] / most if most > 0.0 else 0.0
    place = np.zeros(states, dtype=np.int64)
    far = 0
    for i in range(count):
        place[order[i]] = i
        if apart[order[0], order[i]] > apart[order[0], order[far]]:
            far = i
    now = np.zeros((states, states))
    new = np.zeros((states, states))
    now[order[far], order[0]] = 1.0
    for _ in range(FOLLOWED_MOVES):
        new[:] = 0.0
        for i in range(count):
            for j in range(i):
                s, y = order[i], order[j]
                mass = now[s, y] + now[y, s]
                if mass > 0.0:
                    for p in range(first[i], first[i + 1]):
                        loosened[pairs[p]] += mass * lost[p, y]
                    for q in range(first[j], first[j + 1]):
                        loosened[pairs[q]] += mass * lost[q, s]
                    both = best[s, y]
                    for k in range(coupling.sizes[both]):
                        at = coupling.places[both, k]
                        new[at // states, at % states] += mass * coupling.masses[both, k]
        now, new = new, now
    for p in range(first[count]):
        loosened[pairs[p]] = min(1.0, loosened[pairs[p]])


@_entry
def mix(rows, initial, node, count, mixing, loosened, work, halt):
    """Fill `mixing` `[3, t]` for all policies of a node: how far laws move in a step, are from later laws, and the sums

    of the latter over later steps. `apart[s, y]` bounds the chance that two chains of one policy, coupled, differ after
    `k` moves from `s` and `y`. Without time for more moves, the last bound stands for all later steps.
    """
    order, pairs, first = node.order, node.pairs, node.first
    states = order.size
    steps = mixing.shape[1] - 1
    apart = np.ones((states, states))
    new = np.ones((states, states))
    for s in range(states):
        apart[s, s] = new[s, s] = 0.0
    used = first[count]
    couples = used * (used - 1) // 2
    kept = couples if couples <= MOST_COUPLES else 0
    shape = kept, MOST_MATCHED
    coupling = _Coupling(np.zeros(kept, np.int64), np.empty(shape, np.int64), np.empty(shape))
    worst = 1.0
    factor = 1.0
    earlier = 1.0
    refresh = 1
    k = 0
    while True:
        farthest = 0.0
        for p in range(first[0], first[1]):
            farthest = max(farthest, expected(rows, pairs[p], apart[initial]))
        mixing[MOVES, k] = farthest
        farthest = 0.0
        for i in range(count):
            farthest = max(farthest, apart[initial, order[i]])
        mixing[DISTANCES, k] = farthest
        k += 1
        if k == steps or k > MOST_COUPLINGS or worst <= COUPLED_CHANCE:
            break
        if k > max(HOPELESS_STEPS, 2 * count) and factor >= 1.0:
            break
        if k % PATIENT_STEPS == 0:
            if earlier - factor < LITTLE_CHANGE * (1.0 - factor):
                break
            earlier = factor
        if k == refresh:
            _couple(rows, node, count, apart, coupling, halt)
            work[IN_BOUNDS] += 60.0 * used * used / 2.0
            refresh *= 3
        worst, factor = _stay_apart(rows, node, count, coupling, apart, new, work, halt)
        if halt[0] != 0:
            worst = factor = 1.0
            break
        apart, new = new, apart
    if k > 1 and halt[0] == 0:
        _loosen(node, count, coupling, apart, loosened)
    # `worst` bounds the distance after k - 1 moves from any two starts, and such factors multiply.
    for j in range(2):
        for t in range(k, steps):
            mixing[j, t] = min(factor * mixing[j, t - 1], mixing[j, t - k + 1] * worst if k > 1 else 1.0)
    mixing[RESTS, steps] = 0.0
    for t in range(steps - 1, -1, -1):
        mixing[RESTS, t] = mixing[RESTS, t + 1] + mixing[DISTANCES, t]
