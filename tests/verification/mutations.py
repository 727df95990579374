"""Wrong implementations, each by one mistake that somebody made or could make."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, partial
from math import ceil
from typing import Any, ClassVar, Self, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from amdp import kernels
from amdp.algorithms import soft_leader as soft
from amdp.algorithms.bounds import ftpl_bound
from amdp.algorithms.estimators.base import added
from amdp.algorithms.estimators.feedback import Bandit, Feedback, Weights
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.estimators.resampling import GeometricResampling
from amdp.algorithms.estimators.trials import BatchedTrials, CompiledTrials
from amdp.algorithms.ftpl import perturbed_leader as ftpl
from amdp.algorithms.ftpl.adaptive import AdaptiveFtpl, AdaptiveLeader
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, LiteralFtpl, PerturbedLeader
from amdp.algorithms.hedge import Hedge, WeightedPolicies
from amdp.algorithms.rates import AdaptiveRate, FixedRate
from amdp.algorithms.streams.epochs import FtplTuning, HedgeTuning, hedge_infinite, hedge_infinite_renewed
from amdp.algorithms.streams.switching import PolicySwitching, RenewedSwitching, Routes, best_routes
from amdp.algorithms.task import EpochSetup, Task
from amdp.arrays import Actions, Costs, Floats, Policies
from amdp.game import regret
from amdp.game.arenas import Continuing, Episodic
from amdp.game.delays import Delays
from amdp.kernels.layout import keyed_rng
from amdp.model.chains import chains, laws, rows_of
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.connectivity import Diameter, diameter
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.dynamics import CompiledDynamics, Sweep
from amdp.model.reach import BoxReach, Scaled
from amdp.model.segments import Pairs, Place, Segment, Shape, Visit
from amdp.model.transitions import Kernel, SingleKernel
from amdp.oracles.base import Planner, Plans
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.verification import worlds
from amdp.verification.base import Parts


class Untruncated(GeometricResampling):
    """Goes on counting far beyond the limit."""

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        counts: Weights = distribution.trials.per_step(segment, 64 * self.limit, rng)
        return counts


class Tripled(GeometricResampling):
    """Estimates three times too large."""

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        counts = super().weigh(distribution, segment, rng)
        return counts._replace(values=3.0 * counts.values)


@dataclass(frozen=True)
class WeighedOnArrival(GeometricResampling):
    """Counts trials of the distribution that is played when the feedback arrives."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), compare=False)

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        return Weights(np.zeros(len(segment.states)))

    def add(self, total: Floats, feedback: Bandit, distribution: Any) -> Floats:
        now = distribution.trials.per_step(feedback.segment, self.limit, self.rng)
        return added(total, Bandit(feedback.segment, now, feedback.losses))


class OffByOne(Delays):
    """Brings feedback one round late."""

    def arrivals(self, k: int) -> NDArray[np.int64]:
        return super().arrivals(k - 1) if k else np.empty(0, dtype=np.int64)


class FreshBox(BernsteinBox):
    """Forgets the earlier intervals instead of intersecting with them."""

    def narrow(self, segment: Segment) -> "FreshBox":
        narrowed = super().narrow(segment)
        if narrowed is self:
            return self
        assert narrowed.visits is not None
        assert narrowed.radius is not None
        return FreshBox.from_counts(narrowed.visits, narrowed.radius)


class WrongStepBox(BernsteinBox):
    """Asks Comp-UOB for the step before."""

    def greatest_visits(self, policies: Policies, initial: int, pairs: Pairs) -> Floats:
        before = Pairs(np.maximum(pairs.steps - 1, 0), pairs.states, pairs.actions)
        return super().greatest_visits(policies, initial, before)


class UnshiftedSwitching(PolicySwitching):
    """The printed text: the target is drawn from the law of the step in which the attempt starts."""

    def _targets(self, place: Place, policy: Policies, stop: int) -> Floats:
        targets: Floats = laws(chains(rows_of(self.kernel), policy[None]), self.initial, place.time, stop)[0]
        return targets


class LuckySwitching(PolicySwitching):
    """Takes the fewest steps that are possible for those that are expected."""

    @cached_property
    def diameter(self) -> Diameter:
        right, rows = diameter(self.kernel), rows_of(self.kernel)
        steps = shortest_path(rows.sum(axis=1), unweighted=True).T  # [y, s]
        return replace(right, times=steps, value=float(steps.max()))


class FirstVisitSwitching(PolicySwitching):
    """Another reading of the printed text: `p_g` is the chance of a first visit after exactly `l*` steps."""

    @cached_property
    def routes(self) -> Routes:
        routes, rows = best_routes(self.kernel, self.diameter), rows_of(self.kernel)
        chances = np.empty(len(rows))
        for target in range(len(rows)):
            at = np.eye(len(rows))[routes.parked]
            for left in reversed(range(routes.length)):
                at = at * (np.arange(len(rows)) != target) if left < routes.length - 1 else at
                at = at @ rows[np.arange(len(rows)), routes.actions[target, left]]
            chances[target] = at[target]
        return replace(routes, arrival=np.where(chances > 0.0, chances, routes.arrival))


class SlowSwitching(PolicySwitching):
    """Goes to the parking state by the worst way."""

    @cached_property
    def _home(self) -> Actions:
        parked = self.routes.parked
        slowest: Actions = (self._rows @ self.diameter.times[parked]).argmax(axis=1).astype(np.int32)
        slowest[parked] = self.routes.wait
        return slowest


class LongAttemptsSwitching(PolicySwitching):
    """Takes eight times the steps for an attempt, and the chances of the short one."""

    @cached_property
    def routes(self) -> Routes:
        routes = best_routes(self.kernel, self.diameter)
        return replace(routes, actions=np.repeat(routes.actions, 8, axis=1))


class LongAttemptsRenewed(LongAttemptsSwitching, RenewedSwitching):
    """The same, entering policies in every epoch."""


def long_attempts(task: Task) -> EpochSetup:
    """Hedge in epochs, as printed, entered by long attempts."""
    kernel = task.domain.dynamics
    assert isinstance(kernel, SingleKernel)
    return replace(hedge_infinite_renewed(task), entry=LongAttemptsRenewed(kernel, task.domain.initial))


class DawdlingSwitching(PolicySwitching):
    """Waits a while where it is before it sets out, and does not say so."""

    def walk(self, place: Place, policy: Policies, stop: int, rng: np.random.Generator) -> Visit:
        later = min(stop, place.time + ceil(self.expected_length))
        visit = super().walk(replace(place, time=later), policy, stop, rng)
        idle = np.full(later - place.time, place.state)
        entering = Segment(
            np.concatenate([idle, visit.entering.states]),
            np.concatenate([0 * idle, visit.entering.actions]),
            place.time,
        )
        return visit._replace(entering=entering)


class FtplOfHedge(FtplTuning):
    """Takes the epochs of Hedge's theorem."""

    @classmethod
    def tuned(cls, entry: PolicySwitching, epochs: int | None = None, multiplier: float = 1.0) -> Self:
        return super().tuned(entry, epochs or HedgeTuning.tuned(entry).epochs, multiplier)


class HedgeOfFtpl(HedgeTuning):
    """Takes the epochs of FTPL's theorem."""

    @classmethod
    def tuned(cls, entry: PolicySwitching, epochs: int | None = None, multiplier: float = 1.0) -> Self:
        return super().tuned(entry, epochs or FtplTuning.tuned(entry).epochs, multiplier)


class ContraryHedge(Hedge):
    """Takes losses for gains."""

    def learn(self, distribution: WeightedPolicies, feedback: Feedback) -> WeightedPolicies:
        right = super().learn(distribution, feedback)
        return replace(right, incurred=2.0 * distribution.incurred - right.incurred)


@dataclass(frozen=True)
class MyopicOracle:
    """Plans for the losses of each step alone."""

    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return BackwardInduction().supports(domain)

    def bind(self, domain: Domain) -> Planner:
        return _Myopic(self, domain)


class _Myopic(Planner):
    def minimize(self, costs: Costs) -> Plans:
        honest = BackwardInduction().bind(self.domain).minimize(costs)
        return replace(honest, actions=np.asarray(costs).argmin(axis=3).astype(np.int32))


# --- one for each stage of the loop: draw, play, weigh, observe, learn, measure ---------------------------------------


class PessimisticBox(BernsteinBox):
    """Plans for the dearest kernel of the box instead of the cheapest."""

    def cheapest(self, costs: Costs) -> Sweep:
        n, steps, states, _ = costs.shape
        actions, values = np.empty((n, steps, states), np.int32), np.empty((n, steps, states))
        for h in reversed(range(steps)):
            worth = np.array(costs[:, h])
            if h < steps - 1:
                worth -= self.least_expectation(h, -values[:, h + 1])
            actions[:, h], values[:, h] = worth.argmin(axis=2), worth.min(axis=2)
        return Sweep(actions, values, np.zeros(n))


class NarrowsFirst(Ftpl):
    """Weighs with the confidence set of the next round."""

    def weigh(self, distribution: PerturbedLeader, segment: Segment, rng: np.random.Generator) -> Weights:
        return super().weigh(self.observe(distribution, segment), segment, rng)


class LearnsTwice(Ftpl):
    """Adds every estimate twice."""

    def learn(self, distribution: PerturbedLeader, feedback: Feedback) -> PerturbedLeader:
        return super().learn(super().learn(distribution, feedback), feedback)


class LazyBox(BernsteinBox):
    """Narrows a row only when its visits reach a power of two."""

    def narrow(self, segment: Segment) -> "LazyBox":
        newest = super().narrow(segment)
        assert newest.visits is not None
        visits = newest.visits.sum(axis=-1, keepdims=True)
        renewed = (visits & (visits - 1)) == 0
        lower, upper = np.where(renewed, newest.lower, self.lower), np.where(renewed, newest.upper, self.upper)
        return LazyBox(lower, upper, newest.visits, newest.radius, newest.fallbacks)


class FrozenBox(BernsteinBox):
    """Never narrows."""

    def narrow(self, segment: Segment) -> "FrozenBox":
        return self


def play_from_zero(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Episodes and streams start in state 0, whatever `initial` says."""

    def play(self: Episodic, policy: Policies, rng: np.random.Generator) -> Segment:
        return self.kernel.walk(policy, 0, rng.random((self.kernel.shape[0], 2)))

    patch.setattr(Episodic, "play", play)
    patch.setattr(Continuing, "begin", lambda self: Place(0, 0))
    return parts


@dataclass(frozen=True, eq=False)
class _FromZero:
    """A sampler whose trials start in state 0."""

    distribution: Any

    @property
    def domain(self) -> MarkovPolicies:
        return MarkovPolicies(self.distribution.domain.dynamics, 0)

    def policies(self, rng: np.random.Generator) -> Any:
        return self.distribution.policies(rng)


def trials_from_zero(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Trials start in state 0, compiled or not, over a kernel, over a box and in a stream."""
    searched, batched, visits = CompiledTrials._searched, BatchedTrials.per_step, PolicySwitching.visits
    moved = cache(lambda entry: replace(entry, initial=0))
    patch.setattr(CompiledTrials, "_searched", lambda self, *arguments: searched(self._replace(initial=0), *arguments))
    patch.setattr(
        BatchedTrials,
        "per_step",
        lambda self, *arguments: batched(BatchedTrials(cast(Any, _FromZero(self.distribution))), *arguments),
    )
    patch.setattr(PolicySwitching, "visits", lambda self, *arguments: visits(moved(self), *arguments))
    return parts


# --- scaled resampling ------------------------------------------------------------------------------------------------


def scale_below_reach(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """A quarter of the right scale; chances over it that exceed 1 are cut."""
    right = Scaled.to

    def quarter(limit: int, bounds: Floats) -> Scaled:
        limits = np.maximum(1, right(limit, bounds).limits // 4)
        return Scaled(limits / limit, limits)

    patch.setattr(Scaled, "to", quarter)
    return parts


def limit_not_scaled(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """The right scale, but `L` trials instead of `c L`."""
    right = Scaled.to

    def unscaled(limit: int, bounds: Floats) -> Scaled:
        scaled = right(limit, bounds)
        return Scaled(scaled.bounds, np.full_like(scaled.limits, limit))

    patch.setattr(Scaled, "to", unscaled)
    return parts


Batch = Callable[[Floats, float, float], tuple[float, bool]]  # chances [b], scale, coin -> sum of a batch, goes on


def _batches_by(patch: pytest.MonkeyPatch, batch: Batch) -> None:
    """Weigh batches this way, by plain loops on the way through an oracle: compiled loops cannot be changed."""

    def weigh(
        columns: list[Floats], bounds: Floats, left: NDArray[np.int64], coins: Floats, is_open: Any, weights: Floats
    ) -> None:
        for j in np.flatnonzero(is_open):
            added, goes_on = batch(columns[j][: left[j]], bounds[j], coins[j])
            weights[j] += added
            is_open[j] = goes_on and len(columns[j]) < left[j]

    def shared(
        chances: Floats, bounds: Floats, limits: NDArray[np.int64], done: int, coins: Floats, is_open: Any, sums: Floats
    ) -> None:
        weigh(list(chances.T), bounds, limits - done, coins, is_open, sums)

    def per_step(
        chances: Floats,
        bounds: Floats,
        limits: NDArray[np.int64],
        done: int,
        each: int,
        coins: Floats,
        is_open: Any,
        sums: Floats,
    ) -> None:
        counts = np.where(is_open, np.minimum(each, limits - done), 0)
        stops = np.cumsum(counts)
        columns = [chances[stop - count : stop, j] for j, (stop, count) in enumerate(zip(stops, counts, strict=True))]
        weigh(columns, bounds, limits - done, coins, is_open, sums)

    patch.setattr(PerturbedLeader, "is_compiled", property(lambda self: False))
    patch.setattr(kernels.trials, "weigh_shared", shared)
    patch.setattr(kernels.trials, "weigh_per_step", per_step)


def coins_twice(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Count trials until a coin of `y` is a success; if there was none, the product is tossed for once more."""
    rng = np.random.default_rng(0)

    def batch(chances: Floats, scale: float, coin: float) -> tuple[float, bool]:
        y = np.minimum(1.0, chances / scale)
        hit = rng.random(len(y)) < y
        count = int(hit.argmax()) + 1 if hit.any() else len(y)
        return count / scale, not hit.any() and bool(coin < np.prod(1.0 - y))

    _batches_by(patch, batch)
    return parts


def no_coin_between_batches(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Add the sum of products of every batch."""

    def batch(chances: Floats, scale: float, coin: float) -> tuple[float, bool]:
        products = np.cumprod(np.maximum(0.0, 1.0 - chances / scale))
        return float((1.0 + products[:-1].sum()) / scale), True

    _batches_by(patch, batch)
    return parts


def stale_scale(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Bounds stand until visits double, whatever became of the rows."""

    def after(self: BoxReach, segment: Segment, dynamics: BernsteinBox) -> BoxReach:
        fresh = self._refreshed(segment)
        return BoxReach(dynamics, self.initial, fresh.known, fresh.visits)

    patch.setattr(BoxReach, "after", after)
    return parts


def comparator_without_last_round(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """The best policy in hindsight is found before the losses of the round are added."""

    def best(arena: Any, planner: Planner, so_far: Floats, losses: Any, first: int, keep: Any) -> Floats:
        totals = []
        for k in range(first, first + len(keep)):
            totals.append(so_far.copy())
            arena.gather(so_far, losses, k, k + 1)
        plans = planner.minimize(np.stack(totals))
        return np.column_stack([plans.objective, plans.bound])

    patch.setattr(regret, "_best", best)
    return parts


def bounds_cut(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """All explicit bounds are a tenth of what is proved."""
    patch.setattr(PolicySwitching, "expected_length", property(lambda self: 0.1 * self.routes.bound))
    patch.setattr(ftpl, "ftpl_bound", lambda *arguments: _tenth(ftpl_bound(*arguments)))
    kinds: tuple[type[Any], ...] = FtplTuning, HedgeTuning
    for kind in kinds:
        patch.setattr(kind, "bound", property(partial(_cut, kind.bound.fget)))
    return parts


def _cut(right: Callable[[Any], Any], tuning: Any) -> Any:
    return _tenth(right(tuning))


def _tenth(bound: Any) -> Any:
    return replace(bound, **{each.name: 0.1 * getattr(bound, each.name) for each in fields(bound)})


def _tight(shape: Shape, rounds: int, delta: float, scale: float = 1.0) -> Radius:
    return Radius.paper(shape, rounds, delta, 0.02 * scale)


class TripledImportance(ImportanceWeighting):
    """Estimates three times too large."""

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """Three times the weights."""
        weights = super().weigh(distribution, segment, rng)
        return weights._replace(values=3.0 * weights.values)


class CutRate(AdaptiveRate):
    """Counts a tenth of the gaps."""

    def after(self, gap: Callable[[], float]) -> "CutRate":
        """The rest is lost."""
        total = self.total + 0.1 * gap()
        return CutRate(self.range, self.first, max(self.gaps, total), total)


class ForgetfulRate(AdaptiveRate):
    """Follows the gap of the last round: it rises and falls."""

    def after(self, gap: Callable[[], float]) -> "ForgetfulRate":
        """What came before is forgotten."""
        last = gap()
        return ForgetfulRate(self.range, self.first, 20.0 * last, self.total + last)


def myopic_soft(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Each step is softened by its own losses alone."""

    def alone(dynamics: CompiledDynamics, total: Floats, rate: float) -> soft.SoftSweep:
        steps, states, actions = total.shape
        here = Kernel.homogeneous(np.eye(states)[:, None].repeat(actions, axis=1), 1)
        swept = [right(here, total[h : h + 1], rate) for h in range(steps)]
        return soft.SoftSweep(*(np.concatenate(part) for part in zip(*swept, strict=True)))

    def potential(state: soft.SoftPolicy, total: Floats) -> float:
        values = alone(cast(Any, state.domain.dynamics), total, state.rate.value).values
        return float(values[0, state.domain.initial])

    right = soft.soft_sweep
    patch.setattr(soft, "soft_sweep", alone)
    patch.setattr(soft.SoftPolicy, "potential", potential)
    return parts


def potential_at_lower_rate(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """The potential after the estimate is compared with one at another rate."""

    def halved(state: soft.SoftPolicy, total: Floats) -> float:
        return potential(replace(state, rate=FixedRate(state.rate.value / 2.0)), total)

    potential = soft.SoftPolicy.potential
    patch.setattr(soft.SoftPolicy, "potential", halved)
    return parts


class TrialsAgain(AdaptiveFtpl):
    """Trials draw their noise where gaps do."""

    def weigh(self, distribution: AdaptiveLeader, segment: Segment, rng: np.random.Generator) -> Weights:
        return super().weigh(distribution, segment, keyed_rng(distribution.seed, distribution.arrived))


def gap_noise_of_trials(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Gaps are measured with the noise of the first trials."""

    def again(state: AdaptiveLeader, feedback: Bandit, rng: np.random.Generator, plans: int) -> tuple[float, float]:
        costs = state.perturbation.trial_stream(state.total, state.domain.reached, rng)(plans)
        estimate = added(state.total, feedback) - state.total
        leaders = worlds.occupancies(worlds.TRANSITIONS, state.planner.minimize(costs).actions)
        least = state.planner.minimize(costs + estimate).objective
        return float((leaders * (costs + estimate)).sum() / plans - least.mean()), float((leaders * estimate).sum())

    patch.setattr(AdaptiveLeader, "_measured", again)
    return replace(parts, adaptive_ftpl=TrialsAgain)


def gap_of_two_noises(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """What leaders pay for one noise, less the least cost for another."""

    def apart(state: AdaptiveLeader, feedback: Bandit, rng: np.random.Generator, plans: int) -> tuple[float, float]:
        estimate = added(state.total, feedback) - state.total
        here, there = (state.perturbation.perturbed(state.total, plans, rng) for _ in range(2))
        leaders = worlds.occupancies(worlds.TRANSITIONS, state.planner.minimize(here).actions)
        least = state.planner.minimize(there + estimate).objective
        return float((leaders * (here + estimate)).sum() / plans - least.mean()), float((leaders * estimate).sum())

    patch.setattr(AdaptiveLeader, "_measured", apart)
    return parts


def estimate_on_both_sides(parts: Parts, patch: pytest.MonkeyPatch) -> Parts:
    """Leaders are compared with themselves."""

    def afterwards(state: AdaptiveLeader, feedback: Bandit, plans: int) -> float:
        nothing = replace(feedback, losses=np.zeros_like(feedback.losses))
        return gap(replace(state, total=added(state.total, feedback)), nothing, plans)

    gap = AdaptiveLeader.gap
    patch.setattr(AdaptiveLeader, "gap", afterwards)
    return parts


# --- all --------------------------------------------------------------------------------------------------------------


Mutate = Callable[[Parts, pytest.MonkeyPatch], Parts]


def _with(**changes: Any) -> Mutate:
    """Pieces replaced, nothing patched."""
    return lambda parts, patch: replace(parts, **changes)


MUTATIONS: dict[str, Mutate] = {
    "fixed-noise": _with(leader=LiteralFtpl),
    "scale-for-rate": _with(laplace=lambda rate: Laplace(1.0 / rate)),
    "drowning-noise": _with(laplace=lambda rate: Laplace(0.001 * rate)),
    "no-truncation": _with(resampling=Untruncated),
    "tripled-weights": _with(resampling=Tripled),
    "late-weights": _with(resampling=WeighedOnArrival),
    "delay-off-by-one": _with(delays=OffByOne),
    "boxes-not-nested": _with(box=FreshBox),
    "tight-radius": _with(radius=_tight),
    "wrong-step": _with(box=WrongStepBox),
    "pessimism": _with(box=PessimisticBox),
    "narrowed-at-powers-of-two": _with(box=LazyBox),
    "frozen-sets": _with(box=FrozenBox),
    "weights-after-narrowing": _with(leader=NarrowsFirst),
    "estimates-doubled": _with(leader=LearnsTwice),
    "play-from-state-0": play_from_zero,
    "trials-from-state-0": trials_from_zero,
    "comparator-without-last-round": comparator_without_last_round,
    "bounds-cut": bounds_cut,
    "unshifted-target": _with(switching=UnshiftedSwitching),
    "lucky-diameter": _with(switching=LuckySwitching),
    "first-visits": _with(switching=FirstVisitSwitching),
    "slow-way-home": _with(switching=SlowSwitching),
    "long-attempts": _with(switching=LongAttemptsSwitching, stream=long_attempts),
    "unannounced-delay": _with(switching=DawdlingSwitching),
    "exploring-weights": _with(weighting=lambda: ImplicitExploration(0.1)),
    "swapped-epochs": _with(ftpl_stream=FtplOfHedge, hedge_stream=HedgeOfFtpl),
    "kept-policies": _with(stream=hedge_infinite),
    "contrary-hedge": _with(hedge=ContraryHedge),
    "myopic-soft": myopic_soft,
    "potential-at-lower-rate": potential_at_lower_rate,
    "tripled-importance": _with(weighting=TripledImportance),
    "gaps-cut": _with(adaptive=CutRate),
    "forgetful-rate": _with(adaptive=ForgetfulRate),
    "gap-noise-of-trials": gap_noise_of_trials,
    "gap-of-two-noises": gap_of_two_noises,
    "estimate-on-both-sides": estimate_on_both_sides,
    "myopic-oracle": _with(oracle=MyopicOracle()),
    "scale-below-reach": scale_below_reach,
    "limit-not-scaled": limit_not_scaled,
    "coins-twice": coins_twice,
    "no-coin-between-batches": no_coin_between_batches,
    "stale-scale": stale_scale,
}
