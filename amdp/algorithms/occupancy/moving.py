"""Learners for losses that move, full information over a kernel: DO-REPS of Zhao, Li and Zhou (2022), in mixture form.

Mirror descent follows a best policy that changes only if no mass of its measure is ever too small to come back. The
source keeps all masses above a bound, by a clipped polytope. Here the prior of each round is mixed with the first
measure `q0` instead, as fixed share does (Herbster and Warmuth 1998),

    q'_k = (1 - share) q_k + share q0,    q_{k+1} = argmin_q rate <q, l_k> + KL(q || q'_k),

which is an occupancy measure again, needs no other projection, and has the same bound: for every change of the policy
one more `H ln(SA / share)` over the rate. Which rate is best depends on the number of changes. So several run side by
side, on a grid, and exponential weights choose among them. Proofs [derived]: docs/moving-losses.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import ceil, log, log2, sqrt
from typing import Any, ClassVar

import numpy as np

from amdp.algorithms import bounds
from amdp.algorithms.bounds import Bound, EnsembleBound, require_rounds
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.feedback import Feedback, FullInformation, Weights
from amdp.algorithms.occupancy.measures import MirrorDescent, PlayedPolicy, TiltedMeasure
from amdp.algorithms.rates import AdaptiveRate, FixedRate, Rate, as_rate
from amdp.algorithms.task import Task
from amdp.arrays import Floats, Policies, require_whole
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.segments import Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe
from amdp.oracles.projection.base import Projection

# What the losses of a round are taken for: from the number of tables that were told and the last of them, zeros before
# the first. `lambda k, table: predictions[k]` plays predictions of one's own.
Guess = Callable[[int, Floats], Floats]


def last_table(told: int, table: Floats) -> Floats:
    """The next losses are guessed to be the last ones."""
    return table


@dataclass(frozen=True, eq=False)
class SharedMeasure(TiltedMeasure):
    """A measure whose prior is mixed with the first one."""

    first: Floats = field(kw_only=True, repr=False)  # logarithms [h, s, a] of the first measure
    before: Projection | None = field(default=None, kw_only=True, repr=False)  # that of the round before

    @property
    def _near(self) -> Projection | None:
        """Losses are often like the last ones, and so are the prices: a Newton step less than from prices of zero."""
        return self.before or self.last

    @property
    def anticipated(self) -> float:
        """What it expects to lose in this round, before it is told."""
        return 0.0


@dataclass(frozen=True, eq=False)
class GuessedMeasure(SharedMeasure):
    """The same, with a guess of the next losses that is played as if it were told already."""

    guess: Floats = field(kw_only=True, repr=False)  # [h, s, a]
    told: int = field(default=0, kw_only=True)  # tables so far

    @cached_property
    def settled(self) -> Projection:
        return self._projected()

    @cached_property
    def projection(self) -> Projection:
        """The measure that is played."""
        return self.projector.project(self.settled.log_measure - self.rate.value * self.guess, self.settled)

    @property
    def anticipated(self) -> float:
        return float((self.occupancy * self.guess).sum())


@dataclass(frozen=True)
class FixedShare(MirrorDescent):
    """Mirror descent whose prior is mixed with the first measure, with a weight `share` in each round."""

    rate: float
    share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.share < 1.0:
            raise InvalidInput(f"{self.share}; it must be at least 0 and below 1", "share")
        if not isinstance(self.estimator, WholeTable):
            raise InvalidInput(f"{type(self.estimator).__name__}; full information, WholeTable, is needed", "estimator")

    def start(self, domain: Domain, rng: np.random.Generator) -> SharedMeasure:
        """The measure of greatest entropy, which is also what priors are mixed with."""
        if not isinstance(domain, MarkovPolicies) or not isinstance(domain.dynamics, SingleKernel):
            raise InvalidInput(f"mixing with the first measure needs a kernel, not {describe(domain)}")
        start = super().start(domain, rng)
        first = start.projection
        return SharedMeasure(**_begun(start), first=first.log_measure)

    def bound(self, domain: Domain, rounds: int, waited: int = 0, changes: int = 0) -> Bound | None:
        """What theory allows against the best sequence of policies with so many changes; None with delays."""
        rate = as_rate(self.rate)
        if waited or not isinstance(domain.dynamics, SingleKernel) or not isinstance(rate, FixedRate):
            return None
        return bounds.fixed_share(domain.shape, rounds, rate.value, self.share, changes)

    def _rebased(self, distribution: TiltedMeasure) -> dict[str, Any]:
        assert isinstance(distribution, SharedMeasure)
        based = {**super()._rebased(distribution), "before": distribution.settled}
        if self.share == 0.0:
            return based
        mixed = np.logaddexp(based["prior"] + log(1.0 - self.share), distribution.first + log(self.share))
        return {**based, "prior": mixed, "last": replace(based["last"], log_measure=mixed)}


@dataclass(frozen=True)
class GuessingShare(FixedShare):
    """Optimistic mirror descent: it plays as if the guess were the losses, and learns from the losses."""

    guess: Guess = last_table

    def start(self, domain: Domain, rng: np.random.Generator) -> GuessedMeasure:
        start = super().start(domain, rng)
        return GuessedMeasure(**_begun(start), guess=self.guess(0, np.zeros(domain.shape)))

    def learn(self, distribution: TiltedMeasure, feedback: Feedback) -> TiltedMeasure:
        """Add the losses to the sum, and guess the next ones."""
        assert isinstance(distribution, GuessedMeasure)
        assert isinstance(feedback, FullInformation)
        told = distribution.told + 1
        return replace(super().learn(distribution, feedback), guess=self.guess(told, feedback.table), told=told)  # type: ignore[call-arg]

    def bound(self, domain: Domain, rounds: int, waited: int = 0, changes: int = 0) -> None:
        """None: it depends on how good the guesses are."""


def _begun(start: TiltedMeasure) -> dict[str, Any]:
    """The fields of a measure that has begun, its first projection found."""
    kept = {each.name: getattr(start, each.name) for each in fields(start)}
    return kept | {"last": start.projection, "stands": True}


@dataclass(frozen=True, eq=False)
class WeightedMeasures:
    """Measures that run side by side, and what each of them lost so far: their mean is played."""

    members: tuple[SharedMeasure, ...] = field(repr=False)
    rate: Rate  # of the choice among them
    incurred: Floats = field(repr=False)  # [n]
    oracle_calls: ClassVar[int] = 0

    @property
    def domain(self) -> Domain:
        return self.members[0].domain

    @cached_property
    def chances(self) -> Floats:
        """The weight `[n]` of each member."""
        expected = self.incurred + np.array([member.anticipated for member in self.members])
        weights = np.exp(-self.rate.value * (expected - expected.min()))
        shares: Floats = weights / weights.sum()
        return shares

    @cached_property
    def occupancies(self) -> Floats:
        """The occupancy measure `[n, h, s, a]` of each member."""
        return np.stack([member.occupancy for member in self.members])

    @cached_property
    def occupancy(self) -> Floats:
        """The mean of the measures, `[h, s, a]`: that of the policy that is played."""
        mean: Floats = np.tensordot(self.chances, self.occupancies, axes=1)
        return mean

    @cached_property
    def playing(self) -> PlayedPolicy:
        """The policy of the mean of the measures; a mean of policies would have other occupancies."""
        pairs = self.occupancy
        states = pairs.sum(axis=-1, keepdims=True)
        even = np.full(pairs.shape, 1.0 / pairs.shape[-1])
        return PlayedPolicy(self.domain, np.divide(pairs, states, out=even, where=states > 0.0))

    def draw(self, rng: np.random.Generator) -> Policies:
        return self.playing.draw(rng)

    def potential(self, incurred: Floats) -> float:
        """`-(1/rate) ln((1/n) sum exp(-rate incurred))`."""
        least, rate = float(incurred.min()), self.rate.value
        return least - log(float(np.exp(-rate * (incurred - least)).mean())) / rate if rate > 0.0 else least


@dataclass(frozen=True)
class Ensemble:
    """Exponential weights, with the rate `choosing`, over learners with full information that share a kernel."""

    members: tuple[FixedShare, ...]
    choosing: float | Rate
    feedback: ClassVar[type[Feedback]] = FullInformation

    def __post_init__(self) -> None:
        as_rate(self.choosing)
        if not self.members:
            raise InvalidInput("none; give one learner at least", "members")

    @property
    def rate(self) -> float:
        """That of its first member, the least of a grid."""
        return self.members[0].rate

    @property
    def projection(self) -> Any:
        """That of its members."""
        return self.members[0].projection

    def start(self, domain: Domain, rng: np.random.Generator) -> WeightedMeasures:
        started = tuple(member.start(domain, rng) for member in self.members)
        return WeightedMeasures(started, as_rate(self.choosing), np.zeros(len(started)))

    def observe(self, distribution: WeightedMeasures, segment: Segment) -> WeightedMeasures:
        return replace(distribution, members=self._each("observe", distribution, segment))

    def weigh(self, distribution: WeightedMeasures, segment: Segment, rng: np.random.Generator) -> Weights:
        """No weights, but the measures of the round and their mean, for losses that arrive later."""
        return Weights(np.empty(0), occupancy=np.stack([*distribution.occupancies, distribution.occupancy]))

    def learn(self, distribution: WeightedMeasures, feedback: Feedback) -> WeightedMeasures:
        """Charge each member with its own measure of the round, and let it learn."""
        if not isinstance(feedback, FullInformation) or feedback.weights.occupancy is None:
            raise InvalidInput("Ensemble understands FullInformation, with the weights that its `weigh` gave")
        *lost, paid = np.tensordot(feedback.weights.occupancy, feedback.table, axes=3)
        incurred = distribution.incurred + np.array(lost)
        before = distribution.potential(distribution.incurred)
        rate = distribution.rate.after(lambda: float(paid) - (distribution.potential(incurred) - before))
        return WeightedMeasures(self._each("learn", distribution, feedback), rate, incurred)

    def bound(self, domain: Domain, rounds: int, waited: int = 0, changes: int = 0) -> EnsembleBound | None:
        """What theory allows against the best sequence with so many changes: the best member, and the choice of it."""
        rate = as_rate(self.choosing)
        members = [member.bound(domain, rounds, waited, changes) for member in self.members]
        proved = [bound for bound in members if bound is not None]
        if not proved or not isinstance(rate, FixedRate):
            return None
        return bounds.ensemble(domain.shape, rounds, rate.value, len(members), min(proved, key=lambda each: each.total))

    def _each(self, method: str, distribution: WeightedMeasures, told: Any) -> tuple[SharedMeasure, ...]:
        pairs = zip(self.members, distribution.members, strict=True)
        return tuple(getattr(member, method)(state, told) for member, state in pairs)


# --- recipes ----------------------------------------------------------------------------------------------------------


def o_reps_fixed_share(
    task: Task, *, rate: float | None = None, share: float | None = None, changes: int = 1
) -> FixedShare:
    """Mirror descent over a kernel that mixes with its first measure, full information; tuned for so many changes.

    Share `1 / (K+1)`, rate `sqrt(2 ((m+1) ln(SA) + m ln(K+1) + 1) / K)` for `m` changes [derived]; without delay.
    """
    require_whole("changes", changes, 0)
    rates, mixed = task.rate(rate, _balanced(task, changes)), _share(task, share)
    return FixedShare(rates, WholeTable(), task.projection_oracle, share=mixed)


def do_reps(
    task: Task,
    *,
    rate: float | None = None,
    rates: int | None = None,
    share: float | None = None,
    choosing: float | None = None,
) -> Ensemble:
    """Follows losses that move, full information over a kernel: DO-REPS of Zhao, Li and Zhou (2022), in mixture form.

    Rates from `o-reps-fixed-share` without a change to that with a change in every round, each twice the one before;
    chosen among at rate `sqrt(8 ln N / (H^2 K))` [derived]. Regret against `m` changes of order
    `H sqrt(K (1 + m) ln(SAK))` [derived], as in the source [from memory]. Tuned without delay.
    """
    grid = _grid(task, rate, rates, _balanced(task, require_rounds(task.rounds) - 1))
    steps, mixed = task.domain.shape[0], _share(task, share)
    theory = sqrt(8.0 * log(len(grid)) / (steps**2 * task.rounds))
    members = tuple(FixedShare(each, WholeTable(), task.projection_oracle, share=mixed) for each in grid)
    return Ensemble(members, task.setting("choosing", choosing, theory))


def do_reps_optimistic(
    task: Task, *, rate: float | None = None, rates: int | None = None, share: float | None = None
) -> Ensemble:
    """DO-REPS that plays as if the losses of the round before came again, full information over a kernel.

    The grid goes up to `sqrt(K)` times that of `do-reps`, for losses that are guessed almost always, and the choice
    among its rates tunes itself [derived]. For guesses of one's own see `GuessingShare`.
    """
    largest = _balanced(task, require_rounds(task.rounds) - 1) * sqrt(task.rounds)
    grid, mixed = _grid(task, rate, rates, largest), _share(task, share)
    members = tuple(GuessingShare(each, WholeTable(), task.projection_oracle, share=mixed) for each in grid)
    return Ensemble(members, AdaptiveRate(log(len(grid))))


def _balanced(task: Task, changes: int) -> float:
    """The rate that balances the bound of `FixedShare` for so many changes, at the share `1 / (K+1)`."""
    domain = task.episodes()
    if not isinstance(domain.dynamics, SingleKernel):
        raise InvalidInput(f"{task.learner} needs a kernel, not {describe(domain)}")
    (_, states, actions), rounds = domain.shape, require_rounds(task.rounds)
    distance = (changes + 1) * log(states * actions) + changes * log(rounds + 1) + 1.0
    return sqrt(2.0 * distance / rounds)


def _grid(task: Task, rate: float | None, rates: int | None, largest: float) -> list[float]:
    """Rates from the one for no change on, each twice the one before; up to `largest`, or so many."""
    least = _balanced(task, 0)
    count = task.setting("rates", rates, 1 + ceil(log2(max(1.0, largest / least))))
    require_whole("rates", count, 1)
    first = task.rate(rate, least)
    return [first * 2.0**i for i in range(count)]


def _share(task: Task, share: float | None) -> float:
    return task.setting("share", share, 1.0 / (require_rounds(task.rounds) + 1))
