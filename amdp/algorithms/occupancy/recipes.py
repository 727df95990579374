"""Learners over occupancy measures by short name: each recipe tunes one for a task, as its source says.

`H` steps, `S` states, `A` actions, `K` rounds, `D` total delay; tags as in `amdp.algorithms.bounds`. A rate that is
[derived] balances the bound of its source, or inverts the order of regret that the FTPL paper quotes.
"""

from math import log, sqrt

import numpy as np

from amdp.algorithms.bounds import require_delay, require_rounds
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.importance_weighting import DelayAdapted, ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import MirrorDescent, RegularizedLeader, entropy, when_doubled
from amdp.algorithms.rates import FIRST, AdaptiveRate
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


def o_reps_full(task: Task, *, rate: float | None = None) -> MirrorDescent:
    """Mirror descent over a kernel, full information: O-REPS of Zimin and Neu, tuned without delay.

    Rate `sqrt(ln(SA) / K)` [derived], regret `2 H sqrt(K ln SA)` [confirmed].
    """
    _, states, actions = _known(task)
    theory = sqrt(log(states * actions) / require_rounds(task.rounds))
    return MirrorDescent(task.rate(rate, theory), WholeTable(), task.projection_oracle)


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
