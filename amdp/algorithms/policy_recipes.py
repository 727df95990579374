"""Learners of policy optimization by short name, tuned for their terms."""

from typing import Any

from amdp.algorithms.base import Learner
from amdp.algorithms.policy_optimization import PolicyOptimization
from amdp.algorithms.recipes import Terms


def pomd(terms: Terms) -> Learner[Any]:
    """Policy optimization over a box, bandit feedback: optimistic POMD of Shani et al. (2020), tuned without delay."""
    return PolicyOptimization.pomd(terms.domain, terms.rounds, multiplier=terms.multiplier)


def dilated_bonus(terms: Terms) -> Learner[Any]:
    """Policy optimization with dilated bonuses, bandit feedback: Luo, Wei and Lee (2021), tuned without delay."""
    return PolicyOptimization.dilated_bonus(terms.domain, terms.rounds, multiplier=terms.multiplier)


def delayed_oppo(terms: Terms) -> Learner[Any]:
    """Policy optimization over a box, late bandit feedback: Delayed OPPO of Lancewicki et al. (2022)."""
    return PolicyOptimization.delayed_oppo(terms.domain, terms.rounds, terms.total_delay, multiplier=terms.multiplier)


def delayed_oppo_full(terms: Terms) -> Learner[Any]:
    """Policy optimization over a box, late full information: Delayed OPPO of Lancewicki et al. (2022)."""
    return PolicyOptimization.delayed_oppo_full(
        terms.domain, terms.rounds, terms.total_delay, multiplier=terms.multiplier
    )


def o_ssp(terms: Terms) -> Learner[Any]:
    """Policy optimization over a kernel, bandit feedback: O-SSP of Neu et al. (2010), tuned without delay."""
    return PolicyOptimization.o_ssp(terms.domain, terms.rounds, multiplier=terms.multiplier)
