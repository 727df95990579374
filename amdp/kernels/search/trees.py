"""Trees of stationary policies, compiled: counting, and a depth-first search that can be resumed.

A node is a set of allowed pairs `[s, a]`. Its policies are those that choose among the allowed pairs; only states that
these lead to are ever branched on.
"""

import numpy as np

from amdp.kernels.compiling import ANY_ORDER, entry
from amdp.kernels.search.bounds import bound, copy, list_pairs, mix
from amdp.kernels.search.chains import choices, reached, width
from amdp.kernels.search.lanes import cheapest_lane

CHEAP = 0.02  # a bound that takes less of the work of trying all policies of a node is always computed
RETRY = 64  # nodes after which a bound that did not pay is tried again
TRIALS = 12  # bounds that a size of node may fail before their price is held against them
SIMD = 12.0  # products that lanes do in the time of one product of a bound

_fast = entry(ANY_ORDER, nogil=True)


@_fast
def list_closed(rows, n_actions, initial, steps, limit, policies, halt):
    """How many policies differ where they come to, up to `limit + 1`; the first of them into `policies` `[n, s]`.

    A policy is -1 where it never comes. The count means nothing if `halt` was set.
    """
    states = (rows.starts.shape[1] - 1) // n_actions
    allowed = np.zeros((states, n_actions), dtype=np.bool_)
    chosen = np.empty(states, dtype=np.int64)
    for s in range(states):
        chosen[s] = -1
    order = np.empty(states, dtype=np.int64)
    path = np.empty(states, dtype=np.int64)
    depth = 0
    found = 0
    while halt[0] == 0:
        count = reached(rows, allowed, initial, steps, order)
        branch = -1
        for i in range(count):
            if chosen[order[i]] < 0:
                branch = order[i]
                break
        if branch >= 0:
            path[depth] = branch
            depth += 1
        else:
            if found < policies.shape[0]:
                for s in range(states):
                    policies[found, s] = chosen[s]
            found += 1
            if found > limit:
                return found
        while depth > 0:
            s = path[depth - 1]
            if chosen[s] >= 0:
                allowed[s, chosen[s]] = False
            chosen[s] += 1
            if chosen[s] < n_actions:
                allowed[s, chosen[s]] = True
                break
            chosen[s] = -1
            depth -= 1
        if depth == 0:
            return found
    return found


@_fast
def grow(rows, problem, floors, tree, scales, coupled_depth, max_nodes):
    """Work on up to `max_nodes` open nodes, as long as there is time; without `scales` no bounds are computed."""
    steps, states, n_actions = problem.costs.shape
    order = np.empty(states, dtype=np.int64)
    first = np.empty(states + 1, dtype=np.int64)
    pairs = np.empty(states * n_actions, dtype=np.int64)
    terms = np.empty(states * n_actions)
    guesses = np.empty(states * n_actions)
    policy = np.empty(states, dtype=np.int64)
    allowed = np.empty((states, n_actions), dtype=np.bool_)
    marks = np.empty(3, dtype=np.int64)
    for _ in range(max_nodes):
        if tree.counts[0] == 0 or problem.halt[0] != 0:
            return
        tree.counts[0] -= 1
        tree.counts[1] += 1
        node = tree.counts[0]
        inherited = tree.bounds[node]
        if inherited >= tree.best[0] - problem.slack:
            tree.best[1] = min(tree.best[1], inherited)
            continue
        for s in range(states):
            for a in range(n_actions):
                allowed[s, a] = tree.allowed[node, s, a]
        depth, slot, scale_at = tree.marks[node, 0], tree.marks[node, 1], tree.marks[node, 2]
        again = True
        while again:
            again = False
            count = reached(rows, allowed, problem.initial, steps, order)
            lanes = choices(allowed, order, count, problem.lanes)
            if lanes <= problem.lanes:
                paid = cheapest_lane(rows, problem, allowed, order, count, lanes, tree.best[0], policy, tree.work)
                if problem.halt[0] != 0:
                    _reopen(tree)
                    return
                tree.counts[3] += lanes
                if paid < tree.best[0]:
                    tree.best[0] = paid
                    for s in range(states):
                        tree.policy[s] = policy[s]
                break
            used = list_pairs(allowed, order, count, pairs, first)
            size = _size(pairs, first, count)
            if scales.size == 0 or not _worth_a_bound(tree, size):
                for p in range(used):
                    guesses[p] = 0.0
                    terms[p] = 0.0
                marks[0], marks[1], marks[2] = depth + 1, slot, scale_at
                _branch(tree, allowed, order, count, pairs, used, terms, guesses, inherited, inherited, marks)
                break
            if slot < 0 or (depth <= coupled_depth and slot < depth):
                slot = depth
                mix(rows, problem.initial, order, count, pairs, first, tree.mixing[slot], tree.work, problem.halt)
            gap = tree.best[0] - inherited
            computed, scale_at = _best_bound(
                rows,
                problem,
                floors,
                order,
                count,
                pairs,
                first,
                tree.mixing[slot],
                scales,
                scale_at,
                depth,
                min(gap, 1.0) * 0.01,
                terms,
                guesses,
                tree,
            )
            if problem.halt[0] != 0:
                _reopen(tree)
                return
            lower = max(inherited, computed)
            class_of = int(np.log2(size))
            tree.tries[class_of, 0] += 1.0
            if lower >= tree.best[0] - problem.slack:
                tree.best[1] = min(tree.best[1], lower)
                tree.tries[class_of, 1] += size
                break
            # pairs that cannot be part of anything better
            removed = 0
            for i in range(count):
                least = np.inf
                for p in range(first[i], first[i + 1]):
                    least = min(least, terms[p])
                for p in range(first[i], first[i + 1]):
                    with_pair = max(inherited, computed + terms[p] - least)
                    if with_pair >= tree.best[0] - problem.slack:
                        allowed[order[i], pairs[p] % n_actions] = False
                        tree.best[1] = min(tree.best[1], with_pair)
                        removed += 1
            if removed > 0:
                count = reached(rows, allowed, problem.initial, steps, order)
                tree.tries[class_of, 1] += size - _left(allowed, order, count)
                if removed * 8 >= used or choices(allowed, order, count, problem.lanes) <= problem.lanes:
                    again = True
                    inherited = lower
                    continue
            marks[0], marks[1], marks[2] = depth + 1, slot, scale_at
            _branch(tree, allowed, order, count, pairs, used, terms, guesses, inherited, computed, marks)


@_fast
def _reopen(tree):
    """The node that is worked on stays open: there was no time to finish it."""
    tree.counts[0] += 1
    tree.counts[1] -= 1


@_fast
def _size(pairs, first, count):
    """How many policies a node has, as a float."""
    size = 1.0
    for i in range(count):
        size = min(1e300, size * (first[i + 1] - first[i]))
    return size


@_fast
def _left(allowed, order, count):
    size = 1.0
    for i in range(count):
        size = min(1e300, size * width(allowed, order[i]))
    return size


@_fast
def _worth_a_bound(tree, size):
    """Whether a bound on so many policies promises to save more work than it is.

    Work is counted in products, not in seconds, so that a search takes the same way in every run.
    """
    if tree.counts[3] == 0 or tree.counts[2] == 0:
        return True
    price = tree.work[0] / tree.counts[2]
    trial = tree.work[1] / SIMD / tree.counts[3]
    if price <= CHEAP * size * trial:
        return True
    tried = tree.tries[int(np.log2(size))]
    if tried[0] < TRIALS or tree.counts[1] % RETRY == 0:
        return True
    return price * tried[0] <= trial * tried[1]


@_fast
def _best_bound(
    rows, problem, floors, order, count, pairs, first, mixing, scales, at, depth, precision, terms, guesses, tree
):
    """The best bound over some scales of averaging, and the scale; all scales at the root, then neighbors."""
    used = first[count]
    low = at
    high = at
    if at < 0:
        low, high = 0, scales.size - 1
    elif depth <= 2 or tree.counts[1] % 4 == 0:
        low, high = max(0, at - 1), min(scales.size - 1, at + 1)
    best = -np.inf
    best_at = low
    kept_terms = np.empty(used)
    kept_guesses = np.empty(used)
    for k in range(low, high + 1):
        if k == 0 and low < high and problem.costs.shape[0] > 2000 and at > 0:
            continue
        tree.counts[2] += 1
        found = bound(
            rows,
            problem,
            floors,
            order,
            count,
            pairs,
            first,
            mixing,
            scales[k],
            precision,
            terms,
            guesses,
            tree.work,
        )
        for i in range(count):
            least = np.inf
            for p in range(first[i], first[i + 1]):
                least = min(least, terms[p])
            found += least
        if found > best:
            best = found
            best_at = k
            copy(terms, kept_terms, used)
            copy(guesses, kept_guesses, used)
    copy(kept_terms, terms, used)
    copy(kept_guesses, guesses, used)
    return best, best_at


@_fast
def _branch(tree, allowed, order, count, pairs, used, terms, guesses, inherited, computed, marks):
    """Open one node for each allowed action of the state on which the relaxed optimum disagrees with itself most.

    The terms raise the bound that was computed with them, not the one that the node inherited.
    `pairs` may still list pairs that were removed, and states that are no longer reached.
    """
    states, n_actions = allowed.shape
    still = np.zeros(states, dtype=np.bool_)
    for i in range(count):
        still[order[i]] = True
    most = -1.0
    begin = 0
    end = 0
    low = 0
    while low < used:
        s = pairs[low] // n_actions
        high = low
        open_pairs = 0
        least = np.inf
        while high < used and pairs[high] // n_actions == s:
            if allowed[s, pairs[high] % n_actions]:
                open_pairs += 1
                least = min(least, guesses[high])
            high += 1
        if open_pairs > 1 and still[s] and least > most:
            most, begin, end = least, low, high
        low = high
    branch = pairs[begin] // n_actions
    floor = np.inf
    for p in range(begin, end):
        floor = min(floor, terms[p])
    open_nodes = tree.counts[0]
    # The most promising child goes last onto the pile, and so is worked on first.
    pushed = np.zeros(end - begin, dtype=np.bool_)
    for _ in range(end - begin):
        p = -1
        for q in range(begin, end):
            if not pushed[q - begin] and (p < 0 or guesses[q] > guesses[p]):
                p = q
        pushed[p - begin] = True
        a = pairs[p] % n_actions
        if allowed[branch, a]:
            child = tree.allowed[open_nodes]
            for s in range(states):
                for b in range(n_actions):
                    child[s, b] = allowed[s, b] and (s != branch or a == b)
            tree.bounds[open_nodes] = max(inherited, computed + terms[p] - floor)
            for k in range(3):
                tree.marks[open_nodes, k] = marks[k]
            open_nodes += 1
    tree.counts[0] = open_nodes
