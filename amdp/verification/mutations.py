"""Wrong implementations, each by one mistake that somebody made or could make."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from amdp.algorithms.ftpl import LiteralFtpl
from amdp.algorithms.hedge import Hedge, WeightedPolicies
from amdp.algorithms.infinite_horizon import FtplTuning, HedgeTuning, hedge_infinite
from amdp.algorithms.perturbations import Laplace
from amdp.algorithms.switching import Place, PolicySwitching, Routes, Visit, best_routes
from amdp.arrays import Actions, Costs, Floats, Policies
from amdp.chains import chains, laws, rows_of
from amdp.confidence import BernsteinBox, Radius
from amdp.delays import Delays
from amdp.diagnostics import Diameter, diameter
from amdp.dynamics import Pairs, Segment
from amdp.estimators import GeometricResampling, added
from amdp.feedback import Bandit, Feedback, Weights
from amdp.mdp import Domain
from amdp.oracles.base import Planner, Plans
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.verification.base import Parts
from amdp.weighting import ImplicitExploration


class Untruncated(GeometricResampling):
    """Goes on counting far beyond the limit."""

    def weigh(self, source: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """Counts of up to 64 times the limit."""
        counts: Weights = source.trials.apart(segment, 64 * self.limit, rng)
        return counts


class Tripled(GeometricResampling):
    """Estimates three times too large."""

    def weigh(self, source: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """Three times the counts."""
        counts = super().weigh(source, segment, rng)
        return counts._replace(values=3.0 * counts.values)


@dataclass(frozen=True)
class WeighedOnArrival(GeometricResampling):
    """Counts trials of the distribution that is played when the feedback arrives."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), compare=False)

    def weigh(self, source: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """Nothing yet."""
        return Weights(np.zeros(len(segment.states)))

    def add(self, total: Floats, feedback: Bandit, source: Any) -> Floats:
        """Too late: the distribution has moved on."""
        now = source.trials.apart(feedback.segment, self.limit, self.rng)
        return added(total, Bandit(feedback.segment, now, feedback.losses))


class OffByOne(Delays):
    """Brings feedback one round late."""

    def arrivals(self, k: int) -> NDArray[np.int64]:
        """Those of the round before."""
        return super().arrivals(k - 1) if k else np.empty(0, dtype=np.int64)


class FreshBox(BernsteinBox):
    """Forgets the earlier intervals instead of intersecting with them."""

    def narrow(self, segment: Segment) -> "FreshBox":
        """The newest intervals alone."""
        narrowed = super().narrow(segment)
        if narrowed is self:
            return self
        assert narrowed.visits is not None
        assert narrowed.radius is not None
        return FreshBox.from_counts(narrowed.visits, narrowed.radius)


class WrongStepBox(BernsteinBox):
    """Asks Comp-UOB for the step before."""

    def greatest_visits(self, policies: Policies, initial: int, pairs: Pairs) -> Floats:
        """Of the right pair, at the wrong step."""
        before = Pairs(np.maximum(pairs.steps - 1, 0), pairs.states, pairs.actions)
        return super().greatest_visits(policies, initial, before)


class UnshiftedSwitching(PolicySwitching):
    """The printed text: the target is drawn from the law of the step in which the attempt starts."""

    def _targets(self, place: Place, policy: Policies, stop: int) -> Floats:
        found: Floats = laws(chains(rows_of(self.kernel), policy[None]), self.initial, place.time, stop)[0]
        return found


class LuckySwitching(PolicySwitching):
    """Takes the fewest steps that are possible for those that are expected."""

    @cached_property
    def diameter(self) -> Diameter:
        """With lucky times."""
        found, rows = diameter(self.kernel), rows_of(self.kernel)
        steps = shortest_path(rows.sum(axis=1), unweighted=True).T  # [y, s]
        return replace(found, times=steps, value=float(steps.max()))


class FirstVisitSwitching(PolicySwitching):
    """Another reading of the printed text: `p_g` is the chance of a first visit after exactly `l*` steps."""

    @cached_property
    def routes(self) -> Routes:
        """With the chances of first visits, where one is possible."""
        found, rows = best_routes(self.kernel, self.diameter), rows_of(self.kernel)
        chances = np.empty(len(rows))
        for target in range(len(rows)):
            at = np.eye(len(rows))[found.parked]
            for left in reversed(range(found.length)):
                at = at * (np.arange(len(rows)) != target) if left < found.length - 1 else at
                at = at @ rows[np.arange(len(rows)), found.actions[target, left]]
            chances[target] = at[target]
        return replace(found, arrival=np.where(chances > 0.0, chances, found.arrival))


class SlowSwitching(PolicySwitching):
    """Goes to the parking state by the worst way."""

    @cached_property
    def _home(self) -> Actions:
        parked = self.routes.parked
        slowest: Actions = (self._rows @ self.diameter.times[parked]).argmax(axis=1).astype(np.int32)
        slowest[parked] = self.routes.wait
        return slowest


class DawdlingSwitching(PolicySwitching):
    """Waits a while where it is before it sets out, and does not say so."""

    def walk(self, place: Place, policy: Policies, stop: int, rng: np.random.Generator) -> Visit:
        """As many steps as a switch may take, in vain."""
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
        """The wrong `J`."""
        return super().tuned(entry, epochs or HedgeTuning.tuned(entry).epochs, multiplier)


class HedgeOfFtpl(HedgeTuning):
    """Takes the epochs of FTPL's theorem."""

    @classmethod
    def tuned(cls, entry: PolicySwitching, epochs: int | None = None, multiplier: float = 1.0) -> Self:
        """The wrong `J`."""
        return super().tuned(entry, epochs or FtplTuning.tuned(entry).epochs, multiplier)


class ContraryHedge(Hedge):
    """Takes losses for gains."""

    def learn(self, source: WeightedPolicies, feedback: Feedback) -> WeightedPolicies:
        """The wrong way round."""
        right = super().learn(source, feedback)
        return replace(right, paid=2.0 * source.paid - right.paid)


@dataclass(frozen=True)
class MyopicOracle:
    """Plans for the losses of each step alone."""

    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        """As backward induction does."""
        return BackwardInduction().supports(domain)

    def bind(self, domain: Domain) -> Planner:
        """A planner that does not look ahead."""
        return _Myopic(self, domain)


class _Myopic(Planner):
    def minimize(self, costs: Costs) -> Plans:
        honest = BackwardInduction().bind(self.domain).minimize(costs)
        return replace(honest, actions=np.asarray(costs).argmin(axis=3).astype(np.int32))


@dataclass(frozen=True)
class Mutation:
    """A name, the mistake, and the pieces with it."""

    name: str
    mistake: str
    mutate: Callable[[Parts], Parts] = field(repr=False)


MUTATIONS = (
    Mutation("fixed-noise", "the noise is drawn once", lambda parts: replace(parts, leader=LiteralFtpl)),
    Mutation(
        "scale-for-rate",
        "the Laplace noise takes its rate for its scale",
        lambda parts: replace(parts, laplace=lambda rate: Laplace(1.0 / rate)),
    ),
    Mutation(
        "no-truncation", "the limit of the trials is ignored", lambda parts: replace(parts, resampling=Untruncated)
    ),
    Mutation(
        "tripled-weights", "estimates are three times too large", lambda parts: replace(parts, resampling=Tripled)
    ),
    Mutation(
        "late-weights",
        "weights come from the current distribution, not from the one that was played",
        lambda parts: replace(parts, resampling=WeighedOnArrival),
    ),
    Mutation("delay-off-by-one", "feedback comes one round late", lambda parts: replace(parts, delays=OffByOne)),
    Mutation("boxes-not-nested", "confidence sets forget the earlier ones", lambda parts: replace(parts, box=FreshBox)),
    Mutation(
        "tight-radius",
        "confidence sets are too narrow",
        lambda parts: replace(parts, radius=partial(Radius.paper, scale=0.02)),
    ),
    Mutation("wrong-step", "Comp-UOB is asked for the step before", lambda parts: replace(parts, box=WrongStepBox)),
    Mutation(
        "unshifted-target",
        "a switch aims at the law of its start",
        lambda parts: replace(parts, switching=UnshiftedSwitching),
    ),
    Mutation(
        "lucky-diameter",
        "the diameter counts the fewest steps instead of the expected ones",
        lambda parts: replace(parts, switching=LuckySwitching),
    ),
    Mutation(
        "first-visits",
        "the chance to be at a target is taken for that of a first visit",
        lambda parts: replace(parts, switching=FirstVisitSwitching),
    ),
    Mutation(
        "slow-way-home",
        "a switch goes to the parking state by the worst way",
        lambda parts: replace(parts, switching=SlowSwitching),
    ),
    Mutation(
        "unannounced-delay",
        "a switch waits before it sets out",
        lambda parts: replace(parts, switching=DawdlingSwitching),
    ),
    Mutation(
        "exploring-weights",
        "exact importance weights with a gamma left in",
        lambda parts: replace(parts, weighting=lambda: ImplicitExploration(0.1)),
    ),
    Mutation(
        "swapped-epochs",
        "FTPL and Hedge take the number of epochs of each other's theorem",
        lambda parts: replace(parts, ftpl_stream=FtplOfHedge, hedge_stream=HedgeOfFtpl),
    ),
    Mutation(
        "kept-policies",
        "a policy that stays is followed on instead of being entered anew",
        lambda parts: replace(parts, stream=hedge_infinite),
    ),
    Mutation("contrary-hedge", "Hedge takes losses for gains", lambda parts: replace(parts, hedge=ContraryHedge)),
    Mutation("myopic-oracle", "the oracle does not look ahead", lambda parts: replace(parts, oracle=MyopicOracle())),
)
