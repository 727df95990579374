"""Follow the perturbed leader (Dai, Luo and Chen 2022, Algorithms 1, 3 and 4, through one class).

Each round plays the policy that is cheapest for the sum of loss estimates plus fresh noise. Over a kernel this is
Algorithm 1, over a box that narrows Algorithm 3, and with delayed feedback Algorithm 4. The pseudo-code draws the
noise once; its analysis draws it anew each round, and so does `Ftpl`. `LiteralFtpl` is the pseudo-code to the letter.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, sqrt
from typing import Self

import numpy as np

from amdp.algorithms.base import PolicyStream, Trials
from amdp.algorithms.blocks import BlockForm, has_compiled_form
from amdp.algorithms.bounds import FtplBound, ftpl_bound, require_delay, require_episodes, require_rounds
from amdp.algorithms.estimators.base import Estimator, WholeTable, learned
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
)
from amdp.algorithms.estimators.scaled_trials import CompiledScaledTrials, ScaledTrials
from amdp.algorithms.estimators.trials import CompiledTrials, batched
from amdp.algorithms.ftpl.perturbations import Exponential, Laplace, Perturbation
from amdp.arrays import Actions, Floats, Policies, one_hot
from amdp.model.domains import Domain, EpisodeDomain, MarkovPolicies
from amdp.model.dynamics import CompiledDynamics
from amdp.model.reach import CompiledReach, Reach, reach_of
from amdp.model.segments import Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Planner, PlanningOracle, Plans, Status, bind
from amdp.oracles.markov.dynamic_programming import BackwardInduction

STREAM_LEARNERS = "ftpl-infinite: see FtplTuning; with full information fll"


@dataclass(frozen=True, eq=False)
class PerturbedLeader:
    """The policy that is cheapest for `total` plus noise: a distribution over deterministic policies.

    Within budgets the cheapest policy may be randomized. It is played as it is, so that every round keeps the budgets
    in expectation; `policies` draws an action of it at each step and state, which keeps the chances of all visits.
    """

    planner: Planner = field(repr=False)
    perturbation: Perturbation
    total: Floats = field(repr=False)  # [h, s, a], the sum of the loss estimates so far
    oracle_calls: int = field(default=0, kw_only=True)
    reach: Reach | None = field(default=None, repr=False, kw_only=True)  # None: trials are not scaled

    @property
    def domain(self) -> Domain:
        """The domain of the planner."""
        return self.planner.domain

    @cached_property
    def trials(self) -> Trials:
        """Trials of policies from this distribution: compiled where noise, planner and dynamics allow it."""
        return self._compiled or batched(self)

    @cached_property
    def scaled_trials(self) -> Trials:
        """The same, scaled by the reach of the states."""
        reach = reach_of(self.domain) if self.reach is None else self.reach
        if self.is_compiled and isinstance(reach, CompiledReach):
            return CompiledScaledTrials(reach, self.domain.reached, *self._perturbed)
        return ScaledTrials(self, reach)

    def policies(self, rng: np.random.Generator) -> PolicyStream:
        """A stream of independent policies: the next `n` of them, `[n, h, s]`, or `[n, s]` if they are stationary.

        In states that cannot be reached there is no noise, and the action may be any.
        """
        if self._compiled:
            return self._compiled.policies(rng)
        costs = self.perturbation.trial_stream(self.total, self.domain.reached, rng)
        return lambda n: self._leaders(costs(n)).draws(rng)

    def sample(self, n: int, rng: np.random.Generator) -> Actions:
        """`n` independent policies `[n, h, s]` (or `[n, s]`)."""
        return self.policies(rng)(n)

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy `[h, s, a]` (or `[s, a]`), with noise in all states."""
        if self._compiled:
            return one_hot(self._compiled.policy(rng), self.domain.shape[2])
        drawn: Policies = self._leaders(self.perturbation.perturbed(self.total, 1, rng)).policies[0]
        return drawn

    @cached_property
    def _compiled(self) -> CompiledTrials | None:
        dynamics = self.domain.dynamics
        if not self.is_compiled or not isinstance(dynamics, CompiledDynamics) or not has_compiled_form(self.domain):
            return None
        return CompiledTrials(dynamics, self.domain.initial, self.domain.reached, *self._perturbed)

    @property
    def _perturbed(self) -> tuple[Floats, float]:
        """The sum of the estimates, and the scale of the noise."""
        return np.ascontiguousarray(self.total), 1.0 / self.perturbation.rate

    def after(self, segment: Segment, plans: int = 1) -> Self:
        """Count the plans for the policy that was played, and narrow the dynamics, if they are not a single kernel."""
        played, domain = replace(self, oracle_calls=self.oracle_calls + plans), self.domain
        narrowed = domain.dynamics.narrow(segment)
        if narrowed is domain.dynamics:
            return played
        reach = None if self.reach is None else self.reach.after(segment, narrowed)
        planner = bind(self.planner.oracle, MarkovPolicies(narrowed, domain.initial))
        return replace(played, planner=planner, reach=reach)

    @property
    def is_compiled(self) -> bool:
        """Whether noise and planner are those of the compiled loops."""
        return isinstance(self.planner.oracle, BackwardInduction) and isinstance(self.perturbation, Laplace)

    def _leaders(self, costs: Floats) -> Plans:
        # A policy that is only feasible would be drawn from another law than the analysis speaks of.
        return self.planner.minimize(costs).require(Status.OPTIMAL)


@dataclass(frozen=True, eq=False)
class StubbornLeader(PerturbedLeader):
    """A perturbed leader that plays with the same noise in every round; that of its resampling trials is fresh."""

    noise: Floats = field(repr=False, kw_only=True)  # [h, s, a]

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy `[h, s, a]`, the same as long as `total` is the same."""
        return self._leaders((self.total + self.noise)[None])[0].policy


@dataclass(frozen=True)
class Ftpl:
    """Follow the perturbed leader, with fresh noise each round."""

    perturbation: Perturbation
    estimator: Estimator
    oracle: str | PlanningOracle = "dp"

    @classmethod
    def tuned(
        cls,
        domain: Domain,
        rounds: int,
        total_delay: int = 0,
        *,
        oracle: str | PlanningOracle = "dp",
        resampling: Callable[[int], Estimator] = GeometricResampling,
        multiplier: float = 1.0,
        rate: float | None = None,
        limit: int | None = None,
        perturbation: Callable[[float], Perturbation] = Laplace,
    ) -> Self:
        """The theorems' parameters: rate `1 / sqrt(HSA(K + D))`, limit `sqrt(SAK/H)`; each can be overridden.

        `multiplier` scales the rate. The theorems speak of Laplace noise; another law takes the same rate.
        """
        require_episodes(domain, STREAM_LEARNERS)
        trials = resampling_limit(domain, rounds) if limit is None else limit
        spread = laplace_rate(domain, rounds, total_delay) if rate is None else rate
        return cls(perturbation(multiplier * spread), resampling(trials), bind(oracle, domain).oracle)

    @property
    def feedback(self) -> type:
        """The kind of feedback that its estimator understands."""
        return self.estimator.feedback

    def start(self, domain: Domain, rng: np.random.Generator) -> PerturbedLeader:
        """No losses yet: the noise alone decides."""
        reach = self.estimator.reach(domain)
        return PerturbedLeader(bind(self.oracle, domain), self.perturbation, np.zeros(domain.shape), reach=reach)

    def observe(self, distribution: PerturbedLeader, segment: Segment) -> PerturbedLeader:
        return distribution.after(segment)

    def weigh(self, distribution: PerturbedLeader, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of its estimator; every resampling trial asks the planning oracle for a policy."""
        weights = self.estimator.weigh(distribution, segment, rng)
        return weights._replace(oracle_calls=weights.trials)

    def learn(self, distribution: PerturbedLeader, feedback: Feedback) -> PerturbedLeader:
        """Add the estimate of the losses to the sum."""
        return replace(distribution, total=learned(self.estimator, distribution.total, feedback, distribution))

    def block_form(self, domain: Domain) -> BlockForm[PerturbedLeader] | None:
        """How it plays blocks of rounds in machine code; None where it plays them one by one."""
        from amdp.algorithms.ftpl.blocks import ftpl_blocks

        return ftpl_blocks(self, domain)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> FtplBound | None:
        """What Theorems 4 and 6 allow after `rounds`; None where no explicit bound is known: boxes, other noise."""
        known = isinstance(domain, EpisodeDomain) and isinstance(domain.dynamics, SingleKernel)
        noise, estimator = self.perturbation, self.estimator
        if not known or not isinstance(noise, Laplace):
            return None
        if not isinstance(estimator, Resampling):
            return None
        return ftpl_bound(domain.shape, rounds, noise.rate, estimator.limit, waited)


class LiteralFtpl(Ftpl):
    """The pseudo-code to the letter: noise drawn once, before the first round.

    Under bandit feedback its regret is linear: the estimates reveal the noise. It is here to show that.
    """

    def start(self, domain: Domain, rng: np.random.Generator) -> StubbornLeader:
        """Draw the noise, once for the whole game."""
        nothing = np.zeros(domain.shape)
        noise = self.perturbation.perturbed(nothing, 1, rng)[0]
        reach = self.estimator.reach(domain)
        return StubbornLeader(bind(self.oracle, domain), self.perturbation, nothing, noise=noise, reach=reach)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> None:
        """No bound: the proof needs fresh noise in every round."""


def follow_the_perturbed_leader(
    domain: Domain, rounds: int, *, oracle: str | PlanningOracle = "dp", multiplier: float = 1.0
) -> Ftpl:
    """Full information: FPL of Wang and Dong (2020) over a kernel, FPOP of Neu et al. (2012) over a box.

    Exponential noise of rate `sqrt((1 + ln SA) / (H^2 K))`, subtracted [derived]. The printed FPOP draws noise once an
    epoch and uses L1 sets [from memory]; here the noise is fresh each round and the set is the domain's box.
    """
    require_episodes(domain, STREAM_LEARNERS)
    steps, states, actions = domain.shape
    rate = multiplier * sqrt((1.0 + np.log(states * actions)) / (steps**2 * require_rounds(rounds)))
    return Ftpl(Exponential(rate), WholeTable(), bind(oracle, domain).oracle)


def laplace_rate(domain: Domain, rounds: int, total_delay: int = 0) -> float:
    """The rate of Laplace noise that the theorems give: `1 / sqrt(HSA(K + D))`."""
    steps, states, actions = domain.shape
    return 1.0 / sqrt(steps * states * actions * (require_rounds(rounds) + require_delay(total_delay)))


def resampling_limit(domain: Domain, rounds: int) -> int:
    """The limit of trials that the theorems give: `sqrt(SAK/H)`, rounded up, at least 1."""
    steps, states, actions = domain.shape
    return max(1, ceil(sqrt(states * actions * require_rounds(rounds) / steps)))
