"""FTPL and Hedge over stationary policies in a stream of steps (Dai, Luo and Chen 2022, section 5 and appendix D).

The learners are `Ftpl` and `Hedge`. What is new is that an epoch begins with a switch, whose steps say nothing about
the policy: a pair is met at step `t` only if the switch was over by then, which the estimates below must know of. What
is proved of which, and the bounds for any parameters, are in docs/infinite-horizon.md.

`T` steps, `S` states, `A` actions, `D` diameter, `J` epochs of `H` steps, `C` the bound on a switch's expected length,
`W` ignored steps.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import ceil, e, inf, log, sqrt
from typing import Any, Self, TypeVar

import numpy as np

from amdp.algorithms.base import DistributionWithTrials
from amdp.algorithms.bounds import RegretBound
from amdp.algorithms.estimators.base import WeightTimesLoss, WholeTable
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.algorithms.estimators.importance_weighting import ImportanceWeighting
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    SharedResampling,
    SharedScaledResampling,
    require_limit,
)
from amdp.algorithms.estimators.trials import StationaryTrials
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl
from amdp.algorithms.hedge import MOST_POLICIES, Hedge, listing_at_most
from amdp.algorithms.streams.switching import Epoch, PolicySwitching, RenewedSwitching
from amdp.algorithms.task import EpochSetup, Task
from amdp.arrays import require_whole
from amdp.errors import InvalidInput
from amdp.kernels.threads import multiply
from amdp.model.domains import Domain, StationaryPolicies
from amdp.model.reach import Reach
from amdp.model.segments import Segment
from amdp.oracles.base import PlanningOracle, bind

POLICIES_AT_ONCE = 512  # policies whose chances are found together
LEAST_SWITCHES = 2.0  # practical epochs last at least so many switches
WINDOW_IN_SWITCHES = 2.0  # the ignored steps of an epoch are so many expected lengths of a switch,
WINDOW_SHARE = 3  # but at most one third of the epoch
PRACTICAL_TRIALS_PER_PAIR = 3  # the practical limit of trials is so many for each pair (s, a)
PRACTICAL_RATE_FACTOR = 8.0  # practical rates are so many times those that balance worst cases: found by trying
NO_BOUND_FOR_KEPT = "none is proved for a policy that stays and is not entered anew"
NO_BOUND_FOR_EXACT = f"{NO_BOUND_FOR_KEPT}, nor for exact chances of being entered"


# --- estimates that know of switches ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SkipSwitchWindow(WeightTimesLoss):
    """Ignore the first `window` steps of every epoch, and weigh the others as if every switch were over by then.

    If policies are entered anew in every epoch (`RenewedSwitching`), estimates are too small on average where switches
    take longer than the window, never too large. If a policy is followed on, they may be too large as well:
    docs/infinite-horizon.md has the means, and `amdp verify stream-estimates` computes them.
    """

    inner: Any  # SharedResampling, GeometricResampling, ImportanceWeighting or ImplicitExploration
    window: int

    def __post_init__(self) -> None:
        require_whole("window", self.window, 0)
        if self.inner.feedback is not Bandit:
            raise InvalidInput(f"{self.inner}; a window is for bandit estimators", "inner")

    def reach(self, domain: Domain) -> Reach | None:
        reach: Reach | None = self.inner.reach(domain)
        return reach

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        """0 in the window, as the inner estimator weighs afterwards."""
        seen = _epoch(segment)
        ignored = min(max(0, seen.began.time + self.window - seen.start), len(seen.states))
        weighed = Segment(seen.states[ignored:], seen.actions[ignored:], seen.start + ignored)
        weights: Weights = self.inner.weigh(distribution, weighed, rng)
        return weights._replace(values=np.concatenate([np.zeros(ignored), weights.values]))


@dataclass(frozen=True)
class ReplayedResampling(WeightTimesLoss):
    """Shared geometric resampling whose trials go through the switch as well, from where the epoch really began.

    A trial counts at step `t` only if its switch is over by then. The chance of that is computed, not simulated.
    """

    limit: int
    entry: PolicySwitching

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def weigh(self, distribution: DistributionWithTrials, segment: Segment, rng: np.random.Generator) -> Weights:
        seen = _epoch(segment)
        trials = StationaryTrials(distribution, lambda actions, _: self.entry.visits(seen, actions))
        return trials.shared(segment, self.limit, rng)


@dataclass(frozen=True)
class EnteredWeighting(WeightTimesLoss):
    """Importance weighting by the exact chance that a policy was entered and is there: for Hedge."""

    entry: PolicySwitching

    def weigh(self, distribution: Any, segment: Segment, rng: np.random.Generator) -> Weights:
        seen, actions = _epoch(segment), distribution.listed.actions
        chances = np.zeros(len(seen.states))
        for low in range(0, len(actions), POLICIES_AT_ONCE):
            part = slice(low, low + POLICIES_AT_ONCE)
            chances += multiply(distribution.chances[part], self.entry.visits(seen, actions[part]))
        return Weights(1.0 / chances)


def _epoch(segment: Segment) -> Epoch:
    if not isinstance(segment, Epoch):
        raise InvalidInput(f"a {type(segment).__name__} does not say where its epoch began; play in a Continuing arena")
    return segment


# --- bounds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InfiniteBound(RegretBound):
    """A bound on expected regret in epochs of a stream, with a switch before every epoch but the first.

    Such switches are `RenewedSwitching`. The estimates are `SkipSwitchWindow`, or as printed with `W = 0`.
    """

    penalty: float  # FTPL: 10 S sqrt(AT ln A) / rate; Hedge: S ln A / rate
    stability: float  # FTPL: 3 rate HSAT; Hedge: rate HSAT
    switching: float  # (J - 1) C, paid while switching
    blind: float  # (J - 1) C + JW: steps that the estimates leave out
    resampling: float = 0.0  # FTPL: SAT / (e L)


# --- tuning -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuning(ABC):
    """Epochs and rates for one stream; print it for what theory says of them."""

    entry: PolicySwitching
    epochs: int  # J, as many as are played
    rate: float
    window: int  # W, for `SkipSwitchWindow`

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < inf and self._sizes[2] > 1:  # a single action needs no rate
            raise InvalidInput(f"{self.rate:g}; it must be positive and finite, and so must its multiplier", "rate")

    @property
    def steps(self) -> int:
        """The number of steps `T` of the stream."""
        return self.entry.kernel.shape[0]

    @property
    def length(self) -> int:
        """The number of steps `H` of an epoch."""
        return ceil(self.steps / self.epochs)

    @property
    def bound(self) -> InfiniteBound | None:
        """The explicit bound of `learner` for any parameters; None, unless policies are entered in every epoch."""
        return self._renewed_bound if self.entry.renews else None

    @property
    @abstractmethod
    def _renewed_bound(self) -> InfiniteBound:
        """The bound if policies are entered in every epoch."""

    @property
    def is_vacuous(self) -> bool:
        """Whether theory says no more than that losses are at most 1."""
        return self.bound is None or self.bound.total >= self.steps

    def __str__(self) -> str:
        switch = self.entry.expected_length
        lines = [
            f"{self.epochs} epochs of {self.length} steps, rate {self.rate:.3g}; a switch takes {switch:.3g} steps or "
            f"less on average, of which {self.entry.routes.length} are one attempt",
        ]
        if self.bound is None:
            lines.append(f"no bound: {NO_BOUND_FOR_KEPT}; use RenewedSwitching")
        elif self.is_vacuous:
            lines.append(f"the bound {self.bound.total:.3g} is vacuous: no learner loses more than {self.steps} steps")
        if self.epochs == 1:
            lines.append("a single epoch learns nothing: the diameter is too large for so few steps")
        elif self.length <= self.entry.routes.length:
            lines.append("no switch can end within an epoch: give fewer epochs, or use the practical tuning")
        elif switch * 2.0 > self.length:
            lines.append("switches may take more than half of the steps: give fewer epochs")
        return "; ".join(lines)

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.entry.kernel.shape

    @property
    def _lost(self) -> tuple[float, float]:
        """Steps paid in switches, and steps left out."""
        switches = (self.epochs - 1) * self.entry.expected_length
        return switches, switches + self.epochs * self.window


@dataclass(frozen=True)
class FtplTuning(Tuning):
    """Laplace noise of `rate`, at most `limit` trials an epoch."""

    limit: int

    @classmethod
    def tuned(cls, entry: PolicySwitching, epochs: int | None = None, multiplier: float = 1.0) -> Self:
        """The theorem's parameters; `epochs` replaces `J`, `multiplier` scales the rate.

        Rate `S^(1/3) D^(-2/3) T^(-1/3)`, `J = S^(2/3) A^(1/2) D^(-4/3) T^(5/6)`, at most
        `S^(1/3) A^(1/2) D^(-2/3) T^(1/6)` trials.
        """
        (steps, states, actions), diameter = entry.kernel.shape, _diameter(entry)
        rate = multiplier * (states / (diameter**2 * steps)) ** (1 / 3)
        wanted = states ** (2 / 3) * actions**0.5 * diameter ** (-4 / 3) * steps ** (5 / 6)
        limit = ceil(states ** (1 / 3) * actions**0.5 * diameter ** (-2 / 3) * steps ** (1 / 6))
        n_epochs = _epochs(steps, wanted, epochs)
        return cls(entry, n_epochs, rate, _window(entry, n_epochs), max(1, limit))

    @classmethod
    def practical(cls, entry: PolicySwitching, epochs: int | None = None, multiplier: float = 1.0) -> Self:
        """Epochs of `H = C^(2/3) T^(1/3)` steps, at least two switches, and bolder noise: no theorem, but it learns.

        An epoch adds estimates of variance up to `H^2 SA`, so all of them scatter by `sqrt(T H SA)`; the noise of a
        policy, `T` numbers, by `sqrt(2 T) / rate`. They are equal at `sqrt(2 / (HSA))`; the rate is 8 times that.
        """
        steps, states, actions = entry.kernel.shape
        n_epochs = _epochs(steps, _practical_epochs(entry), epochs)
        rate = multiplier * PRACTICAL_RATE_FACTOR * sqrt(2.0 / (ceil(steps / n_epochs) * states * actions))
        return cls(entry, n_epochs, rate, _window(entry, n_epochs), PRACTICAL_TRIALS_PER_PAIR * states * actions)

    @property
    def _renewed_bound(self) -> InfiniteBound:
        """`10 S sqrt(AT ln A) / rate + 3 rate HSAT + SAT / (e L) + 2 (J - 1) C + J W`."""
        steps, states, actions = self._sizes
        penalty = 10.0 * states * sqrt(actions * steps * log(actions)) / self.rate
        stability = 3.0 * self.rate * self.length * states * actions * steps
        return InfiniteBound(penalty, stability, *self._lost, states * actions * steps / (e * self.limit))

    def learner(self, oracle: str | PlanningOracle = "auto") -> Ftpl:
        """With estimates that ignore the first steps of every epoch."""
        return self._ftpl(SkipSwitchWindow(SharedResampling(self.limit), self.window), oracle)

    def scaled_learner(self, oracle: str | PlanningOracle = "auto") -> Ftpl:
        """The same with trials that are scaled by the reach of the states."""
        return self._ftpl(SkipSwitchWindow(SharedScaledResampling(self.limit), self.window), oracle)

    def printed_learner(self, oracle: str | PlanningOracle = "auto") -> Ftpl:
        """As printed: trials of its own for each step after the switch. `bound` is least with `window = 0`."""
        return self._ftpl(GeometricResampling(self.limit), oracle)

    def exact_learner(self, oracle: str | PlanningOracle = "auto") -> Ftpl:
        """With trials that go through the switch as well; no bound is proved for it."""
        return self._ftpl(ReplayedResampling(self.limit, self.entry), oracle)

    def full_information_learner(self, oracle: str | PlanningOracle = "auto") -> Ftpl:
        """With full information, which needs no estimates."""
        return self._ftpl(WholeTable(), oracle)

    def _ftpl(self, estimator: Any, oracle: str | PlanningOracle) -> Ftpl:
        domain = StationaryPolicies(self.entry.kernel, self.entry.initial)
        return Ftpl(Laplace(self.rate), estimator, bind(oracle, domain).oracle)


@dataclass(frozen=True)
class HedgeTuning(Tuning):
    """Exponential weights of `rate` over all stationary policies."""

    @classmethod
    def tuned(cls, entry: PolicySwitching, epochs: int | None = None, multiplier: float = 1.0) -> Self:
        """The theorem's parameters; `epochs` replaces `J`, `multiplier` scales the rate.

        Rate `S^(1/3) A^(-1/3) (DT)^(-2/3)`, `J = (ST)^(2/3) A^(1/3) D^(-4/3)`.
        """
        (steps, states, actions), diameter = entry.kernel.shape, _diameter(entry)
        rate = multiplier * (states / actions) ** (1 / 3) * (diameter * steps) ** (-2 / 3)
        wanted = (states * steps) ** (2 / 3) * actions ** (1 / 3) * diameter ** (-4 / 3)
        n_epochs = _epochs(steps, wanted, epochs)
        return cls(entry, n_epochs, rate, _window(entry, n_epochs))

    @classmethod
    def practical(cls, entry: PolicySwitching, epochs: int | None = None, multiplier: float = 1.0) -> Self:
        """Epochs as for FTPL, and 8 times the rate `sqrt(ln A / (HAT))` that balances the bound for them."""
        steps, _, actions = entry.kernel.shape
        n_epochs = _epochs(steps, _practical_epochs(entry), epochs)
        rate = multiplier * PRACTICAL_RATE_FACTOR * sqrt(log(actions) / (ceil(steps / n_epochs) * actions * steps))
        return cls(entry, n_epochs, rate, _window(entry, n_epochs))

    @property
    def _renewed_bound(self) -> InfiniteBound:
        """`S ln A / rate + rate HSAT + 2 (J - 1) C + J W`."""
        steps, states, actions = self._sizes
        penalty = states * log(actions) / self.rate if actions > 1 else 0.0
        return InfiniteBound(penalty, self.rate * self.length * states * actions * steps, *self._lost)

    def learner(self) -> Hedge:
        """With estimates that ignore the first steps of every epoch."""
        return Hedge(self.rate, SkipSwitchWindow(ImportanceWeighting(), self.window))

    def printed_learner(self) -> Hedge:
        """As printed: every step after the switch counts. `bound` is least with `window = 0`."""
        return Hedge(self.rate, ImportanceWeighting())

    def exact_learner(self) -> Hedge:
        """With the exact chance that a policy was entered and is there; no bound is proved for it."""
        return Hedge(self.rate, EnteredWeighting(self.entry))

    def full_information_learner(self) -> Hedge:
        """With full information, which needs no estimates."""
        return Hedge(self.rate, WholeTable())


def _diameter(entry: PolicySwitching) -> float:
    return max(1.0, entry.diameter.value)


def _epochs(steps: int, wanted: float, requested: int | None) -> int:
    """How many epochs are played: all but the last of equal length."""
    if requested is not None:
        require_whole("epochs", requested, 1, steps)
    length = ceil(steps / (requested or min(max(1, round(wanted)), steps)))
    return ceil(steps / length)


def _practical_epochs(entry: PolicySwitching) -> float:
    """`T / H` with `H = C^(2/3) T^(1/3)`: all switches together take `C^(1/3) T^(2/3)` steps at most."""
    steps, switch = entry.kernel.shape[0], entry.expected_length
    return float(steps / max(LEAST_SWITCHES * switch, switch ** (2 / 3) * steps ** (1 / 3)))


def _window(entry: PolicySwitching, epochs: int) -> int:
    """By when most switches are over, in epochs that are long enough for that."""
    return min(ceil(WINDOW_IN_SWITCHES * entry.expected_length), ceil(entry.kernel.shape[0] / epochs) // WINDOW_SHARE)


Tuned = TypeVar("Tuned", FtplTuning, HedgeTuning)


# --- recipes ----------------------------------------------------------------------------------------------------------


def ftpl_infinite(
    task: Task,
    *,
    rate: float | None = None,
    limit: int | None = None,
    epochs: int | None = None,
    window: int | None = None,
    theorem: bool = False,
    exact: bool = False,
) -> EpochSetup:
    """FTPL over stationary policies in epochs; a policy that stays is followed on, for which no bound is proved."""
    _refuse_window_if(exact, window)
    tuning = _tuning(FtplTuning, task, PolicySwitching, epochs, theorem, rate, limit=limit, window=window)
    learner = tuning.exact_learner(task.planning_oracle) if exact else tuning.learner(task.planning_oracle)
    return EpochSetup(learner, tuning.entry, tuning.length, unproved=_why_no_bound("ftpl-infinite-renewed", exact))


def ftpl_infinite_scaled(
    task: Task,
    *,
    rate: float | None = None,
    limit: int | None = None,
    epochs: int | None = None,
    window: int | None = None,
    theorem: bool = False,
) -> EpochSetup:
    """FTPL over stationary policies in epochs, with trials that are scaled by the reach of the states; no bound."""
    tuning = _tuning(FtplTuning, task, PolicySwitching, epochs, theorem, rate, limit=limit, window=window)
    learner = tuning.scaled_learner(task.planning_oracle)
    return EpochSetup(learner, tuning.entry, tuning.length, unproved=_why_no_bound("ftpl-infinite-renewed", False))


def ftpl_infinite_renewed(
    task: Task,
    *,
    rate: float | None = None,
    limit: int | None = None,
    epochs: int | None = None,
    theorem: bool = False,
) -> EpochSetup:
    """The paper's FTPL for streams (Algorithm 6): policies entered in every epoch, independent trials for each step."""
    tuning = replace(_tuning(FtplTuning, task, RenewedSwitching, epochs, theorem, rate, limit=limit), window=0)
    return EpochSetup(tuning.printed_learner(task.planning_oracle), tuning.entry, tuning.length, tuning.bound)


def hedge_infinite(
    task: Task,
    *,
    rate: float | None = None,
    epochs: int | None = None,
    window: int | None = None,
    most_policies: int = MOST_POLICIES,
    theorem: bool = False,
    exact: bool = False,
) -> EpochSetup:
    """Hedge over stationary policies in epochs; a policy that stays is followed on, for which no bound is proved."""
    _refuse_window_if(exact, window)
    tuning = _tuning(HedgeTuning, task, PolicySwitching, epochs, theorem, rate, window=window)
    learner = listing_at_most(most_policies, tuning.exact_learner() if exact else tuning.learner())
    return EpochSetup(learner, tuning.entry, tuning.length, unproved=_why_no_bound("hedge-infinite-renewed", exact))


def hedge_infinite_renewed(
    task: Task,
    *,
    rate: float | None = None,
    epochs: int | None = None,
    most_policies: int = MOST_POLICIES,
    theorem: bool = False,
) -> EpochSetup:
    """The paper's Hedge for streams (Algorithm 7): policies entered in every epoch, importance weighting."""
    tuning = replace(_tuning(HedgeTuning, task, RenewedSwitching, epochs, theorem, rate), window=0)
    learner = listing_at_most(most_policies, tuning.printed_learner())
    return EpochSetup(learner, tuning.entry, tuning.length, tuning.bound)


def _tuning(
    kind: type[Tuned],
    task: Task,
    switching: type[PolicySwitching],
    epochs: int | None,
    theorem: bool,
    rate: float | None,
    **given: Any,
) -> Tuned:
    domain = task.stream()
    tune = kind.tuned if theorem else kind.practical
    tuning = tune(switching(domain.dynamics, domain.initial), epochs)
    # As many epochs as are played: the last one may be shorter, so that they are not always those that were asked for.
    return task.by_hand(tuning, rate, epochs=tuning.epochs, **given)


def _refuse_window_if(exact: bool, window: int | None) -> None:
    if exact and window is not None:
        raise InvalidInput(f"{window}; exact chances of being entered ignore no steps", "window")


def _why_no_bound(proved: str, exact: bool) -> str:
    return f"{NO_BOUND_FOR_EXACT if exact else NO_BOUND_FOR_KEPT}; {proved} has one"
