"""Estimates from the total loss `L` of an episode, by the pair and the state of each step.

    estimate[h, s, a] = L (1[s_h = s, a_h = a] / q(h, s, a) - 1[s_h = s] / q(h, s))

Its mean is the advantage `Q - V` of the policy that is played: what was lost before step `h` depends on the state, not
on the action, so that it is the same in both terms. By the performance difference lemma the advantage is all that
learning needs: for every policy `<q', Q - V>` is its loss less that of the policy that was played. Without the second
term the mean would be `Q` plus what was lost on the way to the state, and policies would be charged for that once a
step. Estimates may be negative. Proofs, second moments and rates [derived]: docs/aggregate-feedback.md.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from amdp.algorithms.base import DistributionWithTrials, OnePolicy
from amdp.algorithms.estimators.feedback import Aggregate, Weights
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.estimators.resampling import require_limit
from amdp.algorithms.estimators.trials import count_shared, uniform_stream
from amdp.arrays import Actions, Bools, Floats, one_hot
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.reach import BATCH, BATCH_NUMBERS
from amdp.model.segments import Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe


class TotalLoss:
    """Estimates by weights of the pairs and of the states that were met, both times the total loss."""

    feedback: ClassVar[type] = Aggregate

    def reach(self, domain: Domain) -> None:
        return None

    def add(self, total: Floats, feedback: Aggregate, distribution: object) -> Floats:
        """The estimate at all actions of the states that were met."""
        if feedback.weights.states is None:
            raise InvalidInput("the feedback's weights have none for the states; give it the weights of `weigh`")
        result = total.copy()
        steps, states, _ = places = feedback.segment.places
        result[steps, states] -= feedback.total * feedback.weights.states[:, None]
        result[places] += feedback.total * feedback.weights.values
        return result


@dataclass(frozen=True)
class AggregateWeighting(TotalLoss):
    """One over the chances of pair and state: the right mean over a kernel, for a learner that plays one policy."""

    def weigh(self, distribution: OnePolicy, segment: Segment, rng: np.random.Generator) -> Weights:
        """One over the chance of each pair, and one over that of its state."""
        if not hasattr(distribution, "policy"):
            raise InvalidInput(
                f"{type(distribution).__name__} draws one policy for a whole episode, which ties the actions of its "
                "steps together; a total loss tells only learners that draw each action by itself, such as "
                "o-reps-aggregate"
            )
        pairs = ImportanceWeighting().weigh(distribution, segment, rng)
        return pairs._replace(states=pairs.values * distribution.policy[segment.places])


@dataclass(frozen=True)
class AggregateResampling(TotalLoss):
    """Counts of trials until one is at the pair, and until one is in the state, at most `limit`; the same trials.

    Each count is geometric, so that `q E[count] = 1 - (1 - q)^limit`, with the chance `q` of the pair or of the state.
    A pair is never met before its state. What the limit cuts off is not too small for all policies, as it is for
    single losses: the state's count is cut as well, and an advantage of either sign is drawn to zero where `q(h, s)`
    is far below `1 / limit`.
    """

    limit: int

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def weigh(self, distribution: DistributionWithTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        """Two counts for each step, of trials that serve all steps."""
        domain = distribution.domain
        policies, uniforms = distribution.policies(rng), uniform_stream(rng)
        steps, states, actions = segment.places

        def meets(n: int) -> Bools:
            drawn = policies(n)
            there = uniforms(n, len(states)) < state_chances(domain, drawn)[:, steps, states]
            met: Bools = np.concatenate([there & (drawn[:, steps, states] == actions), there], axis=1)
            return met

        batch = min(BATCH, max(1, BATCH_NUMBERS // prod(domain.shape)))
        counted = count_shared(meets, 2 * len(states), self.limit, batch)
        pairs, of_states = np.split(counted.values, 2)
        return counted._replace(values=pairs, states=of_states)


def state_chances(domain: Domain, actions: Actions) -> Floats:
    """The chance `[n, h, s]` of deterministic policies `[n, h, s]` to be in each state, over a kernel."""
    if not isinstance(domain.dynamics, SingleKernel):
        raise InvalidInput(f"the total loss of an episode needs a kernel, not {describe(domain)}")
    chances: Floats = domain.dynamics.occupancy(one_hot(actions, domain.shape[2]), domain.initial).sum(axis=-1)
    return chances
