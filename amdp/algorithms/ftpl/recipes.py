"""Follow the perturbed leader by short name, tuned for a task."""

from typing import Any, Literal

from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
    ScaledResampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.ftpl.adaptive import AdaptiveFtpl
from amdp.algorithms.ftpl.perturbations import Exponential, Gaussian, Gumbel, Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, LiteralFtpl, follow_the_perturbed_leader
from amdp.algorithms.rates import ADAPTIVE, THEORY
from amdp.algorithms.task import Task
from amdp.errors import InvalidInput

FtplRate = float | Literal["adaptive", "theory"] | None  # None: as theory says
NOISES: dict[str, type[Perturbation]] = {
    "laplace": Laplace,
    "exponential": Exponential,
    "gumbel": Gumbel,
    "gaussian": Gaussian,
}


def ftpl(task: Task, *, rate: FtplRate = None, limit: int | None = None, perturbation: str = "laplace") -> Learner[Any]:
    """The paper's FTPL: Laplace noise fresh each round, independent trials for each step."""
    return _ftpl(GeometricResampling, task, rate, limit, perturbation)


def ftpl_shared(
    task: Task, *, rate: FtplRate = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """FTPL with trials that serve all steps at once: the bound of `ftpl`, fewer oracle calls."""
    return _ftpl(SharedResampling, task, rate, limit, perturbation)


def ftpl_scaled(
    task: Task, *, rate: FtplRate = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """FTPL with shared trials that are scaled by the reach of the states: the bound of `ftpl`, fewest oracle calls."""
    return _ftpl(SharedScaledResampling, task, rate, limit, perturbation)


def ftpl_scaled_per_step(
    task: Task, *, rate: FtplRate = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """FTPL with scaled trials, independent for each step: the bound of `ftpl`."""
    return _ftpl(ScaledResampling, task, rate, limit, perturbation)


def ftpl_adaptive(task: Task, *, limit: int | None = None) -> Learner[Any]:
    """FTPL with scaled trials and a rate that tunes itself: nothing to choose, not even the number of rounds."""
    return _ftpl(SharedScaledResampling, task, ADAPTIVE, limit, "laplace")


def ftpl_literal(task: Task) -> Learner[Any]:
    """The pseudo-code to the letter: noise drawn once. Its regret is linear; it is here to show that."""
    settings: dict[str, Any] = {"oracle": task.planning_oracle, "multiplier": task.multiplier}
    return LiteralFtpl.tuned(task.domain, task.rounds, task.total_delay, **settings)


def fpl(task: Task) -> Learner[Any]:
    """Full information: FPL of Wang and Dong over a kernel, FPOP of Neu et al. over a box.

    A delay counts like more rounds, as it does for FTPL [derived].
    """
    longer = task.rounds + task.total_delay
    return follow_the_perturbed_leader(task.domain, longer, oracle=task.planning_oracle, multiplier=task.multiplier)


def _ftpl(
    resampling: type[Resampling], task: Task, rate: float | str | None, limit: int | None, perturbation: str
) -> Learner[Any]:
    task.episodes("ftpl-infinite")
    noise = _noise(perturbation)
    if rate == ADAPTIVE:
        return _adaptive(resampling, task, limit, perturbation)
    if isinstance(rate, str):
        if rate != THEORY:
            raise InvalidInput(f"{rate!r}; it must be a number, 'adaptive' or 'theory'", "rate")
        rate = None
    settings: dict[str, Any] = {"oracle": task.planning_oracle, "multiplier": task.multiplier}
    settings |= {"resampling": resampling, "rate": rate, "limit": limit, "perturbation": noise}
    return Ftpl.tuned(task.domain, task.rounds, task.total_delay, **settings)


def _adaptive(resampling: type[Resampling], task: Task, limit: int | None, perturbation: str) -> AdaptiveFtpl:
    if NOISES[perturbation] is not Laplace:
        raise InvalidInput(f"{perturbation!r}; an adaptive rate is derived for 'laplace' only", "perturbation")
    task.require_no_multiplier()
    return AdaptiveFtpl.tuned_by_itself(task.domain, resampling, oracle=task.planning_oracle, limit=limit)


def _noise(name: str) -> type[Perturbation]:
    if name not in NOISES:
        raise InvalidInput(f"{name!r}; known names: {', '.join(NOISES)}", "perturbation")
    return NOISES[name]
