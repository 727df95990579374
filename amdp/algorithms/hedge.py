"""Hedge over all deterministic policies (Delayed Hedge of Jin et al. 2022, and exponential weights over a kernel).

A policy is drawn with chance `p(pi) ~ exp(-rate * sum_j L_j(pi))`, where `L_j(pi)` is what the estimate of round `j`
makes it pay: over a kernel the inner product with its occupancy, over a box the least that a kernel inside allows.
That the source evaluates policies by this minimum is [derived], not recalled; it takes the box of the round in which
the feedback arrives, which lies inside that of the round that was played.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy.special import softmax

from amdp.algorithms import bounds
from amdp.algorithms.base import Learner, PolicyStream, Trials
from amdp.algorithms.bounds import Bound
from amdp.algorithms.estimators.base import Estimator, learned
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.estimators.trials import batched
from amdp.algorithms.task import Task
from amdp.arrays import Actions, Bools, Floats, Occupancy, Policies, one_hot
from amdp.errors import InvalidInput
from amdp.kernels.threads import multiply
from amdp.model.chains import stationary_costs, stationary_visits
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
from amdp.model.evaluation import evaluate
from amdp.model.segments import Pairs, Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe
from amdp.oracles.markov.enumeration import deciding_states

MOST_POLICIES = 100_000


class Experts(Protocol):
    """A list of deterministic policies: what they pay, and where they go."""

    @property
    def domain(self) -> Domain:
        """What is known of their dynamics."""
        ...

    @property
    def actions(self) -> Actions:
        """The policies, `[n, h, s]`."""
        ...

    def pay(self, estimate: Floats) -> Floats:
        """What each policy pays `[n]` for losses `[h, s, a]`."""
        ...

    def visits(self, pairs: Pairs) -> Floats:
        """The greatest chance `[n, m]` of each policy to be at each pair."""
        ...

    def narrowed(self, segment: Segment) -> Self:
        """The same policies, after a segment was seen."""
        ...


@dataclass(frozen=True, eq=False)
class KnownExperts:
    """Policies over a kernel, by the table of their occupancies."""

    domain: Domain
    actions: Actions = field(repr=False)

    @cached_property
    def occupancy(self) -> Occupancy:
        """The chance `[n, h, s, a]` of each pair."""
        kernel = self.domain.dynamics
        assert isinstance(kernel, SingleKernel)
        return kernel.occupancy(one_hot(self.actions, self.domain.shape[2]), self.domain.initial)

    def pay(self, estimate: Floats) -> Floats:
        """The expected loss `[n]`: one product with the table."""
        paid: Floats = multiply(self.occupancy.reshape(len(self.actions), -1), estimate.reshape(-1))
        return paid

    def visits(self, pairs: Pairs) -> Floats:
        """The chance `[n, m]` of each pair."""
        return self.occupancy[:, pairs.steps, pairs.states, pairs.actions]

    def narrowed(self, segment: Segment) -> Self:
        """Itself: there is nothing left to learn."""
        return self


@dataclass(frozen=True, eq=False)
class StationaryExperts:
    """Stationary policies `[n, s]` over a kernel; their laws are found anew for the steps that are asked for."""

    domain: StationaryPolicies
    actions: Actions = field(repr=False)

    def pay(self, estimate: Floats) -> Floats:
        """The expected loss `[n]`."""
        return stationary_costs(self.domain, self.actions, estimate)

    def visits(self, pairs: Pairs) -> Floats:
        """The chance `[n, m]` of each pair, if the policy was followed from the start."""
        return stationary_visits(self.domain, self.actions, pairs)

    def narrowed(self, segment: Segment) -> Self:
        """Itself: there is nothing left to learn."""
        return self


@dataclass(frozen=True, eq=False)
class BoxExperts:
    """Policies over a set of kernels, of which the cheapest is meant."""

    domain: Domain
    actions: Actions = field(repr=False)
    policies: Policies = field(repr=False)  # [n, h, s, a], the same once more

    def pay(self, estimate: Floats) -> Floats:
        """The least expected loss `[n]`."""
        costs = np.broadcast_to(estimate, (len(self.actions), *estimate.shape))
        return evaluate(self.domain, self.actions, costs)

    def visits(self, pairs: Pairs) -> Floats:
        """The greatest chance `[n, m]` of each pair."""
        return self.domain.dynamics.greatest_visits(self.policies, self.domain.initial, pairs)

    def narrowed(self, segment: Segment) -> Self:
        """The same policies over what remains possible."""
        remaining = self.domain.dynamics.narrow(segment)
        if remaining is self.domain.dynamics:
            return self
        return replace(self, domain=MarkovPolicies(remaining, self.domain.initial))


def experts(domain: Domain, limit: int = MOST_POLICIES) -> Experts:
    """All deterministic policies that differ at a state that can be reached; refused above `limit`."""
    actions = _every_policy(domain, limit)
    if isinstance(domain, StationaryPolicies):
        return StationaryExperts(domain, actions)
    if isinstance(domain.dynamics, SingleKernel):
        return KnownExperts(domain, actions)
    return BoxExperts(domain, actions, one_hot(actions, domain.shape[2]))


def count_policies(domain: Domain) -> int:
    """How many policies differ at a state that can be reached: `A^(1 + (H-1)S)` Markov, `A^S` stationary if all can."""
    return int(domain.shape[2] ** int(_deciding(domain).sum()))


@dataclass(frozen=True, eq=False)
class Mixture:
    """A distribution over a list of policies: it can be resampled, and it knows its visits."""

    experts: Experts
    chances: Floats = field(repr=False)  # [n]
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from."""
        return self.experts.domain

    @property
    def trials(self) -> Trials:
        """Trials of policies from this distribution."""
        return batched(self)

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy `[h, s, a]`."""
        return one_hot(self.sample(1, rng)[0], self.domain.shape[2])

    def policies(self, rng: np.random.Generator) -> PolicyStream:
        """A stream of independent policies `[n, h, s]`, one uniform number each."""
        return lambda n: self.sample(n, rng)

    def sample(self, n: int, rng: np.random.Generator) -> Actions:
        """`n` independent policies `[n, h, s]`."""
        below = np.cumsum(self.chances)
        drawn = np.searchsorted(below, rng.random(n) * below[-1], side="right")
        chosen: Actions = self.experts.actions[np.minimum(drawn, len(below) - 1)]
        return chosen

    def visits(self, pairs: Pairs) -> Floats:
        """The mixture `[m]` of the greatest chances of the policies."""
        mixed: Floats = multiply(self.chances, self.experts.visits(pairs))
        return mixed


@dataclass(frozen=True, eq=False)
class WeightedPolicies:
    """Hedge's state: the sum of what each policy would have paid."""

    experts: Experts
    rate: float
    paid: Floats = field(repr=False)  # [n]
    played: Mixture | None = field(default=None, repr=False)  # of the round before
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        """The policies that are drawn from."""
        return self.experts.domain

    @cached_property
    def mixture(self) -> Mixture:
        """The distribution that is played."""
        return Mixture(self.experts, softmax(-self.rate * (self.paid - self.paid.min())))

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy `[h, s, a]`."""
        return self.mixture.draw(rng)


@dataclass(frozen=True)
class Hedge:
    """Exponential weights over all deterministic policies; refuses above `limit` of them."""

    rate: float
    estimator: Estimator
    limit: int = MOST_POLICIES

    def __post_init__(self) -> None:
        bounds.require_rate(self.rate)

    @classmethod
    def tuned(cls, domain: Domain, rounds: int, total_delay: int = 0, *, multiplier: float = 1.0) -> Self:
        """Delayed Hedge: rate and gamma `sqrt(S ln A / (H (SAK + D)))` [derived]; `multiplier` scales both."""
        bounds.require_episodes(domain, "hedge-infinite: see HedgeTuning")
        rate = multiplier * bounds.delayed_hedge_rate(domain.shape, rounds, total_delay)
        return cls(rate, ImplicitExploration(rate))

    @classmethod
    def exact(cls, domain: Domain, rounds: int, total_delay: int = 0, *, multiplier: float = 1.0) -> Self:
        """The same rate with importance weighting: for known transitions, where the chances are exact [derived]."""
        bounds.require_episodes(domain, "hedge-infinite: see HedgeTuning")
        if not isinstance(domain.dynamics, SingleKernel):
            raise InvalidInput(f"exact weights need a kernel, not {describe(domain)}; over a box use Hedge.tuned")
        return cls(multiplier * bounds.delayed_hedge_rate(domain.shape, rounds, total_delay), ImportanceWeighting())

    @property
    def feedback(self) -> type:
        """The kind of feedback that its estimator understands."""
        return self.estimator.feedback

    def start(self, domain: Domain, rng: np.random.Generator) -> WeightedPolicies:
        """All policies alike."""
        listed = experts(domain, self.limit)
        return WeightedPolicies(listed, self.rate, np.zeros(len(listed.actions)))

    def observe(self, distribution: WeightedPolicies, segment: Segment) -> WeightedPolicies:
        """Narrow the dynamics; remember what was played."""
        return replace(distribution, experts=distribution.experts.narrowed(segment), played=distribution.mixture)

    def weigh(self, distribution: WeightedPolicies, segment: Segment, rng: np.random.Generator) -> Weights:
        """As its estimator does."""
        return self.estimator.weigh(distribution.mixture, segment, rng)

    def learn(self, distribution: WeightedPolicies, feedback: Feedback) -> WeightedPolicies:
        """Add what each policy would have paid; over a box, with what is known on arrival.

        The source evaluates with the box of the round that was played; the newer one is inside it, and keeping none
        spares a snapshot for each feedback under way [derived].
        """
        arrived_in = distribution.played or distribution.mixture
        estimate = learned(self.estimator, np.zeros(distribution.domain.shape), feedback, arrived_in)
        return replace(distribution, paid=distribution.paid + distribution.experts.pay(estimate))

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | None:
        """What theory allows after `rounds`; None where no explicit bound is known: boxes and other estimators."""
        if not isinstance(domain, MarkovPolicies) or not isinstance(domain.dynamics, SingleKernel):
            return None
        if not isinstance(self.estimator, ImportanceWeighting | ImplicitExploration):
            return None
        gamma = getattr(self.estimator, "gamma", 0.0)
        return bounds.hedge(domain.shape, rounds, self.rate, count_policies(domain), gamma, waited)


def _deciding(domain: Domain) -> Bools:
    """Where a choice can matter: `[h, s]`, or `[s]` for stationary policies."""
    if isinstance(domain, StationaryPolicies):
        reached: Bools = np.logical_or.reduce(domain.dynamics.reachable(domain.initial))
        return reached
    return deciding_states(domain)


def _every_policy(domain: Domain, limit: int) -> Actions:
    """All policies `[n, h, s]` or `[n, s]`, counted in base A over the states where the choice matters; 0 elsewhere."""
    count, n_actions = count_policies(domain), domain.shape[2]
    deciding = _deciding(domain)
    free = np.flatnonzero(deciding)
    if count > limit:
        raise InvalidInput(
            f"Hedge would list {n_actions}^{len(free)} policies, more than its limit of {limit}; "
            "use another learner, such as ftpl or o-reps"
        )
    policies = np.zeros((count, deciding.size), dtype=np.int32)
    numbers = np.arange(count)
    for place in free:
        numbers, policies[:, place] = np.divmod(numbers, n_actions)
    return policies.reshape(count, *deciding.shape)


def hedge(task: Task) -> Learner[Any]:
    """Exponential weights over all policies, exact importance weighting; few policies, known transitions."""
    return Hedge.exact(task.domain, task.rounds, task.total_delay, multiplier=task.multiplier)


def delayed_hedge(task: Task) -> Learner[Any]:
    """Exponential weights over all policies, implicit exploration: Delayed Hedge of Jin et al. (2022)."""
    return Hedge.tuned(task.domain, task.rounds, task.total_delay, multiplier=task.multiplier)
