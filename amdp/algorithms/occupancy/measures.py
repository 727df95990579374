"""Learners over occupancy measures: mirror descent and the regularized leader, which differ in the prior of a round.

The measure is the one nearest, in relative entropy, to `prior * exp(-rate * total)`; one projection finds it, when a
policy is asked for. Feedback that arrives in one round is summed before it. The algorithms differ in values only: the
estimator, the domain (kernel or box), and when the box is refreshed; `recipes` has them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import Any, ClassVar, NamedTuple, Self

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
from amdp.algorithms.bounds import AdaptiveBound, Bound
from amdp.algorithms.estimators.aggregate import AggregateWeighting
from amdp.algorithms.estimators.base import Estimator, WholeTable, estimated_loss, learned
from amdp.algorithms.estimators.feedback import Bandit, Feedback, FullInformation, Weights
from amdp.algorithms.estimators.importance_weighting import (
    COMPILED,
    DelayAdapted,
    FallingExploration,
    ImplicitExploration,
    ImportanceWeighting,
    of_round,
)
from amdp.algorithms.rates import (
    AdaptiveRate,
    FixedRate,
    Rate,
    RootRate,
    as_numbers,
    as_rate,
    from_numbers,
    has_numbers,
)
from amdp.arrays import Floats, Policies
from amdp.errors import InvalidInput
from amdp.kernels.blocks import FAINTEST, LEARN, WEIGH, Block, Played, Projecting, Tilted, Waiting
from amdp.model.confidence import BernsteinBox
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import Dynamics
from amdp.model.evaluation import least_visited
from amdp.model.segments import Pairs, Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import Report, Status
from amdp.oracles.projection.base import Projection, ProjectionOracle, Projector, bind_projection

# When a learner takes up what it has gathered about the dynamics: from the dynamics in use and those with all that was
# observed to those that it uses from now on.
Refresh = Callable[[Dynamics, Dynamics], Dynamics]


def every_round(used: Dynamics, gathered: Dynamics) -> Dynamics:
    """At once: the box is the intersection of all intervals so far (Jin et al. 2022)."""
    return gathered


def when_doubled(used: Dynamics, gathered: Dynamics) -> Dynamics:
    """In epochs: when some pair has twice the visits of the last time, the set of the counts alone (Jin et al. 2020).

    Pairs of the last step do not count, as nothing follows them. There are at most `1 + (H-1)SA (log2(K) + 1)` epochs.
    """
    before, now = (getattr(each, "visits", None) for each in (used, gathered))
    if gathered is used or before is None or now is None:
        return gathered
    if not (now.sum(axis=-1) >= np.maximum(1, 2 * before.sum(axis=-1))).any():
        return used
    if isinstance(gathered, BernsteinBox) and gathered.radius is not None:
        return BernsteinBox.from_counts(now, gathered.radius)
    return gathered  # an L1 ball is never intersected


@dataclass(frozen=True, eq=False)
class PlayedPolicy:
    """One policy, and what was known of the dynamics when it was played: a distribution without randomness."""

    domain: Domain
    policy: Policies = field(repr=False)  # [h, s, a]
    oracle_calls: ClassVar[int] = 0

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.policy

    def visits(self, pairs: Pairs) -> Floats:
        """The greatest chance `[m]` of being at each pair: over a kernel, the chance."""
        dynamics = self.domain.dynamics
        if isinstance(dynamics, SingleKernel) and self.policy.ndim == 3:
            return dynamics.visits(self.policy, self.domain.initial, pairs)
        chances: Floats = dynamics.greatest_visits(self.policy[None], self.domain.initial, pairs)[0]
        return chances


@dataclass(frozen=True, eq=False)
class TiltedMeasure:
    """The occupancy measure nearest to `prior * exp(-rate * total)`."""

    projector: Projector = field(repr=False)
    rate: Rate
    prior: Floats = field(repr=False)  # logarithms, [h, s, a] over a kernel, [h, s, a, y] over a box
    total: Floats = field(repr=False)  # [h, s, a], the sum of loss estimates that tilts the prior
    gathered: Dynamics = field(repr=False)  # with all observations; those of the projector may be older
    last: Projection | None = field(default=None, repr=False)  # an earlier projection, to start the next one from
    stands: bool = False  # nothing changed since: `last` is the projection
    played: PlayedPolicy | None = field(default=None, repr=False)  # in the round before
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        used = self.projector.domain
        return used if self.gathered is used.dynamics else MarkovPolicies(self.gathered, used.initial)

    @cached_property
    def projection(self) -> Projection:
        """The projected occupancy measure, with the certificate of its optimality."""
        return self._projected()

    @property
    def settled(self) -> Projection:
        """The projection of what was told, with which the next round begins: that which is played, without guesses."""
        return self.projection

    def _projected(self) -> Projection:
        if self.stands and self.last is not None:
            return self.last
        tilt = (self.rate.value * self.total).reshape(*self.total.shape, *(1,) * (self.prior.ndim - 3))
        return self.projector.project(_lowered(self.prior - tilt), self._near)

    @property
    def _near(self) -> Projection | None:
        """Where the projection starts from."""
        return self.last

    @cached_property
    def playing(self) -> PlayedPolicy:
        """The policy of the measure."""
        return PlayedPolicy(self.projector.domain, self.projection.policy)

    @property
    def potential(self) -> float:
        """`<q, total> + (1/rate) sum q ln q`, the least over the measures `q`, for a flat prior and a rate above 0."""
        rate = self.rate.value
        spread = entropy(self.projection) / rate if rate > 0.0 else 0.0  # rate 0: there is one measure only
        return float(kernels.soft.paid(self.occupancy, self.total)) - spread

    @property
    def occupancy(self) -> Floats:
        """The chance `[h, s, a]` of each pair."""
        shape = self.total.shape
        pairs = np.empty(self.total.size)
        kernels.measures.chances(self.projection.log_measure.reshape(pairs.size, -1), pairs)
        return pairs.reshape(shape)

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.playing.draw(rng)


@dataclass(frozen=True)
class MeasureLearner(ABC):
    """A rate, an estimator, a projection by name or as an oracle, and when new dynamics are taken up."""

    rate: float | Rate
    estimator: Estimator
    projection: str | ProjectionOracle = "newton"
    refresh: Refresh = every_round

    def __post_init__(self) -> None:
        as_rate(self.rate)

    @property
    def feedback(self) -> type:
        return self.estimator.feedback

    def start(self, domain: Domain, rng: np.random.Generator) -> TiltedMeasure:
        """The measure of greatest entropy; over the box of all kernels it is uniform in each step."""
        projector = bind_projection(self.projection, domain)
        flat = np.zeros(projector.point_shape)
        return TiltedMeasure(projector, as_rate(self.rate), flat, np.zeros(domain.shape), domain.dynamics)

    def observe(self, distribution: TiltedMeasure, segment: Segment) -> TiltedMeasure:
        gathered, projector = distribution.gathered.narrow(segment), distribution.projector
        taken = self.refresh(projector.domain.dynamics, gathered)
        stands = taken is projector.domain.dynamics
        if not stands:
            projector = projector.oracle.bind(MarkovPolicies(taken, projector.domain.initial))
        based, played = self._rebased(distribution), distribution.playing
        return replace(distribution, projector=projector, gathered=gathered, stands=stands, played=played, **based)

    def weigh(self, distribution: TiltedMeasure, segment: Segment, rng: np.random.Generator) -> Weights:
        return of_round(self.estimator, distribution.rate.value).weigh(distribution.playing, segment, rng)

    def learn(self, distribution: TiltedMeasure, feedback: Feedback) -> TiltedMeasure:
        arrived_in = distribution.played or distribution.playing
        total = learned(self.estimator, distribution.total, feedback, arrived_in)
        return replace(distribution, total=total, stands=False)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | AdaptiveBound | None:
        """What theory allows after `rounds`; None where no explicit bound is known: boxes, delays."""
        rate = as_rate(self.rate)
        if waited or not isinstance(domain.dynamics, SingleKernel) or not isinstance(rate, FixedRate):
            return None
        if isinstance(self.estimator, WholeTable):
            return bounds.o_reps_full(domain.shape, rounds, rate.value)
        if isinstance(self.estimator, ImportanceWeighting | ImplicitExploration):
            return bounds.o_reps(domain.shape, rounds, rate.value, getattr(self.estimator, "gamma", 0.0))
        if isinstance(self.estimator, AggregateWeighting):
            least = least_visited(domain.dynamics, domain.initial).chance
            return bounds.o_reps_aggregate(domain.shape, rounds, rate.value, least)
        return None

    def block_form(self, domain: Domain) -> "MeasureBlocks | None":
        """Its compiled form, with a projection and a rule of refreshing that compiled games know."""
        if type(self) not in COMPILED_LEARNERS or type(self.estimator) not in COMPILED_ESTIMATORS:
            return None
        if not isinstance(domain, MarkovPolicies) or not has_compiled_form(domain):
            return None
        if not has_numbers(as_rate(self.rate)) or (narrows(domain) and self.refresh not in (every_round, when_doubled)):
            return None
        return None if bind_projection(self.projection, domain).compiled() is None else MeasureBlocks(self)

    @abstractmethod
    def _rebased(self, distribution: TiltedMeasure) -> dict[str, Any]:
        """What changes of the prior, the total and the last projection before the next round begins."""


class MirrorDescent(MeasureLearner):
    """`q_{k+1} = argmin_{q in Delta(k+1)} rate <q, sum of the estimates that arrived> + KL(q || q_k)` [from memory].

    Masses of the prior `q_k` below `exp(-500)` count as that, which costs nothing: docs/mirror-descent.md says why.
    """

    rate: float

    def __post_init__(self) -> None:
        if not isinstance(as_rate(self.rate), FixedRate):
            raise InvalidInput("a rate that changes needs the sum of all losses; use RegularizedLeader", "rate")

    def _rebased(self, distribution: TiltedMeasure) -> dict[str, Any]:
        played = distribution.settled
        # Mass that is there is at least exp(FAINTEST); where none can be, none is.
        prior = np.maximum(played.log_measure, FAINTEST)
        prior[played.log_measure == -np.inf] = -np.inf
        return {"prior": prior, "total": np.zeros(distribution.total.shape), "last": played.as_prior()}


class RegularizedLeader(MeasureLearner):
    """`q_k = argmin_{q in Delta(k)} rate <q, sum of all estimates that arrived> + sum q ln q` [from memory].

    The prior never moves, and the same projection finds the measure. Over a kernel, where the set never moves either,
    the measures are those of mirror descent, as long as the rate is fixed. The rate may fall, or be adaptive: the
    leader restates all losses so far at the new rate, which mirror descent cannot. An adaptive one takes one more
    projection a round, from which the next one starts. Its gaps are those of a kernel; over a box it is an experiment.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        proper = isinstance(self.estimator, ImportanceWeighting | ImplicitExploration | AggregateWeighting | WholeTable)
        if isinstance(self.rate, AdaptiveRate) and not proper:
            raise InvalidInput(f"{type(self.estimator).__name__} has no gaps that a rate could follow", "estimator")

    def weigh(self, distribution: TiltedMeasure, segment: Segment, rng: np.random.Generator) -> Weights:
        """The weights of its estimator; with full information the occupancy measure, if the rate will need it."""
        weights = super().weigh(distribution, segment, rng)
        if isinstance(self.estimator, WholeTable) and isinstance(self.rate, AdaptiveRate):
            return weights._replace(occupancy=distribution.occupancy)
        return weights

    def learn(self, distribution: TiltedMeasure, feedback: Feedback) -> TiltedMeasure:
        """Add the loss estimate to the sum that tilts the prior, and its gap to those that the rate follows."""
        ahead = super().learn(distribution, feedback)
        rate = distribution.rate.after(
            lambda: estimated_loss(self.estimator, feedback) - (ahead.potential - distribution.potential)
        )
        if isinstance(rate, AdaptiveRate):
            return replace(ahead, rate=rate, last=ahead.projection)  # which the gap has asked for
        return ahead if rate is distribution.rate else replace(ahead, rate=rate)

    def bound(self, domain: Domain, rounds: int, waited: int = 0) -> Bound | AdaptiveBound | None:
        """That of mirror descent; for a rate that changes that of its gaps. None over boxes, with delays."""
        if not isinstance(self.rate, AdaptiveRate | RootRate):
            return super().bound(domain, rounds, waited)
        if waited or not isinstance(domain.dynamics, SingleKernel) or isinstance(self.estimator, AggregateWeighting):
            return None
        if isinstance(self.rate, RootRate):
            if isinstance(self.estimator, WholeTable):
                return bounds.anytime_o_reps_full(domain.shape, rounds, self.rate.scale)
            if isinstance(self.estimator, FallingExploration | ImportanceWeighting):
                first = getattr(self.estimator, "ratio", 0.0) * self.rate.scale
                return bounds.anytime_o_reps(domain.shape, rounds, self.rate.scale, first)
            return None
        if isinstance(self.estimator, WholeTable):
            return bounds.adaptive_o_reps_full(domain.shape, rounds, self.rate.first)
        gamma = getattr(self.estimator, "gamma", 0.0)
        return bounds.adaptive_o_reps(domain.shape, rounds, self.rate.first, gamma)

    def _rebased(self, distribution: TiltedMeasure) -> dict[str, Any]:
        return {"last": distribution.projection}


# Of these types and of no subclass, which may do something else.
COMPILED_LEARNERS: tuple[type, ...] = (MirrorDescent, RegularizedLeader)
COMPILED_ESTIMATORS: tuple[type, ...] = (*COMPILED, DelayAdapted)


@dataclass(frozen=True, eq=False)
class MeasureBlocks:
    """Mirror descent and the regularized leader, block by block."""

    learner: MeasureLearner

    def space(self, slots: int, domain: Domain) -> Waiting | Floats:
        """Segments that wait; with full information the occupancy measures of their rounds."""
        if isinstance(self.learner.estimator, WholeTable):
            return np.empty((slots, *domain.shape))
        return waiting(slots, domain.shape[0])

    def play(
        self, distribution: TiltedMeasure, block: Block, space: Any, rng: np.random.Generator
    ) -> tuple[TiltedMeasure, BlockResult]:
        """Play; where the compiled game stops at a projection, the learner's methods find it, and the game goes on."""
        game = _Game.of(distribution, in_epochs=self.learner.refresh is when_doubled)
        rate, measure = as_numbers(distribution.rate), _as_arrays(distribution)
        policies = np.empty((len(block.slots), *distribution.total.shape))
        played = empty_played(*policies.shape[:2])
        k = 0
        while True:
            k, part, arrival = self._played(game, block, space, rate, k, measure, policies, played)
            after = _from_arrays(game.after(distribution), from_numbers(distribution.rate, rate), measure)
            if k < 0:
                break
            if part == LEARN:
                stopped = replace(after, played=PlayedPolicy(after.domain, policies[k]))
                after = self._learned(stopped, block, space, range(arrival, block.starts[k + 1]))
                rate, measure = as_numbers(after.rate), _as_arrays(after)
                k += 1
                continue
            if part == WEIGH:
                self.learner.weigh(after, Segment(played.states[k], played.actions[k]), rng)  # says what is wrong
                raise AssertionError("a pair was visited without a chance, and weighed")
            _put(measure, after.projection)
        if game.known.told is None:  # a box that changed is no longer that of the last round
            after = replace(after, played=PlayedPolicy(after.domain, policies[-1]))
        nothing = np.zeros(len(policies), np.int64)
        return after, BlockResult(played, policies, nothing, narrows(distribution.domain))

    def save(self, distribution: TiltedMeasure) -> dict[str, NDArray[Any]]:
        measure, shape = _as_arrays(distribution), distribution.prior.shape
        arrays = measure._replace(prior=distribution.prior, log_measure=measure.log_measure.reshape(shape))._asdict()
        known = saved_used(distribution.projector.domain, distribution.domain)
        return {"rate": as_numbers(distribution.rate), **arrays, **known}

    def load(self, distribution: TiltedMeasure, saved: Mapping[str, NDArray[Any]]) -> TiltedMeasure:
        measure = Tilted(*(saved[name] for name in Tilted._fields))
        known = _over(distribution, *loaded_used(distribution.domain, saved))
        return _from_arrays(known, from_numbers(distribution.rate, saved["rate"]), measure)

    def _learned(self, stopped: TiltedMeasure, block: Block, space: Any, arrivals: range) -> TiltedMeasure:
        """What the learner's own method makes of the feedback at which a compiled game stopped, and of what is left."""
        for i in arrivals:
            stopped = self.learner.learn(stopped, self._feedback(block, space, i))
        return stopped

    def _feedback(self, block: Block, space: Any, arrival: int) -> Feedback:
        slot = block.arrived[arrival]
        if isinstance(self.learner.estimator, WholeTable):
            nowhere = Segment(np.empty(0, np.int64), np.empty(0, np.int64))
            weights = Weights(np.empty(0), occupancy=space[slot])
            return FullInformation(nowhere, weights, block.tables[block.arrived_tables[arrival]])
        segment = Segment(space.states[slot], space.actions[slot])
        return Bandit(segment, Weights(space.weights[slot]), space.losses[slot])

    def _played(
        self,
        game: "_Game",
        block: Block,
        space: Any,
        rate: Floats,
        first: int,
        measure: Tilted,
        policies: Policies,
        played: Played,
    ) -> tuple[int, int, int]:
        """Plays on from a round; the round, the part of it that could not be, and the arrival there, or -1."""
        estimator, is_descent = self.learner.estimator, isinstance(self.learner, MirrorDescent)
        result = first, measure, policies, played
        if isinstance(estimator, WholeTable):
            stopped = kernels.measures.full(game.projecting, game.known.told, block, space, rate, is_descent, *result)
        else:
            how = float(getattr(estimator, "gamma", 0.0)), isinstance(estimator, DelayAdapted), is_descent
            stopped = kernels.measures.bandit(game.projecting, *game.known, block, space, rate, *how, *result)
        k, part, arrival = map(int, stopped)
        return k, part, arrival


class _Game(NamedTuple):
    """The dynamics that a block is played over, and how projections go there; both are written to."""

    known: UsedDynamics
    projecting: Projecting

    @classmethod
    def of(cls, distribution: TiltedMeasure, *, in_epochs: bool) -> Self:
        projector = distribution.projector
        projecting = projector.compiled()
        assert projecting is not None
        return cls(UsedDynamics.of(projector.domain, distribution.gathered, in_epochs=in_epochs), projecting)

    def after(self, before: TiltedMeasure) -> TiltedMeasure:
        """The distribution over the dynamics that the rounds since then have left."""
        if self.known.told is None:
            return before
        return _over(before, *self.known.after(before.projector.domain, before.gathered))


def _over(distribution: TiltedMeasure, used: Domain, gathered: Dynamics) -> TiltedMeasure:
    """The distribution over other dynamics."""
    return replace(distribution, projector=distribution.projector.oracle.bind(used), gathered=gathered)


def _as_arrays(distribution: TiltedMeasure) -> Tilted:
    """A copy for a compiled game, which writes to it."""
    (steps, states, actions), last = distribution.total.shape, distribution.last
    prior = distribution.prior.copy().reshape(steps, states * actions, -1)
    empty = np.empty(prior.shape), np.empty((1, steps, states)), np.empty(1), np.zeros(1, bool), np.zeros(1, bool)
    measure = Tilted(prior, distribution.total.copy(), *empty)
    if last is not None:
        _put(measure, last)
        measure.stands[0] = distribution.stands
    return measure


def _put(measure: Tilted, projection: Projection) -> None:
    """Make it the measure that stands."""
    measure.log_measure[:] = projection.log_measure.reshape(measure.log_measure.shape)
    measure.prices[0] = projection.prices
    measure.gap[0] = projection.gap
    measure.warm[0] = np.isfinite(projection.prices).all()
    measure.stands[0] = True


def _from_arrays(before: TiltedMeasure, rate: Rate, measure: Tilted) -> TiltedMeasure:
    """What a compiled game left. It proves its projections, but does not look at them any further: nan."""
    shape = before.prior.shape
    prior, log_measure = measure.prior.reshape(shape).copy(), measure.log_measure.reshape(shape).copy()
    found = log_measure, measure.prices[0].copy(), nan, float(measure.gap[0]), nan, 0.0
    last, stands = Projection(*found, Status.OPTIMAL, Report(before.projector.name)), bool(measure.stands[0])
    useful = last if stands or measure.warm[0] else None
    return TiltedMeasure(before.projector, rate, prior, measure.total.copy(), before.gathered, useful, stands)


def _lowered(log_point: Floats) -> Floats:
    """The same point, each step of which is divided by its largest weight where that is above 1.

    The mass of a step is 1, so that the nearest measure stays the same. Estimates that are negative would otherwise
    lead to weights beyond what floating point holds.
    """
    top = log_point.max()
    if not 0.0 < top < np.inf:
        return log_point
    tops = log_point.reshape(len(log_point), -1).max(axis=1)
    lowered: Floats = log_point - np.maximum(0.0, tops).reshape(-1, *(1,) * (log_point.ndim - 1))
    return lowered


def entropy(projection: Projection) -> float:
    """`-sum q ln q` of a projected measure; at least 0."""
    return float(kernels.measures.entropy(projection.log_measure.reshape(-1)))
