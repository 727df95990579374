"""Uniform play: every action with the same chance, in every step. The baseline that a learner has to beat."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms.blocks import BlockResult, empty_played, has_compiled_form
from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.occupancy.measures import PlayedPolicy
from amdp.algorithms.task import Task
from amdp.kernels.blocks import ARENA, Block
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
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

    def block_form(self, domain: Domain) -> "UniformBlocks | None":
        """Its episodes in blocks; a stream is played step by step."""
        return UniformBlocks() if isinstance(domain, MarkovPolicies) and has_compiled_form(domain) else None


@dataclass(frozen=True)
class UniformBlocks:
    """Uniform play, block by block: trajectories and nothing else."""

    def space(self, slots: int, domain: Domain) -> tuple[()]:
        """No space: no feedback waits."""
        return ()

    def play(
        self, distribution: PlayedPolicy, block: Block, space: tuple[()], rng: np.random.Generator
    ) -> tuple[PlayedPolicy, BlockResult]:
        policy, began = distribution.policy, perf_counter_ns()
        played = empty_played(len(block.slots), len(policy))
        for luck, states, actions in zip(block.luck, played.states, played.actions, strict=True):
            kernels.paths.walk(block.paths, policy, block.initial, luck, states, actions)
        played.spent[ARENA] = perf_counter_ns() - began
        policies = np.broadcast_to(policy, (len(block.slots), *policy.shape))
        return distribution, BlockResult(played, policies, np.zeros(len(policies), np.int64))

    def save(self, distribution: PlayedPolicy) -> dict[str, NDArray[Any]]:
        return {}

    def load(self, distribution: PlayedPolicy, saved: Mapping[str, NDArray[Any]]) -> PlayedPolicy:
        return distribution


def uniform(task: Task) -> UniformPlay:
    """Every action with the same chance: the baseline that a learner has to beat. No bound: its regret is linear."""
    return UniformPlay()
