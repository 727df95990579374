"""Several threads work on one tree, a few of its open nodes at a time; the answer is the same for any number of them.

In each round the nodes of the least bounds are handed out, always as many, each with what is known by then, and worked
on as trees of their own. All are done before the next round begins, and they are taken back in the order in which they
were handed out. So the number of threads decides who does what, and nothing else.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np

from amdp import kernels
from amdp.kernels.search.state import NODES, OPEN, Known, Tree

SHARES = 8  # open nodes that are handed out in a round
SHARE_NODES = 1  # to which each of them may grow: more of them would stray from the nodes of the least bounds
ROUND_NODES = SHARES * SHARE_NODES
LONE_NODES = 64  # at the beginning, which are worked on in turn: small trees are done by then


class Team:
    """The threads that work on one tree."""

    def __init__(self, tree: Tree, threads: int) -> None:
        self._tree, self._threads = tree, threads
        self._parts: list[Tree] = []
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def can_share(self, nodes_left: float) -> bool:
        """Whether the tree has grown large enough for a round, and has room for what may come back."""
        tree = self._tree
        states, actions = tree.allowed.shape[1:]
        most = tree.counts[OPEN] + ROUND_NODES * actions + states * actions
        return bool(tree.counts[NODES] >= LONE_NODES and nodes_left >= ROUND_NODES and most < len(tree.bounds))

    def work(self, grow: Callable[[Tree, int], None]) -> None:
        """One round: `grow(part, nodes)` works on up to so many nodes of a part."""
        tree = self._tree
        if not self._parts:
            self._parts = [_part(tree) for _ in range(SHARES)]
        known = Known(tree.counts.copy(), tree.tries.copy(), tree.work.copy())
        parts = self._parts[: tree.counts[OPEN]]
        for place, part in enumerate(parts):
            kernels.search.shares.hand_out(tree, part)
            part.counts[NODES] += place  # as in turn: some bounds are tried at every fourth or 64th node only
        if self._threads == 1 or len(parts) == 1:
            for part in parts:
                grow(part, SHARE_NODES)
        else:
            self._pool = self._pool or ThreadPoolExecutor(self._threads)
            list(self._pool.map(lambda part: grow(part, SHARE_NODES), parts))
        for place, part in enumerate(parts):
            part.counts[NODES] -= place
            kernels.search.shares.take_back(tree, part, known)


def _part(tree: Tree) -> Tree:
    """An empty tree over the same kernel and costs, with room for what one open node may grow to."""
    states, actions = tree.allowed.shape[1:]
    room = SHARE_NODES * actions + 1
    return tree._replace(
        allowed=np.empty((room, states, actions), dtype=bool),
        bounds=np.empty(room),
        marks=np.empty((room, 2), dtype=np.int64),
        mixing=tree.mixing.copy(),
        loosened=tree.loosened.copy(),
        policy=tree.policy.copy(),
        best=tree.best.copy(),
        counts=tree.counts.copy(),
        tries=tree.tries.copy(),
        work=tree.work.copy(),
    )
