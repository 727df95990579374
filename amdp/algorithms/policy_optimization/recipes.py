"""Learners of policy optimization by short name: each recipe tunes one for a task, as its source says.

`H` steps, `S` states, `A` actions, `K` rounds, `D` total delay; tags as in `amdp.algorithms.bounds`. What is uncertain
about each stands in docs/policy-optimization.md.
"""

from math import log, sqrt

from amdp.algorithms.bounds import MOST_EXPLORATION, require_delay, require_rounds
from amdp.algorithms.estimators.base import WholeTable
from amdp.algorithms.estimators.importance_weighting import ImplicitExploration, ImportanceWeighting
from amdp.algorithms.occupancy.measures import when_doubled
from amdp.algorithms.policy_optimization.learners import DilatedBonus, Evaluation, PolicyOptimization, Totals, compiled
from amdp.algorithms.rates import RootRate
from amdp.algorithms.task import Task
from amdp.errors import InvalidInput
from amdp.model.evaluation import least_visited
from amdp.model.segments import Shape
from amdp.model.transitions import SingleKernel
from amdp.oracles.base import describe


def pomd(task: Task, *, rate: float | None = None, gamma: float | None = None) -> PolicyOptimization:
    """Policy optimization over a box, bandit feedback: optimistic POMD of Shani et al. (2020), tuned without delay.

    Rate `1 / (H K^(2/3))`, gamma `1 / (sqrt(A) K^(1/3))` [from memory]; regret `H^2 S sqrt(A) K^(2/3)` [confirmed],
    without logarithms. Any radius that holds will do, such as `Radius.jin_2020` [derived].
    """
    steps, _, actions = _episodes(task)
    third = task.rounds ** (1 / 3)
    gamma = task.setting("gamma", gamma, 1.0 / (sqrt(actions) * third))
    return PolicyOptimization(task.rate(rate, 1.0 / (steps * third**2)), Evaluation(ImplicitExploration(gamma)))


def dilated_bonus(
    task: Task, *, rate: float | None = None, gamma: float | None = None, bonus: float = 1.0
) -> PolicyOptimization:
    """Policy optimization with dilated bonuses, bandit feedback: Luo, Wei and Lee (2021), tuned without delay.

    Rate `min(1 / (24 H^3), 1 / (H sqrt(SAK)))` [confirmed by public code, whose slip `1/24*H**3` is mended], gamma
    `2 H` times theory's rate [confirmed too]. `bonus` scales the bonuses. Its radius is `Radius.luo_2021`; the domain
    says which.
    """
    steps, states, actions = _episodes(task)
    theory = min(1.0 / (24.0 * steps**3), 1.0 / (steps * sqrt(states * actions * task.rounds)))
    gamma = task.setting("gamma", gamma, 2.0 * theory * steps)
    return PolicyOptimization(task.rate(rate, theory), DilatedBonus(gamma, bonus), when_doubled)


def delayed_oppo(task: Task, *, rate: float | None = None, gamma: float | None = None) -> PolicyOptimization:
    """Policy optimization over a box, delayed bandit feedback: Delayed OPPO of Lancewicki et al. (2022).

    Gamma `min(1, (H sqrt(K+D) / (SAK))^(2/3))`, rate `sqrt(gamma ln A / (H^2 (K+D)))`: they balance
    `H ln A / rate + rate H^3 (K + D) / gamma + gamma HSAK` [derived].
    """
    steps, states, actions = _episodes(task)
    longer = task.rounds + require_delay(task.total_delay)
    theory = min(1.0, (steps * sqrt(longer) / (states * actions * task.rounds)) ** (2 / 3))
    gamma = task.setting("gamma", gamma, theory)
    return PolicyOptimization(task.rate(rate, sqrt(theory) * _oppo_rate(task)), Evaluation(ImplicitExploration(gamma)))


def delayed_oppo_full(task: Task, *, rate: float | None = None) -> PolicyOptimization:
    """Policy optimization over a box, delayed full information: Delayed OPPO of Lancewicki et al. (2022).

    Rate `sqrt(ln A / (H^2 (K + D)))`: balances `H ln A / rate + rate H^3 (K + D)` [derived].
    """
    return PolicyOptimization(task.rate(rate, _oppo_rate(task)), Evaluation(WholeTable()))


def oppo_full_anytime(task: Task, *, rate: float | None = None) -> PolicyOptimization:
    """Policy optimization, full information, with a rate that falls as `1/sqrt(k)`: it is not told the rounds.

    The rate is `sqrt(ln A) / H` over `sqrt(k)` [derived]: that of `delayed-oppo-full` for one round. Over a kernel and
    without delay the regret is at most `H^2 sqrt(K ln A) (1 + c)`, `c = sum_n n^2 / H^3 <= 1` [derived]. `rate` is that
    of the first round.
    """
    steps, _, actions = _episodes(task)
    return PolicyOptimization(RootRate(task.rate(rate, sqrt(log(actions)) / steps)), Evaluation(WholeTable()))


def o_ssp(task: Task, *, rate: float | None = None, exploration: float | None = None) -> PolicyOptimization:
    """Policy optimization over a kernel, bandit feedback: O-SSP of Neu et al. (2010), tuned without delay.

    Rate `sqrt(alpha ln A / (H^2 AK))`, but at most what keeps the exploration, `HA / alpha` times that rate, at one
    half: then no estimate moves a weight by more than a factor `e` [derived]. A multiplier, or a rate by hand, leaves
    the exploration as it is; the bound holds for any rate. `alpha` is the least chance that any policy is at a step and
    state that can be reached; where it is 0, the learner is refused.
    """
    (steps, _, actions), least = _episodes(task), _sure_visits(task)
    wanted = sqrt(least * log(actions) / (steps**2 * actions * task.rounds))
    theory = min(wanted, MOST_EXPLORATION * least / (steps * actions))
    share = task.setting("exploration", exploration, min(MOST_EXPLORATION, theory * steps * actions / least))
    return PolicyOptimization(task.rate(rate, theory), Evaluation(ImportanceWeighting()), exploration=share)


def o_ssp_aggregate(task: Task, *, rate: float | None = None) -> PolicyOptimization:
    """Policy optimization over a kernel, told only the total loss of an episode; tuned without delay.

    Rate `sqrt(2 alpha ln A / (H^2 AK))`, regret `sqrt(2 H^4 AK ln A / alpha)` [derived], with `alpha` as for `o-ssp`;
    where it is 0, the learner is refused.
    """
    (steps, _, actions), least = _episodes(task), _sure_visits(task)
    theory = sqrt(2.0 * least * log(actions) / (steps**2 * actions * task.rounds))
    return PolicyOptimization(task.rate(rate, theory), Totals())


def _episodes(task: Task) -> Shape:
    domain = task.episodes()
    compiled(domain.dynamics)  # refuses what its critics cannot evaluate
    require_rounds(task.rounds)
    return domain.shape


def _oppo_rate(task: Task) -> float:
    steps, _, actions = _episodes(task)
    return sqrt(log(actions) / (steps**2 * (task.rounds + require_delay(task.total_delay))))


def _sure_visits(task: Task) -> float:
    """The least visit chance `alpha`; refused if there is none."""
    domain = task.domain
    if not isinstance(domain.dynamics, SingleKernel):
        raise InvalidInput(
            f"{task.learner} needs a kernel, not {describe(domain)}; for unknown transitions use pomd or dilated-bonus"
        )
    least = least_visited(domain.dynamics, domain.initial)
    if least.chance == 0.0:
        raise InvalidInput(
            f"{task.learner} needs every policy to visit all that can be reached, but some policy is never at "
            f"[h={least.step}, s={least.state}]; use o-reps or pomd"
        )
    return least.chance
