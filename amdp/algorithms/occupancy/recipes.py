"""Learners over occupancy measures by short name, tuned for a task."""

from typing import Any

from amdp.algorithms.base import Learner
from amdp.algorithms.occupancy.mirror_descent import MirrorDescent
from amdp.algorithms.occupancy.regularized_leader import RegularizedLeader
from amdp.algorithms.task import Task


def o_reps(task: Task) -> Learner[Any]:
    """Mirror descent over a kernel, bandit feedback: O-REPS of Zimin and Neu, tuned without delay."""
    return MirrorDescent.o_reps(task.domain, task.rounds, **_projected(task))


def o_reps_full(task: Task) -> Learner[Any]:
    """Mirror descent over a kernel, full information: O-REPS of Zimin and Neu, tuned without delay."""
    return MirrorDescent.o_reps_full(task.domain, task.rounds, **_projected(task))


def uob_reps(task: Task) -> Learner[Any]:
    """Mirror descent over a box, bandit feedback: UOB-REPS of Jin et al. (2020), tuned without delay."""
    return MirrorDescent.uob_reps(task.domain, task.rounds, **_projected(task))


def uc_o_reps_bernstein(task: Task) -> Learner[Any]:
    """Mirror descent over a box, full information: UC-O-REPS with a Bernstein box, tuned without delay."""
    return MirrorDescent.uc_o_reps_bernstein(task.domain, task.rounds, **_projected(task))


def delayed_uob_reps(task: Task) -> Learner[Any]:
    """Mirror descent over a box with delay-adapted estimates: Delayed UOB-REPS of Jin et al. (2022)."""
    return MirrorDescent.delayed_uob_reps(task.domain, task.rounds, task.total_delay, **_projected(task))


def delayed_uob_ftrl(task: Task) -> Learner[Any]:
    """The regularized leader over a box: Delayed UOB-FTRL of Jin et al. (2022)."""
    return RegularizedLeader.delayed_uob_ftrl(task.domain, task.rounds, task.total_delay, **_projected(task))


def _projected(task: Task) -> dict[str, Any]:
    return {"projection": task.projection_oracle, "multiplier": task.multiplier}
