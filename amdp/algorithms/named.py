"""Learners by short name: each recipe tunes one for its terms, as theory says.

Other packages add theirs in the entry-point group `amdp.learners`.
"""

from typing import Any

import numpy as np

from amdp import options, registry
from amdp.algorithms.task import Recipe, Task
from amdp.model.domains import Domain
from amdp.oracles.base import PlanningOracle
from amdp.oracles.projection.base import ProjectionOracle

GROUP = "amdp.learners"


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
    """The learner of that name, tuned for a game; `settings` are keywords of its recipe."""
    recipe: Recipe = registry.find(GROUP, name)
    registry.require_options(name, recipe, settings)
    options.require_kinds(name, recipe, {key: _python(value) for key, value in settings.items()})
    return recipe(Task(domain, rounds, total_delay, oracle, projection, multiplier), **settings)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
