"""Resampling trials: policies drawn like the one that was played, until one of them visits each pair of a segment.

There are two implementations with the same counts, to the last bit: batches through any oracle, or one compiled loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.base import DistributionWithTrials, PolicyStream, Trials
from amdp.algorithms.estimators.feedback import Weights
from amdp.arrays import Actions, Bools, Floats
from amdp.errors import InvalidInput
from amdp.kernels.layout import WIDTH, lanes, many_lanes
from amdp.kernels.rows import ReachedStates
from amdp.model.chains import stationary_visits
from amdp.model.domains import StationaryPolicies
from amdp.model.dynamics import CompiledDynamics
from amdp.model.reach import BATCH, BATCH_NUMBERS
from amdp.model.segments import Segment


@dataclass(frozen=True, eq=False)
class BatchedTrials:
    """Trials through any oracle and over any dynamics."""

    distribution: DistributionWithTrials

    def shared(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Batches until every pair was met, or the limit is reached."""
        domain, policies, uniforms = (
            self.distribution.domain,
            self.distribution.policies(rng),
            uniform_stream(rng),
        )

        def meets(n: int) -> Bools:
            return domain.dynamics.meets_all(policies(n), domain.initial, segment, uniforms(n, segment.stop))

        return count_shared(meets, len(segment.states), limit, BATCH)

    def per_step(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Batches in which all pairs that still wait get the same number of trials."""
        domain, policies, uniforms = (
            self.distribution.domain,
            self.distribution.policies(rng),
            uniform_stream(rng),
        )

        def meets(steps: NDArray[np.int64]) -> Bools:
            n = len(steps)
            return domain.dynamics.meets(policies(n), domain.initial, segment, steps, uniforms(n, segment.stop))

        return _per_step(meets, len(segment.states), limit, BATCH)


@dataclass(frozen=True, eq=False)
class StationaryTrials:
    """Trials of stationary policies: each is at a pair with a chance that is known, and drawn without a path."""

    distribution: DistributionWithTrials
    visits: Callable[[Actions, Segment], Floats]  # policies [n, s] -> the chance [n, m] of each pair of the segment

    @classmethod
    def from_start(cls, distribution: DistributionWithTrials, domain: StationaryPolicies) -> Self:
        """Trials that are followed from the initial state on."""
        return cls(distribution, lambda actions, segment: stationary_visits(domain, actions, segment.pairs))

    def shared(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Batches until every pair was met, or the limit is reached."""
        policies, uniforms = self.distribution.policies(rng), uniform_stream(rng)

        def meets(n: int) -> Bools:
            met: Bools = uniforms(n, len(segment.states)) < self.visits(policies(n), segment)
            return met

        return count_shared(meets, len(segment.states), limit, self._batch)

    def per_step(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Batches in which all pairs that still wait get the same number of trials."""
        policies, uniforms = self.distribution.policies(rng), uniform_stream(rng)

        def meets(steps: NDArray[np.int64]) -> Bools:
            n = len(steps)
            met: Bools = uniforms(n, 1)[:, 0] < self.visits(policies(n), segment)[np.arange(n), steps]
            return met

        return _per_step(meets, len(segment.states), limit, self._batch)

    @property
    def _batch(self) -> int:
        return min(BATCH, max(1, BATCH_NUMBERS // prod(self.distribution.domain.shape)))


def batched(distribution: DistributionWithTrials) -> Trials:
    """Trials through any oracle, as the domain asks for."""
    domain = distribution.domain
    if isinstance(domain, StationaryPolicies):
        return StationaryTrials.from_start(distribution, domain)
    return BatchedTrials(distribution)


def count_shared(meets: Callable[[int], Bools], pairs: int, limit: int, batch: int) -> Weights:
    """Count with trials `meets(n)` `[n, m]` that serve all pairs."""
    counts = np.zeros(pairs)
    done = 0
    while done < limit and not counts.all():
        n = min(batch, limit - done)
        met = meets(n)
        first = np.where(met.any(axis=0), done + met.argmax(axis=0) + 1, 0)
        counts = np.where(counts == 0, first, counts)
        done += n
    return Weights(np.where(counts == 0, float(limit), counts), done)


def _per_step(meets: Callable[[NDArray[np.int64]], Bools], pairs: int, limit: int, batch: int) -> Weights:
    """Count with trials `meets(steps)` `[n]`, each for one pair."""
    counts = np.zeros(pairs)
    waiting = np.arange(pairs)
    done, trials = 0, 0
    while len(waiting) and done < limit:
        each = min(max(1, batch // len(waiting)), limit - done)
        steps = np.repeat(waiting, each)
        met = meets(steps).reshape(-1, each)
        counts[waiting] = done + np.where(met.any(axis=1), met.argmax(axis=1) + 1, each)
        waiting = waiting[~met.any(axis=1)]
        done += each
        trials += len(steps)
    return Weights(counts, trials)


def uniform_stream(rng: np.random.Generator) -> Callable[[int, int], Floats]:
    """Uniform numbers `[n, size]`, call after call."""
    generators = lanes(rng)

    def uniforms(n: int, size: int) -> Floats:
        numbers = np.empty((n, size))
        kernels.noise.fill_uniform(generators, numbers)
        return numbers

    return uniforms


class CompiledTrials(NamedTuple):
    """Laplace noise of a given scale on `total`, and backward induction: no Python in between."""

    dynamics: CompiledDynamics
    initial: int
    reached: ReachedStates
    total: Floats  # [h, s, a]
    scale: float

    def policies(self, rng: np.random.Generator) -> PolicyStream:
        """A stream of independent policies; the action in states that cannot be reached is 0."""
        noise, rows = lanes(rng), self.dynamics.leader_rows

        def policies(n: int) -> Actions:
            actions = np.zeros((*self.total.shape[:2], -(-n // WIDTH) * WIDTH), dtype=np.int32)
            finite = kernels.trials.leaders(rows, self.reached, noise, self.scale, self.total, n, actions)
            require_sound(self.total, finite)
            return actions[:, :, :n].transpose(2, 0, 1)

        return policies

    def policy(self, rng: np.random.Generator) -> Actions:
        """One policy `[h, s]`, with noise in all states."""
        steps, states, _ = self.total.shape
        actions = np.empty((steps, 1, states), dtype=np.int32)
        finite = kernels.trials.leader(self.dynamics.rows, lanes(rng), self.scale, self.total, actions)
        require_sound(self.total, finite)
        return actions[:, 0]

    def shared(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """The same counts as those of `BatchedTrials`."""
        return self._searched(kernels.trials.shared, segment, limit, rng)

    def per_step(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """The same counts as those of `BatchedTrials`."""
        return self._searched(kernels.trials.per_step, segment, limit, rng)

    def _searched(self, search: Callable[..., int], segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        dynamics, counts = self.dynamics, np.empty(len(segment.states))
        seeds = many_lanes(rng, 2)
        rows = dynamics.leader_rows, self.reached, dynamics.meeting_rows
        wanted = self.initial, segment.start, segment.states, segment.actions
        trials = search(*rows, *seeds, self.scale, self.total, *wanted, limit, BATCH, counts)
        require_sound(self.total, trials >= 0)
        return Weights(counts, trials)


def require_sound(total: Floats, finite: bool) -> None:
    """Refuse loss estimates that lead to costs that are not finite."""
    if not finite:
        raise InvalidInput(f"loss estimates reach {np.abs(total).max():g}; a perturbed cost is not finite")
