"""Parts of a tree that are worked on side by side, compiled: open nodes are handed out, and what is left taken back.

A part is a tree of its own with all that the whole one knew when the node was handed out. What comes back does not
depend on who worked on it, or when.
"""

from amdp.kernels.compiling import ANY_ORDER, entry, inner
from amdp.kernels.copies import copy_first
from amdp.kernels.search import state

_entry = entry(ANY_ORDER, nogil=True)
_inner = inner(ANY_ORDER)


@_entry
def hand_out(tree, part):
    """Move the open node of the least bound to a part."""
    last = tree.counts[state.OPEN] - 1
    chosen = last
    for k in range(last - 1, -1, -1):
        if tree.bounds[k] < tree.bounds[chosen]:
            chosen = k
    copy_first(tree.counts, part.counts, tree.counts.size)
    copy_first(tree.best, part.best, tree.best.size)
    copy_first(tree.policy, part.policy, tree.policy.size)
    copy_first(tree.work, part.work, tree.work.size)
    for k in range(tree.tries.shape[0]):
        copy_first(tree.tries[k], part.tries[k], tree.tries.shape[1])
    _move(tree, chosen, part, 0)
    _move(tree, last, tree, chosen)
    part.counts[state.OPEN] = 1
    tree.counts[state.OPEN] = last


@_entry
def take_back(tree, part, known):
    """Open what a part left open, and learn what it found beyond what was `known` when its node was handed out."""
    for k in range(part.counts[state.OPEN]):
        _move(part, k, tree, tree.counts[state.OPEN] + k)
    tree.counts[state.OPEN] += part.counts[state.OPEN]
    for k in range(tree.counts.size):
        if k != state.OPEN:
            tree.counts[k] += part.counts[k] - known.counts[k]
    for k in range(tree.work.size):
        if part.work[k] > known.work[k]:
            tree.work[k] += part.work[k] - known.work[k]
    for k in range(tree.tries.shape[0]):
        for j in range(tree.tries.shape[1]):
            tree.tries[k, j] += part.tries[k, j] - known.tries[k, j]
    tree.best[state.CLOSED_BOUND] = min(tree.best[state.CLOSED_BOUND], part.best[state.CLOSED_BOUND])
    if part.best[state.VALUE] < tree.best[state.VALUE]:
        tree.best[state.VALUE] = part.best[state.VALUE]
        copy_first(part.policy, tree.policy, tree.policy.size)


@_inner
def _move(source, place, target, target_place):
    """Put an open node of one tree to a place of another, or of the same."""
    for s in range(source.allowed.shape[1]):
        for a in range(source.allowed.shape[2]):
            target.allowed[target_place, s, a] = source.allowed[place, s, a]
    target.bounds[target_place] = source.bounds[place]
    for j in range(source.marks.shape[1]):
        target.marks[target_place, j] = source.marks[place, j]
