"""Trials: policies drawn like the one that was played, until one of them meets each pair of a segment.

Two roads to the same counts, to the last bit: batch by batch through any oracle, or compiled as a whole.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from amdp import kernels
from amdp.arrays import Actions, Floats
from amdp.dynamics import Segment
from amdp.errors import InvalidInput
from amdp.feedback import Weights
from amdp.mdp import Domain, SingleKernel
from amdp.seeding import lanes

BATCH = 32  # trials made together: as fast as larger batches, and fewer of them are in vain

Policies = Callable[[int], Actions]  # the next `n` of a stream of independent policies, `[n, h, s]`


class Sampler(Protocol):
    """A distribution over deterministic policies that can be sampled at will."""

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from."""
        ...

    def policies(self, rng: np.random.Generator) -> Policies:
        """A stream of independent policies."""
        ...


class Trials(Protocol):
    """Ways to count the trials until each pair of a segment is met, at most `limit` for each."""

    def together(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Each trial serves all pairs."""
        ...

    def apart(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Each trial serves one pair."""
        ...


@dataclass(frozen=True, eq=False)
class BatchedTrials:
    """Trials through any oracle and over any dynamics."""

    source: Sampler

    def together(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Batches until every pair was met, or the limit is reached."""
        domain, policies, uniforms = self._streams(segment, rng)
        counts = np.zeros(len(segment.states))
        done = 0
        while done < limit and not counts.all():
            n = min(BATCH, limit - done)
            met = domain.dynamics.meets_all(policies(n), domain.initial, segment, uniforms(n))
            first = np.where(met.any(axis=0), done + met.argmax(axis=0) + 1, 0)
            counts = np.where(counts == 0, first, counts)
            done += n
        return Weights(np.where(counts == 0, float(limit), counts), done)

    def apart(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """Batches in which all pairs that still wait get the same number of trials."""
        domain, policies, uniforms = self._streams(segment, rng)
        counts = np.zeros(len(segment.states))
        waiting = np.arange(len(segment.states))
        done, trials = 0, 0
        while len(waiting) and done < limit:
            each = min(max(1, BATCH // len(waiting)), limit - done)
            steps = np.repeat(waiting, each)
            drawn = policies(len(steps))
            met = domain.dynamics.meets(drawn, domain.initial, segment, steps, uniforms(len(steps))).reshape(-1, each)
            counts[waiting] = done + np.where(met.any(axis=1), met.argmax(axis=1) + 1, each)
            waiting = waiting[~met.any(axis=1)]
            done += each
            trials += len(steps)
        return Weights(counts, trials)

    def _streams(self, segment: Segment, rng: np.random.Generator) -> tuple[Domain, Policies, Callable[[int], Floats]]:
        policies, luck = self.source.policies(rng), lanes(rng)

        def uniforms(n: int) -> Floats:
            numbers = np.empty((n, segment.stop))
            kernels.noise.fill_uniform(luck, numbers)
            return numbers

        return self.source.domain, policies, uniforms


@dataclass(frozen=True, eq=False)
class CompiledTrials:
    """Laplace noise of a given scale on `total`, backward induction over one kernel: no Python in between."""

    kernel: SingleKernel
    initial: int
    total: Floats  # [h, s, a]
    scale: float

    def policies(self, rng: np.random.Generator) -> Policies:
        """A stream of independent policies."""
        noise = lanes(rng)
        steps, states, _ = self.total.shape

        def policies(n: int) -> Actions:
            actions = np.empty((steps, n, states), dtype=np.int32)
            self._require_sound(kernels.trials.leaders(self.kernel.rows, noise, self.scale, self.total, actions))
            return actions.swapaxes(0, 1)

        return policies

    def together(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """As `BatchedTrials` does."""
        return self._searched(kernels.trials.together, segment, limit, rng)

    def apart(self, segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        """As `BatchedTrials` does."""
        return self._searched(kernels.trials.apart, segment, limit, rng)

    def _searched(self, search: Callable[..., int], segment: Segment, limit: int, rng: np.random.Generator) -> Weights:
        kernel, counts = self.kernel, np.empty(len(segment.states))
        seeds = lanes(rng), lanes(rng)
        wanted = self.initial, segment.start, segment.states, segment.actions
        trials = search(kernel.rows, kernel.paths, *seeds, self.scale, self.total, *wanted, limit, BATCH, counts)
        self._require_sound(trials >= 0)
        return Weights(counts, trials)

    def _require_sound(self, finite: bool) -> None:
        if not finite:
            raise InvalidInput(f"loss estimates reach {np.abs(self.total).max():g}; a perturbed cost is not finite")
