"""Learners over occupancy measures by short name: each recipe tunes one for a task, as its source says.

`H` steps, `S` states, `A` actions, `K` rounds, `D` total delay; tags as in `amdp.algorithms.bounds`. A rate that is
[derived] balances the bound of its source, or inverts the order of regret that the FTPL paper quotes.
"""

from math import log, sqrt

import numpy as np

from amdp.algorithms.bounds import require_delay, require_rounds
from amdp.algorithms.estimators.aggregate import AggregateWeighting
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.importance_weighting import (
    DelayAdapted,
    FallingExploration,
    ImplicitExploration,
    ImportanceWeighting,
    require_gamma,
)
from amdp.algorithms.occupancy.measures import MirrorDescent, RegularizedLeader, entropy, when_doubled
from amdp.algorithms.occupancy.scheduled import HybridSchedule, ScheduledLeader
from amdp.algorithms.rates import FIRST, AdaptiveRate, RootRate
from amdp.algorithms.task import Task
from amdp.errors import InvalidInput
from amdp.model.l1_ball import L1Ball
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe
from amdp.oracles.projection.base import bind_projection


def o_reps(task: Task, *, rate: float | None = None) -> MirrorDescent:
    """Mirror descent over a kernel, bandit feedback: O-REPS of Zimin and Neu, tuned without delay.

    Rate `sqrt(ln(SA) / (SAK))` [derived], regret `2 H sqrt(SAK ln SA)` [confirmed].
    """
    _, states, actions = _known(task)
    theory = sqrt(log(states * actions) / (states * actions * require_rounds(task.rounds)))
    return MirrorDescent(task.rate(rate, theory), ImportanceWeighting(), task.projection_oracle)


def o_reps_ix(
    task: Task, *, rate: float | None = None, gamma: float | None = None, delta: float | None = None
) -> MirrorDescent:
    """Mirror descent over a kernel with implicit exploration: O-REPS whose regret is small with high probability.

    Rate `sqrt(d / (SAK))` and gamma half of it, with `d = ln(2 H (SA)^2 / delta)` [derived, as Neu 2015 for bandits],
    `delta = 1/K` [derived]. With chance `1 - delta` the losses that were met exceed those of the best policy by at most
    `2 H sqrt(SAK d) + H ln(2H / delta)`, without delay [derived: docs/regularizers.md].
    """
    steps, states, actions = _known(task)
    doubt = log(2.0 * steps * (states * actions) ** 2 / _chance_of_failure(task, delta))
    theory = sqrt(doubt / (states * actions * require_rounds(task.rounds)))
    estimator = ImplicitExploration(task.setting("gamma", gamma, 0.5 * theory))
    return MirrorDescent(task.rate(rate, theory), estimator, task.projection_oracle)


def o_reps_full(task: Task, *, rate: float | None = None) -> MirrorDescent:
    """Mirror descent over a kernel, full information: O-REPS of Zimin and Neu, tuned without delay.

    Rate `sqrt(ln(SA) / K)` [derived], regret `2 H sqrt(K ln SA)` [confirmed].
    """
    _, states, actions = _known(task)
    theory = sqrt(log(states * actions) / require_rounds(task.rounds))
    return MirrorDescent(task.rate(rate, theory), WholeTable(), task.projection_oracle)


def o_reps_aggregate(task: Task, *, rate: float | None = None) -> MirrorDescent:
    """Mirror descent over a kernel, told only the total loss of an episode; tuned without delay.

    Rate `sqrt(ln(SA) / (H^2 S(A-1) K))`, regret `2 H^2 sqrt(S(A-1)K ln SA)` [derived] where the rate is at most `1/H`
    of the least chance that a policy is in a state; the lower bound is `H^2 sqrt(SAK)` [confirmed: Lancewicki and
    Mansour 2025].
    """
    steps, states, actions = _known(task)
    spread = steps**2 * states * max(1, actions - 1) * require_rounds(task.rounds)
    theory = sqrt(log(states * actions) / spread)
    return MirrorDescent(task.rate(rate, theory), AggregateWeighting(), task.projection_oracle)


def o_reps_adaptive(task: Task, *, first: float = FIRST) -> RegularizedLeader:
    """The regularized leader on occupancy measures, bandit feedback; its rate tunes itself, and needs no horizon.

    The range of the regularizer `sum q ln q` is that from its least value, which one projection finds, to 0: at most
    `H ln(SA)`. Regret over a kernel `2H + first + 2H sqrt(SAK ln SA)` [derived]; over a box, and with delays, it is an
    experiment.
    """
    task.solved_episodes("hedge-infinite or mdp-exp3")
    task.require_no_multiplier()
    projector = bind_projection(task.projection_oracle, task.domain)
    flattest = projector.project(np.zeros(projector.point_shape))
    return RegularizedLeader(
        AdaptiveRate(max(0.0, entropy(flattest)), first), ImportanceWeighting(), task.projection_oracle
    )


def o_reps_full_anytime(task: Task, *, rate: float | None = None) -> RegularizedLeader:
    """The regularized leader over a kernel, full information, with a rate that falls as `1/sqrt(k)`.

    Rate `sqrt(ln(SA) / k)`, regret `2 H sqrt(K ln SA)` for every `K` at once [derived: docs/learning-rates.md]. `rate`
    is that of the first round.
    """
    _, states, actions = _known(task)
    scale = task.rate(rate, sqrt(log(states * actions)))
    return RegularizedLeader(RootRate(scale), WholeTable(), task.projection_oracle)


def o_reps_ix_anytime(
    task: Task, *, rate: float | None = None, gamma: float | None = None, delta: float = 0.01
) -> RegularizedLeader:
    """The regularized leader over a kernel with implicit exploration; rate and gamma fall as `1/sqrt(k)`.

    They are those of `o-reps-ix` for one round over `sqrt(k)`, with a `delta` that does not follow the rounds
    [derived]. `rate` and `gamma` are those of the first round.
    """
    steps, states, actions = _known(task)
    doubt = log(2.0 * steps * (states * actions) ** 2 / _chance_of_failure(task, delta))
    return _falling_leader(task, rate, gamma, sqrt(doubt / (states * actions)), 0.5)


def bobw(task: Task, *, rate: float | None = None, barrier: float | None = None) -> ScheduledLeader:
    """Best of both worlds over a kernel: the leader with Tsallis entropy and log-barrier of Jin, Huang and Luo (2021).

    Tsallis entropy of weight `sqrt(k) / rate` with rate 1 [confirmed: their first theorem], and a log-barrier of weight
    `barrier = 128 H^4` [confirmed for unknown transitions, their equation (12), which they call the same; the appendix
    for known ones was not at hand]. Regret `H sqrt(SAK)` against any losses, and of order `ln K` for losses with a gap
    [confirmed]. The log-barrier is made for the proof of the second: with a weight of 1 or less learning shows.
    """
    steps, _, _ = _known(task)
    weight = task.setting("barrier", barrier, 128.0 * steps**4)
    return ScheduledLeader(HybridSchedule(task.rate(rate, 1.0), weight))


def uob_reps_anytime(
    task: Task, *, rate: float | None = None, gamma: float | None = None, delta: float = 0.01
) -> RegularizedLeader:
    """The regularized leader over a box, bandit feedback; rate and gamma fall as `1/sqrt(k)`: an experiment.

    They are those of `uob-reps` for one round over `sqrt(k)`, with a `delta` that does not follow the rounds [derived].
    The box is that of all observations. `rate` and `gamma` are those of the first round.
    """
    steps, states, actions = task.solved_episodes().shape
    doubt = log(steps**2 * states * actions / _chance_of_failure(task, delta))
    return _falling_leader(task, rate, gamma, sqrt(doubt / (states * actions)), 1.0)


def uc_o_reps_bernstein_anytime(task: Task, *, rate: float | None = None) -> RegularizedLeader:
    """The regularized leader over a box, full information; the rate falls as `1/sqrt(k)`: an experiment.

    Rate `sqrt(ln(S^2 A) / k)`, that of `uc-o-reps-bernstein` for a game that ends now [derived]. `rate` is that of the
    first round.
    """
    _, states, actions = task.solved_episodes().shape
    scale = task.rate(rate, sqrt(log(states**2 * actions)))
    return RegularizedLeader(RootRate(scale), WholeTable(), task.projection_oracle, when_doubled)


def uob_reps(
    task: Task, *, rate: float | None = None, gamma: float | None = None, delta: float | None = None
) -> MirrorDescent:
    """Mirror descent over a box, bandit feedback: UOB-REPS of Jin et al. (2020), tuned without delay.

    Rate and gamma `sqrt(ln(H^2 SA / delta) / (SAK))` [from memory], `delta = 1/K` [derived]. Estimator and epochs are
    [confirmed] by public code. Its radius is `Radius.jin_2020`; the domain says which.
    """
    steps, states, actions = task.solved_episodes().shape
    doubt = log(steps**2 * states * actions / _chance_of_failure(task, delta))
    rate, gamma = _alike(task, rate, gamma, sqrt(doubt / (states * actions * task.rounds)))
    return MirrorDescent(rate, ImplicitExploration(gamma), task.projection_oracle, when_doubled)


def uc_o_reps(task: Task, *, rate: float | None = None) -> MirrorDescent:
    """Mirror descent over an L1 ball, full information: UC-O-REPS of Rosenberg and Mansour, tuned without delay.

    Rate `sqrt(ln(S^2 A) / K)` [derived]; its sets are [from memory].
    """
    if not isinstance(task.domain.dynamics, L1Ball):
        raise InvalidInput(
            f"{task.learner} plays over an L1 ball: use Game(..., unknown=True, radius='l1'); "
            "over a box there is uc-o-reps-bernstein"
        )
    return uc_o_reps_bernstein(task, rate=rate)


def uc_o_reps_bernstein(task: Task, *, rate: float | None = None) -> MirrorDescent:
    """Mirror descent over a box, full information: UC-O-REPS with a Bernstein box, tuned without delay.

    The order of its regret is that of the L1 form [derived].
    """
    _, states, actions = task.solved_episodes().shape
    theory = sqrt(log(states**2 * actions) / require_rounds(task.rounds))
    return MirrorDescent(task.rate(rate, theory), WholeTable(), task.projection_oracle, when_doubled)


def delayed_uob_reps(
    task: Task, *, rate: float | None = None, gamma: float | None = None, delta: float | None = None
) -> MirrorDescent:
    """Mirror descent over a box with delay-adapted estimates: Delayed UOB-REPS of Jin et al. (2022).

    Rate and gamma `sqrt(ln(HSA / delta) / max(SAK, sqrt(HSA) D))` [derived].
    """
    steps, states, actions = task.solved_episodes().shape
    doubt = log(steps * states * actions / _chance_of_failure(task, delta))
    waited = sqrt(steps * states * actions) * require_delay(task.total_delay)
    rate, gamma = _alike(task, rate, gamma, sqrt(doubt / max(states * actions * task.rounds, waited)))
    return MirrorDescent(rate, DelayAdapted(gamma), task.projection_oracle)


def delayed_uob_ftrl(
    task: Task, *, rate: float | None = None, gamma: float | None = None, delta: float | None = None
) -> RegularizedLeader:
    """The regularized leader over a box: Delayed UOB-FTRL of Jin et al. (2022).

    Rate and gamma `sqrt(ln(HSA / delta) / (SAK + H (SA)^2 D))` [derived].
    """
    steps, states, actions = task.solved_episodes().shape
    pairs = states * actions
    doubt = log(steps * pairs / _chance_of_failure(task, delta))
    waited = steps * pairs**2 * require_delay(task.total_delay)
    rate, gamma = _alike(task, rate, gamma, sqrt(doubt / (pairs * task.rounds + waited)))
    return RegularizedLeader(rate, ImplicitExploration(gamma), task.projection_oracle)


def _falling_leader(
    task: Task, rate: float | None, gamma: float | None, theory: float, share: float
) -> RegularizedLeader:
    """The leader whose rate is `theory`, and whose gamma is `share` of that, over `sqrt(k)`."""
    scale, first = task.rate(rate, theory), task.setting("gamma", gamma, share * theory)
    require_gamma(first)
    return RegularizedLeader(RootRate(scale), FallingExploration(first / scale), task.projection_oracle)


def _known(task: Task) -> Shape:
    domain = task.solved_episodes()
    if not isinstance(domain.dynamics, SingleKernel):
        raise InvalidInput(
            f"{task.learner} needs a kernel, not {describe(domain)}; for unknown transitions use uob-reps"
        )
    return domain.shape


def _alike(task: Task, rate: float | None, gamma: float | None, theory: float) -> tuple[float, float]:
    """Rate and gamma, for which theory has the same value; the multiplier scales the rate alone."""
    return task.rate(rate, theory), task.setting("gamma", gamma, theory)


def _chance_of_failure(task: Task, delta: float | None) -> float:
    """The chance `delta` that a confidence set fails; `1 / K` if it is None."""
    chance = task.setting("delta", delta, 1.0 / require_rounds(task.rounds))
    if not 0.0 < chance <= 1.0:
        raise InvalidInput(f"{chance}; it must be above 0 and at most 1", "delta")
    return chance
