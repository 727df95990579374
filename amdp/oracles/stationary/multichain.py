"""The least average cost where it depends on where a walk ends: in each end component, and the way to them.

A walk ends up in an end component, whatever the policy. In a maximal one the least average is the same from every
state (`Iteration`). What remains is a choice of ends: every component and every other state becomes one node, whose
actions are those that may leave it, and a component may also be chosen to stay in. No policy can go round among the
nodes for ever, since it would go round in an end component that is larger than a maximal one. To wait in a node changes
nothing, so chances are those given that the node is left, and the smallest chance to leave counts in full.

With `v[x]` any numbers for the nodes, at most what is proved for staying, and no action with `P v - v` below `-d`, no
policy pays less on average than `v - d N` from its start, where `N` is the greatest expected number of nodes that are
left on the way.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from amdp.arrays import Floats
from amdp.model.end_components import EndComponent
from amdp.oracles.stationary.criteria import ROUNDING, Average, Policy, until_end
from amdp.oracles.stationary.howard import Iteration, Solved

STAY = -1
STEPS_MARGIN = 1.01  # of the expected number of nodes: its equations may lose digits

Choices = NDArray[np.intp]  # [x], the number of an action that leaves each node, or STAY


class _Ends(NamedTuple):
    """What the nodes pay under the best choices."""

    values: Floats  # [x]
    choices: Choices


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Components, then all other states; and the actions that may leave them, grouped by node."""

    of_state: NDArray[np.intp]  # [s]
    pairs: NDArray[np.intp]  # [p], the pairs s * A + a that may leave the node of their state
    owners: NDArray[np.intp]  # [p], these nodes
    moves: Any  # CSR [p, x], the chance of each node given that the own one is left

    @classmethod
    def of(cls, average: Average, components: list[EndComponent]) -> "_Nodes":
        """The nodes of a kernel."""
        states, actions = average.shape
        of_state, may_leave = np.full(states, STAY, dtype=np.intp), np.ones((states, actions), dtype=bool)
        for number, (members, allowed) in enumerate(components):
            of_state[members], may_leave[members] = number, ~allowed
        others = np.flatnonzero(of_state == STAY)
        of_state[others] = len(components) + np.arange(len(others))
        n_nodes = len(components) + len(others)
        pairs = np.flatnonzero(may_leave)
        pairs = pairs[np.argsort(of_state[pairs // actions], kind="stable")]
        owners = of_state[pairs // actions]
        member = scipy.sparse.csr_array((np.ones(states), (np.arange(states), of_state)), shape=(states, n_nodes))
        onward = (scipy.sparse.csr_array(average.moves[pairs]) @ member).tocoo()
        away = owners[onward.row] != onward.col
        row, column, chance = onward.row[away], onward.col[away], onward.data[away]
        share = chance / np.bincount(row, chance, len(pairs))[row]
        return cls(of_state, pairs, owners, scipy.sparse.csr_array((share, (row, column)), (len(pairs), n_nodes)))

    def cheapest(self, stays: Floats, price: float = 0.0) -> _Ends:
        """Policy iteration for the cost `stays` `[k]` of staying in a component, and a price for each leaving."""
        n_nodes = self.moves.shape[1]
        choices = np.searchsorted(self.owners, np.arange(n_nodes))  # the first action of each node
        choices[: len(stays)] = STAY
        seen = set[bytes]()
        while True:
            seen.add(choices.tobytes())
            values = self.evaluate(choices, stays, price)
            better = self._improved(choices, values, stays, price)
            if (better == choices).all() or better.tobytes() in seen:
                return _Ends(values, choices)
            choices = better

    def evaluate(self, choices: Choices, stays: Floats, price: float = 0.0) -> Floats:
        """What each node pays in the end, `[x]`."""
        left, ends = np.flatnonzero(choices != STAY), np.flatnonzero(choices == STAY)
        values = np.empty(len(choices))
        values[ends] = stays[ends]
        if len(left):
            onward = self.moves[choices[left]]
            to_ends, least = onward[:, ends], stays[ends].min()  # by differences, as in `Average`
            paid = price + to_ends @ (stays[ends] - least)
            values[left] = least + until_end(onward[:, left], np.asarray(to_ends.sum(axis=1)), paid)
        return values

    def drift(self, values: Floats, price: float = 0.0) -> Floats:
        """`price + P v - v` for each action, `[p]`, less what rounding may have added."""
        row = np.repeat(np.arange(len(self.pairs)), np.diff(self.moves.indptr))
        terms = self.moves.data * (values[self.moves.indices] - values[self.owners[row]])
        sums, sizes = (np.bincount(row, each, len(self.pairs)) for each in (terms, np.abs(terms)))
        result: Floats = price + sums - ROUNDING * (abs(price) + sizes)
        return result

    def _improved(self, choices: Choices, values: Floats, stays: Floats, price: float) -> Choices:
        """The best action of a node where it is better than the choice by more than rounding, or to stay."""
        result, drift = choices.copy(), self.drift(values, price)
        order = np.lexsort((drift, self.owners))
        nodes, first = np.unique(self.owners[order], return_index=True)
        best = order[first]
        doubt = ROUNDING * (1.0 + float(np.abs(values).max()))
        is_better = drift[best] < -2.0 * doubt
        result[nodes[is_better]] = best[is_better]
        gained = np.minimum(0.0, np.bincount(nodes, np.where(is_better, drift[best], 0.0), len(values)))[: len(stays)]
        result[: len(stays)][stays < values[: len(stays)] + gained - doubt] = STAY
        return result


class Multichain:
    """The search over a kernel with several end components."""

    horizon = 1.0

    def __init__(self, average: Average, components: list[EndComponent]) -> None:
        self._average, self._components = average, components
        self._parts = [_Part(average, component) for component in components]
        self._nodes = _Nodes.of(average, components)

    def solve(self, cost: Floats, end: float) -> Solved:
        """The best end for costs `[s, a]` of size at most 1, and the way there."""
        ends = [part.solve(cost, end) for part in self._parts]
        stays, gains, most = np.array([(each.bound, each.objective, each.most) for each in ends]).T
        values, choices = self._nodes.cheapest(stays)
        values[: len(stays)] = np.minimum(values[: len(stays)], stays)
        short = max(0.0, -float(self._nodes.drift(values).min(initial=0.0)))
        start = np.bincount(self._nodes.of_state, self._average.start, len(values))
        bound = float(start @ (values - short * STEPS_MARGIN * self._steps))
        objective, at_most = (float(start @ self._nodes.evaluate(choices, each)) for each in (gains, most))
        policy = self._policy(choices, [each.policy for each in ends])
        now = self._average.of_policy(policy, cost)
        shown = self._average.shown(now.values)
        iterations, is_complete = sum(each.iterations for each in ends), all(each.is_complete for each in ends)
        if not is_complete:  # then the states of a component may have averages of their own
            objective = self._average.objective(now)
        return Solved(policy, objective, min(bound, objective), at_most, shown, iterations, is_complete)

    @cached_property
    def _steps(self) -> Floats:
        """The greatest expected number of nodes that a walk leaves from each of them, `[x]`."""
        return -self._nodes.cheapest(np.zeros(len(self._components)), price=-1.0).values

    def _policy(self, choices: Choices, stays: list[Policy]) -> Policy:
        """The actions of the nodes: to stay as its component does, or to go to the state where it is left."""
        actions = self._average.shape[1]
        policy = np.zeros(self._average.shape[0], dtype=np.intp)
        for choice, part, own in zip(choices.tolist(), self._parts, stays, strict=False):
            exit_state = None if choice == STAY else int(self._nodes.pairs[choice]) // actions
            policy[part.states] = own if exit_state is None else part.towards(exit_state)
        leaves = self._nodes.pairs[choices[choices != STAY]]
        policy[leaves // actions] = leaves % actions
        return policy


class _Part:
    """An end component as a kernel of its own; an action that leaves it stands for the first one that does not."""

    def __init__(self, average: Average, component: EndComponent) -> None:
        self.states, allowed = component
        n_actions = allowed.shape[1]
        self._actions = np.where(allowed, np.arange(n_actions), allowed.argmax(axis=1)[:, None])  # [k, a]
        pairs = (self.states[:, None] * n_actions + self._actions).reshape(-1)
        moves = average.moves[pairs][:, self.states]
        start = np.full(len(self.states), 1.0 / len(self.states))  # all states have the same least average
        self._iteration = Iteration(Average(moves, allowed.shape, start))

    def solve(self, cost: Floats, end: float) -> Solved:
        """The least average among policies that stay."""
        own_cost = np.take_along_axis(cost[self.states], self._actions, axis=1)
        solved = self._iteration.solve(own_cost, end)
        return solved._replace(policy=self._real(solved.policy))

    def towards(self, state: int) -> Policy:
        """The actions that stay, and sooner or later come to a state."""
        moves, found = self._iteration.criterion.moves, self.states == state
        policy = np.zeros(len(self.states), dtype=np.intp)
        while not found.all():
            leads = (moves @ found.astype(np.float64) > 0.0).reshape(self._actions.shape)
            new = leads.any(axis=1) & ~found
            policy[new] = leads[new].argmax(axis=1)
            found |= new
        return self._real(policy)

    def _real(self, policy: Policy) -> Policy:
        return self._actions[np.arange(len(policy)), policy]
