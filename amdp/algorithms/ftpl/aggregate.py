"""Follow the perturbed leader when only the total loss of an episode is told.

A leader that is drawn for a whole episode ties its actions together: at one step it chose the way to a place because
its noise made something cheap there. Then the total, given the action of a step, also speaks of the other steps, and
its estimate is not the advantage. So each step has leaders of its own here, and follows, in the state `s` in which it
is, the first of them that would be in `s` at this step. The chances of pairs are those of FTPL,

    P(s_h = s, a_h = a) = E[q_leader(h, s, a)]  by induction on h,

and actions of different steps are independent given the states, which is all that the estimate asks for. Regret is
that of FTPL: it depends on these chances alone [derived: docs/aggregate-feedback.md].
"""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from amdp.algorithms.estimators.aggregate import AggregateResampling, state_chances
from amdp.algorithms.estimators.trials import uniform_stream
from amdp.algorithms.ftpl.perturbations import Laplace
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, PerturbedLeader, laplace_rate, resampling_limit
from amdp.algorithms.task import Task
from amdp.arrays import Actions, Floats, Policies, one_hot, require_whole
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.reach import BATCH_NUMBERS, reach
from amdp.model.segments import Segment
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import bind, describe


@dataclass(frozen=True, eq=False)
class StepwiseLeaders(PerturbedLeader):
    """Perturbed leaders of which each step has `leaders` of its own."""

    leaders: int = field(kw_only=True)
    bounds: Floats = field(kw_only=True, repr=False)  # [h, s], the greatest chance of a policy to be in the state

    def draw(self, rng: np.random.Generator) -> Policies:
        """One policy `[h, s, a]`: in each state the action of the first leader of the step that would be there.

        A leader with the chance `x` to be there is taken with chance `x / bound`. Where none is, which happens in a
        state that is visited with a chance of at most `bound / (e leaders)`, the last one is followed.
        """
        steps, states, n_actions = self.domain.shape
        policies, uniforms = self.policies(rng), uniform_stream(rng)
        actions, is_open = np.zeros((steps, states), np.int32), np.ones((steps, states), bool)
        size = max(1, BATCH_NUMBERS // (steps * prod(self.domain.shape)))
        for low in range(0, self.leaders, size):
            own, chances = self._of_each_step(policies(steps * min(size, self.leaders - low)))
            would_be = uniforms(len(own), steps * states).reshape(own.shape) * self.bounds < chances
            first = np.take_along_axis(own, would_be.argmax(axis=0)[None], axis=0)[0]
            found = would_be.any(axis=0)
            actions = np.where(is_open, np.where(found, first, own[-1]), actions)
            is_open &= ~found
        return one_hot(actions, n_actions)

    def _of_each_step(self, policies: Actions) -> tuple[Actions, Floats]:
        """Actions and chances `[n, h, s]`, at step `h` those of the leaders that are the step's own."""
        steps, states, _ = self.domain.shape
        every, by_step = np.arange(steps), (-1, steps, steps, states)
        chances = state_chances(self.domain, policies).reshape(by_step)
        return policies.reshape(by_step)[:, every, every], chances[:, every, every]


@dataclass(frozen=True)
class AggregateFtpl(Ftpl):
    """FTPL over a kernel, with so many leaders for each step of a round."""

    leaders: int = 1

    def __post_init__(self) -> None:
        require_whole("leaders", self.leaders, 1)

    def start(self, domain: Domain, rng: np.random.Generator) -> StepwiseLeaders:
        """No losses yet: the noise alone decides."""
        if not isinstance(domain, MarkovPolicies) or not isinstance(domain.dynamics, SingleKernel):
            raise InvalidInput(f"the total loss of an episode needs a kernel, not {describe(domain)}")
        return StepwiseLeaders(
            bind(self.oracle, domain),
            self.perturbation,
            np.zeros(domain.shape),
            leaders=self.leaders,
            bounds=reach(domain.dynamics, domain.initial),
        )

    def observe(self, distribution: PerturbedLeader, segment: Segment) -> PerturbedLeader:
        """Count the plans of the round: `leaders` for each step."""
        more = self.leaders * distribution.domain.shape[0]
        return distribution.after(segment, more)


def ftpl_aggregate(
    task: Task, *, rate: float | None = None, limit: int | None = None, leaders: int | None = None
) -> AggregateFtpl:
    """FTPL over a kernel, told only the total loss of an episode: estimates by counts of pair and state.

    Rate `1 / sqrt(H^3 SAK)`, `H` times below that of single losses, for the range is `H` times larger; `sqrt(SAK/H)`
    leaders a step; at most `HSAK` trials, so that fewer than one count is cut in a game [derived]. Tuned without delay.
    """
    domain = task.episodes()
    if not isinstance(domain.dynamics, SingleKernel):
        raise InvalidInput(f"{task.learner} needs a kernel, not {describe(domain)}")
    steps = domain.shape[0]
    theory = laplace_rate(domain, task.rounds) / steps
    trials = task.setting("limit", limit, prod(domain.shape) * task.rounds)
    each = task.setting("leaders", leaders, resampling_limit(domain, task.rounds))
    noise = Laplace(task.rate(rate, theory))
    return AggregateFtpl(noise, AggregateResampling(trials), bind(task.planning_oracle, domain).oracle, each)
