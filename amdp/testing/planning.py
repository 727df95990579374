"""Checks of planning oracles.

A planning oracle minimizes the expected cost of a policy `pi`, `V(pi, c) = E[sum_h c[h, s_h, a_h]]`, over the policies
of a domain; over a confidence set, over the kernels of the set as well. `V*(c)` is the least value.
"""

import pickle
from collections.abc import Callable, Iterator

import numpy as np

from amdp.arrays import Costs
from amdp.errors import InvalidInput
from amdp.model.domains import Domain, MarkovPolicies
from amdp.model.evaluation import evaluate
from amdp.oracles.base import Planner, PlanningOracle, Status, describe
from amdp.oracles.checked import Checked
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.testing.samples import (
    ROUNDING_TOLERANCE,
    SHAPE,
    require_frozen_settings,
    require_supports_agrees_with_bind,
    sample_domains,
)

OracleCheck = Callable[[PlanningOracle], None]


def oracle_checks() -> list[OracleCheck]:
    """Every check of a planning oracle; call each with an oracle."""
    return [
        check_it_is_a_recipe,
        check_it_refuses_other_domains,
        check_it_is_right,
        check_a_batch_is_its_singles,
        check_solves_leave_no_trace,
        check_any_size_of_costs,
        check_ties_go_to_the_first_action,
        check_wrong_costs_are_refused,
        check_planners_travel,
    ]


def check_it_is_a_recipe(oracle: PlanningOracle) -> None:
    """The oracle is frozen settings: it hashes, prints, pickles, and names the packages that it needs."""
    require_frozen_settings(oracle, PlanningOracle)


def check_it_refuses_other_domains(oracle: PlanningOracle) -> None:
    """`bind` accepts what `supports` accepts, and raises `UnsupportedDomain` otherwise."""
    require_supports_agrees_with_bind(oracle)


def check_it_is_right(oracle: PlanningOracle) -> None:
    """`bound <= V*(c) <= objective`, and `objective = V*(c)` if the status is optimal.

    Over Markov policies the objective is also compared with `V(pi, c)` of the policy `pi` that is returned.
    """
    for domain in _supported(oracle):
        costs = _costs(2, 3)
        chosen: PlanningOracle = Checked(oracle) if isinstance(domain, MarkovPolicies) else oracle
        plans = chosen.bind(domain).minimize(costs)
        least = _least_values(domain, costs)
        assert (plans.bound <= least + ROUNDING_TOLERANCE).all(), f"{describe(domain)}: the bound exceeds the optimum"
        assert (plans.objective >= least - ROUNDING_TOLERANCE).all(), f"{describe(domain)}: cheaper than the optimum"
        if plans.status is Status.OPTIMAL:
            optimal = np.allclose(plans.objective, least, rtol=0, atol=ROUNDING_TOLERANCE)
            assert optimal, f"{describe(domain)}: not optimal"


def check_a_batch_is_its_singles(oracle: PlanningOracle) -> None:
    """The plans for costs `[n, h, s, a]` are those of each `[h, s, a]` alone."""
    for planner in _planners(oracle):
        costs = _costs(3, 4)
        batch = planner.minimize(costs)
        assert len(batch) == 4, "one plan for each cost array"
        for cost, plan in zip(costs, batch, strict=True):
            alone = planner.minimize(cost[None])[0]
            assert (alone.actions == plan.actions).all(), "a policy depends on its batch"
            assert abs(alone.objective - plan.objective) <= ROUNDING_TOLERANCE, "an objective depends on its batch"


def check_solves_leave_no_trace(oracle: PlanningOracle) -> None:
    """The plan is a function of the costs: solves in between do not change it, and the costs are not written to."""
    for planner in _planners(oracle):
        costs = _costs(4, 6)
        before = costs.copy()
        first = planner.minimize(costs[:1])
        planner.minimize(costs[1:])
        again = planner.minimize(costs[:1])
        assert (first.actions == again.actions).all(), "an earlier solve changed a later answer"
        assert (costs == before).all(), "the planner wrote to the costs"


def check_any_size_of_costs(oracle: PlanningOracle) -> None:
    """`V*(x c) = x V*(c)` with the same policy, for `x` of 1e-8 and 1e8."""
    for planner in _planners(oracle):
        costs = _costs(5, 1)
        plain = planner.minimize(costs)
        for size in (1e-8, 1e8):
            scaled = planner.minimize(costs * size)
            assert (scaled.actions == plain.actions).all(), f"costs of size {size:g} give another policy"
            assert np.allclose(scaled.objective, plain.objective * size, rtol=1e-9), f"wrong at size {size:g}"


def check_ties_go_to_the_first_action(oracle: PlanningOracle) -> None:
    """Where all costs are 1, `V(pi, c) = H` for every policy, and the one returned takes action 0 everywhere."""
    for planner in _planners(oracle):
        plans = planner.minimize(np.ones((1, *SHAPE)))
        assert (plans.actions == 0).all(), "a tie did not go to the first action"


def check_wrong_costs_are_refused(oracle: PlanningOracle) -> None:
    """Costs with NaN or infinity, or of a wrong shape, raise `InvalidInput`."""
    for planner in _planners(oracle):
        for wrong in (np.nan, np.inf):
            costs = _costs(6, 1)
            costs[0, 1, 2, 1] = wrong
            assert _refuses(planner, costs), f"costs with {wrong} were accepted"
        assert _refuses(planner, np.zeros((1, 1, 3, 2))), "costs of another shape were accepted"


def check_planners_travel(oracle: PlanningOracle) -> None:
    """A pickled planner gives the policy of the original: runs go to other processes."""
    for planner in _planners(oracle):
        costs = _costs(7, 1)
        copy = pickle.loads(pickle.dumps(planner))
        assert (copy.minimize(costs).actions == planner.minimize(costs).actions).all(), "pickling changed the answer"


def _costs(seed: int, n: int) -> Costs:
    return np.random.default_rng(seed).normal(size=(n, *SHAPE))


def _supported(oracle: PlanningOracle) -> Iterator[Domain]:
    return (domain for domain in sample_domains() if oracle.supports(domain))


def _planners(oracle: PlanningOracle) -> Iterator[Planner]:
    return (oracle.bind(domain) for domain in _supported(oracle))


def _least_values(domain: Domain, costs: Costs) -> Costs:
    """`V*(c)` `[n]`: by backward induction over Markov policies, by enumeration over stationary ones."""
    if isinstance(domain, MarkovPolicies):
        return BackwardInduction().bind(domain).minimize(costs).objective
    steps, states, actions = domain.shape
    stationary = np.indices((actions,) * states).reshape(states, -1).T  # all of them, [n, s]
    markov = np.repeat(stationary[:, None], steps, axis=1).astype(np.int32)
    values = [evaluate(domain, markov, np.repeat(cost[None], len(markov), axis=0)) for cost in costs]
    return np.array([of_all_policies.min() for of_all_policies in values])


def _refuses(planner: Planner, costs: Costs) -> bool:
    try:
        planner.minimize(costs)
    except InvalidInput:
        return True
    return False
