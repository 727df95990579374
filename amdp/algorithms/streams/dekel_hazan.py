"""Exponential weights over closed walks in blocks: a reconstruction of Dekel and Hazan (2013).

Bandit feedback, certain moves, all states reaching each other. The published algorithm, as it is remembered, is bandit
linear optimization over flows with a layer over lengths on top; its constants are not recalled [from memory]. This
one is complete and has the same `T^(2/3)` [derived]. Time is cut into blocks of `B` steps. In each,

1. draw a closed walk `e` of length `k <= S` with chance in proportion to `exp(-rate sum_j C_k[j, e_j])`;
2. go there, within the critical length `d`, and follow it to the end of the block;
3. the pair `e_j` is met at all steps `t` with `t mod k = j`; with `G_j` the sum of its losses after the first `d` steps
   of the block, and `m_k[j, e_j]` the chance that a walk of length `k` with that pair is drawn, add `G_j / m_k[j, e_j]`
   to `C_k[j, e_j]`.

The estimates have the mean `G_j`, whatever the walk. Sums over all walks are message passing in logarithms; those of a
length are found anew only when its estimates changed, after it was played.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, log, sqrt
from time import perf_counter_ns
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from amdp import kernels
from amdp.algorithms.blocks import BlockResult
from amdp.algorithms.bounds import require_rate, require_rounds
from amdp.algorithms.estimators.feedback import Bandit, Feedback
from amdp.algorithms.streams.blocks import StepForm, chosen_result, empty_steps
from amdp.algorithms.streams.closed_walks import (
    PursuedWalk,
    as_arrays,
    certain_moves,
    loaded_pursuit,
    saved_pursuit,
)
from amdp.algorithms.streams.steps import RandomKey, StepLearner, StreamBound, require_now, stationary
from amdp.algorithms.task import Task
from amdp.arrays import Floats, refuse, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.blocks import LEARN, Block, Played
from amdp.model.domains import Domain
from amdp.model.walk_graphs import ClosedWalk, Closing, Pursuit, WalkGraph


@dataclass(frozen=True, eq=False)
class WalkWeights:
    """The chance of every closed walk: in proportion to `exp(-rate cost)`."""

    graph: WalkGraph
    closing: Closing
    rate: float
    costs: Floats = field(repr=False)  # [r, s, a]
    logs: Floats = field(repr=False)  # [i, c], of the weight of all walks of that length and start

    @classmethod
    def of(cls, graph: WalkGraph, closing: Closing, rate: float, costs: Floats) -> Self:
        """The weights of all closed walks for `costs` `[r, s, a]`."""
        logs = np.empty((len(closing.lengths), len(closing.starts)))
        for length, row in zip(closing.lengths, logs, strict=True):
            kernels.walks.weigh(graph.following, costs, rate, length, closing.starts, row)
        if not np.isfinite(logs).any():
            raise InvalidInput(f"there is no closed walk of at most {closing.lengths[-1]} pairs; allow longer ones")
        return cls(graph, closing, rate, costs, logs)

    def drawn(self, uniforms: Floats) -> ClosedWalk:
        """The walk drawn by uniform random numbers: one for length and start, then one for each step."""
        below = np.cumsum(np.exp(self.logs - self.logs.max()))
        chosen = int(np.searchsorted(below, uniforms[0] * below[-1], side="right"))
        i, c = np.unravel_index(chosen, self.logs.shape)
        length, start = self.closing.lengths[i], self.closing.starts[c]
        states, actions = kernels.walks.draw(
            self.graph.following, self.costs, self.rate, length, start, uniforms[1 : 1 + length]
        )
        return ClosedWalk(states, actions)

    def chance(self, length: int, place: int, state: int, action: int) -> float:
        """The chance that a drawn walk has this length and takes this pair at this place."""
        if self.graph.classes[state] != place % self.graph.period:
            return 0.0  # such walks go around as well, but never in step with the initial state
        weight = kernels.walks.passing(self.graph.following, self.costs, self.rate, length, place, state, action)
        return float(np.exp(weight - self._log_total))

    def chances(self, walk: ClosedWalk) -> Floats:
        """The chances `[k]` of the pair at each place of a walk."""
        pairs = zip(walk.states, walk.actions, strict=True)
        return np.array([self.chance(len(walk), place, s, a) for place, (s, a) in enumerate(pairs)])

    @cached_property
    def _log_total(self) -> float:
        return float(logsumexp(self.logs))

    def learned(self, walk: ClosedWalk, losses: Floats) -> Self:
        """After the pairs of a walk met the `losses` `[k]` in a block."""
        k = len(walk)
        costs, logs = self.costs.copy(), self.logs.copy()
        costs[k * (k - 1) // 2 + np.arange(k), walk.states, walk.actions] += losses / self.chances(walk)
        i = int(np.searchsorted(self.closing.lengths, k))
        kernels.walks.weigh(self.graph.following, costs, self.rate, k, self.closing.starts, logs[i])
        return replace(self, costs=costs, logs=logs)


@dataclass(frozen=True, eq=False)
class BlockOfWalk(PursuedWalk):
    """The state of `DekelHazan`: the walk of the current block, and the losses of its pairs so far."""

    weights: WalkWeights
    random_key: RandomKey
    met: Floats = field(repr=False)  # [k], losses of each place, after the first `d` steps

    @property
    def window(self) -> int:
        """The first step of the block whose losses count: by then every walk has been reached."""
        return self.pursuit.since + self.weights.graph.critical

    def turned(self) -> Self:
        """At the end of a block: add its estimates, and draw the walk of the next one."""
        weights = self.weights.learned(self.pursuit.walk, self.met)
        pursuit = _pursued(weights, self.random_key, self.time, self.state)
        return replace(self, weights=weights, pursuit=pursuit, met=np.zeros(len(pursuit.walk)))


@dataclass(frozen=True)
class DekelHazan(StepLearner[BlockOfWalk]):
    """Blocks of `block` steps, closed walks of at most `longest` pairs, as many as states if None."""

    rate: float
    block: int
    longest: int | None = None
    feedback: ClassVar[type] = Bandit

    def __post_init__(self) -> None:
        require_rate(self.rate)
        require_whole("block", self.block, 1)

    @classmethod
    def tuned(cls, domain: Domain, rounds: int, *, multiplier: float = 1.0, block: int | None = None) -> Self:
        """Blocks of `max(2d, S, (d^2 T / (2 S^2 A ln N))^(1/3))` steps, rate `sqrt(ln N / (2 T B S^2 A))` [derived].

        `ln N = 2 ln S + S ln A` bounds the number of walks. `multiplier` scales the rate.
        """
        graph = certain_moves(domain)
        _, states, actions = domain.shape
        moves, distance = states**2 * actions, _log_walks(states, actions)
        best = (graph.critical**2 * require_rounds(rounds) / (2.0 * moves * distance)) ** (1 / 3) if distance else 1.0
        length = max(2 * graph.critical, states, ceil(best)) if block is None else block
        return cls(multiplier * sqrt(distance / (2.0 * rounds * length * moves)), length)

    def start(self, domain: Domain, rng: np.random.Generator) -> BlockOfWalk:
        graph, known = certain_moves(domain), stationary(domain)
        if self.block <= graph.critical:
            raise InvalidInput(f"{self.block}; it must be above {graph.critical}, the steps to catch a walk", "block")
        closing = graph.closing(self.longest)
        weights = WalkWeights.of(graph, closing, self.rate, np.zeros((closing.rows, *domain.shape[1:])))
        random_key = RandomKey.fresh(rng)
        pursuit = _pursued(weights, random_key, 0, known.initial)
        met = np.zeros(len(pursuit.walk))
        return BlockOfWalk(known, pursuit, weights, random_key, met, state=known.initial)

    def learn(self, distribution: BlockOfWalk, feedback: Feedback) -> BlockOfWalk:
        """Add the loss to those of its pair; at the end of a block, draw another walk."""
        if not isinstance(feedback, Bandit):
            raise InvalidInput(f"this learner understands Bandit, not {type(feedback).__name__}")
        require_now(feedback, distribution.time)
        refuse("losses", feedback.losses, ~(feedback.losses >= 0.0), "h", "must not be negative")
        time = distribution.time - 1
        if time >= distribution.window:
            met = distribution.met.copy()
            met[time % len(met)] += feedback.losses[0]
            distribution = replace(distribution, met=met)
        return distribution.turned() if distribution.time % self.block == 0 else distribution

    def block_form(self, domain: Domain) -> "WalkBlockSteps | None":
        """Its compiled form: the steps of a block; walks are weighed and drawn between blocks."""
        return WalkBlockSteps(self) if type(self) is DekelHazan else None

    def bound(self, domain: Domain, rounds: int) -> StreamBound:
        """`ln N / rate + rate n SA sum_k k^2 ceil((B - d) / k)^2 / 2 + d n + S` over `n = ceil(T / B)` blocks.

        [derived] The second moment of a walk's estimate, averaged over the walks, is at most `k` times the sum over
        places and pairs of `G_j^2`, and a pair is met at most `ceil((B - d) / k)` times. With `B >= S` the second term
        is at most `2 rate T B S^2 A`, but for the last block.
        """
        graph = certain_moves(domain)
        _, states, actions = domain.shape
        lengths = graph.closing(self.longest).lengths
        blocks, window = ceil(rounds / self.block), self.block - graph.critical
        seconds = float(((lengths * np.ceil(window / lengths)) ** 2).sum())
        distance = _log_walks(states, actions)
        return StreamBound(
            distance / self.rate if distance else 0.0,
            self.rate * blocks * states * actions * seconds / 2.0,
            float(graph.critical * blocks),
            float(states),
        )


@dataclass(frozen=True)
class WalkBlockSteps(StepForm[BlockOfWalk]):
    """`DekelHazan`, as many steps at once as its own blocks and those of the game allow."""

    learner: DekelHazan

    def play(
        self, distribution: BlockOfWalk, block: Block, space: object, rng: np.random.Generator
    ) -> tuple[BlockOfWalk, BlockResult]:
        played, low, steps = empty_steps(block), 0, len(block.slots)
        while low < steps:
            high = min(steps, low + self.learner.block - distribution.time % self.learner.block)
            distribution = self._met(distribution, block, low, high, played)
            low = high
        return distribution, chosen_result(played, distribution.state, distribution.weights.graph.states)

    def _met(self, distribution: BlockOfWalk, block: Block, low: int, high: int, played: Played) -> BlockOfWalk:
        """After the steps `low .. high - 1` of a block of the game, none of them beyond the learner's own block."""
        met, n_actions, time = distribution.met.copy(), distribution.domain.shape[2], distribution.time
        began = distribution.state, *as_arrays(distribution.pursuit), time, n_actions, distribution.window
        state = kernels.walks.meet(block, low, high, *began, met, played)
        after = replace(distribution, met=met, time=time + high - low, state=int(state))
        if after.time % self.learner.block:
            return after
        clock = perf_counter_ns()
        turned = after.turned()
        played.spent[LEARN] += perf_counter_ns() - clock
        return turned

    def save(self, distribution: BlockOfWalk) -> dict[str, NDArray[Any]]:
        key = np.array(distribution.random_key.key)
        weights = {"costs": distribution.weights.costs, "logs": distribution.weights.logs}
        return saved_pursuit(distribution) | weights | {"met": distribution.met, "key": key}

    def load(self, distribution: BlockOfWalk, saved: Mapping[str, NDArray[Any]]) -> BlockOfWalk:
        weights = replace(distribution.weights, costs=saved["costs"], logs=saved["logs"])
        key = RandomKey(int(saved["key"]))
        return replace(loaded_pursuit(distribution, saved), weights=weights, met=saved["met"], random_key=key)


def _pursued(weights: WalkWeights, random_key: RandomKey, time: int, state: int) -> Pursuit:
    walk = weights.drawn(random_key.uniforms(time, 1 + int(weights.closing.lengths[-1])))
    return weights.graph.pursue(walk, time, state)


def _log_walks(states: int, actions: int) -> float:
    return 2.0 * log(states) + states * log(actions)


def dekel_hazan(
    task: Task, *, rate: float | None = None, block: int | None = None, longest: int | None = None
) -> DekelHazan:
    """Bandit feedback, certain moves: exponential weights over closed walks, a reconstruction of Dekel and Hazan."""
    if block is not None:
        require_whole("block", block, 1)
    domain = task.stream()
    certain_moves(domain).closing(longest)  # refuses what is no length of a walk
    return task.by_hand(DekelHazan.tuned(domain, task.rounds, block=block), rate, block=block, longest=longest)
