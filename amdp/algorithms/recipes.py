"""Learners by short name: each recipe tunes one for its terms, as theory says.

Other packages add theirs in the entry-point group `amdp.learners`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from amdp import options, registry
from amdp.algorithms.base import Learner
from amdp.algorithms.ftpl import Ftpl, LiteralFtpl, follow_the_perturbed_leader
from amdp.algorithms.hedge import Hedge
from amdp.algorithms.mirror_descent import MirrorDescent
from amdp.algorithms.perturbations import Exponential, Gaussian, Gumbel, Laplace, Perturbation
from amdp.algorithms.regularized_leader import RegularizedLeader
from amdp.algorithms.switching import PolicySwitching
from amdp.errors import InvalidInput
from amdp.mdp import Domain
from amdp.oracles.base import PlanningOracle
from amdp.oracles.projection.base import ProjectionOracle

GROUP = "amdp.learners"
NOISES: dict[str, type[Perturbation]] = {
    "laplace": Laplace,
    "exponential": Exponential,
    "gumbel": Gumbel,
    "gaussian": Gaussian,
}


@dataclass(frozen=True)
class Terms:
    """What a recipe may use; no learner uses all of it."""

    domain: Domain
    rounds: int
    total_delay: int = 0
    oracle: str | PlanningOracle = "dp"
    projection: str | ProjectionOracle = "newton"
    multiplier: float = 1.0  # scales the rate that theory gives


@dataclass(frozen=True, eq=False)
class InEpochs:
    """A learner for epochs of an unbroken stream, how its policies are entered, and what theory allows it in all."""

    learner: Learner[Any]
    entry: PolicySwitching
    length: int
    bound: Any = None  # with a `total`; None where none is proved
    unproved: str = ""  # why none is


Recipe = Callable[..., Learner[Any] | InEpochs]  # of terms, and settings by keyword


def learner(
    name: str,
    domain: Domain,
    rounds: int,
    total_delay: int = 0,
    oracle: str | PlanningOracle = "dp",
    multiplier: float = 1.0,
    projection: str | ProjectionOracle = "newton",
    **settings: Any,
) -> Any:
    """The learner of that name, tuned; `settings` are keywords of its recipe. For an unbroken stream see `InEpochs`."""
    recipe: Recipe = registry.find(GROUP, name)
    registry.require_options(name, recipe, settings)
    options.require_kinds(name, recipe, {key: _python(value) for key, value in settings.items()})
    return recipe(Terms(domain, rounds, total_delay, oracle, projection, multiplier), **settings)


def ftpl(
    terms: Terms, *, rate: float | None = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """The paper's FTPL: Laplace noise fresh each round, independent trials for each step."""
    return _ftpl(Ftpl, terms, shared=False, rate=rate, limit=limit, perturbation=_noise(perturbation))


def ftpl_shared(
    terms: Terms, *, rate: float | None = None, limit: int | None = None, perturbation: str = "laplace"
) -> Learner[Any]:
    """The same with trials that serve all steps at once: same bound, fewer oracle calls."""
    return _ftpl(Ftpl, terms, shared=True, rate=rate, limit=limit, perturbation=_noise(perturbation))


def ftpl_literal(terms: Terms) -> Learner[Any]:
    """The pseudo-code to the letter: noise drawn once. Its regret is linear; it is here to show that."""
    return _ftpl(LiteralFtpl, terms, shared=False)


def fpl(terms: Terms) -> Learner[Any]:
    """Full information: FPL of Wang and Dong over a kernel, FPOP of Neu et al. over a box.

    A delay counts like more rounds, as it does for FTPL [derived].
    """
    longer = terms.rounds + terms.total_delay
    return follow_the_perturbed_leader(terms.domain, longer, oracle=terms.oracle, multiplier=terms.multiplier)


def o_reps(terms: Terms) -> Learner[Any]:
    """Mirror descent over a kernel, bandit feedback: O-REPS of Zimin and Neu, tuned without delay."""
    return MirrorDescent.o_reps(terms.domain, terms.rounds, **_projected(terms))


def o_reps_full(terms: Terms) -> Learner[Any]:
    """Mirror descent over a kernel, full information: O-REPS of Zimin and Neu, tuned without delay."""
    return MirrorDescent.o_reps_full(terms.domain, terms.rounds, **_projected(terms))


def uob_reps(terms: Terms) -> Learner[Any]:
    """Mirror descent over a box, bandit feedback: UOB-REPS of Jin et al. (2020), tuned without delay."""
    return MirrorDescent.uob_reps(terms.domain, terms.rounds, **_projected(terms))


def uc_o_reps_bernstein(terms: Terms) -> Learner[Any]:
    """Mirror descent over a box, full information: UC-O-REPS with a Bernstein box, tuned without delay."""
    return MirrorDescent.uc_o_reps_bernstein(terms.domain, terms.rounds, **_projected(terms))


def delayed_uob_reps(terms: Terms) -> Learner[Any]:
    """Mirror descent over a box with delay-adapted estimates: Delayed UOB-REPS of Jin et al. (2022)."""
    return MirrorDescent.delayed_uob_reps(terms.domain, terms.rounds, terms.total_delay, **_projected(terms))


def delayed_uob_ftrl(terms: Terms) -> Learner[Any]:
    """The regularized leader over a box: Delayed UOB-FTRL of Jin et al. (2022)."""
    return RegularizedLeader.delayed_uob_ftrl(terms.domain, terms.rounds, terms.total_delay, **_projected(terms))


def hedge(terms: Terms) -> Learner[Any]:
    """Exponential weights over all policies, exact importance weighting; few policies, known transitions."""
    return Hedge.exact(terms.domain, terms.rounds, terms.total_delay, multiplier=terms.multiplier)


def delayed_hedge(terms: Terms) -> Learner[Any]:
    """Exponential weights over all policies, implicit exploration: Delayed Hedge of Jin et al. (2022)."""
    return Hedge.tuned(terms.domain, terms.rounds, terms.total_delay, multiplier=terms.multiplier)


def _ftpl(kind: type[Ftpl], terms: Terms, **settings: Any) -> Ftpl:
    settings |= {"oracle": terms.oracle, "multiplier": terms.multiplier}
    return kind.tuned(terms.domain, terms.rounds, terms.total_delay, **settings)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _noise(name: str) -> type[Perturbation]:
    if name not in NOISES:
        raise InvalidInput(f"perturbation = {name!r}; known names: {', '.join(NOISES)}")
    return NOISES[name]


def _projected(terms: Terms) -> dict[str, Any]:
    return {"projection": terms.projection, "multiplier": terms.multiplier}
