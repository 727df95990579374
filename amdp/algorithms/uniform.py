"""Uniform play: every action with the same chance, in every step. The baseline that a learner has to beat."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.task import Task
from amdp.arrays import Policies
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Segment


@dataclass(frozen=True, eq=False)
class UniformPolicy:
    """The policy that chooses uniformly among all actions, with certainty."""

    domain: Domain
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        shape = self.domain.shape[1:] if isinstance(self.domain, StationaryPolicies) else self.domain.shape
        return np.full(shape, 1.0 / shape[-1])


@dataclass(frozen=True)
class UniformPlay:
    """A learner that learns nothing: it plays the uniform policy in every round."""

    feedback: ClassVar[type[Feedback]] = Bandit

    def start(self, domain: Domain, rng: np.random.Generator) -> UniformPolicy:
        return UniformPolicy(domain)

    def observe(self, distribution: UniformPolicy, segment: Segment) -> UniformPolicy:
        return distribution

    def weigh(self, distribution: UniformPolicy, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.zeros(len(segment.states)))

    def learn(self, distribution: UniformPolicy, feedback: Any) -> UniformPolicy:
        return distribution


def uniform(task: Task) -> UniformPlay:
    """Every action with the same chance: the baseline that a learner has to beat. No bound: its regret is linear."""
    return UniformPlay()
