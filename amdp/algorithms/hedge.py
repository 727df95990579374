"""Hedge over all deterministic policies (Delayed Hedge of Jin et al. 2022, and exponential weights over a kernel).

A policy is drawn with chance `p(pi) ~ exp(-rate * sum_j L_j(pi))`, where `L_j(pi)` is the loss of `pi` for the estimate
of round `j`: over a kernel the inner product with its occupancy measure, over a box the least that a kernel inside
allows. That the source evaluates policies by this minimum is [derived], not recalled; it takes the box of the round in
which the feedback arrives, which lies inside that of the round that was played.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms import bounds
from amdp.algorithms.base import PolicyStream, Trials
from amdp.algorithms.blocks import (
    BlockDynamics,
    BlockResult,
    empty_played,
    has_compiled_form,
    loaded_dynamics,
    narrows,
    saved_dynamics,
    waiting,
)
from amdp.algorithms.bounds import Bound
from amdp.algorithms.estimators.base import Estimator, WholeTable, learned
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import COMPILED, ImplicitExploration, ImportanceWeighting, of_round
from amdp.algorithms.estimators.trials import batched
from amdp.algorithms.rates import AdaptiveRate, FixedRate, Rate, RootRate, as_rate
from amdp.algorithms.task import Task
from amdp.arrays import Actions, Bools, Floats, Policies, one_hot, require_whole
from amdp.errors import InvalidInput
from amdp.kernels.blocks import Block, Waiting
from amdp.kernels.rows import BoxPolicies, IntervalRows
from amdp.kernels.threads import multiply
from amdp.model.chains import stationary_costs, stationary_visits
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies, StationaryPolicies
from amdp.model.dynamics import require_places
from amdp.model.evaluation import evaluate
from amdp.model.segments import Pairs, Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe
from amdp.oracles.markov.enumeration import deciding_states

Ints = NDArray[np.int64]

MOST_POLICIES = 100_000


@dataclass(frozen=True, eq=False)
class PolicyList(ABC):
    """A list of deterministic policies: their expected losses and visit chances."""

    domain: Domain
    actions: Actions = field(repr=False)  # [n, h, s], or [n, s] if they are stationary

    @abstractmethod
    def expected_losses(self, estimate: Floats) -> Floats:
        """The expected loss `[n]` of each policy, for losses `[h, s, a]`; over a box the least possible one."""

    @abstractmethod
    def visits(self, pairs: Pairs) -> Floats:
        """The greatest chance `[n, m]` of each policy to be at each pair."""

    def mixed_visits(self, chances: Floats, pairs: Pairs) -> Floats:
        """The greatest chance `[m]` of a policy that is drawn with chances `[n]` to be at each pair."""
        mixed: Floats = multiply(chances, self.visits(pairs))
        return mixed

    def narrowed(self, segment: Segment) -> Self:
        """The same policies over the dynamics that a segment leaves possible; a kernel stays."""
        return self


class KernelPolicyList(PolicyList):
    """Policies over a kernel, by the table of their occupancies."""

    @cached_property
    def columns(self) -> Floats:
        """The chance `[h, s, a, n]` of each policy to be at each pair."""
        kernel = self.domain.dynamics
        assert isinstance(kernel, SingleKernel)
        occupancy = kernel.occupancy(one_hot(self.actions, self.domain.shape[2]), self.domain.initial)
        return np.ascontiguousarray(np.moveaxis(occupancy, 0, -1))

    def expected_losses(self, estimate: Floats) -> Floats:
        _require_losses(estimate, self.domain)
        expected = np.empty(len(self.actions))
        kernels.hedge.expected_losses(self.columns, np.ascontiguousarray(estimate), expected)
        return expected

    def visits(self, pairs: Pairs) -> Floats:
        return self.columns[pairs.steps, pairs.states, pairs.actions].T

    def mixed_visits(self, chances: Floats, pairs: Pairs) -> Floats:
        mixed = np.empty(len(pairs.steps))
        kernels.hedge.mixed_visits(self.columns[pairs.steps, pairs.states, pairs.actions], chances, mixed)
        return mixed


@dataclass(frozen=True, eq=False)
class StationaryPolicyList(PolicyList):
    """Stationary policies over a kernel; state distributions are computed for the steps asked for."""

    domain: StationaryPolicies

    def expected_losses(self, estimate: Floats) -> Floats:
        return stationary_costs(self.domain, self.actions, estimate)

    def visits(self, pairs: Pairs) -> Floats:
        return stationary_visits(self.domain, self.actions, pairs)


@dataclass(frozen=True, eq=False)
class SetPolicyList(PolicyList):
    """Policies over a set of kernels; each has the expected loss under its cheapest kernel."""

    policies: Policies = field(repr=False)  # [n, h, s, a], the same as chances

    def expected_losses(self, estimate: Floats) -> Floats:
        costs = np.broadcast_to(estimate, (len(self.actions), *estimate.shape))
        return evaluate(self.domain, self.actions, costs)

    def visits(self, pairs: Pairs) -> Floats:
        return self.domain.dynamics.greatest_visits(self.policies, self.domain.initial, pairs)

    def narrowed(self, segment: Segment) -> Self:
        remaining = self.domain.dynamics.narrow(segment)
        if remaining is self.domain.dynamics:
            return self
        return replace(self, domain=MarkovPolicies(remaining, self.domain.initial))


@dataclass(frozen=True, eq=False)
class BoxPolicyList(SetPolicyList):
    """All deterministic policies over a Bernstein box, as `list_policies` numbers them: they share their sweeps."""

    before: Ints = field(repr=False)  # [h + 1], how many of them differ before each step

    @property
    def compiled(self) -> BoxPolicies:
        """As compiled code reads them."""
        box = self.domain.dynamics
        assert isinstance(box, BernsteinBox)
        return BoxPolicies(box.rows, self.policies, self.actions, self.before)

    def expected_losses(self, estimate: Floats) -> Floats:
        _require_losses(estimate, self.domain)
        expected = np.empty(len(self.actions))
        kernels.hedge.box_losses(self.compiled, self.domain.initial, np.ascontiguousarray(estimate), expected)
        return expected

    def visits(self, pairs: Pairs) -> Floats:
        return self._columns(pairs).T

    def mixed_visits(self, chances: Floats, pairs: Pairs) -> Floats:
        mixed = np.empty(len(pairs.steps))
        kernels.hedge.mixed_visits(self._columns(pairs), chances, mixed)
        return mixed

    def _columns(self, pairs: Pairs) -> Floats:
        """The greatest chance `[m, n]` of each policy to be at each pair."""
        require_places("pairs", "hsa", (pairs.steps, pairs.states, pairs.actions), self.domain.shape)
        columns = np.empty((len(pairs.steps), len(self.actions)))
        places = pairs.steps, pairs.states, pairs.actions
        kernels.hedge.box_visits(self.compiled, self.domain.initial, *places, columns)
        return columns


def _require_losses(estimate: Floats, domain: Domain) -> None:
    if estimate.shape != domain.shape:
        raise InvalidInput(f"losses have shape {estimate.shape}; the policies have {domain.shape}")


def list_policies(domain: Domain, limit: int = MOST_POLICIES) -> PolicyList:
    """All deterministic policies that differ at a state that can be reached; refused above `limit`."""
    actions = _every_policy(domain, limit)
    if isinstance(domain, StationaryPolicies):
        return StationaryPolicyList(domain, actions)
    if isinstance(domain.dynamics, SingleKernel):
        return KernelPolicyList(domain, actions)
    policies = one_hot(actions, domain.shape[2])
    if type(domain.dynamics) is not BernsteinBox:  # which may have chances of its own
        return SetPolicyList(domain, actions, policies)
    digits = np.cumsum(_deciding(domain).sum(axis=1))
    return BoxPolicyList(domain, actions, policies, domain.shape[2] ** np.concatenate([[0], digits]))


def count_policies(domain: Domain) -> int:
    """How many policies differ at a state that can be reached: `A^(1 + (H-1)S)` Markov, `A^S` stationary if all can."""
    return int(domain.shape[2] ** int(_deciding(domain).sum()))


@dataclass(frozen=True, eq=False)
class Mixture:
    """A distribution over a list of policies: it can be resampled, and it knows its visits."""

    listed: PolicyList
    chances: Floats = field(repr=False)  # [n]
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        return self.listed.domain

    @property
    def trials(self) -> Trials:
        return batched(self)

    def draw(self, rng: np.random.Generator) -> Policies:
        return one_hot(self.sample(1, rng)[0], self.domain.shape[2])

    def policies(self, rng: np.random.Generator) -> PolicyStream:
        return lambda n: self.sample(n, rng)

    def sample(self, n: int, rng: np.random.Generator) -> Actions:
        """`n` independent policies `[n, h, s]`."""
        drawn = np.empty(n, np.int64)
        kernels.hedge.draw(self._below, rng.random(n), drawn)
        chosen: Actions = self.listed.actions[drawn]
        return chosen

    @cached_property
    def _below(self) -> Floats:
        """The running sums of the chances."""
        below = np.empty(len(self.chances))
        kernels.hedge.accumulate(self.chances, below)
        return below

    def visits(self, pairs: Pairs) -> Floats:
        return self.listed.mixed_visits(self.chances, pairs)


@dataclass(frozen=True, eq=False)
class WeightedPolicies:
    """The state of `Hedge`: the sum of the estimated losses of each policy."""

    listed: PolicyList
    rate: Rate
    incurred: Floats = field(repr=False)  # [n], estimated losses so far
    played: Mixture | None = field(default=None, repr=False)  # of the round before
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        return self.listed.domain

    @cached_property
    def mixture(self) -> Mixture:
        """The distribution that is played."""
        chances = np.empty(len(self.incurred))
        kernels.hedge.exponential_weights(self.incurred, float(self.rate.value), chances)
        return Mixture(self.listed, chances)

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.mixture.draw(rng)


@dataclass(frozen=True)
class Hedge:
    """Exponential weights over all deterministic policies; refuses above `limit` of them."""

    rate: float | Rate
    estimator: Estimator
    limit: int = MOST_POLICIES

    def __post_init__(self) -> None:
        if isinstance(as_rate(self.rate), AdaptiveRate):
            raise InvalidInput(
                "Hedge does not measure gaps that a rate could follow; give a number or RootRate", "rate"
            )

    @classmethod
    def tuned(cls, domain: Domain, rounds: int, total_delay: int = 0, *, multiplier: float = 1.0) -> Self:
        """Delayed Hedge: rate and gamma `sqrt(S ln A / (H (SAK + D)))` [derived: inverts the quoted bound].

        `multiplier` scales the rate.
        """
        theory = hedge_rate(domain, rounds, total_delay)
        return cls(multiplier * theory, ImplicitExploration(theory))

    @classmethod
    def exact(cls, domain: Domain, rounds: int, total_delay: int = 0, *, multiplier: float = 1.0) -> Self:
        """The same rate with importance weighting: for known transitions, where the chances are exact [derived]."""
        tuned = cls.tuned(domain, rounds, total_delay, multiplier=multiplier)
        if not isinstance(domain.dynamics, SingleKernel):
            raise InvalidInput(
                f"exact weights need a kernel, not {describe(domain)}; for unknown transitions use delayed-hedge"
            )
        return cls(tuned.rate, ImportanceWeighting())

    @property
    def feedback(self) -> type:
        return self.estimator.feedback

    def start(self, domain: Domain, rng: np.random.Generator) -> WeightedPolicies:
        listed = list_policies(domain, self.limit)
        return WeightedPolicies(listed, as_rate(self.rate), np.zeros(len(listed.actions)))

    def observe(self, distribution: WeightedPolicies, segment: Segment) -> WeightedPolicies:
        return replace(distribution, listed=distribution.listed.narrowed(segment), played=distribution.mixture)

    def weigh(self, distribution: WeightedPolicies, segment: Segment, rng: np.random.Generator) -> Weights:
        return of_round(self.estimator, distribution.rate.value).weigh(distribution.mixture, segment, rng)

    def learn(self, distribution: WeightedPolicies, feedback: Feedback) -> WeightedPolicies:
        """Add the estimated loss of each policy; over a box, with the box of the arrival.

        The source evaluates with the box of the round that was played; the newer one is inside it, and keeping none
        spares a snapshot for each feedback under way [derived].
        """
        arrived_in = distribution.played or distribution.mixture
        estimate = learned(self.estimator, np.zeros(distribution.domain.shape), feedback, arrived_in)
        incurred = distribution.incurred + distribution.listed.expected_losses(estimate)
        return replace(distribution, incurred=incurred, rate=distribution.rate.after(lambda: 0.0))

    def block_form(self, domain: Domain) -> "HedgeBlocks | None":
        """Its compiled form: a fixed rate, Markov policies, and weights by visit chances, or none."""
        known = isinstance(domain, MarkovPolicies) and has_compiled_form(domain) and type(self) is Hedge
        known = known and isinstance(as_rate(self.rate), FixedRate)
        return HedgeBlocks(self) if known and type(self.estimator) in COMPILED else None

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | None:
        """What theory allows after `rounds`; None where no explicit bound is known: boxes and other estimators."""
        if not isinstance(domain, MarkovPolicies) or not isinstance(domain.dynamics, SingleKernel):
            return None
        rate, count = as_rate(self.rate), count_policies(domain)
        if isinstance(rate, RootRate) and isinstance(self.estimator, ImportanceWeighting) and not waited:
            return bounds.anytime_hedge(domain.shape, rounds, rate.scale, count)
        if isinstance(rate, FixedRate) and isinstance(self.estimator, ImportanceWeighting | ImplicitExploration):
            gamma = getattr(self.estimator, "gamma", 0.0)
            return bounds.hedge(domain.shape, rounds, rate.value, count, gamma, waited)
        return None


@dataclass(frozen=True)
class HedgeBlocks:
    """Hedge, block by block."""

    learner: Hedge

    def space(self, slots: int, domain: Domain) -> Waiting:
        """Memory for the segments whose feedback has not arrived."""
        return waiting(slots, domain.shape[0])

    def play(
        self, distribution: WeightedPolicies, block: Block, space: Waiting, rng: np.random.Generator
    ) -> tuple[WeightedPolicies, BlockResult]:
        listed, b, dynamics = distribution.listed, len(block.slots), BlockDynamics.of(distribution.domain)
        incurred, drawn = distribution.incurred.copy(), np.empty(b, np.int64)
        played = empty_played(b, distribution.domain.shape[0])
        bad = self._played(distribution, dynamics, block, space, (rng.random(b), incurred, drawn, played))
        known = replace(listed, domain=dynamics.after(listed.domain)) if dynamics.told is not None else listed
        after = replace(distribution, listed=known, incurred=incurred)
        if bad >= 0:
            self.learner.weigh(after, Segment(played.states[bad], played.actions[bad]), rng)  # says what is wrong
            raise AssertionError("a pair was visited without a chance, and weighed")
        return after, BlockResult(played, listed.actions[drawn], np.zeros(b, np.int64), narrows(listed.domain))

    def save(self, distribution: WeightedPolicies) -> dict[str, NDArray[Any]]:
        return {"incurred": distribution.incurred} | saved_dynamics(distribution.domain)

    def load(self, distribution: WeightedPolicies, saved: Mapping[str, NDArray[Any]]) -> WeightedPolicies:
        listed, domain = distribution.listed, loaded_dynamics(distribution.domain, saved)
        known = listed if domain is listed.domain else replace(listed, domain=domain)
        return replace(distribution, listed=known, incurred=saved["incurred"])

    def _played(
        self, state: WeightedPolicies, dynamics: BlockDynamics, block: Block, space: Waiting, results: tuple[Any, ...]
    ) -> int:
        """Plays; -1, or the round that visited a pair without a chance."""
        estimator, rate = self.learner.estimator, float(state.rate.value)
        policies = _in_blocks(state.listed, dynamics), state.listed.actions, dynamics.told
        if isinstance(estimator, WholeTable):
            kernels.hedge_episodes.full(*policies, block, rate, *results)
            return -1
        gamma = float(getattr(estimator, "gamma", 0.0))
        return int(kernels.hedge_episodes.bandit(*policies, block, space, rate, gamma, *results))


def _in_blocks(listed: PolicyList, dynamics: BlockDynamics) -> BoxPolicies | Floats:
    """Listed policies as a compiled game reads them: over a box that narrows, with its rows."""
    if isinstance(listed, BoxPolicyList):
        assert isinstance(dynamics.rows, IntervalRows)
        return listed.compiled._replace(rows=dynamics.rows)
    assert isinstance(listed, KernelPolicyList)
    return listed.columns


def _deciding(domain: Domain) -> Bools:
    """Where the action matters, since the state can be reached: `[h, s]`, or `[s]` for stationary policies."""
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


def hedge_rate(domain: Domain, rounds: int, total_delay: int = 0) -> float:
    """`sqrt(S ln A / (H (SAK + D)))` [derived: inverts the quoted bound of Delayed Hedge]."""
    bounds.require_episodes(domain, "hedge-infinite: see HedgeTuning")
    steps, states, actions = domain.shape
    met = states * actions * bounds.require_rounds(rounds) + bounds.require_delay(total_delay)
    return sqrt(states * log(actions) / (steps * met))


def hedge(task: Task, *, rate: float | None = None, most_policies: int = MOST_POLICIES) -> Hedge:
    """Exponential weights over all policies, exact importance weighting; few policies, known transitions.

    Rate `sqrt(S ln A / (H (SAK + D)))`, that of `delayed-hedge` [derived].
    """
    theory = Hedge.exact(task.episodes("hedge-infinite"), task.rounds, task.total_delay)
    return listing_at_most(most_policies, task.by_hand(theory, rate))


def delayed_hedge(
    task: Task, *, rate: float | None = None, gamma: float | None = None, most_policies: int = MOST_POLICIES
) -> Hedge:
    """Exponential weights over all policies, implicit exploration: Delayed Hedge of Jin et al. (2022).

    Rate and gamma `sqrt(S ln A / (H (SAK + D)))` [derived: inverts the quoted bound].
    """
    theory = hedge_rate(task.episodes("hedge-infinite"), task.rounds, task.total_delay)
    gamma = task.setting("gamma", gamma, theory)  # theory has the same value for both
    return listing_at_most(most_policies, Hedge(task.rate(rate, theory), ImplicitExploration(gamma)))


def hedge_anytime(task: Task, *, rate: float | None = None, most_policies: int = MOST_POLICIES) -> Hedge:
    """Hedge over a kernel with a rate that falls as `1/sqrt(k)`: it is not told the number of rounds.

    Its rate is `sqrt(ln A / (HA))`, the one of `hedge` for a single round, over `sqrt(k)`; the regret without delay is
    at most twice `sqrt(H^3 S^2 A K ln A)` [derived]. `rate` is that of the first round.
    """
    first = Hedge.exact(task.episodes("hedge-infinite"), 1)
    scale = task.rate(rate, hedge_rate(task.domain, 1))
    return listing_at_most(most_policies, replace(first, rate=RootRate(scale)))


def listing_at_most(count: int, learner: Hedge) -> Hedge:
    """The learner with another limit of policies that it may list."""
    require_whole("most_policies", count, 1)
    return replace(learner, limit=count)
