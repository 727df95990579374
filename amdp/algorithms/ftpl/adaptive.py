"""FTPL whose rate tunes itself: the rule of `amdp.algorithms.rates`, with gaps that are measured by planning.

The potential `Phi_rate(L) = E_z min_pi <mu_pi, L + z/rate>` has the mean occupancy `q_k` of the leader as its gradient,
lies below `<q*, L>` since the noise has mean 0, and `Phi_rate(L) + beta/rate` grows as the rate falls, with
`beta = H (1 + ln SA)`. For a leader `pi_i` of noise `z_i`, the gap of an estimate `l` is what it pays above the leader
after the estimate, for the same noise,

    <mu_i, L + l + z_i/rate> - min_pi <mu_pi, L + l + z_i/rate>  >=  0,

whose mean is `<q_k, l> - (Phi(L + l) - Phi(L))`. The mean over `B` leaders with fresh noise, which no trial has seen,
is the gap of the round. Feedback that comes late adds what the policy of its round pays above the present leaders, a
number that may be negative: the rate follows the running maximum of the sum.

Over a kernel, without delay, the regret has the bound `amdp.algorithms.bounds.adaptive_ftpl` after every round
[derived: docs/learning-rates.md]. With delays and over a box nothing is proved: both are measured only.
"""

from dataclasses import dataclass, field, replace
from math import log
from typing import Self

import numpy as np

from amdp import kernels
from amdp.algorithms.bounds import AdaptiveBound, adaptive_ftpl, require_episodes
from amdp.algorithms.estimators.base import added
from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.estimators.resampling import Resampling
from amdp.algorithms.estimators.trials import require_sound
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import STREAM_LEARNERS, Ftpl, PerturbedLeader, resampling_limit
from amdp.algorithms.rates import AdaptiveRate
from amdp.kernels.layout import lanes
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import CompiledDynamics
from amdp.model.segments import Segment, Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import PlanningOracle, Status, bind

ADAPTIVE = "adaptive"  # a rate by name
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
        above, paid = self._measured(feedback, np.random.default_rng([self.seed, self.arrived]), plans)
        is_late = feedback.weights.life != self.rounds - 1
        return above + (float(feedback.losses.sum()) - paid if is_late else 0.0)

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
        kernels.trials.force(costs.swapaxes(0, 1), np.ascontiguousarray(before.actions.swapaxes(0, 1), np.int32))
        followed = dynamics.cheapest(costs).values[:, 0, initial]
        return float((followed - after.objective).mean()), float((followed - before.objective).mean())


@dataclass(frozen=True)
class AdaptiveFtpl(Ftpl):
    """Follow the perturbed leader with Laplace noise whose rate falls as the gaps add up."""

    rate: AdaptiveRate = field(kw_only=True)
    limit: int | None = field(default=None, kw_only=True)  # None: `sqrt(SAk/H)` in round `k`, at least 2,000
    plans: int = field(default=GAP_PLANS, kw_only=True)

    @classmethod
    def tuned_by_itself(
        cls,
        domain: Domain,
        resampling: type[Resampling],
        *,
        oracle: str | PlanningOracle = "dp",
        limit: int | None = None,
    ) -> Self:
        """For episodes of any number: only the shape of the domain is needed."""
        require_episodes(domain, STREAM_LEARNERS)
        rate = AdaptiveRate(noise_range(domain.shape) / 2.0)
        estimator = resampling(1 if limit is None else limit)
        return cls(Laplace(rate.value), estimator, bind(oracle, domain).oracle, rate=rate, limit=limit)

    def start(self, domain: Domain, rng: np.random.Generator) -> AdaptiveLeader:
        """No losses yet; the seed of the noise of all gaps is drawn."""
        fresh, seed = super().start(domain, rng), int(rng.integers(2**63))
        return AdaptiveLeader(
            fresh.planner, fresh.perturbation, fresh.total, reach=fresh.reach, rate=self.rate, seed=seed
        )

    def observe(self, distribution: PerturbedLeader, segment: Segment) -> PerturbedLeader:
        """As `Ftpl` does, and count the round."""
        narrowed = super().observe(distribution, segment)
        assert isinstance(narrowed, AdaptiveLeader)
        return replace(narrowed, rounds=narrowed.rounds + 1)

    def weigh(self, distribution: PerturbedLeader, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of its estimator, with the limit of the round."""
        assert isinstance(distribution, AdaptiveLeader)
        limit = self.limit or max(LEAST_LIMIT, resampling_limit(distribution.domain, distribution.rounds + 1))
        weights = replace(self._resampling, limit=limit).weigh(distribution, segment, rng)
        return weights._replace(oracle_calls=weights.trials, life=distribution.rounds)

    def learn(self, distribution: PerturbedLeader, feedback: Feedback) -> PerturbedLeader:
        """Add the estimate to the sum and its gap to those that the rate follows."""
        assert isinstance(distribution, AdaptiveLeader)
        assert isinstance(feedback, Bandit)
        rate = distribution.rate.after(lambda: distribution.gap(feedback, self.plans))
        return replace(
            distribution,
            total=added(distribution.total, feedback),
            rate=rate,
            perturbation=Laplace(rate.value),
            arrived=distribution.arrived + 1,
            oracle_calls=distribution.oracle_calls + 2 * self.plans,
        )

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> AdaptiveBound | None:  # type: ignore[override]
        """What is proved after `rounds`; None over a box, with delays, or with a limit of its own."""
        known = isinstance(domain, MarkovPolicies) and isinstance(domain.dynamics, SingleKernel)
        if not known or waited or self.limit is not None:
            return None
        return adaptive_ftpl(domain.shape, rounds, self.rate.range, self.rate.first, self.plans)

    @property
    def _resampling(self) -> Resampling:
        assert isinstance(self.estimator, Resampling)
        return self.estimator


def noise_range(shape: Shape) -> float:
    """`H (1 + ln SA)`: at most so much does the noise, at rate 1, save any policy on average."""
    steps, states, actions = shape
    return steps * (1.0 + log(states * actions))
