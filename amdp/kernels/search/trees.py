"""Trees of stationary policies, compiled: counting, and a best-first search that can be resumed.

A node is a set of allowed pairs `[s, a]`. Its policies are those that choose among the allowed pairs; only states that
these lead to are ever branched on.
"""

import numpy as np

from amdp.kernels.compiling import ANY_ORDER, entry, inner
from amdp.kernels.copies import copy_first
from amdp.kernels.search import state
from amdp.kernels.search.bounds import bound, list_pairs
from amdp.kernels.search.chains import reached, width
from amdp.kernels.search.couplings import mix
from amdp.kernels.search.lanes import cheapest_lane

CHEAP_BOUND = 0.02  # a bound that takes less of the work of trying all policies of a node is always computed
RETRY_NODES = 64  # nodes after which a bound that did not pay is tried again
TRIAL_BOUNDS = 12  # bounds that a size of node may fail before their price is held against them
LANE_SPEED = 12.0  # products that lanes do in the time of one product of a bound
LONG_RUNS = 1000  # with more runs of equal costs, the scale that averages nothing is tried at the root only

_entry = entry(ANY_ORDER, nogil=True)
_inner = inner(ANY_ORDER)
_new_node = _inner(state.new_node)


@_entry
def list_closed(rows, n_actions, initial, steps, limit, policies, halt):
    """The number of policies that are distinct on the states they reach, up to `limit + 1`; into `policies` `[n, s]`.

    A policy is -1 where it never comes. The count means nothing if `halt` was set.
    """
    states = (rows.starts.shape[1] - 1) // n_actions
    allowed = np.zeros((states, n_actions), dtype=np.bool_)
    chosen = np.empty(states, dtype=np.int64)
    chosen[:] = -1
    order = np.empty(states, dtype=np.int64)
    path = np.empty(states, dtype=np.int64)
    depth = 0
    listed = 0
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
            if listed < policies.shape[0]:
                copy_first(chosen, policies[listed], states)
            listed += 1
            if listed > limit:
                return listed
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
            return listed
    return listed


@_entry
def grow(rows, problem, floors, tree, scales, is_coupled, max_nodes):
    """Work on up to `max_nodes` open nodes, as long as there is time; without `scales` no bounds are computed.

    Mixing is worked out anew at every node `is_coupled`, otherwise that of the root is used.
    """
    node = _new_node(np.empty(problem.costs.shape[1:], np.bool_))
    for _ in range(max_nodes):
        if tree.counts[state.OPEN] == 0 or problem.halt[0] != 0:
            return
        inherited = _take(tree, node)
        if inherited >= tree.best[state.VALUE] - problem.slack:
            tree.best[state.CLOSED_BOUND] = min(tree.best[state.CLOSED_BOUND], inherited)
        elif not _work_on(rows, problem, floors, tree, scales, is_coupled, node, inherited):
            tree.counts[state.OPEN] += 1
            tree.counts[state.NODES] -= 1
            return


@_inner
def _take(tree, node):
    """Take off the pile the open node of the least bound, or, if there is little room left, the last; its bound."""
    states, n_actions = node.allowed.shape
    last = tree.counts[state.OPEN] - 1
    chosen = last
    if last + states * n_actions < tree.bounds.size:
        for k in range(last - 1, -1, -1):
            if tree.bounds[k] < tree.bounds[chosen]:
                chosen = k
    tree.counts[state.OPEN] = last
    tree.counts[state.NODES] += 1
    for s in range(states):
        for a in range(n_actions):
            node.allowed[s, a] = tree.allowed[chosen, s, a]
            tree.allowed[chosen, s, a] = tree.allowed[last, s, a]
            tree.allowed[last, s, a] = node.allowed[s, a]
    for j in range(2):
        node.marks[j] = tree.marks[chosen, j]
        tree.marks[chosen, j] = tree.marks[last, j]
        tree.marks[last, j] = node.marks[j]
    inherited = tree.bounds[chosen]
    tree.bounds[chosen] = tree.bounds[last]
    tree.bounds[last] = inherited
    return inherited


@_inner
def _work_on(rows, problem, floors, tree, scales, is_coupled, node, inherited):
    """Try out, close or branch a node; False if there was no time to finish it.

    Where its bound strikes out many pairs, it is worked on again as the smaller node that it has become.
    """
    steps = problem.costs.shape[0]
    while True:
        count = reached(rows, node.allowed, problem.initial, steps, node.order)
        size = _size(node, count)
        if size <= problem.lanes:
            return _try_all(rows, problem, tree, node, count, int(size))
        used = list_pairs(node, count)
        if scales.size == 0 or not _worth_a_bound(tree, size):
            node.guesses[:used] = 0.0
            node.terms[:used] = 0.0
            _branch(tree, node, count, used, inherited, inherited)
            return True
        computed = _computed_bound(rows, problem, floors, tree, scales, is_coupled, node, count, inherited)
        if problem.halt[0] != 0:
            return False
        lower = max(inherited, computed)
        tries = tree.tries[int(np.log2(size))]
        tries[state.COMPUTED] += 1.0 if computed > -np.inf else 0.0
        if lower >= tree.best[state.VALUE] - problem.slack:
            tree.best[state.CLOSED_BOUND] = min(tree.best[state.CLOSED_BOUND], lower)
            tries[state.EXCLUDED] += size
            return True
        removed = _strike_out(problem, tree, node, count, inherited, computed)
        if removed > 0:
            count = reached(rows, node.allowed, problem.initial, steps, node.order)
            left = _size(node, count)
            tries[state.EXCLUDED] += size - left
            if removed * 8 >= used or left <= problem.lanes:
                inherited = lower
                continue
        _branch(tree, node, count, used, inherited, computed)
        return True


@_inner
def _try_all(rows, problem, tree, node, count, lanes):
    """Evaluate all policies of a small node; False if there was no time."""
    paid = cheapest_lane(
        rows, problem, node.allowed, node.order, count, lanes, tree.best[state.VALUE], node.policy, tree.work
    )
    if problem.halt[0] != 0:
        return False
    tree.counts[state.TRIED] += lanes
    if paid < tree.best[state.VALUE]:
        tree.best[state.VALUE] = paid
        copy_first(node.policy, tree.policy, node.policy.size)
    return True


@_inner
def _computed_bound(rows, problem, floors, tree, scales, is_coupled, node, count, inherited):
    """The bound of a node, with its mixing worked out anew where that is due; the scale is kept for its children."""
    known = 0
    if is_coupled and node.marks[state.DEPTH] > 0:
        known = 1
        mix(rows, problem.initial, node, count, tree.mixing[1], tree.loosened[1], tree.work, problem.halt)
    precision = min(tree.best[state.VALUE] - inherited, 1.0) * 0.01
    return _best_bound(rows, problem, floors, tree, scales, node, count, known, precision)


@_inner
def _strike_out(problem, tree, node, count, inherited, computed):
    """Forbid the pairs that cannot be part of anything better; how many."""
    n_actions = node.allowed.shape[1]
    removed = 0
    for i in range(count):
        least = _least(node.terms, node.first[i], node.first[i + 1])
        for p in range(node.first[i], node.first[i + 1]):
            with_pair = max(inherited, computed + node.terms[p] - least)
            if with_pair >= tree.best[state.VALUE] - problem.slack:
                node.allowed[node.order[i], node.pairs[p] % n_actions] = False
                tree.best[state.CLOSED_BOUND] = min(tree.best[state.CLOSED_BOUND], with_pair)
                removed += 1
    return removed


@_inner
def _least(numbers, begin, end):
    """The least of some numbers of an array."""
    least = np.inf
    for p in range(begin, end):
        least = min(least, numbers[p])
    return least


@_inner
def _size(node, count):
    """How many policies a node has, as a float."""
    size = 1.0
    for i in range(count):
        size = min(1e300, size * width(node.allowed, node.order[i]))
    return size


@_inner
def _worth_a_bound(tree, size):
    """Whether a bound on so many policies promises to save more work than it is.

    Work is counted in products, not in seconds, so that a search takes the same way in every run.
    """
    if tree.counts[state.TRIED] == 0 or tree.counts[state.BOUNDS] == 0:
        return True
    price = tree.work[state.IN_BOUNDS] / tree.counts[state.BOUNDS]
    trial = tree.work[state.IN_LANES] / LANE_SPEED / tree.counts[state.TRIED]
    if price <= CHEAP_BOUND * size * trial:
        return True
    tries = tree.tries[int(np.log2(size))]
    if tries[state.COMPUTED] < TRIAL_BOUNDS or tree.counts[state.NODES] % RETRY_NODES == 0:
        return True
    return price * tries[state.COMPUTED] <= trial * tries[state.EXCLUDED]


@_inner
def _many_runs(runs):
    """Whether costs change so often that backward induction without averages takes long."""
    t = 0
    for _ in range(LONG_RUNS):
        if t == runs.size:
            return False
        t = runs[t]
    return True


@_inner
def _least_scale(tree, node, n_scales):
    """The number of the least scale of averaging that is tried at a node: 0, but for what takes too long."""
    return 1 if node.marks[state.DEPTH] > 0 and n_scales > 1 and _many_runs(tree.runs) else 0


@_inner
def _first_scales(tree, node, known, n_scales):
    """The first and the last number of the scales of averaging that are tried at a node; no scale if they cross.

    As long as no ancestor mixed, all; then the last best one. If the node does not mix, nothing can be averaged, and
    where plain backward induction takes long, the bound of the root stands.
    """
    at, plain = node.marks[state.SCALE], _least_scale(tree, node, n_scales)
    if tree.mixing[known, state.DISTANCES, -2] >= 1.0:
        return plain, 0
    if at < 0:
        return plain, n_scales - 1
    return max(plain, at), max(plain, at)


@_inner
def _best_bound(rows, problem, floors, tree, scales, node, count, known, precision):
    """The best bound over some scales of averaging, or minus infinity; `known` is the place of its mixing.

    From the scale of its parent a node goes on to smaller ones as long as bounds rise, otherwise, now and then, to
    larger ones, until one closes it. It keeps the scale, and the terms and guesses of its bound.
    """
    low, high = _first_scales(tree, node, known, scales.size)
    plain = _least_scale(tree, node, scales.size)
    mixes = tree.mixing[known, state.DISTANCES, -2] < 1.0
    goes_up = mixes and (node.marks[state.DEPTH] <= 2 or tree.counts[state.NODES] % 4 == 0)
    used = node.first[count]
    best = -np.inf
    at = -1
    kept_terms = np.zeros(used)
    kept_guesses = np.empty(used)
    for p in range(used):
        kept_guesses[p] = tree.loosened[known, node.pairs[p]]
    k = low if low <= high else -1
    while 0 <= k < scales.size:
        tree.counts[state.BOUNDS] += 1
        mixing = tree.mixing[known], tree.loosened[known]
        total = bound(rows, problem, floors, node, count, *mixing, tree.runs, scales[k], precision, tree.work)
        for i in range(count):
            total += _least(node.terms, node.first[i], node.first[i + 1])
        rose = total > best
        if rose:
            best = total
            at = k
            copy_first(node.terms, kept_terms, used)
            copy_first(node.guesses, kept_guesses, used)
        if best >= tree.best[state.VALUE] - problem.slack or problem.halt[0] != 0:
            break
        k = _next_scale(k, low, high, at, rose, plain, goes_up)
    if best > -np.inf:
        node.marks[state.SCALE] = at if mixes else -1
    copy_first(kept_terms, node.terms, used)
    copy_first(kept_guesses, node.guesses, used)
    return best


@_inner
def _next_scale(k, low, high, at, rose, plain, goes_up):
    """The number of the scale that is tried after number `k`; `at` is that of the best so far. -1 for none."""
    if low < high:
        return k + 1 if k < high else -1
    if k > low:
        return k + 1 if rose else -1
    if rose and k > plain:
        return k - 1
    return low + 1 if at == low and goes_up else -1


@_inner
def _branch(tree, node, count, used, inherited, computed):
    """Open one node for each allowed action of the state on which the relaxed optimum disagrees with itself most.

    The terms raise the bound that was computed with them, not the one that the node inherited.
    """
    n_actions = node.allowed.shape[1]
    begin, end = _branching_state(node, count, used)
    floor = _least(node.terms, begin, end)
    # The most promising child goes last onto the pile, and so is worked on first.
    pushed = np.zeros(end - begin, dtype=np.bool_)
    for _ in range(end - begin):
        p = -1
        for q in range(begin, end):
            if not pushed[q - begin] and (p < 0 or node.guesses[q] > node.guesses[p]):
                p = q
        pushed[p - begin] = True
        if node.allowed[node.pairs[p] // n_actions, node.pairs[p] % n_actions]:
            _push_child(tree, node, node.pairs[p], max(inherited, computed + node.terms[p] - floor))


@_inner
def _branching_state(node, count, used):
    """Where in `pairs` those of the state begin and end whose least guess is largest.

    `pairs` may still list pairs that were removed, and states that are no longer reached.
    """
    states, n_actions = node.allowed.shape
    still = np.zeros(states, dtype=np.bool_)
    for i in range(count):
        still[node.order[i]] = True
    most = -1.0
    begin = 0
    end = 0
    low = 0
    while low < used:
        s = node.pairs[low] // n_actions
        high = low
        open_pairs = 0
        least = np.inf
        while high < used and node.pairs[high] // n_actions == s:
            if node.allowed[s, node.pairs[high] % n_actions]:
                open_pairs += 1
                least = min(least, node.guesses[high])
            high += 1
        if open_pairs > 1 and still[s] and least > most:
            most, begin, end = least, low, high
        low = high
    return begin, end


@_inner
def _push_child(tree, node, pair, lower):
    """Open the node that takes the action of a pair at its state, and allows elsewhere what its parent does."""
    states, n_actions = node.allowed.shape
    place = tree.counts[state.OPEN]
    child = tree.allowed[place]
    for s in range(states):
        for a in range(n_actions):
            child[s, a] = node.allowed[s, a] and (s != pair // n_actions or a == pair % n_actions)
    tree.bounds[place] = lower
    tree.marks[place, state.DEPTH] = node.marks[state.DEPTH] + 1
    tree.marks[place, state.SCALE] = node.marks[state.SCALE]
    tree.counts[state.OPEN] = place + 1
