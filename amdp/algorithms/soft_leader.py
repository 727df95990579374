"""The soft leader: the regularized leader with the entropy of the actions, found by one soft backward sweep a round.

    Q[h] = L[h] + P V[h+1],   V[h,s] = -(1/rate) ln((1/A) sum_a exp(-rate Q[h,s,a])),   pi[h,s,a] ~ exp(-rate Q[h,s,a])

with `L` the sum of the loss estimates. `V` at the initial state is the least of `<q_pi, L> + KL(pi || uniform) / rate`
over all policies, the relative entropy summed over the steps of a trajectory. It is also FTPL with Gumbel noise that is
drawn anew when a state is reached. Visit chances are exact, so that no resampling trials are needed: a round takes
dynamic programming, and no oracle. Bounds and proofs [derived]: docs/soft-leader.md.

Over a box of kernels the sweep takes the least expectation of each row, and the greatest visit chances stand for the
exact ones. That is an experiment: nothing is proved of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms import bounds
from amdp.algorithms.blocks import (
    BlockDynamics,
    BlockResult,
    empty_played,
    has_compiled_form,
    loaded_dynamics,
    saved_dynamics,
    waiting,
)
from amdp.algorithms.bounds import AdaptiveBound, Bound
from amdp.algorithms.estimators.aggregate import AggregateWeighting
from amdp.algorithms.estimators.base import Estimator, WholeTable, estimated_loss, learned
from amdp.algorithms.estimators.feedback import Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import COMPILED, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.rates import (
    ADAPTIVE,
    FIRST,
    AdaptiveRate,
    FixedRate,
    Rate,
    as_numbers,
    as_rate,
    from_numbers,
    has_numbers,
    required_rate,
)
from amdp.algorithms.task import Task
from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.kernels.blocks import Block, Waiting
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import CompiledDynamics
from amdp.model.evaluation import least_visited
from amdp.model.segments import Pairs, Segment, Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe

SoftRate = float | Literal["adaptive", "theory"] | None  # None: adaptive


class SoftSweep(NamedTuple):
    """The result of a soft backward sweep."""

    policy: Policies  # [h, s, a]
    values: Floats  # [h, s]


def soft_sweep(dynamics: CompiledDynamics, total: Floats, rate: float) -> SoftSweep:
    """The soft policy and its values for the sums of losses `total` `[h, s, a]`."""
    if total.shape != dynamics.shape:
        raise InvalidInput(f"total has shape {total.shape}; the dynamics have {dynamics.shape}")
    policy = np.empty(total.shape)
    values = np.empty(total.shape[:2])
    kernels.soft.sweep(dynamics.rows, np.ascontiguousarray(total), float(rate), policy, values)
    return SoftSweep(policy, values)


@dataclass(frozen=True, eq=False)
class SoftPolicy:
    """The soft policy of a sum of loss estimates: a distribution without randomness."""

    domain: Domain
    rate: Rate
    total: Floats = field(repr=False)  # [h, s, a], the sum of the loss estimates so far
    oracle_calls: ClassVar[int] = 0

    @cached_property
    def swept(self) -> SoftSweep:
        """The policy, and its soft values."""
        return soft_sweep(_compiled(self.domain), self.total, self.rate.value)

    def potential(self, total: Floats) -> float:
        """The soft value of another sum of losses at the initial state, at the same rate over the same dynamics."""
        return kernels.soft.value(_compiled(self.domain).rows, total, self.rate.value, self.domain.initial)  # type: ignore[no-any-return]

    @property
    def policy(self) -> Policies:
        """The policy `[h, s, a]` that is played."""
        return self.swept.policy

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.policy

    def visits(self, pairs: Pairs) -> Floats:
        """The greatest chance `[m]` of being at each pair: over a kernel, the chance."""
        domain, policy = self.domain, self.swept.policy
        if isinstance(domain.dynamics, SingleKernel):
            return domain.dynamics.visits(policy, domain.initial, pairs)
        greatest: Floats = domain.dynamics.greatest_visits(policy[None], domain.initial, pairs)[0]
        return greatest

    @cached_property
    def occupancy(self) -> Floats:
        """The gradient `[h, s, a]` of the soft value: the occupancy measure, over a box that of the cheapest kernel."""
        dynamics = self.domain.dynamics
        if isinstance(dynamics, BernsteinBox):
            dynamics = dynamics.optimistic_kernel(self.swept.values)
        assert isinstance(dynamics, SingleKernel)
        measure = np.empty(self.domain.shape)
        kernels.soft.occupancy(dynamics.rows, self.swept.policy, self.domain.initial, measure)
        return measure


@dataclass(frozen=True)
class SoftLeader:
    """A rate, fixed or adaptive, and an estimator that knows visit chances, or the whole table."""

    rate: float | Rate
    estimator: Estimator = field(default_factory=ImportanceWeighting)

    def __post_init__(self) -> None:
        as_rate(self.rate)
        if not isinstance(self.estimator, ImportanceWeighting | ImplicitExploration | AggregateWeighting | WholeTable):
            raise InvalidInput(
                f"{type(self.estimator).__name__}; the soft leader takes ImportanceWeighting, ImplicitExploration, "
                "AggregateWeighting or WholeTable",
                "estimator",
            )

    @property
    def feedback(self) -> type:
        """The kind of feedback that its estimator understands."""
        return self.estimator.feedback

    def start(self, domain: Domain, rng: np.random.Generator) -> SoftPolicy:
        """The uniform policy: no losses have come yet."""
        require_soft_sweeps(domain)
        return SoftPolicy(domain, as_rate(self.rate), np.zeros(domain.shape))

    def observe(self, distribution: SoftPolicy, segment: Segment) -> SoftPolicy:
        """Narrow the dynamics, if they are not a single kernel."""
        domain = distribution.domain
        narrowed = domain.dynamics.narrow(segment)
        if narrowed is domain.dynamics:
            return distribution
        return SoftPolicy(MarkovPolicies(narrowed, domain.initial), distribution.rate, distribution.total)

    def weigh(self, distribution: SoftPolicy, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of its estimator; with full information the occupancy measure, if the rate will need it."""
        weights = self.estimator.weigh(distribution, segment, rng)
        if isinstance(self.estimator, WholeTable) and not isinstance(distribution.rate, FixedRate):
            return weights._replace(occupancy=distribution.occupancy)
        return weights

    def learn(self, distribution: SoftPolicy, feedback: Feedback) -> SoftPolicy:
        """Add the loss estimate to the sum, and its gap to those that the rate follows."""
        total = learned(self.estimator, distribution.total, feedback, distribution)
        rate = distribution.rate.after(lambda: self._gap(distribution, total, feedback))
        return SoftPolicy(distribution.domain, rate, total)

    def _gap(self, distribution: SoftPolicy, total: Floats, feedback: Feedback) -> float:
        """What the policy of the feedback's round pays, less what its estimate adds to the soft value."""
        before = float(distribution.swept.values[0, distribution.domain.initial])
        return estimated_loss(self.estimator, feedback) - (distribution.potential(total) - before)

    def block_form(self, domain: Domain) -> "SoftBlocks | None":
        """Its compiled form; none for a whole table over a box, if the rate tunes itself."""
        proper = type(self) is SoftLeader and type(self.estimator) in COMPILED and has_numbers(as_rate(self.rate))
        if isinstance(self.estimator, WholeTable) and not isinstance(as_rate(self.rate), FixedRate):
            proper = proper and isinstance(domain.dynamics, SingleKernel)  # a gap takes the cheapest kernel of the box
        return SoftBlocks(self) if proper and has_compiled_form(domain) else None

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | AdaptiveBound | None:
        """What theory allows after `rounds`; None over a box, and for an adaptive rate with delays."""
        if not isinstance(domain, MarkovPolicies) or not isinstance(domain.dynamics, SingleKernel):
            return None
        rate, gamma = as_rate(self.rate), getattr(self.estimator, "gamma", 0.0)
        if isinstance(self.estimator, AggregateWeighting):
            if waited or not isinstance(rate, FixedRate):
                return None
            least = least_visited(domain.dynamics, domain.initial).chance
            return bounds.soft_leader_aggregate(domain.shape, rounds, rate.value, least)
        full = isinstance(self.estimator, WholeTable)
        if isinstance(rate, FixedRate):
            if full:
                return bounds.soft_leader_full(domain.shape, rounds, rate.value, waited)
            return bounds.soft_leader(domain.shape, rounds, rate.value, gamma, waited)
        if isinstance(rate, AdaptiveRate) and not waited:
            if full:
                return bounds.adaptive_soft_leader_full(domain.shape, rounds, rate.first)
            return bounds.adaptive_soft_leader(domain.shape, rounds, rate.first, gamma)
        return None


@dataclass(frozen=True)
class SoftBlocks:
    """The soft leader, block by block."""

    learner: SoftLeader

    def space(self, slots: int, domain: Domain) -> Waiting | Floats:
        """Segments that wait; with full information the occupancy measures of their rounds."""
        if isinstance(self.learner.estimator, WholeTable):
            return np.empty((slots, *domain.shape))
        return waiting(slots, domain.shape[0])

    def play(
        self, distribution: SoftPolicy, block: Block, space: Any, rng: np.random.Generator
    ) -> tuple[SoftPolicy, BlockResult]:
        rate, total = as_numbers(distribution.rate), distribution.total.copy()
        policies = np.empty((len(block.slots), *total.shape))
        played = empty_played(len(block.slots), len(total))
        dynamics = BlockDynamics.of(distribution.domain)
        rows, bad = (dynamics.rows, dynamics.told), -1
        if isinstance(self.learner.estimator, WholeTable):
            kernels.episodes.soft_full(*rows, block, rate, total, space, policies, played)
        else:
            gamma = float(getattr(self.learner.estimator, "gamma", 0.0))
            bad = kernels.episodes.soft_bandit(*rows, block, space, rate, gamma, total, policies, played)
        after = SoftPolicy(dynamics.after(distribution.domain), from_numbers(distribution.rate, rate), total)
        if bad >= 0:
            self.learner.weigh(after, Segment(played.states[bad], played.actions[bad]), rng)  # says what is wrong
            raise AssertionError("a pair was visited without a chance, and weighed")
        plans = np.zeros(len(policies), np.int64)
        return after, BlockResult(played, policies, plans, dynamics.told is not None)

    def save(self, distribution: SoftPolicy) -> dict[str, NDArray[Any]]:
        learned = {"total": distribution.total, "rate": as_numbers(distribution.rate)}
        return learned | saved_dynamics(distribution.domain)

    def load(self, distribution: SoftPolicy, saved: Mapping[str, NDArray[Any]]) -> SoftPolicy:
        domain, rate = loaded_dynamics(distribution.domain, saved), from_numbers(distribution.rate, saved["rate"])
        return SoftPolicy(domain, rate, saved["total"])


def require_soft_sweeps(domain: Domain) -> None:
    """Refuse stationary policies, and dynamics that the compiled sweeps cannot read."""
    bounds.require_episodes(domain, "hedge-infinite or mdp-exp3")
    if not isinstance(domain.dynamics, CompiledDynamics):
        raise InvalidInput(f"the soft leader needs a kernel or a BernsteinBox, not {describe(domain)}")


def _compiled(domain: Domain) -> CompiledDynamics:
    dynamics: Any = domain.dynamics  # `require_soft_sweeps` has looked
    return dynamics  # type: ignore[no-any-return]


# --- recipes ----------------------------------------------------------------------------------------------------------


def soft_leader(task: Task, *, rate: SoftRate = None, gamma: float = 0.0, first: float | None = None) -> SoftLeader:
    """The soft leader with bandit feedback; its rate tunes itself, or is fixed: a number, or `theory`.

    Theory's rate is `sqrt(2 ln A / (H (SAK + (H+1)D)))`, regret `sqrt(2 H^3 ln A (SAK + (H+1)D))` [derived].
    """
    estimator = ImplicitExploration(gamma) if gamma else ImportanceWeighting()
    return SoftLeader(_rate(task, rate, first, bounds.soft_leader_rate), estimator)


def soft_leader_full(task: Task, *, rate: SoftRate = None, first: float | None = None) -> SoftLeader:
    """The soft leader with full information; its rate tunes itself, or is fixed: a number, or `theory`.

    Theory's rate is `sqrt(2 ln A / (H (K + (H+1)D)))`, regret `sqrt(2 H^3 ln A (K + (H+1)D))` [derived].
    """
    return SoftLeader(_rate(task, rate, first, bounds.soft_leader_full_rate), WholeTable())


def soft_leader_aggregate(task: Task, *, rate: SoftRate = None, first: float | None = None) -> SoftLeader:
    """The soft leader over a kernel, told only the total loss of an episode; its rate tunes itself, or is fixed.

    Theory's rate is `sqrt(ln A / (H^3 S(A-1) K))`, regret `2 sqrt(H^5 S(A-1)K ln A)` [derived] where that rate is at
    most `1/H^2` of the least chance that a policy is in a state; for the adaptive one nothing explicit is proved.
    """
    if not isinstance(task.episodes().dynamics, SingleKernel):
        raise InvalidInput(f"{task.learner} needs a kernel, not {describe(task.domain)}")
    return SoftLeader(_rate(task, rate, first, bounds.soft_leader_aggregate_rate), AggregateWeighting())


def adaptive_rate(shape: Shape, first: float = FIRST) -> AdaptiveRate:
    """The adaptive rate of the soft leader: the entropy of the actions ranges over `H ln A`."""
    steps, _, actions = shape
    return AdaptiveRate(steps * log(actions), first)


def _rate(
    task: Task, rate: float | str | None, first: float | None, theory: Callable[[Shape, int, int], float]
) -> float | AdaptiveRate:
    task.episodes("hedge-infinite or mdp-exp3")
    require_soft_sweeps(task.domain)
    if rate is None or rate == ADAPTIVE:
        task.require_no_multiplier()
        task.setting("rate", None, ADAPTIVE)
        return adaptive_rate(task.domain.shape, task.setting("first", first, FIRST))
    by_hand = required_rate(rate)
    if first is not None:
        raise InvalidInput(f"{first}; only an adaptive rate has it", "first")
    return task.rate(by_hand, theory(task.domain.shape, task.rounds, task.total_delay))
