"""Every deterministic policy of several models, evaluated in each."""

import numpy as np

from amdp.model.several_models import MultiModel
from amdp.oracles.multi_model.planning import Choices, Found, Problem

POLICIES_AT_ONCE = 4096


def count(domain: MultiModel) -> int:
    """How many policies differ at a decision that matters."""
    policies: int = domain.shape[2] ** len(domain.open_decisions)
    return policies


def enumerate_all(problem: Problem, end: float) -> Found:
    """The first of the cheapest policies; there is no end of its time, since the number of policies is limited."""
    n_policies = count(problem.domain)
    best, least = problem.undecided, np.inf
    for low in range(0, n_policies, POLICIES_AT_ONCE):
        policies = _numbered(problem, low, min(low + POLICIES_AT_ONCE, n_policies))
        values = problem.values(policies)
        if values.min() < least:
            best, least = policies[int(values.argmin())], float(values.min())
    return Found(best, least, n_policies)


def _numbered(problem: Problem, low: int, high: int) -> Choices:
    """The policies `[n, d]` of some numbers, counted in base A over the decisions that matter."""
    numbers = np.arange(low, high)
    policies = np.repeat(problem.undecided[None], len(numbers), axis=0)
    for decision in problem.domain.open_decisions:
        numbers, policies[:, decision] = np.divmod(numbers, problem.domain.shape[2])
    return policies
