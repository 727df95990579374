"""Plans within budgets: randomized policies, what they use, and prices that prove how good they are.

A solver's mass becomes a policy, and the policy is evaluated: its cost and what it uses. If it exceeds a budget, it is
mixed with the policy that keeps the budgets most easily, so far that it keeps them. Where that one has no room left
either, an excess of `KEPT` is tolerated, and a plan with more has failed. Prices `y >= 0` of the budgets, which most
solvers give as their multipliers, prove the bound by one sweep of backward induction: see `amdp.model.budgets`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from amdp.arrays import Actions, Bools, Costs, Floats, Occupancy, Policies, one_hot
from amdp.errors import InvalidInput
from amdp.model.budgets import KEPT, Budgets
from amdp.model.domains import BudgetedPolicies
from amdp.model.dynamics import Sweep
from amdp.oracles.base import Plan, Plans, one_line
from amdp.oracles.polytope import polytope

SMALL_REPAIR = 1e-6  # a larger share of another policy is not worth an excess that is tolerated
FAINT = 1e-13  # chances of a pair up to which a solver says nothing about it
LEAST_SIZE = 1e-6  # of what gaps are relative to, as a part of the largest cost
RANDOMIZED = "the plan is randomized: no single action says what it does; `policy` has the chance of each action"


@dataclass(frozen=True, eq=False, repr=False)
class BudgetedPlan(Plan):
    """The policy for one cost array within budgets: chances of actions, what it uses, and prices that prove it."""

    actions: Actions = field(init=False)  # [h, s], if the plan is not randomized: see `__getattr__`
    chances: Policies = field(kw_only=True)  # [h, s, a]
    use: Floats = field(kw_only=True)  # [i], the expected use of each budget
    prices: Floats = field(kw_only=True)  # [i], of a unit of each budget; by them backward induction proves the bound
    budgets: Budgets = field(kw_only=True)

    def __repr__(self) -> str:
        used = zip(self.budgets.names, self.use, self.budgets.limits, strict=True)
        return f"{one_line(self)}; " + ", ".join(f"{name}: {use:.6g} of {limit:g}" for name, use, limit in used)

    def __getattr__(self, name: str) -> Any:
        if name == "actions":
            return _certain_actions(self.chances)
        raise AttributeError(name)

    @property
    def policy(self) -> Policies:
        """The chance of each action, `[h, s, a]`."""
        return self.chances

    @property
    def excess(self) -> float:
        """By how much the worst budget is exceeded, relative to its size; at most `KEPT` unless the plan failed."""
        return float(self.budgets.excess(self.use[None])[0])


@dataclass(frozen=True, eq=False, repr=False)
class BudgetedPlans(Plans):
    """The plans for a batch of cost arrays within budgets."""

    actions: Actions = field(init=False)  # [n, h, s], if no plan is randomized: see `__getattr__`
    chances: Policies = field(kw_only=True)  # [n, h, s, a]
    use: Floats = field(kw_only=True)  # [n, i]
    prices: Floats = field(kw_only=True)  # [n, i]
    budgets: Budgets = field(kw_only=True)

    def __getattr__(self, name: str) -> Any:
        if name == "actions":
            return _certain_actions(self.chances)
        raise AttributeError(name)

    @property
    def policies(self) -> Policies:
        """The chance of each action, `[n, h, s, a]`."""
        return self.chances

    def draws(self, rng: np.random.Generator) -> Actions:
        """Deterministic policies `[n, h, s]`: an action is drawn at each step and state, independently of the others.

        No state of a step is met twice, so that a draw visits each pair with the chance that the plan itself does.
        """
        below = np.cumsum(self.chances, axis=-1)
        luck = rng.random(below.shape[:-1])[..., None] * below[..., -1:]
        drawn: Actions = (below <= luck).sum(axis=-1, dtype=np.int32)
        return drawn

    def __getitem__(self, i: int) -> BudgetedPlan:
        status = self.statuses[i] if self.statuses else self.status
        numbers = float(self.objective[i]), float(self.bound[i])
        rest = {"chances": self.chances[i], "use": self.use[i], "prices": self.prices[i], "budgets": self.budgets}
        return BudgetedPlan(*numbers, status, self.values[i], self.report, self.n_actions, **rest)

    def __iter__(self) -> Iterator[BudgetedPlan]:
        return (self[i] for i in range(len(self)))


def _certain_actions(chances: Policies) -> Actions:
    if ((chances > 0.0) & (chances < 1.0)).any():
        raise InvalidInput(RANDOMIZED)
    actions: Actions = chances.argmax(axis=-1).astype(np.int32)
    return actions


@dataclass(frozen=True, eq=False)
class Judged:
    """Policies within budgets, evaluated: what they cost and use, and what prices prove."""

    policies: Policies  # [n, h, s, a]
    objective: Floats  # [n]
    bound: Floats  # [n]
    size: Floats  # [n], what was added up, signs aside: rounding and gaps are relative to it
    use: Floats  # [n, i]
    prices: Floats  # [n, i]
    excess: Floats  # [n], at most KEPT where the budgets are kept

    def proved(self, gap: float) -> Bools:
        """Which policies keep the budgets and are optimal, up to a gap relative to their size, `[n]`."""
        return (self.excess <= KEPT) & (self.objective - self.bound <= gap * self.size)


def judged(domain: BudgetedPolicies, costs: Costs, measures: Occupancy, prices: Floats, spare: Occupancy) -> Judged:
    """Measures `[n, h, s, a]` as policies, repaired by the measure `spare` `[h, s, a]` where they exceed a budget.

    Where a measure has no mass, its policy does what is cheapest at the prices `[n, i]`.
    """
    budgets, kernel, initial = domain.budgets, domain.dynamics, domain.initial
    bound, sweep = proved_bound(domain, costs, prices)
    elsewhere = one_hot(sweep.actions, domain.shape[2])
    policies = policies_of(measures, elsewhere)
    visited = kernel.occupancy(policies, initial)
    share = _share_to_keep(budgets, budgets.use(visited), budgets.use(spare[None])[0])
    if share.any():
        mixed = (1.0 - share[:, None, None, None]) * visited + share[:, None, None, None] * spare
        policies = np.where(share[:, None, None, None] > 0.0, policies_of(mixed, elsewhere), policies)
        visited = kernel.occupancy(policies, initial)
    use = budgets.use(visited)
    size = size_within(budgets, visited, costs, prices)
    objective = (visited * costs).sum(axis=(1, 2, 3))
    return Judged(policies, objective, bound, size, use, prices, budgets.excess(use))


def size_within(budgets: Budgets, measures: Occupancy, costs: Costs, prices: Floats) -> Floats:
    """What gaps are relative to, `[n]`: what policies pay, signs aside, and the priced limits.

    It is at least a millionth of the largest cost, so that a policy which pays nothing is not judged by its rounding.
    """
    paid = (measures * np.abs(costs)).sum(axis=(1, 2, 3)) + np.abs(prices) @ np.abs(budgets.limits)
    largest: Floats = np.abs(costs).max(axis=(1, 2, 3))
    size: Floats = np.maximum(paid, LEAST_SIZE * largest)
    return size


def proved_bound(domain: BudgetedPolicies, costs: Costs, prices: Floats) -> tuple[Floats, Sweep]:
    """What no policy that keeps the budgets costs less than, `[n]`, by prices `[n, i] >= 0`; and the sweep for it."""
    sweep = domain.dynamics.cheapest(domain.budgets.priced(costs, prices))
    return sweep.values[:, 0, domain.initial] - prices @ domain.budgets.limits, sweep


def policies_of(measures: Occupancy, elsewhere: Policies) -> Policies:
    """The policies of measures `[n, h, s, a]`, and other ones in the states that these do not visit."""
    mass = np.where(measures > FAINT, measures, 0.0)
    total = mass.sum(axis=-1, keepdims=True)
    policies: Policies = np.where(total > FAINT, mass / np.where(total > FAINT, total, 1.0), elsewhere)
    return policies


def _share_to_keep(budgets: Budgets, use: Floats, spare: Floats) -> Floats:
    """The least share `[n]` of the spare policy that brings uses `[n, i]` down to the limits; 0 where they are kept."""
    over, room = use - budgets.limits, np.maximum(0.0, budgets.limits - spare)
    share = (np.maximum(0.0, over) / np.where(over + room > 0.0, over + room, 1.0)).max(axis=1)
    return np.where((share <= SMALL_REPAIR) | (budgets.excess(use) > KEPT), share, 0.0)


def easiest(domain: BudgetedPolicies) -> Occupancy:
    """The measure `[h, s, a]` that leaves most of the tightest budget, relative to sizes; `InvalidInput` if none keeps.

    With one budget that is a sweep of backward induction, with several a linear program: `min t` with
    `<usage_i, x> - limit_i <= t size_i`. Its multipliers, which sum to 1, prove that budgets contradict each other.
    """
    budgets, kernel = domain.budgets, domain.dynamics
    elsewhere = one_hot(kernel.cheapest(budgets.usage[:1]).actions, domain.shape[2])
    if len(budgets) == 1:
        return _first(kernel.occupancy(elsewhere, domain.initial))
    measure, multipliers = _least_excess(domain)
    result = kernel.occupancy(policies_of(measure[None], elsewhere), domain.initial)
    shares = multipliers / multipliers.sum() / budgets.sizes
    missed, _ = proved_bound(domain, np.zeros_like(result), shares[None])
    if missed[0] > KEPT:
        _refuse(budgets, budgets.use(result)[0])
    return _first(result)


def _first(measures: Occupancy) -> Occupancy:
    measure: Occupancy = measures[0]
    return measure


def _least_excess(domain: BudgetedPolicies) -> tuple[Occupancy, Floats]:
    """The measure whose largest relative excess is least, and the multipliers of the budgets."""
    import highspy  # only who has several budgets pays for it

    from amdp.oracles.highs import ACCURACY, linear_model, run, stoppable

    rows, count = polytope(domain), len(domain.budgets)
    lifted = np.zeros((len(rows.row_lower), 1))
    lifted[-count:] = -1.0
    matrix = scipy.sparse.hstack([rows.matrix, scipy.sparse.csr_array(lifted)], format="csc")
    cost, lower = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    cost[-1], lower[-1] = 1.0, -highspy.kHighsInf
    highs = highspy.Highs()
    for option, value in (ACCURACY | {"output_flag": False, "threads": 1}).items():
        highs.setOptionValue(option, value)
    highs.passModel(linear_model(matrix, cost, rows.row_lower, rows.row_upper, lower))
    run(highs, 1, stoppable(highs))
    solution = highs.getSolution()
    measure = np.fromiter(solution.col_value, np.float64, rows.n_pairs).reshape(rows.shape)
    return measure, np.maximum(-np.array(solution.row_dual[-count:]), 1e-300)


def _refuse(budgets: Budgets, use: Floats) -> None:
    over = [
        f"{name!r} by {used - limit:.3g}"
        for name, used, limit, size in zip(budgets.names, use, budgets.limits, budgets.sizes, strict=True)
        if used - limit > KEPT * size
    ]
    raise InvalidInput(f"{budgets}: no policy keeps all of them; the one that comes closest exceeds {', '.join(over)}")
