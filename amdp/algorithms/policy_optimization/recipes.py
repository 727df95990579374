"""Learners of policy optimization by short name: each recipe tunes one for a task, as its source says."""

from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import WhenDoubled
from amdp.algorithms.policy_optimization import bounds
from amdp.algorithms.policy_optimization.critics import DilatedBonus, Evaluation, compiled
from amdp.algorithms.policy_optimization.learners import PolicyOptimization, require_episodes
from amdp.algorithms.task import Task
from amdp.errors import InvalidInput
from amdp.model.domains import Domain
from amdp.model.evaluation import least_visited
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe


def pomd(task: Task) -> PolicyOptimization:
    """Policy optimization over a box, bandit feedback: optimistic POMD of Shani et al. (2020), tuned without delay.

    Rate `1 / (H K^(2/3))`, gamma `1 / (sqrt(A) K^(1/3))` [from memory]; regret `H^2 S sqrt(A) K^(2/3)` [confirmed],
    without logarithms. The source has a Bernstein radius of its own, which is not recalled; any that holds will do,
    such as `Radius.jin_2020` [derived].
    """
    rate, gamma = bounds.pomd(_episodes(task), task.rounds)
    return PolicyOptimization(task.multiplier * rate, Evaluation(ImplicitExploration(gamma)))


def dilated_bonus(task: Task) -> PolicyOptimization:
    """Policy optimization with dilated bonuses, bandit feedback: Luo, Wei and Lee (2021), tuned without delay.

    Rate `min(1 / (24 H^3), 1 / (H sqrt(SAK)))`, gamma `2 rate H` [confirmed by public code]; the multiplier scales
    both. Its radius is `Radius.luo_2021`; the domain says which.
    """
    rate = task.multiplier * bounds.dilated_bonus(_episodes(task), task.rounds)
    return PolicyOptimization(rate, DilatedBonus(2.0 * rate * task.domain.shape[0]), WhenDoubled())


def delayed_oppo(task: Task) -> PolicyOptimization:
    """Policy optimization over a box, delayed bandit feedback: Delayed OPPO of Lancewicki et al. (2022).

    Gamma `min(1, (H sqrt(K+D) / (SAK))^(2/3))`, rate `sqrt(gamma ln A / (H^2 (K+D)))`, both [derived]; the polynomial
    factors of the source and the box of its evaluation are uncertain. Losses may be delayed, trajectories are not: what
    the source adds for delayed trajectories, forced exploration, is left out.
    """
    rate, gamma = bounds.delayed_oppo(_episodes(task), task.rounds, task.total_delay)
    return PolicyOptimization(task.multiplier * rate, Evaluation(ImplicitExploration(gamma)))


def delayed_oppo_full(task: Task) -> PolicyOptimization:
    """Policy optimization over a box, delayed full information: Delayed OPPO of Lancewicki et al. (2022).

    Rate `sqrt(ln A / (H^2 (K + D)))` [derived].
    """
    rate = bounds.delayed_oppo_full(_episodes(task), task.rounds, task.total_delay)
    return PolicyOptimization(task.multiplier * rate, Evaluation(WholeTable()))


def o_ssp(task: Task) -> PolicyOptimization:
    """Policy optimization over a kernel, bandit feedback: O-SSP of Neu et al. (2010), tuned without delay.

    Rate `sqrt(alpha ln A / (H^2 AK))`, exploration `rate HA / alpha`, both [derived]. The rate, scaled by the
    multiplier, is at most what keeps the exploration at one half. `alpha` is the least chance that any policy is at a
    step and state that can be reached; where it is 0 the assumption fails, and the learner is refused. That the
    algorithm is of the kind of Exp3 is [from memory]; the paper on FTPL calls it a perturbed leader.
    """
    shape, least = _episodes(task), _sure_visits(task.domain)
    rate = bounds.o_ssp(shape, task.rounds, least, task.multiplier)
    exploration = bounds.o_ssp_exploration(shape, rate, least)
    return PolicyOptimization(rate, Evaluation(ImportanceWeighting()), exploration=exploration)


def _episodes(task: Task) -> Shape:
    require_episodes(task.domain)
    compiled(task.domain.dynamics)  # refuses what its critics cannot evaluate
    return task.domain.shape


def _sure_visits(domain: Domain) -> float:
    """The least visit chance `alpha`; refused if there is none."""
    if not isinstance(domain.dynamics, SingleKernel):
        raise InvalidInput(f"O-SSP needs a kernel, not {describe(domain)}; over a box use pomd or dilated-bonus")
    least = least_visited(domain.dynamics, domain.initial)
    if least.chance == 0.0:
        raise InvalidInput(
            f"O-SSP needs every policy to visit all that can be reached, but some policy is never at "
            f"[h={least.step}, s={least.state}]; use o-reps or pomd"
        )
    return least.chance
