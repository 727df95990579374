"""A learner of your own in seventy lines: follow the leader, with a little exploration and no noise.

It passes the conformance checks, plays in the same loop with the same random numbers, and loses to FTPL in both games
below. To give it a name for `amdp play`, see docs/write-a-learner.md.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

import amdp
from amdp import Pairs, Planner, Segment, bind, one_hot
from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.task import Task
from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.transitions import SingleKernel
from amdp.testing import learner_checks

ESTIMATOR = ImportanceWeighting()  # a loss that was met, divided by the chance to meet it


@dataclass(frozen=True, eq=False)
class Exploring:
    """The cheapest policy for `total`, or with a small chance any action anywhere: a distribution over policies."""

    planner: Planner
    total: Floats  # [h, s, a], the sum of the loss estimates
    exploration: float
    oracle_calls: int = 0  # questions to the planner so far; they are reported with the run

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from."""
        return self.planner.domain

    @cached_property
    def choices(self) -> Policies:
        """The leader and the explorer, `[2, h, s, a]`."""
        leader = one_hot(self.planner.minimize(self.total[None]).actions[0], self.domain.shape[2])
        return np.stack([leader, np.full_like(leader, 1.0 / self.domain.shape[2])])

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy `[h, s, a]`."""
        policy: Policies = self.choices[int(rng.random() < self.exploration)]
        return policy

    def visits(self, pairs: Pairs) -> Floats:
        """The chance `[m]` of being at each pair."""
        both = self.domain.dynamics.greatest_visits(self.choices, self.domain.initial, pairs)
        return np.array([1.0 - self.exploration, self.exploration]) @ both


@dataclass(frozen=True)
class EpsilonGreedy:
    """Known transitions, bandit feedback; nothing changes in it: what it learns is in the distribution."""

    exploration: float
    feedback: ClassVar[type[Feedback]] = Bandit

    @classmethod
    def tuned(cls, task: Task) -> "EpsilonGreedy":
        """Exploration `(A / K)^(1/3)`, the rule of thumb of bandits."""
        if not isinstance(task.domain.dynamics, SingleKernel):
            raise InvalidInput("EpsilonGreedy needs a kernel")
        return cls(min(1.0, (task.domain.shape[2] / task.rounds) ** (1 / 3)))

    def start(self, domain: Domain, rng: np.random.Generator) -> Exploring:
        """Before anything was seen."""
        return Exploring(bind("dp", domain), np.zeros(domain.shape), self.exploration)

    def observe(self, distribution: Exploring, segment: Segment) -> Exploring:
        """The transitions are known, a trajectory says nothing new; the round took one plan."""
        return replace(distribution, oracle_calls=distribution.oracle_calls + 1)

    def weigh(self, distribution: Exploring, segment: Segment, rng: np.random.Generator) -> Weights:
        """At once after a round: what a unit of loss met there stands for."""
        return ESTIMATOR.weigh(distribution, segment, rng)

    def learn(self, distribution: Exploring, feedback: Any) -> Exploring:
        """When the losses of a round arrive: a new distribution, the old one stays as it is."""
        return replace(distribution, total=ESTIMATOR.add(distribution.total, feedback, distribution))


for check in learner_checks():
    check(EpsilonGreedy.tuned)
    print(f"passed: {check.__name__}")

K = 1_000
print("\nlosses     learner         regret")
for adversary in ("bernoulli", "swap"):
    game = amdp.Game("tiny", losses=adversary, rounds=K)
    greedy = EpsilonGreedy.tuned(Task(game.domain, K))
    runs = {
        "epsilon-greedy": [amdp.play(game, greedy, seed) for seed in range(3)],
        "ftpl-shared x8": [amdp.play(game, "ftpl-shared", seed, multiplier=8) for seed in range(3)],
    }
    for name, seeds in runs.items():
        print(f"{adversary:10} {name:15} {np.mean([run.regret[-1] for run in seeds]):6.1f}")
