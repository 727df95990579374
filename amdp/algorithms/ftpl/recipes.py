"""Follow the perturbed leader by short name, tuned for a task."""

from typing import Any

from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    ScaledResampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.ftpl.perturbations import Exponential, Gaussian, Gumbel, Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, LiteralFtpl, follow_the_perturbed_leader
from amdp.algorithms.task import Task
from amdp.errors import InvalidInput

NOISES: dict[str, type[Perturbation]] = {
    "laplace": Laplace,
    "exponential": Exponential,
    "gumbel": Gumbel,
    "gaussian": Gaussian,
}


def ftpl(
    task: Task, *, rate: float | None = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """The paper's FTPL: Laplace noise fresh each round, independent trials for each step."""
    return _ftpl(Ftpl, task, resampling=GeometricResampling, rate=rate, limit=limit, perturbation=_noise(perturbation))


def ftpl_shared(
    task: Task, *, rate: float | None = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """The same with trials that serve all steps at once: same bound, fewer oracle calls."""
    return _ftpl(Ftpl, task, resampling=SharedResampling, rate=rate, limit=limit, perturbation=_noise(perturbation))


def ftpl_scaled(
    task: Task, *, rate: float | None = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """FTPL with shared trials scaled by the reach of the states: same bound, `A C_h` trials instead of `SA`."""
    settings = {"rate": rate, "limit": limit, "perturbation": _noise(perturbation)}
    return _ftpl(Ftpl, task, resampling=SharedScaledResampling, **settings)


def ftpl_scaled_per_step(
    task: Task, *, rate: float | None = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """The same with independent trials for each step, as the paper's FTPL has them."""
    settings = {"rate": rate, "limit": limit, "perturbation": _noise(perturbation)}
    return _ftpl(Ftpl, task, resampling=ScaledResampling, **settings)


def ftpl_literal(task: Task) -> Learner[Any]:
    """The pseudo-code to the letter: noise drawn once. Its regret is linear; it is here to show that."""
    return _ftpl(LiteralFtpl, task)


def fpl(task: Task) -> Learner[Any]:
    """Full information: FPL of Wang and Dong over a kernel, FPOP of Neu et al. over a box.

    A delay counts like more rounds, as it does for FTPL [derived].
    """
    longer = task.rounds + task.total_delay
    return follow_the_perturbed_leader(task.domain, longer, oracle=task.planning_oracle, multiplier=task.multiplier)


def _ftpl(kind: type[Ftpl], task: Task, **settings: Any) -> Ftpl:
    settings |= {"oracle": task.planning_oracle, "multiplier": task.multiplier}
    return kind.tuned(task.domain, task.rounds, task.total_delay, **settings)


def _noise(name: str) -> type[Perturbation]:
    if name not in NOISES:
        raise InvalidInput(f"{name!r}; known names: {', '.join(NOISES)}", "perturbation")
    return NOISES[name]
