"""FTPL whose rate tunes itself: the rule of `amdp.algorithms.rates`, with gaps that are measured by planning.

The potential `Phi_rate(L) = E_z min_pi <mu_pi, L + z/rate>` has the mean occupancy `q_k` of the leader as its gradient,
lies below `<q*, L>` since the noise has mean 0, and `Phi_rate(L) + beta/rate` grows as the rate falls, with
`beta = H (1 + ln SA)`. For a leader `pi_i` of noise `z_i`, the gap of an estimate `l` is what it pays above the leader
after the estimate, for the same noise,

    <mu_i, L + l + z_i/rate> - min_pi <mu_pi, L + l + z_i/rate>  >=  0,

whose mean is `<q_k, l> - (Phi(L + l) - Phi(L))`. The mean over `B` leaders with fresh noise, which no trial has seen,
is the gap of the round. Feedback that comes after the sum has changed adds what the policy of its round paid above
what the present leaders pay of the estimate. That may be negative: the rate follows the running maximum of the sum.

Over a kernel, without delay, the regret has the bound `amdp.algorithms.bounds.adaptive_ftpl` after every round
[derived: docs/learning-rates.md]. With delays and over a box nothing is proved: both are measured only.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log
from typing import ClassVar, Self

import numpy as np

from amdp import kernels
from amdp.algorithms.blocks import BlockForm
from amdp.algorithms.bounds import AdaptiveBound, adaptive_ftpl, require_episodes
from amdp.algorithms.estimators.base import added
from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.estimators.resampling import Resampling, require_limit
from amdp.algorithms.estimators.trials import require_sound
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import (
    STREAM_LEARNERS,
    PerturbedLeader,
    resampling_limit,
)
from amdp.algorithms.rates import AdaptiveRate
from amdp.arrays import Costs, Floats, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.layout import keyed_rng, lanes
from amdp.model.domains import BudgetedPolicies, Domain, EpisodeDomain
from amdp.model.dynamics import CompiledDynamics
from amdp.model.segments import Segment, Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import PlanningOracle, Plans, Status, bind

LEAST_LIMIT = 2_000  # of trials in a round: the theorem's grows with the rounds, and in the first cuts estimates short
GAP_PLANS = 8  # leaders that measure a gap: fewer make rates that scatter, more cost as much as the trials


@dataclass(frozen=True, eq=False)
class AdaptiveLeader(PerturbedLeader):
    """A perturbed leader that keeps its rate, and what it takes to measure the next gap."""

    rate: AdaptiveRate = field(kw_only=True)
    seed: int = field(repr=False, kw_only=True)  # of the noise of all gaps
    rounds: int = field(default=0, kw_only=True)  # played so far
    arrived: int = field(default=0, kw_only=True)  # feedbacks so far

    def gap(self, feedback: Bandit, plans: int) -> float:
        """An unbiased estimate of the gap of a feedback, from so many leaders with fresh noise."""
        above, paid = self._measured(feedback, keyed_rng(self.seed, self.arrived), plans)
        if feedback.weights.played_at == self.arrived:
            return above
        # Others came first: the sum is not the one that was played on.
        return above + (float(kernels.soft.estimated_loss(feedback.losses, feedback.weights.values, 0.0)) - paid)

    def _measured(self, feedback: Bandit, rng: np.random.Generator, plans: int) -> tuple[float, float]:
        """What leaders pay above the cheapest after the estimate, and what they pay of the estimate: see the kernel."""
        segment, estimate = feedback.segment, feedback.weights.values * feedback.losses
        initial, dynamics = self.domain.initial, self.domain.dynamics
        if self.is_compiled and isinstance(dynamics, CompiledDynamics):
            center, scale = np.ascontiguousarray(self.total), 1.0 / self.perturbation.rate
            pairs = initial, segment.start, segment.states, segment.actions
            above, paid = kernels.trials.gap(dynamics.rows, lanes(rng), scale, center, *pairs, estimate, plans)
            require_sound(self.total, not np.isnan(above))
            return above, paid
        costs = self.perturbation.perturbed(self.total, plans, rng)
        before = self.planner.minimize(costs).require(Status.OPTIMAL)
        costs[(slice(None), *segment.places)] += estimate
        after = self.planner.minimize(costs).require(Status.OPTIMAL)
        followed = _paid(self.domain, before, costs)
        return float((followed - after.objective).mean()), float((followed - before.objective).mean())


@dataclass(frozen=True)
class AdaptiveFtpl:
    """Follow the perturbed leader with Laplace noise whose rate falls as the gaps add up."""

    rate: AdaptiveRate
    resampling: Callable[[int], Resampling]  # by the limit of the trials
    oracle: str | PlanningOracle = "dp"
    limit: int | None = field(default=None, kw_only=True)  # None: `sqrt(SAk/H)` in round `k`, at least 2,000
    plans: int = field(default=GAP_PLANS, kw_only=True)
    feedback: ClassVar[type] = Bandit

    def __post_init__(self) -> None:
        if self.limit is not None:
            require_limit(self.limit)
        require_whole("plans", self.plans, least=1)

    @classmethod
    def tuned_by_itself(
        cls,
        domain: Domain,
        resampling: Callable[[int], Resampling],
        *,
        oracle: str | PlanningOracle = "dp",
        limit: int | None = None,
    ) -> Self:
        """For episodes of any number: only the shape of the domain is needed."""
        require_episodes(domain, STREAM_LEARNERS)
        rate = AdaptiveRate(noise_range(domain.shape) / 2.0)
        return cls(rate, resampling, bind(oracle, domain).oracle, limit=limit)

    def start(self, domain: Domain, rng: np.random.Generator) -> AdaptiveLeader:
        """No losses yet; the seed of the noise of all gaps is drawn."""
        planner, noise, nothing = bind(self.oracle, domain), Laplace(self.rate.value), np.zeros(domain.shape)
        reach, seed = self.resampling(1).reach(domain), int(rng.integers(2**63))
        return AdaptiveLeader(planner, noise, nothing, reach=reach, rate=self.rate, seed=seed)

    def observe(self, distribution: AdaptiveLeader, segment: Segment) -> AdaptiveLeader:
        played = distribution.after(segment)
        return replace(played, rounds=played.rounds + 1)

    def weigh(self, distribution: AdaptiveLeader, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of resampling with the limit of the round."""
        limit = self.limit_of(distribution.domain, distribution.rounds)
        weights = self.resampling(limit).weigh(distribution, segment, rng)
        return weights._replace(oracle_calls=weights.trials, played_at=distribution.arrived)

    def learn(self, distribution: AdaptiveLeader, feedback: Feedback) -> AdaptiveLeader:
        """Add the estimate to the sum and its gap to those that the rate follows."""
        if not isinstance(feedback, Bandit):
            raise InvalidInput(f"{type(self).__name__} understands Bandit, not {type(feedback).__name__}")
        rate = distribution.rate.after(lambda: distribution.gap(feedback, self.plans))
        return replace(
            distribution,
            total=added(distribution.total, feedback),
            rate=rate,
            perturbation=Laplace(rate.value),
            arrived=distribution.arrived + 1,
            oracle_calls=distribution.oracle_calls + 2 * self.plans,
        )

    def limit_of(self, domain: Domain, k: int) -> int:
        """The most trials of a step in round `k`, counted from 0."""
        return self.limit or max(LEAST_LIMIT, resampling_limit(domain, k + 1))

    def block_form(self, domain: Domain) -> BlockForm[AdaptiveLeader] | None:
        """Its compiled form, where FTPL with a fixed rate has one."""
        from amdp.algorithms.ftpl.blocks import adaptive_blocks

        return adaptive_blocks(self, domain)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> AdaptiveBound | None:
        """What is proved after `rounds`; None over a box, with delays, or with a limit of its own."""
        known = isinstance(domain, EpisodeDomain) and isinstance(domain.dynamics, SingleKernel)
        if not known or waited or self.limit is not None:
            return None
        return adaptive_ftpl(domain.shape, rounds, self.rate.range, self.rate.first, self.plans)


def _paid(domain: Domain, plans: Plans, costs: Costs) -> Floats:
    """What plans pay `[n]` under other costs, which are written to; over a set of kernels, under the cheapest."""
    if isinstance(domain, BudgetedPolicies):
        paid: Floats = (domain.dynamics.occupancy(plans.policies, domain.initial) * costs).sum(axis=(1, 2, 3))
        return paid
    kernels.trials.force(costs.swapaxes(0, 1), np.ascontiguousarray(plans.actions.swapaxes(0, 1), np.int32))
    return domain.dynamics.cheapest(costs).values[:, 0, domain.initial]


def noise_range(shape: Shape) -> float:
    """`H (1 + ln SA)`: at most so much does the noise, at rate 1, save any policy on average."""
    steps, states, actions = shape
    return steps * (1.0 + log(states * actions))
