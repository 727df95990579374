"""Learners of policy optimization by short name, tuned for their task."""

from typing import Any

from amdp.algorithms.base import Learner
from amdp.algorithms.policy_optimization.learners import PolicyOptimization
from amdp.algorithms.task import Task


def pomd(task: Task) -> Learner[Any]:
    """Policy optimization over a box, bandit feedback: optimistic POMD of Shani et al. (2020), tuned without delay."""
    return PolicyOptimization.pomd(task.domain, task.rounds, multiplier=task.multiplier)


def dilated_bonus(task: Task) -> Learner[Any]:
    """Policy optimization with dilated bonuses, bandit feedback: Luo, Wei and Lee (2021), tuned without delay."""
    return PolicyOptimization.dilated_bonus(task.domain, task.rounds, multiplier=task.multiplier)


def delayed_oppo(task: Task) -> Learner[Any]:
    """Policy optimization over a box, late bandit feedback: Delayed OPPO of Lancewicki et al. (2022)."""
    return PolicyOptimization.delayed_oppo(task.domain, task.rounds, task.total_delay, multiplier=task.multiplier)


def delayed_oppo_full(task: Task) -> Learner[Any]:
    """Policy optimization over a box, late full information: Delayed OPPO of Lancewicki et al. (2022)."""
    return PolicyOptimization.delayed_oppo_full(task.domain, task.rounds, task.total_delay, multiplier=task.multiplier)


def o_ssp(task: Task) -> Learner[Any]:
    """Policy optimization over a kernel, bandit feedback: O-SSP of Neu et al. (2010), tuned without delay."""
    return PolicyOptimization.o_ssp(task.domain, task.rounds, multiplier=task.multiplier)
