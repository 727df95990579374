"""Policy optimization: exponential weights over the actions of every step and state.

    pi_k[h,s,a] ~ exp(-rate * sum of the scores that arrived),   a share `exploration` of it spread evenly

The scores say what an action costs from its place on. A critic finds them from the losses of a round, of which it may
keep a table `[h, s, a]` that comes back with the feedback. The algorithms differ in their critic, and in values:
`recipes` has them. The updates are [from memory] of the sources, but for that of dilated bonuses, whose structure
agrees with public code [confirmed].
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from amdp import kernels
from amdp.algorithms import bounds
from amdp.algorithms.blocks import (
    BlockResult,
    UsedDynamics,
    empty_played,
    has_compiled_form,
    loaded_used,
    narrows,
    saved_used,
    waiting,
)
from amdp.algorithms.bounds import Bound
from amdp.algorithms.estimators.aggregate import AggregateWeighting
from amdp.algorithms.estimators.base import Estimator, WholeTable, added, learned
from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import (
    COMPILED,
    ImplicitExploration,
    ImportanceWeighting,
    of_round,
    require_gamma,
)
from amdp.algorithms.occupancy.measures import PlayedPolicy, Refresh, every_round, when_doubled
from amdp.algorithms.rates import AdaptiveRate, FixedRate, Rate, RootRate, as_rate
from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.kernels.blocks import Block, Played, Waiting
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import CompiledDynamics, Dynamics
from amdp.model.evaluation import least_visited
from amdp.model.segments import Pairs, Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe


class KeptWeights(Weights):
    """Weights, with a table `[h, s, a]` of the round in which they were fixed."""

    table: Floats

    @classmethod
    def of(cls, weights: Weights, table: Floats) -> Self:
        """The same weights, which also keep `table`."""
        kept = cls(*weights)
        kept.table = table
        return kept

    def _replace(self, **changes: Any) -> Self:
        return self.of(super()._replace(**changes), self.table)


def kept_table(weights: Weights) -> Floats:
    """The table that the critic kept of the round of a feedback."""
    if not isinstance(weights, KeptWeights):
        raise InvalidInput("the feedback's weights keep no table of their round; give it the weights of `weigh`")
    return weights.table


class Critic(Protocol):
    """How much each action costs from its place on, as far as one round tells."""

    @property
    def estimator(self) -> Estimator:
        """From the losses met to a table of estimates."""
        ...

    def keep(self, played: PlayedPolicy) -> Floats:
        """What it needs `[h, s, a]` of a round when its feedback arrives."""
        ...

    def scores(self, estimate: Floats, kept: Floats, dynamics: Dynamics) -> Floats:
        """What each action costs `[h, s, a]`; `dynamics` are those of the arrival."""
        ...


@dataclass(frozen=True)
class Evaluation:
    """`Q[h] = l[h] + least expectation of V[h+1]`, `V[h] = <pi_j, Q[h]>`: the estimates, evaluated.

    The policy is that of the round that was played, the dynamics are those of the arrival: over a kernel the expected
    estimates to come, over a box the least that a kernel inside allows. If the true kernel is inside, `Q` is at
    most the true value of the estimates [derived]. Which box the source of Delayed OPPO takes is [from memory, unsure].
    """

    estimator: Estimator

    def keep(self, played: PlayedPolicy) -> Floats:
        return played.policy

    def scores(self, estimate: Floats, kept: Floats, dynamics: Dynamics) -> Floats:
        return costs_to_go(dynamics, kept, estimate)


@dataclass(frozen=True)
class Totals:
    """The estimate of an advantage, from total losses, is a score already: nothing is left to evaluate.

    Weights over the actions of one state do not see what is the same for all of them. So the scores are as good as
    `L 1[s_h = s, a_h = a] / q(h, s, a) >= 0`, the estimates of Lancewicki and Mansour (2025) [from memory].
    """

    estimator: AggregateWeighting = field(default_factory=AggregateWeighting)

    def keep(self, played: PlayedPolicy) -> Floats:
        return np.empty(0)

    def scores(self, estimate: Floats, kept: Floats, dynamics: Dynamics) -> Floats:
        return estimate


@dataclass(frozen=True)
class LossToGo(ImplicitExploration):
    """`(l_h + l_{h+1} + ...) 1[visited] / (u + gamma)`: an estimate of the cost to come, not of the loss."""

    def add(self, total: Floats, feedback: Bandit, distribution: Any) -> Floats:
        """Weight times the losses from each step on, at the pairs that were visited."""
        to_go = np.cumsum(feedback.losses[::-1])[::-1]
        return added(total, Bandit(feedback.segment, feedback.weights, to_go))


@dataclass(frozen=True)
class DilatedBonus:
    """`Q - B`: the loss to go, less a bonus for places that are rarely visited or not well known (Luo et al. 2021).

        b[h,s]   = sum_a pi[h,s,a] (3 gamma H + H (u - w)[h,s,a]) / (u[h,s,a] + gamma)
        B[h,s,a] = b[h,s] + (1 + 1/H) greatest expectation of <pi, B[h+1]>

    `u` and `w` are the greatest and the least chance of a pair. The recursion and the sign in words agree with
    public code [confirmed]; the code itself adds `B` where its own text subtracts it. With delayed feedback, which the
    source does not treat, the bonus of a round comes with its losses. `B` is scaled by the factor `bonus`, 1 in the
    source.
    """

    gamma: float
    bonus: float = 1.0

    def __post_init__(self) -> None:
        require_gamma(self.gamma)
        if not 0.0 <= self.bonus < np.inf:
            raise InvalidInput(f"{self.bonus}; it must be finite and not negative", "bonus")

    @property
    def estimator(self) -> Estimator:
        return LossToGo(self.gamma)

    def keep(self, played: PlayedPolicy) -> Floats:
        bonus = np.empty(played.policy.shape)
        rows, policy = compiled(played.domain.dynamics).rows, np.ascontiguousarray(played.policy)
        kernels.policies.dilated_bonus(rows, policy, self.local(played), bonus)
        return bonus

    def local(self, played: PlayedPolicy) -> Floats:
        """The bonus `b` `[h, s]` of each place alone."""
        bonus = np.empty(played.policy.shape[:2])
        policy = np.ascontiguousarray(played.policy)
        kernels.policies.local_bonus(policy, *visit_bounds(played), float(self.gamma), bonus)
        return bonus

    def scores(self, estimate: Floats, kept: Floats, dynamics: Dynamics) -> Floats:
        return estimate - self.bonus * kept


def visit_bounds(played: PlayedPolicy) -> tuple[Floats, Floats]:
    """The least and the greatest chance `[h, s, a]` of every pair, `O(H^2 S^3 A)` over a box."""
    domain, policy = played.domain, played.policy
    if isinstance(domain.dynamics, SingleKernel):
        chances = kernel_visits(played)
        return chances, chances
    assert isinstance(domain.dynamics, BernsteinBox)
    asked = policy[None], domain.initial, Pairs.all(policy.shape)
    box = domain.dynamics
    return box.least_visits(*asked).reshape(policy.shape), box.greatest_visits(*asked).reshape(policy.shape)


def kernel_visits(played: PlayedPolicy) -> Floats:
    """The chance `[h, s, a]` of every pair, over a kernel."""
    kernel = played.domain.dynamics
    assert isinstance(kernel, SingleKernel)
    _require_shape("policy", played.policy, kernel)
    chances = np.empty(played.policy.shape)
    kernels.soft.occupancy(kernel.rows, np.ascontiguousarray(played.policy), played.domain.initial, chances)
    return chances


def costs_to_go(dynamics: Dynamics, policy: Policies, costs: Floats, dilation: float = 1.0) -> Floats:
    """`Q[h] = c[h] + dilation * least expectation of <pi[h+1], Q[h+1]>`, all `[h, s, a]`."""
    rows = compiled(dynamics).rows
    _require_shape("policy", policy, dynamics)
    _require_shape("costs", costs, dynamics)
    scores = np.array(costs, order="C")
    kernels.policies.add_costs_to_come(rows, np.ascontiguousarray(policy), dilation, scores)
    return scores


def _require_shape(name: str, table: Floats, dynamics: Dynamics) -> None:
    """Refuse a table that compiled sweeps over the dynamics would read beyond its end."""
    if table.shape != dynamics.shape:
        raise InvalidInput(f"{name} has shape {table.shape}; the dynamics have {dynamics.shape}")


def compiled(dynamics: Dynamics) -> CompiledDynamics:
    """The same dynamics, refused if the compiled sweeps cannot read them."""
    if not isinstance(dynamics, CompiledDynamics):
        raise InvalidInput(f"policy optimization needs a kernel or a BernsteinBox, not {type(dynamics).__name__}")
    return dynamics


class LocalPolicy(PlayedPolicy):
    """The policy of local weights: over a kernel, its visit chances are those of its compiled blocks."""

    def visits(self, pairs: Pairs) -> Floats:
        if not isinstance(self.domain.dynamics, SingleKernel):
            return super().visits(pairs)
        return kernel_visits(self)[pairs.steps, pairs.states, pairs.actions]


@dataclass(frozen=True, eq=False)
class LocalWeights:
    """A product of distributions: one over the actions of each step and state."""

    used: Domain  # what weights and bonuses rely on
    gathered: Dynamics = field(repr=False)  # with all observations; those of `used` may be older
    rate: Rate
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
        policy = np.empty(self.total.shape)
        rates = float(self.rate.value), float(self.exploration)
        kernels.policies.local_weights(np.ascontiguousarray(self.total), *rates, policy)
        return LocalPolicy(self.used, policy)

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.playing.draw(rng)


@dataclass(frozen=True)
class PolicyOptimization:
    """A rate, a critic, when new dynamics are taken up, and the share of every choice that is spread evenly."""

    rate: float | Rate
    critic: Critic
    refresh: Refresh = every_round
    exploration: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(as_rate(self.rate), AdaptiveRate):
            reason = "policy optimization does not measure gaps that a rate could follow; give a number or RootRate"
            raise InvalidInput(reason, "rate")
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
        return LocalWeights(domain, domain.dynamics, as_rate(self.rate), self.exploration, np.zeros(domain.shape))

    def observe(self, distribution: LocalWeights, segment: Segment) -> LocalWeights:
        gathered, used = distribution.gathered.narrow(segment), distribution.used
        taken = self.refresh(used.dynamics, gathered)
        domain = used if taken is used.dynamics else MarkovPolicies(taken, used.initial)
        return replace(distribution, used=domain, gathered=gathered, played=distribution.playing)

    def weigh(self, distribution: LocalWeights, segment: Segment, rng: np.random.Generator) -> Weights:
        weights = of_round(self.estimator, distribution.rate.value).weigh(distribution.playing, segment, rng)
        return KeptWeights.of(weights, self.critic.keep(distribution.playing))

    def learn(self, distribution: LocalWeights, feedback: Feedback) -> LocalWeights:
        arrived_in = distribution.played or distribution.playing
        estimate = learned(self.estimator, np.zeros(distribution.used.shape), feedback, arrived_in)
        scores = self.critic.scores(estimate, kept_table(feedback.weights), distribution.used.dynamics)
        return replace(distribution, total=distribution.total + scores, rate=distribution.rate.after(lambda: 0.0))

    def block_form(self, domain: Domain) -> "PolicyBlocks | None":
        """Its compiled form: a fixed rate, the critics of this file and weights by visit chances, or none."""
        if type(self) is not PolicyOptimization or self.refresh not in (every_round, when_doubled):
            return None
        if not isinstance(domain, MarkovPolicies) or not has_compiled_form(domain):
            return None
        if not isinstance(as_rate(self.rate), FixedRate):
            return None
        evaluates = type(self.critic) is Evaluation and type(self.estimator) in COMPILED
        return PolicyBlocks(self) if evaluates or type(self.critic) is DilatedBonus else None

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | None:
        """What theory allows after `rounds`; None where no explicit one is known: boxes, bonuses, O-SSP with delays."""
        if not isinstance(domain, MarkovPolicies) or not isinstance(domain.dynamics, SingleKernel):
            return None
        rate = as_rate(self.rate)
        if isinstance(self.critic, Totals) and isinstance(rate, FixedRate) and not waited:
            least = least_visited(domain.dynamics, domain.initial).chance
            return bounds.policy_aggregate(domain.shape, rounds, rate.value, least, self.exploration)
        if not isinstance(self.critic, Evaluation):
            return None
        if not isinstance(rate, FixedRate):
            falls = isinstance(rate, RootRate) and isinstance(self.estimator, WholeTable) and not waited
            scale = rate.value  # before the first round
            return bounds.anytime_policy_full(domain.shape, rounds, scale, self.exploration) if falls else None
        terms = domain.shape, rounds, rate.value
        if isinstance(self.estimator, WholeTable):
            return bounds.policy_full(*terms, self.exploration, waited)
        if type(self.estimator) is ImplicitExploration:  # not what is derived from it
            return bounds.policy_implicit(*terms, self.estimator.gamma, self.exploration, waited)
        if isinstance(self.estimator, ImportanceWeighting) and not waited:
            least = least_visited(domain.dynamics, domain.initial).chance
            return bounds.policy_importance(*terms, least, self.exploration)
        return None


class WaitingTables(NamedTuple):
    """Segments that wait, and what the critic keeps of their rounds."""

    segments: Waiting
    kept: Floats  # [slots, h, s, a]


@dataclass(frozen=True)
class PolicyBlocks:
    """Policy optimization, block by block."""

    learner: PolicyOptimization

    def space(self, slots: int, domain: Domain) -> WaitingTables:
        """Segments that wait, with their tables."""
        return WaitingTables(waiting(slots, domain.shape[0]), np.empty((slots, *domain.shape)))

    def play(
        self, distribution: LocalWeights, block: Block, space: WaitingTables, rng: np.random.Generator
    ) -> tuple[LocalWeights, BlockResult]:
        total = distribution.total.copy()
        policies = np.empty((len(block.slots), *total.shape))
        played, known = empty_played(len(policies), len(total)), (distribution.used, distribution.gathered)
        dynamics = UsedDynamics.of(*known, in_epochs=self.learner.refresh is when_doubled)
        bad = self._played(replace(distribution, total=total), dynamics, block, space, policies, played)
        used, gathered = dynamics.after(*known)
        after = replace(distribution, total=total, used=used, gathered=gathered)
        if bad >= 0:
            self.learner.weigh(after, Segment(played.states[bad], played.actions[bad]), rng)  # says what is wrong
            raise AssertionError("a pair was visited without a chance, and weighed")
        plans = np.zeros(len(policies), np.int64)
        return after, BlockResult(played, policies, plans, narrows(distribution.domain))

    def save(self, distribution: LocalWeights) -> dict[str, NDArray[Any]]:
        return {"total": distribution.total} | saved_used(distribution.used, distribution.domain)

    def load(self, distribution: LocalWeights, saved: Mapping[str, NDArray[Any]]) -> LocalWeights:
        used, gathered = loaded_used(distribution.domain, saved)
        return replace(distribution, total=saved["total"], used=used, gathered=gathered)

    def _played(
        self,
        state: LocalWeights,
        dynamics: UsedDynamics,
        block: Block,
        space: WaitingTables,
        policies: Policies,
        played: Played,
    ) -> int:
        """Plays on the sums of `state`; -1, or the round that visited a pair without a chance."""
        critic, estimator = self.learner.critic, self.learner.estimator
        rates, results = (float(state.rate.value), float(state.exploration)), (state.total, policies, played)
        if isinstance(estimator, WholeTable):
            kernels.policy_episodes.evaluated_full(*dynamics, block, space.kept, *rates, *results)
            return -1
        given = *dynamics, block, *space, *rates, float(getattr(estimator, "gamma", 0.0))
        if isinstance(critic, DilatedBonus):
            return int(kernels.policy_episodes.with_bonus(*given, float(critic.bonus), *results))
        return int(kernels.policy_episodes.evaluated(*given, *results))
