"""Regret against sequences of policies, under one kernel or under kernels that change.

The rounds are cut at edges `0 = e_0 < e_1 < ... < e_b = K`. A comparator may change its policy at edges only, at most
so many times; with no change this is the static regret. With one kernel an oracle finds the best policy of each
interval. With several, the cost `sum over k of V(pi; l_k, P_k)` is no cost of one MDP, and the best policy is found by
enumeration. It is deterministic: the cost is linear in each row `pi(. | h, s)`, the others fixed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from amdp.arrays import Floats, one_hot, require_whole
from amdp.errors import InvalidInput
from amdp.game.arenas import Episodic, Evolving, WithinBudgets
from amdp.game.blocks import BLOCK, Block, in_blocks
from amdp.game.loop import ArenaGame
from amdp.game.rounds import Round
from amdp.kernels.threads import multiply
from amdp.model.domains import MarkovPolicies
from amdp.model.evaluation import occupancy
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import PlanningOracle, Status, bind

MOST_POLICIES = 2**16  # that are enumerated
MOST_EDGES = 512  # intervals are pairs of them
INTERVALS = 64  # equal parts of a game at whose edges comparators may change, if nobody says where


@dataclass(frozen=True, eq=False)
class DynamicRegret:
    """The loss incurred in all rounds, and the least loss of a sequence of policies."""

    paid: float
    best: Floats  # [m], with at most 0, 1, ..., m - 1 changes at edges; the last may change at every edge
    best_each_round: float  # with a change in every round

    @property
    def static(self) -> float:
        """The regret against the best single policy."""
        return float(self.against[0])

    @property
    def against(self) -> Floats:
        """The regret against sequences of at most 0, 1, ... changes, `[m]`."""
        regrets: Floats = self.paid - self.best
        return regrets

    @property
    def dynamic(self) -> float:
        """The regret against the best policy of each round."""
        return self.paid - self.best_each_round


def measure_dynamic(
    game: ArenaGame,
    played: Iterable[Round] | Iterable[Block],
    edges: Sequence[int],
    oracle: str | PlanningOracle = "dp",
) -> DynamicRegret:
    """Play all rounds and compare; the oracle plans where there is one kernel. It must prove what it finds."""
    incurred, count = 0.0, 0
    for block in in_blocks(iter(played), game.losses.shape):
        count += len(block)
        incurred += float(game.arena.charged(block, game.losses).sum())
    if count != game.rounds:
        raise InvalidInput(f"{count} rounds were played; the comparators play all {game.rounds}")
    return against_sequences(game, incurred, edges, oracle)


def against_sequences(
    game: ArenaGame, paid: float, edges: Sequence[int], oracle: str | PlanningOracle = "dp"
) -> DynamicRegret:
    """The dynamic regret of somebody who paid so much in all rounds: nothing else of the play is needed."""
    return DynamicRegret(paid, best_sequences(interval_costs(game, edges, oracle)), best_each_round(game, oracle))


def even_edges(rounds: int, intervals: int = INTERVALS) -> list[int]:
    """The edges of so many intervals of equal length, up to rounding; at most one for each round."""
    require_whole("intervals", intervals, 1, MOST_EDGES - 1)
    edges: list[int] = np.linspace(0, rounds, min(intervals, rounds) + 1).round().astype(np.int64).tolist()
    return edges


def best_sequences(costs: Floats) -> Floats:
    """The least cost `[b]` of a sequence with at most `0, ..., b - 1` changes, of interval costs `[b + 1, b + 1]`.

    `f_m(j) = min over i < j of f_{m-1}(i) + costs[i, j]`, and `f_0(j) = costs[0, j]`.
    """
    least = costs[0].copy()
    totals = [least[-1]]
    for _ in range(len(costs) - 2):
        least = np.minimum(least, (least[:, None] + costs).min(axis=0))
        totals.append(least[-1])
    return np.array(totals)


def interval_costs(game: ArenaGame, edges: Sequence[int], oracle: str | PlanningOracle = "dp") -> Floats:
    """The cost `[i, j]` of the best single policy for the rounds from edge `i` to edge `j`, infinite if not `i < j`."""
    kernels, schedule = _kernels(game)
    cuts = _edges(edges, game.rounds)
    sums = np.zeros((len(kernels), len(cuts), *game.arena.kernel.shape))  # up to each edge, by kernel
    for b, (first, last) in enumerate(pairwise(cuts)):
        sums[:, b + 1] = sums[:, b]
        for k in range(first, last):
            sums[schedule[k], b + 1] += game.table(k)
    return _least(kernels, game.arena.initial, sums, oracle)


def best_each_round(game: ArenaGame, oracle: str | PlanningOracle = "dp") -> float:
    """What the best policy of each round pays in all."""
    kernels, schedule = _kernels(game)
    total = 0.0
    for i, kernel in enumerate(kernels):
        planner = bind(oracle, MarkovPolicies(kernel, game.arena.initial))
        rounds = np.flatnonzero(schedule == i)
        for low in range(0, len(rounds), BLOCK):
            tables = np.stack([game.table(int(k)) for k in rounds[low : low + BLOCK]])
            total += float(planner.minimize(tables).require(Status.OPTIMAL).objective.sum())
    return total


def _kernels(game: ArenaGame) -> tuple[tuple[SingleKernel, ...], NDArray[np.int64]]:
    arena = game.arena
    if isinstance(arena, Evolving):
        return arena.kernels, arena.schedule
    if isinstance(arena, WithinBudgets):
        raise InvalidInput("dynamic regret is against sequences of policies, which are not held to budgets here")
    if isinstance(arena, Episodic):
        return (arena.kernel,), np.zeros(game.rounds, dtype=np.int64)
    raise InvalidInput(f"{type(arena).__name__} is one stream of steps; dynamic regret is measured in episodes")


def _least(kernels: Sequence[SingleKernel], initial: int, sums: Floats, oracle: str | PlanningOracle) -> Floats:
    """Interval costs from the sums `[c, b + 1, h, s, a]`."""
    edges = sums.shape[1]
    first, last = np.triu_indices(edges, 1)
    costs = np.full((edges, edges), np.inf)
    if len(kernels) == 1:
        planner = bind(oracle, MarkovPolicies(kernels[0], initial))
        costs[first, last] = planner.minimize(sums[0, last] - sums[0, first]).require(Status.OPTIMAL).objective
        return costs
    upto = _policy_costs(kernels, initial, sums)
    for i in range(edges - 1):
        costs[i, i + 1 :] = (upto[:, i + 1 :] - upto[:, i, None]).min(axis=0)
    return costs


def _policy_costs(kernels: Sequence[SingleKernel], initial: int, sums: Floats) -> Floats:
    """What every deterministic policy pays up to each edge, `[n, b + 1]`."""
    steps, states, actions = kernels[0].shape
    if actions ** (steps * states) > MOST_POLICIES:
        raise InvalidInput(
            f"{float(actions) ** (steps * states):.3g} policies, at most {MOST_POLICIES} are enumerated, which several "
            "kernels ask for; take a smaller world"
        )
    digits = actions ** np.arange(steps * states)
    every = np.arange(actions ** (steps * states))[:, None] // digits % actions
    policies = one_hot(every.reshape(-1, steps, states), actions)
    costs = np.zeros((len(every), sums.shape[1]))
    for kernel, tables in zip(kernels, sums, strict=True):
        visits = occupancy(kernel, policies, initial).reshape(len(every), -1)
        costs += multiply(visits, tables.reshape(len(tables), -1).T)
    return costs


def _edges(wanted: Sequence[int], rounds: int) -> NDArray[np.int64]:
    edges = np.asarray(wanted)
    if edges.ndim != 1 or edges.dtype.kind not in "iu" or not 2 <= len(edges) <= MOST_EDGES:
        raise InvalidInput(f"edges must be a list of 2 to {MOST_EDGES} whole numbers")
    if edges[0] != 0 or edges[-1] != rounds or (np.diff(edges) <= 0).any():
        raise InvalidInput(f"edges must increase from 0 to {rounds}, the number of rounds")
    return edges.astype(np.int64)
