"""Trials of reach-scaled resampling: through any oracle, or in one compiled loop, with the same weights to the bit.

The mathematics stands in `amdp.algorithms.estimators.resampling`, what a trial knows of its chances in
`amdp.model.reach`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from amdp import kernels
from amdp.algorithms.base import DistributionWithTrials
from amdp.algorithms.estimators.feedback import Weights
from amdp.algorithms.estimators.trials import require_sound, uniform_stream
from amdp.arrays import Floats
from amdp.kernels.layout import many_lanes
from amdp.kernels.rows import ReachedStates
from amdp.model.reach import CompiledReach, Reach
from amdp.model.segments import Segment


@dataclass(frozen=True, eq=False)
class ScaledTrials:
    """Trials through any oracle and over any dynamics."""

    distribution: DistributionWithTrials
    reach: Reach

    def shared(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        bounds, limits = self.reach.scaled(segment, limit)
        policies = self.distribution.policies(rng)
        uniforms = uniform_stream(rng)
        batches = self.reach.batches(segment)
        weights, is_open, done = np.zeros(len(limits)), np.ones(len(limits), bool), 0
        while n := kernels.trials.shared_batch(is_open, limits, done, batches):
            actions = policies(n)
            paths, coins = uniforms(n, self.reach.path_numbers(segment)), uniforms(1, len(limits))[0]
            wanted = is_open & (done + np.arange(n)[:, None] < limits)
            chances = self.reach.chances(actions, segment, wanted, paths)
            kernels.trials.weigh_shared(chances, bounds, limits, done, coins, is_open, weights)
            done += n
        return Weights(weights, done)

    def per_step(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        bounds, limits = self.reach.scaled(segment, limit)
        policies = self.distribution.policies(rng)
        uniforms = uniform_stream(rng)
        weights, is_open, done, trials = np.zeros(len(limits)), np.ones(len(limits), bool), 0, 0
        batch = self.reach.batches(segment).max()
        owner = np.empty(max(batch, len(limits)), np.int64)
        while True:
            each, n = kernels.trials.per_step_batch(is_open, limits, done, batch, owner)
            if n == 0:
                return Weights(weights, trials)
            actions = policies(n)
            paths, coins = uniforms(n, self.reach.path_numbers(segment)), uniforms(1, len(limits))[0]
            wanted = owner[:n, None] == np.arange(len(limits))
            chances = self.reach.chances(actions, segment, wanted, paths)
            kernels.trials.weigh_per_step(chances, bounds, limits, done, each, coins, is_open, weights)
            done += each
            trials += n


class CompiledScaledTrials(NamedTuple):
    """Laplace noise of a given scale on `total`, and backward induction: no Python in between."""

    reach: CompiledReach
    reached: ReachedStates
    total: Floats  # [h, s, a]
    scale: float

    def shared(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        return self._weighed(kernels.trials.scaled_shared, segment, limit, rng)

    def per_step(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        return self._weighed(kernels.trials.scaled_per_step, segment, limit, rng)

    def _weighed(self, search: Callable[..., int], segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        reach, weights = self.reach, np.empty(len(segment.states))
        seeds = many_lanes(rng, 2)
        pairs = reach.initial, segment.start, segment.states, segment.actions
        bounds, limits = reach.scaled(segment, limit)
        sizes = reach.batches(segment), reach.path_numbers(segment)
        rows = reach.dynamics.leader_rows, self.reached, reach.rows
        trials = search(*rows, *seeds, self.scale, self.total, *pairs, bounds, limits, *sizes, weights)
        require_sound(self.total, trials >= 0)
        return Weights(weights, trials)
