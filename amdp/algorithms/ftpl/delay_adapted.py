"""FTPL with delay-adapted estimates: an open question of Dai, Luo and Chen (2022), made runnable; no theorem is known.

Jin et al. (2022) weigh delayed feedback by the greater of two visit chances, that of the round in which it was played
and that of the round in which it arrives. FTPL does not know its visit chances; it counts trials until one succeeds.
So the trials of the round are made again when the feedback arrives, and the smaller of the two counts is the weight.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.base import added
from amdp.algorithms.estimators.feedback import Bandit, Weights
from amdp.algorithms.estimators.resampling import SharedResampling, require_limit
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, PerturbedLeader
from amdp.algorithms.ftpl.recipes import theorem_settings
from amdp.algorithms.task import Task
from amdp.arrays import Floats
from amdp.model.domains import Domain
from amdp.model.segments import Segment


@dataclass(frozen=True, eq=False)
class RememberingLeader(PerturbedLeader):
    """A perturbed leader that can repeat the resampling trials of any of its rounds, with the same random numbers."""

    seed: int = field(repr=False, kw_only=True)
    rounds: int = field(default=0, kw_only=True)  # played so far

    def trial_rng(self, k: int) -> np.random.Generator:
        """A generator of the random numbers of the trials of round `k`."""
        return np.random.default_rng([self.seed, k])


@dataclass(frozen=True)
class DelayAdaptedResampling:
    """The smaller of two counts of shared trials: of the distribution that played, and of that which gets the feedback.

    Trial `i` has the same noise and the same random numbers in both. Let `A_i` be its visit of the pair under the first
    distribution and `B_i` under the second, `u = P(A_i or B_i)`. The smaller count `M` is that of trials until `A_i`
    or `B_i`, at most `limit`, so that

        E[M] = (1 - (1-u)^limit) / u,    max(q_then, q_now) <= u <= q_then + q_now:

    the estimate is too small by about the factor `q_then / u`, and not at all if nothing was learned in between.
    Two independent counts would have `u = q_then + q_now - q_then q_now`: nearly twice too small without any delay.
    """

    limit: int
    feedback: ClassVar[type] = Bandit

    def reach(self, domain: Domain) -> None:
        return None

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def weigh(self, distribution: RememberingLeader, segment: Segment, rng: np.random.Generator) -> Weights:
        """The count if the feedback came at once; `played_at` keeps the number of the round."""
        return self._counted(distribution, segment, distribution.rounds)._replace(played_at=distribution.rounds)

    def add(self, total: Floats, feedback: Bandit, distribution: RememberingLeader) -> Floats:
        """Weight times loss, with the smaller count. The trials made here are not reported as the round's."""
        then, segment = feedback.weights, feedback.segment
        now = self._counted(distribution, segment, then.played_at)
        smaller = then._replace(values=np.minimum(then.values, now.values))
        return added(total, Bandit(segment, smaller, feedback.losses))

    def _counted(self, distribution: RememberingLeader, segment: Segment, k: int) -> Weights:
        return SharedResampling(self.limit).weigh(distribution, segment, distribution.trial_rng(k))


class DelayAdaptedFtpl(Ftpl):
    """Follow the perturbed leader, with noise that can be drawn again when feedback arrives.

    Of several feedbacks that arrive in one round, each meets the distribution that the ones before it left.
    """

    def start(self, domain: Domain, rng: np.random.Generator) -> RememberingLeader:
        """No losses yet; the seed of all trials to come is drawn."""
        fresh = super().start(domain, rng)
        return RememberingLeader(fresh.planner, fresh.perturbation, fresh.total, seed=int(rng.integers(2**63)))

    def observe(self, distribution: PerturbedLeader, segment: Segment) -> PerturbedLeader:
        """Narrow the dynamics, and count the round."""
        narrowed = super().observe(distribution, segment)
        assert isinstance(narrowed, RememberingLeader)
        return replace(narrowed, rounds=narrowed.rounds + 1)


def ftpl_delay_adapted(task: Task, *, rate: float | None = None, limit: int | None = None) -> Learner[Any]:
    """FTPL with delay-adapted estimates: trials made again at arrival, the smaller count weighs. No bound is known."""
    settings = theorem_settings(task, rate, limit)
    tuned = DelayAdaptedFtpl.tuned(task.domain, task.rounds, resampling=SharedResampling, **settings)
    assert isinstance(tuned.estimator, SharedResampling)
    return replace(tuned, estimator=DelayAdaptedResampling(tuned.estimator.limit))
