"""Learners by short name: each recipe tunes one for a domain, a number of rounds and a total delay, as theory says.

Other packages add theirs in the entry-point group `amdp.learners`.
"""

from typing import Any, Protocol

from amdp import registry
from amdp.algorithms.base import Learner
from amdp.algorithms.ftpl import Ftpl, LiteralFtpl, follow_the_perturbed_leader
from amdp.mdp import Domain
from amdp.oracles.base import PlanningOracle

GROUP = "amdp.learners"


class Recipe(Protocol):
    """How a learner is made; `multiplier` scales the rate that theory gives."""

    def __call__(
        self, domain: Domain, rounds: int, total_delay: int, oracle: str | PlanningOracle, multiplier: float = 1.0
    ) -> Learner[Any]:
        """The learner, tuned for a domain."""
        ...


def learner(
    name: str,
    domain: Domain,
    rounds: int,
    total_delay: int = 0,
    oracle: str | PlanningOracle = "dp",
    multiplier: float = 1.0,
) -> Learner[Any]:
    """The learner of that name, tuned."""
    recipe: Recipe = registry.find(GROUP, name)
    return recipe(domain, rounds, total_delay, oracle, multiplier)


def ftpl(
    domain: Domain, rounds: int, total_delay: int, oracle: str | PlanningOracle, multiplier: float = 1.0
) -> Learner[Any]:
    """The paper's FTPL: Laplace noise fresh each round, independent trials for each step."""
    return Ftpl.tuned(domain, rounds, total_delay, oracle=oracle, multiplier=multiplier)


def ftpl_shared(
    domain: Domain, rounds: int, total_delay: int, oracle: str | PlanningOracle, multiplier: float = 1.0
) -> Learner[Any]:
    """The same with trials that serve all steps at once: same bound, fewer oracle calls."""
    return Ftpl.tuned(domain, rounds, total_delay, oracle=oracle, shared=True, multiplier=multiplier)


def ftpl_literal(
    domain: Domain, rounds: int, total_delay: int, oracle: str | PlanningOracle, multiplier: float = 1.0
) -> Learner[Any]:
    """The pseudo-code to the letter: noise drawn once. Its regret is linear; it is here to show that."""
    return LiteralFtpl.tuned(domain, rounds, total_delay, oracle=oracle, multiplier=multiplier)


def fpl(
    domain: Domain, rounds: int, total_delay: int, oracle: str | PlanningOracle, multiplier: float = 1.0
) -> Learner[Any]:
    """Full information: FPL of Wang and Dong over a kernel, FPOP of Neu et al. over a box.

    A delay counts like more rounds, as it does for FTPL [derived].
    """
    return follow_the_perturbed_leader(domain, rounds + total_delay, oracle=oracle, multiplier=multiplier)
