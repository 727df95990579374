"""The lazy leader, FLL* (Kalai and Vempala 2005): full information, any planning oracle, few oracle calls.

With noise `p` of density `(rate/2)^n exp(-rate |p|_1)` the leader is the cheapest policy for the losses so far plus
`p`. When the losses `l` arrive, with chance `min{1, exp(-rate (|p - l|_1 - |p|_1))}` the noise becomes `p - l`: the
perturbed sum stays, and with it the leader. Otherwise the noise becomes `-p`. Either way it has the law that it had
[confirmed], and the leader changes with chance at most `rate |l|_1`; only then is the oracle asked. The tunings are
[derived].
"""

from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import NamedTuple, Self

import numpy as np

from amdp.algorithms import bounds
from amdp.algorithms.bounds import require_noise_rate
from amdp.algorithms.estimators.feedback import Feedback
from amdp.algorithms.streams.entering import LeaderScheme, SwitchingLeader, leading_policy, switching_leader
from amdp.algorithms.streams.steps import RandomKey, Unweighted, whole_table
from amdp.algorithms.task import Task
from amdp.arrays import Actions, Floats, Policies, one_hot
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
from amdp.model.segments import Segment, Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Planner, PlanningOracle, bind


class LazySum(NamedTuple):
    """The losses so far, and noise that is adapted to them so that their sum seldom changes."""

    rate: float
    total: Floats  # [h, s, a]
    noise: Floats  # [h, s, a]

    @classmethod
    def drawn(cls, rate: float, shape: Shape, rng: np.random.Generator) -> Self:
        """Before the first losses."""
        return cls(rate, np.zeros(shape), rng.laplace(scale=1.0 / rate, size=shape))

    @property
    def perturbed(self) -> Floats:
        """The sum of losses and noise `[h, s, a]`."""
        return self.total + self.noise

    def update(self, table: Floats, first: int, uniform: float) -> tuple[Self, bool]:
        """After the losses `[h, s, a]` of the steps from `first` on; and whether the perturbed sum stays the same."""
        steps = slice(first, first + len(table))
        total, kept = self.total.copy(), self.noise[steps] - table
        total[steps] += table
        if uniform >= np.exp(-self.rate * (np.abs(kept).sum() - np.abs(self.noise[steps]).sum())):
            return self._replace(total=total, noise=-self.noise), False
        noise = self.noise.copy()
        noise[steps] = kept
        return self._replace(total=total, noise=noise), True


@dataclass(frozen=True, eq=False)
class LazyChoice:
    """The cheapest policy for the perturbed sum."""

    planner: Planner = field(repr=False)
    sum: LazySum = field(repr=False)
    actions: Actions = field(repr=False)  # [h, s], or [s] if it is stationary
    random_key: RandomKey = field(repr=False)
    updates: int = 0  # feedbacks so far
    oracle_calls: int = 1

    @classmethod
    def drawn(cls, planner: Planner, rate: float, rng: np.random.Generator) -> Self:
        """Before the first losses."""
        noise = LazySum.drawn(rate, planner.domain.shape, rng)
        return cls(planner, noise, leading_policy(planner, noise.perturbed), RandomKey.fresh(rng))

    @property
    def domain(self) -> Domain:
        return self.planner.domain

    def draw(self, rng: np.random.Generator) -> Policies:
        return one_hot(self.actions, self.domain.shape[2])

    def update(self, table: Floats, time: int, random_key: RandomKey) -> Self:
        """After the losses `[s, a]` of one step; its third random number decides, a switch uses the first two."""
        return self.after(table[None], time, float(random_key.uniforms(time, 3)[2]))

    def after(self, table: Floats, first: int, uniform: float) -> Self:
        """After the losses `[h, s, a]` of the steps from `first` on; a uniform number decides about the leader."""
        updated, stays = self.sum.update(table, first, uniform)
        following = replace(self, sum=updated, updates=self.updates + 1)
        return following if stays else following.planned(self.planner)

    def planned(self, planner: Planner) -> Self:
        """With the leader of the perturbed sum, found by a planner, which may be one over other dynamics."""
        actions = leading_policy(planner, self.sum.perturbed)
        return replace(self, planner=planner, actions=actions, oracle_calls=self.oracle_calls + 1)


@dataclass(frozen=True)
class LazyLeader(Unweighted):
    """FLL* in rounds whose losses `[h, s, a]` have the shape of the domain, such as episodes."""

    rate: float
    oracle: str | PlanningOracle = "dp"

    def __post_init__(self) -> None:
        require_noise_rate(self.rate)

    @classmethod
    def tuned(
        cls, domain: Domain, rounds: int, *, oracle: str | PlanningOracle = "dp", multiplier: float = 1.0
    ) -> Self:
        """Rate `sqrt((1 + ln SA) / (HSA K))`: balances the bound [derived]."""
        steps, states, actions = domain.shape
        pairs = states * actions
        rate = sqrt((1.0 + log(pairs)) / (steps * pairs * bounds.require_rounds(rounds)))
        return cls(multiplier * rate, bind(oracle, domain).oracle)

    def start(self, domain: Domain, rng: np.random.Generator) -> LazyChoice:
        return LazyChoice.drawn(bind(self.oracle, domain), self.rate, rng)

    def observe(self, distribution: LazyChoice, segment: Segment) -> LazyChoice:
        narrowed = distribution.domain.dynamics.narrow(segment)
        if narrowed is distribution.domain.dynamics:
            return distribution
        return distribution.planned(bind(self.oracle, MarkovPolicies(narrowed, distribution.domain.initial)))

    def learn(self, distribution: LazyChoice, feedback: Feedback) -> LazyChoice:
        table = whole_table(feedback)
        if table.shape != distribution.domain.shape:
            raise InvalidInput(
                f"losses have shape {table.shape}, the domain {distribution.domain.shape}; see LazyPolicies"
            )
        return distribution.after(table, 0, float(distribution.random_key.uniforms(distribution.updates, 1)[0]))

    def bound(self, domain: Domain, rounds: int, total_delay: int = 0) -> bounds.Bound | None:
        """`H (1 + ln SA) / rate + rate H^2 SAK` over a kernel [derived]; None over a box, or with delays.

        The noise of a policy is at most the sum over the steps of the largest of `SA` numbers; a change costs at most
        `H` and has chance `rate HSA` in a round.
        """
        if not isinstance(domain.dynamics, SingleKernel) or total_delay > 0:
            return None
        steps, states, actions = domain.shape
        pairs = states * actions
        return bounds.Bound(steps * (1.0 + log(pairs)) / self.rate, self.rate * steps**2 * pairs * rounds)


@dataclass(frozen=True)
class LazyPolicies(LeaderScheme):
    """FLL* over the stationary policies of a stream of steps, with noise on all its steps.

    Only the losses of one step arrive at a time, so the leader changes with chance at most `rate SA`. But the noise has
    `T SA` numbers: regret of order `T^(3/4)` [derived], for kernels without a start that has mass everywhere.
    """

    oracle: str | PlanningOracle = "auto"

    def start(self, domain: StationaryPolicies, rng: np.random.Generator) -> LazyChoice:
        return LazyChoice.drawn(bind(self.oracle, domain), self.rate, rng)

    @staticmethod
    def noise(domain: StationaryPolicies, rounds: int) -> float:
        """`2 sqrt(2) max(sqrt(T ln N), ln N)` with `ln N <= 1 + S ln A` [derived].

        The sum `<mu, p>` has `E exp(x <mu, p>) <= exp(2 x^2 T)` for `x^2 <= 1/2`, as the squares of the chances of a
        step sum to at most 1; the largest of `N` such sums is `ln N / x + 2 x T` or less on average.
        """
        policies = 1.0 + domain.shape[1] * log(domain.shape[2])
        return 2.0 * sqrt(2.0) * max(sqrt(rounds * policies), policies)

    @staticmethod
    def change_factor(domain: StationaryPolicies) -> float:
        """`SA`: a step adds `SA` losses of at most 1 each."""
        return float(domain.shape[1] * domain.shape[2])


def fll(task: Task, *, rate: float | None = None) -> LazyLeader | SwitchingLeader:
    """Full information: FLL* in episodes, or step by step in a stream of a communicating kernel.

    A delay counts like more rounds [derived].
    """
    oracle = task.planning_oracle
    if isinstance(task.domain, MarkovPolicies):
        return task.by_hand(LazyLeader.tuned(task.domain, task.rounds + task.total_delay, oracle=oracle), rate)
    return switching_leader(LazyPolicies, task, rate, oracle=oracle)
