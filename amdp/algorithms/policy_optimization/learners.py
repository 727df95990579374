"""Policy optimization: exponential weights over the actions of every step and state.

    pi_k[h,s,a] ~ exp(-rate * sum of the scores that arrived),   a share `exploration` of it spread evenly

The scores say what an action costs from its place on. The algorithms differ in their critic, and in values: `recipes`
has them. The updates are [from memory] of the sources, but for that of dilated bonuses, whose structure agrees with
public code [confirmed].
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from amdp.algorithms import bounds
from amdp.algorithms.bounds import Bound
from amdp.algorithms.estimators.base import Estimator, WholeTable, learned
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import EveryRound, PlayedPolicy, Refresh
from amdp.algorithms.policy_optimization import bounds as policy_bounds
from amdp.algorithms.policy_optimization.critics import Critic, Evaluation, KeptWeights, compiled, kept_table
from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.model.coverage import least_visited
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import Dynamics
from amdp.model.segments import Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe


@dataclass(frozen=True, eq=False)
class LocalWeights:
    """A product of distributions: one over the actions of each step and state."""

    used: Domain  # what weights and bonuses rely on
    gathered: Dynamics = field(repr=False)  # with all observations; those of `used` may be older
    rate: float
    exploration: float
    total: Floats = field(repr=False)  # [h, s, a], the sum of the scores
    played: PlayedPolicy | None = field(default=None, repr=False)  # in the round before
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        return self.used if self.gathered is self.used.dynamics else MarkovPolicies(self.gathered, self.used.initial)

    @cached_property
    def playing(self) -> PlayedPolicy:
        """The policy, `(1 - exploration) softmax(-rate * total) + exploration / A`."""
        weights = np.exp(-self.rate * (self.total - self.total.min(axis=-1, keepdims=True)))
        weights *= (1.0 - self.exploration) / weights.sum(axis=-1, keepdims=True)
        return PlayedPolicy(self.used, weights + self.exploration / weights.shape[-1])

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.playing.draw(rng)


@dataclass(frozen=True)
class PolicyOptimization:
    """A rate, a critic, when new dynamics are taken up, and the share of every choice that is spread evenly."""

    rate: float
    critic: Critic
    refresh: Refresh = field(default_factory=EveryRound)
    exploration: float = 0.0

    def __post_init__(self) -> None:
        bounds.require_rate(self.rate)
        if not 0.0 <= self.exploration <= 1.0:
            raise InvalidInput(f"{self.exploration}; it must be between 0 and 1", "exploration")

    @property
    def estimator(self) -> Estimator:
        return self.critic.estimator

    @property
    def feedback(self) -> type:
        return self.estimator.feedback

    def start(self, domain: Domain, rng: np.random.Generator) -> LocalWeights:
        if not isinstance(domain, MarkovPolicies):
            raise InvalidInput(f"policy optimization plays MarkovPolicies, not {describe(domain)}")
        compiled(domain.dynamics)
        return LocalWeights(domain, domain.dynamics, self.rate, self.exploration, np.zeros(domain.shape))

    def observe(self, distribution: LocalWeights, segment: Segment) -> LocalWeights:
        gathered, used = distribution.gathered.narrow(segment), distribution.used
        taken = self.refresh.refreshed(used.dynamics, gathered)
        domain = used if taken is used.dynamics else MarkovPolicies(taken, used.initial)
        return replace(distribution, used=domain, gathered=gathered, played=distribution.playing)

    def weigh(self, distribution: LocalWeights, segment: Segment, rng: np.random.Generator) -> Weights:
        weights = self.estimator.weigh(distribution.playing, segment, rng)
        return KeptWeights.of(weights, self.critic.keep(distribution.playing))

    def learn(self, distribution: LocalWeights, feedback: Feedback) -> LocalWeights:
        arrived_in = distribution.played or distribution.playing
        estimate = learned(self.estimator, np.zeros(distribution.used.shape), feedback, arrived_in)
        scores = self.critic.scores(estimate, kept_table(feedback.weights), distribution.used.dynamics)
        return replace(distribution, total=distribution.total + scores)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | None:
        """What theory allows after `rounds`; None where no explicit one is known: boxes, bonuses, O-SSP with delays."""
        if not isinstance(domain, MarkovPolicies) or not isinstance(domain.dynamics, SingleKernel):
            return None
        if not isinstance(self.critic, Evaluation):
            return None
        terms = domain.shape, rounds, self.rate
        if isinstance(self.estimator, WholeTable):
            return policy_bounds.full(*terms, self.exploration, waited)
        if type(self.estimator) is ImplicitExploration:  # not what is derived from it
            return policy_bounds.implicit(*terms, self.estimator.gamma, self.exploration, waited)
        if isinstance(self.estimator, ImportanceWeighting) and not waited:
            least = least_visited(domain.dynamics, domain.initial).chance
            return policy_bounds.importance(*terms, least, self.exploration)
        return None
