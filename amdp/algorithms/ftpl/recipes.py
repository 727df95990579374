"""Follow the perturbed leader by short name, tuned for a task."""

from dataclasses import replace
from typing import Any, Literal

from amdp.algorithms.base import Learner
from amdp.algorithms.estimators.resampling import (
    GeometricResampling,
    Resampling,
    ScaledResampling,
    SharedResampling,
    SharedScaledResampling,
)
from amdp.algorithms.ftpl.adaptive import GAP_PLANS, AdaptiveFtpl
from amdp.algorithms.ftpl.perturbations import Exponential, Gaussian, Gumbel, Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import (
    Ftpl,
    LiteralFtpl,
    follow_the_perturbed_leader,
    laplace_rate,
    resampling_limit,
)
from amdp.algorithms.rates import ADAPTIVE, FIRST, required_rate
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
    """The paper's FTPL: Laplace noise fresh each round, independent trials for each step.

    Rate `1 / sqrt(HSA (K + D))`, at most `sqrt(SAK/H)` trials [confirmed: the paper's theorems].
    """
    return _ftpl(GeometricResampling, task, rate, limit, perturbation)


def ftpl_shared(
    task: Task, *, rate: FtplRate = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """FTPL with trials that serve all steps at once: the bound of `ftpl`, fewer oracle calls.

    Tuned as `ftpl`, whose bound it has [derived: docs/resampling.md].
    """
    return _ftpl(SharedResampling, task, rate, limit, perturbation)


def ftpl_scaled(
    task: Task, *, rate: FtplRate = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """FTPL with shared trials that are scaled by the reach of the states: the bound of `ftpl`, fewest oracle calls.

    Tuned as `ftpl`, whose bound it has [derived: docs/resampling.md].
    """
    return _ftpl(SharedScaledResampling, task, rate, limit, perturbation)


def ftpl_scaled_per_step(
    task: Task, *, rate: FtplRate = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """FTPL with scaled trials, independent for each step: the bound of `ftpl`.

    Tuned as `ftpl`, whose bound it has [derived: docs/resampling.md].
    """
    return _ftpl(ScaledResampling, task, rate, limit, perturbation)


def ftpl_adaptive(
    task: Task, *, limit: int | None = None, first: float = FIRST, plans: int = GAP_PLANS
) -> Learner[Any]:
    """FTPL with scaled trials and a rate that tunes itself: nothing to choose, not even the number of rounds.

    Rate, limits and the number of plans that a gap takes are [derived: docs/learning-rates.md].
    """
    task.solved_episodes("ftpl-infinite")
    theory = _adaptive(SharedScaledResampling, task, limit)
    return replace(theory, rate=replace(theory.rate, first=first), plans=plans)


def ftpl_literal(task: Task, *, rate: float | None = None, limit: int | None = None) -> Learner[Any]:
    """The pseudo-code to the letter: noise drawn once. Its regret is linear; it is here to show that."""
    return LiteralFtpl.tuned(task.domain, task.rounds, **theorem_settings(task, rate, limit))


def fpl(task: Task, *, rate: float | None = None) -> Learner[Any]:
    """Full information: FPL of Wang and Dong over a kernel, FPOP of Neu et al. over a box.

    Rate `sqrt((1 + ln SA) / (H^2 K))` [derived]. A delay counts like more rounds, as it does for FTPL [derived].
    """
    theory = follow_the_perturbed_leader(task.domain, task.rounds + task.total_delay, oracle=task.planning_oracle)
    return replace(theory, perturbation=task.by_hand(theory.perturbation, rate))


def theorem_settings(task: Task, rate: float | None, limit: int | None) -> dict[str, Any]:
    """Oracle, rate and limit for `Ftpl.tuned`: as they were given by hand, or as the theorems say."""
    theory = laplace_rate(task.domain, task.rounds, task.total_delay)
    trials = task.setting("limit", limit, resampling_limit(task.domain, task.rounds))
    return {"oracle": task.planning_oracle, "rate": task.rate(rate, theory), "limit": trials}


def _ftpl(
    resampling: type[Resampling], task: Task, rate: float | str | None, limit: int | None, perturbation: str
) -> Learner[Any]:
    task.solved_episodes("ftpl-infinite")
    noise = _noise(perturbation)
    if rate == ADAPTIVE:
        if noise is not Laplace:
            raise InvalidInput(f"{perturbation!r}; an adaptive rate is derived for 'laplace' only", "perturbation")
        return _adaptive(resampling, task, limit)
    settings = theorem_settings(task, required_rate(rate), limit)
    return Ftpl.tuned(task.domain, task.rounds, resampling=resampling, perturbation=noise, **settings)


def _adaptive(resampling: type[Resampling], task: Task, limit: int | None) -> AdaptiveFtpl:
    task.require_no_multiplier()
    return AdaptiveFtpl.tuned_by_itself(task.domain, resampling, oracle=task.planning_oracle, limit=limit)


def _noise(name: str) -> type[Perturbation]:
    if name not in NOISES:
        raise InvalidInput(f"{name!r}; known names: {', '.join(NOISES)}", "perturbation")
    return NOISES[name]
