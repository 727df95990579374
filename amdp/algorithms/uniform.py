"""Uniform play: every action with the same chance, in every step. The baseline that a learner has to beat."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.occupancy.measures import PlayedPolicy
from amdp.algorithms.task import Task
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.segments import Segment


@dataclass(frozen=True)
class UniformPlay:
    """A learner that learns nothing: it plays the uniform policy in every round."""

    feedback: ClassVar[type[Feedback]] = Bandit

    def start(self, domain: Domain, rng: np.random.Generator) -> PlayedPolicy:
        shape = domain.shape[1:] if isinstance(domain, StationaryPolicies) else domain.shape
        return PlayedPolicy(domain, np.full(shape, 1.0 / shape[-1]))

    def observe(self, distribution: PlayedPolicy, segment: Segment) -> PlayedPolicy:
        return distribution

    def weigh(self, distribution: PlayedPolicy, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.zeros(len(segment.states)))

    def learn(self, distribution: PlayedPolicy, feedback: Any) -> PlayedPolicy:
        return distribution


def uniform(task: Task) -> UniformPlay:
    """Every action with the same chance: the baseline that a learner has to beat. No bound: its regret is linear."""
    return UniformPlay()
