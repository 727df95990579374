"""Tables of the laws of stationary policies, compiled: when laws come to rest, what they are, what they pay."""

import numpy as np
from numba import uintp

from amdp.kernels.compiling import ANY_ORDER, entry
from amdp.kernels.search.chains import move

_entry = entry(ANY_ORDER, nogil=True)


@_entry
def rest(rows, n_actions, policies, initial, steps, rough, stop, room, ends, halt):
    """The step `[n]` from which the law of each of the policies `[n, s]` roughly stays as it is, at most `steps`.

    Returns the step from which none moves by more than `stop`, at most `steps`; -1 if the laws until they roughly stay
    are more than `room` numbers, or if there is no time left.
    """
    states = policies.shape[1]
    law = np.empty(states)
    new = np.empty(states)
    settled = 0
    taken = 0
    for i in range(policies.shape[0]):
        law[:] = 0.0
        law[initial] = 1.0
        ends[i] = steps
        for t in range(1, steps + 1):
            moved = move(rows, n_actions, policies[i], law, new)
            law, new = new, law
            settled = max(settled, t)
            if moved <= rough:
                ends[i] = min(ends[i], t)
            if moved <= stop:
                break
            if taken + min(t, ends[i]) * states > room or halt[0] != 0:
                return -1
        taken += (ends[i] + 1) * states
        if taken > room:
            return -1
    return settled


@_entry
def record(rows, n_actions, policies, initial, ends, places, laws, halt):
    """The laws of policies from the first step to their ends, state by state, from `places[i]` on, rounded.

    False if there was no time for all of them.
    """
    states = policies.shape[1]
    law = np.empty(states)
    new = np.empty(states)
    for i in range(policies.shape[0]):
        law[:] = 0.0
        law[initial] = 1.0
        if halt[0] != 0:
            return False
        for t in range(ends[i] + 1):
            for s in range(states):
                laws[places[i] + s * (ends[i] + 1) + t] = law[s]
            move(rows, n_actions, policies[i], law, new)
            law, new = new, law
    return True


@_entry
def appraise(laws, places, ends, policies, costs, tails, paid):
    """What each of the policies `[i, s]` (-1: never there) roughly pays: `paid[i]` for one of `costs` `[j, t]`."""
    states = policies.shape[1]
    n_actions = costs.shape[0] // states
    for i in range(policies.shape[0]):
        end = ends[i]
        begin = places[i]
        total = 0.0
        for s in range(states):
            if policies[i, s] >= 0:
                p = s * n_actions + policies[i, s]
                for t in range(end):
                    total += laws[uintp(begin) + uintp(t)] * costs[uintp(p), uintp(t)]
                total += laws[begin + end] * tails[end, p]
            begin += end + 1
        paid[i] = total


@_entry
def appraise_four(laws, places, ends, policies, costs, tails, paid):
    """The same for four costs `[4, j, t]`: a chance is read once for all of them."""
    states = policies.shape[1]
    n_actions = costs.shape[1] // states
    zero, one, two, three = uintp(0), uintp(1), uintp(2), uintp(3)
    for i in range(policies.shape[0]):
        end = ends[i]
        begin = places[i]
        total0, total1, total2, total3 = 0.0, 0.0, 0.0, 0.0
        for s in range(states):
            if policies[i, s] >= 0:
                p = uintp(s * n_actions + policies[i, s])
                for t in range(end):
                    k = uintp(t)
                    chance = np.float64(laws[uintp(begin) + k])
                    total0 += chance * costs[zero, p, k]
                    total1 += chance * costs[one, p, k]
                    total2 += chance * costs[two, p, k]
                    total3 += chance * costs[three, p, k]
                last = np.float64(laws[begin + end])
                total0 += last * tails[0, end, p]
                total1 += last * tails[1, end, p]
                total2 += last * tails[2, end, p]
                total3 += last * tails[3, end, p]
            begin += end + 1
        paid[0, i], paid[1, i], paid[2, i], paid[3, i] = total0, total1, total2, total3
